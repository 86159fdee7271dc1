//! The durable home of revisions: an append-only log of checksummed rows.
//!
//! In:  rows in revision order, bucket records, and commits that bind them to a log index.
//! Out: a row by its revision, rows in order, the buckets, and at start everything that survived.
//!
//! A row is etcd's own row: a revision and the canonical `KeyValue` encoding. This room knows that
//! shape and nothing of MVCC: `store` decides which rows exist and which are dead. It knows no
//! clock and starts no thread; whoever owns it calls [`Engine::sync`] and [`Engine::collect`].
//!
//! Always true: after a crash, what is read back ends exactly at a commit. Damage is reported with
//! file and offset, and is never served.

mod buckets;
mod kv;
mod log;
mod mem;
mod revision;

pub use log::{LogEngine, Options};
pub use mem::MemEngine;
pub use revision::Revision;

use bytes::Bytes;
use std::path::PathBuf;

/// The tables beside the revisions, named as etcd names its buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Bucket {
    Alarm = 1,
    Auth = 2,
    AuthRoles = 3,
    AuthUsers = 4,
    Cluster = 5,
    Lease = 6,
    Members = 7,
    MembersRemoved = 8,
    Meta = 9,
}

impl Bucket {
    pub const ALL: [Bucket; 9] = [
        Bucket::Alarm,
        Bucket::Auth,
        Bucket::AuthRoles,
        Bucket::AuthUsers,
        Bucket::Cluster,
        Bucket::Lease,
        Bucket::Members,
        Bucket::MembersRemoved,
        Bucket::Meta,
    ];

    /// Its place in [`Bucket::ALL`].
    fn place(self) -> usize {
        self as usize - 1
    }
}

/// What a commit says about everything before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commit {
    /// Index and term of the last log entry whose effects are included.
    pub index: u64,
    pub term: u64,
    /// The store's current revision, and the compacted one (-1: never compacted).
    pub revision: i64,
    pub compacted: i64,
    /// The Raft configuration, as `raftpb` encodes it. Opaque here.
    pub conf_state: Bytes,
}

/// Everything of a stored row but its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowHead {
    pub revision: Revision,
    pub tombstone: bool,
    pub key: Bytes,
    pub create_revision: i64,
    pub version: i64,
    pub lease: i64,
}

/// A stored row: exactly the bytes that were appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub revision: Revision,
    pub tombstone: bool,
    /// The canonical `mvccpb.KeyValue` encoding.
    pub kv: Bytes,
}

/// The checksum of a row, kept in memory: what HashKV needs instead of the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowSum {
    pub revision: Revision,
    pub tombstone: bool,
    /// Length of the `KeyValue` encoding.
    pub kv_bytes: u32,
    /// CRC-32C of the 17- or 18-byte revision key followed by the `KeyValue` encoding.
    pub crc: u32,
}

impl RowSum {
    /// The checksum of a row whose bytes are at hand.
    pub fn of(revision: Revision, tombstone: bool, kv: &[u8]) -> RowSum {
        let (key, key_bytes) = revision.row_key(tombstone);
        let crc = crc32c::crc32c_append(crc32c::crc32c(&key[..key_bytes]), kv);
        RowSum { revision, tombstone, kv_bytes: kv.len() as u32, crc }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Bytes written in segments.
    pub total: u64,
    /// Of these, the bytes of live records.
    pub in_use: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "{file}: the record at byte {offset} is damaged ({what}); the disk has changed data that was synced. Check the disk, then restore this member from a backup or let the other members refill it"
    )]
    Damaged { file: PathBuf, offset: u64, what: &'static str },
    #[error(
        "{dir}: another process is using this data directory; stop it, or give this member its own --data-dir"
    )]
    InUse { dir: PathBuf },
    /// Nothing is lost: the same call may be made again when there is space.
    #[error(
        "{file}: no space left on the disk; free some (compact and defragment, or remove other files)"
    )]
    Full { file: PathBuf },
    #[error(
        "{file}: an earlier write failed ({text}), and what is on the disk since is unknown. Check the disk, then restart this member: it continues from what was synced before"
    )]
    Failed { file: PathBuf, text: String },
    #[error("{file}: {source}")]
    Io { file: PathBuf, source: std::io::Error },
}

pub type Result<T> = std::result::Result<T, Error>;

/// The engine's one small interface. One thread writes (`append`, `put`, `delete`, `commit`,
/// `forget`), one other syncs and collects, any number read; none of them waits for a disk sync
/// that another one asked for.
pub trait Engine: Send + Sync {
    /// Appends a row. Revisions ascend. Readable at once, durable with the commit that follows. The
    /// bytes are held, and handed out, as they are until then.
    fn append(&self, revision: Revision, tombstone: bool, kv: Bytes) -> Result<()>;
    /// Sets a record of a bucket.
    fn put(&self, bucket: Bucket, key: &[u8], value: &[u8]) -> Result<()>;
    /// Removes a record of a bucket.
    fn delete(&self, bucket: Bucket, key: &[u8]) -> Result<()>;
    /// Makes all since the previous commit one unit: after a crash it is there whole or not at all.
    fn commit(&self, commit: Commit) -> Result<()>;
    /// Writes and syncs every commit up to log index `upto` (what the WAL has synced), and returns
    /// the last commit that is durable now. After [`Error::Full`] nothing is lost and it may be
    /// called again; after any other error the engine refuses everything.
    ///
    /// The WAL must keep what follows the commit *before* the one returned here: damage within the
    /// last write looks like a torn tail, and a restart then goes back by one sync.
    fn sync(&self, upto: u64) -> Result<Commit>;

    /// The `KeyValue` encoding stored at a revision; `None` if there is none (or it was forgotten).
    fn read(&self, revision: Revision) -> Result<Option<Bytes>>;
    /// The next rows at or after `from`, in order, at most `rows_max` of them and about
    /// `bytes_max` bytes (at least one row if there is one). Forgotten rows are left out.
    fn rows(&self, from: Revision, rows_max: usize, bytes_max: usize) -> Result<Vec<Row>>;
    /// The checksums of the next rows at or after `from`, at most `rows_max`. Reads no values.
    fn sums(&self, from: Revision, rows_max: usize) -> Vec<RowSum>;
    /// A record of a bucket.
    fn get(&self, bucket: Bucket, key: &[u8]) -> Option<Bytes>;
    /// All records of a bucket, in key order.
    fn bucket(&self, bucket: Bucket) -> Vec<(Bytes, Bytes)>;

    /// Declares rows dead: they are never read again, and `collect` may drop them, once everything
    /// recorded before this call is durable. So record first what makes them dead (the compacted
    /// revision), lest a restart find neither the record nor the rows. After a restart rows that were
    /// not dropped yet are back: forget them again.
    fn forget(&self, revisions: &[Revision]) -> Result<()>;
    /// Rewrites mostly-dead segments, about `bytes_max` bytes of work. `true`: there is more to do.
    /// With `all`, every dead byte counts, the active segment's included (defragmentation); that pass
    /// may wait for a `sync` (and for the end of a commit under way), so call both in turn.
    fn collect(&self, bytes_max: usize, all: bool) -> Result<bool>;
    fn sizes(&self) -> Sizes;

    /// The last commit (at start: the one that survived).
    fn last_commit(&self) -> Commit;
    /// Everything at the last commit, frozen: what a backup reads while writes go on.
    fn snapshot(&self) -> Result<Box<dyn Snapshot>>;
    /// Calls `visit` with every row's head, in revision order. Reads no values.
    fn restore(&self, visit: &mut dyn FnMut(RowHead)) -> Result<()>;
}

/// A frozen view of an engine. Rows that were forgotten before it was taken are not in it; rows
/// forgotten later stay readable here until it is dropped.
pub trait Snapshot: Send {
    fn commit(&self) -> &Commit;
    fn sums(&self, from: Revision, rows_max: usize) -> Vec<RowSum>;
    fn rows(&self, from: Revision, rows_max: usize, bytes_max: usize) -> Result<Vec<Row>>;
    fn bucket(&self, bucket: Bucket) -> Vec<(Bytes, Bytes)>;
}
