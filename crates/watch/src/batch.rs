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
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use store::{Change, Event};

pub struct Batch<'a> {
    /// Each event and its revision, in order.
    events: Vec<(i64, &'a Event)>,
    matched: BTreeMap<Slot, Vec<Run>>,
    /// The choice for the last watcher that was asked about: the next one often wants the same.
    want: Option<Want>,
    chosen: Vec<Run>,
    encoded: Option<Bytes>,
    /// Encodings by choice: of all events, with and without `prev_kv`, and of only some.
    whole: [Option<Bytes>; 2],
    parts: HashMap<(Vec<Run>, bool), Bytes>,
    /// The previous pairs that were read, by event.
    previous: HashMap<u32, Option<Bytes>>,
}

/// What a watcher wants of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Want {
    pub group: Slot,
    /// Nothing before this revision.
    pub from: i64,
    pub filter: Filter,
    pub prev_kv: bool,
}

/// Some events in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Run {
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
                extend_runs(matched.entry(group).or_default(), at);
            });
        }
        Batch {
            events,
            matched,
            want: None,
            chosen: Vec::new(),
            encoded: None,
            whole: [None, None],
            parts: HashMap::new(),
            previous: HashMap::new(),
        }
    }

    /// The groups that are concerned.
    pub fn groups(&self) -> Vec<Slot> {
        self.matched.keys().copied().collect()
    }

    /// Chooses what is wanted, for [`Batch::encoded`]. Returns the number of events.
    pub fn choose(&mut self, want: Want) -> u64 {
        if self.want != Some(want) {
            self.want = Some(want);
            self.encoded = None;
            self.choose_runs(want);
        }
        self.chosen.iter().map(|run| u64::from(run.end - run.begin)).sum()
    }

    fn choose_runs(&mut self, want: Want) {
        self.chosen.clear();
        let runs = self.matched.get(&want.group).map_or(&[][..], Vec::as_slice);
        let first = self.events.partition_point(|&(revision, _)| revision < want.from) as u32;
        let runs = runs.iter().filter(|run| run.end > first);
        let runs = runs.map(|run| Run { begin: run.begin.max(first), end: run.end });
        if want.filter.is_all() {
            self.chosen.extend(runs);
            return;
        }
        for at in runs.flat_map(|run| run.begin..run.end) {
            if want.filter.keeps(self.events[at as usize].1) {
                extend_runs(&mut self.chosen, at);
            }
        }
    }

    /// The tagged encoding of the chosen events.
    pub fn encoded(&mut self, history: &dyn History) -> Result<Bytes, HistoryError> {
        if let Some(bytes) = &self.encoded {
            return Ok(bytes.clone());
        }
        let prev_kv = self.want.expect("something was chosen").prev_kv;
        let whole = self.chosen == [Run { begin: 0, end: self.events.len() as u32 }];
        let known = match whole {
            true => self.whole[usize::from(prev_kv)].clone(),
            false => self.parts.get(&(self.chosen.clone(), prev_kv)).cloned(),
        };
        let bytes = match known {
            Some(bytes) => bytes,
            None => {
                let bytes = self.encode(prev_kv, history)?;
                match whole {
                    true => self.whole[usize::from(prev_kv)] = Some(bytes.clone()),
                    false => {
                        drop(self.parts.insert((self.chosen.clone(), prev_kv), bytes.clone()));
                    }
                }
                bytes
            }
        };
        self.encoded = Some(bytes.clone());
        Ok(bytes)
    }

    fn encode(&mut self, prev_kv: bool, history: &dyn History) -> Result<Bytes, HistoryError> {
        if prev_kv {
            self.read_previous(history)?;
        }
        let mut buffer = BytesMut::new();
        for at in self.chosen.iter().flat_map(|run| run.begin..run.end) {
            let previous = match self.previous.get(&at) {
                Some(Some(kv)) if prev_kv => Some(kv.as_ref()),
                _ => None,
            };
            put_event(&mut buffer, &self.events[at as usize].1.encoded, previous);
        }
        Ok(buffer.freeze())
    }

    /// Reads the pairs that the chosen events replaced.
    fn read_previous(&mut self, history: &dyn History) -> Result<(), HistoryError> {
        for at in self.chosen.iter().flat_map(|run| run.begin..run.end) {
            let (revision, event) = self.events[at as usize];
            // A put that creates may have one all the same, if its revision deleted the key first;
            // etcd does not show it.
            let Some(previous) = event.previous.filter(|_| !event.create) else { continue };
            if let Entry::Vacant(place) = self.previous.entry(at) {
                place.insert(match history.previous_kv(revision, previous) {
                    Err(HistoryError::Compacted) => None,
                    read => read?,
                });
            }
        }
        Ok(())
    }
}

/// Adds an event to the last run, or begins a new one with it.
fn extend_runs(runs: &mut Vec<Run>, at: u32) {
    match runs.last_mut() {
        Some(run) if run.end == at => run.end += 1,
        _ => runs.push(Run { begin: at, end: at + 1 }),
    }
}
