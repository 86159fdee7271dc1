//! When leases end.
//!
//! Which leases exist is replicated and lives in `store`; *when* one ends is known only here, on
//! the leader, because only one clock can count. Expiry only proposes: a lease is gone when the
//! log says so, or two members could disagree about which keys exist.
//!
//! Always true: a lease lives at least its time to live after the last renewal that was answered.

use crate::time::{Now, SECOND};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Expired leases are looked for this often, at most [`EXPIRED_PER_SCAN`] at a time.
const SCAN_EVERY: u64 = SECOND / 2;
const EXPIRED_PER_SCAN: usize = 500;
/// Revokes that may be on their way at once: expiry must not crowd out what clients ask for.
const REVOKES_IN_FLIGHT: usize = 16;
const CHECKPOINT_EVERY: u64 = 300 * SECOND;
const CHECKPOINTS_PER_ENTRY: usize = 1000;
/// From this many leases on, a new leader spreads their ends so that about [`ENDS_PER_SECOND`]
/// fall into each second.
const SPREAD_FROM: usize = 1000;
const ENDS_PER_SECOND: usize = 750;

#[derive(Clone, Debug)]
pub struct Config {
    pub election: u64,
    pub request_timeout: u64,
    pub checkpoint: bool,
}

#[derive(Clone, Debug)]
struct Held {
    ttl: i64,
    /// What the last checkpoint, applied or on its way, says is left, in seconds; 0: there is none
    /// since the last renewal.
    remaining: i64,
    ends: Now,
}

/// What the table wants to have proposed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    Revoke {
        lease: i64,
    },
    /// What is left of each, in seconds.
    Checkpoint {
        leases: Vec<(i64, i64)>,
    },
}

/// The answer to a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// It lives for this many seconds from now.
    Renewed { ttl: i64 },
    /// There is no such lease.
    Gone,
    /// It has expired and is being revoked; ask again when it is gone.
    Ending,
    /// A leader after us would count from its checkpoint; ask again when that is cleared.
    Checkpointed,
}

#[derive(Debug)]
pub struct Leases {
    config: Config,
    /// Whether this member counts the time: it leads.
    counting: bool,
    held: BTreeMap<i64, Held>,
    by_end: BTreeSet<(Now, i64)>,
    /// Expired leases found by a scan and not proposed yet.
    ended: VecDeque<i64>,
    /// Proposed revokes, and when to give up waiting for each.
    revoking: BTreeMap<i64, Now>,
    next_scan: Now,
    next_checkpoint: Now,
}

impl Leases {
    pub fn new(config: Config) -> Leases {
        Leases {
            config,
            counting: false,
            held: BTreeMap::new(),
            by_end: BTreeSet::new(),
            ended: VecDeque::new(),
            revoking: BTreeMap::new(),
            next_scan: Now::default(),
            next_checkpoint: Now::default(),
        }
    }

    pub fn granted(&mut self, now: Now, lease: i64, ttl: i64, remaining: i64) {
        self.forget(lease);
        let ends = now.plus(seconds(ttl));
        self.held.insert(lease, Held { ttl, remaining, ends });
        self.by_end.insert((ends, lease));
    }

    pub fn revoked(&mut self, lease: i64) {
        self.forget(lease);
    }

    /// A checkpoint was applied: it matters to whoever leads next.
    pub fn checkpointed(&mut self, lease: i64, remaining: i64) {
        if let Some(held) = self.held.get_mut(&lease) {
            held.remaining = remaining;
        }
    }

    /// This member leads now: it counts from here, and gives every lease one election's time more,
    /// because nobody could renew while there was no leader.
    pub fn lead(&mut self, now: Now) {
        self.counting = true;
        self.by_end.clear();
        self.ended.clear();
        self.revoking.clear();
        for (&lease, held) in &mut self.held {
            let left = if held.remaining > 0 { held.remaining } else { held.ttl };
            held.ends = now.plus(seconds(left)).plus(self.config.election);
            self.by_end.insert((held.ends, lease));
        }
        if self.held.len() >= SPREAD_FROM {
            self.spread();
        }
        self.next_scan = now.plus(SCAN_EVERY);
        self.next_checkpoint = now.plus(CHECKPOINT_EVERY);
    }

    pub fn follow(&mut self) {
        self.counting = false;
        self.ended.clear();
        self.revoking.clear();
    }

    /// Moves ends later where too many fall into one second, so that a new leader is not busy with
    /// nothing but revokes.
    fn spread(&mut self) {
        let mut spread = BTreeSet::new();
        let mut second = Now::default();
        let mut in_second = 0;
        for &(ends, lease) in &self.by_end {
            let mut later = ends.max(second);
            if later.0 >= second.0 + SECOND {
                (second, in_second) = (later, 0);
            } else if in_second >= ENDS_PER_SECOND {
                (second, in_second) = (second.plus(SECOND), 0);
                later = second;
            }
            in_second += 1;
            spread.insert((later, lease));
            self.held.get_mut(&lease).expect("every end has its lease").ends = later;
        }
        self.by_end = spread;
    }

    pub fn renew(&mut self, now: Now, lease: i64) -> Renewal {
        let Some(held) = self.held.get_mut(&lease) else { return Renewal::Gone };
        if held.ends <= now {
            return Renewal::Ending;
        }
        if held.remaining > 0 {
            return Renewal::Checkpointed;
        }
        self.by_end.remove(&(held.ends, lease));
        held.ends = now.plus(seconds(held.ttl));
        self.by_end.insert((held.ends, lease));
        Renewal::Renewed { ttl: held.ttl }
    }

    /// Whole seconds left (cut, and possibly negative) and seconds granted.
    pub fn time_to_live(&self, now: Now, lease: i64) -> Option<(i64, i64)> {
        let held = self.held.get(&lease)?;
        Some((now.until(held.ends) / SECOND as i64, held.ttl))
    }

    /// All leases, the one that ends first first.
    pub fn by_remaining_time(&self) -> Vec<i64> {
        self.by_end.iter().map(|&(_, lease)| lease).collect()
    }

    pub fn tick(&mut self, now: Now, wishes: &mut Vec<Wish>) {
        if !self.counting {
            return;
        }
        if self.next_scan <= now {
            self.next_scan = now.plus(SCAN_EVERY);
            self.scan(now);
        }
        if self.config.checkpoint && self.next_checkpoint <= now {
            self.next_checkpoint = now.plus(CHECKPOINT_EVERY);
            self.checkpoint(now, wishes);
        }
        self.propose_revokes(now, wishes);
    }

    /// Finds what has expired. A revoke that was proposed and not seen applied is tried again.
    fn scan(&mut self, now: Now) {
        self.revoking.retain(|_, give_up| *give_up > now);
        self.ended = self
            .by_end
            .iter()
            .take_while(|&&(ends, _)| ends <= now)
            .map(|&(_, lease)| lease)
            .filter(|lease| !self.revoking.contains_key(lease))
            .take(EXPIRED_PER_SCAN)
            .collect();
    }

    /// Proposes revokes up to the number that may be on their way. Called again whenever one has
    /// been applied, so that the others need not wait for the next scan.
    pub fn propose_revokes(&mut self, now: Now, wishes: &mut Vec<Wish>) {
        while self.counting && self.revoking.len() < REVOKES_IN_FLIGHT {
            let Some(lease) = self.ended.pop_front() else { return };
            let still_ended = self.held.get(&lease).is_some_and(|held| held.ends <= now);
            if still_ended {
                self.revoking.insert(lease, now.plus(self.config.request_timeout));
                wishes.push(Wish::Revoke { lease });
            }
        }
    }

    fn checkpoint(&mut self, now: Now, wishes: &mut Vec<Wish>) {
        let mut due = Vec::new();
        for (&lease, held) in &mut self.held {
            let left = now.until(held.ends);
            if left > CHECKPOINT_EVERY as i64 {
                // From now on, not from when it is applied: whoever renews in between must clear
                // it, for it comes into the log before the renewal.
                held.remaining = (left as u64).div_ceil(SECOND) as i64;
                due.push((lease, held.remaining));
            }
        }
        for leases in due.chunks(CHECKPOINTS_PER_ENTRY) {
            wishes.push(Wish::Checkpoint { leases: leases.to_vec() });
        }
    }

    fn forget(&mut self, lease: i64) {
        if let Some(held) = self.held.remove(&lease) {
            self.by_end.remove(&(held.ends, lease));
        }
        self.revoking.remove(&lease);
    }
}

fn seconds(seconds: i64) -> u64 {
    u64::try_from(seconds).unwrap_or(0).saturating_mul(SECOND)
}
