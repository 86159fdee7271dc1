//! The replicated state machine: what the log's entries mean.
//!
//! In:  committed entries, one after the other. Out: an answer to each, what it changed (for
//! watchers), and effects for the world to carry out.
//!
//! [`Store`] is owned by the one thread that applies. [`View`] is its other half: cheap to clone,
//! and read by any number of threads while applies go on. Here live the keys and their history
//! (`index`, `range`, `write`, `txn`, `compact`, `hash`), leases, alarms, the cluster's membership
//! and versions, and the records of auth.
//!
//! Deliberately absent: a clock, a thread, chance, and any I/O but the engine's. A lease does not
//! run out here; somebody proposes that it has.
//!
//! Always true: the same entries lead every member to the same rows and the same answers. A request
//! that is refused has changed nothing. Damage is never answered with: it stops the member.

mod alarm;
mod applied;
mod apply;
mod auth;
mod change;
mod check;
mod cluster;
mod compact;
mod crc;
mod hash;
mod history;
mod index;
mod lease;
mod quota;
mod range;
mod shared;
mod store;
mod stream;
mod txn;
mod view;
mod wire;
mod write;

pub use applied::{Applied, ConfChanged, Effect, MemberChange, ReadError, Reply};
pub use change::{Change, Event};
pub use check::{
    check_delete_range, check_put, check_range, check_range_stream, check_txn, is_read_only_txn,
    is_serializable_txn,
};
pub use cluster::{Downgrade, Member, parse_peer_urls};
pub use hash::HashKv;
pub use history::History;
pub use lease::{LEASE_TTL_MAX, Lease};
pub use quota::{DEFAULT_QUOTA_BYTES, LEASE_GRANT_COST, put_cost, txn_cost};
pub use store::{Config, Store};
pub use stream::{Piece, RangeStream};
pub use view::{AuthStatus, View};
