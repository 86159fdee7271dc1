//! Reading rows: where they are is looked up under the lock, the bytes are fetched without it.

use super::hint;
use super::record::{HEADER_BYTES, SegmentHeader};
use super::segment::{Entry, Segment, View};
use super::state::State;
use super::{Shared, io_error};
use crate::buckets::Frozen;
use crate::{Bucket, Commit, Error, Result, Revision, Row, RowHead, RowSum, Snapshot, kv};
use bytes::Bytes;
use disk::File;
use std::sync::Arc;

/// A row that was looked up.
pub(crate) struct Found {
    pub entry: Entry,
    pub place: Place,
}

pub(crate) enum Place {
    /// Not written yet.
    Memory(Bytes),
    File {
        seq: u64,
        file: Arc<dyn File>,
    },
}

/// Rows that stand close together are read together, up to this much at once...
const SPAN_BYTES_MAX: u64 = 256 << 10;
/// ... and with no larger gap than this between two of them.
const GAP_BYTES_MAX: u64 = 4 << 10;
/// How many rows are looked up under one lock.
const LOOKUP_ROWS: usize = 1024;

impl Shared {
    pub fn read(&self, revision: Revision) -> Result<Option<Bytes>> {
        let found = {
            let state = self.state.read();
            let Some(at) = state.segment_of(revision) else { return Ok(None) };
            let segment = &state.segments[at];
            let Some(position) = segment.view.find(revision) else { return Ok(None) };
            segment.found(position)
        };
        let (seq, file) = match found.place {
            Place::Memory(kv) => return Ok(Some(kv)),
            Place::File { seq, file } => (seq, file),
        };
        if let Some(kv) = self.cache.get(revision) {
            return Ok(Some(kv));
        }
        let mut kv = vec![0; found.entry.kv_bytes()];
        self.read_span(&*file, seq, found.entry.offset, HEADER_BYTES as u64, &mut kv)?;
        self.check(&found.entry, seq, &kv)?;
        let kv = Bytes::from(kv);
        self.cache.insert(revision, kv.clone());
        Ok(Some(kv))
    }

    pub fn rows(&self, from: Revision, rows_max: usize, bytes_max: usize) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        let (mut next, mut bytes_left) = (from, bytes_max);
        while rows.len() < rows_max {
            let found = {
                let state = self.state.read();
                let first = state.segment_of(next).unwrap_or(state.segments.len());
                let segments = state.segments[first..].iter();
                let live = segments.flat_map(|s| s.view.live(next).map(move |row| (s, row)));
                let lookup = (rows_max - rows.len()).min(LOOKUP_ROWS);
                let mut budget = Budget { bytes_left, first: rows.is_empty() };
                live.take(lookup)
                    .take_while(|(_, (_, entry))| budget.take(entry))
                    .map(|(segment, (position, _))| segment.found(position))
                    .collect::<Vec<_>>()
            };
            let Some(last) = found.last() else { break };
            next = after(last.entry.revision());
            bytes_left =
                bytes_left.saturating_sub(found.iter().map(|row| row.entry.kv_bytes()).sum());
            self.fetch(&found, &mut rows)?;
        }
        Ok(rows)
    }

    /// Fetches rows that were looked up, in order.
    pub fn fetch(&self, found: &[Found], rows: &mut Vec<Row>) -> Result<()> {
        let mut span = Vec::new();
        let mut left = found;
        while let Some(first) = left.first() {
            let together = match &first.place {
                Place::Memory(kv) => {
                    rows.push(row(&first.entry, kv.clone()));
                    1
                }
                Place::File { seq, file } => {
                    let together = span_rows(left);
                    let end = end_of(&left[together - 1].entry);
                    span.resize((end - u64::from(first.entry.offset)) as usize, 0);
                    self.read_span(&**file, *seq, first.entry.offset, 0, &mut span)?;
                    for Found { entry, .. } in &left[..together] {
                        let at = (entry.offset - first.entry.offset) as usize + HEADER_BYTES;
                        let kv = &span[at..at + entry.kv_bytes()];
                        self.check(entry, *seq, kv)?;
                        rows.push(row(entry, Bytes::copy_from_slice(kv)));
                    }
                    together
                }
            };
            left = &left[together..];
        }
        Ok(())
    }

    /// Tells every row's head, from the hints where there are some.
    pub fn restore(&self, visit: &mut dyn FnMut(RowHead)) -> Result<()> {
        let segments: Vec<_> = {
            let state = self.state.read();
            let all = state.segments.iter();
            all.map(|s| (s.view.clone(), s.last_seq, s.bytes, s.hinted)).collect()
        };
        for (view, last_seq, bytes, hinted) in segments {
            if hinted && self.restore_hinted(&view, last_seq, bytes, visit) {
                continue;
            }
            self.restore_rows(&view, visit)?;
        }
        Ok(())
    }

    /// `false`: the hint has been damaged since the start. Nothing was visited then.
    fn restore_hinted(
        &self,
        view: &View,
        last_seq: u64,
        bytes: u64,
        visit: &mut dyn FnMut(RowHead),
    ) -> bool {
        let View { seq, generation, .. } = *view;
        let header = SegmentHeader { seq, last_seq, generation, head_bytes: 0 };
        let open = || hint::Reader::open(&*self.disk, &self.dir, &header, bytes);
        let Some(mut check) = open() else { return false };
        loop {
            match check.next() {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(hint::Unusable) => return false,
            }
        }
        let Some(mut hint) = open() else { return false };
        let mut position = 0;
        while let Ok(Some((entry, head))) = hint.next() {
            if !view.dead.contains(position) {
                visit(head.of_row(entry.revision(), entry.tombstone()));
            }
            position += 1;
        }
        true
    }

    fn restore_rows(&self, view: &View, visit: &mut dyn FnMut(RowHead)) -> Result<()> {
        let mut next = Revision::default();
        loop {
            let found: Vec<_> = {
                let state = self.state.read();
                let live = view.live(next).take(LOOKUP_ROWS);
                live.map(|(position, _)| state.found(view, position)).collect()
            };
            let Some(last) = found.last() else { return Ok(()) };
            next = after(last.entry.revision());
            let mut rows = Vec::with_capacity(found.len());
            self.fetch(&found, &mut rows)?;
            for row in rows {
                let head = kv::head(&row.kv).unwrap_or_default();
                visit(head.of_row(row.revision, row.tombstone));
            }
        }
    }

    fn read_span(
        &self,
        file: &dyn File,
        seq: u64,
        offset: u32,
        skip: u64,
        span: &mut [u8],
    ) -> Result<()> {
        file.read_exact_at(span, u64::from(offset) + skip).map_err(|e| {
            let path = self.segment_path(seq);
            match e.kind() {
                std::io::ErrorKind::UnexpectedEof => Error::Damaged {
                    file: path,
                    offset: u64::from(offset),
                    what: "the file ends before it",
                },
                _ => io_error(&path)(e),
            }
        })
    }

    /// The second half of the pair: what was summed before the write is checked after the read.
    fn check(&self, entry: &Entry, seq: u64, kv: &[u8]) -> Result<()> {
        if RowSum::of(entry.revision(), entry.tombstone(), kv).crc == entry.crc {
            return Ok(());
        }
        Err(Error::Damaged {
            file: self.segment_path(seq),
            offset: u64::from(entry.offset),
            what: "the content does not match its checksum",
        })
    }
}

impl Segment {
    /// A row of a segment as it is now.
    fn found(&self, position: usize) -> Found {
        self.view.found(position, self.recent(position))
    }
}

impl State {
    /// A row of a segment as a snapshot has seen it.
    pub fn found(&self, view: &View, position: usize) -> Found {
        let segment = self.segment(view.seq, view.generation);
        view.found(position, segment.and_then(|segment| segment.recent(position)))
    }
}

impl View {
    fn found(&self, position: usize, recent: Option<&Bytes>) -> Found {
        let entry = *self.rows.get(position).expect("a position in range");
        let place = match recent {
            Some(kv) => Place::Memory(kv.clone()),
            None => Place::File { seq: self.seq, file: self.written_file().clone() },
        };
        Found { entry, place }
    }
}

/// A frozen view: the segments as they were, their files held open.
pub(crate) struct LogSnapshot {
    shared: Arc<Shared>,
    commit: Commit,
    committed: Revision,
    buckets: Frozen,
    views: Vec<View>,
}

impl LogSnapshot {
    pub fn take(shared: &Arc<Shared>) -> LogSnapshot {
        let state = shared.state.read();
        LogSnapshot {
            shared: shared.clone(),
            commit: state.last.clone(),
            committed: state.committed,
            buckets: state.buckets.committed(),
            views: state.segments.iter().map(|segment| segment.view.clone()).collect(),
        }
    }

    fn live(&self, from: Revision) -> impl Iterator<Item = (&View, usize, &Entry)> {
        let first = self.views.partition_point(|view| view.newest < from);
        let views = self.views[first..].iter();
        let live =
            views.flat_map(move |view| view.live(from).map(move |(at, row)| (view, at, row)));
        live.take_while(|(_, _, entry)| entry.revision() <= self.committed)
    }
}

impl Snapshot for LogSnapshot {
    fn commit(&self) -> &Commit {
        &self.commit
    }

    fn sums(&self, from: Revision, rows_max: usize) -> Vec<RowSum> {
        self.live(from).take(rows_max).map(|(_, _, entry)| entry.sum()).collect()
    }

    fn rows(&self, from: Revision, rows_max: usize, bytes_max: usize) -> Result<Vec<Row>> {
        self.shared.alive()?;
        let mut budget = Budget { bytes_left: bytes_max, first: true };
        let wanted = self.live(from).take(rows_max).take_while(|(_, _, entry)| budget.take(entry));
        let wanted: Vec<_> = wanted.collect();
        let mut rows = Vec::with_capacity(wanted.len());
        for some in wanted.chunks(LOOKUP_ROWS) {
            let found: Vec<_> = {
                let state = self.shared.state.read();
                some.iter().map(|(view, position, _)| state.found(view, *position)).collect()
            };
            self.shared.fetch(&found, &mut rows)?;
        }
        Ok(rows)
    }

    fn bucket(&self, bucket: Bucket) -> Vec<(Bytes, Bytes)> {
        self.buckets.records(bucket)
    }
}

/// How many bytes a caller still wants; the first row is given in any case.
struct Budget {
    bytes_left: usize,
    first: bool,
}

impl Budget {
    fn take(&mut self, entry: &Entry) -> bool {
        let bytes = entry.kv_bytes();
        let fits = self.first || bytes <= self.bytes_left;
        self.first = false;
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
        fits
    }
}

/// How many of the first rows can be read in one go.
fn span_rows(found: &[Found]) -> usize {
    let Place::File { file: first_file, .. } = &found[0].place else { return 1 };
    let start = u64::from(found[0].entry.offset);
    let mut end = end_of(&found[0].entry);
    let mut count = 1;
    for next in &found[1..] {
        let Place::File { file, .. } = &next.place else { break };
        if !Arc::ptr_eq(file, first_file) {
            break;
        }
        let (next_start, next_end) = (u64::from(next.entry.offset), end_of(&next.entry));
        let near = next_start - end <= GAP_BYTES_MAX && next_end - start <= SPAN_BYTES_MAX;
        if !near {
            break;
        }
        end = next_end;
        count += 1;
    }
    count
}

fn end_of(entry: &Entry) -> u64 {
    u64::from(entry.offset) + entry.record_bytes()
}

fn row(entry: &Entry, kv: Bytes) -> Row {
    Row { revision: entry.revision(), tombstone: entry.tombstone(), kv }
}

/// The smallest revision above another.
pub(crate) fn after(revision: Revision) -> Revision {
    Revision::new(revision.main, revision.sub + 1)
}
