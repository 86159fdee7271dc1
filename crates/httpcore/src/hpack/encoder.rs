//! From fields to header blocks.

use std::collections::VecDeque;

use bytes::Bytes;

use super::tables::STATIC_FIELDS;
use super::{Field, TABLE_BYTES_DEFAULT, field_size, integer};

/// The encoder of one connection. What repeats goes into the dynamic table, so that a second
/// block with the same fields is a few bytes.
pub struct Encoder {
    /// Newest entry first, as the indices count.
    dynamic: VecDeque<Field>,
    size: usize,
    size_max: usize,
    /// The smallest size and the last size the peer asked for since the last block; both must be
    /// acknowledged at the start of the next one (RFC 7541 section 4.2).
    resized: Option<usize>,
    generation: u64,
}

impl Default for Encoder {
    fn default() -> Encoder {
        Encoder {
            dynamic: VecDeque::new(),
            size: 0,
            size_max: TABLE_BYTES_DEFAULT,
            resized: None,
            generation: 0,
        }
    }
}

impl Encoder {
    /// Changes with every change of the table: a block encoded twice with no change in between
    /// is the same bytes, and may be kept.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Applies the peer's SETTINGS_HEADER_TABLE_SIZE.
    pub fn resize(&mut self, peer_max: usize) {
        // More than the default is never needed for the few fields that repeat.
        let size_max = peer_max.min(TABLE_BYTES_DEFAULT);
        if size_max == self.size_max {
            return;
        }
        self.generation += 1;
        self.resized = Some(self.resized.map_or(size_max, |smallest| smallest.min(size_max)));
        self.size_max = size_max;
        self.evict(size_max);
    }

    /// Must begin every block: acknowledges a changed table size.
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        if let Some(smallest) = self.resized.take() {
            self.generation += 1;
            if smallest < self.size_max {
                integer::encode(smallest, 5, 0x20, out);
            }
            integer::encode(self.size_max, 5, 0x20, out);
        }
    }

    /// Adds a field that will be sent again, and so is worth a place in the table.
    pub fn repeated(&mut self, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        match self.find(name, value) {
            Found::Field(index) => integer::encode(index, 7, 0x80, out),
            found => {
                // An entry that would push out most of the table is not worth its place.
                if field_size(name, value) > self.size_max / 2 {
                    return literal(found, 4, 0x00, name, value, out);
                }
                literal(found, 6, 0x40, name, value, out);
                self.insert(name, value);
            }
        }
    }

    /// Adds a field that will probably not be sent again, or not with this value.
    pub fn once(&mut self, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        match self.find(name, value) {
            Found::Field(index) => integer::encode(index, 7, 0x80, out),
            found => literal(found, 4, 0x00, name, value, out),
        }
    }

    fn find(&self, name: &[u8], value: &[u8]) -> Found {
        let mut found = Found::Nothing;
        for (position, &(its_name, its_value)) in STATIC_FIELDS.iter().enumerate() {
            if its_name.as_bytes() == name {
                if its_value.as_bytes() == value {
                    return Found::Field(position + 1);
                }
                if matches!(found, Found::Nothing) {
                    found = Found::Name(position + 1);
                }
            }
        }
        for (position, field) in self.dynamic.iter().enumerate() {
            if field.name == name {
                let index = STATIC_FIELDS.len() + position + 1;
                if field.value == value {
                    return Found::Field(index);
                }
                if matches!(found, Found::Nothing) {
                    found = Found::Name(index);
                }
            }
        }
        found
    }

    fn insert(&mut self, name: &[u8], value: &[u8]) {
        self.generation += 1;
        let size = field_size(name, value);
        self.evict(self.size_max - size);
        self.size += size;
        self.dynamic.push_front(Field {
            name: Bytes::copy_from_slice(name),
            value: Bytes::copy_from_slice(value),
        });
    }

    fn evict(&mut self, size_max: usize) {
        while self.size > size_max {
            let oldest = self.dynamic.pop_back().expect("a table with a size has an entry");
            self.size -= oldest.size();
        }
    }
}

enum Found {
    Field(usize),
    Name(usize),
    Nothing,
}

fn literal(
    found: Found,
    prefix_bits: u32,
    flags: u8,
    name: &[u8],
    value: &[u8],
    out: &mut Vec<u8>,
) {
    match found {
        Found::Field(index) | Found::Name(index) => {
            integer::encode(index, prefix_bits, flags, out);
        }
        Found::Nothing => {
            out.push(flags);
            string(name, out);
        }
    }
    string(value, out);
}

fn string(text: &[u8], out: &mut Vec<u8>) {
    integer::encode(text.len(), 7, 0x00, out);
    out.extend_from_slice(text);
}

#[cfg(test)]
mod tests {
    use super::super::Decoder;
    use super::*;

    #[test]
    fn what_repeats_is_one_byte() {
        let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
        for round in 0..3 {
            let mut out = Vec::new();
            encoder.begin(&mut out);
            encoder.repeated(b":path", b"/a/B", &mut out);
            encoder.repeated(b"x-name", b"value", &mut out);
            let block = decoder.decode(&out, 1 << 16).expect("our own block");
            assert_eq!(block.fields[1].name, "x-name");
            assert_eq!(block.fields[1].value, "value");
            assert_eq!(out.len() == 2, round > 0, "round {round}: {} bytes", out.len());
        }
    }

    #[test]
    fn a_shrunk_table_is_acknowledged_before_the_next_field() {
        let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
        let mut encode = |encoder: &mut Encoder| {
            let mut out = Vec::new();
            encoder.begin(&mut out);
            encoder.repeated(b"a", b"b", &mut out);
            let block = decoder.decode(&out, 1 << 16).expect("our own block");
            assert_eq!(block.fields.len(), 1);
            out
        };
        encode(&mut encoder);
        encoder.resize(0);
        encoder.resize(200);
        let out = encode(&mut encoder);
        assert_eq!(out[..4], [0x20, 0x3f, 0xa9, 0x01], "to 0, then to 200");
        encoder.resize(0);
        assert_eq!(encode(&mut encoder)[0], 0x20);
        assert_eq!(encode(&mut encoder), b"\x00\x01a\x01b", "no table, so a plain literal");
    }
}
