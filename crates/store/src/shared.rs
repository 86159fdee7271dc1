//! What the one who applies and all who read have in common.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use bytes::Bytes;
use engine::Engine;
use parking_lot::{Mutex, RwLock};

use crate::alarm::Alarms;
use crate::applied::ReadError;
use crate::auth::Auth;
use crate::cluster::Cluster;
use crate::hash::CompactionHashes;
use crate::index::{Index, Rev};
use crate::lease::Leases;

/// Locks are held for short steps only and never across the reading of rows. Only the applying
/// thread changes anything here.
pub(crate) struct Shared {
    pub engine: Arc<dyn Engine>,
    pub index: RwLock<Index>,
    /// All up to here is complete; rows above it belong to a request that is being applied.
    revision: AtomicI64,
    compacted: AtomicI64,
    /// The last compaction whose rows are gone for good.
    finished: AtomicI64,
    applied_index: AtomicU64,
    applied_term: AtomicU64,
    /// The engine's size at the end of the last batch.
    size: AtomicU64,
    pub quota_bytes: i64,
    pub hashes: Mutex<CompactionHashes>,
    pub leases: RwLock<Leases>,
    pub alarms: RwLock<Alarms>,
    pub cluster: RwLock<Cluster>,
    pub auth: RwLock<Auth>,
}

/// Everything that is read back at start.
pub(crate) struct Restored {
    pub index: Index,
    pub revision: i64,
    pub compacted: i64,
    pub leases: Leases,
    pub alarms: Alarms,
    pub cluster: Cluster,
    pub auth: Auth,
}

impl Shared {
    pub fn new(engine: Arc<dyn Engine>, quota_bytes: i64, restored: Restored) -> Shared {
        let commit = engine.last_commit();
        let size = engine.sizes().total;
        Shared {
            engine,
            index: RwLock::new(restored.index),
            revision: AtomicI64::new(restored.revision),
            compacted: AtomicI64::new(restored.compacted),
            finished: AtomicI64::new(restored.compacted),
            applied_index: AtomicU64::new(commit.index),
            applied_term: AtomicU64::new(commit.term),
            size: AtomicU64::new(size),
            quota_bytes,
            hashes: Mutex::default(),
            leases: RwLock::new(restored.leases),
            alarms: RwLock::new(restored.alarms),
            cluster: RwLock::new(restored.cluster),
            auth: RwLock::new(restored.auth),
        }
    }

    pub fn revision(&self) -> i64 {
        self.revision.load(Ordering::Acquire)
    }

    pub fn set_revision(&self, revision: i64) {
        self.revision.store(revision, Ordering::Release);
    }

    /// -1: never compacted.
    pub fn compacted(&self) -> i64 {
        self.compacted.load(Ordering::Acquire)
    }

    pub fn set_compacted(&self, revision: i64) {
        self.compacted.store(revision, Ordering::Release);
    }

    pub fn finished(&self) -> i64 {
        self.finished.load(Ordering::Acquire)
    }

    pub fn set_finished(&self, revision: i64) {
        self.finished.store(revision, Ordering::Release);
    }

    pub fn applied(&self) -> (u64, u64) {
        let index = self.applied_index.load(Ordering::Acquire);
        (index, self.applied_term.load(Ordering::Acquire))
    }

    pub fn set_applied(&self, index: u64, term: u64) {
        self.applied_term.store(term, Ordering::Release);
        // Last: whoever waits for this index must see all that came with it.
        self.applied_index.store(index, Ordering::Release);
    }

    pub fn size(&self) -> u64 {
        self.size.load(Ordering::Relaxed)
    }

    pub fn set_size(&self, bytes: u64) {
        self.size.store(bytes, Ordering::Relaxed);
    }

    /// The row that the index names, read on behalf of somebody who reads at revision `at`.
    pub fn row(&self, rev: Rev, at: i64) -> Result<Bytes, ReadError> {
        if let Some(row) = self.engine.read(rev.into())? {
            return Ok(row);
        }
        if at < self.compacted() {
            return Err(api::Error::COMPACTED.into());
        }
        Err(missing_row(rev).into())
    }
}

pub(crate) fn missing_row(rev: Rev) -> engine::Error {
    engine::Error::Damaged {
        file: PathBuf::from(format!("revision {}.{}", rev.main, rev.sub)),
        offset: 0,
        what: "the key index names this row, but the engine does not have it",
    }
}
