//! A disk in memory that forgets, tears, fills up and rots, all from one seed.
//!
//! Every file has two images: what was *written*, which is what reads see, and what is *durable*. In
//! between stand the versions of each sector, and of the length, since the last sync. Directories
//! are kept in the same way: names as they are, names as they would be found, and the changes
//! in between.
//!
//! - [`SimDisk::crash`]: each sector that was not synced goes back to its durable content or to any
//!   of the versions since, independent of all others; a sector is never half of one and half of
//!   another. Names that were not synced appear as a journal would leave them: the changes
//!   of a directory up to some point.
//! - [`SimDisk::kill`]: only the process dies; nothing is lost, locks are released.
//! - [`SimDisk::power_off_in`]: the power fails before the n-th change from now. Everything fails from
//!   there on, until `crash`: this reaches the steps in the middle of an operation.
//! - [`SimDisk::fail_sync_in`]: a sync fails, and what it was to make durable is no longer known to be
//!   unsynced: the next sync succeeds without it, as on Linux.
//! - [`SimDisk::set_capacity`], [`SimDisk::rot`], [`SimDisk::zero_sector`], [`SimDisk::lie`].
//!
//! After a crash or a kill, files that were open are dead: all they do fails.

mod image;
mod tree;

use crate::{Disk, File, Open};
use image::{Content, SECTOR_BYTES};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tree::{Node, NodeId, Tree};

/// Clones share the same disk.
#[derive(Clone)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
}

struct State {
    random: Random,
    tree: Tree,
    /// Counts crashes and kills. A handle of an earlier one is dead.
    epoch: u64,
    handles: u64,
    capacity: Option<u64>,
    lying: bool,
    /// Changes so far.
    changes: u64,
    power_off_at: Option<u64>,
    syncs_until_failure: Option<u64>,
}

struct SimFile {
    disk: SimDisk,
    node: NodeId,
    epoch: u64,
    handle: u64,
    writable: bool,
}

impl SimDisk {
    pub fn new(seed: u64) -> SimDisk {
        let state = State {
            random: Random(seed),
            tree: Tree::default(),
            epoch: 0,
            handles: 0,
            capacity: None,
            lying: false,
            changes: 0,
            power_off_at: None,
            syncs_until_failure: None,
        };
        SimDisk { state: Arc::new(Mutex::new(state)) }
    }

    /// The machine loses power and starts again. What was not synced survives or not, by the seed.
    pub fn crash(&self) {
        let mut state = self.state();
        state.restart();
        let State { tree, random, .. } = &mut *state;
        tree.crash(|versions| random.below(versions + 1));
    }

    /// The same, but nothing that was not synced survives.
    pub fn crash_losing_all(&self) {
        let mut state = self.state();
        state.restart();
        state.tree.crash(|_| 0);
    }

    /// Only the process dies.
    pub fn kill(&self) {
        let mut state = self.state();
        state.restart();
        state.tree.kill();
    }

    /// Lets `changes` more changes (writes, lengths, names, syncs) happen, and then none until the
    /// next [`SimDisk::crash`].
    pub fn power_off_in(&self, changes: u64) {
        let mut state = self.state();
        state.power_off_at = Some(state.changes + changes);
    }

    /// How many changes there have been.
    pub fn changes(&self) -> u64 {
        self.state().changes
    }

    /// Lets `syncs` more syncs succeed and the one after them fail.
    pub fn fail_sync_in(&self, syncs: u64) {
        self.state().syncs_until_failure = Some(syncs);
    }

    /// Bounds the space of all files together.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.state().capacity = bytes;
    }

    /// The space that all files take now.
    pub fn used(&self) -> u64 {
        self.state().tree.space()
    }

    /// From now on syncs succeed and do nothing, or work again.
    pub fn lie(&self, lying: bool) {
        self.state().lying = lying;
    }

    /// Flips the bits of `mask` in one byte, for good.
    pub fn rot(&self, path: &Path, offset: u64, mask: u8) -> io::Result<()> {
        self.state().content(path)?.damage(offset, |sector| {
            sector[(offset % SECTOR_BYTES) as usize] ^= mask;
        });
        Ok(())
    }

    /// Zeroes the sector around `offset`, for good.
    pub fn zero_sector(&self, path: &Path, offset: u64) -> io::Result<()> {
        self.state().content(path)?.damage(offset, |sector| sector.fill(0));
        Ok(())
    }

    /// The whole content of a file, as reads see it.
    pub fn content(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut state = self.state();
        let content = state.content(path)?;
        let mut bytes = vec![0; content.len() as usize];
        content.read(&mut bytes, 0);
        Ok(bytes)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A test that panics elsewhere may still want to look at its disk.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn restart(&mut self) {
        self.epoch += 1;
        self.power_off_at = None;
        self.syncs_until_failure = None;
    }

    fn content(&mut self, path: &Path) -> io::Result<&mut Content> {
        let node = self.tree.find(path)?;
        self.tree.file(node)
    }

    /// Counts a change; an error if the power is off.
    fn change(&mut self) -> io::Result<()> {
        if self.power_off_at == Some(self.changes) {
            return Err(io::Error::other("the power is off"));
        }
        self.changes += 1;
        Ok(())
    }

    /// Whether the sync that is about to happen is to happen.
    fn sync(&mut self) -> io::Result<SyncFate> {
        self.change()?;
        match &mut self.syncs_until_failure {
            Some(0) => {
                self.syncs_until_failure = None;
                return Ok(SyncFate::Fails);
            }
            Some(left) => *left -= 1,
            None => {}
        }
        Ok(if self.lying { SyncFate::Lies } else { SyncFate::Works })
    }

    fn check_space(&mut self, node: NodeId, grown: impl Fn(&Content) -> u64) -> io::Result<()> {
        let Some(capacity) = self.capacity else { return Ok(()) };
        let used = self.tree.space();
        let content = self.tree.file(node)?;
        let more = grown(content).saturating_sub(content.space());
        if more > 0 && used + more > capacity {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }
}

enum SyncFate {
    Works,
    Fails,
    Lies,
}

fn sync_failed() -> io::Error {
    // EIO
    io::Error::from_raw_os_error(5)
}

impl Disk for SimDisk {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn File>> {
        let mut state = self.state();
        let node = match (state.tree.find(path), how) {
            (Ok(_), Open::CreateNew) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Ok(node), _) => node,
            (Err(error), Open::CreateNew | Open::Create)
                if error.kind() == io::ErrorKind::NotFound =>
            {
                state.change()?;
                state.tree.create(path, Node::File(Content::default()))?
            }
            (Err(error), _) => return Err(error),
        };
        state.tree.file(node)?;
        state.tree.hold(node);
        state.handles += 1;
        Ok(Arc::new(SimFile {
            disk: self.clone(),
            node,
            epoch: state.epoch,
            handle: state.handles,
            writable: how != Open::Read,
        }))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.change()?;
        state.tree.create_dir_all(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.state().tree.list(dir)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        Ok(self.state().tree.find(path).is_ok())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.change()?;
        state.tree.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.change()?;
        let node = state.tree.find(path)?;
        state.tree.file(node)?;
        state.tree.unlink(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.change()?;
        state.tree.unlink(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.state();
        match state.sync()? {
            SyncFate::Works => state.tree.sync_dir(dir),
            SyncFate::Lies => Ok(()),
            SyncFate::Fails => Err(sync_failed()),
        }
    }
}

impl SimFile {
    fn state(&self) -> io::Result<MutexGuard<'_, State>> {
        let state = self.disk.state();
        if state.epoch == self.epoch {
            Ok(state)
        } else {
            Err(io::Error::other("the file was opened before the crash"))
        }
    }

    fn change(&self) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.state()?;
        if !self.writable {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        state.change()?;
        Ok(state)
    }
}

impl File for SimFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        Ok(self.state()?.tree.file(self.node)?.read(buf, offset))
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.change()?;
        state.check_space(self.node, |content| content.space_after_write(data.len(), offset))?;
        state.tree.file(self.node)?.write(data, offset);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.change()?;
        state.tree.file(self.node)?.set_len(len);
        Ok(())
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        let mut state = self.change()?;
        state.check_space(self.node, |content| content.space_after_allocate(len))?;
        state.tree.file(self.node)?.allocate(len);
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.state()?.tree.file(self.node)?.len())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.state()?;
        let fate = state.sync()?;
        let State { tree, random, .. } = &mut *state;
        let content = tree.file(self.node)?;
        match fate {
            SyncFate::Works => content.sync(),
            SyncFate::Lies => {}
            SyncFate::Fails => {
                content.settle(|versions| random.below(versions + 1));
                return Err(sync_failed());
            }
        }
        Ok(())
    }

    fn try_lock(&self) -> io::Result<bool> {
        let mut state = self.state()?;
        let lock = &mut state.tree.file(self.node)?.lock;
        Ok(*lock.get_or_insert(self.handle) == self.handle)
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        let Ok(mut state) = self.state() else { return };
        if let Ok(content) = state.tree.file(self.node)
            && content.lock == Some(self.handle)
        {
            content.lock = None;
        }
        state.tree.let_go(self.node);
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    /// A number below `bound`, which must not be 0.
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        (mixed % bound as u64) as usize
    }
}
