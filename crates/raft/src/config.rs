//! Who votes, who learns, and what a quorum of them has.

use raftpb::{ConfChange, ConfChangeKind, ConfState};
use std::collections::BTreeSet;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Membership {
    voters: BTreeSet<u64>,
    learners: BTreeSet<u64>,
}

impl Membership {
    pub fn new(conf_state: &ConfState) -> Membership {
        Membership {
            voters: conf_state.voters.iter().copied().collect(),
            learners: conf_state.learners.iter().copied().collect(),
        }
    }

    pub fn conf_state(&self) -> ConfState {
        ConfState {
            voters: self.voters.iter().copied().collect(),
            learners: self.learners.iter().copied().collect(),
            ..ConfState::default()
        }
    }

    pub fn is_voter(&self, id: u64) -> bool {
        self.voters.contains(&id)
    }

    pub fn is_sole_voter(&self, id: u64) -> bool {
        self.voters.len() == 1 && self.is_voter(id)
    }

    /// Whether those for whom `counts` holds are a quorum.
    pub fn is_quorum(&self, counts: impl Fn(u64) -> bool) -> bool {
        let counted = self.voters.iter().filter(|&&id| counts(id)).count();
        counted > self.voters.len() / 2
    }

    /// The largest index that a quorum has persisted.
    pub fn quorum_index(&self, persisted: impl Fn(u64) -> u64) -> u64 {
        let mut indexes: Vec<u64> = self.voters.iter().map(|&id| persisted(id)).collect();
        indexes.sort_unstable();
        // Of 3 the second highest, of 4 the third, of 1 its own.
        let Some(position) = indexes.len().checked_sub(indexes.len() / 2 + 1) else { return 0 };
        indexes[position]
    }

    /// Makes a change. One that would leave nobody to vote, or that names nobody, is void: it is in
    /// the log of every member, and all must agree about it.
    pub fn apply(&mut self, change: &ConfChange) {
        let id = change.node_id;
        if id == 0 {
            return;
        }
        let before = self.clone();
        match change.kind {
            ConfChangeKind::AddNode => {
                self.learners.remove(&id);
                self.voters.insert(id);
            }
            ConfChangeKind::AddLearnerNode => {
                self.voters.remove(&id);
                self.learners.insert(id);
            }
            ConfChangeKind::RemoveNode => {
                self.voters.remove(&id);
                self.learners.remove(&id);
            }
            ConfChangeKind::UpdateNode => {}
        }
        if self.voters.is_empty() {
            *self = before;
        }
    }
}
