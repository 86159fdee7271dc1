//! The thread that makes entries durable: append, sync, say so.
//!
//! While one sync runs, the next entries gather in the inbox, and one sync covers them all.

use crate::inbox::Inbox;
use crate::pulse::Pulse;
use config::log::Logger;
use node::{Event, Persist};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use wal::{SnapshotMark, Wal};

/// What the log's thread is asked to do.
#[derive(Debug)]
pub enum Task {
    Persist(Persist),
    /// A snapshot marker is on disk: record it, so that reading may begin there.
    Mark(SnapshotMark),
    /// Entries up to this index are in the engine for good.
    Release {
        index: u64,
    },
}

/// How often a full disk is tried again.
const FULL_DISK_PATIENCE: Duration = Duration::from_secs(1);

/// How long syncs took, for the metrics.
pub trait SyncObserver: Send + Sync {
    fn synced(&self, took: Duration);
}

pub struct LogWriter {
    pub wal: Wal,
    pub tasks: Arc<Inbox<Task>>,
    pub replica: Arc<Inbox<Event>>,
    pub pulse: Arc<Pulse>,
    /// Up to which index the log is synced: the engine must not go beyond it.
    pub synced: Arc<AtomicU64>,
    pub segments_kept: usize,
    pub observer: Arc<dyn SyncObserver>,
    pub logger: Logger,
}

impl LogWriter {
    /// Runs until the inbox is closed. An error is final: after a failed write or sync nobody
    /// knows what the disk holds, so this member must stop.
    pub fn run(mut self) -> Result<(), wal::Error> {
        let mut tasks = Vec::new();
        while self.tasks.receive(None, &mut tasks) {
            let mut mark = None;
            for task in tasks.drain(..) {
                match task {
                    Task::Persist(persist) => {
                        self.append(&persist)?;
                        mark = Some(persist.mark);
                    }
                    Task::Mark(mark) => self.wal.save_snapshot(&mark)?,
                    Task::Release { index } => {
                        self.wal.release_to(index)?;
                        if self.segments_kept > 0 {
                            self.wal.purge(self.segments_kept)?;
                        }
                    }
                }
            }
            if let Some(mark) = mark {
                let began = Instant::now();
                self.wal.sync()?;
                self.observer.synced(began.elapsed());
                self.synced.store(mark.index(), Ordering::SeqCst);
                self.replica.send(Event::Persisted { mark });
                if !self.wal.reserve_ok() {
                    self.wal.refill_reserve()?;
                }
                self.pulse.set_log_full(!self.wal.reserve_ok());
            }
        }
        self.wal.sync()
    }

    /// Appends; on a full disk, when even the reserve is used up, waits for space.
    fn append(&mut self, persist: &Persist) -> Result<(), wal::Error> {
        loop {
            match self.wal.append(persist.hard_state, &persist.entries) {
                Err(wal::Error::Full { dir }) => {
                    self.pulse.set_log_full(true);
                    config::error!(self.logger,
                        "no space left for the log; nothing can be written until some is freed",
                        "path" => dir.display().to_string());
                    if self.tasks.is_closed() {
                        return Err(wal::Error::Full { dir });
                    }
                    std::thread::sleep(FULL_DISK_PATIENCE);
                }
                appended => return appended,
            }
        }
    }
}
