//! What lies on the disk: the log, its markers, the engine's files, and an etcd's database.

use bytes::Bytes;
use disk::{Disk, Open, SimDisk};
use engine::{Engine, LogEngine};
use std::path::Path;
use std::sync::Arc;
use wal::{Recovered, SnapshotMark, Wal};

const DIR: &str = "member";

/// A log of one segment with these bytes.
pub fn wal_segment(data: &[u8]) -> bool {
    let disk = SimDisk::new(0);
    write(&disk, "0000000000000000-0000000000000000.wal", data);
    let Some(first) = open_wal(&disk) else { return false };
    // What was cut off is gone; what was read is there.
    let second = open_wal(&disk).expect("a log that was opened can be opened again");
    assert_eq!(Recovered { cut: None, ..first }, second);
    !second.entries.is_empty()
}

fn open_wal(disk: &SimDisk) -> Option<Recovered> {
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let _either_way = Wal::snapshots(&*shared, Path::new(DIR));
    let options = wal::Options { segment_bytes: 1 << 16 };
    let opened = Wal::open(shared, Path::new(DIR), &SnapshotMark::default(), options);
    let (wal, recovered) = opened.ok()?;
    if let Some(last) = recovered.entries.last() {
        let read = wal.read_entries(wal.first_index(), last.index + 1, 1 << 20);
        read.expect("entries that were recovered can be read");
    }
    disk.kill();
    Some(recovered)
}

/// Records (a byte of kind, a byte of length, the data) in a log whose checksums are right, so that
/// what stands behind the checksum is reached.
pub fn wal_records(data: &[u8]) -> bool {
    let mut segment = Vec::new();
    let mut crc = 0;
    // Every segment begins like this: a checksum, the metadata, the snapshot it starts from.
    for (kind, data) in [(4, &[][..]), (1, &[0x08, 1, 0x10, 2]), (5, &[0x08, 0, 0x10, 0])] {
        crc = put_record(&mut segment, kind, crc, data);
    }
    let mut rest = data;
    while let [kind, length, after @ ..] = rest {
        let (data, after) = after.split_at(usize::from(*length).min(after.len()));
        crc = put_record(&mut segment, *kind, crc, data);
        rest = after;
    }
    wal_segment(&segment)
}

fn put_record(out: &mut Vec<u8>, kind: u8, crc: u32, data: &[u8]) -> u32 {
    let crc = crc32c::crc32c_append(crc, data);
    let mut record = Vec::new();
    raftpb::codec::put_uint(&mut record, 1, u64::from(kind));
    raftpb::codec::put_uint(&mut record, 2, u64::from(crc));
    if kind != 4 {
        raftpb::codec::put_bytes(&mut record, 3, data);
    }
    let padding = record.len().wrapping_neg() % 8;
    let flag = if padding == 0 { 0 } else { (0x80 | padding as u64) << 56 };
    out.extend_from_slice(&(record.len() as u64 | flag).to_le_bytes());
    out.extend_from_slice(&record);
    out.resize(out.len() + padding, 0);
    crc
}

pub fn snap_file(data: &[u8]) -> bool {
    let Ok(snapshot) = wal::snap::decode(Bytes::copy_from_slice(data)) else { return false };
    let again = wal::snap::decode(wal::snap::encode(&snapshot).into());
    assert_eq!(again, Ok(snapshot));
    true
}

/// The engine's files: each a byte of name length, the name, the length (32 bits, little-endian) and
/// the content.
pub fn engine_files(data: &[u8]) -> bool {
    let disk = SimDisk::new(0);
    let mut rest = data;
    while let Some((name, content, after)) = take_file(rest) {
        if !name.is_empty() && !name.contains('/') && !name.starts_with('.') {
            write(&disk, &name, content);
        }
        rest = after;
    }
    let Some(first) = open_engine(&disk) else { return false };
    let second = open_engine(&disk).expect("an engine that was opened can be opened again");
    assert_eq!(first, second);
    first.0 > 0
}

/// How many rows there are, what was committed last, and whether all of it can be read.
fn open_engine(disk: &SimDisk) -> Option<(usize, u64, bool)> {
    let options = engine::Options { segment_bytes: 2000, cache_bytes: 1000, reserve_bytes: 0 };
    let engine = LogEngine::open(Arc::new(disk.clone()), Path::new(DIR), options).ok()?;
    let mut rows = Vec::new();
    let whole = engine.restore(&mut |head| rows.push(head.revision)).is_ok();
    for revision in &rows {
        let _damage_is_told = engine.read(*revision);
    }
    let _damage_is_told = engine.scrub(usize::MAX);
    let state = (rows.len(), engine.last_commit().index, whole);
    drop(engine);
    disk.kill();
    Some(state)
}

fn take_file(data: &[u8]) -> Option<(String, &[u8], &[u8])> {
    let (&length, rest) = data.split_first()?;
    let (name, rest) = rest.split_at(usize::from(length).min(rest.len()));
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let length = u32::from_le_bytes(*length) as usize;
    let (content, rest) = rest.split_at(length.min(rest.len()));
    Some((String::from_utf8_lossy(name).into_owned(), content, rest))
}

fn write(disk: &SimDisk, name: &str, content: &[u8]) {
    let dir = Path::new(DIR);
    disk.create_dir_all(dir).expect("the disk is well");
    let file = disk.open(&dir.join(name), Open::Create).expect("the disk is well");
    file.write_at(content, 0).expect("the disk is well");
    file.sync().expect("the disk is well");
    disk.sync_dir(dir).expect("the disk is well");
}

/// A database of etcd, from a backup.
pub fn bolt_database(data: &[u8]) -> bool {
    let Ok(database) = bolt::Database::open(data.to_vec()) else { return false };
    let Ok(buckets) = database.buckets() else { return false };
    let mut read = 0;
    for bucket in buckets {
        let Ok(Some(rows)) = database.rows(&bucket) else { continue };
        read += rows.take_while(Result::is_ok).count();
    }
    read > 0
}
