//! Opening a log: read all that follows a snapshot, cut off what a crash left half-written.

use crate::log::{Held, Options, Wal, lock};
use crate::places::{Place, Places};
use crate::reader::{Reader, Step};
use crate::record::Kind;
use crate::segment::{self, Name};
use crate::{Error, Metadata, Result, SnapshotMark, at, is_full};
use bytes::Bytes;
use disk::{Disk, File, Open};
use raftpb::{DecodeError, Entry, HardState};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What an opened log holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    pub metadata: Metadata,
    pub hard_state: HardState,
    /// The entries behind the snapshot that was started from, without gaps.
    pub entries: Vec<Entry>,
    /// The snapshots on record from there on. Only those up to the hard state's commit are valid.
    pub snapshots: Vec<SnapshotMark>,
    /// What was cut off at the end, if anything was.
    pub cut: Option<Cut>,
}

/// A torn write that was cut off. The whole segment was copied to `<segment>.broken` before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    pub segment: PathBuf,
    pub offset: u64,
    pub what: &'static str,
}

impl Wal {
    /// Opens a log for writing and reads what follows the snapshot `from`, which must be on record
    /// (index 0, term 0 is, in a log that is still whole).
    ///
    /// When this returns, all that it read is durable.
    pub fn open(
        disk: Arc<dyn Disk>,
        dir: &Path,
        from: &SnapshotMark,
        options: Options,
    ) -> Result<(Wal, Recovered)> {
        let mut names = segment::list(&*disk, dir)?;
        if names.is_empty() {
            return Err(Error::Missing { dir: dir.to_path_buf() });
        }
        let start = segment::position(&names, dir, from.index)?;
        let wanted = names.split_off(start);

        let mut held = Vec::new();
        for &name in &wanted {
            let path = name.path(dir);
            let file = disk.open(&path, Open::Write).map_err(at(&path))?;
            lock(&*file, &path)?;
            held.push(Held { name, file });
        }
        let mut scan = Scan::new(from);
        for (position, segment) in held.iter().enumerate() {
            let is_last = position + 1 == held.len();
            scan.segment(dir, segment.name, &segment.file, is_last)?;
        }
        scan.check_start(dir, from)?;

        let tail = held.last().expect("a log has a segment");
        let path = tail.name.path(dir);
        if let Some(cut) = &scan.recovered.cut {
            keep_broken(&*disk, &*tail.file, &cut.segment)?;
        }
        // Also what a clean end left behind it: sectors of writes that were never synced.
        zero_behind(&*tail.file, scan.offset).map_err(at(&path))?;
        let allocated = match tail.file.allocate(options.segment_bytes) {
            Ok(()) => options.segment_bytes,
            Err(error) if is_full(&error) => tail.file.len().map_err(at(&path))?,
            Err(error) => return Err(at(&path)(error)),
        };
        // A process that died without a crash of the machine may leave entries that are only in
        // the page cache. They are about to be counted as durable.
        tail.file.sync().map_err(at(&path))?;
        disk.sync_dir(dir).map_err(at(dir))?;

        let Scan { recovered, metadata, places, offset, crc, .. } = scan;
        let last_index = match recovered.entries.last() {
            Some(entry) => entry.index,
            None => from.index,
        };
        let last_mark = recovered.snapshots.iter().map(|mark| mark.index).max().unwrap_or(0);
        let mut wal = Wal {
            disk,
            dir: dir.to_path_buf(),
            options,
            metadata,
            hard_state: recovered.hard_state,
            last_index: last_index.max(last_mark),
            released: names,
            held,
            head_end: 0,
            offset,
            allocated,
            crc,
            reserve: None,
            places,
            dirty: false,
            failed: false,
            buffer: Vec::new(),
            scratch: Vec::new(),
        };
        wal.refill_reserve()?;
        Ok((wal, recovered))
    }

    /// The snapshots on record that are valid, oldest first: those at or below the commit index.
    /// Takes no lock and changes nothing.
    pub fn snapshots(disk: &dyn Disk, dir: &Path) -> Result<Vec<SnapshotMark>> {
        let names = segment::list(disk, dir)?;
        let Some(last) = names.last() else {
            return Err(Error::Missing { dir: dir.to_path_buf() });
        };
        // A crash during a purge may bring back a segment whose successor is gone.
        let whole_from = names.iter().rev().zip((0..=last.sequence).rev());
        let whole = whole_from.take_while(|(name, sequence)| name.sequence == *sequence).count();

        let mut scan = Scan { marks_only: true, ..Scan::new(&SnapshotMark::default()) };
        let names = &names[names.len() - whole..];
        for (position, name) in names.iter().enumerate() {
            let path = name.path(dir);
            let file = disk.open(&path, Open::Read).map_err(at(&path))?;
            scan.segment(dir, *name, &file, position + 1 == names.len())?;
        }
        let commit = scan.recovered.hard_state.commit;
        scan.recovered.snapshots.retain(|mark| mark.index <= commit);
        Ok(scan.recovered.snapshots)
    }
}

/// What has been read so far.
struct Scan {
    start_index: u64,
    marks_only: bool,
    recovered: Recovered,
    metadata: Vec<u8>,
    places: Places,
    /// The end of the good part of the segment read last.
    offset: u64,
    crc: u32,
}

impl Scan {
    fn new(from: &SnapshotMark) -> Scan {
        Scan {
            start_index: from.index,
            marks_only: false,
            recovered: Recovered::default(),
            metadata: Vec::new(),
            places: Places::new(from.index + 1),
            offset: 0,
            crc: 0,
        }
    }

    fn segment(&mut self, dir: &Path, name: Name, file: &Arc<dyn File>, last: bool) -> Result<()> {
        let path = name.path(dir);
        let damaged = |offset, what| Error::Damaged { segment: path.clone(), offset, what };
        let mut reader = Reader::new(file.clone(), 0, self.crc).map_err(at(&path))?;
        let mut heads = 0;
        loop {
            let (offset, crc) = (reader.offset, reader.crc);
            match reader.step().map_err(at(&path))? {
                Step::Record(kind, data) => {
                    // The head was synced before the segment got its name.
                    match (heads, kind) {
                        (0, Kind::Checksum) | (1, Kind::Metadata) => heads += 1,
                        (0 | 1, _) => return Err(damaged(offset, "another record than the head")),
                        _ => {}
                    }
                    let place = Place { index: 0, sequence: name.sequence, offset, crc };
                    self.record(kind, data, place, &path)?;
                }
                Step::End if heads == 2 => break,
                Step::End => return Err(damaged(offset, "no head")),
                Step::Torn(what) if last && heads == 2 => {
                    self.recovered.cut = Some(Cut { segment: path.clone(), offset, what });
                    break;
                }
                Step::Torn(what) | Step::Damaged(what) => return Err(damaged(offset, what)),
            }
        }
        self.offset = reader.offset;
        self.crc = reader.crc;
        Ok(())
    }

    fn record(&mut self, kind: Kind, data: &[u8], place: Place, path: &Path) -> Result<()> {
        let damaged =
            |what| Error::Damaged { segment: path.to_path_buf(), offset: place.offset, what };
        let malformed = |DecodeError(what)| damaged(what);
        match kind {
            Kind::Checksum => {}
            Kind::Metadata => {
                if self.metadata.is_empty() {
                    self.metadata = data.to_vec();
                    self.recovered.metadata = Metadata::decode(data).map_err(malformed)?;
                } else if self.metadata != data {
                    return Err(damaged("the metadata of another log"));
                }
            }
            Kind::Entry if self.marks_only => {}
            Kind::Entry => {
                let entry = Entry::decode(&Bytes::copy_from_slice(data)).map_err(malformed)?;
                self.entry(entry, place, path)?;
            }
            Kind::State => {
                let state = HardState::decode(data).map_err(malformed)?;
                // The checksum does not cover a record's type. This is how an entry shows that the
                // disk turned into a hard state.
                if state.term < self.recovered.hard_state.term {
                    return Err(damaged("a hard state whose term goes back"));
                }
                self.recovered.hard_state = state;
            }
            Kind::Snapshot => {
                self.recovered.snapshots.push(SnapshotMark::decode(data).map_err(malformed)?);
            }
        }
        Ok(())
    }

    /// An entry takes its position, and all that stood there and behind it is void.
    fn entry(&mut self, entry: Entry, place: Place, path: &Path) -> Result<()> {
        let entries = &mut self.recovered.entries;
        let Some(position) = entry.index.checked_sub(self.start_index + 1) else {
            // Not wanted itself, but what was read before it and stood behind it is void.
            entries.clear();
            self.places = Places::new(self.start_index + 1);
            return Ok(());
        };
        if position > entries.len() as u64 {
            return Err(Error::Gap {
                segment: path.to_path_buf(),
                offset: place.offset,
                last: self.start_index + entries.len() as u64,
                found: entry.index,
            });
        }
        entries.truncate(position as usize);
        self.places.note(Place { index: entry.index, ..place });
        entries.push(entry);
        Ok(())
    }

    fn check_start(&self, dir: &Path, from: &SnapshotMark) -> Result<()> {
        let mut at_start = self.recovered.snapshots.iter().filter(|mark| mark.index == from.index);
        let dir = dir.to_path_buf();
        match at_start.next_back() {
            None => Err(Error::SnapshotNotFound { dir, index: from.index }),
            Some(mark) if mark.term != from.term => Err(Error::SnapshotMismatch {
                dir,
                index: from.index,
                expected: from.term,
                found: mark.term,
            }),
            Some(_) => Ok(()),
        }
    }
}

const CHUNK_BYTES: usize = 64 * 1024;

/// Copies a segment with a torn end, for whoever wants to know what it was. On a full disk the copy
/// is left out: it is only for people.
fn keep_broken(disk: &dyn Disk, torn: &dyn File, segment: &Path) -> Result<()> {
    let mut name = segment.as_os_str().to_owned();
    name.push(".broken");
    let path = PathBuf::from(name);
    let copied = (|| {
        let copy = disk.open(&path, Open::Create)?;
        copy.set_len(0)?;
        for_each_chunk(torn, 0, |offset, chunk| copy.write_at(chunk, offset))?;
        copy.set_len(torn.len()?)?;
        copy.sync()
    })();
    match copied {
        Err(error) if is_full(&error) => disk.remove(&path).map_err(at(&path)),
        other => other.map_err(at(&path)),
    }
}

/// Writes zeros over all that is not zero from `offset` on. In place: giving the space back and
/// asking for it again could fail on a full disk.
fn zero_behind(file: &dyn File, offset: u64) -> io::Result<()> {
    let zeros = vec![0; CHUNK_BYTES];
    for_each_chunk(file, offset, |at, chunk| file.write_at(&zeros[..chunk.len()], at))
}

/// Calls `f` for each chunk that is not all zeros.
fn for_each_chunk(
    file: &dyn File,
    from: u64,
    mut f: impl FnMut(u64, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut offset = from;
    loop {
        let read = file.read_at(&mut buffer, offset)?;
        if read == 0 {
            return Ok(());
        }
        let chunk = &buffer[..read];
        if chunk.iter().any(|&byte| byte != 0) {
            f(offset, chunk)?;
        }
        offset += read as u64;
    }
}
