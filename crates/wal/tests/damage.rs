//! Whatever the disk does to a log: it is refused or it reads as it was written. It never panics, and
//! what was synced is never silently cut off.

use bytes::Bytes;
use disk::{Disk, Open, SimDisk};
use raftpb::{ConfState, Entry, HardState};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::path::Path;
use std::sync::Arc;
use wal::{Error, Metadata, Options, Recovered, SnapshotMark, Wal};

const DIR: &str = "/wal";

/// The segments of a small log, by name.
type Files = Vec<(String, Vec<u8>)>;

fn write_log(entries: u64, segment_bytes: u64) -> Files {
    let disk = Arc::new(SimDisk::new(0));
    let metadata = Metadata { node_id: 0x8e9e_05c5, cluster_id: 0xcdf8_1819, extra: Bytes::new() };
    let dir = Path::new(DIR);
    let mut wal = Wal::create(disk.clone(), dir, &metadata, Options { segment_bytes }).unwrap();
    let mut random = StdRng::seed_from_u64(5);
    for index in 1..=entries {
        let mut data = vec![0; [3, 60, 500][index as usize % 3]];
        random.fill(&mut data[..]);
        let entry = Entry { term: 3 + index / 5, index, data: data.into(), ..Entry::default() };
        let state = HardState { term: 3 + index / 5, vote: 7, commit: index - 1 };
        wal.append((index % 4 == 0).then_some(state), &[entry]).unwrap();
        if index == 10 {
            let conf_state = Some(ConfState { voters: vec![7], ..ConfState::default() });
            wal.save_snapshot(&SnapshotMark { index: 7, term: 4, conf_state }).unwrap();
        }
    }
    wal.sync().unwrap();
    let names = disk.list(dir).unwrap().into_iter().filter(|name| name.ends_with(".wal"));
    names.map(|name| (name.clone(), disk.content(&dir.join(&name)).unwrap())).collect()
}

fn open(files: &Files, segment_bytes: u64) -> Result<Recovered, Error> {
    let disk = SimDisk::new(0);
    disk.create_dir_all(Path::new(DIR)).unwrap();
    for (name, content) in files {
        let file = disk.open(&Path::new(DIR).join(name), Open::CreateNew).unwrap();
        file.write_at(content, 0).unwrap();
    }
    let _ = Wal::snapshots(&disk, Path::new(DIR));
    let start = SnapshotMark::default();
    let opened = Wal::open(Arc::new(disk), Path::new(DIR), &start, Options { segment_bytes });
    opened.map(|(_, recovered)| recovered)
}

#[test]
fn a_flipped_bit_is_noticed_or_harmless() {
    let files = write_log(15, 8192);
    let good = open(&files, 8192).unwrap();
    assert_eq!((files.len(), good.entries.len()), (1, 15));
    let segment = &files[0].1;
    let mut harmless = 0;
    let mut frame = 0;
    while segment[frame] != 0 {
        let len = u32::from_le_bytes(segment[frame..frame + 4].try_into().unwrap()) as usize;
        let next = frame + 8 + len.next_multiple_of(8);
        for (at, bit) in (frame..next).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
            // All bits of what surrounds the data, one of each byte of the data.
            let surrounds = at < frame + 40 || at + 8 >= next;
            if !surrounds && bit != at % 8 {
                continue;
            }
            // The checksum does not cover a record's type. One that no longer fits its place is
            // noticed all the same, but not every one is.
            if at == frame + 9 {
                continue;
            }
            let mut flipped = files.clone();
            flipped[0].1[at] ^= 1 << bit;
            match open(&flipped, 8192) {
                Err(Error::Damaged { .. }) => {}
                Err(error) => panic!("bit {bit} of byte {at}: {error}"),
                Ok(recovered) => {
                    assert_eq!(recovered, good, "bit {bit} of byte {at}, record at {frame}");
                    harmless += 1;
                }
            }
        }
        frame = next;
    }
    // Padding.
    assert!(harmless > 0 && harmless < 8 * 7 * 20, "{harmless}");
}

#[test]
fn no_mutation_makes_the_reader_panic() {
    let files = write_log(30, 2048);
    assert!(files.len() > 2);
    let mut opened = 0;
    for seed in 0..1000 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut mutated = files.clone();
        for _ in 0..random.random_range(1..4) {
            let number = random.random_range(0..mutated.len());
            mutate(&mut mutated[number].1, &mut random);
        }
        opened += usize::from(open(&mutated, 2048).is_ok());
    }
    assert!(opened > 0 && opened < 1000, "{opened} of 1000 could be opened");
}

fn mutate(content: &mut Vec<u8>, random: &mut StdRng) {
    if content.is_empty() {
        return;
    }
    let at = random.random_range(0..content.len());
    let end = random.random_range(at..=content.len().min(at + 600));
    match random.random_range(0..6) {
        0 => content[at] ^= 1 << random.random_range(0..8),
        1 => content[at] = random.random(),
        2 => content[at..end].fill(0),
        3 => random.fill(&mut content[at..end]),
        4 => content.truncate(at),
        _ => {
            content.drain(at..end);
        }
    }
}
