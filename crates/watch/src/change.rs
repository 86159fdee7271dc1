//! What a write did, as a watcher sees it.

use bytes::Bytes;
use engine::Revision;

/// All that one main revision changed, in the order of sub revisions. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub revision: i64,
    pub events: Vec<Event>,
}

/// One key put or deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub key: Bytes,
    pub delete: bool,
    /// A put of a key that did not exist: there is nothing previous.
    pub create: bool,
    /// The `mvccpb.Event` encoding without `prev_kv`.
    pub encoded: Bytes,
    /// The row that this one replaced.
    pub previous: Option<Revision>,
}
