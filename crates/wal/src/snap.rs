//! The `.snap` files: where etcd's tools look for the snapshots that the log has marks of.
//!
//! In:  a snapshot's index, term, configuration, and the members as JSON, which the caller writes.
//! Out: the same, checked.
//!
//! The key-value data is not here; it lives in the engine. A file is written and synced before its
//! mark goes into the log, never the other way round.

use crate::{Error, Result, SnapshotMark, at};
use bytes::Bytes;
use disk::{Disk, Open};
use raftpb::Snapshot;
use raftpb::codec::{Field, Fields, put_bytes, put_uint};
use std::path::{Path, PathBuf};

pub fn file_name(term: u64, index: u64) -> String {
    format!("{term:016x}-{index:016x}.snap")
}

/// Writes a snapshot's file, durably.
pub fn write(disk: &dyn Disk, dir: &Path, snapshot: &Snapshot) -> Result<PathBuf> {
    let path = dir.join(file_name(snapshot.term, snapshot.index));
    let bytes = encode(snapshot);
    let file = disk.open(&path, Open::Create).map_err(at(&path))?;
    let written =
        file.set_len(0).and_then(|()| file.write_at(&bytes, 0)).and_then(|()| file.sync());
    written.map_err(at(&path))?;
    disk.sync_dir(dir).map_err(at(dir))?;
    Ok(path)
}

/// Reads one file.
pub fn read(disk: &dyn Disk, path: &Path) -> Result<Snapshot> {
    let file = disk.open(path, Open::Read).map_err(at(path))?;
    let mut bytes = vec![0; file.len().map_err(at(path))? as usize];
    let read = (*file).read_exact_at(&mut bytes, 0);
    read.map_err(at(path))?;
    decode(bytes.into()).map_err(|what| Error::SnapDamaged { path: path.to_path_buf(), what })
}

/// The newest file that can be read and that the log has a mark of. Those that cannot be read get
/// the suffix `.broken`.
pub fn load_newest(
    disk: &dyn Disk,
    dir: &Path,
    marks: &[SnapshotMark],
) -> Result<Option<Snapshot>> {
    let names = disk.list(dir).map_err(at(dir))?;
    for name in names.iter().rev().filter(|name| name.ends_with(".snap")) {
        let path = dir.join(name);
        match read(disk, &path) {
            Ok(snapshot) => {
                let here = (snapshot.index, snapshot.term);
                if marks.iter().any(|mark| (mark.index, mark.term) == here) {
                    return Ok(Some(snapshot));
                }
            }
            Err(Error::SnapDamaged { .. }) => {
                let broken = dir.join(format!("{name}.broken"));
                disk.rename(&path, &broken).map_err(at(&path))?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Removes all but the newest `keep` files. Returns how many went.
pub fn purge(disk: &dyn Disk, dir: &Path, keep: usize) -> Result<usize> {
    let mut names = disk.list(dir).map_err(at(dir))?;
    names.retain(|name| name.ends_with(".snap"));
    let surplus = names.len().saturating_sub(keep);
    for name in &names[..surplus] {
        let path = dir.join(name);
        disk.remove(&path).map_err(at(&path))?;
    }
    Ok(surplus)
}

pub fn encode(snapshot: &Snapshot) -> Vec<u8> {
    let mut inner = Vec::new();
    snapshot.encode(&mut inner);
    let mut out = Vec::with_capacity(inner.len() + 16);
    put_uint(&mut out, 1, u64::from(crc32c::crc32c(&inner)));
    put_bytes(&mut out, 2, &inner);
    out
}

pub fn decode(bytes: Bytes) -> std::result::Result<Snapshot, &'static str> {
    let (mut crc, mut data) = (0, &[][..]);
    for field in Fields::new(&bytes) {
        match field.map_err(|error| error.0)? {
            Field::Uint(1, value) => crc = value,
            Field::Bytes(2, inner) => data = inner,
            _ => {}
        }
    }
    if data.is_empty() || crc == 0 {
        return Err("it is empty");
    }
    if u64::from(crc32c::crc32c(data)) != crc {
        return Err("it fails its checksum");
    }
    Snapshot::decode(&bytes.slice_ref(data)).map_err(|error| error.0)
}
