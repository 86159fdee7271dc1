//! HTTP as plain synchronous state machines: bytes in, events out, bytes to send in a list.
//!
//! ```text
//!   h2    HTTP/2 with gRPC, server and client       h1    HTTP/1.1, server
//!   ws    WebSocket frames, server                  grpc  message framing and status text
//!   hpack header compression for h2                 output  what waits for writev
//! ```
//!
//! No socket, clock, thread, lock or task lives here: the owner of a connection reads, calls
//! `receive`, handles the events, and writes the output. TLS sits below, with clear bytes.
//!
//! Always true: no input makes this crate panic, and what it keeps for one peer is bounded by the
//! limits it was given.

pub mod grpc;
#[cfg(feature = "gzip")]
mod gzip;
pub mod h1;
pub mod h2;
pub mod hpack;
pub mod output;
pub mod ws;

pub use h2::Headers;
pub use output::Output;
