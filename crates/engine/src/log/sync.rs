//! How commits reach the disk: one write and one sync for all that may go.
//!
//! Only commits that the write-ahead log has synced are ever written, so a restart never finds a
//! change here that the log does not know.

use super::record::{Record, SegmentHeader};
use super::segment::{Segment, segment_name};
use super::state::{Batch, Checkpoint};
use super::{Shared, io_error};
use crate::{Commit, Result};
use bytes::Bytes;
use disk::{Disk, File, Open};
use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What the one who syncs knows. Only `sync` holds it.
pub(crate) struct Syncer {
    pub seq: u64,
    pub file: Arc<dyn File>,
    /// How much of the active file is durable.
    pub bytes: u64,
    /// The last durable commit.
    pub commit: Commit,
    /// Taken from the state and not durable yet.
    pub queue: VecDeque<Batch>,
    /// The active file is complete, and the next one has to begin with this.
    pub cut: Option<Checkpoint>,
}

/// Long queues are written in pieces, so that memory stays small.
const WRITE_BYTES: usize = 1 << 20;

impl Shared {
    pub fn sync(&self, upto: u64) -> Result<Commit> {
        let syncer = &mut *self.syncer.lock();
        syncer.queue.extend(self.state.write().take_pending(upto));
        loop {
            if let Some(checkpoint) = &syncer.cut {
                let file = self.begin_segment(checkpoint)?;
                (syncer.seq, syncer.bytes) = (checkpoint.seq, checkpoint.head_bytes());
                syncer.file = file;
                syncer.cut = None;
            }
            let Some(first) = syncer.queue.front() else { break };
            assert_eq!(first.seq, syncer.seq, "batches come in the order of the segments");
            self.write_batches(syncer)?;
        }
        Ok(syncer.commit.clone())
    }

    /// Writes and syncs the queue, or its part up to a cut.
    fn write_batches(&self, syncer: &mut Syncer) -> Result<()> {
        let path = self.segment_path(syncer.seq);
        let cut = syncer.queue.iter().position(|batch| batch.cut.is_some());
        let count = cut.map_or(syncer.queue.len(), |at| at + 1);

        let mut written = Written::default();
        let (start, mut end) = (syncer.bytes, syncer.bytes);
        let mut out = Vec::new();
        for record in syncer.queue.iter_mut().take(count).flat_map(|batch| &mut batch.records) {
            match record {
                Record::Row { kv, .. } => written.rows.push(kv.clone()),
                Record::Commit { commit, synced_bytes } => {
                    *synced_bytes = start;
                    written.commit = Some(commit.clone());
                }
                Record::Put { .. } | Record::Delete { .. } => {}
            }
            let offset = end + out.len() as u64;
            record.encode(&mut out, syncer.seq, offset);
            if out.len() >= WRITE_BYTES {
                self.write(&*syncer.file, &path, &out, end)?;
                end += out.len() as u64;
                out.clear();
            }
        }
        if !out.is_empty() {
            self.write(&*syncer.file, &path, &out, end)?;
            end += out.len() as u64;
        }
        if end > start {
            syncer.file.sync().map_err(|e| self.fail(&path, e))?;
        }

        syncer.bytes = end;
        for batch in syncer.queue.drain(..count) {
            syncer.cut = batch.cut;
            self.durable_commits.store(batch.commits, Ordering::Release);
        }
        if let Some(commit) = written.commit {
            syncer.commit = commit;
        }
        self.release(syncer.seq, &written.rows);
        Ok(())
    }

    /// Lets go of rows that are in the file now. They are fresh, so the cache takes them in; in a
    /// buffer of their own, lest a small row keep a large request in memory.
    fn release(&self, seq: u64, rows: &[Bytes]) {
        let fresh: Vec<_> = {
            let mut state = self.state.write();
            let segment = state.segment_mut(seq);
            let first = segment.written_rows;
            segment.written_rows += rows.len();
            segment.recent.drain(..rows.len());
            // A long drought of syncs must not leave a large empty queue behind.
            if segment.recent.is_empty() && segment.recent.capacity() > 4096 {
                segment.recent.shrink_to(4096);
            }
            let places = first..segment.written_rows;
            places.filter_map(|at| segment.view.rows.get(at).map(|e| e.revision())).collect()
        };
        for (revision, kv) in fresh.into_iter().zip(rows) {
            self.cache.insert(revision, Bytes::copy_from_slice(kv));
        }
    }

    /// Creates the next segment; its name appears when its head is durable.
    fn begin_segment(&self, checkpoint: &Checkpoint) -> Result<Arc<dyn File>> {
        let name = segment_name(checkpoint.seq);
        let (path, tmp) = (self.path(&name), self.path(&format!("{name}.tmp")));
        let head = encode_head(checkpoint);
        let file = self
            .reserve
            .lend(&*self.disk, || create(&*self.disk, &tmp, &head))
            .map_err(|e| self.write_error(&tmp, e))?;
        file.sync().map_err(|e| self.fail(&tmp, e))?;
        self.disk.rename(&tmp, &path).map_err(|e| self.fail(&path, e))?;
        self.disk.sync_dir(&self.dir).map_err(|e| self.fail(&self.dir, e))?;

        let mut state = self.state.write();
        let segment: &mut Segment = state.segment_mut(checkpoint.seq);
        let fresh = segment.view.file.set(file.clone()).is_ok();
        assert!(fresh, "a segment is created once");
        let at = state.segments.partition_point(|segment| segment.view.seq < checkpoint.seq);
        if let Some(before) = at.checked_sub(1) {
            state.segments[before].sealed = true;
        }
        Ok(file)
    }

    /// How many commits since the start are durable.
    pub fn durable_commits(&self) -> u64 {
        self.durable_commits.load(Ordering::Acquire)
    }

    pub fn write(&self, file: &dyn File, path: &Path, data: &[u8], offset: u64) -> Result<()> {
        let write = || file.write_at(data, offset);
        self.reserve.lend(&*self.disk, write).map_err(|e| self.write_error(path, e))
    }
}

/// Creates the first segment of an empty directory.
pub(crate) fn create_first(disk: &dyn Disk, dir: &Path, checkpoint: &Checkpoint) -> Result<()> {
    let name = segment_name(checkpoint.seq);
    let (path, tmp) = (dir.join(&name), dir.join(format!("{name}.tmp")));
    let file = create(disk, &tmp, &encode_head(checkpoint)).map_err(io_error(&tmp))?;
    file.sync().map_err(io_error(&tmp))?;
    disk.rename(&tmp, &path).map_err(io_error(&path))?;
    disk.sync_dir(dir).map_err(io_error(dir))
}

#[derive(Default)]
struct Written {
    rows: Vec<Bytes>,
    commit: Option<Commit>,
}

fn create(disk: &dyn Disk, path: &Path, content: &[u8]) -> io::Result<Arc<dyn File>> {
    let file = disk.open(path, Open::Create)?;
    file.set_len(0)?;
    file.write_at(content, 0)?;
    Ok(file)
}

fn encode_head(checkpoint: &Checkpoint) -> Vec<u8> {
    let Checkpoint { seq, buckets, commit } = checkpoint;
    let head_bytes = checkpoint.head_bytes();
    let header = SegmentHeader { seq: *seq, last_seq: *seq, generation: 0, head_bytes };
    let mut out = Vec::with_capacity(head_bytes as usize);
    out.extend_from_slice(&header.encode());
    for (bucket, key, value) in buckets.all() {
        let record = Record::Put { bucket, key: key.clone(), value: value.clone() };
        let offset = out.len() as u64;
        record.encode(&mut out, *seq, offset);
    }
    let offset = out.len() as u64;
    Record::Commit { commit: commit.clone(), synced_bytes: 0 }.encode(&mut out, *seq, offset);
    assert_eq!(out.len() as u64, head_bytes, "the writer has planned with this length");
    out
}
