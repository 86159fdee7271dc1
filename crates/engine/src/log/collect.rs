//! Collection: what is dead leaves the disk, in small steps and without stopping anybody.
//!
//! A run of neighbouring sealed segments is rewritten into one new file that holds their live rows and
//! covers their places in the sequence, so a missing file is still noticed. The new file takes the
//! name of the first; the others are removed. Whoever still reads the old files, a snapshot or a
//! reader that has just looked a row up, holds them open.
//!
//! ```text
//! 1 write and sync  5.seg.tmp, 5.hint.tmp      a crash leaves files that the next start removes
//! 2 rename          5.seg.tmp -> 5.seg         from here on 5.seg covers 5 to 7
//! 3 rename          5.hint.tmp -> 5.hint       a stale hint is told by its generation
//! 4 sync            the directory
//! 5 remove          6.seg, 7.seg and hints     a crash leaves files that 5.seg covers
//! ```
//!
//! Rows leave the disk only when everything recorded before they were forgotten is durable: a restart
//! that goes back to an earlier commit must find the rows that were alive then.

use super::hint;
use super::read::after;
use super::record::{Record, SEGMENT_HEADER_BYTES, SegmentHeader};
use super::recover::scan_rows;
use super::reserve::RESERVE_NAME;
use super::segment::{Entry, Segment, View, hint_name, segment_name};
use super::state::State;
use super::{Shared, io_error};
use crate::{Result, Revision};
use disk::{File, Open};
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// What the one who collects remembers between steps.
#[derive(Default)]
pub(crate) struct Collector {
    job: Option<Rewrite>,
    defragmentation: Option<Defragmentation>,
    /// Space has come free since the reserve was last looked after.
    freed: bool,
    /// Where the scrub goes on.
    scrubbed: Revision,
}

/// A pass over all segments that existed when it began.
struct Defragmentation {
    next_seq: u64,
    last_seq: u64,
}

/// A run of segments on its way into one.
struct Rewrite {
    sources: Vec<View>,
    /// Which source is being copied, and from which revision on.
    source: usize,
    from: Revision,
    /// The commits that must be durable before the old files go.
    commits: u64,
    header: SegmentHeader,
    segment: Segment,
    file: Arc<dyn File>,
    tmp: PathBuf,
    hint: hint::Writer,
}

/// A segment with fewer dead bytes (old commits, mostly) is not worth a rewrite.
const DEAD_BYTES_MIN: u64 = 4 << 10;
const STEP_ROWS: usize = 1024;

impl Shared {
    pub fn collect(&self, bytes_max: usize, all: bool) -> Result<bool> {
        let collector = &mut *self.collector.lock();
        if let Some(job) = &mut collector.job {
            match self.step(job, bytes_max) {
                Ok(false) => return Ok(true),
                Ok(true) => (collector.job, collector.freed) = (None, true),
                Err(e) => {
                    collector.job.take().expect("a job was at hand").discard(self);
                    // Whoever asked learns that it failed; the next one begins anew.
                    collector.defragmentation = None;
                    return Err(e);
                }
            }
        }
        if all && collector.defragmentation.is_none() {
            collector.defragmentation = Some(self.begin_defragmentation());
        }
        let run = match &mut collector.defragmentation {
            Some(pass) => self.state.read().next_for(pass, self.options.segment_bytes),
            None => self.state.read().mostly_dead(self.options.segment_bytes),
        };
        if let Some(run) = run {
            collector.job = Some(self.begin(run)?);
            return Ok(true);
        }
        if let Some(pass) = &collector.defragmentation
            && !self.state.read().is_sealed(pass.last_seq)
        {
            // Its last commits are not synced yet; `sync` will seal it.
            return Ok(true);
        }
        if std::mem::take(&mut collector.freed) || collector.defragmentation.is_some() {
            self.fill_reserve()?;
        }
        if self.write_missing_hint()? {
            return Ok(true);
        }
        collector.defragmentation = None;
        Ok(false)
    }

    /// Sets space aside again, if there is enough. Not tried all the time: on a disk that is nearly full
    /// the attempt takes, for a moment, what others need.
    pub fn fill_reserve(&self) -> Result<()> {
        let path = self.path(RESERVE_NAME);
        self.reserve.fill(&*self.disk).map_err(io_error(&path))
    }

    pub fn scrub(&self, bytes_max: usize) -> Result<bool> {
        let collector = &mut *self.collector.lock();
        let rows = self.rows(collector.scrubbed, STEP_ROWS, bytes_max)?;
        collector.scrubbed = rows.last().map_or(Revision::default(), |row| after(row.revision));
        Ok(!rows.is_empty())
    }

    fn begin_defragmentation(&self) -> Defragmentation {
        let mut state = self.state.write();
        let live_bytes = state.active_live_bytes();
        let active = state.active();
        let seq = active.view.seq;
        let worth = active.dead_rows > 0 || active.bytes - live_bytes > DEAD_BYTES_MIN;
        if worth {
            state.request_seal();
        }
        Defragmentation { next_seq: 0, last_seq: if worth { seq } else { seq - 1 } }
    }

    /// Begins to rewrite a run of segments.
    fn begin(&self, run: Range<usize>) -> Result<Rewrite> {
        let (sources, last_seq, commits) = {
            let state = self.state.read();
            let run = &state.segments[run];
            let last = run.last().expect("a run has segments");
            let sources: Vec<_> = run.iter().map(|segment| segment.view.clone()).collect();
            (sources, last.last_seq, state.forgotten_at)
        };
        let seq = sources[0].seq;
        let generation = sources.iter().map(|view| view.generation).max().unwrap_or(0) + 1;
        let head_bytes = SEGMENT_HEADER_BYTES as u64;
        let header = SegmentHeader { seq, last_seq, generation, head_bytes };
        let tmp = self.path(&format!("{}.tmp", segment_name(seq)));
        let create = || -> io::Result<_> {
            let file = self.disk.open(&tmp, Open::Create)?;
            file.set_len(0)?;
            file.write_at(&header.encode(), 0)?;
            Ok((file, hint::Writer::create(&*self.disk, &self.dir, seq)?))
        };
        let created = self.reserve.lend(&*self.disk, create);
        let (file, hint) = created.map_err(|e| self.write_error(&tmp, e))?;
        let mut segment = Segment::new(seq, Revision::default(), head_bytes);
        segment.view.generation = generation;
        segment.view.file = Arc::new(OnceLock::from(file.clone()));
        segment.last_seq = last_seq;
        (segment.sealed, segment.hinted) = (true, true);
        let from = Revision::default();
        Ok(Rewrite { sources, source: 0, from, commits, header, segment, file, tmp, hint })
    }

    /// Copies about `bytes_max` bytes. `true`: the run is complete and in place.
    fn step(&self, job: &mut Rewrite, bytes_max: usize) -> Result<bool> {
        let mut bytes_left = bytes_max;
        while let Some(source) = job.sources.get(job.source) {
            let copied = self.copy_some(source.clone(), job, bytes_left)?;
            if copied == 0 {
                job.source += 1;
                continue;
            }
            bytes_left = bytes_left.saturating_sub(copied);
            if bytes_left == 0 {
                // Little by little: a sync of a whole segment would hold up those of the write-ahead
                // log, and with them every write.
                job.file.sync().map_err(|e| self.fail(&job.tmp, e))?;
                return Ok(false);
            }
        }
        if self.durable_commits() < job.commits {
            return Ok(false);
        }
        self.finish(job)?;
        Ok(true)
    }

    /// Copies the next live rows of a source, and returns how many bytes that were.
    fn copy_some(&self, source: View, job: &mut Rewrite, bytes_max: usize) -> Result<usize> {
        let mut bytes = 0;
        let found: Vec<_> = {
            let state = self.state.read();
            let live = source.live(job.from).take(STEP_ROWS);
            let few = live.take_while(|(_, entry)| {
                let wanted = bytes == 0 || bytes < bytes_max;
                bytes += entry.record_bytes() as usize;
                wanted
            });
            few.map(|(position, _)| state.found(&source, position)).collect()
        };
        let mut rows = Vec::with_capacity(found.len());
        self.fetch(&found, &mut rows)?;
        let mut out = Vec::new();
        let start = job.segment.bytes;
        for (found, row) in found.iter().zip(&rows) {
            let (offset, sum) = (job.segment.bytes, found.entry.sum());
            let record = Record::Row {
                revision: row.revision,
                tombstone: row.tombstone,
                crc: sum.crc,
                kv: row.kv.clone(),
            };
            record.encode(&mut out, job.header.seq, offset);
            let entry = Entry::new(sum, offset);
            job.segment.bytes += entry.record_bytes();
            job.segment.add_written(entry);
            job.hint.push(&entry, &row.kv);
            if job.hint.is_full() {
                self.flush_hint(&mut job.hint)?;
            }
            job.from = after(row.revision);
        }
        self.write(&*job.file, &job.tmp, &out, start)?;
        Ok(out.len())
    }

    /// Puts the new file in the place of the old ones.
    fn finish(&self, job: &mut Rewrite) -> Result<()> {
        let Rewrite { header, hint, tmp, .. } = job;
        job.file.sync().map_err(|e| self.fail(tmp, e))?;
        self.complete_hint(hint, header, job.segment.bytes)?;
        let path = self.segment_path(header.seq);
        self.disk.rename(tmp, &path).map_err(|e| self.fail(&path, e))?;
        hint.publish(&*self.disk).map_err(|e| self.fail(&path, e))?;
        self.disk.sync_dir(&self.dir).map_err(|e| self.fail(&self.dir, e))?;

        let empty = Segment::new(header.seq, Revision::default(), 0);
        let mut segment = std::mem::replace(&mut job.segment, empty);
        // Nothing that is asked for may fall between this segment and the next.
        segment.view.newest = job.sources.last().expect("a run has segments").newest;
        let replaced: Vec<_> = {
            let mut state = self.state.write();
            let at = state.segments.partition_point(|old| old.view.seq < header.seq);
            let run = at..at + job.sources.len();
            for (source, old) in job.sources.iter().zip(&state.segments[run.clone()]) {
                for position in old.view.dead.since(&source.dead) {
                    let entry = source.rows.get(position).expect("a dead row is a row");
                    segment.forget(entry.revision());
                }
            }
            state.segments.splice(run, [segment]).collect()
        };
        // A name that stays behind is covered by the new file; the next start removes it.
        for gone in &replaced[1..] {
            let _ = self.disk.remove(&self.segment_path(gone.view.seq));
            let _ = self.disk.remove(&self.path(&hint_name(gone.view.seq)));
        }
        Ok(())
    }

    /// Writes the hint of one sealed segment that has none. `true`: there was one.
    fn write_missing_hint(&self) -> Result<bool> {
        let missing = {
            let state = self.state.read();
            let mut sealed = state.segments.iter().filter(|s| s.sealed && !s.hinted);
            sealed.next().map(|s| (s.view.clone(), s.last_seq, s.bytes))
        };
        let Some((view, last_seq, bytes)) = missing else { return Ok(false) };
        let View { seq, generation, .. } = view;
        let header = SegmentHeader { seq, last_seq, generation, head_bytes: 0 };
        let path = self.segment_path(seq);
        let create = || hint::Writer::create(&*self.disk, &self.dir, seq);
        let hint = self.reserve.lend(&*self.disk, create);
        let mut hint = hint.map_err(|e| self.write_error(&path, e))?;
        let range = SEGMENT_HEADER_BYTES as u64..bytes;
        scan_rows(&**view.written_file(), &path, seq, range, &mut |entry, kv| {
            hint.push(&entry, kv);
            if hint.is_full() { self.flush_hint(&mut hint) } else { Ok(()) }
        })?;
        self.complete_hint(&mut hint, &header, bytes)?;
        hint.publish(&*self.disk).map_err(|e| self.fail(&path, e))?;
        self.state.write().segment_mut(seq).hinted = true;
        Ok(true)
    }

    fn flush_hint(&self, hint: &mut hint::Writer) -> Result<()> {
        let flushed = self.reserve.lend(&*self.disk, || hint.flush());
        flushed.map_err(|e| self.write_error(hint.path(), e))
    }

    fn complete_hint(
        &self,
        hint: &mut hint::Writer,
        header: &SegmentHeader,
        segment_bytes: u64,
    ) -> Result<()> {
        let finished = self.reserve.lend(&*self.disk, || hint.finish(header, segment_bytes));
        finished.map_err(|e| self.write_error(hint.path(), e))?;
        hint.sync().map_err(|e| self.fail(hint.path(), e))
    }
}

impl Rewrite {
    fn discard(self, shared: &Shared) {
        let _ = shared.disk.remove(&self.tmp);
        self.hint.discard(&*shared.disk);
    }
}

impl Segment {
    /// In a sealed segment only the rows are alive.
    fn sealed_live_bytes(&self) -> u64 {
        SEGMENT_HEADER_BYTES as u64 + self.live_row_bytes
    }

    fn is_mostly_dead(&self) -> bool {
        self.sealed && self.bytes >= 2 * self.sealed_live_bytes()
    }

    fn has_dead(&self) -> bool {
        let dead_bytes = self.bytes - self.sealed_live_bytes();
        self.sealed && (self.dead_rows > 0 || dead_bytes > DEAD_BYTES_MIN)
    }
}

impl State {
    fn is_sealed(&self, seq: u64) -> bool {
        let at = self.segments.partition_point(|segment| segment.last_seq < seq);
        let segment = self.segments.get(at).filter(|segment| segment.view.seq <= seq);
        segment.is_none_or(|segment| segment.sealed)
    }

    /// The next run of a defragmentation.
    fn next_for(&self, pass: &mut Defragmentation, segment_bytes: u64) -> Option<Range<usize>> {
        let covered = |segment: &Segment| {
            (pass.next_seq..=pass.last_seq).contains(&segment.view.seq) && segment.has_dead()
        };
        let at = self.segments.iter().position(covered)?;
        let last_seq = pass.last_seq;
        let run = self.extend(at, last_seq, segment_bytes, Segment::has_dead);
        pass.next_seq = self.segments[run.end - 1].last_seq + 1;
        Some(run)
    }

    /// A run around a segment of which half or more is dead.
    fn mostly_dead(&self, segment_bytes: u64) -> Option<Range<usize>> {
        let at = self.segments.iter().position(Segment::is_mostly_dead)?;
        Some(self.extend(at, u64::MAX, segment_bytes, Segment::is_mostly_dead))
    }

    /// Takes neighbours into a run while what lives in it fits one segment: those that need it too,
    /// and those that are not much larger than the run, so that small segments do not pile up and a
    /// row is rewritten for that reason only a few times.
    fn extend(
        &self,
        at: usize,
        last_seq: u64,
        segment_bytes: u64,
        needs_it: impl Fn(&Segment) -> bool,
    ) -> Range<usize> {
        let mut run = at..at + 1;
        let mut live_bytes = self.segments[at].sealed_live_bytes();
        let mut joins = |segment: &Segment| {
            let more = segment.sealed_live_bytes();
            let near = needs_it(segment) || more <= (2 * live_bytes).max(segment_bytes / 16);
            let fits = segment.last_seq <= last_seq && live_bytes + more <= segment_bytes;
            let joins = segment.sealed && near && fits;
            live_bytes += if joins { more } else { 0 };
            joins
        };
        while run.start > 0 && joins(&self.segments[run.start - 1]) {
            run.start -= 1;
        }
        while run.end < self.segments.len() && joins(&self.segments[run.end]) {
            run.end += 1;
        }
        run
    }
}
