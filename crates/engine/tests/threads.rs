//! A writer, one who syncs and collects, readers and a backup, all at once on a real disk.

mod common;

use common::kv;
use disk::RealDisk;
use engine::{Commit, Engine, LogEngine, Options, Revision};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::SeqCst};
use std::thread;

const ROWS: i64 = 20_000;
/// Older rows are forgotten.
const KEPT: i64 = 3000;

fn revision(main: i64) -> Revision {
    Revision::new(main, 0)
}

fn row(main: i64) -> bytes::Bytes {
    kv(b"key", main, &vec![main as u8; (main % 300) as usize])
}

#[test]
fn nobody_disturbs_anybody() {
    let dir = tempfile::tempdir().unwrap();
    let open = || {
        let options = Options { segment_bytes: 50_000, cache_bytes: 100_000, reserve_bytes: 0 };
        LogEngine::open(Arc::new(RealDisk { fsync: false }), dir.path(), options).unwrap()
    };
    let engine = open();
    let newest = AtomicI64::new(1);
    let forgotten = AtomicI64::new(1);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for main in 2..ROWS {
                engine.append(revision(main), false, row(main)).unwrap();
                newest.store(main, SeqCst);
                if main % 10 == 0 {
                    engine.commit(Commit { index: main as u64, ..Commit::default() }).unwrap();
                }
                if main % 500 == 0 && main > KEPT {
                    let before = forgotten.swap(main - KEPT, SeqCst);
                    // One in fifty stays, so that there is something to rewrite.
                    let old = (before + 1..=main - KEPT).filter(|main| main % 50 != 0);
                    engine.forget(&old.map(revision).collect::<Vec<_>>()).unwrap();
                }
            }
            done.store(true, SeqCst);
        });
        scope.spawn(|| {
            while !done.load(SeqCst) {
                engine.sync(engine.last_commit().index).unwrap();
                engine.collect(20_000, false).unwrap();
            }
        });
        for reader in 0..2 {
            let (engine, newest, forgotten, done) = (&engine, &newest, &forgotten, &done);
            scope.spawn(move || {
                let mut step = reader;
                while !done.load(SeqCst) {
                    step += 1;
                    let newest = newest.load(SeqCst);
                    let main = newest - step * 7919 % KEPT.min(newest);
                    if main < 2 {
                        continue;
                    }
                    let read = engine.read(revision(main)).unwrap();
                    let alive = main > forgotten.load(SeqCst);
                    assert!(read.is_some() || !alive, "{main} is alive and was not found");
                    assert!(read.is_none_or(|read| read == row(main)));
                }
            });
        }
        scope.spawn(|| {
            while !done.load(SeqCst) {
                let snapshot = engine.snapshot().unwrap();
                let sums = snapshot.sums(Revision::default(), usize::MAX);
                let (mut from, mut seen) = (Revision::default(), 0);
                loop {
                    let rows = snapshot.rows(from, 500, 50_000).unwrap();
                    let Some(last) = rows.last() else { break };
                    from = Revision::new(last.revision.main, 1);
                    for found in &rows {
                        assert_eq!(found.revision, sums[seen].revision);
                        assert_eq!(found.kv, row(found.revision.main));
                        seen += 1;
                    }
                }
                assert_eq!(seen, sums.len());
                let last = sums.last().map_or(0, |sum| sum.revision.main);
                assert_eq!(last as u64, snapshot.commit().index, "it ends at its commit");
            }
        });
    });
    let last = engine.last_commit();
    assert_eq!(engine.sync(u64::MAX).unwrap(), last);
    while engine.collect(1 << 20, true).unwrap() {
        engine.sync(u64::MAX).unwrap();
    }
    let committed = |engine: &LogEngine| {
        let mut sums = engine.sums(Revision::default(), usize::MAX);
        sums.retain(|sum| sum.revision.main as u64 <= last.index);
        sums
    };
    let sums = committed(&engine);
    drop(engine);
    assert_eq!(committed(&open()), sums);
}
