//! Automatic compaction: which revision to compact to, and when.
//!
//! Periodic: the revision is sampled ten times a period (or an hour, if that is shorter), and after
//! the first whole period the store is compacted to what was current one period ago. By revision:
//! every five minutes all but the newest N revisions go. Only the leader compacts, but everybody
//! samples, so that a new leader has its samples already.

use crate::time::{Now, SECOND};
use std::collections::VecDeque;

const HOUR: u64 = 3600 * SECOND;
const REVISION_EVERY: u64 = 300 * SECOND;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Off,
    /// Keep the history of this many microseconds.
    Periodic(u64),
    /// Keep this many revisions.
    Revision(i64),
}

#[derive(Debug)]
pub struct Compactor {
    mode: Mode,
    /// Revisions sampled, the oldest first.
    samples: VecDeque<i64>,
    next: Now,
    /// Periodic: when a compaction is due; put off by one sample while one fails.
    due: Now,
    last: i64,
}

impl Compactor {
    pub fn new(mode: Mode, now: Now) -> Compactor {
        let mut compactor =
            Compactor { mode, samples: VecDeque::new(), next: now, due: now, last: 0 };
        compactor.next = now.plus(compactor.interval());
        if let Mode::Periodic(period) = mode {
            compactor.next = now;
            compactor.due = now.plus(period);
        }
        compactor
    }

    fn interval(&self) -> u64 {
        match self.mode {
            Mode::Off => u64::MAX,
            Mode::Periodic(period) => (period.min(HOUR) / 10).max(1),
            Mode::Revision(_) => REVISION_EVERY,
        }
    }

    /// The revision to compact to now, if any.
    pub fn tick(&mut self, now: Now, revision: i64, leads: bool) -> Option<i64> {
        if self.mode == Mode::Off || now < self.next {
            return None;
        }
        self.next = now.plus(self.interval());
        let target = match self.mode {
            Mode::Off => return None,
            Mode::Revision(keep) => revision - keep,
            Mode::Periodic(period) => {
                let kept = (period / self.interval()) as usize + 1;
                self.samples.push_back(revision);
                while self.samples.len() > kept {
                    self.samples.pop_front();
                }
                if now < self.due {
                    return None;
                }
                self.due = now.plus(period.min(HOUR));
                *self.samples.front().expect("a sample was just taken")
            }
        };
        (leads && target > 0 && target != self.last).then_some(target)
    }

    /// The compaction to this revision is done (or somebody had done it before).
    pub fn done(&mut self, revision: i64) {
        self.last = revision;
    }

    /// It failed: a periodic one is tried again with the next sample.
    pub fn failed(&mut self) {
        self.due = self.next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(compactor: &mut Compactor, from: u64, seconds: u64, leads: bool) -> Vec<(u64, i64)> {
        let mut compactions = Vec::new();
        for second in from..from + seconds {
            // The store grows by ten revisions a second.
            let revision = 1 + 10 * second as i64;
            if let Some(target) = compactor.tick(Now(second * SECOND), revision, leads) {
                compactor.done(target);
                compactions.push((second, target));
            }
        }
        compactions
    }

    #[test]
    fn periodic_compacts_to_what_was_current_a_period_ago() {
        let mut compactor = Compactor::new(Mode::Periodic(100 * SECOND), Now(0));
        assert_eq!(run(&mut compactor, 0, 301, true), [(100, 1), (200, 1001), (300, 2001)]);
    }

    #[test]
    fn a_period_of_hours_compacts_every_hour() {
        let mut compactor = Compactor::new(Mode::Periodic(2 * HOUR), Now(0));
        let hour = 3600;
        let expected = [(2 * hour, 1), (3 * hour, 1 + 10 * hour as i64)];
        assert_eq!(run(&mut compactor, 0, 3 * hour + 1, true), expected);
    }

    #[test]
    fn by_revision_keeps_the_newest() {
        let mut compactor = Compactor::new(Mode::Revision(1000), Now(0));
        assert_eq!(run(&mut compactor, 0, 601, true), [(300, 2001), (600, 5001)]);
    }

    #[test]
    fn followers_only_sample() {
        let mut compactor = Compactor::new(Mode::Periodic(100 * SECOND), Now(0));
        assert_eq!(run(&mut compactor, 0, 150, false), []);
        assert_eq!(run(&mut compactor, 150, 100, true), [(200, 1001)]);
    }

    #[test]
    fn nothing_new_is_not_compacted_again_and_failure_is_retried_at_the_next_sample() {
        let mut compactor = Compactor::new(Mode::Periodic(100 * SECOND), Now(0));
        for second in 0..100 {
            assert_eq!(compactor.tick(Now(second * SECOND), 5, true), None);
        }
        assert_eq!(compactor.tick(Now(100 * SECOND), 5, true), Some(5));
        compactor.failed();
        assert_eq!(compactor.tick(Now(110 * SECOND), 5, true), Some(5));
        compactor.done(5);
        for second in 111..400 {
            assert_eq!(compactor.tick(Now(second * SECOND), 5, true), None);
        }
    }
}
