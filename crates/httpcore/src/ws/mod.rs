//! WebSocket (RFC 6455), the server's side, after an HTTP/1.1 upgrade.
//!
//! In:  bytes from the socket, and messages to send. Out: whole messages; bytes to send in an
//! `Output`. Pings are answered here. No extension is offered, so none is ever in use.
//!
//! ```text
//!   h1::Server  Event::Request { wants_websocket: true }
//!        │      let accept = ws::handshake(&request.headers)?;
//!        │      server.upgrade(&[("upgrade", "websocket"), ("connection", "Upgrade"),
//!        ▼                       ("sec-websocket-accept", &accept)]);
//!   ws::Server::new(limits, server.into_output())
//! ```

mod frame;
mod server;
mod sha1;

pub use server::{Event, Server};

use std::fmt;

use crate::h2::Headers;

/// What a client may send.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of one message, all its fragments together.
    pub message_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { message_bytes_max: 2 << 20 }
    }
}

/// The connection is over: flush the output, then close.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    /// The code of the close frame that was sent.
    pub code: u16,
    pub reason: &'static str,
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WebSocket closed with code {}: {}", self.code, self.reason)
    }
}

impl std::error::Error for Closed {}

/// Checks a handshake and gives the value of `sec-websocket-accept`. The error is the text of an
/// answer with status 400.
pub fn handshake(headers: &Headers) -> Result<String, &'static str> {
    if headers.get("sec-websocket-version").is_none_or(|version| version != "13") {
        return Err(
            "websocket: unsupported version: 13 not found in 'Sec-Websocket-Version' header",
        );
    }
    match headers.get("sec-websocket-key") {
        Some(key) if !key.is_empty() => Ok(accept(key)),
        _ => Err(
            "websocket: not a websocket handshake: 'Sec-WebSocket-Key' header is missing or blank",
        ),
    }
}

/// The proof that we speak WebSocket and not merely repeat what we hear.
fn accept(key: &[u8]) -> String {
    let mut text = key.to_vec();
    text.extend_from_slice(b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    base64(&sha1::digest(&text))
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            if at <= group.len() {
                out.push(DIGITS[(bits >> (18 - 6 * at)) as usize & 63] as char);
            } else {
                out.push('=');
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_rfc() {
        assert_eq!(accept(b"dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn base64_of_every_remainder() {
        assert_eq!(base64(b""), "");
        assert_eq!(base64(b"f"), "Zg==");
        assert_eq!(base64(b"fo"), "Zm8=");
        assert_eq!(base64(b"foo"), "Zm9v");
    }
}
