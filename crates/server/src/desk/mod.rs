//! Desks: the threads that own connections.
//!
//! In:  bytes from sockets, and letters from the other threads (see `mail`).
//! Out: answers on the sockets, proposals and questions to the replica, work for the office.
//!
//! A connection belongs to one desk for its whole life, and so do its calls, its watches and the
//! requests it waits for: nothing here is shared, so nothing here is locked. A desk reads what has
//! arrived on all its sockets, steps each call as far as it goes, hands all new proposals to the
//! replica at once, and then writes each socket once. Reads run here, on a shared view of the
//! store; whatever may block or take long goes to the office.
//!
//! Always true: a call is answered once, by its own desk; an answer that comes too late (the
//! caller has gone, the connection has closed) is dropped.

mod answers;
mod auth;
mod call;
mod cluster;
mod connection;
mod dispatch;
mod gateway;
mod header;
mod http;
mod kv;
mod lease;
mod maintenance;
mod run;
mod upkeep;
mod watching;

pub use call::CallId;
pub use connection::{Listener, NewConnection, Serves};
pub use dispatch::{encode_entry, malformed};
pub use header::Headers;
pub use lease::put_message_tag;
pub use maintenance::serving;
pub use run::{Desk, DeskConfig, Limits, Shared, WAKER};
