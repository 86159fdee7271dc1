//! The tables beside the revisions, as they stand in memory.
//!
//! They are small (leases are the largest) and change rarely, so a frozen copy is a handful of
//! reference counts: whoever changes a table that somebody holds frozen copies that one table first.

use crate::Bucket;
use crate::log::put_bytes;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) type Table = BTreeMap<Bytes, Bytes>;

/// All tables at one moment.
#[derive(Clone, Default)]
pub(crate) struct Frozen {
    tables: [Arc<Table>; Bucket::ALL.len()],
    /// What all records take in a segment.
    record_bytes: u64,
}

#[derive(Default)]
pub(crate) struct Buckets {
    now: Frozen,
    /// What each change since the last commit replaced, oldest first.
    undo: Vec<(Bucket, Bytes, Option<Bytes>)>,
}

impl Frozen {
    pub fn get(&self, bucket: Bucket, key: &[u8]) -> Option<&Bytes> {
        self.tables[bucket.place()].get(key)
    }

    pub fn records(&self, bucket: Bucket) -> Vec<(Bytes, Bytes)> {
        let table = &self.tables[bucket.place()];
        table.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// Every record of every table, table by table.
    pub fn all(&self) -> impl Iterator<Item = (Bucket, &Bytes, &Bytes)> {
        let tables = Bucket::ALL.into_iter().zip(&self.tables);
        tables.flat_map(|(bucket, table)| table.iter().map(move |(k, v)| (bucket, k, v)))
    }

    /// Sets or removes a record; returns what was there.
    pub fn set(&mut self, bucket: Bucket, key: Bytes, value: Option<Bytes>) -> Option<Bytes> {
        let table = Arc::make_mut(&mut self.tables[bucket.place()]);
        let key_bytes = key.len();
        if let Some(value) = &value {
            self.record_bytes += put_bytes(key_bytes, value.len());
        }
        let before = match value {
            Some(value) => table.insert(key, value),
            None => table.remove(&key),
        };
        if let Some(before) = &before {
            self.record_bytes -= put_bytes(key_bytes, before.len());
        }
        before
    }

    pub fn record_bytes(&self) -> u64 {
        self.record_bytes
    }
}

impl Buckets {
    pub fn from_committed(committed: Frozen) -> Buckets {
        Buckets { now: committed, undo: Vec::new() }
    }

    pub fn now(&self) -> &Frozen {
        &self.now
    }

    pub fn put(&mut self, bucket: Bucket, key: &[u8], value: &[u8]) {
        let (key, value) = (Bytes::copy_from_slice(key), Bytes::copy_from_slice(value));
        let before = self.now.set(bucket, key.clone(), Some(value));
        self.undo.push((bucket, key, before));
    }

    pub fn delete(&mut self, bucket: Bucket, key: &[u8]) {
        let key = Bytes::copy_from_slice(key);
        let before = self.now.set(bucket, key.clone(), None);
        self.undo.push((bucket, key, before));
    }

    pub fn commit(&mut self) {
        self.undo.clear();
    }

    /// The tables as the last commit left them.
    pub fn committed(&self) -> Frozen {
        let mut frozen = self.now.clone();
        for (bucket, key, before) in self.undo.iter().rev() {
            frozen.set(*bucket, key.clone(), before.clone());
        }
        frozen
    }
}
