//! The bytes are etcd's: what a fresh member of etcd 3.6.14 writes, and what we write for it.

use bytes::Bytes;
use disk::RealDisk;
use raftpb::{ConfChange, Entry, EntryKind, HardState};
use std::path::Path;
use std::sync::Arc;
use wal::{Metadata, Options, SnapshotMark, Wal};

const MEMBER: u64 = 0x8e9e_05c5_2164_694d;
const CLUSTER: u64 = 0xcdf8_1819_4e3a_8c32;

/// The first segment of a member named `default` that founded a cluster of its own.
const FOUNDED: &str = "
    04 00 00 00 00 00 00 84  08 04 10 00 00 00 00 00
    20 00 00 00 00 00 00 00  08 01 10 bb 81 c7 fc 05 1a 16 08 cd d2 91 8b d2 b8 81 cf 8e 01 10 b2
                             98 ea f1 94 83 86 fc cd 01
    0e 00 00 00 00 00 00 82  08 05 10 94 bb c7 ed 0e 1a 04 08 00 10 00 00 00
    74 00 00 00 00 00 00 84  08 02 10 c2 ee 92 95 0b 1a 6a 08 01 10 01 18 01 22 62 08 00 10 00 18
                             cd d2 91 8b d2 b8 81 cf 8e 01 22 51 {member} 00 00 00 00
    10 00 00 00 00 00 00 00  08 03 10 9d e0 f2 d1 09 1a 06 08 01 10 00 18 01
    18 00 00 00 00 00 00 00  08 03 10 d5 e9 c5 58 1a 0f 08 02 10 cd d2 91 8b d2 b8 81 cf 8e 01 18
                             01
    10 00 00 00 00 00 00 00  08 02 10 af c1 a2 c6 0f 1a 06 08 00 10 02 18 02";

const JSON: &str =
    r#"{"id":10276657743932975437,"peerURLs":["http://localhost:2380"],"name":"default"}"#;

fn founded() -> Vec<u8> {
    let hex = |byte: &str| u8::from_str_radix(byte, 16).unwrap();
    FOUNDED
        .split_whitespace()
        .flat_map(
            |word| if word == "{member}" { JSON.as_bytes().to_vec() } else { vec![hex(word)] },
        )
        .collect()
}

fn founding_entry() -> Entry {
    let change = ConfChange {
        node_id: MEMBER,
        context: Bytes::from_static(JSON.as_bytes()),
        ..ConfChange::default()
    };
    let mut data = Vec::new();
    change.encode(&mut data);
    Entry { kind: EntryKind::ConfChange, term: 1, index: 1, data: data.into() }
}

#[test]
fn a_founding_member_writes_etcds_bytes() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("wal");
    let disk = Arc::new(RealDisk::default());
    let metadata = Metadata { node_id: MEMBER, cluster_id: CLUSTER, extra: Bytes::new() };
    let mut wal = Wal::create(disk, &dir, &metadata, Options::default()).unwrap();
    wal.append(Some(HardState { term: 1, vote: 0, commit: 1 }), &[founding_entry()]).unwrap();
    wal.append(Some(HardState { term: 2, vote: MEMBER, commit: 1 }), &[]).unwrap();
    wal.append(None, &[Entry { term: 2, index: 2, ..Entry::default() }]).unwrap();
    wal.sync().unwrap();

    let segment = std::fs::read(dir.join("0000000000000000-0000000000000000.wal")).unwrap();
    assert_eq!(segment.len(), 64_000_000);
    let expected = founded();
    assert_eq!(segment[..expected.len()], expected);
    assert!(segment[expected.len()..].iter().all(|&byte| byte == 0));
}

#[test]
fn a_log_with_etcds_bytes_is_read() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("wal");
    std::fs::create_dir(&dir).unwrap();
    std::fs::write(dir.join("0000000000000000-0000000000000000.wal"), founded()).unwrap();
    let disk = Arc::new(RealDisk::default());
    let (_, recovered) = open(disk, &dir);
    assert_eq!(recovered.metadata.node_id, MEMBER);
    assert_eq!(recovered.metadata.cluster_id, CLUSTER);
    assert_eq!(recovered.hard_state, HardState { term: 2, vote: MEMBER, commit: 1 });
    let leaders = Entry { term: 2, index: 2, ..Entry::default() };
    assert_eq!(recovered.entries, [founding_entry(), leaders]);
    assert_eq!(recovered.snapshots, [SnapshotMark::default()]);
    assert_eq!(recovered.cut, None);
}

fn open(disk: Arc<RealDisk>, dir: &Path) -> (Wal, wal::Recovered) {
    Wal::open(disk, dir, &SnapshotMark::default(), Options::default()).unwrap()
}

#[test]
fn fields_of_others_in_the_metadata_are_kept() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("wal");
    let disk = Arc::new(RealDisk::default());
    let extra = Bytes::from_static(&[0x52, 3, b'a', b'b', b'c', 0x58, 7]);
    let metadata = Metadata { node_id: 1, cluster_id: 2, extra };
    drop(Wal::create(disk.clone(), &dir, &metadata, Options::default()).unwrap());
    assert_eq!(open(disk, &dir).1.metadata, metadata);
}
