//! What the store itself costs, without an engine's work: time per put, and memory per key.
//!
//! `cargo run --release -p store --example measure [keys]`

use std::sync::Arc;

use api::etcdserverpb::{InternalRaftRequest, PutRequest, RangeRequest, RequestHeader};
use bytes::Bytes;
use engine::{Bucket, Commit, Engine, Revision, Row, RowHead, RowSum, Sizes, Snapshot};
use prost::Message;
use raftpb::{Entry, EntryKind};
use store::{Config, Store};

fn main() {
    let keys: u64 =
        std::env::args().nth(1).map_or(1_000_000, |keys| keys.parse().expect("a number"));
    let mut store = Store::open(Arc::new(Nowhere), Config::default()).expect("it opens");
    let before = resident_bytes();
    // Random order, as real keys come.
    let key = |n: u64| format!("/registry/pods/{:05x}", n.wrapping_mul(0x9e37_79b9) % keys);
    let mut index = 0;
    for round in ["first puts", "second puts"] {
        let mut in_apply = 0;
        for batch in (0..keys).step_by(1000) {
            let entries: Vec<Entry> = (batch..keys.min(batch + 1000))
                .map(|n| {
                    index += 1;
                    put(index, key(n))
                })
                .collect();
            let begin = thread_nanos();
            for entry in &entries {
                store.apply(entry).expect("nothing is damaged");
            }
            store.end_batch().expect("nothing is damaged");
            in_apply += thread_nanos() - begin;
        }
        let grown = resident_bytes().saturating_sub(before);
        println!(
            "{round}: {} ns of CPU per apply, {} bytes per key",
            in_apply / keys,
            grown / keys
        );
    }
    let everything = RangeRequest {
        key: Bytes::from_static(b"\0"),
        range_end: Bytes::from_static(b"\0"),
        count_only: true,
        ..RangeRequest::default()
    };
    let start = thread_nanos();
    store.view().range(&everything).expect("it is counted");
    println!("count of all keys: {} ms", (thread_nanos() - start) / 1_000_000);
    let compaction =
        api::etcdserverpb::CompactionRequest { revision: store.view().revision(), physical: false };
    let request = InternalRaftRequest { compaction: Some(compaction), ..Default::default() };
    store.apply(&entry(index + 1, request)).expect("nothing is damaged");
    let (mut longest, mut total, mut steps) = (0, 0, 0);
    loop {
        let begin = thread_nanos();
        let more = store.compact_step(1000).expect("nothing is damaged");
        let took = thread_nanos() - begin;
        (longest, total, steps) = (took.max(longest), total + took, steps + 1);
        if !more {
            break;
        }
    }
    println!(
        "compaction: {} ms in {steps} steps, the longest {} µs",
        total / 1_000_000,
        longest / 1000
    );
}

/// CPU time, because a busy machine would spoil any other.
fn thread_nanos() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or_default()
}

fn put(index: u64, key: String) -> Entry {
    let value = Bytes::from_static(&[b'v'; 256]);
    let put = PutRequest { key: key.into(), value, ..PutRequest::default() };
    entry(index, InternalRaftRequest { put: Some(put), ..Default::default() })
}

fn entry(index: u64, request: InternalRaftRequest) -> Entry {
    let header = Some(RequestHeader { id: index, ..RequestHeader::default() });
    let data = InternalRaftRequest { header, ..request }.encode_to_vec().into();
    Entry { kind: EntryKind::Normal, term: 1, index, data }
}

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or_default() * 4096
}

/// An engine that keeps nothing.
struct Nowhere;

impl Engine for Nowhere {
    fn append(&self, _: Revision, _: bool, _: Bytes) -> engine::Result<()> {
        Ok(())
    }
    fn put(&self, _: Bucket, _: &[u8], _: &[u8]) -> engine::Result<()> {
        Ok(())
    }
    fn delete(&self, _: Bucket, _: &[u8]) -> engine::Result<()> {
        Ok(())
    }
    fn commit(&self, _: Commit) -> engine::Result<()> {
        Ok(())
    }
    fn sync(&self, _: u64) -> engine::Result<Commit> {
        Ok(Commit::default())
    }
    fn read(&self, _: Revision) -> engine::Result<Option<Bytes>> {
        Ok(None)
    }
    fn rows(&self, _: Revision, _: usize, _: usize) -> engine::Result<Vec<Row>> {
        Ok(Vec::new())
    }
    fn sums(&self, _: Revision, _: usize) -> Vec<RowSum> {
        Vec::new()
    }
    fn get(&self, _: Bucket, _: &[u8]) -> Option<Bytes> {
        None
    }
    fn bucket(&self, _: Bucket) -> Vec<(Bytes, Bytes)> {
        Vec::new()
    }
    fn forget(&self, _: &[Revision]) -> engine::Result<()> {
        Ok(())
    }
    fn collect(&self, _: usize, _: bool) -> engine::Result<bool> {
        Ok(false)
    }
    fn sizes(&self) -> Sizes {
        Sizes::default()
    }
    fn last_commit(&self) -> Commit {
        Commit::default()
    }
    fn snapshot(&self) -> engine::Result<Box<dyn Snapshot>> {
        unreachable!("nothing is measured on a snapshot")
    }
    fn restore(&self, _: &mut dyn FnMut(RowHead)) -> engine::Result<()> {
        Ok(())
    }
}
