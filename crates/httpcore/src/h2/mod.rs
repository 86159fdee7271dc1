//! HTTP/2 (RFC 9113) carrying gRPC, both ends of it.
//!
//! In:  bytes as they came from the socket, and the owner's answers.
//! Out: events for the owner, and bytes to send in an `Output`.
//!
//! ```text
//!   socket bytes ──> receive() ──> Event ──> owner
//!   socket  <── output() <── respond_unary(), send_message(), ... <── owner
//! ```
//!
//! This room owns streams, windows, header tables and the limits that keep one peer from costing
//! too much. It knows no socket and no clock (`now_ms` is handed in), calls nobody back, and
//! decides nothing about methods: an unknown path is the owner's to refuse.
//!
//! Always true: after `Closed` nothing more is read or sent, except that the GOAWAY in the output
//! should be flushed; an answer to a stream that is gone is ignored; a stream of which the owner saw
//! a `Reset` is never heard of again. Until its last answer is out, a stream may still bring events
//! to an owner who has finished with it; they may be ignored.
//!
//! The owner should stop reading from the socket while the output is long: that is the back
//! pressure that keeps a peer who never reads from filling the memory.

mod client;
mod connection;
mod frame;
mod guard;
mod headers;
mod link;
mod server;
mod stream;

pub use client::{Client, ClientEvent};
pub use frame::PREFACE;
pub use headers::Headers;
pub use server::{Event, Server};

use std::fmt;

/// A stream of one connection. Numbers never repeat on a connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(pub(crate) u32);

impl StreamId {
    /// The number on the wire.
    pub fn number(self) -> u32 {
        self.0
    }
}

impl fmt::Debug for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// What this end announces to its peer.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Streams the peer may have open at once; more are refused.
    pub max_concurrent_streams: u32,
    /// Bytes a peer may send on one stream before it must wait.
    pub initial_window: u32,
    /// Bytes a peer may send on all streams together before it must wait.
    pub connection_window: u32,
    /// The longest frame accepted (16384 to 16777215).
    pub max_frame: u32,
    /// The largest header list accepted, in the counting of RFC 9113 section 6.5.2.
    pub header_list_max: u32,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            max_concurrent_streams: u32::MAX,
            initial_window: 1 << 20,
            connection_window: 16 << 20,
            max_frame: 16384,
            header_list_max: 64 << 10,
        }
    }
}

/// What this end puts up with.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The largest message accepted.
    pub message_bytes_max: usize,
    /// Bytes of unfinished messages held for all streams of the connection together.
    pub partial_bytes_max: usize,
    /// Pings that come faster than this are counted as violations, and so are pings while no
    /// stream is open; the third ends the connection. 0 switches the policy off.
    pub ping_interval_min_ms: u64,
    /// Streams the peer may open and reset in a burst; the allowance grows back by a fifth per
    /// second.
    pub resets_burst: u32,
    /// Frames that mean no work for us (pings, settings, empty data, unknown types) the peer may
    /// send per second.
    pub nuisance_per_second: u32,
    /// Hand requests that are not gRPC to the owner as `Event::HttpRequest`, as etcd does on a
    /// TLS port shared with HTTP. Otherwise they are answered with status 415.
    pub plain_http: bool,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            message_bytes_max: 2 << 20,
            partial_bytes_max: 64 << 20,
            ping_interval_min_ms: 5000,
            resets_burst: 20_000,
            nuisance_per_second: 10_000,
            plain_http: false,
        }
    }
}

/// The connection is over: flush the output, then close.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    /// The code of the GOAWAY that was sent.
    pub code: u32,
    pub reason: String,
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HTTP/2 connection closed with error code {}: {}", self.code, self.reason)
    }
}

impl std::error::Error for Closed {}

/// Error codes of RFC 9113 section 7.
pub mod error {
    pub const NO_ERROR: u32 = 0;
    pub const PROTOCOL_ERROR: u32 = 1;
    pub const INTERNAL_ERROR: u32 = 2;
    pub const FLOW_CONTROL_ERROR: u32 = 3;
    pub const STREAM_CLOSED: u32 = 5;
    pub const FRAME_SIZE_ERROR: u32 = 6;
    pub const REFUSED_STREAM: u32 = 7;
    pub const CANCEL: u32 = 8;
    pub const COMPRESSION_ERROR: u32 = 9;
    pub const ENHANCE_YOUR_CALM: u32 = 11;
}
