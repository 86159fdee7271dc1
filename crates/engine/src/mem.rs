//! The engine's twin in memory: the same interface, the same answers, and no disk.
//!
//! Tests of `store` and the simulator use it where durability is not the point, and it is the
//! model that [`LogEngine`](crate::LogEngine) is compared with.

use crate::buckets::{Buckets, Frozen};
use crate::kv;
use crate::{Bucket, Commit, Engine, Result, Revision, Row, RowHead, RowSum, Sizes, Snapshot};
use bytes::Bytes;
use parking_lot::RwLock;
use std::collections::BTreeMap;

/// An engine that forgets everything when it is dropped.
#[derive(Default)]
pub struct MemEngine {
    state: RwLock<State>,
}

#[derive(Default)]
struct State {
    rows: Rows,
    buckets: Buckets,
    /// Commits that no `sync` has covered yet, oldest first.
    unsynced: Vec<Commit>,
    synced: Commit,
    last: Commit,
    /// The newest revision appended, and the newest one that a commit covers.
    appended: Revision,
    committed: Revision,
}

/// A tombstone flag and the `KeyValue` encoding, by revision.
type Rows = BTreeMap<Revision, (bool, Bytes)>;

struct MemSnapshot {
    commit: Commit,
    rows: Rows,
    buckets: Frozen,
}

impl MemEngine {
    pub fn new() -> MemEngine {
        MemEngine::default()
    }
}

impl Engine for MemEngine {
    fn append(&self, revision: Revision, tombstone: bool, kv: Bytes) -> Result<()> {
        let mut state = self.state.write();
        assert!(revision > state.appended, "rows are appended in revision order");
        state.appended = revision;
        state.rows.insert(revision, (tombstone, kv));
        Ok(())
    }

    fn put(&self, bucket: Bucket, key: &[u8], value: &[u8]) -> Result<()> {
        self.state.write().buckets.put(bucket, key, value);
        Ok(())
    }

    fn delete(&self, bucket: Bucket, key: &[u8]) -> Result<()> {
        self.state.write().buckets.delete(bucket, key);
        Ok(())
    }

    fn commit(&self, commit: Commit) -> Result<()> {
        let mut state = self.state.write();
        assert!(commit.index >= state.last.index, "commits follow the log");
        state.committed = state.appended;
        state.buckets.commit();
        state.last = commit.clone();
        state.unsynced.push(commit);
        Ok(())
    }

    fn sync(&self, upto: u64) -> Result<Commit> {
        let mut state = self.state.write();
        let covered = state.unsynced.partition_point(|commit| commit.index <= upto);
        if covered > 0 {
            state.synced = state.unsynced[covered - 1].clone();
            state.unsynced.drain(..covered);
        }
        Ok(state.synced.clone())
    }

    fn read(&self, revision: Revision) -> Result<Option<Bytes>> {
        Ok(self.state.read().rows.get(&revision).map(|(_, kv)| kv.clone()))
    }

    fn rows(&self, from: Revision, rows_max: usize, bytes_max: usize) -> Result<Vec<Row>> {
        Ok(rows_from(&self.state.read().rows, from, rows_max, bytes_max))
    }

    fn sums(&self, from: Revision, rows_max: usize) -> Vec<RowSum> {
        sums_from(&self.state.read().rows, from, rows_max)
    }

    fn get(&self, bucket: Bucket, key: &[u8]) -> Option<Bytes> {
        self.state.read().buckets.now().get(bucket, key).cloned()
    }

    fn bucket(&self, bucket: Bucket) -> Vec<(Bytes, Bytes)> {
        self.state.read().buckets.now().records(bucket)
    }

    fn forget(&self, revisions: &[Revision]) -> Result<()> {
        let mut state = self.state.write();
        for revision in revisions {
            state.rows.remove(revision);
        }
        Ok(())
    }

    fn collect(&self, _bytes_max: usize, _all: bool) -> Result<bool> {
        Ok(false)
    }

    fn sizes(&self) -> Sizes {
        let state = self.state.read();
        let rows = state
            .rows
            .values()
            .map(|(tombstone, kv)| (Revision::row_key_bytes(*tombstone) + kv.len()) as u64);
        let records = state.buckets.now().all().map(|(_, k, v)| (k.len() + v.len()) as u64);
        let bytes = rows.sum::<u64>() + records.sum::<u64>();
        Sizes { total: bytes, in_use: bytes }
    }

    fn last_commit(&self) -> Commit {
        self.state.read().last.clone()
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot>> {
        let state = self.state.read();
        let rows = state.rows.range(..=state.committed);
        Ok(Box::new(MemSnapshot {
            commit: state.last.clone(),
            rows: rows.map(|(revision, row)| (*revision, row.clone())).collect(),
            buckets: state.buckets.committed(),
        }))
    }

    fn restore(&self, visit: &mut dyn FnMut(RowHead)) -> Result<()> {
        for (&revision, (tombstone, encoded)) in &self.state.read().rows {
            let head = kv::head(encoded).unwrap_or_default();
            visit(head.of_row(revision, *tombstone));
        }
        Ok(())
    }
}

impl Snapshot for MemSnapshot {
    fn commit(&self) -> &Commit {
        &self.commit
    }

    fn sums(&self, from: Revision, rows_max: usize) -> Vec<RowSum> {
        sums_from(&self.rows, from, rows_max)
    }

    fn rows(&self, from: Revision, rows_max: usize, bytes_max: usize) -> Result<Vec<Row>> {
        Ok(rows_from(&self.rows, from, rows_max, bytes_max))
    }

    fn bucket(&self, bucket: Bucket) -> Vec<(Bytes, Bytes)> {
        self.buckets.records(bucket)
    }
}

fn rows_from(rows: &Rows, from: Revision, rows_max: usize, bytes_max: usize) -> Vec<Row> {
    let mut found = Vec::new();
    let mut bytes = 0;
    for (&revision, (tombstone, kv)) in rows.range(from..).take(rows_max) {
        if bytes > 0 && bytes + kv.len() > bytes_max {
            break;
        }
        bytes += kv.len();
        found.push(Row { revision, tombstone: *tombstone, kv: kv.clone() });
    }
    found
}

fn sums_from(rows: &Rows, from: Revision, rows_max: usize) -> Vec<RowSum> {
    let rows = rows.range(from..).take(rows_max);
    rows.map(|(&revision, (tombstone, kv))| RowSum::of(revision, *tombstone, kv)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(engine: &MemEngine, main: i64, value: &str) {
        let kv = kv::encode(b"k", 1, main, main, value.as_bytes(), 7);
        engine.append(Revision::new(main, 0), false, kv).unwrap();
    }

    #[test]
    fn a_snapshot_shows_the_last_commit_and_keeps_what_is_forgotten_later() {
        let engine = MemEngine::new();
        put(&engine, 2, "a");
        put(&engine, 3, "b");
        engine.put(Bucket::Lease, b"1", b"one").unwrap();
        engine.forget(&[Revision::new(2, 0)]).unwrap();
        engine.commit(Commit { index: 5, revision: 3, ..Commit::default() }).unwrap();
        put(&engine, 4, "uncommitted");
        engine.put(Bucket::Lease, b"1", b"uncommitted").unwrap();
        engine.put(Bucket::Lease, b"2", b"uncommitted").unwrap();

        let snapshot = engine.snapshot().unwrap();
        engine.forget(&[Revision::new(3, 0)]).unwrap();
        assert_eq!(snapshot.commit().index, 5);
        let rows = snapshot.rows(Revision::default(), 10, 1000).unwrap();
        assert_eq!(rows.iter().map(|row| row.revision.main).collect::<Vec<_>>(), [3]);
        assert_eq!(snapshot.bucket(Bucket::Lease), [(Bytes::from("1"), Bytes::from("one"))]);
        assert_eq!(engine.get(Bucket::Lease, b"2").as_deref(), Some(&b"uncommitted"[..]));
        assert_eq!(engine.read(Revision::new(3, 0)).unwrap(), None);
    }

    #[test]
    fn sync_covers_no_commit_beyond_the_index_it_was_given() {
        let engine = MemEngine::new();
        for index in [3, 5, 9] {
            engine.commit(Commit { index, ..Commit::default() }).unwrap();
        }
        assert_eq!(engine.sync(2).unwrap().index, 0);
        assert_eq!(engine.sync(8).unwrap().index, 5);
        assert_eq!(engine.sync(9).unwrap().index, 9);
        assert_eq!(engine.last_commit().index, 9);
    }

    #[test]
    fn restore_tells_everything_but_the_value() {
        let engine = MemEngine::new();
        put(&engine, 2, "value");
        let mut heads = Vec::new();
        engine.restore(&mut |head| heads.push(head)).unwrap();
        assert_eq!(
            heads,
            [RowHead {
                revision: Revision::new(2, 0),
                tombstone: false,
                key: Bytes::from("k"),
                create_revision: 1,
                version: 2,
                lease: 7
            }]
        );
    }
}
