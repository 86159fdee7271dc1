//! What the engine's tests share.
#![allow(dead_code, reason = "each test uses its own part")]

use bytes::Bytes;
use engine::{Bucket, Commit, Engine, MemEngine, Revision, RowHead};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Everything there is at a commit.
#[derive(Clone, Default)]
pub struct World {
    pub rows: BTreeMap<Revision, (bool, Bytes)>,
    pub records: BTreeMap<(Bucket, u8), Bytes>,
    pub forgotten: BTreeSet<Revision>,
}

impl World {
    /// The engine in memory that holds the same.
    pub fn twin(&self, commit: &Commit) -> MemEngine {
        let twin = MemEngine::new();
        for (&revision, (tombstone, kv)) in &self.rows {
            twin.append(revision, *tombstone, kv.clone()).unwrap();
        }
        for ((bucket, key), value) in &self.records {
            twin.put(*bucket, &[*key], value).unwrap();
        }
        twin.commit(commit.clone()).unwrap();
        twin.forget(&self.forgotten.iter().copied().collect::<Vec<_>>()).unwrap();
        twin
    }
}

pub fn heads(engine: &dyn Engine) -> Vec<RowHead> {
    let mut heads = Vec::new();
    engine.restore(&mut |head| heads.push(head)).unwrap();
    heads
}

/// A canonical `KeyValue`.
pub fn kv(key: &[u8], mod_revision: i64, value: &[u8]) -> Bytes {
    let mut out = Vec::new();
    let chunk = |out: &mut Vec<u8>, tag: u8, bytes: &[u8]| {
        out.push(tag);
        varint(out, bytes.len() as u64);
        out.extend_from_slice(bytes);
    };
    chunk(&mut out, 0x0a, key);
    for (tag, number) in [(0x10, 2), (0x18, mod_revision as u64), (0x20, 1)] {
        out.push(tag);
        varint(&mut out, number);
    }
    if !value.is_empty() {
        chunk(&mut out, 0x2a, value);
    }
    out.into()
}

fn varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// The seeds to run: some in every build, others by `ENGINE_SEEDS=from..to`.
pub fn seeds(count: u64) -> Range<u64> {
    let Ok(wanted) = std::env::var("ENGINE_SEEDS") else { return 0..count };
    let (from, to) = wanted.split_once("..").expect("ENGINE_SEEDS is from..to");
    from.parse().expect("a number")..to.parse().expect("a number")
}
