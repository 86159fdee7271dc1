//! The Raft algorithm, as etcd speaks it: who leads, what is committed, who votes.
//!
//! In:  ticks, proposals, "persisted up to here", "applied up to here".
//! Out: [`Ready`]: what to persist, what to apply, what changed.
//!
//! No I/O, no clock, no thread, no random number but from the seed it was given: the same calls give
//! the same answers. The disk write runs while this room goes on; nothing waits for it here.
//! It reads no entry's data but that of configuration changes, which the caller decodes and hands
//! back with [`Raft::apply_conf_change`]. A member that is the only voter takes the same path as any
//! other: it votes for itself, appends, and commits what a quorum, itself, has persisted.
//!
//! Always true:
//! - an own vote counts once it is persisted, or a crash could make room for a second one;
//! - an entry is committed only when a quorum has persisted it, and one of an earlier term only
//!   together with one of the current term;
//! - an entry is handed out to be applied once, in order, and only when it is persisted here.
//!
//! What only a bug of the caller can do (to say that it persisted what it was not given) stops the
//! process; what the disk or a peer can do is an error.

mod config;
mod event;
mod log;
mod raft;
mod random;
mod ready;
mod restore;

pub use event::Event;
pub use raft::{Config, ProposeError, Raft, Role, Status};
pub use ready::{Mark, Ready};
pub use restore::{RestoreError, Restored};
