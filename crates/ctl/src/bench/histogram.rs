//! Latencies in a fixed amount of memory, with percentiles off by less than 1.6 %.
//!
//! Values below 128 have a bucket each. Above, every power of two is cut into 64 equal buckets:
//!
//! ```text
//!   0 1 2 ... 127 | 128-129 130-131 ... 254-255 | 256-259 260-263 ... | ...
//! ```

use std::time::Duration;

/// Buckets per power of two, as a power of two.
const FINE_BITS: u32 = 6;
const FINE: usize = 1 << FINE_BITS;
/// The index of `u64::MAX`, plus one.
const BUCKETS: usize = (64 - FINE_BITS as usize) * FINE + FINE;

/// How often each latency was seen, in nanoseconds.
#[derive(Clone)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    sum: u128,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { counts: vec![0; BUCKETS], total: 0, sum: 0, max: 0 }
    }
}

impl Histogram {
    pub fn record(&mut self, latency: Duration) {
        let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.counts[bucket(nanos)] += 1;
        self.total += 1;
        self.sum += u128::from(nanos);
        self.max = self.max.max(nanos);
    }

    /// Adds what another thread has seen.
    pub fn merge(&mut self, other: &Histogram) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.total += other.total;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    pub fn count(&self) -> u64 {
        self.total
    }

    /// The latency that `percent` of all were not slower than; zero if nothing was recorded. Exact
    /// for 100, otherwise the upper edge of the bucket.
    pub fn percentile(&self, percent: f64) -> Duration {
        let rank = (percent / 100.0 * self.total as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Duration::from_nanos(upper_edge(index).min(self.max));
            }
        }
        Duration::from_nanos(self.max)
    }

    pub fn mean(&self) -> Duration {
        let nanos = self.sum / u128::from(self.total.max(1));
        Duration::from_nanos(nanos as u64)
    }
}

fn bucket(nanos: u64) -> usize {
    let shift = (u64::BITS - nanos.leading_zeros()).saturating_sub(FINE_BITS + 1);
    shift as usize * FINE + (nanos >> shift) as usize
}

/// The largest value that falls into a bucket.
fn upper_edge(index: usize) -> u64 {
    let shift = (index / FINE).saturating_sub(1);
    let within = (index - shift * FINE) as u64;
    // The last bucket ends at u64::MAX, where adding one before shifting would overflow.
    (within << shift) + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_contiguous_and_end_where_the_next_begins() {
        for index in 0..BUCKETS {
            let edge = upper_edge(index);
            assert_eq!(bucket(edge), index, "the upper edge {edge} left its bucket");
            if index + 1 < BUCKETS {
                assert_eq!(bucket(edge + 1), index + 1);
            }
        }
        assert_eq!(upper_edge(BUCKETS - 1), u64::MAX);
    }

    #[test]
    fn percentiles_are_close_and_the_maximum_is_exact() {
        let mut histogram = Histogram::default();
        for micros in 1..=10_000 {
            histogram.record(Duration::from_micros(micros));
        }
        for (percent, micros) in
            [(50.0, 5_000.0), (90.0, 9_000.0), (99.0, 9_900.0), (99.9, 9_990.0)]
        {
            let found = histogram.percentile(percent).as_secs_f64() * 1e6;
            assert!((found / micros - 1.0).abs() < 0.016, "p{percent}: {found} for {micros}");
        }
        assert_eq!(histogram.percentile(100.0), Duration::from_micros(10_000));
        assert_eq!(histogram.mean(), Duration::from_nanos(5_000_500));
    }

    #[test]
    fn an_empty_histogram_is_all_zero() {
        let histogram = Histogram::default();
        assert_eq!(histogram.percentile(50.0), Duration::ZERO);
        assert_eq!(histogram.percentile(100.0), Duration::ZERO);
        assert_eq!(histogram.mean(), Duration::ZERO);
    }

    #[test]
    fn merging_is_recording_both() {
        let (mut left, mut right, mut both) =
            (Histogram::default(), Histogram::default(), Histogram::default());
        for nanos in [3, 500, 70_000, 9_000_000] {
            left.record(Duration::from_nanos(nanos));
            both.record(Duration::from_nanos(nanos));
        }
        for nanos in [1, 200, 40_000_000] {
            right.record(Duration::from_nanos(nanos));
            both.record(Duration::from_nanos(nanos));
        }
        left.merge(&right);
        assert_eq!(left.count(), both.count());
        assert_eq!(left.counts, both.counts);
        assert_eq!(left.percentile(100.0), Duration::from_millis(40));
        assert_eq!(left.mean(), both.mean());
    }
}
