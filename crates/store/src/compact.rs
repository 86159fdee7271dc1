//! Compaction: forgetting history, in small steps.
//!
//! When the entry is applied, older revisions are gone for readers at once. Afterwards
//! [`Compaction::step`] does the work, a bounded number of keys at a time: it prunes the index,
//! then hashes what there was (so that members can compare it), then gives the rows up.
//!
//! `scheduledCompactRev` is stored with the entry and `finishedCompactRev` behind the last step, so
//! a compaction that was interrupted is known at start, and done again.

use std::collections::{BTreeSet, VecDeque};

use engine::{Bucket, Engine, Revision};

use crate::hash::{HashKv, RowHash};
use crate::index::Index;
use crate::shared::Shared;

const SCHEDULED: &[u8] = b"scheduledCompactRev";
const FINISHED: &[u8] = b"finishedCompactRev";

/// The compactions that still have work to do, first come first served.
#[derive(Debug, Default)]
pub(crate) struct Compactions {
    waiting: VecDeque<Compaction>,
}

#[derive(Debug)]
struct Compaction {
    revision: i64,
    /// What was compacted before.
    previous: i64,
    phase: Phase,
    /// What the pruned index does not name any more, to be given up.
    dead: Vec<Revision>,
    /// Those of them that the previous compaction had kept, which the hash leaves out. An ordered
    /// set, because it grows without ever stopping to sort or to move everything.
    passed: BTreeSet<Revision>,
    /// Some key keeps a revision, if only a tombstone. If none does, the hash covers dead rows
    /// too, as etcd's does.
    keeps_any: bool,
}

#[derive(Debug)]
enum Phase {
    Prune { after: Option<Box<[u8]>> },
    Hash { hash: u32, from: Revision },
    Forget,
}

impl Compactions {
    /// Takes effect for readers now; the work is left to `step`.
    pub fn schedule(&mut self, shared: &Shared, revision: i64) -> Result<(), ScheduleError> {
        let previous = shared.compacted();
        if revision <= previous {
            return Err(api::Error::COMPACTED.into());
        }
        if revision > shared.revision() {
            return Err(api::Error::FUTURE_REVISION.into());
        }
        shared.engine.put(Bucket::Meta, SCHEDULED, &row_key(revision))?;
        shared.set_compacted(revision);
        self.waiting.push_back(Compaction {
            revision,
            previous,
            phase: Phase::Prune { after: None },
            dead: Vec::new(),
            passed: BTreeSet::new(),
            keeps_any: false,
        });
        Ok(())
    }

    /// Does about `keys_max` keys' or rows' worth of work. Returns the compaction that this
    /// finished, if any; its record is stored, but not committed.
    pub fn step(&mut self, shared: &Shared, keys_max: usize) -> engine::Result<Option<i64>> {
        let Some(compaction) = self.waiting.front_mut() else { return Ok(None) };
        if !compaction.step(shared, keys_max)? {
            return Ok(None);
        }
        let finished = compaction.revision;
        shared.engine.put(Bucket::Meta, FINISHED, &row_key(finished))?;
        shared.set_finished(finished);
        self.waiting.pop_front();
        Ok(Some(finished))
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

pub(crate) type ScheduleError = crate::applied::ReadError;

impl Compaction {
    /// `true` when all is done.
    fn step(&mut self, shared: &Shared, keys_max: usize) -> engine::Result<bool> {
        match &mut self.phase {
            Phase::Prune { after } => {
                let keeps_any = &mut self.keeps_any;
                let dead_before = self.dead.len();
                let next = shared.index.write().compact(
                    after.as_deref(),
                    self.revision,
                    keys_max,
                    &mut self.dead,
                    |kept| *keeps_any |= kept,
                );
                let dead = self.dead[dead_before..].iter();
                self.passed.extend(dead.filter(|dead| dead.main <= self.previous));
                self.phase = match next {
                    Some(key) => Phase::Prune { after: Some(key) },
                    None => Phase::Hash { hash: RowHash::new().value(), from: Revision::default() },
                };
            }
            Phase::Hash { hash, from } => {
                let mut rows = RowHash::resume(*hash);
                let mut next = None;
                for row in shared.engine.sums(*from, keys_max) {
                    if row.revision.main > self.revision {
                        next = None;
                        break;
                    }
                    next = Some(Revision::new(row.revision.main, row.revision.sub + 1));
                    let dropped = self.keeps_any && self.passed.contains(&row.revision);
                    let tombstone_at_previous = row.tombstone && row.revision.main == self.previous;
                    if !dropped && !tombstone_at_previous {
                        rows.add(&row);
                    }
                }
                match next {
                    Some(next) => (*hash, *from) = (rows.value(), next),
                    None => {
                        shared.hashes.lock().remember(HashKv {
                            hash: rows.value(),
                            compact_revision: self.previous,
                            hash_revision: self.revision,
                        });
                        self.phase = Phase::Forget;
                    }
                }
            }
            Phase::Forget => {
                let rest = self.dead.len().saturating_sub(keys_max);
                shared.engine.forget(&self.dead.split_off(rest))?;
                return Ok(self.dead.is_empty());
            }
        }
        Ok(false)
    }
}

/// What the table says about compactions at start.
pub(crate) struct Marks {
    /// -1: never compacted.
    pub compacted: i64,
    /// The last one was interrupted and must be marked as finished.
    pub interrupted: bool,
}

impl Marks {
    pub fn restore(engine: &dyn Engine) -> Marks {
        let mark = |key| {
            let value = engine.get(Bucket::Meta, key);
            let main = value.and_then(|value| value.first_chunk::<8>().copied());
            main.map_or(-1, i64::from_be_bytes)
        };
        let (scheduled, finished) = (mark(SCHEDULED), mark(FINISHED));
        Marks { compacted: scheduled.max(finished), interrupted: scheduled > finished }
    }
}

/// Compacts a freshly restored index in one go. Rows that were given up before may be back, since
/// the engine forgets only what it has rewritten; they are given up again.
pub(crate) fn compact_restored(
    engine: &dyn Engine,
    index: &mut Index,
    marks: &Marks,
) -> engine::Result<()> {
    let mut dead = Vec::new();
    index.compact(None, marks.compacted, usize::MAX, &mut dead, |_| {});
    engine.forget(&dead)?;
    if marks.interrupted {
        engine.put(Bucket::Meta, FINISHED, &row_key(marks.compacted))?;
    }
    Ok(())
}

fn row_key(main: i64) -> [u8; 17] {
    let (key, _) = Revision::new(main, 0).row_key(false);
    *key.first_chunk().expect("a row key has 18 bytes")
}
