//! How fast and how small the engine is: `cargo run --release -p engine --example speed [rows]`.

use bytes::Bytes;
use disk::RealDisk;
use engine::{Commit, Engine, LogEngine, Options, Revision};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

fn main() {
    let rows: i64 = std::env::args().nth(1).map_or(1_000_000, |arg| arg.parse().expect("a number"));
    let dir = tempfile::tempdir().expect("a temporary directory");
    let open = |cache_bytes| {
        let options = Options { cache_bytes, ..Options::default() };
        LogEngine::open(Arc::new(RealDisk::default()), dir.path(), options).expect("opens")
    };
    println!("{rows} rows of 256 bytes; memory before: {} MB", rss());
    let engine = open(0);
    let mut appending = std::time::Duration::ZERO;
    let begun = Instant::now();
    for batch in 0..rows / 1000 {
        let kvs: Vec<Bytes> = (0..1000).map(|i| kv(batch * 1000 + i)).collect();
        let start = Instant::now();
        for (i, kv) in kvs.into_iter().enumerate() {
            let revision = Revision::new(batch * 1000 + i as i64 + 2, 0);
            engine.append(revision, false, kv).expect("appends");
        }
        let index = batch as u64 + 1;
        engine.commit(Commit { index, ..Commit::default() }).expect("commits");
        appending += start.elapsed();
        engine.sync(index).expect("syncs");
    }
    per_row("append", appending, rows);
    per_row("append and sync, 1000 rows a sync", begun.elapsed(), rows);
    while engine.collect(1 << 20, false).expect("collects") {}
    println!("memory, no cache: {} MB; sizes {:?}", rss(), engine.sizes());

    let order: Vec<Revision> = (0..200_000u64)
        .map(|i| Revision::new((i * 7_919_317 % rows as u64) as i64 + 2, 0))
        .collect();
    time("read from the file", &order, |revision| drop(engine.read(revision).expect("reads")));
    drop(engine);
    let start = Instant::now();
    let engine = open(64 << 20);
    let mut heads = 0;
    engine.restore(&mut |_| heads += 1).expect("restores");
    println!("restart with {heads} rows: {:?}", start.elapsed());
    let hot = &order[..50_000];
    hot.iter().for_each(|&revision| drop(engine.read(revision).expect("reads")));
    time("read from the cache, 50 000 rows", hot, |revision| {
        drop(engine.read(revision).expect("reads"))
    });
    let hottest: Vec<Revision> = (0..200).flat_map(|_| order[..500].iter().copied()).collect();
    time("read from the cache, 500 rows", &hottest, |revision| {
        drop(engine.read(revision).expect("reads"));
    });
    let start = Instant::now();
    let (mut from, mut bytes) = (Revision::default(), 0);
    loop {
        let rows = engine.rows(from, 1000, 1 << 20).expect("reads");
        let Some(last) = rows.last() else { break };
        from = Revision::new(last.revision.main, last.revision.sub + 1);
        bytes += rows.iter().map(|row| row.kv.len()).sum::<usize>();
    }
    println!("all rows in order: {:?} for {} MB", start.elapsed(), bytes >> 20);
    let start = Instant::now();
    println!(
        "all sums: {} in {:?}",
        engine.sums(Revision::default(), usize::MAX).len(),
        start.elapsed()
    );
    let start = Instant::now();
    drop(engine.snapshot().expect("a snapshot"));
    println!("a snapshot: {:?}", start.elapsed());
}

fn time(what: &str, revisions: &[Revision], mut read: impl FnMut(Revision)) {
    let start = Instant::now();
    revisions.iter().for_each(|&revision| read(revision));
    per_row(what, start.elapsed(), revisions.len() as i64);
}

fn per_row(what: &str, taken: std::time::Duration, rows: i64) {
    println!("{what}: {} ns a row", taken.as_nanos() as i64 / rows.max(1));
}

/// A `KeyValue` with a key of 16 bytes and a value of 256.
fn kv(i: i64) -> Bytes {
    let mut out = vec![0x0a, 16];
    out.extend_from_slice(format!("key{i:013}").as_bytes());
    out.extend_from_slice(&[0x10, 2, 0x18, 3, 0x20, 1, 0x2a, 0x80, 0x02]);
    out.extend_from_slice(&[i as u8; 256]);
    out.into()
}

fn rss() -> u64 {
    let status = std::fs::read_to_string(Path::new("/proc/self/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or(0) >> 10
}
