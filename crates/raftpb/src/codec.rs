//! Protobuf's wire format: as much of it as the log needs.

use thiserror::Error;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("malformed log message: {0}")]
pub struct DecodeError(pub &'static str);

pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub fn put_uint(out: &mut Vec<u8>, number: u32, value: u64) {
    put_varint(out, u64::from(number) << 3);
    put_varint(out, value);
}

pub fn put_bytes(out: &mut Vec<u8>, number: u32, value: &[u8]) {
    put_varint(out, u64::from(number) << 3 | 2);
    put_varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

/// One field as it stands on the wire. Fixed-width fields, which the log does not use, come as
/// `Other` and are skipped by everyone.
pub enum Field<'a> {
    Uint(u64, u64),
    Bytes(u64, &'a [u8]),
    Other,
}

/// Walks over the fields of a message.
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub fn new(bytes: &'a [u8]) -> Fields<'a> {
        Fields { rest: bytes }
    }

    /// What has not been walked over yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    fn varint(&mut self) -> Result<u64, DecodeError> {
        let mut value = 0u64;
        for shift in (0..70).step_by(7) {
            let (&byte, rest) = self.rest.split_first().ok_or(DecodeError("cut varint"))?;
            self.rest = rest;
            if shift == 63 && byte > 1 {
                return Err(DecodeError("varint beyond 64 bits"));
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(DecodeError("varint beyond 64 bits"))
    }

    fn take(&mut self, len: u64) -> Result<&'a [u8], DecodeError> {
        if len > self.rest.len() as u64 {
            return Err(DecodeError("field longer than its message"));
        }
        let (taken, rest) = self.rest.split_at(len as usize);
        self.rest = rest;
        Ok(taken)
    }

    fn field(&mut self) -> Result<Field<'a>, DecodeError> {
        let tag = self.varint()?;
        match tag & 7 {
            0 => Ok(Field::Uint(tag >> 3, self.varint()?)),
            1 => self.take(8).map(|_| Field::Other),
            2 => {
                let len = self.varint()?;
                Ok(Field::Bytes(tag >> 3, self.take(len)?))
            }
            5 => self.take(4).map(|_| Field::Other),
            _ => Err(DecodeError("unknown wire type")),
        }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}
