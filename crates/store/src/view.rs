//! The half of the state machine that reads: cheap to clone, and for any number of threads while
//! the log is being applied.

use std::sync::Arc;

use api::KeyRange;
use api::etcdserverpb::{AlarmMember, AlarmType, RangeRequest, TxnRequest};
use bytes::Bytes;
use engine::{Engine, Revision, Sizes};
use raftpb::ConfState;

use crate::applied::{ReadError, Reply};
use crate::check;
use crate::cluster::{Downgrade, Member};
use crate::hash::{self, HashKv};
use crate::lease::Lease;
use crate::quota;
use crate::range;
use crate::shared::Shared;
use crate::txn;

#[derive(Clone)]
pub struct View {
    pub(crate) shared: Arc<Shared>,
}

/// Whether auth is on, and how often its records changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthStatus {
    pub enabled: bool,
    pub revision: u64,
}

impl View {
    pub(crate) fn new(shared: Arc<Shared>) -> View {
        View { shared }
    }

    /// The current revision. All up to it can be read.
    pub fn revision(&self) -> i64 {
        self.shared.revision()
    }

    /// The compacted revision; -1: never compacted.
    pub fn compacted(&self) -> i64 {
        self.shared.compacted()
    }

    /// The last compaction that is done with all its work, which is what `physical` waits for.
    pub fn compaction_finished(&self) -> i64 {
        self.shared.finished()
    }

    /// Index and term of the last entry applied.
    pub fn applied(&self) -> (u64, u64) {
        self.shared.applied()
    }

    /// Checks a range request and answers it from the local state.
    pub fn range(&self, request: &RangeRequest) -> Result<Reply, ReadError> {
        check::check_range(request)?;
        range::read_now(&self.shared, request)
    }

    /// Whether a range holds more than so many keys. Looks at no more than that.
    pub fn holds_more_than(&self, keys: usize, request: &RangeRequest) -> bool {
        let limit = usize::try_from(request.limit).unwrap_or(0);
        if request.range_end.is_empty() || (limit > 0 && limit < keys && request.sort_order == 0) {
            return false;
        }
        let range = KeyRange::new(request.key.clone(), request.range_end.clone());
        let index = self.shared.index.read();
        index.walk(&range, None, i64::MAX, keys + 1, |_, _| true).is_some()
    }

    /// Keys that exist, or did within the history that is kept.
    pub fn keys(&self) -> u64 {
        self.shared.index.read().len() as u64
    }

    /// Whether authentication could be switched on: there is a user `root` with the role `root`.
    pub fn check_root(&self) -> Result<(), api::Error> {
        self.shared.auth.read().check_root()
    }

    /// Answers a transaction that [`check::is_read_only_txn`] from the local state. It was checked
    /// before.
    pub fn txn_read_only(&self, request: &TxnRequest) -> Result<Reply, ReadError> {
        txn::read_only(&self.shared, request)
    }

    /// The stored `KeyValue` of a key as it was at a revision.
    pub fn kv_at(&self, key: &[u8], revision: i64) -> Result<Option<Bytes>, ReadError> {
        let at = range::readable_revision(&self.shared, revision, self.revision())?;
        range::row_at(&self.shared, key, at)
    }

    /// The pair before an event at revision `main`: [`crate::Event::previous`] of that event names
    /// it. `None` once it was compacted.
    pub fn previous_kv(&self, main: i64, previous: Revision) -> Result<Option<Bytes>, ReadError> {
        if main - 1 < self.compacted() {
            return Ok(None);
        }
        Ok(self.shared.engine.read(previous)?)
    }

    pub fn hash_kv(&self, revision: i64) -> Result<HashKv, ReadError> {
        hash::hash_kv(&self.shared, revision)
    }

    /// The hashes that the last compactions left, newest first.
    pub fn compaction_hashes(&self) -> Vec<HashKv> {
        self.shared.hashes.lock().list()
    }

    /// The hash of everything, as of the last end of a batch.
    pub fn hash(&self) -> Result<u32, ReadError> {
        Ok(hash::hash_all(&*self.shared.engine)?)
    }

    pub fn lease(&self, id: i64) -> Option<Lease> {
        self.shared.leases.read().get(id).cloned()
    }

    /// By id.
    pub fn leases(&self) -> Vec<Lease> {
        self.shared.leases.read().iter().cloned().collect()
    }

    /// By id.
    pub fn members(&self) -> Vec<Member> {
        self.shared.cluster.read().members.values().cloned().collect()
    }

    pub fn member(&self, id: u64) -> Option<Member> {
        self.shared.cluster.read().members.get(&id).cloned()
    }

    pub fn removed_members(&self) -> Vec<u64> {
        self.shared.cluster.read().removed.iter().copied().collect()
    }

    pub fn conf_state(&self) -> ConfState {
        self.shared.cluster.read().conf_state.clone()
    }

    /// `None`: not decided yet.
    pub fn cluster_version(&self) -> Option<String> {
        self.shared.cluster.read().version.clone()
    }

    /// What the storage is marked with; unmarked storage that has applied anything is 3.5's.
    pub fn storage_version(&self) -> Option<String> {
        let marked = self.shared.cluster.read().storage_version.clone();
        marked.or_else(|| (self.applied().1 != 0).then(|| "3.5.0".to_owned()))
    }

    pub fn downgrade(&self) -> Downgrade {
        self.shared.cluster.read().downgrade.clone()
    }

    pub fn alarms(&self) -> Vec<AlarmMember> {
        self.shared.alarms.read().list(AlarmType::None as i32)
    }

    pub fn has_alarm(&self, alarm: AlarmType) -> bool {
        !self.shared.alarms.read().list(alarm as i32).is_empty()
    }

    pub fn auth_status(&self) -> AuthStatus {
        let auth = self.shared.auth.read();
        AuthStatus { enabled: auth.enabled, revision: auth.revision }
    }

    /// Whether a request of this cost (see [`crate::put_cost`] and its siblings) fits the quota.
    pub fn quota_allows(&self, cost: usize) -> bool {
        quota::allows(self.shared.quota_bytes, self.shared.size(), cost)
    }

    /// The quota in force; negative: none.
    pub fn quota_bytes(&self) -> i64 {
        match self.shared.quota_bytes {
            0 => quota::DEFAULT_QUOTA_BYTES,
            quota => quota,
        }
    }

    pub fn sizes(&self) -> Sizes {
        self.shared.engine.sizes()
    }

    /// For whoever syncs, collects, or takes snapshots.
    pub fn engine(&self) -> &Arc<dyn Engine> {
        &self.shared.engine
    }
}
