//! What Raft asks of the world.

use crate::event::Event;
use crate::raft::Role;
use raftpb::{Entry, HardState};

/// What came up since the last one. Everything is given once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// To be written behind `entries`, if it changed.
    pub hard_state: Option<HardState>,
    /// To be written.
    pub entries: Vec<Entry>,
    /// Whether what is to be written must be synced. A new commit index alone may wait for the next
    /// sync: after a crash it is found out again.
    pub must_sync: bool,
    /// To be handed to [`crate::Raft::persisted`] when all of the above is synced. The mark of a
    /// later ready stands for all earlier ones.
    pub mark: Mark,
    /// To be applied, in order.
    pub committed: Vec<Entry>,
    /// The role and the known leader, if either changed.
    pub soft_state: Option<(Role, Option<u64>)>,
    /// To be written to the log, in order.
    pub events: Vec<Event>,
}

impl Ready {
    pub fn is_empty(&self) -> bool {
        self.hard_state.is_none()
            && self.entries.is_empty()
            && self.committed.is_empty()
            && self.soft_state.is_none()
            && self.events.is_empty()
    }
}

/// How far the log is durable once the ready that carried it is synced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// The last entry and its term.
    pub(crate) index: u64,
    pub(crate) index_term: u64,
    /// The term and the vote in it.
    pub(crate) term: u64,
    pub(crate) vote: u64,
}

impl Mark {
    /// The index of the last entry that is durable once this mark is.
    pub fn index(self) -> u64 {
        self.index
    }
}
