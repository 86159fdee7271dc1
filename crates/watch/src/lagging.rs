//! The watchers that need history and can be sent it now, and whose turn it is.
//!
//! One read of history starts where the watcher stands whose turn it is, and serves everyone who
//! stands within what was read. Turns are taken in the order of arrival, so one watcher that starts
//! a million revisions back delays those near the end by one read, not by all of its reads.

use crate::slots::Slot;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub struct Lagging {
    by_next: BTreeSet<(i64, Slot)>,
    by_turn: BTreeMap<u64, (i64, Slot)>,
    last_turn: u64,
}

/// A place in the order of turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn(u64);

impl Lagging {
    /// Puts a watcher that needs revisions from `next` on behind all others.
    pub fn insert(&mut self, next: i64, watcher: Slot) -> Turn {
        self.last_turn += 1;
        self.by_next.insert((next, watcher));
        self.by_turn.insert(self.last_turn, (next, watcher));
        Turn(self.last_turn)
    }

    pub fn remove(&mut self, Turn(turn): Turn) {
        let entry = self.by_turn.remove(&turn).expect("a turn is given up once");
        self.by_next.remove(&entry);
    }

    pub fn is_empty(&self) -> bool {
        self.by_turn.is_empty()
    }

    /// Whose turn it is, and the revision it needs next.
    pub fn first(&self) -> Option<(i64, Slot)> {
        self.by_turn.values().next().copied()
    }

    /// Watchers that need a revision below this one, the furthest behind first.
    pub fn below(&self, revision: i64) -> impl Iterator<Item = Slot> + '_ {
        self.by_next.range(..(revision, 0)).map(|&(_, watcher)| watcher)
    }

    /// Watchers whose next revision is in `from..=upto`, in that order.
    pub fn between(&self, from: i64, upto: i64) -> impl Iterator<Item = Slot> + '_ {
        self.by_next.range((from, 0)..=(upto, Slot::MAX)).map(|&(_, watcher)| watcher)
    }
}
