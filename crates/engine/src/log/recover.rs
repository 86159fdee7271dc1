//! What is found at start, and what of it may be believed.
//!
//! A sealed segment was synced whole before its successor got a name, so anything wrong in it is
//! damage. The active segment may end in a torn tail: what a crash left of the last, unsynced write,
//! in any order and with holes. It is cut at the last commit with nothing bad before it.
//!
//! A bad record in the active segment is damage all the same if it had been synced, and a later
//! commit can prove that: each one says how much was durable before it was written. Damage within
//! the very last write cannot be told from a torn one; then the write-ahead log, which keeps what
//! follows the commit that was found, fills the gap.

use super::cache::Cache;
use super::collect::Collector;
use super::hint;
use super::record::{HEADER_BYTES, Header, Record, SEGMENT_HEADER_BYTES, SegmentHeader};
use super::reserve::{RESERVE_NAME, Reserve};
use super::scan::{Scan, Step, Window};
use super::segment::{Entry, Segment, hint_name, segment_name, seq_in};
use super::state::{Checkpoint, State};
use super::sync::{Syncer, create_first};
use super::{Options, Shared, io_error};
use crate::buckets::Frozen;
use crate::{Commit, Error, Result, Revision, RowSum};
use disk::{Disk, File, Open};
use parking_lot::{Mutex, RwLock};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

const LOCK_NAME: &str = "lock";

pub(crate) fn open(disk: Arc<dyn Disk>, dir: &Path, options: Options) -> Result<Shared> {
    disk.create_dir_all(dir).map_err(io_error(dir))?;
    let lock = lock(&*disk, dir)?;
    let found = Found::list(&*disk, dir)?;
    found.remove_unfinished(&*disk, dir)?;
    let mut seqs = found.segments;
    if seqs.is_empty() {
        let commit = Commit { compacted: -1, ..Commit::default() };
        let checkpoint = Checkpoint { seq: 1, buckets: Frozen::default(), commit };
        create_first(&*disk, dir, &checkpoint)?;
        seqs.push(1);
    }
    // What is read from here on may be relied on, so it must survive the next crash: the names here
    // (and the active segment, below) could still be in memory only, if just the process died.
    let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty());
    for dir in [dir, parent.unwrap_or(Path::new("."))] {
        disk.sync_dir(dir).map_err(io_error(dir))?;
    }
    let segments = open_segments(&*disk, dir, &seqs)?;
    let (sealed, active) = segments.split_at(segments.len() - 1);

    let mut loaded: Vec<Segment> = Vec::with_capacity(segments.len());
    for segment in sealed {
        let newest = loaded.last().map_or(Revision::default(), |before| before.view.newest);
        loaded.push(segment.load_sealed(&*disk, dir, newest)?);
    }
    let newest = loaded.last().map_or(Revision::default(), |before| before.view.newest);
    let active = active[0].load_active(newest)?;
    let syncer = Syncer {
        seq: active.segment.view.seq,
        file: active.segment.view.written_file().clone(),
        bytes: active.segment.bytes,
        commit: active.commit.clone(),
        queue: VecDeque::new(),
        cut: None,
    };
    loaded.push(active.segment);

    let reserve = Reserve::new(dir, options.reserve_bytes);
    reserve.fill(&*disk).map_err(io_error(&dir.join(RESERVE_NAME)))?;
    Ok(Shared {
        state: RwLock::new(State::new(loaded, active.buckets, active.commit)),
        cache: Cache::new(options.cache_bytes),
        reserve,
        syncer: Mutex::new(syncer),
        durable_commits: AtomicU64::new(0),
        collector: Mutex::new(Collector::default()),
        failed: OnceLock::new(),
        dir: dir.to_path_buf(),
        options,
        disk,
        _lock: lock,
    })
}

fn lock(disk: &dyn Disk, dir: &Path) -> Result<Arc<dyn File>> {
    let path = dir.join(LOCK_NAME);
    let file = disk.open(&path, Open::Create).map_err(io_error(&path))?;
    match file.try_lock().map_err(io_error(&path))? {
        true => Ok(file),
        false => Err(Error::InUse { dir: dir.to_path_buf() }),
    }
}

/// The engine's files in a directory.
#[derive(Default)]
struct Found {
    segments: Vec<u64>,
    hints: Vec<u64>,
    unfinished: Vec<String>,
}

impl Found {
    fn list(disk: &dyn Disk, dir: &Path) -> Result<Found> {
        let mut found = Found::default();
        for name in disk.list(dir).map_err(io_error(dir))? {
            if let Some(seq) = seq_in(&name, ".seg") {
                found.segments.push(seq);
            } else if let Some(seq) = seq_in(&name, ".hint") {
                found.hints.push(seq);
            } else if name.ends_with(".tmp") {
                found.unfinished.push(name);
            }
        }
        found.segments.sort_unstable();
        Ok(found)
    }

    fn remove_unfinished(&self, disk: &dyn Disk, dir: &Path) -> Result<()> {
        let orphans = self.hints.iter().filter(|seq| !self.segments.contains(seq));
        let orphans = orphans.map(|&seq| hint_name(seq));
        for name in self.unfinished.iter().cloned().chain(orphans) {
            let path = dir.join(name);
            disk.remove(&path).map_err(io_error(&path))?;
        }
        Ok(())
    }
}

/// A segment file whose header is good.
struct Opened {
    header: SegmentHeader,
    path: PathBuf,
    file: Arc<dyn File>,
    bytes: u64,
}

/// Opens the segments in order. Those that were merged into an older one are removed; if one is
/// missing, its rows are lost and nothing here can be trusted.
fn open_segments(disk: &dyn Disk, dir: &Path, seqs: &[u64]) -> Result<Vec<Opened>> {
    let mut opened: Vec<Opened> = Vec::new();
    for &seq in seqs {
        let path = dir.join(segment_name(seq));
        let expected = opened.last().map_or(1, |before| before.header.last_seq + 1);
        if seq < expected {
            disk.remove(&path).map_err(io_error(&path))?;
            let _ = disk.remove(&dir.join(hint_name(seq)));
            continue;
        }
        if seq > expected {
            let file = dir.join(segment_name(expected));
            return Err(Error::Damaged { file, offset: 0, what: "the file is missing" });
        }
        opened.push(Opened::open(disk, path, seq)?);
    }
    Ok(opened)
}

/// The active segment, and all that its records say.
struct Active {
    segment: Segment,
    buckets: Frozen,
    commit: Commit,
}

impl Opened {
    fn open(disk: &dyn Disk, path: PathBuf, seq: u64) -> Result<Opened> {
        let file = disk.open(&path, Open::Write).map_err(io_error(&path))?;
        let bytes = file.len().map_err(io_error(&path))?;
        let damaged = |what| Error::Damaged { file: path.clone(), offset: 0, what };
        if bytes < SEGMENT_HEADER_BYTES as u64 {
            return Err(damaged("the file ends within its header"));
        }
        let mut header = [0; SEGMENT_HEADER_BYTES];
        file.read_exact_at(&mut header, 0).map_err(io_error(&path))?;
        let header = SegmentHeader::decode(&header)
            .ok_or_else(|| damaged("the segment's header does not match its checksum"))?;
        if header.seq != seq || header.last_seq < seq || header.head_bytes > bytes {
            return Err(damaged("the segment's header does not fit the file"));
        }
        Ok(Opened { header, path, file, bytes })
    }

    /// A segment with no rows yet.
    fn empty(&self, newest: Revision, bytes: u64) -> Segment {
        let mut segment = Segment::new(self.header.seq, newest, self.header.head_bytes);
        segment.bytes = bytes;
        segment.view.generation = self.header.generation;
        segment.view.file = Arc::new(OnceLock::from(self.file.clone()));
        segment.last_seq = self.header.last_seq;
        segment
    }

    /// Reads a sealed segment through its hint, or whole if the hint is missing or stale.
    fn load_sealed(&self, disk: &dyn Disk, dir: &Path, newest: Revision) -> Result<Segment> {
        let mut segment = self.empty(newest, self.bytes);
        segment.sealed = true;
        if let Some(entries) = self.hinted_entries(disk, dir) {
            entries.into_iter().for_each(|entry| segment.add_written(entry));
            segment.hinted = true;
            return Ok(segment);
        }
        // `collect` writes the hint that is missing.
        let range = SEGMENT_HEADER_BYTES as u64..self.bytes;
        scan_rows(&*self.file, &self.path, self.header.seq, range, &mut |entry, _| {
            segment.add_written(entry);
            Ok(())
        })?;
        Ok(segment)
    }

    /// The rows that the hint lists, if there is one and it is good.
    fn hinted_entries(&self, disk: &dyn Disk, dir: &Path) -> Option<Vec<Entry>> {
        let mut hint = hint::Reader::open(disk, dir, &self.header, self.bytes)?;
        let mut entries = Vec::new();
        while let Some((entry, _)) = hint.next().ok()? {
            entries.push(entry);
        }
        Some(entries)
    }

    /// Reads the active segment, cuts its torn tail, and leaves it ready to be appended to.
    fn load_active(&self, newest: Revision) -> Result<Active> {
        let seq = self.header.seq;
        let start = SEGMENT_HEADER_BYTES as u64;
        let mut scan = Scan::new(&*self.file, seq, start, self.bytes);
        let mut good = Good { rows: Vec::new(), buckets: Frozen::default(), last: None };
        let mut since_commit = Vec::new();
        loop {
            match scan.next().map_err(io_error(&self.path))? {
                Step::Record { offset, header, payload } => {
                    let record = header.record(payload).ok_or_else(|| {
                        self.damaged(offset, "a record that this version does not know")
                    })?;
                    let end = offset + HEADER_BYTES as u64 + payload.len() as u64;
                    let is_commit = header.is_commit();
                    since_commit.push((offset, record));
                    if is_commit {
                        good.take(since_commit.drain(..), end);
                    }
                }
                Step::Bad { offset, what } => {
                    if offset < self.header.head_bytes || self.was_synced(offset)? {
                        return Err(self.damaged(offset, what));
                    }
                    break;
                }
                Step::End => break,
            }
        }
        let (commit, end) = good.last.ok_or_else(|| self.damaged(start, "no checkpoint"))?;
        if end < self.bytes {
            // Gone for good before anything is written behind it: else a good record of the old
            // tail could come to stand right behind a new one.
            self.file.set_len(end).map_err(io_error(&self.path))?;
        }
        self.file.sync().map_err(io_error(&self.path))?;
        let mut segment = self.empty(newest, end);
        good.rows.into_iter().for_each(|entry| segment.add_written(entry));
        Ok(Active { segment, buckets: good.buckets, commit })
    }

    /// Whether a commit behind `bad` proves that `bad` had been durable before it was written.
    fn was_synced(&self, bad: u64) -> Result<bool> {
        let mut window = Window::default();
        let mut at = bad + 1;
        while at + HEADER_BYTES as u64 <= self.bytes {
            let bytes = window.get(&*self.file, at, HEADER_BYTES, self.bytes);
            let header = Header::decode(bytes.map_err(io_error(&self.path))?, self.header.seq, at);
            let payload_at = at + HEADER_BYTES as u64;
            at += 1;
            let Some(header) = header.filter(Header::is_commit) else { continue };
            if u64::from(header.payload_bytes) > self.bytes - payload_at {
                continue;
            }
            let payload_bytes = header.payload_bytes as usize;
            let payload = window.get(&*self.file, payload_at, payload_bytes, self.bytes);
            let payload = payload.map_err(io_error(&self.path))?;
            let record = header.fits(payload).then(|| header.record(payload)).flatten();
            if let Some(Record::Commit { synced_bytes, .. }) = record
                && synced_bytes > bad
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn damaged(&self, offset: u64, what: &'static str) -> Error {
        Error::Damaged { file: self.path.clone(), offset, what }
    }
}

/// What the commits of a segment vouch for.
struct Good {
    rows: Vec<Entry>,
    buckets: Frozen,
    /// The last commit, and the offset behind it.
    last: Option<(Commit, u64)>,
}

impl Good {
    /// Takes in the records of a commit, the commit included.
    fn take(&mut self, records: impl Iterator<Item = (u64, Record)>, end: u64) {
        for (offset, record) in records {
            match record {
                Record::Row { revision, tombstone, crc, kv } => {
                    let kv_bytes = kv.len() as u32;
                    let sum = RowSum { revision, tombstone, kv_bytes, crc };
                    self.rows.push(Entry::new(sum, offset));
                }
                Record::Put { bucket, key, value } => {
                    self.buckets.set(bucket, key, Some(value));
                }
                Record::Delete { bucket, key } => {
                    self.buckets.set(bucket, key, None);
                }
                Record::Commit { commit, .. } => self.last = Some((commit, end)),
            }
        }
    }
}

/// Reads every row between two offsets of a segment that must be whole.
pub(crate) fn scan_rows(
    file: &dyn File,
    path: &Path,
    seq: u64,
    range: std::ops::Range<u64>,
    row: &mut dyn FnMut(Entry, &[u8]) -> Result<()>,
) -> Result<()> {
    let mut scan = Scan::new(file, seq, range.start, range.end);
    loop {
        match scan.next().map_err(io_error(path))? {
            Step::Record { offset, header, payload } => {
                if let Some((revision, tombstone)) = header.row() {
                    let kv_bytes = header.payload_bytes;
                    let sum = RowSum { revision, tombstone, kv_bytes, crc: header.crc };
                    row(Entry::new(sum, offset), payload)?;
                }
            }
            Step::Bad { offset, what } => {
                return Err(Error::Damaged { file: path.to_path_buf(), offset, what });
            }
            Step::End => return Ok(()),
        }
    }
}
