//! The append-only revision log on a disk.
//!
//! ```text
//!  writer ──► state (rows' places, tables, batches to write) ◄── readers ──► segment files
//!                      │ sync(upto)                                             ▲
//!                      └──────────────► active segment ──cut──► sealed ──collect┘
//! ```
//!
//! The writer decides where every record will stand, so a row's place is final when it is appended;
//! `sync` only fills the file up to there. A segment is cut at a commit, and the next one begins with
//! a checkpoint of all tables and that commit: whatever an older segment says besides its rows is
//! dead from then on. So of sealed segments only the rows matter, and they can be rewritten one by
//! one, in order.
//!
//! Files: `<sequence>.seg`, `<sequence>.hint` (see `hint`), `lock`, `reserve`; `*.tmp` is unfinished
//! work and is removed at the next start. A name without `.tmp` appears only when its content is
//! durable.
//!
//! Always true: the lock on the state is never held across a read, a write or a sync.

mod cache;
mod collect;
mod hint;
mod read;
mod record;
mod recover;
mod reserve;
mod scan;
mod segment;
mod state;
mod sync;

use crate::{
    Bucket, Commit, Engine, Error, Result, Revision, Row, RowHead, RowSum, Sizes, Snapshot,
};
use bytes::Bytes;
use cache::Cache;
use collect::Collector;
use disk::{Disk, File};
use parking_lot::{Mutex, RwLock};
pub(crate) use record::put_bytes;
use reserve::Reserve;
use state::State;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use sync::Syncer;

/// What an operator may tune.
#[derive(Clone, Debug)]
pub struct Options {
    /// A segment is cut at the first commit beyond this size.
    pub segment_bytes: u64,
    /// The cache of hot values.
    pub cache_bytes: usize,
    /// Space set aside for a full disk; 0 for none.
    pub reserve_bytes: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options { segment_bytes: 64 << 20, cache_bytes: 32 << 20, reserve_bytes: 64 << 20 }
    }
}

/// The engine on a disk. Cheap to share: wrap it in an `Arc`.
pub struct LogEngine {
    shared: Arc<Shared>,
}

/// What the engine and its snapshots hold together.
struct Shared {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    options: Options,
    state: RwLock<State>,
    cache: Cache,
    reserve: Reserve,
    syncer: Mutex<Syncer>,
    durable_commits: AtomicU64,
    collector: Mutex<Collector>,
    /// Set when the disk refused a sync: what is on it is unknown from then on.
    failed: OnceLock<(PathBuf, String)>,
    /// Held as long as the engine lives.
    _lock: Arc<dyn File>,
}

impl LogEngine {
    /// Opens the engine in `dir`, creating it if it is not there, and recovers what survived.
    pub fn open(disk: Arc<dyn Disk>, dir: &Path, mut options: Options) -> Result<LogEngine> {
        // Offsets have 32 bits, and a segment is cut only at the end of a commit.
        options.segment_bytes = options.segment_bytes.min(1 << 30);
        Ok(LogEngine { shared: Arc::new(recover::open(disk, dir, options)?) })
    }

    /// Whether there is space in reserve for a full disk. If not, writes should be refused (the
    /// NOSPACE alarm) while there still is room to recover.
    pub fn reserve_ok(&self) -> bool {
        self.shared.reserve.held()
    }

    /// Sets that space aside again, if there is enough; `collect` does the same when it has freed
    /// some. For a slow timer, when other files may have left the disk. Returns `reserve_ok`.
    pub fn refill_reserve(&self) -> Result<bool> {
        self.shared.alive()?;
        self.shared.fill_reserve()?;
        Ok(self.reserve_ok())
    }

    /// Checks the checksums of about `bytes_max` bytes of values, where the last call ended.
    /// `false`: a round is complete.
    pub fn scrub(&self, bytes_max: usize) -> Result<bool> {
        self.shared.alive()?;
        self.shared.scrub(bytes_max)
    }
}

impl Engine for LogEngine {
    fn append(&self, revision: Revision, tombstone: bool, kv: Bytes) -> Result<()> {
        self.shared.alive()?;
        let sum = RowSum::of(revision, tombstone, &kv);
        self.shared.state.write().append(sum, kv);
        Ok(())
    }

    fn put(&self, bucket: Bucket, key: &[u8], value: &[u8]) -> Result<()> {
        self.shared.alive()?;
        self.shared.state.write().put(bucket, key, value);
        Ok(())
    }

    fn delete(&self, bucket: Bucket, key: &[u8]) -> Result<()> {
        self.shared.alive()?;
        self.shared.state.write().delete(bucket, key);
        Ok(())
    }

    fn commit(&self, commit: Commit) -> Result<()> {
        self.shared.alive()?;
        self.shared.state.write().commit(commit, self.shared.options.segment_bytes);
        Ok(())
    }

    fn sync(&self, upto: u64) -> Result<Commit> {
        self.shared.alive()?;
        self.shared.sync(upto)
    }

    fn read(&self, revision: Revision) -> Result<Option<Bytes>> {
        self.shared.alive()?;
        self.shared.read(revision)
    }

    fn rows(&self, from: Revision, rows_max: usize, bytes_max: usize) -> Result<Vec<Row>> {
        self.shared.alive()?;
        self.shared.rows(from, rows_max, bytes_max)
    }

    fn sums(&self, from: Revision, rows_max: usize) -> Vec<RowSum> {
        self.shared.state.read().sums(from, rows_max)
    }

    fn get(&self, bucket: Bucket, key: &[u8]) -> Option<Bytes> {
        self.shared.state.read().buckets.now().get(bucket, key).cloned()
    }

    fn bucket(&self, bucket: Bucket) -> Vec<(Bytes, Bytes)> {
        self.shared.state.read().buckets.now().records(bucket)
    }

    fn forget(&self, revisions: &[Revision]) -> Result<()> {
        self.shared.alive()?;
        // In steps, so that no reader waits for a long list.
        for some in revisions.chunks(512) {
            self.shared.state.write().forget(some);
        }
        Ok(())
    }

    fn collect(&self, bytes_max: usize, all: bool) -> Result<bool> {
        self.shared.alive()?;
        self.shared.collect(bytes_max, all)
    }

    fn sizes(&self) -> Sizes {
        self.shared.state.read().sizes()
    }

    fn last_commit(&self) -> Commit {
        self.shared.state.read().last.clone()
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot>> {
        self.shared.alive()?;
        Ok(Box::new(read::LogSnapshot::take(&self.shared)))
    }

    fn restore(&self, visit: &mut dyn FnMut(RowHead)) -> Result<()> {
        self.shared.alive()?;
        self.shared.restore(visit)
    }
}

impl Shared {
    /// Refuses everything after a failed sync: the system may have dropped what it could not write,
    /// so a second try could succeed without the data.
    fn alive(&self) -> Result<()> {
        match self.failed.get() {
            None => Ok(()),
            Some((file, text)) => Err(Error::Failed { file: file.clone(), text: text.clone() }),
        }
    }

    /// Remembers that the disk has failed us, for good.
    fn fail(&self, file: &Path, source: io::Error) -> Error {
        let _ = self.failed.set((file.to_path_buf(), source.to_string()));
        Error::Io { file: file.to_path_buf(), source }
    }

    /// An error of a write that can be repeated if the disk was only full.
    fn write_error(&self, file: &Path, source: io::Error) -> Error {
        if reserve::is_full(&source) {
            return Error::Full { file: file.to_path_buf() };
        }
        self.fail(file, source)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    fn segment_path(&self, seq: u64) -> PathBuf {
        self.path(&segment::segment_name(seq))
    }
}

/// An error of the world that leaves everything as it was.
fn io_error(file: &Path) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::Io { file: file.to_path_buf(), source }
}
