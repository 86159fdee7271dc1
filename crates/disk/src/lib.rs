//! Files, as the log and the engine see them.
//!
//! In:  create, write at an offset, set the length, sync, rename, remove.
//! Out: bytes, names, and the errors of the world (full, failed, gone).
//!
//! `wal` and `engine` reach the disk only through [`Disk`], so that the same code runs on a real
//! file system ([`RealDisk`]) and on a simulated one ([`SimDisk`]) that loses, tears and rots what it
//! was given.
//!
//! What is promised is what POSIX promises and no more: a write is durable after `sync` of its
//! file; a created, renamed or removed name is durable after `sync_dir` of its directory.

mod real;
mod sim;

pub use real::RealDisk;
pub use sim::SimDisk;

use std::io;
use std::path::Path;
use std::sync::Arc;

/// How a file is to be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// The file must exist; only read.
    Read,
    /// The file must exist; read and write.
    Write,
    /// The file must not exist; create it, read and write.
    CreateNew,
    /// Create it if need be, keep what is there, read and write.
    Create,
}

/// A directory tree.
pub trait Disk: Send + Sync + 'static {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn File>>;
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;
    /// The names in a directory, sorted.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;
    fn exists(&self, path: &Path) -> io::Result<bool>;
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Removes a directory and all below it.
    fn remove_dir_all(&self, path: &Path) -> io::Result<()>;
    /// Makes the names in a directory durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
}

/// An open file. All methods take `&self`: offsets are explicit, there is no cursor.
#[allow(clippy::len_without_is_empty, reason = "nobody asks a file whether it is empty")]
pub trait File: Send + Sync {
    /// Reads up to `buf.len()` bytes; fewer only at the end of the file.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes all of `data`, growing the file if need be.
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()>;
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Reserves space up to `len`, so that later writes below it cannot fail for want of it. The
    /// length becomes at least `len`, and the new part reads as zeros.
    fn allocate(&self, len: u64) -> io::Result<()>;
    fn len(&self) -> io::Result<u64>;
    /// Makes the content and the length durable.
    fn sync(&self) -> io::Result<()>;
    /// Takes an exclusive lock on the file, which must be open for writing, until it is closed;
    /// `false` if someone else holds it. It is the lock that etcd takes on its log.
    fn try_lock(&self) -> io::Result<bool>;
}

impl dyn File + '_ {
    /// Reads exactly `buf.len()` bytes, or fails with `UnexpectedEof`.
    pub fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let mut done = 0;
        while done < buf.len() {
            match self.read_at(&mut buf[done..], offset + done as u64)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                n => done += n,
            }
        }
        Ok(())
    }
}
