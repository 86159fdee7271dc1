//! Protobuf's wire format: tags, varints and lengths.

use crate::BadProto;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
    /// Four or eight fixed bytes: no field of the API has them.
    Fixed,
}

pub(crate) fn write_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The tag of a varint field and its value.
pub(crate) fn write_number(field: u32, value: u64, out: &mut Vec<u8>) {
    write_varint(u64::from(field) << 3, out);
    write_varint(value, out);
}

/// The tag of a field of bytes, their number and the bytes.
pub(crate) fn write_bytes(field: u32, bytes: &[u8], out: &mut Vec<u8>) {
    write_varint(u64::from(field) << 3 | 2, out);
    write_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Takes the next field off `bytes`; `None` at the end.
pub(crate) fn next_field<'a>(bytes: &mut &'a [u8]) -> Result<Option<(u32, Value<'a>)>, BadProto> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let tag = read_varint(bytes)?;
    let number = u32::try_from(tag >> 3).map_err(|_| bad("a field number is out of range"))?;
    let value = match tag & 7 {
        0 => Value::Varint(read_varint(bytes)?),
        1 => take(bytes, 8).map(|_| Value::Fixed)?,
        2 => {
            let length = read_varint(bytes)?;
            let length = usize::try_from(length).map_err(|_| bad("a length is out of range"))?;
            Value::Bytes(take(bytes, length)?)
        }
        5 => take(bytes, 4).map(|_| Value::Fixed)?,
        _ => return Err(bad("a field has an unknown wire type")),
    };
    Ok(Some((number, value)))
}

pub(crate) fn read_varint(bytes: &mut &[u8]) -> Result<u64, BadProto> {
    let mut value = 0u64;
    for shift in (0..70).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or_else(|| bad("the message is cut short"))?;
        *bytes = rest;
        // The tenth byte has room for one bit; protobuf drops the others.
        value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(bad("a number is too long"))
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Result<&'a [u8], BadProto> {
    let (head, rest) =
        bytes.split_at_checked(length).ok_or_else(|| bad("the message is cut short"))?;
    *bytes = rest;
    Ok(head)
}

fn bad(text: &str) -> BadProto {
    BadProto(format!("proto: {text}"))
}
