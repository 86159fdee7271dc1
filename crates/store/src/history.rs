//! History read back: what changed from a revision on, for watchers that catch up.

use std::sync::Arc;

use engine::{Engine, Revision, Row};

use crate::applied::ReadError;
use crate::change::{Change, event_of_row};
use crate::view::View;
use crate::wire::Kv;

/// How many rows are asked of the engine at once.
const ROWS_MAX: usize = 1000;

/// Some of history, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    pub changes: Vec<Arc<Change>>,
    /// Go on here. Beyond the current revision: this was all.
    pub next: i64,
}

impl View {
    /// The changes from a revision on, about `bytes_max` bytes of them and at least one if there is
    /// any. A change is never cut. Revisions below the compacted one are refused; at the compacted
    /// one itself, only what it kept is found.
    pub fn history(&self, from: i64, bytes_max: usize) -> Result<History, ReadError> {
        let current = self.revision();
        let engine = &*self.shared.engine;
        let mut rows = engine.rows(Revision::new(from, 0), ROWS_MAX, bytes_max)?;
        rows.truncate(rows.partition_point(|row| row.revision.main <= current));
        let mut next = current + 1;
        if let Some(last) = rows.last().map(|row| row.revision) {
            let behind = engine.sums(Revision::new(last.main, last.sub + 1), 1);
            match behind.first().map(|row| row.revision.main) {
                // The last change was cut: leave it to the next call, or read the rest of it.
                Some(main) if main == last.main => {
                    let whole = rows.partition_point(|row| row.revision.main < last.main);
                    if whole > 0 {
                        rows.truncate(whole);
                        next = last.main;
                    } else {
                        read_rest(engine, &mut rows, last.main)?;
                        next = last.main + 1;
                    }
                }
                Some(main) => next = main.min(current + 1),
                None => {}
            }
        }
        if from < self.compacted() {
            return Err(api::Error::COMPACTED.into());
        }
        Ok(History { changes: self.changes_of(&rows), next })
    }

    fn changes_of(&self, rows: &[Row]) -> Vec<Arc<Change>> {
        let by_revision = rows.chunk_by(|a, b| a.revision.main == b.revision.main);
        by_revision
            .map(|rows| {
                let revision = rows[0].revision.main;
                let index = self.shared.index.read();
                let events = rows.iter().map(|row| {
                    let key = Kv::read(&row.kv).key;
                    let before = index.at(key, revision - 1);
                    event_of_row(row, before.map(|found| found.modified.into()))
                });
                Arc::new(Change { revision, events: events.collect() })
            })
            .collect()
    }
}

/// Reads the rest of the one change that is in `rows`, however large.
fn read_rest(engine: &dyn Engine, rows: &mut Vec<Row>, main: i64) -> engine::Result<()> {
    while let Some(last) = rows.last() {
        let more = engine.rows(Revision::new(main, last.revision.sub + 1), ROWS_MAX, usize::MAX)?;
        let rest = more.partition_point(|row| row.revision.main == main);
        rows.extend(more.into_iter().take(rest));
        if rest < ROWS_MAX {
            break;
        }
    }
    Ok(())
}
