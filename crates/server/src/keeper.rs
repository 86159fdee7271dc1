//! The thread that keeps the engine in order: makes commits durable, marks snapshots, collects
//! what is dead, and checks old rows for damage.
//!
//! Nobody waits for it: a write is safe in the log before it comes here. But until a commit is
//! durable the log must keep its entries, so this thread decides what the log may forget.

use crate::inbox::Inbox;
use crate::log_writer::Task;
use crate::office::Housekeeping;
use crate::pulse::Pulse;
use crate::snapshot_marker;
use config::log::Logger;
use disk::Disk;
use engine::{Commit, Engine, LogEngine};
use metrics::Metrics;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use store::View;
use wal::SnapshotMark;

/// Bytes that one step of collection may move: a few milliseconds of a disk's time.
const COLLECT_BYTES: usize = 1 << 20;
/// Steps between two syncs.
const COLLECT_STEPS: usize = 4;
/// Bytes of old rows that are checked in each round; a gigabyte takes about half an hour.
const SCRUB_BYTES: usize = 64 << 10;

/// What others ask of the keeper.
pub enum Errand {
    Defragment(mpsc::Sender<Result<(), engine::Error>>),
    /// Much has changed: do not wait for the interval to end.
    Sync,
    /// Make everything durable and end.
    Stop,
}

pub struct Keeper {
    pub engine: Arc<LogEngine>,
    pub view: View,
    pub disk: Arc<dyn Disk>,
    pub snap_dir: PathBuf,
    pub errands: Arc<Inbox<Errand>>,
    pub log: Arc<Inbox<Task>>,
    /// How far the log is synced. The engine never goes beyond it.
    pub synced: Arc<AtomicU64>,
    pub interval: Duration,
    pub snapshot_count: u64,
    pub catch_up_entries: u64,
    pub snapshots_kept: usize,
    pub last_mark: u64,
    pub pulse: Arc<Pulse>,
    pub metrics: Arc<Metrics>,
    pub logger: Logger,
}

impl Keeper {
    /// Runs until it is told to stop. An error is damage or a failed disk: this member must stop.
    pub fn run(mut self) -> Result<(), engine::Error> {
        let mut errands = Vec::new();
        let mut durable = self.engine.last_commit();
        let mut collecting = true;
        loop {
            self.errands.receive(Some(self.interval), &mut errands);
            let stop = errands.iter().any(|errand| matches!(errand, Errand::Stop));
            // Damage to the very last write looks like a torn one, so after a restart the engine
            // may be one sync behind: what the log may forget is decided by the one before.
            let before = durable.clone();
            durable = self.sync(durable)?;
            for errand in errands.drain(..) {
                if let Errand::Defragment(done) = errand {
                    // Whoever asked may have gone.
                    let _gone = done.send(self.defragment());
                    collecting = true;
                }
            }
            if stop {
                return Ok(());
            }
            self.mark_snapshot(&before);
            for _ in 0..COLLECT_STEPS {
                collecting = collecting && self.engine.collect(COLLECT_BYTES, false)?;
            }
            collecting |= self.view.compaction_finished() == self.view.compacted();
            self.engine.scrub(SCRUB_BYTES)?;
            if !self.engine.reserve_ok() {
                self.engine.refill_reserve()?;
            }
            self.pulse.set_store_full(!self.engine.reserve_ok());
        }
    }

    fn sync(&self, durable: Commit) -> Result<Commit, engine::Error> {
        if self.engine.last_commit().index == durable.index {
            return Ok(durable);
        }
        let began = Instant::now();
        match self.engine.sync(self.synced.load(Ordering::SeqCst)) {
            // Nothing is lost: it is in the log, and the sync is tried again.
            Err(engine::Error::Full { file }) => {
                config::error!(self.logger, "no space left for the store; free some, then writes go on",
                    "path" => file.display().to_string());
                Ok(durable)
            }
            synced => {
                self.metrics.disk.backend_commit.took(began.elapsed());
                synced
            }
        }
    }

    /// Every so many entries a snapshot is marked, as etcd's tools expect it, and the log may
    /// forget what is older than it, but for some entries that a slow member may still ask for.
    fn mark_snapshot(&mut self, durable: &Commit) {
        if durable.index < self.last_mark + self.snapshot_count {
            return;
        }
        config::info!(self.logger, "triggering snapshot",
            "local-member-applied-index" => durable.index,
            "local-member-snapshot-index" => self.last_mark,
            "local-member-snapshot-count" => self.snapshot_count);
        let snapshot = snapshot_marker::describe(&self.view, durable);
        if let Err(error) = wal::snap::write(&*self.disk, &self.snap_dir, &snapshot) {
            // The log just keeps more than it needs to. Tried again in the next round.
            config::warn!(self.logger, "cannot write a snapshot marker", "error" => %error);
            return;
        }
        let mark = SnapshotMark {
            index: snapshot.index,
            term: snapshot.term,
            conf_state: Some(snapshot.conf_state),
        };
        let release = mark.index.saturating_sub(self.catch_up_entries);
        self.last_mark = mark.index;
        config::info!(self.logger, "saved snapshot to disk", "snapshot-index" => mark.index);
        self.log.send_all([Task::Mark(mark), Task::Release { index: release }]);
        if self.snapshots_kept > 0 {
            let purged = wal::snap::purge(&*self.disk, &self.snap_dir, self.snapshots_kept);
            if let Err(error) = purged {
                config::warn!(self.logger, "cannot remove old snapshot markers", "error" => %error);
            }
        }
    }

    fn defragment(&self) -> Result<(), engine::Error> {
        let began = Instant::now();
        let before = self.engine.sizes();
        config::info!(self.logger, "defragmenting",
            "current-db-size-bytes" => before.total,
            "current-db-size" => config::humanise(before.total),
            "current-db-size-in-use-bytes" => before.in_use,
            "current-db-size-in-use" => config::humanise(before.in_use));
        // Rows leave the disk only when what made them dead is durable, so both take turns.
        loop {
            self.engine.sync(self.synced.load(Ordering::SeqCst))?;
            if !self.engine.collect(COLLECT_BYTES, true)? {
                break;
            }
        }
        let after = self.engine.sizes();
        config::info!(self.logger, "finished defragmenting directory",
            "current-db-size-bytes-diff" => after.total as i64 - before.total as i64,
            "current-db-size-bytes" => after.total,
            "current-db-size" => config::humanise(after.total),
            "current-db-size-in-use-bytes-diff" => after.in_use as i64 - before.in_use as i64,
            "current-db-size-in-use-bytes" => after.in_use,
            "current-db-size-in-use" => config::humanise(after.in_use),
            "took" => began.elapsed());
        self.metrics.disk.backend_defrag.took(began.elapsed());
        Ok(())
    }
}

/// How the office reaches the keeper.
pub struct KeeperDoor(pub Arc<Inbox<Errand>>);

impl Housekeeping for KeeperDoor {
    fn defragment(&self) -> Result<(), engine::Error> {
        let (done, wait) = mpsc::channel();
        self.0.send(Errand::Defragment(done));
        // A keeper that has ended took the process with it, or is about to.
        wait.recv().unwrap_or(Ok(()))
    }
}
