//! The named faults: what is refused, what is reported, and what is repaired in silence.

mod common;

use common::{heads, kv};
use disk::{Disk, Open, SimDisk};
use engine::{Bucket, Commit, Engine, Error, LogEngine, Options, Revision, Row};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const DIR: &str = "/store";

fn options() -> Options {
    Options { segment_bytes: 3000, cache_bytes: 0, reserve_bytes: 0 }
}

fn open(disk: &SimDisk) -> engine::Result<LogEngine> {
    LogEngine::open(Arc::new(disk.clone()), Path::new(DIR), options())
}

/// One commit with one row and one record, synced.
fn write(engine: &LogEngine, index: u64, value_bytes: usize) {
    let main = index as i64 + 1;
    let row = kv(b"key", main, &vec![index as u8; value_bytes]);
    engine.append(Revision::new(main, 0), false, row).unwrap();
    engine.put(Bucket::Meta, b"index", &index.to_be_bytes()).unwrap();
    // The last byte is not zero, or cutting it would change nothing.
    engine.commit(Commit { index, revision: main, compacted: -1, ..Commit::default() }).unwrap();
    engine.sync(index).unwrap();
}

fn all(engine: &LogEngine) -> engine::Result<Vec<Row>> {
    engine.rows(Revision::default(), usize::MAX, usize::MAX)
}

fn collect(engine: &LogEngine, all: bool) {
    while engine.collect(1000, all).unwrap() {
        engine.sync(u64::MAX).unwrap();
    }
}

fn files(disk: &SimDisk, ending: &str) -> Vec<PathBuf> {
    let names = disk.list(Path::new(DIR)).unwrap().into_iter();
    names.filter(|name| name.ends_with(ending)).map(|name| Path::new(DIR).join(name)).collect()
}

#[test]
fn an_empty_store_takes_a_few_kilobytes() {
    let disk = SimDisk::new(1);
    let sizes = open(&disk).unwrap().sizes();
    assert!(sizes.total < 4096 && sizes.in_use == sizes.total, "{sizes:?}");
}

#[test]
fn a_directory_in_use_is_refused() {
    let disk = SimDisk::new(1);
    let first = open(&disk).unwrap();
    let refused = open(&disk).err().expect("refused");
    assert!(matches!(refused, Error::InUse { .. }), "{refused}");
    assert!(refused.to_string().contains("another process is using this data directory"));
    drop(first);
    open(&disk).unwrap();
}

#[test]
fn a_tail_torn_at_any_byte_leads_back_to_the_commit_before() {
    let disk = SimDisk::new(1);
    let engine = open(&disk).unwrap();
    write(&engine, 1, 50);
    write(&engine, 2, 50);
    let before = engine.sizes().total;
    write(&engine, 3, 50);
    let after = engine.sizes().total;
    drop(engine);
    let path = &files(&disk, ".seg")[0];
    let content = disk.content(path).unwrap();
    assert_eq!(content.len() as u64, after);
    for cut in before..after {
        // Both kinds of tail: the length never grew, or it did and the content is zeros.
        for zeros in [false, true] {
            let file = disk.open(path, Open::Write).unwrap();
            file.set_len(0).unwrap();
            file.write_at(&content[..cut as usize], 0).unwrap();
            file.set_len(if zeros { after } else { cut }).unwrap();
            drop(file);
            let engine = open(&disk).unwrap();
            assert_eq!(engine.last_commit().index, 2, "cut at {cut}");
            assert_eq!(all(&engine).unwrap().len(), 2);
            assert_eq!(engine.get(Bucket::Meta, b"index").unwrap(), &2u64.to_be_bytes()[..]);
            assert_eq!(engine.sizes().total, before);
        }
    }
}

#[test]
fn damage_is_reported_and_never_served() {
    for seed in common::seeds(300) {
        println!("seed {seed}");
        let mut random = StdRng::seed_from_u64(seed);
        let disk = SimDisk::new(seed);
        let engine = open(&disk).unwrap();
        let commits = random.random_range(2..30);
        (1..=commits).for_each(|index| write(&engine, index, random.random_range(0..400)));
        let last_write = {
            let before = engine.sizes().total;
            write(&engine, commits + 1, 10);
            engine.sizes().total - before
        };
        if random.random() {
            collect(&engine, false);
        }
        let rows = all(&engine).unwrap();
        drop(engine);

        let segments = files(&disk, ".seg");
        let path = &segments[random.random_range(0..segments.len())];
        let bytes = disk.content(path).unwrap().len() as u64;
        let offset = random.random_range(0..bytes);
        if random.random() {
            disk.rot(path, offset, 1 << random.random_range(0..8)).unwrap();
        } else {
            disk.zero_sector(path, offset).unwrap();
        }
        let is_active = path == segments.last().unwrap();
        let in_last_write =
            is_active && offset / 512 * 512 + 512 > bytes.saturating_sub(last_write);

        let engine = match open(&disk) {
            Ok(engine) => engine,
            Err(Error::Damaged { file, .. }) => {
                assert_eq!(file, *path);
                continue;
            }
            Err(other) => panic!("{other}"),
        };
        let commit = engine.last_commit().index;
        assert!(commit == commits + 1 || in_last_write, "lost a commit that was synced");
        assert!(!is_active || in_last_write, "the active segment is read whole");
        for row in rows.iter().filter(|row| row.revision.main <= commit as i64 + 1) {
            match engine.read(row.revision) {
                Ok(read) => assert_eq!(read.as_ref(), Some(&row.kv)),
                Err(Error::Damaged { file, .. }) => assert_eq!(file, *path),
                Err(other) => panic!("{other}"),
            }
        }
        let read_all = all(&engine).is_ok();
        let mut scrubbed = engine.scrub(100);
        while let Ok(true) = scrubbed {
            scrubbed = engine.scrub(100);
        }
        assert_eq!(scrubbed.is_ok(), read_all, "the scrub finds what a reader would");
    }
}

#[test]
fn a_missing_segment_is_reported() {
    let disk = SimDisk::new(1);
    let engine = open(&disk).unwrap();
    (1..60).for_each(|index| write(&engine, index, 200));
    drop(engine);
    let segments = files(&disk, ".seg");
    assert!(segments.len() > 3);
    disk.remove(&segments[1]).unwrap();
    let refused = open(&disk).err().expect("refused").to_string();
    assert!(refused.contains("0000000000000002.seg") && refused.contains("missing"), "{refused}");
}

#[test]
fn damaged_hints_are_read_around_and_written_again() {
    let disk = SimDisk::new(1);
    let engine = open(&disk).unwrap();
    (1..15).for_each(|index| write(&engine, index, 400));
    collect(&engine, false);
    let (rows, told) = (all(&engine).unwrap(), heads(&engine));
    drop(engine);
    let hint = &files(&disk, ".hint")[0];
    let content = disk.content(hint).unwrap();
    for offset in 0..content.len() as u64 {
        disk.rot(hint, offset, 0x10).unwrap();
        let engine = open(&disk).unwrap();
        assert_eq!(all(&engine).unwrap(), rows, "byte {offset}");
        assert_eq!(heads(&engine), told);
        collect(&engine, false);
        assert_eq!(disk.content(hint).unwrap(), content);
    }
}

#[test]
fn the_reserve_carries_a_full_disk_through_compaction() {
    let disk = SimDisk::new(1);
    let options = Options { segment_bytes: 3000, cache_bytes: 0, reserve_bytes: 9000 };
    let open = || LogEngine::open(Arc::new(disk.clone()), Path::new(DIR), options.clone());
    let engine = open().unwrap();
    (1..40).for_each(|index| write(&engine, index, 300));
    assert!(engine.reserve_ok());
    disk.set_capacity(Some(disk.used()));

    // The write that finds the disk full succeeds all the same, and says what it cost.
    write(&engine, 40, 300);
    assert!(!engine.reserve_ok());
    let old: Vec<_> = (2..41).map(|main| Revision::new(main, 0)).collect();
    engine.forget(&old).unwrap();
    let before = engine.sizes().total;
    collect(&engine, true);
    assert!(engine.sizes().total < before / 5, "{:?} after {before}", engine.sizes());
    assert!(engine.reserve_ok(), "there is space again");

    disk.set_capacity(Some(disk.used()));
    (41..50).for_each(|index| write(&engine, index, 300));
    assert!(!engine.reserve_ok());
    assert!(!engine.refill_reserve().unwrap(), "still full");
    disk.set_capacity(None);
    assert!(engine.refill_reserve().unwrap());
    drop(engine);
    assert_eq!(all(&open().unwrap()).unwrap().len(), 10);
}

#[test]
fn a_disk_that_stays_full_refuses_and_loses_nothing() {
    let disk = SimDisk::new(1);
    let engine = open(&disk).unwrap();
    write(&engine, 1, 300);
    disk.set_capacity(Some(disk.used()));
    let row = kv(b"key", 3, &[3; 9000]);
    engine.append(Revision::new(3, 0), false, row.clone()).unwrap();
    engine.commit(Commit { index: 2, ..Commit::default() }).unwrap();
    for _ in 0..3 {
        let refused = engine.sync(2).unwrap_err();
        assert!(matches!(refused, Error::Full { .. }), "{refused}");
        assert_eq!(engine.read(Revision::new(3, 0)).unwrap(), Some(row.clone()));
    }
    disk.set_capacity(None);
    assert_eq!(engine.sync(2).unwrap().index, 2);
    drop(engine);
    assert_eq!(open(&disk).unwrap().read(Revision::new(3, 0)).unwrap(), Some(row));
}

#[test]
fn files_do_not_pile_up_under_writes_and_compactions() {
    let disk = SimDisk::new(1);
    let engine = open(&disk).unwrap();
    for index in 1..2000 {
        write(&engine, index, 100);
        if index % 10 == 0 {
            // Every hundredth row stays.
            let old = (index - 9..index).map(|i| Revision::new(i as i64, 0));
            let old: Vec<_> = old.filter(|revision| revision.main % 100 != 0).collect();
            engine.forget(&old).unwrap();
            collect(&engine, false);
        }
    }
    assert!(files(&disk, ".seg").len() < 30, "{:?}", files(&disk, ".seg"));
    assert!(engine.sizes().total < 3 * engine.sizes().in_use + 12_000, "{:?}", engine.sizes());
}

#[test]
fn tables_larger_than_a_segment_are_not_written_again_with_every_commit() {
    let disk = SimDisk::new(1);
    let engine = open(&disk).unwrap();
    (0..100u8).for_each(|i| engine.put(Bucket::Lease, &[i], &[i; 100]).unwrap());
    (1..100).for_each(|index| write(&engine, index, 10));
    assert!(files(&disk, ".seg").len() < 5, "{:?}", files(&disk, ".seg"));
}
