//! Frames by hand, and frames in words.
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::fmt::Write as _;
use std::io::IoSlice;

use httpcore::Output;
use httpcore::hpack::Decoder;

pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub const KINDS: [&str; 10] = [
    "DATA",
    "HEADERS",
    "PRIORITY",
    "RST_STREAM",
    "SETTINGS",
    "PUSH_PROMISE",
    "PING",
    "GOAWAY",
    "WINDOW_UPDATE",
    "CONTINUATION",
];

pub fn frame(kind: u8, flags: u8, id: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    out.extend([kind, flags]);
    out.extend(id.to_be_bytes());
    out.extend(payload);
    out
}

/// A literal field that touches no table.
pub fn literal(name: &str, value: &str) -> Vec<u8> {
    let mut out = vec![0];
    for text in [name, value] {
        assert!(text.len() < 127, "long strings need a longer length");
        out.push(text.len() as u8);
        out.extend(text.as_bytes());
    }
    out
}

pub fn message(text: &[u8]) -> Vec<u8> {
    let mut out = vec![0];
    out.extend((text.len() as u32).to_be_bytes());
    out.extend(text);
    out
}

/// All that waits in `output`, taken out of it.
pub fn drain(output: &mut Output) -> Vec<u8> {
    let mut slices: Vec<IoSlice<'_>> = Vec::new();
    output.io_slices(&mut slices);
    let bytes = slices.iter().flat_map(|slice| slice.to_vec()).collect();
    drop(slices);
    let all = output.len();
    output.advance(all);
    bytes
}

/// Frames in words, one per line. `decoder` is the receiver's.
pub fn describe(mut bytes: &[u8], decoder: &mut Decoder) -> String {
    let mut out = String::new();
    while let Some((head, rest)) = bytes.split_first_chunk::<9>() {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let id = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        let (payload, rest) = rest.split_at(length);
        bytes = rest;
        let kind = KINDS.get(head[3] as usize).copied().unwrap_or("UNKNOWN");
        let end = if head[3] < 2 && head[4] & 1 != 0 { " end" } else { "" };
        let ack = if matches!(head[3], 4 | 6) && head[4] & 1 != 0 { " ack" } else { "" };
        write!(out, "<- {kind} #{id}{end}{ack}").expect("a string grows");
        let body = match head[3] {
            1 => fields(payload, decoder),
            3 | 8 => format!(" {}", number(payload)),
            4 => payload
                .chunks(6)
                .map(|entry| format!(" {}={}", number(&entry[..2]), number(&entry[2..])))
                .collect(),
            7 => format!(
                " last=#{} code={} {:?}",
                number(&payload[..4]),
                number(&payload[4..8]),
                String::from_utf8_lossy(&payload[8..])
            ),
            _ if payload.len() > 40 => format!(" {} bytes", payload.len()),
            _ => format!(" {:?}", String::from_utf8_lossy(payload)),
        };
        out.push_str(&body);
        out.push('\n');
    }
    assert!(bytes.is_empty(), "the output ends inside a frame");
    out
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

fn fields(block: &[u8], decoder: &mut Decoder) -> String {
    let block = decoder.decode(block, 1 << 20).expect("what we send can be decoded");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let field =
        |field: &httpcore::hpack::Field| format!(" {}={:?}", text(&field.name), text(&field.value));
    block.fields.iter().map(field).collect()
}
