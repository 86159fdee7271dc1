//! The frames of RFC 6455 section 5.

use bytes::BytesMut;

use super::Closed;

pub const CONTINUATION: u8 = 0;
pub const TEXT: u8 = 1;
pub const BINARY: u8 = 2;
pub const CLOSE: u8 = 8;
pub const PING: u8 = 9;
pub const PONG: u8 = 10;

/// One frame from a client, unmasked.
#[derive(Debug)]
pub struct Frame {
    pub last: bool,
    pub opcode: u8,
    pub payload: BytesMut,
}

/// Takes a whole frame off `input`; `None` if it is not whole yet. A frame whose payload exceeds
/// `payload_bytes_max` is refused as soon as it says so.
pub fn take(input: &mut BytesMut, payload_bytes_max: usize) -> Result<Option<Frame>, Closed> {
    let &[first, second, ref rest @ ..] = &input[..] else { return Ok(None) };
    let opcode = first & 0x0f;
    let last = first & 0x80 != 0;
    let short = usize::from(second & 0x7f);
    if first & 0x70 != 0 {
        return protocol("a reserved bit is set");
    }
    if second & 0x80 == 0 {
        return protocol("a client's frame is not masked");
    }
    if opcode >= CLOSE && (!last || short > 125) {
        return protocol("a control frame is long or in fragments");
    }
    let length_bytes = match short {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    let Some(long) = rest.get(..length_bytes) else { return Ok(None) };
    let length = match length_bytes {
        0 => short as u64,
        _ => long.iter().fold(0, |length, &byte| length << 8 | u64::from(byte)),
    };
    if length > payload_bytes_max as u64 {
        return Err(Closed { code: 1009, reason: "the message is too large" });
    }
    let length = length as usize;
    let start = 2 + length_bytes + 4;
    if input.len() < start + length {
        return Ok(None);
    }
    let head = input.split_to(start);
    let mut payload = input.split_to(length);
    let mask: [u8; 4] = head[start - 4..].try_into().expect("four bytes of mask");
    unmask(&mut payload, mask);
    Ok(Some(Frame { last, opcode, payload }))
}

/// The head of a frame to send; servers do not mask.
pub fn head(opcode: u8, length: usize, out: &mut Vec<u8>) {
    out.push(0x80 | opcode);
    match length {
        0..=125 => out.push(length as u8),
        126..=0xffff => {
            out.push(126);
            out.extend_from_slice(&(length as u16).to_be_bytes());
        }
        _ => {
            out.push(127);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
}

fn unmask(payload: &mut [u8], mask: [u8; 4]) {
    let [a, b, c, d] = mask;
    let wide = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
    let (words, rest) = payload.as_chunks_mut::<8>();
    for word in words {
        *word = (u64::from_ne_bytes(*word) ^ wide).to_ne_bytes();
    }
    for (byte, mask) in rest.iter_mut().zip(mask.iter().cycle()) {
        *byte ^= mask;
    }
}

fn protocol<T>(reason: &'static str) -> Result<T, Closed> {
    Err(Closed { code: 1002, reason })
}
