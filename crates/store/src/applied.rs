//! What comes out when an entry of the log is applied: an answer, a change, and effects.

use std::sync::Arc;

use bytes::Bytes;
use raftpb::{ConfChange, ConfState};

use crate::change::Change;
use crate::cluster::Member;

#[derive(Debug)]
pub struct Applied {
    pub index: u64,
    pub term: u64,
    /// Whose request it was; 0: nobody waits.
    pub request_id: u64,
    pub result: Result<Reply, api::Error>,
    /// For watchers; `None` if no key changed.
    pub change: Option<Arc<Change>>,
    /// Usually none.
    pub effects: Vec<Effect>,
}

/// An answer without its header: fields of a protobuf message may be concatenated, so whoever
/// sends it writes `header` (field 1) and appends `body`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// What `header.revision` says.
    pub revision: i64,
    pub body: Bytes,
}

/// What the world should know or do because of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The lease begins to run, with its effective TTL in seconds.
    LeaseGranted {
        id: i64,
        ttl: i64,
    },
    LeaseRevoked {
        id: i64,
    },
    /// Seconds that a new leader gives the lease; 0: its full TTL.
    LeaseCheckpointed {
        id: i64,
        remaining: i64,
    },
    /// Raft takes the configuration over; members may have come or gone.
    ConfChanged(Box<ConfChanged>),
    /// A member made its name and client URLs known.
    MemberAttributesSet {
        id: u64,
    },
    AlarmsChanged,
    /// `3.6.0` and the like.
    ClusterVersionSet(String),
    /// The version to go back to; `None`: the downgrade was cancelled.
    DowngradeSet {
        target: Option<String>,
    },
    /// Users, roles, grants, or whether auth is on.
    AuthChanged,
    /// A simple token that an Authenticate entry hands out on every member.
    TokenAssigned {
        user: String,
        token: String,
    },
    /// The quota is used up and no NOSPACE alarm is raised yet: this member must propose one.
    QuotaExceeded,
    /// History up to here is gone for readers; `Store::compact_step` has work to do.
    CompactionScheduled {
        revision: i64,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfChanged {
    /// The change for Raft to take. One that was refused has node id 0, which changes nothing.
    pub change: ConfChange,
    /// The configuration from now on.
    pub conf_state: ConfState,
    pub member: MemberChange,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberChange {
    /// The change was refused.
    None,
    Added(Member),
    Promoted(Member),
    Updated(Member),
    Removed(u64),
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The client is told.
    #[error(transparent)]
    Refused(#[from] api::Error),
    /// The disk failed or lied: the member stops.
    #[error(transparent)]
    Damaged(#[from] engine::Error),
}
