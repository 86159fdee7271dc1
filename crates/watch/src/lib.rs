//! The watch table: who wants to hear of which keys, and what each of them is told.
//!
//! In:  requests of watch streams, changes in revision order, ticks, and which streams are full.
//! Out: [`Delivery`]s, each one `WatchResponse` for one stream, in the order they are to be sent.
//!
//! One table serves the streams of one I/O thread, so there is no lock here, and no socket, clock
//! or thread: the owner of the table has them. It also asks `auth` before a create is passed on
//! ([`Watches::refuse`] answers for it), ends streams without a leader, and keeps the queue of what
//! is still to be sent. Old changes are asked of the store through [`History`].
//!
//! A watcher is *synced* (it has been sent everything up to the known revision) or *lagging* (it
//! needs history first, from its `next` revision on). A lagging watcher holds no events, only that
//! number, so a stream that nobody reads costs no memory however much is written meanwhile.
//!
//! ```text
//!            create, start in the past                    stream full, or snapshot installed
//!                      │                                 ┌────────────────────┐
//!                      ▼                                 ▼                    │
//!   compaction ◄── lagging ──── catch_up has sent all ────────────────────► synced ◄── create
//!   passed it:                  up to the known revision                      │
//!   ended                                                         changed() sends at once
//! ```
//!
//! Always true: a watcher is sent each matching event from its start on once, in revision order,
//! all events of a revision in one response (or one group of fragments), or it is told that
//! compaction has passed it. An event is encoded once, however many watchers are sent it.

mod batch;
mod catch_up;
mod deliver;
mod groups;
mod history;
mod intervals;
mod lagging;
mod response;
mod slots;
mod table;

pub use history::{History, HistoryError};
pub use table::Watches;

use bytes::Bytes;

/// The owner's name for one of its watch streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamKey(pub u64);

/// One `WatchResponse` for one stream, in two pieces that are to be sent one behind the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    pub stream: StreamKey,
    /// Header, watch id and flags: the few bytes that are this watcher's own.
    pub head: Bytes,
    /// The tagged `events` fields, shared by all watchers that are sent the same. May be empty.
    pub events: Bytes,
}

/// Who answers, and the limits of the answers.
#[derive(Clone, Debug)]
pub struct Config {
    pub cluster_id: u64,
    pub member_id: u64,
    /// A response of this size or more is split, if the watcher asked for that.
    pub fragment_bytes: usize,
    /// Between two periodic progress notifications of a stream, before its jitter is added.
    pub progress_interval_ms: u64,
    /// How much one step of [`Watches::catch_up`] does at most.
    pub catch_up_revisions_max: usize,
    pub catch_up_bytes_max: usize,
    pub catch_up_watchers_max: usize,
    /// What one call hands to one stream before the rest of its watchers lag: a bound on what can
    /// be added to a queue before its owner has a chance to say that it is full.
    pub stream_bytes_max: usize,
}

impl Config {
    /// etcd's defaults.
    pub fn new(cluster_id: u64, member_id: u64) -> Config {
        Config {
            cluster_id,
            member_id,
            fragment_bytes: 1_572_864 + 524_288,
            progress_interval_ms: 600_000,
            catch_up_revisions_max: 1000,
            catch_up_bytes_max: 1 << 20,
            catch_up_watchers_max: 512,
            stream_bytes_max: 4 << 20,
        }
    }
}

/// For the metrics `etcd_debugging_mvcc_*`. There is no count of pending events, because a lagging
/// watcher holds none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub streams: usize,
    /// All that have not ended.
    pub watchers: usize,
    /// Of these, the lagging ones.
    pub slow_watchers: usize,
    /// Events sent since the start, counted once for each watcher that was sent them.
    pub events_total: u64,
}
