//! The few protobuf fields that are written and read by hand, because they are on every request's
//! way: zero fields are left out and numbers ascend, as etcd's own encoder does it.

use bytes::BufMut;

pub(crate) fn varint_len(value: u64) -> usize {
    (70 - (value | 1).leading_zeros() as usize) / 7
}

pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.put_u8(value as u8 | 0x80);
        value >>= 7;
    }
    out.put_u8(value as u8);
}

pub(crate) fn int_field_len(number: u32, value: i64) -> usize {
    if value == 0 { 0 } else { key_len(number) + varint_len(value as u64) }
}

pub(crate) fn put_int_field(out: &mut Vec<u8>, number: u32, value: i64) {
    if value != 0 {
        put_varint(out, u64::from(number << 3));
        put_varint(out, value as u64);
    }
}

pub(crate) fn put_bool_field(out: &mut Vec<u8>, number: u32, value: bool) {
    put_int_field(out, number, i64::from(value));
}

pub(crate) fn bytes_field_len(number: u32, value: &[u8]) -> usize {
    if value.is_empty() { 0 } else { message_len(number, value.len()) }
}

pub(crate) fn put_bytes_field(out: &mut Vec<u8>, number: u32, value: &[u8]) {
    if !value.is_empty() {
        put_message(out, number, value);
    }
}

/// The length of a field that is written even when it is empty.
pub(crate) fn message_len(number: u32, bytes: usize) -> usize {
    key_len(number) + varint_len(bytes as u64) + bytes
}

/// A message field: present even when empty.
pub(crate) fn put_message(out: &mut Vec<u8>, number: u32, message: &[u8]) {
    put_varint(out, u64::from(number << 3 | 2));
    put_varint(out, message.len() as u64);
    out.put_slice(message);
}

fn key_len(number: u32) -> usize {
    varint_len(u64::from(number << 3))
}

/// A stored `KeyValue`, looked at without copying.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kv<'a> {
    pub key: &'a [u8],
    pub create_revision: i64,
    pub mod_revision: i64,
    pub version: i64,
    pub value: &'a [u8],
    pub lease: i64,
}

impl<'a> Kv<'a> {
    /// Reads a row. Rows are checksummed, so what does not parse was stored like that (an etcd
    /// restore leaves a row without any bytes); the fields behind such a place stay empty.
    pub fn read(row: &'a [u8]) -> Kv<'a> {
        let mut kv = Kv::default();
        let mut rest = row;
        while let Some(field) = take_field(&mut rest) {
            match field {
                Field::Bytes(1, key) => kv.key = key,
                Field::Int(2, revision) => kv.create_revision = revision,
                Field::Int(3, revision) => kv.mod_revision = revision,
                Field::Int(4, version) => kv.version = version,
                Field::Bytes(5, value) => kv.value = value,
                Field::Int(6, lease) => kv.lease = lease,
                _ => {}
            }
        }
        kv
    }

    /// Appends the row as keys-only shows it: everything but the value.
    pub fn put_without_value(&self, out: &mut Vec<u8>) {
        put_bytes_field(out, 1, self.key);
        put_int_field(out, 2, self.create_revision);
        put_int_field(out, 3, self.mod_revision);
        put_int_field(out, 4, self.version);
        put_int_field(out, 6, self.lease);
    }
}

/// Whose request an entry is that cannot be read, as far as its header can: whoever waits for it
/// must be told. A request can be readable where it was received and not in the log, where it lies
/// one level deeper.
pub(crate) fn request_id(mut entry: &[u8]) -> u64 {
    while let Some(field) = take_field(&mut entry) {
        if let Field::Bytes(100, mut header) = field {
            while let Some(field) = take_field(&mut header) {
                if let Field::Int(1, id) = field {
                    return id as u64;
                }
            }
        }
    }
    0
}

enum Field<'a> {
    Int(u64, i64),
    Bytes(u64, &'a [u8]),
}

fn take_field<'a>(rest: &mut &'a [u8]) -> Option<Field<'a>> {
    let key = take_varint(rest)?;
    match key & 7 {
        0 => Some(Field::Int(key >> 3, take_varint(rest)? as i64)),
        2 => {
            let length = usize::try_from(take_varint(rest)?).ok()?;
            let (value, after) = rest.split_at_checked(length)?;
            *rest = after;
            Some(Field::Bytes(key >> 3, value))
        }
        _ => None,
    }
}

fn take_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, after) = rest.split_first()?;
        *rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_have_the_length_that_is_announced() {
        for value in [0, 1, 127, 128, 16383, 16384, u64::from(u32::MAX), 1 << 63, u64::MAX] {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            assert_eq!(out.len(), varint_len(value), "{value}");
            assert_eq!(take_varint(&mut &out[..]), Some(value));
        }
    }

    #[test]
    fn a_cut_row_reads_as_far_as_it_goes() {
        let kv = Kv::read(&[0x0a, 1, b'k', 0x10, 2, 0x2a, 9, 1]);
        assert_eq!(kv, Kv { key: b"k", create_revision: 2, ..Kv::default() });
        assert_eq!(Kv::read(b""), Kv::default());
    }
}
