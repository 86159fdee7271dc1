//! What tests of whole processes need: servers to start and stop, and clients to speak to them.
//!
//! In:  a binary (ours, or a real etcd) and its flags.
//! Out: a running server on free ports of the loopback with a directory of its own, a gRPC client
//!      that blocks, and an HTTP/1.1 client for the JSON gateway.
//!
//! Only tests depend on this room. It knows no request: messages are any `prost` type, and what
//! the answers mean is the test's business. A server that a test forgets is killed when it is
//! dropped, by its process id.

mod binaries;
mod grpc;
mod http;
mod ports;
mod server;

pub use binaries::{althing, etcd, etcd_or_skip};
pub use grpc::{Answer, Grpc, Status, Stream};
pub use http::{HttpReply, http, http_bytes};
pub use ports::{free_address, free_port};
pub use server::Server;
