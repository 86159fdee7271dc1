//! One record in its frame.
//!
//! ```text
//! u64 LE length field | record bytes | padding with zeros to a multiple of 8
//!   bits 0..55: length of the record; top byte: 0x80 | padding if there is padding, else 0
//! record: 08 type, 10 checksum, 1a length data
//! ```
//!
//! The checksum runs on over the data of all records from the first segment to the last; each record
//! carries its value after its own data. It covers neither type nor length.

use raftpb::DecodeError;
use raftpb::codec::{Field, Fields, put_bytes, put_uint};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Metadata = 1,
    Entry = 2,
    State = 3,
    /// Stands first in every segment and carries the checksum of all before it.
    Checksum = 4,
    Snapshot = 5,
}

/// The width of the length field.
pub const LENGTH_BYTES: u64 = 8;

/// An upper bound of what a record takes beyond its data.
pub const OVERHEAD_BYTES_MAX: usize = 8 + 2 + 6 + 6 + 7;

/// Appends a framed record and returns the running checksum after it.
pub fn put(out: &mut Vec<u8>, kind: Kind, crc: u32, data: &[u8]) -> u32 {
    let crc = crc32c::crc32c_append(crc, data);
    let start = out.len();
    out.extend_from_slice(&[0; LENGTH_BYTES as usize]);
    put_uint(out, 1, kind as u64);
    put_uint(out, 2, u64::from(crc));
    if kind != Kind::Checksum {
        put_bytes(out, 3, data);
    }
    let len = (out.len() - start) as u64 - LENGTH_BYTES;
    let field = length_field(len);
    out[start..start + LENGTH_BYTES as usize].copy_from_slice(&field.to_le_bytes());
    out.resize(out.len() + padding(len) as usize, 0);
    crc
}

pub fn padding(len: u64) -> u64 {
    len.wrapping_neg() % 8
}

fn length_field(len: u64) -> u64 {
    match padding(len) {
        0 => len,
        padding => len | (0x80 | padding) << 56,
    }
}

/// The record length that a length field states; none if no writer would have written that field.
pub fn record_len(field: u64) -> Option<u64> {
    let len = field & 0x00ff_ffff_ffff_ffff;
    (len > 0 && length_field(len) == field).then_some(len)
}

pub struct Record<'a> {
    pub kind: Kind,
    pub crc: u32,
    pub data: &'a [u8],
}

pub fn decode(bytes: &[u8]) -> Result<Record<'_>, DecodeError> {
    let (mut kind, mut crc, mut data) = (None, 0, &[][..]);
    for field in Fields::new(bytes) {
        match field? {
            Field::Uint(1, 1) => kind = Some(Kind::Metadata),
            Field::Uint(1, 2) => kind = Some(Kind::Entry),
            Field::Uint(1, 3) => kind = Some(Kind::State),
            Field::Uint(1, 4) => kind = Some(Kind::Checksum),
            Field::Uint(1, 5) => kind = Some(Kind::Snapshot),
            Field::Uint(2, value) => {
                crc = u32::try_from(value).map_err(|_| DecodeError("checksum beyond 32 bits"))?
            }
            Field::Bytes(3, bytes) => data = bytes,
            _ => {}
        }
    }
    let kind = kind.ok_or(DecodeError("unknown record type"))?;
    Ok(Record { kind, crc, data })
}

/// The length that a record's own first fields state, as far as they are there to be read.
pub fn len_by_own_account(bytes: &[u8]) -> Option<u64> {
    let mut at = 0;
    for tag in [0x08, 0x10, 0x1a] {
        if *bytes.get(at)? != tag {
            return None;
        }
        at += 1;
        let (value, len) = varint(&bytes[at..])?;
        at += len;
        if tag == 0x1a {
            return value.checked_add(at as u64);
        }
    }
    None
}

fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0;
    for (position, &byte) in bytes.iter().enumerate().take(9) {
        value |= u64::from(byte & 0x7f) << (7 * position);
        if byte < 0x80 {
            return Some((value, position + 1));
        }
    }
    None
}
