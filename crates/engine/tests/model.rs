//! Random work on the log engine and on its twin in memory, with every fault the simulated disk has.
//!
//! Each seed prints itself when it fails; `ENGINE_SEEDS=from..to` runs others.

mod common;

use bytes::Bytes;
use common::{World, kv};
use disk::SimDisk;
use engine::{Bucket, Commit, Engine, Error, LogEngine, MemEngine, Options, Revision, Snapshot};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::path::Path;
use std::sync::Arc;

const DIR: &str = "/store";

#[test]
fn the_log_engine_answers_as_its_twin_and_survives_every_crash() {
    for seed in common::seeds(300) {
        println!("seed {seed}");
        let mut run = Run::new(seed);
        for _ in 0..run.random.random_range(50..400) {
            run.step();
        }
        run.compare_all();
    }
}

struct Run {
    random: StdRng,
    disk: SimDisk,
    options: Options,
    engine: LogEngine,
    twin: MemEngine,
    world: World,
    /// Every commit that a crash may lead back to, with all there was.
    history: Vec<(Commit, World)>,
    /// The last commit that is durable for sure, and the largest index that may be found.
    synced: u64,
    upto: u64,
    uncommitted: bool,
    sync_failed: bool,
    index: u64,
    main: i64,
    snapshots: Vec<(Box<dyn Snapshot>, Box<dyn Snapshot>)>,
}

impl Run {
    fn new(seed: u64) -> Run {
        let mut random = StdRng::seed_from_u64(seed);
        let options = Options {
            segment_bytes: random.random_range(1000..20_000),
            cache_bytes: [0, 20_000, 1 << 20][random.random_range(0..3)],
            reserve_bytes: [0, 30_000][random.random_range(0..2)],
        };
        let disk = SimDisk::new(seed);
        let engine = open(&disk, &options).unwrap();
        let first = engine.last_commit();
        Run {
            random,
            disk,
            options,
            engine,
            twin: MemEngine::new(),
            world: World::default(),
            history: vec![(first, World::default())],
            synced: 0,
            upto: 0,
            uncommitted: false,
            sync_failed: false,
            index: 0,
            main: 1,
            snapshots: Vec::new(),
        }
    }

    fn step(&mut self) {
        let result = match self.random.random_range(0..100) {
            0..30 => self.append(),
            30..40 => self.bucket(),
            40..55 => self.commit(),
            55..65 => self.sync(),
            65..70 => self.forget(),
            70..80 => self.collect(),
            80..90 => self.compare_some(),
            90..93 => self.snapshot(),
            93 => self.full_disk(),
            94 => self.failed_sync(),
            95 => Err(()),
            96 => {
                self.disk.power_off_in(self.random.random_range(0..20));
                Ok(())
            }
            97 => self.restart_without_hints(),
            _ => {
                self.compare_all();
                Ok(())
            }
        };
        // Whatever failed, failed because the power is off, or the disk has failed for good.
        if result.is_err() {
            // What a failed sync has left in memory is not on the disk: no process should meet that.
            let process_only = self.random.random_range(0..4) == 0 && !self.sync_failed;
            if process_only {
                self.snapshots.clear();
                self.disk.kill();
                self.reopen();
            } else {
                self.crash();
            }
        }
    }

    fn append(&mut self) -> Result<(), ()> {
        self.main += self.random.random_range(1..3);
        for sub in 0..self.random.random_range(1..4) {
            let revision = Revision::new(self.main, sub);
            let tombstone = self.random.random_range(0..5) == 0;
            let bytes = [10, 100, 600, 5000][self.random.random_range(0..4)];
            let value = vec![self.main as u8; self.random.random_range(0..bytes)];
            let key = format!("key{}", self.random.random_range(0..9));
            let kv = kv(key.as_bytes(), self.main, &value);
            self.engine.append(revision, tombstone, kv.clone()).map_err(drop)?;
            self.twin.append(revision, tombstone, kv.clone()).unwrap();
            self.world.rows.insert(revision, (tombstone, kv));
        }
        self.uncommitted = true;
        Ok(())
    }

    fn bucket(&mut self) -> Result<(), ()> {
        let bucket = Bucket::ALL[self.random.random_range(0..9)];
        let key = [self.random.random_range(0..5)];
        if self.random.random() {
            let value = vec![7; self.random.random_range(0..300)];
            self.engine.put(bucket, &key, &value).map_err(drop)?;
            self.twin.put(bucket, &key, &value).unwrap();
            self.world.records.insert((bucket, key[0]), value.into());
        } else {
            self.engine.delete(bucket, &key).map_err(drop)?;
            self.twin.delete(bucket, &key).unwrap();
            self.world.records.remove(&(bucket, key[0]));
        }
        self.uncommitted = true;
        Ok(())
    }

    fn commit(&mut self) -> Result<(), ()> {
        self.index += self.random.random_range(1..4);
        let commit = Commit {
            index: self.index,
            term: self.index / 10,
            revision: self.main,
            compacted: self.main - 5,
            conf_state: Bytes::from(vec![1; self.random.random_range(0..20)]),
        };
        self.engine.commit(commit.clone()).map_err(drop)?;
        self.twin.commit(commit.clone()).unwrap();
        self.history.push((commit, self.world.clone()));
        self.uncommitted = false;
        Ok(())
    }

    fn sync(&mut self) -> Result<(), ()> {
        let upto = self.index.saturating_sub(self.random.random_range(0..5)).max(self.upto);
        self.upto = upto;
        let commit = self.engine.sync(upto).map_err(drop)?;
        self.note_synced(commit);
        Ok(())
    }

    fn note_synced(&mut self, commit: Commit) {
        let expected = self.history.iter().rev().find(|(known, _)| known.index <= self.upto);
        assert_eq!(commit, expected.unwrap().0, "all that may be durable is");
        self.synced = commit.index;
    }

    fn forget(&mut self) -> Result<(), ()> {
        let share = [0.05, 0.5, 1.0][self.random.random_range(0..3)];
        let rows: Vec<_> = self.world.rows.keys().copied().collect();
        let gone: Vec<_> = rows.into_iter().filter(|_| self.random.random_bool(share)).collect();
        self.engine.forget(&gone).map_err(drop)?;
        self.twin.forget(&gone).unwrap();
        for revision in gone {
            self.world.forgotten.insert(revision);
            if !self.uncommitted {
                let (_, world) = self.history.last_mut().unwrap();
                world.forgotten.insert(revision);
            }
        }
        Ok(())
    }

    fn collect(&mut self) -> Result<(), ()> {
        let all = self.random.random_range(0..3) == 0;
        let bytes_max = self.random.random_range(1..10_000);
        if !all {
            return self.engine.collect(bytes_max, false).map(drop).map_err(drop);
        }
        // To the end, as a defragmentation goes.
        if self.uncommitted {
            self.commit()?;
        }
        self.upto = self.index;
        let mut calls = 0;
        while {
            let commit = self.engine.sync(self.upto).map_err(drop)?;
            self.note_synced(commit);
            self.engine.collect(bytes_max, true).map_err(drop)?
        } {
            calls += 1;
            assert!(calls < 100_000, "a defragmentation ends");
        }
        let sizes = self.engine.sizes();
        let slack = 8192 + 5 * self.engine_files() as u64 * 4096;
        assert!(sizes.total <= sizes.in_use + slack, "{sizes:?} after a defragmentation");
        Ok(())
    }

    fn engine_files(&self) -> usize {
        use disk::Disk;
        self.disk.list(Path::new(DIR)).unwrap().iter().filter(|n| n.ends_with(".seg")).count()
    }

    fn compare_some(&mut self) -> Result<(), ()> {
        let from = Revision::new(self.random.random_range(0..self.main + 2), 0);
        let revision = Revision::new(from.main, self.random.random_range(0..2));
        assert_eq!(self.engine.read(revision).map_err(drop)?, self.twin.read(revision).unwrap());
        let (rows, bytes) = (self.random.random_range(1..50), self.random.random_range(1..9000));
        let found = self.engine.rows(from, rows, bytes).map_err(drop)?;
        assert_eq!(found, self.twin.rows(from, rows, bytes).unwrap());
        assert_eq!(self.engine.sums(from, rows), self.twin.sums(from, rows));
        let bucket = Bucket::ALL[self.random.random_range(0..9)];
        assert_eq!(self.engine.bucket(bucket), self.twin.bucket(bucket));
        assert_eq!(self.engine.get(bucket, &[1]), self.twin.get(bucket, &[1]));
        for (ours, theirs) in &self.snapshots {
            let found = ours.rows(from, rows, bytes).map_err(drop)?;
            assert_eq!(found, theirs.rows(from, rows, bytes).unwrap());
        }
        self.engine.scrub(5000).map_err(drop)?;
        Ok(())
    }

    fn snapshot(&mut self) -> Result<(), ()> {
        if self.snapshots.len() > 2 {
            self.snapshots.remove(self.random.random_range(0..self.snapshots.len()));
        }
        let ours = self.engine.snapshot().map_err(drop)?;
        if !self.history.last().is_some_and(|(commit, _)| commit == ours.commit()) {
            panic!("a snapshot stands at the last commit");
        }
        self.snapshots.push((ours, self.twin.snapshot().unwrap()));
        Ok(())
    }

    /// Nothing is lost on a full disk: the same sync succeeds when there is space again.
    fn full_disk(&mut self) -> Result<(), ()> {
        self.disk.set_capacity(Some(self.disk.used() + self.random.random_range(0..5000)));
        self.upto = self.upto.max(self.index);
        for _ in 0..self.random.random_range(1..10) {
            let refused = [
                self.engine.sync(self.upto).err(),
                self.engine.collect(5000, self.random.random()).err(),
            ];
            for error in refused.into_iter().flatten() {
                if !matches!(error, Error::Full { .. }) {
                    self.disk.set_capacity(None);
                    return Err(());
                }
            }
        }
        self.disk.set_capacity(None);
        self.sync()?;
        self.engine.collect(5000, false).map_err(drop)?;
        self.compare_all();
        Ok(())
    }

    fn failed_sync(&mut self) -> Result<(), ()> {
        self.disk.fail_sync_in(self.random.random_range(0..4));
        self.sync_failed = true;
        loop {
            self.append()?;
            self.commit()?;
            self.upto = self.index;
            let failed = match self.engine.sync(self.upto) {
                Ok(commit) => {
                    self.note_synced(commit);
                    continue;
                }
                Err(error) => error,
            };
            assert!(matches!(failed, Error::Io { .. } | Error::Failed { .. }), "{failed}");
            let refused = self.engine.sync(self.upto).unwrap_err();
            assert!(matches!(refused, Error::Failed { .. }), "a failed sync is never repeated");
            assert!(self.engine.read(Revision::new(2, 0)).is_err());
            assert!(self.engine.commit(Commit::default()).is_err());
            return Err(());
        }
    }

    fn crash(&mut self) {
        self.snapshots.clear();
        match self.random.random_range(0..3) {
            0 => self.disk.crash_losing_all(),
            _ => self.disk.crash(),
        }
        self.reopen();
    }

    fn restart_without_hints(&mut self) -> Result<(), ()> {
        use disk::Disk;
        self.snapshots.clear();
        self.disk.kill();
        for name in self.disk.list(Path::new(DIR)).unwrap() {
            if name.ends_with(".hint") && self.random.random() {
                self.disk.remove(&Path::new(DIR).join(name)).unwrap();
            }
        }
        self.reopen();
        Ok(())
    }

    fn reopen(&mut self) {
        self.sync_failed = false;
        self.engine = open(&self.disk, &self.options).unwrap();
        let found = self.engine.last_commit();
        assert!(found.index >= self.synced, "lost commits: {} < {}", found.index, self.synced);
        assert!(found.index <= self.upto, "found what the log has not synced");
        let at = self.history.iter().position(|(commit, _)| *commit == found).unwrap();
        self.history.truncate(at + 1);
        self.world = self.history[at].1.clone();
        self.synced = found.index;

        // Forgotten rows may be back; all others must be there.
        let mut back = Vec::new();
        self.engine.restore(&mut |head| back.push(head.revision)).unwrap();
        for revision in &back {
            assert!(self.world.rows.contains_key(revision), "{revision:?} out of nowhere");
        }
        let forgotten: Vec<_> = self.world.forgotten.iter().copied().collect();
        self.engine.forget(&forgotten).unwrap();
        self.twin = self.world.twin(&found);
        self.uncommitted = false;
        (self.index, self.main) = (found.index, self.main);
        self.compare_all();
    }

    fn compare_all(&mut self) {
        let (from, many) = (Revision::default(), usize::MAX);
        let Ok(rows) = self.engine.rows(from, many, many) else { return self.crash() };
        assert_eq!(rows, self.twin.rows(from, many, many).unwrap());
        assert_eq!(self.engine.sums(from, many), self.twin.sums(from, many));
        for row in &rows {
            let Ok(read) = self.engine.read(row.revision) else { return self.crash() };
            assert_eq!(read.as_ref(), Some(&row.kv));
        }
        for bucket in Bucket::ALL {
            assert_eq!(self.engine.bucket(bucket), self.twin.bucket(bucket));
        }
        assert_eq!(common::heads(&self.engine), common::heads(&self.twin));
        for (ours, theirs) in &self.snapshots {
            let ours_rows = ours.rows(from, many, many).unwrap();
            assert_eq!(ours_rows, theirs.rows(from, many, many).unwrap());
            assert_eq!(ours.sums(from, many), theirs.sums(from, many));
            for bucket in Bucket::ALL {
                assert_eq!(ours.bucket(bucket), theirs.bucket(bucket));
            }
        }
        let sizes = self.engine.sizes();
        assert!(sizes.in_use <= sizes.total, "{sizes:?}");
    }
}

fn open(disk: &SimDisk, options: &Options) -> engine::Result<LogEngine> {
    LogEngine::open(Arc::new(disk.clone()), Path::new(DIR), options.clone())
}
