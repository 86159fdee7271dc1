//! The log while it is open: make it, append to it, sync it.

use crate::places::{Place, Places};
use crate::record::{self, Kind};
use crate::segment::{self, Name};
use crate::{Error, Metadata, Result, SnapshotMark, at, is_full};
use disk::{Disk, File, Open};
use raftpb::{Entry, HardState};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// A segment is closed when the next append would take it beyond this.
    pub segment_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options { segment_bytes: 64_000_000 }
    }
}

pub struct Wal {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) dir: PathBuf,
    pub(crate) options: Options,
    /// As it stands in the segments; every further one begins with the same bytes.
    pub(crate) metadata: Vec<u8>,
    pub(crate) hard_state: HardState,
    pub(crate) last_index: u64,
    /// Segments that are no longer needed, and not yet removed.
    pub(crate) released: Vec<Name>,
    /// Segments that are needed, locked. The last one is the tail.
    pub(crate) held: Vec<Held>,
    /// Where the tail's head ends: a segment with nothing else in it is not cut again.
    pub(crate) head_end: u64,
    /// Where the next record goes in the tail.
    pub(crate) offset: u64,
    /// Up to where the tail has its space.
    pub(crate) allocated: u64,
    pub(crate) crc: u32,
    /// The next segment, with its space: it also keeps writes going for a while on a full disk.
    pub(crate) reserve: Option<Arc<dyn File>>,
    pub(crate) places: Places,
    pub(crate) dirty: bool,
    pub(crate) failed: bool,
    /// Reused from one append to the next.
    pub(crate) buffer: Vec<u8>,
    pub(crate) scratch: Vec<u8>,
}

pub(crate) struct Held {
    pub name: Name,
    pub file: Arc<dyn File>,
}

/// A buffer that one large append made larger than this is given back.
const BUFFER_BYTES_KEPT: usize = 4 << 20;

impl Wal {
    /// Makes a new log. It is built under another name, so that it is there as a whole or not at all.
    /// The directory above must exist, durably.
    pub fn create(
        disk: Arc<dyn Disk>,
        dir: &Path,
        metadata: &Metadata,
        options: Options,
    ) -> Result<Wal> {
        if Wal::exists(&*disk, dir)? {
            return Err(Error::Exists { dir: dir.to_path_buf() });
        }
        let building = with_suffix(dir, ".tmp");
        if disk.exists(&building).map_err(at(&building))? {
            disk.remove_dir_all(&building).map_err(at(&building))?;
        }
        disk.create_dir_all(&building).map_err(at(&building))?;

        let name = Name { sequence: 0, index: 0 };
        let path = name.path(&building);
        let file = disk.open(&path, Open::CreateNew).map_err(at(&path))?;
        lock(&*file, &path)?;
        file.allocate(options.segment_bytes).map_err(|error| full_or_io(error, dir, &path))?;

        let mut wal = Wal {
            disk,
            dir: dir.to_path_buf(),
            options,
            metadata: metadata.encode(),
            hard_state: HardState::default(),
            last_index: 0,
            released: Vec::new(),
            held: vec![Held { name, file: file.clone() }],
            head_end: 0,
            offset: 0,
            allocated: options.segment_bytes,
            crc: 0,
            reserve: None,
            places: Places::new(1),
            dirty: false,
            failed: false,
            buffer: Vec::new(),
            scratch: Vec::new(),
        };
        wal.encode_head();
        wal.put(Kind::Snapshot, &SnapshotMark::default().encode());
        file.write_at(&wal.buffer, 0).map_err(at(&path))?;
        file.sync().map_err(at(&path))?;
        wal.offset = wal.buffer.len() as u64;
        wal.head_end = wal.offset;
        wal.disk.sync_dir(&building).map_err(at(&building))?;
        wal.disk.rename(&building, dir).map_err(at(dir))?;
        let parent = parent(dir);
        wal.disk.sync_dir(parent).map_err(at(parent))?;
        wal.refill_reserve()?;
        Ok(wal)
    }

    /// Whether there is a log in this directory.
    pub fn exists(disk: &dyn Disk, dir: &Path) -> Result<bool> {
        Ok(!segment::list(disk, dir)?.is_empty())
    }

    /// Writes entries, then the hard state. They are durable when the next [`Wal::sync`] returns.
    ///
    /// [`Error::Full`] means that nothing was written, and it may be tried again later.
    pub fn append(&mut self, hard_state: Option<HardState>, entries: &[Entry]) -> Result<()> {
        self.check()?;
        if hard_state.is_none() && entries.is_empty() {
            return Ok(());
        }
        let mut last = self.last_index;
        for entry in entries {
            assert!(
                entry.index <= last + 1,
                "entry {} would leave a gap behind {last}",
                entry.index
            );
            last = entry.index;
        }
        // Kind, term, index and the length of the data take 30 bytes at most.
        let size = |entry: &Entry| entry.data.len() + 30 + record::OVERHEAD_BYTES_MAX;
        self.make_room(entries.iter().map(size).sum::<usize>() + 64)?;

        self.buffer.clear();
        let sequence = self.tail().name.sequence;
        let mut scratch = std::mem::take(&mut self.scratch);
        for entry in entries {
            let offset = self.offset + self.buffer.len() as u64;
            self.places.note(Place { index: entry.index, sequence, offset, crc: self.crc });
            scratch.clear();
            entry.encode(&mut scratch);
            self.put(Kind::Entry, &scratch);
        }
        if let Some(state) = hard_state {
            scratch.clear();
            state.encode(&mut scratch);
            self.put(Kind::State, &scratch);
        }
        self.scratch = scratch;
        self.write()?;

        if let Some(entry) = entries.last() {
            self.last_index = entry.index;
        }
        if let Some(state) = hard_state {
            self.hard_state = state;
        }
        Ok(())
    }

    /// Makes durable what was appended.
    pub fn sync(&mut self) -> Result<()> {
        self.check()?;
        if self.dirty {
            let result = self.tail().file.sync();
            self.or_fail(result)?;
            self.dirty = false;
        }
        Ok(())
    }

    /// Notes that a snapshot exists, durably. Its `.snap` file must be durable already. It counts as
    /// valid once a hard state with a commit index at or above its own is in the log.
    pub fn save_snapshot(&mut self, mark: &SnapshotMark) -> Result<()> {
        self.check()?;
        let data = mark.encode();
        self.make_room(data.len() + record::OVERHEAD_BYTES_MAX)?;
        self.buffer.clear();
        self.put(Kind::Snapshot, &data);
        self.write()?;
        self.last_index = self.last_index.max(mark.index);
        self.sync()
    }

    pub(crate) fn tail(&self) -> &Held {
        self.held.last().expect("there is always a tail")
    }

    fn put(&mut self, kind: Kind, data: &[u8]) {
        self.crc = record::put(&mut self.buffer, kind, self.crc, data);
    }

    /// What stands at the head of a segment: the checksum so far, whose log it is, the hard state.
    pub(crate) fn encode_head(&mut self) {
        self.buffer.clear();
        let metadata = std::mem::take(&mut self.metadata);
        self.put(Kind::Checksum, &[]);
        self.put(Kind::Metadata, &metadata);
        self.metadata = metadata;
        if self.hard_state != HardState::default() {
            let mut state = Vec::new();
            self.hard_state.encode(&mut state);
            self.put(Kind::State, &state);
        }
    }

    fn write(&mut self) -> Result<()> {
        let result = self.tail().file.write_at(&self.buffer, self.offset);
        self.dirty = true;
        self.or_fail(result)?;
        self.offset += self.buffer.len() as u64;
        if self.buffer.capacity() > BUFFER_BYTES_KEPT {
            self.buffer = Vec::new();
        }
        Ok(())
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.failed { Err(Error::Failed { dir: self.dir.clone() }) } else { Ok(()) }
    }

    pub(crate) fn or_fail(&mut self, result: io::Result<()>) -> Result<()> {
        result.map_err(|source| {
            self.failed = true;
            Error::Io { path: self.tail().name.path(&self.dir), source }
        })
    }
}

pub(crate) fn lock(file: &dyn File, path: &Path) -> Result<()> {
    match file.try_lock().map_err(at(path))? {
        true => Ok(()),
        false => Err(Error::InUse { segment: path.to_path_buf() }),
    }
}

pub(crate) fn full_or_io(error: io::Error, dir: &Path, path: &Path) -> Error {
    if is_full(&error) { Error::Full { dir: dir.to_path_buf() } } else { at(path)(error) }
}

fn with_suffix(dir: &Path, suffix: &str) -> PathBuf {
    let mut name = dir.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn parent(dir: &Path) -> &Path {
    match dir.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
