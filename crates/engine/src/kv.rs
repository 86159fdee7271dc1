//! The little that the engine reads in a `KeyValue` encoding: everything but the value.

use crate::{Revision, RowHead};
use bytes::Bytes;

/// What a hint keeps of a row: the `KeyValue` without its value and its (known) revision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head<'a> {
    pub key: &'a [u8],
    pub create_revision: i64,
    pub version: i64,
    pub lease: i64,
}

impl Head<'_> {
    pub fn of_row(self, revision: Revision, tombstone: bool) -> RowHead {
        RowHead {
            revision,
            tombstone,
            key: Bytes::copy_from_slice(self.key),
            create_revision: self.create_revision,
            version: self.version,
            lease: self.lease,
        }
    }
}

/// Reads the head of a `mvccpb.KeyValue`; `None` if the bytes are not one.
pub(crate) fn head(mut encoded: &[u8]) -> Option<Head<'_>> {
    let mut head = Head::default();
    let input = &mut encoded;
    while !input.is_empty() {
        let tag = varint(input)?;
        match (tag >> 3, tag & 7) {
            (1, 2) => head.key = chunk(input)?,
            (2, 0) => head.create_revision = varint(input)? as i64,
            (4, 0) => head.version = varint(input)? as i64,
            (6, 0) => head.lease = varint(input)? as i64,
            (_, 0) => drop(varint(input)?),
            (_, 2) => drop(chunk(input)?),
            _ => return None,
        }
    }
    Some(head)
}

pub(crate) fn varint(input: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = input.split_first()?;
        *input = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

pub(crate) fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn chunk<'a>(input: &mut &'a [u8]) -> Option<&'a [u8]> {
    let bytes = usize::try_from(varint(input)?).ok()?;
    let (chunk, rest) = input.split_at_checked(bytes)?;
    *input = rest;
    Some(chunk)
}

/// The canonical encoding, for tests: `store` has its own.
#[cfg(test)]
pub(crate) fn encode(
    key: &[u8],
    create_revision: i64,
    mod_revision: i64,
    version: i64,
    value: &[u8],
    lease: i64,
) -> Bytes {
    let mut out = Vec::new();
    let fields: [(u64, u64, Option<&[u8]>); 6] = [
        (1, 0, Some(key)),
        (2, create_revision as u64, None),
        (3, mod_revision as u64, None),
        (4, version as u64, None),
        (5, 0, Some(value)),
        (6, lease as u64, None),
    ];
    for (field, number, chunk) in fields {
        match chunk {
            Some([]) => {}
            Some(chunk) => {
                put_varint(&mut out, field << 3 | 2);
                put_varint(&mut out, chunk.len() as u64);
                out.extend_from_slice(chunk);
            }
            None if number == 0 => {}
            None => {
                put_varint(&mut out, field << 3);
                put_varint(&mut out, number);
            }
        }
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_from_any_encoding_and_never_panics() {
        let encoded = encode(b"key", 3, 9, 4, &[7; 300], -5);
        let head = head(&encoded).unwrap();
        assert_eq!((head.key, head.create_revision), (&b"key"[..], 3));
        assert_eq!((head.version, head.lease), (4, -5));
        for cut in 0..encoded.len() {
            // Half a field is refused; a cut between fields reads as a shorter message.
            let _ = super::head(&encoded[..cut]);
        }
        assert_eq!(super::head(&[0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f]), None);
    }
}
