//! JSON to protobuf bytes.
//!
//! The text has been scanned before: it is one whole JSON value, so what can still be wrong is
//! that it does not fit the message, or that a string is no UTF-8. Fields are written in the order
//! of the text.

use crate::schema::{Field, Kind, Message, Schema, Shape};
use crate::token::{Token, Tokens};
use crate::wire::{write_bytes, write_number, write_varint};
use crate::{BadJson, DEPTH_MAX, base64, number};

pub(crate) fn read_message(
    schema: &Schema,
    message: &Message,
    json: &[u8],
) -> Result<Vec<u8>, BadJson> {
    let mut out = Vec::with_capacity(json.len());
    Reader { schema, tokens: Tokens::new(json) }.message(message, 0, &mut out)?;
    Ok(out)
}

struct Reader<'a> {
    schema: &'a Schema,
    tokens: Tokens<'a>,
}

impl Reader<'_> {
    fn message(
        &mut self,
        message: &Message,
        depth: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), BadJson> {
        if depth > DEPTH_MAX {
            return Err(BadJson("proto: exceeded max recursion depth".into()));
        }
        self.tokens.open(b'{')?;
        let mut seen = 0u64;
        let mut oneofs_set = 0u64;
        while let Some((start, name)) = self.tokens.key()? {
            let Some(place) = message.place_of_name(&name) else {
                self.tokens.skip_value()?;
                continue;
            };
            if seen & 1 << place != 0 {
                return Err(self.tokens.wrong(start, &format!("duplicate field {name:?}")));
            }
            seen |= 1 << place;
            if self.tokens.null() {
                continue;
            }
            let field = &message.fields[place];
            if let Some(oneof) = field.oneof {
                if oneofs_set & 1 << oneof != 0 {
                    let set = format!(
                        "error parsing {name:?}, oneof {}.{} is already set",
                        message.name, message.oneofs[oneof]
                    );
                    return Err(self.tokens.wrong(start, &set));
                }
                oneofs_set |= 1 << oneof;
            }
            match field.shape {
                Shape::One => self.single(field, depth, out)?,
                Shape::List => self.list(field, depth, out)?,
                Shape::Map => self.map(field, depth, out)?,
            }
        }
        Ok(())
    }

    fn single(&mut self, field: &Field, depth: usize, out: &mut Vec<u8>) -> Result<(), BadJson> {
        match field.kind {
            Kind::Message(place) => self.child(field.number, place, depth, out),
            Kind::String | Kind::Bytes => {
                let bytes = self.bytes(field)?;
                if field.presence || !bytes.is_empty() {
                    write_bytes(field.number, &bytes, out);
                }
                Ok(())
            }
            _ => {
                let value = self.number(field)?;
                if let Some(value) = value.filter(|value| field.presence || *value != 0) {
                    write_number(field.number, value, out);
                }
                Ok(())
            }
        }
    }

    fn list(&mut self, field: &Field, depth: usize, out: &mut Vec<u8>) -> Result<(), BadJson> {
        self.tokens.open(b'[')?;
        let mut packed = Vec::new();
        while self.tokens.element() {
            match field.kind {
                Kind::Message(place) => self.child(field.number, place, depth, out)?,
                Kind::String | Kind::Bytes => {
                    let bytes = self.bytes(field)?;
                    write_bytes(field.number, &bytes, out);
                }
                _ => {
                    if let Some(value) = self.number(field)? {
                        write_varint(value, &mut packed);
                    }
                }
            }
        }
        if !packed.is_empty() {
            write_bytes(field.number, &packed, out);
        }
        Ok(())
    }

    fn map(&mut self, field: &Field, depth: usize, out: &mut Vec<u8>) -> Result<(), BadJson> {
        let Kind::Message(place) = field.kind else { unreachable!("a map has entries") };
        let value = &self.schema.message_at(place).fields[1];
        self.tokens.open(b'{')?;
        let mut keys = std::collections::HashSet::new();
        while let Some((start, key)) = self.tokens.key()? {
            let mut entry = Vec::new();
            write_bytes(1, key.as_bytes(), &mut entry);
            if !keys.insert(key.to_string()) {
                return Err(self.tokens.wrong(start, &format!("duplicate map key {key:?}")));
            }
            self.single(value, depth, &mut entry)?;
            write_bytes(field.number, &entry, out);
        }
        Ok(())
    }

    fn child(
        &mut self,
        number: u32,
        place: usize,
        depth: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), BadJson> {
        let mut inner = Vec::new();
        self.message(self.schema.message_at(place), depth + 1, &mut inner)?;
        write_bytes(number, &inner, out);
        Ok(())
    }

    /// A string or bytes.
    fn bytes(&mut self, field: &Field) -> Result<Vec<u8>, BadJson> {
        let (start, token) = self.tokens.scalar()?;
        let bytes = match (&token, field.kind) {
            (Token::Text(text), Kind::String) => Some(text.as_bytes().to_vec()),
            (Token::Text(text), Kind::Bytes) => base64::read(text),
            _ => None,
        };
        bytes.ok_or_else(|| self.misfit(field, start))
    }

    /// A number, a bool or an enum, as its varint. `None` for a name the enum does not have, which
    /// counts as not given.
    fn number(&mut self, field: &Field) -> Result<Option<u64>, BadJson> {
        let (start, token) = self.tokens.scalar()?;
        let written = match &token {
            Token::Number(digits) => Some(*digits),
            // Quoted numbers may not be surrounded by white space, but enums are never quoted.
            Token::Text(text) if !matches!(field.kind, Kind::Enum(_)) => Some(text.as_ref()),
            _ => None,
        };
        let written = written.and_then(number::integer);
        let value = match (field.kind, &token) {
            (Kind::Bool, Token::True) => Some(1),
            (Kind::Bool, Token::False) => Some(0),
            (Kind::Bool, _) => None,
            (Kind::Enum(place), Token::Text(name)) => {
                return Ok(self.schema.enum_at(place).number(name).map(|n| n as i64 as u64));
            }
            (Kind::Int32 | Kind::Enum(_), _) => {
                written.and_then(|n| i32::try_from(n).ok()).map(|n| n as i64 as u64)
            }
            (Kind::Int64, _) => written.and_then(|n| i64::try_from(n).ok()).map(|n| n as u64),
            (Kind::Uint32, _) => written.and_then(|n| u32::try_from(n).ok()).map(u64::from),
            _ => written.and_then(|n| u64::try_from(n).ok()),
        };
        value.map(Some).ok_or_else(|| self.misfit(field, start))
    }

    fn misfit(&self, field: &Field, start: usize) -> BadJson {
        let word = field.kind.word();
        let text = format!("invalid value for {word} field {}: ", field.json_name);
        self.tokens.wrong(start, &(text + &self.tokens.raw(start)))
    }
}
