//! The shell that gives a replica its clock, its disk and its sockets.
//!
//! In:  a configuration, a data directory, connections. Out: answers.
//!
//! Nothing is decided here that another room could decide without a socket. What is here is
//! threads and what goes between them:
//!
//! ```text
//!  sockets ─► desks ─► replica ─► log writer ─► replica ─► applier ─► desks ─► sockets
//!             (reads run here)    (fsync)                  (store)
//!               │                                             │
//!             office (locks, elections, backups, HTTP)      keeper (engine's durability)
//! ```
//!
//! Between threads go bundles of letters, and one wake-up for each bundle: no task, no channel and
//! no lock for a single put or get.
//!
//! Always true: a write is answered after the log is synced and the store has applied it. A thread
//! that meets damage or a failed disk ends the process; it never goes on.

mod applier;
mod desk;
mod http;
mod inbox;
mod keeper;
mod listen;
mod log_writer;
mod mail;
mod member;
mod method;
mod notices;
mod office;
mod open;
mod pulse;
mod replica;
mod serve;
mod snapshot_marker;
mod threads;

pub use serve::run;
