//! Files that a real etcd 3.6.14 wrote (`fixtures/make.sh`).

use bytes::Bytes;
use disk::{Disk, Open, RealDisk, SimDisk};
use raftpb::{ConfState, Entry, HardState};
use std::path::Path;
use std::sync::Arc;
use wal::{Metadata, Options, SnapshotMark, Wal, snap};

const MEMBER: u64 = 6999849094827575323;
const SEGMENT: &str = "0000000000000000-0000000000000000.wal";

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(Path::new("tests/fixtures/etcd-3.6").join(name)).expect("the fixture is there")
}

/// A simulated disk with etcd's log on it.
fn disk() -> Arc<SimDisk> {
    let disk = SimDisk::new(0);
    disk.create_dir_all(Path::new("/wal")).unwrap();
    let file = disk.open(&Path::new("/wal").join(SEGMENT), Open::CreateNew).unwrap();
    file.write_at(&fixture(&format!("wal/{SEGMENT}")), 0).unwrap();
    Arc::new(disk)
}

fn options() -> Options {
    Options { segment_bytes: 8192 }
}

fn marks() -> Vec<SnapshotMark> {
    let conf_state = Some(ConfState { voters: vec![MEMBER], ..ConfState::default() });
    let taken = |index| SnapshotMark { index, term: 2, conf_state: conf_state.clone() };
    vec![SnapshotMark::default(), taken(6), taken(12)]
}

#[test]
fn etcds_log_is_read_from_the_beginning_and_from_a_snapshot() {
    let disk = disk();
    let dir = Path::new("/wal");
    assert_eq!(Wal::snapshots(&*disk, dir).unwrap(), marks());

    let start = SnapshotMark::default();
    let (wal, recovered) = Wal::open(disk.clone(), dir, &start, options()).unwrap();
    assert_eq!(recovered.metadata.node_id, MEMBER);
    assert_eq!(recovered.hard_state, HardState { term: 2, vote: MEMBER, commit: 16 });
    assert_eq!(recovered.snapshots, marks());
    assert_eq!(recovered.entries.len(), 17);
    assert_eq!(recovered.cut, None);
    let put = &recovered.entries[16];
    assert_eq!((put.index, put.term), (17, 2));
    assert_eq!(put.data[..18], *b"\x22\x10\x0a\x05key12\x12\x07value12");
    assert_eq!(wal.read_entries(17, 18, 0).unwrap(), recovered.entries[16..]);
    drop(wal);

    let (_, tail) = Wal::open(disk, dir, &marks()[2], options()).unwrap();
    assert_eq!(tail.entries, recovered.entries[12..]);
}

#[test]
fn the_same_records_make_the_same_bytes() {
    let theirs = fixture(&format!("wal/{SEGMENT}"));
    let disk = Arc::new(SimDisk::new(0));
    let dir = Path::new("/ours");
    let records = records(&theirs);
    let metadata =
        Metadata { node_id: MEMBER, cluster_id: 10377093844957799044, extra: Bytes::new() };
    let mut wal = Wal::create(disk.clone(), dir, &metadata, options()).unwrap();
    let mut marks = marks().into_iter().skip(1);
    for (kind, data) in &records[3..] {
        match kind {
            2 => wal.append(None, &[Entry::decode(data).unwrap()]).unwrap(),
            3 => wal.append(Some(HardState::decode(data).unwrap()), &[]).unwrap(),
            5 => wal.save_snapshot(&marks.next().unwrap()).unwrap(),
            other => panic!("a record of type {other}"),
        }
    }
    let ours = disk.content(&dir.join(SEGMENT)).unwrap();
    assert!(ours[..theirs.len()] == theirs);
    assert!(ours[theirs.len()..].iter().all(|&byte| byte == 0));
}

/// Type and data of each record, by a reader that knows only this file's shapes.
fn records(mut segment: &[u8]) -> Vec<(u8, Bytes)> {
    let mut records = Vec::new();
    while let Some((field, rest)) = segment.split_first_chunk() {
        let len = u64::from_le_bytes(*field) as u32 as usize;
        let record = &rest[..len];
        let crc_len = record[3..].iter().position(|&byte| byte < 0x80).unwrap() + 1;
        let data = match record.get(3 + crc_len..) {
            Some([0x1a, len, data @ ..]) if *len < 0x80 => data,
            Some([0x1a, _, _, data @ ..]) => data,
            _ => &[],
        };
        records.push((record[1], Bytes::copy_from_slice(data)));
        segment = &rest[len.next_multiple_of(8)..];
    }
    records
}

#[test]
fn etcds_snapshot_marker_is_read_and_written_the_same() {
    let bytes = fixture("snap/0000000000000002-000000000000000c.snap");
    let snapshot = snap::decode(bytes.clone().into()).unwrap();
    assert_eq!((snapshot.term, snapshot.index), (2, 12));
    assert_eq!(snapshot.conf_state.voters, [MEMBER]);
    assert!(snapshot.data.starts_with(br#"{"Root":{"Path":"/","#));
    assert_eq!(snap::encode(&snapshot), bytes);
    assert_eq!(snap::file_name(2, 12), "0000000000000002-000000000000000c.snap");
}

#[test]
fn the_newest_marker_that_the_log_knows_is_loaded() {
    let disk = SimDisk::new(0);
    let dir = Path::new("/snap");
    disk.create_dir_all(dir).unwrap();
    let snapshot =
        snap::decode(fixture("snap/0000000000000002-000000000000000c.snap").into()).unwrap();
    let at = |index| raftpb::Snapshot { index, ..snapshot.clone() };
    for index in [6, 12, 18, 24] {
        snap::write(&disk, dir, &at(index)).unwrap();
    }
    // 24 was never marked in the log, 18 is damaged.
    disk.rot(&dir.join(snap::file_name(2, 18)), 100, 1).unwrap();
    let mut known = marks();
    known.push(SnapshotMark { index: 18, term: 2, conf_state: None });
    assert_eq!(snap::load_newest(&disk, dir, &known).unwrap(), Some(at(12)));
    let broken = format!("{}.broken", snap::file_name(2, 18));
    assert!(disk.exists(&dir.join(broken)).unwrap());
    assert_eq!(snap::load_newest(&disk, dir, &[]).unwrap(), None);

    assert_eq!(snap::purge(&disk, dir, 2).unwrap(), 1);
    assert_eq!(snap::read(&disk, &dir.join(snap::file_name(2, 12))).unwrap(), at(12));
    assert!(snap::read(&disk, &dir.join(snap::file_name(2, 6))).is_err());
}

#[test]
fn a_marker_that_is_no_marker_is_refused() {
    let good = fixture("snap/0000000000000002-000000000000000c.snap");
    assert!(snap::decode(Bytes::new()).is_err());
    assert!(snap::decode(Bytes::from_static(&[8, 0, 18, 0])).is_err());
    for cut in 0..good.len() {
        assert!(snap::decode(good[..cut].to_vec().into()).is_err(), "cut at {cut}");
    }
    for at in (0..good.len()).step_by(7) {
        let mut flipped = good.clone();
        flipped[at] ^= 4;
        assert!(snap::decode(flipped.into()).is_err(), "flipped at {at}");
    }
}

#[test]
fn etcds_log_in_use_is_not_opened() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join(SEGMENT);
    std::fs::write(&path, fixture(&format!("wal/{SEGMENT}"))).unwrap();
    let disk = Arc::new(RealDisk::default());
    let holder = disk.open(&path, Open::Write).unwrap();
    assert!(holder.try_lock().unwrap());
    let refused = Wal::open(disk.clone(), root.path(), &SnapshotMark::default(), options());
    assert!(matches!(refused, Err(wal::Error::InUse { .. })));
    drop(holder);
    Wal::open(disk, root.path(), &SnapshotMark::default(), options()).unwrap();
}
