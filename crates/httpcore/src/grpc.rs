//! What gRPC adds to HTTP/2: message framing, timeouts, and the text form of a status.

use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};

/// A compression flag and a big-endian length stand before every message.
pub const PREFIX_BYTES: usize = 5;

/// The flag of a compressed message.
const COMPRESSED: u8 = 1;

/// Status codes this crate itself answers with.
pub mod code {
    pub const OK: u8 = 0;
    pub const UNKNOWN: u8 = 2;
    pub const INVALID_ARGUMENT: u8 = 3;
    pub const DEADLINE_EXCEEDED: u8 = 4;
    pub const PERMISSION_DENIED: u8 = 7;
    pub const RESOURCE_EXHAUSTED: u8 = 8;
    pub const UNIMPLEMENTED: u8 = 12;
    pub const INTERNAL: u8 = 13;
    pub const UNAVAILABLE: u8 = 14;
    pub const UNAUTHENTICATED: u8 = 16;
}

/// The prefix of a message of `length` bytes.
pub fn prefix(length: usize, compressed: bool) -> [u8; PREFIX_BYTES] {
    let length = u32::try_from(length).expect("gRPC cannot carry a message of 4 GiB");
    let [a, b, c, d] = length.to_be_bytes();
    [u8::from(compressed), a, b, c, d]
}

/// Cuts the data of one stream into messages.
#[derive(Default)]
pub struct Deframer {
    prefix: [u8; PREFIX_BYTES],
    prefix_len: u8,
    /// The length of the message in `partial`, once its prefix is complete.
    wanted: usize,
    partial: BytesMut,
    /// Messages marked as compressed are expanded; without it they are refused.
    #[cfg(feature = "gzip")]
    gzip: bool,
}

/// Why a message will not be delivered; the stream must be answered with this status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub code: u8,
    pub message: String,
}

impl Deframer {
    /// A deframer for a stream whose messages may be compressed.
    #[cfg(feature = "gzip")]
    pub fn with_gzip() -> Deframer {
        Deframer { gzip: true, ..Deframer::default() }
    }

    /// Takes the next message from the front of `data`; `None` once `data` is used up. A message
    /// that lies whole in `data` is a slice of it; one that was cut is joined by copying.
    pub fn next(
        &mut self,
        data: &mut Bytes,
        message_bytes_max: usize,
    ) -> Result<Option<Bytes>, Refused> {
        if (self.prefix_len as usize) < PREFIX_BYTES {
            let take = data.len().min(PREFIX_BYTES - self.prefix_len as usize);
            self.prefix[self.prefix_len as usize..][..take].copy_from_slice(&data[..take]);
            self.prefix_len += take as u8;
            data.advance(take);
            if (self.prefix_len as usize) < PREFIX_BYTES {
                return Ok(None);
            }
            self.wanted = self.length(message_bytes_max)?;
        }
        let missing = self.wanted - self.partial.len();
        if data.len() < missing {
            // Grown as the bytes come, not as they are announced: a prefix alone must not cost
            // its sender's full limit.
            self.partial.extend_from_slice(data);
            data.clear();
            return Ok(None);
        }
        let rest = data.split_to(missing);
        self.prefix_len = 0;
        let message = if self.partial.is_empty() {
            rest
        } else {
            self.partial.extend_from_slice(&rest);
            std::mem::take(&mut self.partial).freeze()
        };
        #[cfg(feature = "gzip")]
        if self.prefix[0] == COMPRESSED {
            return crate::gzip::expand(&message, message_bytes_max).map(Some);
        }
        Ok(Some(message))
    }

    /// Whether the stream may end here.
    pub fn at_boundary(&self) -> bool {
        self.prefix_len == 0
    }

    /// Bytes held of a message that is not complete.
    pub fn partial_bytes(&self) -> usize {
        self.partial.len()
    }

    /// The length a complete prefix announces, if such a message is acceptable.
    fn length(&self, message_bytes_max: usize) -> Result<usize, Refused> {
        let [flag, length @ ..] = self.prefix;
        let refuse = |code, message| Err(Refused { code, message });
        let length = u32::from_be_bytes(length) as usize;
        if flag > COMPRESSED {
            let text = format!("grpc: received unexpected payload format {flag}");
            return refuse(code::INTERNAL, text);
        }
        if length > message_bytes_max {
            let text = format!(
                "grpc: received message larger than max ({length} vs. {message_bytes_max})"
            );
            return refuse(code::RESOURCE_EXHAUSTED, text);
        }
        #[cfg(feature = "gzip")]
        let expected = self.gzip;
        #[cfg(not(feature = "gzip"))]
        let expected = false;
        if flag == COMPRESSED && !expected {
            let text = "grpc: compressed flag set with identity or empty encoding".to_string();
            return refuse(code::INTERNAL, text);
        }
        Ok(length)
    }
}

/// Reads `grpc-timeout`: up to eight digits and a unit. The error is the text grpc-go answers with.
pub fn parse_timeout(text: &[u8]) -> Result<Duration, String> {
    let fail = |what: &str| Err(format!("{what}: {:?}", String::from_utf8_lossy(text)));
    if text.len() < 2 {
        return fail("transport: timeout string is too short");
    }
    if text.len() > 9 {
        return fail("transport: timeout string is too long");
    }
    let (digits, unit) = text.split_at(text.len() - 1);
    let unit = match unit[0] {
        b'H' => Duration::from_secs(3600),
        b'M' => Duration::from_secs(60),
        b'S' => Duration::from_secs(1),
        b'm' => Duration::from_millis(1),
        b'u' => Duration::from_micros(1),
        b'n' => Duration::from_nanos(1),
        _ => return fail("transport: timeout unit is not recognized"),
    };
    let mut count = 0u32;
    for &digit in digits {
        if !digit.is_ascii_digit() {
            return fail("transport: timeout is not a number");
        }
        // At most eight digits, so no overflow.
        count = count * 10 + u32::from(digit - b'0');
    }
    Ok(unit.saturating_mul(count))
}

/// The form of a status message in `grpc-message`: printable ASCII without `%` stays, every other
/// byte becomes `%XX`.
pub fn percent_encode(message: &str, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in message.as_bytes() {
        if matches!(byte, b' '..=b'~') && byte != b'%' {
            out.push(byte);
        } else {
            out.extend([b'%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
    }
}

/// The message behind `grpc-message`. What is not a valid escape stays as it is.
pub fn percent_decode(text: &[u8]) -> String {
    let mut out = Vec::with_capacity(text.len());
    let digit = |at: usize| text.get(at).and_then(|&byte| (byte as char).to_digit(16));
    let mut at = 0;
    while at < text.len() {
        if let (b'%', Some(high), Some(low)) = (text[at], digit(at + 1), digit(at + 2)) {
            out.push((high * 16 + low) as u8);
            at += 3;
        } else {
            out.push(text[at]);
            at += 1;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(messages: &[&[u8]]) -> Bytes {
        let mut all = BytesMut::new();
        for message in messages {
            all.extend_from_slice(&prefix(message.len(), false));
            all.extend_from_slice(message);
        }
        all.freeze()
    }

    #[test]
    fn messages_are_the_same_however_they_are_cut() {
        let all = framed(&[b"first", b"", b"a longer third message"]);
        for a in 0..=all.len() {
            for b in a..=all.len() {
                let (mut deframer, mut messages) = (Deframer::default(), Vec::new());
                for mut part in [all.slice(..a), all.slice(a..b), all.slice(b..)] {
                    while let Some(message) = deframer.next(&mut part, 100).expect("small") {
                        messages.push(message);
                    }
                }
                assert_eq!(messages, [&b"first"[..], b"", b"a longer third message"]);
                assert!(deframer.at_boundary());
            }
        }
    }

    #[test]
    fn a_whole_message_is_not_copied() {
        let mut all = framed(&[b"message"]);
        let at = all[PREFIX_BYTES..].as_ptr();
        let message = Deframer::default().next(&mut all, 100).expect("small").expect("whole");
        assert!(std::ptr::eq(message.as_ptr(), at));
    }

    #[test]
    fn the_limit_is_what_is_allowed() {
        let next = |bytes: &'static [u8]| {
            Deframer::default().next(&mut Bytes::from_static(bytes), 3).map_err(|r| r.message)
        };
        assert_eq!(next(&[0, 0, 0, 0, 3]), Ok(None));
        assert_eq!(
            next(&[0, 0, 0, 0, 4]),
            Err("grpc: received message larger than max (4 vs. 3)".to_string())
        );
        assert!(next(&[1, 0, 0, 0, 3]).is_err());
        assert!(next(&[9, 0, 0, 0, 3]).is_err());
    }

    #[test]
    fn timeouts() {
        assert_eq!(parse_timeout(b"100m"), Ok(Duration::from_millis(100)));
        assert_eq!(parse_timeout(b"99999999H"), Ok(Duration::from_secs(3600 * 99_999_999)));
        assert_eq!(parse_timeout(b"0n"), Ok(Duration::ZERO));
        for bad in [&b""[..], b"1", b"m", b"1x", b"-1m", b"123456789m", b"1 m"] {
            assert!(parse_timeout(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn status_messages_survive() {
        for text in ["plain text", "100% of \u{e9}\n", ""] {
            let mut out = Vec::new();
            percent_encode(text, &mut out);
            assert!(out.iter().all(|byte| matches!(byte, b' '..=b'~')));
            assert_eq!(percent_decode(&out), text);
        }
        assert_eq!(percent_decode(b"50% off %4"), "50% off %4");
    }
}
