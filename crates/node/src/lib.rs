//! The mind: one replica, without I/O.
//!
//! In:  [`Event`]s: a tick, a proposal, "the log is synced up to here", "this much is applied".
//! Out: [`Effects`]: entries to sync, entries to apply, answers to whoever asked.
//!
//! Here it is decided when an entry is committed (by `raft`), when a read may run, when a lease
//! ends, what is compacted by itself, and what a new leader tells the cluster. Nothing here
//! blocks, reads a clock, draws a random number or touches a disk: the shell hands in the time and
//! carries out the effects, and a simulator can do the same.
//!
//! Always true: nothing is applied that is not committed, and nothing is answered as fresh that
//! might be older than an answer somebody already has.

mod compactor;
mod ids;
mod lease;
mod node;
mod time;

pub use compactor::Mode as CompactionMode;
pub use ids::{IdSpace, Ids};
pub use node::{
    Answer, Asker, Config, Effects, Event, Fact, Node, Notice, Origin, Persist, Published, Question,
};
pub use time::{MILLISECOND, Now, SECOND};
