//! The write-ahead log: the one place where an entry becomes durable.
//!
//! In:  entries, hard states and snapshot marks, in the order Raft gives them.
//! Out: "durable up to here" (when [`Wal::sync`] returns); at start, everything that survived.
//!
//! The files are etcd's, byte for byte, so that its tools read ours and we read its. This room owns
//! the segment files and the `.snap` markers ([`snap`]) and nothing else. It knows no Raft rule
//! (a later entry with a lower index replaces what was there; who may write one is not asked) and
//! no clock, and it starts no thread. It reaches the disk only through [`disk::Disk`], so that a
//! simulated disk can tear its writes.
//!
//! Always true:
//! - what was written before a [`Wal::sync`] that returned `Ok` is there after any crash;
//! - beyond the last record the tail segment holds zeros, and they were durable before anything was
//!   written over them. So a sector that a crash kept from the disk reads as zeros, which is how a
//!   torn write is told from damage (see `reader`);
//! - a segment is synced before its successor gets its name, so every segment but the last is whole
//!   or damaged, never torn;
//! - after a failed write or sync the log refuses everything: the kernel may have dropped the pages
//!   and call the next sync a success.

mod cut;
mod log;
mod message;
mod places;
mod read_back;
mod reader;
mod record;
mod recover;
mod segment;
pub mod snap;

pub use log::{Options, Wal};
pub use message::{Metadata, SnapshotMark};
pub use recover::{Cut, Recovered};

use std::io;
use std::path::{Path, PathBuf};

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "{segment}: another process holds this log; stop it, or give this member its own --data-dir"
    )]
    InUse { segment: PathBuf },

    #[error("{dir}: there is a log already; a new one is only made where there is none")]
    Exists { dir: PathBuf },

    #[error("{dir}: there is no log here")]
    Missing { dir: PathBuf },

    #[error(
        "{segment}: {what} at byte {offset}, in a part that was written and synced, so the disk has \
         damaged it; this member will not start. Check the disk, then empty the data directory and \
         start again as a new member, or restore a backup if it was the only one"
    )]
    Damaged { segment: PathBuf, offset: u64, what: &'static str },

    #[error(
        "{dir}: segment {missing:016x} is missing between the others; if it was moved away, put it \
         back, else this member cannot start from this log"
    )]
    SegmentMissing { dir: PathBuf, missing: u64 },

    #[error("{dir}: the log begins behind index {index}; what was before has been removed")]
    Removed { dir: PathBuf, index: u64 },

    #[error(
        "{segment}: entry {found} at byte {offset} follows entry {last}; a snapshot was received in \
         between, so this log can only be read from that snapshot or a later one"
    )]
    Gap { segment: PathBuf, offset: u64, last: u64, found: u64 },

    #[error("{dir}: the log has no record of a snapshot at index {index}")]
    SnapshotNotFound { dir: PathBuf, index: u64 },

    #[error(
        "{dir}: the snapshot at index {index} has term {expected}, but the log recorded it with term \
         {found}"
    )]
    SnapshotMismatch { dir: PathBuf, index: u64, expected: u64, found: u64 },

    #[error("{path}: this snapshot marker cannot be read: {what}")]
    SnapDamaged { path: PathBuf, what: &'static str },

    /// Nothing was written and the log is still good.
    #[error("{dir}: no space left for the log; free some, then writes go on")]
    Full { dir: PathBuf },

    /// A write or a sync failed earlier.
    #[error(
        "{dir}: the log is closed since an earlier write failed; restart this member, it will read \
         what is really on the disk"
    )]
    Failed { dir: PathBuf },

    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
}

/// Puts the path's name to an error of the disk.
fn at(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_path_buf();
    |source| Error::Io { path, source }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
