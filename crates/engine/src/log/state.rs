//! What is in memory: the segments with their rows' places, the tables, and what awaits its sync.
//!
//! Everything here is quick: the lock around it is held for nanoseconds to microseconds.

use super::record::{self, Record, SEGMENT_HEADER_BYTES};
use super::segment::Segment;
use crate::buckets::{Buckets, Frozen};
use crate::{Bucket, Commit, Revision, RowSum, Sizes};
use bytes::Bytes;
use std::collections::VecDeque;

pub(crate) struct State {
    /// In order; the last one takes what is appended. There is always one.
    pub segments: Vec<Segment>,
    pub buckets: Buckets,
    pub last: Commit,
    /// The newest row that the last commit covers.
    pub committed: Revision,
    /// Records since the last commit.
    building: Vec<Record>,
    /// Commits that `sync` has not taken yet, oldest first.
    pending: VecDeque<Batch>,
    /// How many commits were made, and how many of them must be durable before forgotten rows may
    /// leave the disk.
    commits: u64,
    pub forgotten_at: u64,
    /// Somebody wants the active segment sealed; done at the next commit.
    seal: bool,
}

/// The records of one commit, which is the last of them.
pub(crate) struct Batch {
    pub seq: u64,
    pub index: u64,
    /// How many commits there are with this one.
    pub commits: u64,
    pub records: Vec<Record>,
    /// The segment ends here, and the next one begins with this.
    pub cut: Option<Checkpoint>,
}

/// All that a new segment must know of the older ones' bucket and commit records.
pub(crate) struct Checkpoint {
    pub seq: u64,
    pub buckets: Frozen,
    pub commit: Commit,
}

impl Checkpoint {
    /// The bytes of the segment's header and the checkpoint.
    pub fn head_bytes(&self) -> u64 {
        let commit_bytes = record::commit_bytes(&self.commit);
        SEGMENT_HEADER_BYTES as u64 + self.buckets.record_bytes() + commit_bytes
    }
}

impl State {
    pub fn new(segments: Vec<Segment>, buckets: Frozen, last: Commit) -> State {
        let committed = segments.last().expect("there is always a segment").view.newest;
        State {
            segments,
            buckets: Buckets::from_committed(buckets),
            last,
            committed,
            building: Vec::new(),
            pending: VecDeque::new(),
            commits: 0,
            forgotten_at: 0,
            seal: false,
        }
    }

    pub fn append(&mut self, sum: RowSum, kv: Bytes) {
        let RowSum { revision, tombstone, crc, .. } = sum;
        let active = self.active();
        assert!(revision > active.view.newest, "rows are appended in revision order");
        active.append(sum, kv.clone());
        self.building.push(Record::Row { revision, tombstone, crc, kv });
    }

    pub fn put(&mut self, bucket: Bucket, key: &[u8], value: &[u8]) {
        self.buckets.put(bucket, key, value);
        let (key, value) = (Bytes::copy_from_slice(key), Bytes::copy_from_slice(value));
        self.record(Record::Put { bucket, key, value });
    }

    pub fn delete(&mut self, bucket: Bucket, key: &[u8]) {
        self.buckets.delete(bucket, key);
        self.record(Record::Delete { bucket, key: Bytes::copy_from_slice(key) });
    }

    pub fn commit(&mut self, commit: Commit, segment_bytes: u64) {
        assert!(commit.index >= self.last.index, "commits follow the log");
        // `sync` knows how much is durable when it writes this, and fills it in.
        self.record(Record::Commit { commit: commit.clone(), synced_bytes: 0 });
        self.buckets.commit();
        self.last = commit;
        self.commits += 1;
        self.committed = self.active().view.newest;
        // A checkpoint larger than a segment must not have every commit followed by another one.
        let bytes_max = segment_bytes.max(2 * self.active().head_bytes);
        let full = self.active().bytes >= bytes_max;
        let batch = Batch {
            seq: self.active().view.seq,
            index: self.last.index,
            commits: self.commits,
            records: std::mem::take(&mut self.building),
            cut: None,
        };
        self.pending.push_back(batch);
        if full || self.seal {
            self.cut();
        }
    }

    /// Has the active segment sealed: now if it stands at a commit, else with the next one.
    pub fn request_seal(&mut self) {
        if self.building.is_empty() {
            self.cut();
        } else {
            self.seal = true;
        }
    }

    /// Ends the active segment at the commit that was just made.
    fn cut(&mut self) {
        self.seal = false;
        let (seq, newest) = (self.active().view.seq, self.active().view.newest);
        let checkpoint = Checkpoint {
            seq: seq + 1,
            buckets: self.buckets.committed(),
            commit: self.last.clone(),
        };
        self.segments.push(Segment::new(seq + 1, newest, checkpoint.head_bytes()));
        match self.pending.back_mut() {
            Some(batch) if batch.cut.is_none() => batch.cut = Some(checkpoint),
            _ => self.pending.push_back(Batch {
                seq,
                index: self.last.index,
                commits: self.commits,
                records: Vec::new(),
                cut: Some(checkpoint),
            }),
        }
    }

    /// The commits up to a log index, for the one who writes them.
    pub fn take_pending(&mut self, upto: u64) -> impl Iterator<Item = Batch> {
        let count = self.pending.partition_point(|batch| batch.index <= upto);
        self.pending.drain(..count)
    }

    pub fn forget(&mut self, revisions: &[Revision]) {
        self.forgotten_at = self.commits + u64::from(!self.building.is_empty());
        for &revision in revisions {
            if let Some(at) = self.segment_of(revision) {
                self.segments[at].forget(revision);
            }
        }
    }

    /// Which segment would hold a revision.
    pub fn segment_of(&self, revision: Revision) -> Option<usize> {
        // Most questions are about the newest rows.
        let last = self.segments.len() - 1;
        if last > 0 && self.segments[last - 1].view.newest < revision {
            return Some(last);
        }
        let at = self.segments.partition_point(|segment| segment.view.newest < revision);
        (at < self.segments.len()).then_some(at)
    }

    /// The segment at a place in the sequence, if it is still of that generation.
    pub fn segment(&self, seq: u64, generation: u64) -> Option<&Segment> {
        let at = self.segments.binary_search_by_key(&seq, |segment| segment.view.seq).ok()?;
        Some(&self.segments[at]).filter(|segment| segment.view.generation == generation)
    }

    pub fn segment_mut(&mut self, seq: u64) -> &mut Segment {
        let at = self.segments.binary_search_by_key(&seq, |segment| segment.view.seq);
        &mut self.segments[at.expect("a segment that is being written stays in place")]
    }

    pub fn sums(&self, from: Revision, rows_max: usize) -> Vec<RowSum> {
        let first = self.segment_of(from).unwrap_or(self.segments.len());
        let live = self.segments[first..].iter().flat_map(|segment| segment.view.live(from));
        live.take(rows_max).map(|(_, entry)| entry.sum()).collect()
    }

    pub fn sizes(&self) -> Sizes {
        let rows: u64 = self.segments.iter().map(|segment| segment.live_row_bytes).sum();
        let headers = (self.segments.len() * SEGMENT_HEADER_BYTES) as u64;
        let tables = self.buckets.now().record_bytes() + record::commit_bytes(&self.last);
        Sizes {
            total: self.segments.iter().map(|segment| segment.bytes).sum(),
            in_use: rows + headers + tables,
        }
    }

    pub fn active(&mut self) -> &mut Segment {
        self.segments.last_mut().expect("there is always a segment")
    }

    /// The bytes of the active segment that no later record has made dead.
    pub fn active_live_bytes(&mut self) -> u64 {
        let tables = self.buckets.now().record_bytes() + record::commit_bytes(&self.last);
        SEGMENT_HEADER_BYTES as u64 + tables + self.active().live_row_bytes
    }

    fn record(&mut self, record: Record) {
        self.active().bytes += record.bytes();
        self.building.push(record);
    }
}
