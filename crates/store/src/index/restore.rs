//! Building the index at start, from rows in revision order.
//!
//! Keys arrive in no order at all, and putting each into the tree at once means a walk through
//! cold memory for each. So rows are taken in large batches and sorted by key; the first batch,
//! which for most stores is the only one, becomes a tree without a single search, and later ones
//! are put in neighbour after neighbour. The sort is stable, so a key's own rows stay in revision
//! order.

use super::key::Key;
use super::{Found, History, Index, Rev};
use engine::RowHead;

/// Rows sorted at a time: some tens of megabytes, whatever the size of the store.
const BATCH_ROWS: usize = 1 << 20;

pub(crate) struct Restorer {
    index: Index,
    batch: Vec<Restored>,
    batch_rows: usize,
}

struct Restored {
    /// Eight bytes of the key behind what all keys of the batch have in common. They decide most
    /// comparisons, and unlike a long key they are right here.
    digest: u64,
    key: Key,
    rev: Rev,
    created: i64,
    /// 0: a tombstone.
    version: i64,
}

impl Default for Restorer {
    fn default() -> Restorer {
        Restorer { index: Index::default(), batch: Vec::new(), batch_rows: BATCH_ROWS }
    }
}

impl Restorer {
    /// Takes one row. Rows come in revision order.
    pub fn add(&mut self, row: &RowHead) {
        self.batch.push(Restored {
            digest: 0,
            key: Key::new(&row.key),
            rev: Rev::from(row.revision),
            created: row.create_revision,
            version: if row.tombstone { 0 } else { row.version },
        });
        if self.batch.len() == self.batch_rows {
            self.put_in_batch();
        }
    }

    pub fn finish(mut self) -> Index {
        self.put_in_batch();
        self.index
    }

    fn put_in_batch(&mut self) {
        sort(&mut self.batch);
        let batch = std::mem::take(&mut self.batch);
        if self.index.keys.is_empty() {
            self.index.keys = Histories { rows: batch.into_iter().peekable() }.collect();
        } else {
            for row in batch {
                match self.index.keys.get_mut(&row.key) {
                    Some(history) => row.add_to(history),
                    None => {
                        let history = row.begin();
                        self.index.keys.insert(row.key, history);
                    }
                }
            }
        }
    }
}

fn sort(batch: &mut [Restored]) {
    let Some(first) = batch.first() else { return };
    let common = batch.iter().fold(first.key.bytes().len(), |common, row| {
        let pairs = first.key.bytes()[..common].iter().zip(row.key.bytes());
        pairs.take_while(|(a, b)| a == b).count()
    });
    for row in &mut *batch {
        let mut digest = [0; 8];
        let behind = &row.key.bytes()[common..];
        let length = behind.len().min(8);
        digest[..length].copy_from_slice(&behind[..length]);
        row.digest = u64::from_be_bytes(digest);
    }
    batch.sort_by(|a, b| a.digest.cmp(&b.digest).then_with(|| a.key.cmp(&b.key)));
}

impl Restored {
    /// The history of a key that is first heard of in this row.
    fn begin(&self) -> History {
        if self.version == 0 {
            let mut history = History::empty();
            history.restore_delete(self.rev);
            return history;
        }
        History::last(Found { modified: self.rev, created: self.created, version: self.version })
    }

    fn add_to(&self, history: &mut History) {
        if self.version == 0 {
            history.restore_delete(self.rev);
        } else {
            history.restore_put(self.rev, self.created, self.version);
        }
    }
}

/// Sorted rows, as one history for each key.
struct Histories<I: Iterator<Item = Restored>> {
    rows: std::iter::Peekable<I>,
}

impl<I: Iterator<Item = Restored>> Iterator for Histories<I> {
    type Item = (Key, History);

    fn next(&mut self) -> Option<(Key, History)> {
        let first = self.rows.next()?;
        let mut history = first.begin();
        while let Some(row) =
            self.rows.next_if(|row| row.digest == first.digest && row.key == first.key)
        {
            row.add_to(&mut history);
        }
        Some((first.key, history))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::Revision;

    /// Keys in a scattered order, each put again and again and sometimes deleted, short and long,
    /// over one batch or many.
    fn restored_equals_built(batch_rows: usize) {
        let mut restorer = Restorer { batch_rows, ..Restorer::default() };
        let mut index = Index::default();
        for main in 2..20_000 {
            let number = (main * 7919) % 997;
            let key = match number % 3 {
                0 => format!("key/{number}"),
                1 => format!("key/of/more/than/twenty-two/bytes/{number}"),
                _ => format!("key/{number}\0"),
            };
            let rev = Rev::from(Revision::new(main, 0));
            let mut row = RowHead {
                revision: Revision::new(main, 0),
                tombstone: main % 11 == 0 && index.newest(key.as_bytes()).is_some(),
                key: key.clone().into(),
                create_revision: 0,
                version: 0,
                lease: 0,
            };
            if row.tombstone {
                index.delete(key.as_bytes(), rev);
            } else {
                let placed = index.put(key.as_bytes(), rev);
                (row.create_revision, row.version) = (placed.created, placed.version);
            }
            restorer.add(&row);
        }
        assert!(
            restorer.finish() == index,
            "batches of {batch_rows}: the index came back different"
        );
    }

    #[test]
    fn the_index_comes_back_as_it_was() {
        restored_equals_built(BATCH_ROWS);
        restored_equals_built(5000);
        restored_equals_built(1);
    }

    #[test]
    fn nothing_restores_to_nothing() {
        assert!(Restorer::default().finish() == Index::default());
    }
}
