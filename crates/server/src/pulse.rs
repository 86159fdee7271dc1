//! The few numbers that all threads read and one writes: how far the log, the store and the
//! leadership have come.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Written by the replica's thread (commit, leader, term) and the applying one (applied).
#[derive(Debug, Default)]
pub struct Pulse {
    commit: AtomicU64,
    applied: AtomicU64,
    applied_term: AtomicU64,
    term: AtomicU64,
    leader: AtomicU64,
    /// The commit index is a read index: this member is the only voter and leads.
    sole: AtomicBool,
    /// The log, or the store, has no reserve left on the disk: only what frees space is let in.
    log_full: AtomicBool,
    store_full: AtomicBool,
}

impl Pulse {
    /// The index that a read must wait for to be fresh, if that is known without asking the
    /// leader. A write is answered only after `commit` has passed it, so whoever reads `commit`
    /// later sees at least that.
    pub fn sole_read_index(&self) -> Option<u64> {
        self.sole.load(Ordering::SeqCst).then(|| self.commit.load(Ordering::SeqCst))
    }

    /// The sole flag is taken back before a second voter can exist, and given after the commit
    /// index is published, so that no reader combines the one with a stale other.
    pub fn set_raft(&self, status: &raft::Status, sole_read_index: Option<u64>) {
        if sole_read_index.is_none() {
            self.sole.store(false, Ordering::SeqCst);
        }
        self.commit.store(status.commit, Ordering::SeqCst);
        self.term.store(status.term, Ordering::SeqCst);
        self.leader.store(status.leader.unwrap_or(0), Ordering::SeqCst);
        if sole_read_index.is_some() {
            self.sole.store(true, Ordering::SeqCst);
        }
    }

    pub fn set_applied(&self, index: u64, term: u64) {
        self.applied_term.store(term, Ordering::SeqCst);
        self.applied.store(index, Ordering::SeqCst);
    }

    pub fn set_log_full(&self, full: bool) {
        self.log_full.store(full, Ordering::SeqCst);
    }

    pub fn set_store_full(&self, full: bool) {
        self.store_full.store(full, Ordering::SeqCst);
    }

    pub fn commit(&self) -> u64 {
        self.commit.load(Ordering::SeqCst)
    }

    pub fn applied(&self) -> u64 {
        self.applied.load(Ordering::SeqCst)
    }

    /// Term of the last applied entry: what response headers carry.
    pub fn applied_term(&self) -> u64 {
        self.applied_term.load(Ordering::SeqCst)
    }

    pub fn term(&self) -> u64 {
        self.term.load(Ordering::SeqCst)
    }

    pub fn leader(&self) -> u64 {
        self.leader.load(Ordering::SeqCst)
    }

    pub fn disk_full(&self) -> bool {
        self.log_full.load(Ordering::SeqCst) || self.store_full.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commit_index_is_a_read_index_only_while_nobody_else_votes() {
        let pulse = Pulse::default();
        assert_eq!(pulse.sole_read_index(), None);
        let mut status = raft::Status {
            id: 1,
            term: 2,
            vote: 1,
            commit: 7,
            applied: 5,
            last_index: 9,
            leader: Some(1),
            role: raft::Role::Leader,
        };
        pulse.set_raft(&status, Some(7));
        assert_eq!((pulse.sole_read_index(), pulse.leader(), pulse.term()), (Some(7), 1, 2));
        status.commit = 8;
        pulse.set_raft(&status, None);
        assert_eq!((pulse.sole_read_index(), pulse.commit()), (None, 8));
        status.leader = None;
        pulse.set_raft(&status, None);
        assert_eq!(pulse.leader(), 0);
    }

    #[test]
    fn the_disk_is_full_while_either_the_log_or_the_store_has_no_reserve() {
        let pulse = Pulse::default();
        assert!(!pulse.disk_full());
        pulse.set_log_full(true);
        pulse.set_store_full(true);
        pulse.set_log_full(false);
        assert!(pulse.disk_full());
        pulse.set_store_full(false);
        assert!(!pulse.disk_full());
    }
}
