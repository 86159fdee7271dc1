//! Backups: the whole store at one commit, as the database file that etcd's tools restore.
//!
//! The file is never anywhere: its pages are planned from sizes and then written straight to the
//! caller, while requests go on. A slow caller holds a few pieces, not the store.

use super::{Caller, Office};
use crate::mail::Word;
use api::Error;
use api::etcdserverpb::SnapshotResponse;
use bolt::{Planner, Source, Writer};
use bytes::Bytes;
use engine::{Bucket, Revision, Row, Snapshot};
use prost::Message;
use sha2::{Digest, Sha256};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::{Semaphore, oneshot};

/// Bytes of the file in one message.
const BLOB_BYTES: usize = 32 << 10;
/// Messages on their way to the caller at once.
const PIECES_MAX: usize = 32;
/// How much is read from the engine at a time.
const ROWS_MAX: usize = 1000;
const ROW_BYTES_MAX: usize = 1 << 20;

impl Office {
    pub(super) async fn snapshot(&self, caller: &Caller, cancelled: oneshot::Receiver<()>) {
        let gone = Arc::new(AtomicBool::new(false));
        let backup = Backup {
            office: self.clone(),
            caller: caller.clone(),
            permits: Arc::new(Semaphore::new(PIECES_MAX)),
            gone: gone.clone(),
        };
        let sent = self.on_own_thread(move || backup.send());
        tokio::pin!(sent);
        let result = tokio::select! {
            biased;
            result = &mut sent => result,
            _ = cancelled => {
                gone.store(true, Ordering::SeqCst);
                return;
            }
        };
        caller.end(result.and_then(|sent| sent));
    }
}

struct Backup {
    office: Office,
    caller: Caller,
    permits: Arc<Semaphore>,
    gone: Arc<AtomicBool>,
}

impl Backup {
    fn send(&self) -> Result<(), Error> {
        let config = self.office.config();
        let began = std::time::Instant::now();
        let snapshot = config.view.engine().snapshot().map_err(failed)?;
        let version = config.view.storage_version().unwrap_or_default();
        let source = Rows::new(snapshot);
        let layout = source.plan();
        let total = layout.bytes();
        config::info!(config.logger, "sending database snapshot to client",
            "total-bytes" => total, "size" => config::humanise(total), "storage-version" => version.as_str());
        let mut writer = Writer::new(layout, source);
        let mut digest = Sha256::new();
        let mut left = total;
        while let Some(mut chunk) = writer.next_chunk().map_err(failed)? {
            digest.update(&chunk);
            while !chunk.is_empty() {
                let blob = chunk.split_to(chunk.len().min(BLOB_BYTES));
                left -= blob.len() as u64;
                self.send_piece(left, blob, &version)?;
            }
        }
        let sum = Bytes::copy_from_slice(&digest.finalize());
        self.send_piece(0, sum, &version)?;
        config.metrics.disk.backend_snapshot.took(began.elapsed());
        config::info!(config.logger, "successfully sent database snapshot to client",
            "total-bytes" => total, "size" => config::humanise(total), "took" => began.elapsed());
        Ok(())
    }

    fn send_piece(&self, remaining_bytes: u64, blob: Bytes, version: &str) -> Result<(), Error> {
        let permits = self.permits.clone();
        let permit = self.office.0.runtime.block_on(permits.acquire_owned());
        if self.gone.load(Ordering::SeqCst) {
            return Err(Error::CONTEXT_CANCELED);
        }
        let message =
            SnapshotResponse { header: None, remaining_bytes, blob, version: version.into() };
        let permit = permit.map_err(|_| Error::STOPPED)?;
        self.caller.say(Word::Piece(message.encode_to_vec().into(), permit));
        Ok(())
    }
}

/// The rows of a frozen engine, as the buckets of etcd's file.
struct Rows {
    snapshot: Box<dyn Snapshot>,
    /// The bucket that is being read, and what of it is at hand.
    bucket: String,
    tables: VecDeque<(Bytes, Bytes)>,
    rows: VecDeque<Row>,
    next: Revision,
}

impl Rows {
    fn new(snapshot: Box<dyn Snapshot>) -> Rows {
        Rows {
            snapshot,
            bucket: String::new(),
            tables: VecDeque::new(),
            rows: VecDeque::new(),
            next: Revision::default(),
        }
    }

    /// The first pass: sizes only.
    fn plan(&self) -> bolt::Layout {
        let mut planner = Planner::new();
        for name in bolt::BUCKETS {
            planner.bucket(name);
            for (key, value) in self.table(name) {
                planner.row(key.len(), value.len());
            }
            if name == "key" {
                self.plan_rows(&mut planner);
            }
        }
        planner.finish()
    }

    fn plan_rows(&self, planner: &mut Planner) {
        let mut next = Revision::default();
        loop {
            let sums = self.snapshot.sums(next, ROWS_MAX);
            for sum in &sums {
                let key_bytes = Revision::row_key_bytes(sum.tombstone);
                planner.row(key_bytes, sum.kv_bytes as usize);
            }
            match sums.last() {
                Some(last) => next = Revision::new(last.revision.main, last.revision.sub + 1),
                None => return,
            }
        }
    }

    /// A bucket other than the revisions.
    fn table(&self, name: &str) -> Vec<(Bytes, Bytes)> {
        let bucket = match name {
            "alarm" => Bucket::Alarm,
            "auth" => Bucket::Auth,
            "authRoles" => Bucket::AuthRoles,
            "authUsers" => Bucket::AuthUsers,
            "cluster" => Bucket::Cluster,
            "lease" => Bucket::Lease,
            "members" => Bucket::Members,
            "members_removed" => Bucket::MembersRemoved,
            "meta" => Bucket::Meta,
            _ => return Vec::new(),
        };
        let mut rows = self.snapshot.bucket(bucket);
        if bucket == Bucket::Meta {
            // Where the log goes on; the engine keeps these two with every commit.
            let commit = self.snapshot.commit();
            for (key, value) in [("consistent_index", commit.index), ("term", commit.term)] {
                rows.push((key.into(), Bytes::copy_from_slice(&value.to_be_bytes())));
            }
            rows.sort();
        }
        rows
    }
}

impl Source for Rows {
    type Error = engine::Error;

    fn next_row(&mut self, bucket: &str) -> Result<Option<(Bytes, Bytes)>, engine::Error> {
        if self.bucket != bucket {
            self.bucket = bucket.to_owned();
            self.tables = self.table(bucket).into();
        }
        if bucket != "key" {
            return Ok(self.tables.pop_front());
        }
        if self.rows.is_empty() {
            self.rows = self.snapshot.rows(self.next, ROWS_MAX, ROW_BYTES_MAX)?.into();
        }
        Ok(self.rows.pop_front().map(|row| {
            self.next = Revision::new(row.revision.main, row.revision.sub + 1);
            let (key, bytes) = row.revision.row_key(row.tombstone);
            (Bytes::copy_from_slice(&key[..bytes]), row.kv)
        }))
    }
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::with_text(api::Code::DataLoss, error.to_string())
}
