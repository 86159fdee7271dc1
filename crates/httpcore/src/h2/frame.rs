//! The frame layer of RFC 9113: nine bytes that announce what follows.

/// Bytes of a frame header.
pub const HEAD_BYTES: usize = 9;

/// What every client sends first.
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const PRIORITY: u8 = 2;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PUSH_PROMISE: u8 = 5;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

pub const END_STREAM: u8 = 0x1;
pub const ACK: u8 = 0x1;
pub const END_HEADERS: u8 = 0x4;
pub const PADDED: u8 = 0x8;
pub const WITH_PRIORITY: u8 = 0x20;

/// Identifiers of SETTINGS.
pub mod setting {
    pub const HEADER_TABLE_SIZE: u16 = 1;
    pub const ENABLE_PUSH: u16 = 2;
    pub const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub const INITIAL_WINDOW_SIZE: u16 = 4;
    pub const MAX_FRAME_SIZE: u16 = 5;
    pub const MAX_HEADER_LIST_SIZE: u16 = 6;
}

/// A frame header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    pub length: usize,
    pub kind: u8,
    pub flags: u8,
    pub id: u32,
}

impl Head {
    /// Reads the header at the start of `bytes`; `None` if it is not complete.
    #[inline]
    pub fn read(bytes: &[u8]) -> Option<Head> {
        let &[a, b, c, kind, flags, d, e, f, g] = bytes.first_chunk::<HEAD_BYTES>()?;
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        // The highest bit is reserved and must be ignored.
        let id = u32::from_be_bytes([d, e, f, g]) & 0x7fff_ffff;
        Some(Head { length, kind, flags, id })
    }

    #[inline]
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// The header of a frame to send.
#[inline]
pub fn head(length: usize, kind: u8, flags: u8, id: u32) -> [u8; HEAD_BYTES] {
    debug_assert!(length < 1 << 24, "a frame is longer than its length field can say");
    let [_, a, b, c] = (length as u32).to_be_bytes();
    let [d, e, f, g] = id.to_be_bytes();
    [a, b, c, kind, flags, d, e, f, g]
}

/// Removes the padding of a DATA or HEADERS payload, as a range of it. `None` if the padding is
/// longer than the payload.
pub fn unpadded(head: Head, payload: &[u8]) -> Option<std::ops::Range<usize>> {
    if !head.has(PADDED) {
        return Some(0..payload.len());
    }
    let padding = usize::from(*payload.first()?);
    let end = payload.len().checked_sub(padding)?;
    (end >= 1).then_some(1..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_survive() {
        let bytes = head(0x01_0203, CONTINUATION, END_HEADERS, 0x7fff_fffe);
        let expected =
            Head { length: 0x01_0203, kind: CONTINUATION, flags: END_HEADERS, id: 0x7fff_fffe };
        assert_eq!(Head::read(&bytes), Some(expected));
        assert_eq!(Head::read(&bytes[..8]), None);
    }

    #[test]
    fn padding_may_not_exceed_the_payload() {
        let padded = Head { length: 0, kind: DATA, flags: PADDED, id: 1 };
        assert_eq!(unpadded(padded, &[2, b'x', 0, 0]), Some(1..2));
        assert_eq!(unpadded(padded, &[3, 0, 0, 0]), Some(1..1));
        assert_eq!(unpadded(padded, &[4, 0, 0, 0]), None);
        assert_eq!(unpadded(padded, &[]), None);
    }
}
