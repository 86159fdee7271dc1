//! How segments follow one another: the reserve that waits, the cut, and the end of old ones.
//!
//! ```text
//!   released | held ......... tail | reserve
//!   may go     needed, locked        the next tail, with its space, under a temporary name
//! ```
//!
//! The reserve makes a cut cheap, and it keeps writes going for a while on a full disk: whoever asks
//! [`Wal::reserve_ok`] hears of the full disk one segment before it hurts.

use crate::log::{Held, Wal, full_or_io, lock};
use crate::segment::Name;
use crate::{Error, Result, at};
use disk::{File, Open};
use std::sync::Arc;

/// The reserve's name until it is cut in.
const RESERVE: &str = "0.tmp";

/// etcd alternates between two names, and may have left a segment under this one.
const OTHER_RESERVE: &str = "1.tmp";

impl Wal {
    /// Gives up the segments that are not needed to start from a snapshot at `index`.
    pub fn release_to(&mut self, index: u64) -> Result<()> {
        self.check()?;
        let needed = self.held.iter().rposition(|held| held.name.index < index).unwrap_or(0);
        self.released.extend(self.held.drain(..needed).map(|held| held.name));
        self.places.forget_before(self.held[0].name.sequence);
        Ok(())
    }

    /// Removes segments that were given up, as long as `keep` segments remain in all. Returns how
    /// many went.
    pub fn purge(&mut self, keep: usize) -> Result<usize> {
        self.check()?;
        let surplus = (self.released.len() + self.held.len()).saturating_sub(keep);
        let count = surplus.min(self.released.len());
        for _ in 0..count {
            let path = self.released[0].path(&self.dir);
            self.disk.remove(&path).map_err(at(&path))?;
            self.released.remove(0);
        }
        if count > 0 {
            self.disk.sync_dir(&self.dir).map_err(at(&self.dir))?;
        }
        Ok(count)
    }

    /// Whether the next segment has its space already. If not, the disk is full: the tail still has
    /// room, but from now on only what frees space should be let in.
    pub fn reserve_ok(&self) -> bool {
        self.reserve.is_some()
    }

    /// Tries to get space for the next segment, if it has none; a full disk is no error.
    pub fn refill_reserve(&mut self) -> Result<bool> {
        self.check()?;
        if self.reserve.is_some() {
            return Ok(true);
        }
        match self.prepare() {
            Ok(file) => {
                self.reserve = Some(file);
                Ok(true)
            }
            Err(Error::Full { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Sees to it that the tail takes `bytes` more and has the space for them. Changes nothing but
    /// segments, so that a full disk leaves the log as it was.
    pub(crate) fn make_room(&mut self, bytes: usize) -> Result<()> {
        let end = self.offset + bytes as u64;
        if end <= self.allocated && end <= self.options.segment_bytes {
            return Ok(());
        }
        if self.offset > self.head_end {
            self.cut()?;
        }
        // One append that is larger than a segment makes a larger segment.
        let end = self.offset + bytes as u64;
        if end > self.allocated {
            let path = self.tail().name.path(&self.dir);
            let result = self.tail().file.allocate(end);
            result.map_err(|error| full_or_io(error, &self.dir, &path))?;
            self.allocated = end;
        }
        Ok(())
    }

    /// Closes the tail and goes on in the reserve.
    fn cut(&mut self) -> Result<()> {
        let file = match self.reserve.take() {
            Some(file) => file,
            None => self.prepare()?,
        };
        // The old segment must be whole before the new one is seen: only the last may be torn.
        let tail = self.tail().file.clone();
        let closed = tail.set_len(self.offset).and_then(|()| tail.sync());
        self.or_fail(closed)?;
        self.dirty = false;

        let name = Name { sequence: self.tail().name.sequence + 1, index: self.last_index + 1 };
        let path = name.path(&self.dir);
        self.encode_head();
        let named = (|| {
            file.write_at(&self.buffer, 0)?;
            file.sync()?;
            self.disk.rename(&self.dir.join(RESERVE), &path)?;
            self.disk.sync_dir(&self.dir)
        })();
        self.or_fail(named)?;
        self.offset = self.buffer.len() as u64;
        self.head_end = self.offset;
        self.allocated = self.options.segment_bytes;
        self.held.push(Held { name, file });
        self.refill_reserve()?;
        Ok(())
    }

    /// Makes a segment ready under its temporary name.
    fn prepare(&self) -> Result<Arc<dyn File>> {
        let path = self.dir.join(RESERVE);
        let prepared = (|| {
            for left in [&path, &self.dir.join(OTHER_RESERVE)] {
                if self.disk.exists(left)? {
                    self.disk.remove(left)?;
                }
            }
            let file = self.disk.open(&path, Open::CreateNew)?;
            file.allocate(self.options.segment_bytes)?;
            Ok(file)
        })();
        match prepared {
            Ok(file) => {
                lock(&*file, &path)?;
                Ok(file)
            }
            Err(error) => {
                // What space it got is worth more to others. If even this fails, `open` tries again.
                let _ = self.disk.remove(&path);
                Err(full_or_io(error, &self.dir, &path))
            }
        }
    }
}
