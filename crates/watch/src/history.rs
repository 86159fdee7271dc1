//! What the table may ask of the store.

use bytes::Bytes;
use std::sync::Arc;
use store::Change;

/// Implemented by the owner of the table over its view of the store. The view may be ahead of the
/// table, which asks only for what it has been told of.
pub trait History {
    /// The compacted revision (-1: never compacted).
    fn compacted(&self) -> i64;

    /// Whole revisions from `from` to at most `upto`, in order: at most `revisions_max` of them and
    /// about `bytes_max` bytes, but at least one if there is one.
    fn changes(
        &self,
        from: i64,
        upto: i64,
        revisions_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<Arc<Change>>, HistoryError>;

    /// The `mvccpb.KeyValue` bytes of a key as of a revision. `None`: there was none, or that
    /// revision is compacted.
    fn kv_at(&self, key: &[u8], revision: i64) -> Result<Option<Bytes>, HistoryError>;
}

#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// Compaction has passed `from` since the table asked how far it is. The table asks again.
    #[error("the revision asked for has been compacted")]
    Compacted,
    #[error(transparent)]
    Damaged(#[from] engine::Error),
}
