//! Thins a message that repeats: the first hundred in a second, then every hundredth.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::Level;

const FIRST: u64 = 100;
const THEREAFTER: u64 = 100;
/// Messages may carry ids, so their number has no bound of its own. Forgetting the counts lets a
/// few more lines through, which is the harmless side.
const MESSAGES_MAX: usize = 4096;

#[derive(Default)]
pub(super) struct Sampler {
    counts: HashMap<u64, Count>,
}

struct Count {
    until: Duration,
    seen: u64,
}

impl Sampler {
    pub fn admits(&mut self, level: Level, msg: &str, now: SystemTime) -> bool {
        let now = now.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let mut hasher = DefaultHasher::new();
        (level, msg).hash(&mut hasher);
        if self.counts.len() >= MESSAGES_MAX {
            self.counts.clear();
        }
        let count =
            self.counts.entry(hasher.finish()).or_insert(Count { until: Duration::ZERO, seen: 0 });
        if now >= count.until {
            *count = Count { until: now + Duration::from_secs(1), seen: 0 };
        }
        count.seen += 1;
        count.seen <= FIRST || (count.seen - FIRST).is_multiple_of(THEREAFTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_thinned_and_the_next_second_starts_anew() {
        let mut sampler = Sampler::default();
        let start = UNIX_EPOCH + Duration::from_secs(10);
        let mut flood =
            |msg: &str, level, at| (0..1000).filter(|_| sampler.admits(level, msg, at)).count();
        assert_eq!(flood("a", Level::Warn, start), 100 + 9);
        assert_eq!(flood("a", Level::Info, start), 100 + 9, "another level counts on its own");
        assert_eq!(flood("b", Level::Warn, start), 100 + 9, "another message counts on its own");
        assert_eq!(flood("a", Level::Warn, start + Duration::from_secs(1)), 100 + 9);
    }

    #[test]
    fn endless_different_messages_do_not_grow_the_table() {
        let mut sampler = Sampler::default();
        for n in 0..3 * MESSAGES_MAX {
            assert!(sampler.admits(Level::Info, &n.to_string(), UNIX_EPOCH));
        }
        assert!(sampler.counts.len() <= MESSAGES_MAX);
    }
}
