//! Events on their way to many watchers: matched once for each group, encoded once for each
//! different choice of them.
//!
//! Most changes are one event, and then there are at most two encodings: with `prev_kv` and
//! without. A transaction or a read of history is more; what a watcher is sent of it is a list of
//! runs, and all who are sent the same runs share one encoding.
//!
//! ```text
//!   events      put a   put b   del c   put a   del b
//!   of [b, d)          └─────────────┘         └─────┘     runs 1..3, 4..5
//!   NODELETE           └─────┘                             run  1..2
//! ```

use crate::groups::Groups;
use crate::response::put_event;
use crate::slots::Slot;
use crate::{History, HistoryError};
use bytes::{Bytes, BytesMut};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use store::{Change, Event};

pub struct Batch<'a> {
    /// Each event and its revision, in order.
    events: Vec<(i64, &'a Event)>,
    matched: BTreeMap<Slot, Vec<Run>>,
    /// By `prev_kv`, for the choice of all events; then by choice, for all others. Only looked up.
    whole: [Option<Bytes>; 2],
    parts: HashMap<(Vec<Run>, bool), Bytes>,
    /// The previous pairs that were read, by event.
    previous: HashMap<u32, Option<Bytes>>,
}

/// Some events in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Run {
    begin: u32,
    end: u32,
}

/// Which kinds of events a watcher does not want.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    pub no_put: bool,
    pub no_delete: bool,
}

impl Filter {
    fn is_all(self) -> bool {
        !self.no_put && !self.no_delete
    }

    fn keeps(self, event: &Event) -> bool {
        if event.delete { !self.no_delete } else { !self.no_put }
    }
}

impl<'a> Batch<'a> {
    /// Finds out which groups are concerned by these changes.
    pub fn new(changes: &'a [Arc<Change>], groups: &Groups) -> Batch<'a> {
        let of_change =
            |change: &'a Arc<Change>| change.events.iter().map(|event| (change.revision, event));
        let events: Vec<_> = changes.iter().flat_map(of_change).collect();
        let mut matched: BTreeMap<Slot, Vec<Run>> = BTreeMap::new();
        for (at, (_, event)) in (0..).zip(&events) {
            groups.containing(&event.key, |group| {
                let runs = matched.entry(group).or_default();
                match runs.last_mut() {
                    Some(run) if run.end == at => run.end += 1,
                    _ => runs.push(Run { begin: at, end: at + 1 }),
                }
            });
        }
        Batch {
            events,
            matched,
            whole: [None, None],
            parts: HashMap::new(),
            previous: HashMap::new(),
        }
    }

    /// The groups that are concerned.
    pub fn groups(&self) -> Vec<Slot> {
        self.matched.keys().copied().collect()
    }

    /// What a watcher of this group wants of the batch, from revision `next` on.
    pub fn choose(&self, group: Slot, next: i64, filter: Filter, chosen: &mut Vec<Run>) {
        chosen.clear();
        let runs = self.matched.get(&group).map_or(&[][..], Vec::as_slice);
        let first = self.events.partition_point(|&(revision, _)| revision < next) as u32;
        let runs = runs.iter().filter(|run| run.end > first);
        let runs = runs.map(|run| Run { begin: run.begin.max(first), end: run.end });
        if filter.is_all() {
            chosen.extend(runs);
            return;
        }
        for at in runs.flat_map(|run| run.begin..run.end) {
            if filter.keeps(self.events[at as usize].1) {
                match chosen.last_mut() {
                    Some(run) if run.end == at => run.end += 1,
                    _ => chosen.push(Run { begin: at, end: at + 1 }),
                }
            }
        }
    }

    /// The tagged encoding of some events.
    pub fn encoded(
        &mut self,
        runs: &[Run],
        prev_kv: bool,
        history: &dyn History,
    ) -> Result<Bytes, HistoryError> {
        let all = Run { begin: 0, end: self.events.len() as u32 };
        if runs == [all] {
            if let Some(bytes) = &self.whole[usize::from(prev_kv)] {
                return Ok(bytes.clone());
            }
            let bytes = self.encode(runs, prev_kv, history)?;
            self.whole[usize::from(prev_kv)] = Some(bytes.clone());
            return Ok(bytes);
        }
        let choice = (runs.to_vec(), prev_kv);
        if let Some(bytes) = self.parts.get(&choice) {
            return Ok(bytes.clone());
        }
        let bytes = self.encode(runs, prev_kv, history)?;
        self.parts.insert(choice, bytes.clone());
        Ok(bytes)
    }

    fn encode(
        &mut self,
        runs: &[Run],
        prev_kv: bool,
        history: &dyn History,
    ) -> Result<Bytes, HistoryError> {
        let mut buffer = BytesMut::new();
        for at in runs.iter().flat_map(|run| run.begin..run.end) {
            let previous = if prev_kv { self.previous(at, history)? } else { None };
            put_event(&mut buffer, &self.events[at as usize].1.encoded, previous.as_deref());
        }
        Ok(buffer.freeze())
    }

    /// The pair that an event replaced: as it was before the whole revision, so two events of one
    /// revision and key have the same.
    fn previous(&mut self, at: u32, history: &dyn History) -> Result<Option<Bytes>, HistoryError> {
        let (revision, event) = self.events[at as usize];
        if event.create {
            return Ok(None);
        }
        if let Some(known) = self.previous.get(&at) {
            return Ok(known.clone());
        }
        let kv = match history.kv_at(&event.key, revision - 1) {
            Err(HistoryError::Compacted) => None,
            read => read?,
        };
        self.previous.insert(at, kv.clone());
        Ok(kv)
    }
}

/// How many events these are.
pub fn events_in(runs: &[Run]) -> u64 {
    runs.iter().map(|run| u64::from(run.end - run.begin)).sum()
}
