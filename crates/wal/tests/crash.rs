//! Random lives of a log on a disk that crashes at any moment.
//!
//! All records ever written are remembered in order, and how many of them were synced. After a crash
//! the log must hold exactly the first k of them, for some k not below the synced ones: nothing
//! synced is lost, nothing comes in another order, nothing is made up.
//!
//! `WAL_SEEDS=100000 cargo test -p wal --release --test crash` runs more lives; a failure names its
//! seed, and `WAL_SEED=n` runs that one alone.

use bytes::Bytes;
use disk::{Disk, SimDisk};
use raftpb::{ConfState, Entry, HardState};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::path::Path;
use std::sync::Arc;
use wal::{Error, Metadata, Options, Recovered, SnapshotMark, Wal};

const DIR: &str = "/member/wal";

#[test]
fn no_crash_loses_what_was_synced() {
    let number = |name| std::env::var(name).ok().map(|value| value.parse::<u64>().expect(name));
    let seeds = match number("WAL_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("WAL_SEEDS").unwrap_or(100),
    };
    let mut seen = Seen::default();
    for seed in seeds.clone() {
        Life::new(seed).live(&mut seen);
    }
    println!("{seen:?}");
    // A run in which nothing happened proves nothing.
    if seeds.end - seeds.start == 100 {
        assert!(seen.crashes > 200 && seen.lost > 100 && seen.cuts_off > 20, "{seen:?}");
        assert!(
            seen.segments > 100 && seen.purged > 10 && seen.mid_operation > 100 && seen.full > 20,
            "{seen:?}"
        );
    }
}

/// What happened, over all lives.
#[derive(Debug, Default)]
struct Seen {
    crashes: u64,
    mid_operation: u64,
    /// Writes that found the disk full.
    full: u64,
    /// Crashes that lost records which were not synced.
    lost: u64,
    /// Torn records that were cut off.
    cuts_off: u64,
    /// Segments found when a log was opened.
    segments: u64,
    purged: u64,
}

#[derive(Clone, Debug, PartialEq)]
enum Record {
    Entry(Entry),
    State(HardState),
    Mark(SnapshotMark),
}

/// What a sequence of records amounts to.
#[derive(Clone, Debug, Default, PartialEq)]
struct Sum {
    entries: Vec<Entry>,
    hard_state: HardState,
    marks: Vec<SnapshotMark>,
}

impl Sum {
    fn of(records: &[Record]) -> Sum {
        let mut sum = Sum::default();
        records.iter().for_each(|record| sum.add(record));
        sum
    }

    fn add(&mut self, record: &Record) {
        match record {
            Record::Entry(entry) => {
                self.entries.truncate(entry.index as usize - 1);
                self.entries.push(entry.clone());
            }
            Record::State(state) => self.hard_state = *state,
            Record::Mark(mark) => self.marks.push(mark.clone()),
        }
    }

    fn is(&self, recovered: &Recovered, from: u64) -> bool {
        self.hard_state == recovered.hard_state
            && self.entries.get(from as usize..) == Some(&recovered.entries)
            && self.marks.ends_with(&recovered.snapshots)
    }
}

struct Life {
    seed: u64,
    random: StdRng,
    disk: SimDisk,
    options: Options,
    records: Vec<Record>,
    synced: usize,
    /// The last entry at the last sync.
    synced_last: u64,
    now: Sum,
    term: u64,
}

impl Life {
    fn new(seed: u64) -> Life {
        let mut random = StdRng::seed_from_u64(seed);
        let disk = SimDisk::new(seed);
        disk.create_dir_all(Path::new("/member")).unwrap();
        disk.sync_dir(Path::new("/")).unwrap();
        Life {
            seed,
            disk,
            options: Options { segment_bytes: 1 << random.random_range(10..16) },
            records: Vec::new(),
            synced: 0,
            synced_last: 0,
            now: Sum::default(),
            term: 1,
            random,
        }
    }

    fn live(&mut self, seen: &mut Seen) {
        for _ in 0..self.random.random_range(1..8) {
            let mut wal = self.start(seen);
            let changes = self.random.random_range(1..120);
            if self.random.random_bool(0.7) {
                self.disk.power_off_in(changes);
            }
            let mut failed = false;
            for _ in 0..self.random.random_range(1..60) {
                if self.act(&mut wal, seen).is_err() {
                    failed = true;
                    seen.mid_operation += 1;
                    break;
                }
            }
            if failed || self.random.random_bool(0.8) {
                self.disk.crash();
                seen.crashes += 1;
            } else {
                self.disk.kill();
            }
        }
        drop(self.start(seen));
    }

    /// One thing that a member may do with its log.
    fn act(&mut self, wal: &mut Wal, seen: &mut Seen) -> Result<(), Error> {
        match self.random.random_range(0..20) {
            0..8 => seen.full += u64::from(!self.append(wal)?),
            8..15 => self.sync(wal)?,
            15..17 => self.read(wal)?,
            17 => {
                let commit = self.now.hard_state.commit;
                let mark = SnapshotMark {
                    index: commit,
                    term: commit.checked_sub(1).map_or(0, |at| self.now.entries[at as usize].term),
                    conf_state: Some(ConfState { voters: vec![1], ..ConfState::default() }),
                };
                // As a member does: a snapshot is of what is durably committed.
                self.sync(wal)?;
                let written =
                    self.write(vec![Record::Mark(mark.clone())], || wal.save_snapshot(&mark))?;
                seen.full += u64::from(!written);
                self.synced = self.records.len();
            }
            18 => {
                if let Some(mark) = self.now.marks.last() {
                    wal.release_to(mark.index)?;
                    seen.purged += wal.purge(self.random.random_range(1..4))? as u64;
                }
            }
            _ => {
                let spare = self.random.random_range(0..20_000);
                let full = self.random.random_bool(0.5);
                self.disk.set_capacity(full.then(|| self.disk.used() + spare));
                wal.refill_reserve()?;
            }
        }
        Ok(())
    }

    /// Whether there was space for it.
    fn append(&mut self, wal: &mut Wal) -> Result<bool, Error> {
        let Sum { entries, hard_state, .. } = &self.now;
        let (last, commit) = (entries.len() as u64, hard_state.commit);
        let mut first = last + 1;
        if self.random.random_bool(0.1) {
            // A new leader's entries take the place of what was not committed.
            self.term += 1;
            first = self.random.random_range(commit + 1..=last + 1);
        }
        let count = self.random.random_range(0..20);
        let mut batch = Vec::new();
        for index in first..first + count {
            let size = *[0, 1, 30, 300, 600, 3000].get(self.random.random_range(0..6)).unwrap();
            // Some values hold long runs of zeros, as torn sectors do.
            let fill = if self.random.random_bool(0.2) { 0 } else { index as u8 };
            let data = Bytes::from(vec![fill; self.random.random_range(0..=size)]);
            batch.push(Entry { term: self.term, index, data, ..Entry::default() });
        }
        let state = self.random.random_bool(0.5).then(|| {
            // Only what is synced is committed.
            let commit = self.synced_last.min(first - 1).max(commit);
            HardState { term: self.term, vote: 1, commit }
        });
        let entries = batch.iter().cloned().map(Record::Entry);
        let records = entries.chain(state.map(Record::State)).collect();
        self.write(records, || wal.append(state, &batch))
    }

    fn sync(&mut self, wal: &mut Wal) -> Result<(), Error> {
        wal.sync()?;
        self.synced = self.records.len();
        self.synced_last = self.now.entries.len() as u64;
        Ok(())
    }

    fn read(&mut self, wal: &mut Wal) -> Result<(), Error> {
        let from = wal.first_index();
        let end = self.now.entries.len() as u64 + 1;
        if from >= end {
            return Ok(());
        }
        let from = self.random.random_range(from..end);
        let to = self.random.random_range(from..=end);
        let entries = wal.read_entries(from, to, usize::MAX)?;
        let expected = &self.now.entries[from as usize - 1..to as usize - 1];
        assert!(entries == expected, "seed {}: read {from} to {to}", self.seed);
        Ok(())
    }

    /// Writes records. On a full disk nothing is written, and that is no failure.
    fn write(
        &mut self,
        records: Vec<Record>,
        write: impl FnOnce() -> Result<(), Error>,
    ) -> Result<bool, Error> {
        let written = write();
        if let Err(Error::Full { .. }) = written {
            return Ok(false);
        }
        records.iter().for_each(|record| self.now.add(record));
        self.records.extend(records);
        written.map(|()| true)
    }

    /// Opens the log, or makes it, through any number of crashes, and checks what it holds.
    fn start(&mut self, seen: &mut Seen) -> Wal {
        loop {
            if self.random.random_bool(0.2) {
                self.disk.power_off_in(self.random.random_range(0..20));
            }
            let opened = self.try_start();
            match opened {
                Ok((wal, from, recovered)) => {
                    let names = self.disk.list(Path::new(DIR)).unwrap();
                    seen.segments +=
                        names.iter().filter(|name| name.ends_with(".wal")).count() as u64;
                    self.check(from, &recovered, seen);
                    return wal;
                }
                Err(Error::Full { .. }) => self.disk.set_capacity(None),
                Err(Error::Io { source, .. }) if source.to_string() == "the power is off" => {
                    seen.mid_operation += 1;
                    self.disk.crash();
                }
                Err(error) => panic!("seed {}: {error}", self.seed),
            }
        }
    }

    fn try_start(&mut self) -> Result<(Wal, u64, Recovered), Error> {
        let disk = Arc::new(self.disk.clone());
        let dir = Path::new(DIR);
        if !Wal::exists(&self.disk, dir)? {
            assert_eq!(self.synced, 0, "seed {}: the whole log is gone", self.seed);
            let metadata = Metadata { node_id: 1, cluster_id: 2, extra: Bytes::new() };
            let wal = Wal::create(disk, dir, &metadata, self.options)?;
            return Ok((wal, 0, Recovered { snapshots: Vec::new(), ..Recovered::default() }));
        }
        let from = Wal::snapshots(&self.disk, dir)?.pop().unwrap_or_default();
        let (wal, mut recovered) = Wal::open(disk, dir, &from, self.options)?;
        recovered.snapshots.retain(|mark| mark.conf_state.is_some());
        Ok((wal, from.index, recovered))
    }

    fn check(&mut self, from: u64, recovered: &Recovered, seen: &mut Seen) {
        let mut sum = Sum::of(&self.records[..self.synced]);
        let mut kept = self.synced;
        while !sum.is(recovered, from) {
            let Some(record) = self.records.get(kept) else {
                panic!(
                    "seed {}: behind {from} the log holds {} entries and {:?}, which is not what the \
                     first {} or more records amount to",
                    self.seed,
                    recovered.entries.len(),
                    recovered.hard_state,
                    self.synced
                );
            };
            sum.add(record);
            kept += 1;
        }
        seen.lost += u64::from(kept < self.records.len());
        seen.cuts_off += u64::from(recovered.cut.is_some());
        self.records.truncate(kept);
        self.synced = kept;
        self.synced_last = sum.entries.len() as u64;
        self.now = sum;
    }
}
