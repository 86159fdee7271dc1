//! Space set aside for the day the disk is full.
//!
//! A preallocated file that holds nothing. When a write finds no space, the file is removed and the
//! write repeated: the space of one segment is enough for the alarm, for deletes, for a compaction
//! and for the collection that frees the rest. It comes back when there is space again.

use disk::{Disk, Open};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) struct Reserve {
    path: PathBuf,
    bytes: u64,
    held: AtomicBool,
}

pub(crate) const RESERVE_NAME: &str = "reserve";

impl Reserve {
    pub fn new(dir: &Path, bytes: u64) -> Reserve {
        Reserve { path: dir.join(RESERVE_NAME), bytes, held: AtomicBool::new(false) }
    }

    /// Whether the space is set aside (or none was asked for).
    pub fn held(&self) -> bool {
        self.bytes == 0 || self.held.load(Ordering::Relaxed)
    }

    /// Sets the space aside, if it is not. No space for it is no error: `held` tells.
    pub fn fill(&self, disk: &dyn Disk) -> io::Result<()> {
        if self.held() {
            return Ok(());
        }
        let filled = disk.open(&self.path, Open::Create).and_then(|file| file.allocate(self.bytes));
        match filled {
            Ok(()) => self.held.store(true, Ordering::Relaxed),
            Err(e) if is_full(&e) => self.remove(disk)?,
            Err(e) => return Err(e),
        }
        Ok(())
    }

    /// Runs a write; if the disk is full, gives the reserve up and runs it once more.
    pub fn lend<T>(
        &self,
        disk: &dyn Disk,
        mut write: impl FnMut() -> io::Result<T>,
    ) -> io::Result<T> {
        match write() {
            Err(e) if is_full(&e) && self.held.swap(false, Ordering::Relaxed) => {
                self.remove(disk)?;
                write()
            }
            done => done,
        }
    }

    fn remove(&self, disk: &dyn Disk) -> io::Result<()> {
        match disk.remove(&self.path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }
}

pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
