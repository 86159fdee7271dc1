//! Patience with a peer: how much of what costs us and helps nobody is tolerated.

use super::Limits;

/// Counts what a peer may do only so often.
pub struct Guard {
    nuisance: u32,
    nuisance_per_second: u32,
    second: u64,
    /// Resets the peer may still make.
    resets_left: u32,
    resets_burst: u32,
    ping_interval_min_ms: u64,
    last_ping_ms: Option<u64>,
    ping_strikes: u32,
}

/// grpc-go allows a client to ping an idle connection this often, whatever the interval.
const IDLE_PING_INTERVAL_MS: u64 = 2 * 60 * 60 * 1000;

/// Violations of the ping policy that are forgiven.
const PING_STRIKES_MAX: u32 = 2;

impl Guard {
    pub fn new(limits: &Limits) -> Guard {
        Guard {
            nuisance: 0,
            nuisance_per_second: limits.nuisance_per_second,
            second: 0,
            resets_left: limits.resets_burst,
            resets_burst: limits.resets_burst,
            ping_interval_min_ms: limits.ping_interval_min_ms,
            last_ping_ms: None,
            ping_strikes: 0,
        }
    }

    /// Time passes: allowances grow back.
    #[inline]
    pub fn tick(&mut self, now_ms: u64) {
        let second = now_ms / 1000;
        if second != self.second {
            let passed = u32::try_from(second.saturating_sub(self.second)).unwrap_or(u32::MAX);
            self.second = second;
            self.nuisance = 0;
            let grown = (self.resets_burst / 5).max(1).saturating_mul(passed);
            self.resets_left = self.resets_left.saturating_add(grown).min(self.resets_burst);
        }
    }

    /// A frame that means no work. False: it was one too many.
    pub fn nuisance(&mut self) -> bool {
        self.nuisance += 1;
        self.nuisance <= self.nuisance_per_second
    }

    /// The peer reset one of its streams. False: it was one too many.
    pub fn reset(&mut self) -> bool {
        if self.resets_left == 0 {
            return false;
        }
        self.resets_left -= 1;
        true
    }

    /// We sent headers or data: a client that pings to measure what it receives is forgiven.
    #[inline]
    pub fn sent(&mut self) {
        self.nuisance = 0;
        self.sent_more();
    }

    /// We went on with an answer that had waited for the client's window. That window may have
    /// grown by a byte, so nothing but pings is forgiven for it.
    #[inline]
    pub fn sent_more(&mut self) {
        self.ping_strikes = 0;
        self.last_ping_ms = None;
    }

    /// A ping came in. False: it was one too many.
    pub fn ping(&mut self, now_ms: u64, streams: usize) -> bool {
        if self.ping_interval_min_ms == 0 {
            return true;
        }
        let interval = if streams == 0 { IDLE_PING_INTERVAL_MS } else { self.ping_interval_min_ms };
        if self.last_ping_ms.is_some_and(|last| now_ms < last.saturating_add(interval)) {
            self.ping_strikes += 1;
        }
        self.last_ping_ms = Some(now_ms);
        self.ping_strikes <= PING_STRIKES_MAX
    }
}
