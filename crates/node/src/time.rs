//! Time, as the shell tells it.

/// Microseconds since the process started, from a clock that never goes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Now(pub u64);

pub const SECOND: u64 = 1_000_000;
pub const MILLISECOND: u64 = 1_000;

impl Now {
    pub fn plus(self, micros: u64) -> Now {
        Now(self.0.saturating_add(micros))
    }

    /// Signed distance to a later (or, negative, an earlier) moment.
    pub fn until(self, then: Now) -> i64 {
        then.0 as i64 - self.0 as i64
    }
}
