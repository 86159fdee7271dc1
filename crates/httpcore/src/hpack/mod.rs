//! HPACK (RFC 7541): header fields to bytes and back.
//!
//! In:  header blocks of one connection, whole and in order. Out: fields as shared `Bytes`, so that
//! a field found in a table costs two reference counts and no copy.
//!
//! This room knows neither frames nor the meaning of a header. The encoders never use Huffman
//! codes: what repeats is indexed and costs a byte anyway, what does not is short.
//!
//! Always true: an error leaves the table in an unknown state, so the connection must end.

mod decoder;
mod encoder;
mod huffman;
mod integer;
mod tables;

pub use decoder::{Block, Decoder};
pub use encoder::Encoder;

use bytes::Bytes;

/// One header field. Name and value are what was on the wire; nothing is checked here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    pub name: Bytes,
    pub value: Bytes,
}

impl Field {
    /// The size that counts against tables and lists (RFC 7541 section 4.1).
    fn size(&self) -> usize {
        field_size(&self.name, &self.value)
    }
}

fn field_size(name: &[u8], value: &[u8]) -> usize {
    name.len() + value.len() + 32
}

/// The block cannot be decoded: a COMPRESSION_ERROR.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

/// The size of a dynamic table until the decoder's side announces another.
pub const TABLE_BYTES_DEFAULT: usize = 4096;

#[cfg(test)]
mod rfc_examples;
