//! HTTP/1.1 (RFC 9112), the server's side.
//!
//! In:  bytes from the socket, and the owner's answers. Out: a request's head, the pieces of its
//! body, its end; bytes to send in an `Output`.
//!
//! One request at a time: a pipelined request stays in the input until the one before it is
//! answered, so that answers cannot overtake each other. After finishing an answer, call
//! `receive` again if the input is not empty.
//!
//! This room knows no clock, so it writes no `date`: that is the owner's header to add.
//!
//! Always true: a head that two readers could understand in two ways (two lengths, a length and
//! chunks) is refused, because behind a proxy that is how requests are smuggled.

mod body;
mod head;
mod server;

pub use server::{Event, Request, Server};

use std::fmt;

/// What a client may send.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of the request line and the header fields together, and of trailers.
    pub head_bytes_max: usize,
    /// Header fields of a request.
    pub fields_max: usize,
    /// Bytes of a request's body.
    pub body_bytes_max: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { head_bytes_max: 64 << 10, fields_max: 128, body_bytes_max: 4 << 20 }
    }
}

/// The connection is over. The client has been told by `status`, unless an answer was under way:
/// flush the output, then close.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    pub status: u16,
    pub reason: &'static str,
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HTTP/1.1 connection closed with status {}: {}", self.status, self.reason)
    }
}

impl std::error::Error for Closed {}
