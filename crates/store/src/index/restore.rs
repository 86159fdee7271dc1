//! Building the index at start, from rows in revision order.
//!
//! Keys arrive in no order at all, and putting each into the tree at once means a walk through
//! cold memory for each. So rows are taken in batches, sorted by key, and then put in: neighbours
//! share the way down. The sort is stable, so a key's own rows stay in revision order.

use super::key::Key;
use super::{Found, History, Index, Rev};
use engine::RowHead;

/// Rows sorted at a time: a few megabytes, whatever the size of the store.
const BATCH_ROWS: usize = 128 << 10;

#[derive(Default)]
pub(crate) struct Restorer {
    index: Index,
    batch: Vec<(Key, Restored)>,
}

struct Restored {
    rev: Rev,
    /// `None`: a tombstone.
    put: Option<(i64, i64)>,
}

impl Restorer {
    /// Takes one row. Rows come in revision order.
    pub fn add(&mut self, row: &RowHead) {
        let put = (!row.tombstone).then_some((row.create_revision, row.version));
        self.batch.push((Key::new(&row.key), Restored { rev: Rev::from(row.revision), put }));
        if self.batch.len() == BATCH_ROWS {
            self.put_in_batch();
        }
    }

    pub fn finish(mut self) -> Index {
        self.put_in_batch();
        self.index
    }

    fn put_in_batch(&mut self) {
        self.batch.sort_by(|(a, _), (b, _)| a.cmp(b));
        for (key, row) in self.batch.drain(..) {
            self.index.restore(key, row.rev, row.put);
        }
    }
}

impl Index {
    fn restore(&mut self, key: Key, rev: Rev, put: Option<(i64, i64)>) {
        match (self.keys.get_mut(&key), put) {
            (Some(history), None) => history.restore_delete(rev),
            (Some(history), Some((created, version))) => {
                history.restore_put(rev, created, version);
            }
            (None, None) => {
                let mut history = History::empty();
                history.restore_delete(rev);
                self.keys.insert(key, history);
            }
            (None, Some((created, version))) => {
                self.keys.insert(key, History::last(Found { modified: rev, created, version }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::Revision;

    fn row(main: i64, key: String, create_revision: i64, version: i64) -> RowHead {
        RowHead {
            revision: Revision::new(main, 0),
            tombstone: false,
            key: key.into(),
            create_revision,
            version,
            lease: 0,
        }
    }

    #[test]
    fn batches_end_as_the_same_index_as_puts_did() {
        let mut restorer = Restorer::default();
        let mut index = Index::default();
        let keys = 50_000;
        for main in 2..(BATCH_ROWS as i64 * 5 / 2) {
            // Keys in a scattered order, each put again and again, over several batches.
            let key = format!("key/{}", (main * 7919) % keys);
            let placed = index.put(key.as_bytes(), Rev::from(Revision::new(main, 0)));
            restorer.add(&row(main, key, placed.created, placed.version));
        }
        assert!(
            restorer.finish() == index,
            "the restored index differs from the one that was built"
        );
    }
}
