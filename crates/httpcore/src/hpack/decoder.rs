//! From header blocks to fields.

use std::collections::VecDeque;
use std::sync::LazyLock;

use bytes::Bytes;

use super::tables::STATIC_FIELDS;
use super::{Field, Malformed, TABLE_BYTES_DEFAULT, huffman, integer};

/// The decoder of one connection.
pub struct Decoder {
    /// Newest entry first, as the indices count.
    dynamic: VecDeque<Field>,
    size: usize,
    size_max: usize,
    /// What we announced; the peer's size updates may not exceed it.
    size_limit: usize,
    generation: u64,
    scratch: Vec<u8>,
}

/// The fields of one header block.
#[derive(Debug)]
pub struct Block {
    pub fields: Vec<Field>,
    /// The list was larger than allowed, and fields beyond the limit are missing. The tables are
    /// intact, so only this stream must suffer.
    pub truncated: bool,
    /// All fields came from the tables.
    pub indexed: bool,
}

static STATIC: LazyLock<Vec<Field>> = LazyLock::new(|| {
    let field = |&(name, value): &(&'static str, &'static str)| Field {
        name: Bytes::from_static(name.as_bytes()),
        value: Bytes::from_static(value.as_bytes()),
    };
    STATIC_FIELDS.iter().map(field).collect()
});

impl Default for Decoder {
    fn default() -> Decoder {
        Decoder {
            dynamic: VecDeque::new(),
            size: 0,
            size_max: TABLE_BYTES_DEFAULT,
            size_limit: TABLE_BYTES_DEFAULT,
            generation: 0,
            scratch: Vec::new(),
        }
    }
}

impl Decoder {
    /// Changes with every change of the dynamic table. The same block decoded at the same
    /// generation gives the same fields, and leaves the generation as it is only if the block
    /// changed nothing: that is what makes decoded blocks worth remembering.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Decodes one whole header block. `list_bytes_max` bounds the sum of the field sizes.
    pub fn decode(&mut self, block: &[u8], list_bytes_max: usize) -> Result<Block, Malformed> {
        let mut decoded = Block { fields: Vec::with_capacity(12), truncated: false, indexed: true };
        let mut list_bytes = 0;
        let mut at = 0;
        while at < block.len() {
            let first = block[at];
            if first & 0xe0 == 0x20 {
                if list_bytes > 0 {
                    return Err(Malformed("a table size update follows a field"));
                }
                let size = integer::decode(block, &mut at, 5)?;
                self.resize(size)?;
                continue;
            }
            let field = if first & 0x80 != 0 {
                let index = integer::decode(block, &mut at, 7)?;
                self.field(index)?.clone()
            } else if first & 0x40 != 0 {
                decoded.indexed = false;
                let field = self.literal(block, &mut at, 6)?;
                self.insert(field.clone());
                field
            } else {
                decoded.indexed = false;
                self.literal(block, &mut at, 4)?
            };
            list_bytes += field.size();
            if list_bytes > list_bytes_max {
                decoded.truncated = true;
            } else {
                decoded.fields.push(field);
            }
        }
        Ok(decoded)
    }

    fn field(&self, index: usize) -> Result<&Field, Malformed> {
        const UNKNOWN: Malformed = Malformed("a header block refers to an index that is not there");
        let position = index.checked_sub(1).ok_or(UNKNOWN)?;
        match position.checked_sub(STATIC_FIELDS.len()) {
            None => Ok(&STATIC[position]),
            Some(position) => self.dynamic.get(position).ok_or(UNKNOWN),
        }
    }

    fn literal(
        &mut self,
        block: &[u8],
        at: &mut usize,
        prefix_bits: u32,
    ) -> Result<Field, Malformed> {
        let name = match integer::decode(block, at, prefix_bits)? {
            0 => self.string(block, at)?,
            index => self.field(index)?.name.clone(),
        };
        Ok(Field { name, value: self.string(block, at)? })
    }

    /// Strings are copied out: a slice would keep a whole read buffer alive for as long as the
    /// entry stays in the table.
    fn string(&mut self, block: &[u8], at: &mut usize) -> Result<Bytes, Malformed> {
        const CUT: Malformed = Malformed("a header block ends inside a string");
        let coded = block.get(*at).ok_or(CUT)? & 0x80 != 0;
        let length = integer::decode(block, at, 7)?;
        let end = at.checked_add(length).ok_or(CUT)?;
        let raw = block.get(*at..end).ok_or(CUT)?;
        *at = end;
        if !coded {
            return Ok(Bytes::copy_from_slice(raw));
        }
        self.scratch.clear();
        huffman::decode(raw, &mut self.scratch)?;
        Ok(Bytes::copy_from_slice(&self.scratch))
    }

    fn insert(&mut self, field: Field) {
        self.generation += 1;
        let size = field.size();
        self.evict(self.size_max.saturating_sub(size));
        // A field larger than the table empties it and is not an error (section 4.4).
        if size <= self.size_max {
            self.size += size;
            self.dynamic.push_front(field);
        }
    }

    fn resize(&mut self, size_max: usize) -> Result<(), Malformed> {
        if size_max > self.size_limit {
            return Err(Malformed("a table size update exceeds the announced limit"));
        }
        self.generation += 1;
        self.size_max = size_max;
        self.evict(size_max);
        Ok(())
    }

    fn evict(&mut self, size_max: usize) {
        while self.size > size_max {
            let oldest = self.dynamic.pop_back().expect("a table with a size has an entry");
            self.size -= oldest.size();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(decoder: &mut Decoder, block: &[u8]) -> Vec<(String, String)> {
        let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
        let block = decoder.decode(block, 1 << 16).expect("the block is legal");
        block.fields.iter().map(|field| (text(&field.name), text(&field.value))).collect()
    }

    #[test]
    fn a_size_update_empties_the_table_and_must_come_first() {
        let mut decoder = Decoder::default();
        fields(&mut decoder, b"\x40\x01a\x01b");
        assert_eq!(fields(&mut decoder, &[0xbe]), [("a".into(), "b".into())]);
        assert_eq!(fields(&mut decoder, &[0x20, 0x82]), [(":method".into(), "GET".into())]);
        assert!(decoder.decode(&[0xbe], 1 << 16).is_err(), "the entry is gone");
        assert!(decoder.decode(&[0x82, 0x20], 1 << 16).is_err(), "an update after a field");
    }

    #[test]
    fn a_size_update_may_not_exceed_what_was_announced() {
        let mut decoder = Decoder::default();
        assert!(decoder.decode(&[0x3f, 0xe1, 0x1f], 1 << 16).is_ok(), "4096");
        assert!(decoder.decode(&[0x3f, 0xe2, 0x1f], 1 << 16).is_err(), "4097");
    }

    #[test]
    fn a_list_too_large_is_cut_and_the_table_stays_right() {
        let mut decoder = Decoder::default();
        let block = decoder.decode(b"\x40\x01a\x01b\x40\x01c\x01d", 40).expect("legal");
        assert!(block.truncated);
        assert_eq!(block.fields.len(), 1);
        assert_eq!(fields(&mut decoder, &[0xbe]), [("c".into(), "d".into())]);
    }

    #[test]
    fn an_entry_larger_than_the_table_empties_it() {
        let mut decoder = Decoder::default();
        fields(&mut decoder, b"\x40\x01a\x01b");
        let mut block = b"\x40\x01a\x7f\x80\x40".to_vec();
        block.extend(vec![b'x'; 127 + 8192]);
        assert_eq!(fields(&mut decoder, &block).len(), 1);
        assert!(decoder.decode(&[0xbe], 1 << 16).is_err());
    }

    #[test]
    fn the_generation_moves_only_with_the_table() {
        let mut decoder = Decoder::default();
        fields(&mut decoder, b"\x40\x01a\x01b");
        let before = decoder.generation();
        fields(&mut decoder, b"\xbe\x82\x00\x01x\x01y");
        assert_eq!(decoder.generation(), before);
        fields(&mut decoder, b"\x40\x01a\x01b");
        assert_ne!(decoder.generation(), before);
    }
}
