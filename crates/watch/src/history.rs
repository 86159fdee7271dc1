//! What the table may ask of the store.

use bytes::Bytes;
use engine::Revision;
use std::sync::Arc;
use store::{Change, ReadError, View};

/// Implemented by the store's view, and by models of it. It may be ahead of the table, which asks
/// only for what it has been told of.
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

    /// The `mvccpb.KeyValue` bytes of the pair before an event at `revision`, which
    /// [`store::Event::previous`] names. `None`: it is compacted.
    fn previous_kv(&self, revision: i64, previous: Revision)
    -> Result<Option<Bytes>, HistoryError>;
}

#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// Compaction has passed `from` since the table asked how far it is. The table asks again.
    #[error("the revision asked for has been compacted")]
    Compacted,
    #[error(transparent)]
    Damaged(#[from] engine::Error),
}

impl History for View {
    fn compacted(&self) -> i64 {
        View::compacted(self)
    }

    fn changes(
        &self,
        from: i64,
        upto: i64,
        revisions_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<Arc<Change>>, HistoryError> {
        let mut changes = self.history(from, bytes_max)?.changes;
        changes.truncate(changes.partition_point(|change| change.revision <= upto));
        changes.truncate(revisions_max);
        Ok(changes)
    }

    fn previous_kv(
        &self,
        revision: i64,
        previous: Revision,
    ) -> Result<Option<Bytes>, HistoryError> {
        Ok(View::previous_kv(self, revision, previous)?)
    }
}

impl From<ReadError> for HistoryError {
    fn from(error: ReadError) -> HistoryError {
        match error {
            // Nothing else is refused to those who ask for what exists.
            ReadError::Refused(_) => HistoryError::Compacted,
            ReadError::Damaged(error) => HistoryError::Damaged(error),
        }
    }
}
