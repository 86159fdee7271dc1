//! The log while it is open: append, sync, cut, retire, read back.

use crate::places::{Place, Places};
use crate::reader::{Reader, Step};
use crate::record::{self, Kind};
use crate::segment::{self, Name};
use crate::{Error, Metadata, Result, SnapshotMark, at, is_full};
use bytes::Bytes;
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

/// The reserve's name until it is cut in.
const RESERVE: &str = "0.tmp";

impl Wal {
    /// Makes a new log. It is built under another name, so that it is there as a whole or not at all.
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

    /// Notes that a snapshot exists, durably. Its `.snap` file must be durable already.
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

    /// Gives up the segments that are not needed to start from a snapshot at `index`.
    pub fn release_to(&mut self, index: u64) -> Result<()> {
        self.check()?;
        let needed = self.held.iter().rposition(|held| held.name.index < index).unwrap_or(0);
        self.released.extend(self.held.drain(..needed).map(|held| held.name));
        self.places.forget_before(self.held[0].name.sequence);
        Ok(())
    }

    /// Removes segments that were given up, as long as `keep` segments remain in all. Returns how
    /// many went.
    pub fn purge(&mut self, keep: usize) -> Result<usize> {
        self.check()?;
        let surplus = (self.released.len() + self.held.len()).saturating_sub(keep);
        let count = surplus.min(self.released.len());
        for _ in 0..count {
            let path = self.released[0].path(&self.dir);
            self.disk.remove(&path).map_err(at(&path))?;
            self.released.remove(0);
        }
        if count > 0 {
            self.disk.sync_dir(&self.dir).map_err(at(&self.dir))?;
        }
        Ok(count)
    }

    /// Reads entries back: from index `from` to before `to`, as many as fit into `bytes_max`, but
    /// at least one.
    pub fn read_entries(&self, from: u64, to: u64, bytes_max: usize) -> Result<Vec<Entry>> {
        let mut entries = Vec::new();
        let mut next = from;
        let mut bytes = 0;
        let to = to.min(self.places.end());
        while next < to {
            let Some((place, until)) = self.places.find(next) else {
                return Err(Error::Removed { dir: self.dir.clone(), index: next });
            };
            let held = self.held.iter().find(|held| held.name.sequence == place.sequence);
            let held = held.expect("places are forgotten together with their segment");
            let path = held.name.path(&self.dir);
            let mut reader =
                Reader::new(held.file.clone(), place.offset, place.crc).map_err(at(&path))?;
            while next < until.min(to) {
                let offset = reader.offset;
                let damaged = |what| Error::Damaged { segment: path.clone(), offset, what };
                let data = match reader.step().map_err(at(&path))? {
                    Step::Record(Kind::Entry, data) => Bytes::copy_from_slice(data),
                    Step::Record(..) => continue,
                    Step::Torn(what) | Step::Damaged(what) => return Err(damaged(what)),
                    Step::End => return Err(damaged("the end before an entry that was written")),
                };
                let entry = Entry::decode(&data).map_err(|_| damaged("a malformed entry"))?;
                if entry.index < next {
                    continue;
                }
                if entry.index > next {
                    return Err(damaged("an entry out of its order"));
                }
                bytes += entry.data.len();
                if bytes > bytes_max && !entries.is_empty() {
                    return Ok(entries);
                }
                entries.push(entry);
                next += 1;
            }
        }
        Ok(entries)
    }

    /// The lowest index that [`Wal::read_entries`] finds.
    pub fn first_index(&self) -> u64 {
        self.places.first()
    }

    /// Whether the next segment has its space already. If not, the disk is full: the tail still has
    /// room, but from now on only what frees space should be let in.
    pub fn reserve_ok(&self) -> bool {
        self.reserve.is_some()
    }

    /// Tries to get space for the next segment, if it has none; a full disk is no error.
    pub fn refill_reserve(&mut self) -> Result<bool> {
        self.check()?;
        if self.reserve.is_some() {
            return Ok(true);
        }
        match self.prepare() {
            Ok(file) => {
                self.reserve = Some(file);
                Ok(true)
            }
            Err(Error::Full { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn tail(&self) -> &Held {
        self.held.last().expect("there is always a tail")
    }

    fn put(&mut self, kind: Kind, data: &[u8]) {
        self.crc = record::put(&mut self.buffer, kind, self.crc, data);
    }

    /// What stands at the head of a segment: the checksum so far, whose log it is, the hard state.
    fn encode_head(&mut self) {
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

    /// Sees to it that the tail takes `bytes` more and has the space for them. Changes nothing but
    /// segments, so that a full disk leaves the log as it was.
    fn make_room(&mut self, bytes: usize) -> Result<()> {
        let end = self.offset + bytes as u64;
        if end <= self.allocated && end <= self.options.segment_bytes {
            return Ok(());
        }
        if self.tail().name.index <= self.last_index || self.offset >= self.options.segment_bytes {
            self.cut()?;
        }
        // One append that is larger than a segment makes a larger segment.
        let end = self.offset + bytes as u64;
        if end > self.allocated {
            let path = self.tail().name.path(&self.dir);
            let result = self.tail().file.allocate(end);
            result.map_err(|error| full_or_io(error, &self.dir, &path))?;
            self.allocated = end;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        let result = self.tail().file.write_at(&self.buffer, self.offset);
        self.dirty = true;
        self.or_fail(result)?;
        self.offset += self.buffer.len() as u64;
        Ok(())
    }

    /// Closes the tail and goes on in the reserve.
    fn cut(&mut self) -> Result<()> {
        let file = match self.reserve.take() {
            Some(file) => file,
            None => self.prepare()?,
        };
        // The old segment must be whole before the new one is seen: only the last may be torn.
        let tail = self.tail().file.clone();
        let closed = tail.set_len(self.offset).and_then(|()| tail.sync());
        self.or_fail(closed)?;
        self.dirty = false;

        let name = Name { sequence: self.tail().name.sequence + 1, index: self.last_index + 1 };
        let path = name.path(&self.dir);
        self.encode_head();
        let named = (|| {
            file.write_at(&self.buffer, 0)?;
            file.sync()?;
            self.disk.rename(&self.dir.join(RESERVE), &path)?;
            self.disk.sync_dir(&self.dir)
        })();
        self.or_fail(named)?;
        self.offset = self.buffer.len() as u64;
        self.allocated = self.options.segment_bytes;
        self.held.push(Held { name, file });
        self.refill_reserve()?;
        Ok(())
    }

    /// Makes a segment ready under its temporary name.
    fn prepare(&self) -> Result<Arc<dyn File>> {
        let path = self.dir.join(RESERVE);
        let prepared = (|| {
            if self.disk.exists(&path)? {
                self.disk.remove(&path)?;
            }
            let file = self.disk.open(&path, Open::CreateNew)?;
            file.allocate(self.options.segment_bytes)?;
            Ok(file)
        })();
        match prepared {
            Ok(file) => {
                lock(&*file, &path)?;
                Ok(file)
            }
            Err(error) => {
                // What space it got is worth more to others. If even this fails, `open` tries again.
                let _ = self.disk.remove(&path);
                Err(full_or_io(error, &self.dir, &path))
            }
        }
    }

    fn check(&self) -> Result<()> {
        if self.failed { Err(Error::Failed { dir: self.dir.clone() }) } else { Ok(()) }
    }

    fn or_fail(&mut self, result: io::Result<()>) -> Result<()> {
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

fn full_or_io(error: io::Error, dir: &Path, path: &Path) -> Error {
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
