//! Protobuf bytes to JSON.
//!
//! Zeros are left out, 64-bit integers are strings, bytes are base64, enums are names, and fields
//! come in the order of the `.proto` file, whatever their order on the wire.

use crate::schema::{Field, Kind, Message, Schema, Shape};
use crate::text::write_string;
use crate::wire::{self, Value};
use crate::{BadProto, DEPTH_MAX, base64};
use std::borrow::Cow;

pub(crate) fn write_message(
    schema: &Schema,
    message: &Message,
    proto: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), BadProto> {
    Writer { schema, out }.message(message, proto, 0)
}

struct Writer<'a> {
    schema: &'a Schema,
    out: &'a mut Vec<u8>,
}

impl Writer<'_> {
    fn message(&mut self, message: &Message, proto: &[u8], depth: usize) -> Result<(), BadProto> {
        if depth > DEPTH_MAX {
            return Err(BadProto("proto: exceeded max recursion depth".into()));
        }
        let values = read_values(message, proto)?;
        self.out.push(b'{');
        let mut comma = Comma::default();
        for run in values.chunk_by(|a, b| a.0 == b.0) {
            let field = &message.fields[run[0].0];
            match field.shape {
                Shape::One => self.single(field, run, &mut comma, depth)?,
                Shape::List => self.list(field, run, &mut comma, depth)?,
                Shape::Map => self.map(field, run, &mut comma, depth)?,
            }
        }
        self.out.push(b'}');
        Ok(())
    }

    fn single(
        &mut self,
        field: &Field,
        run: &[(usize, Value)],
        comma: &mut Comma,
        depth: usize,
    ) -> Result<(), BadProto> {
        let Some((_, value)) = run.last() else { return Ok(()) };
        let zero = matches!(value, Value::Varint(0) | Value::Bytes([]));
        if zero && !field.presence {
            return Ok(());
        }
        self.name(field, comma);
        match field.kind {
            Kind::Message(place) => {
                let merged = merged(run);
                self.message(self.schema.message_at(place), &merged, depth + 1)
            }
            _ => self.scalar(field, *value),
        }
    }

    fn list(
        &mut self,
        field: &Field,
        run: &[(usize, Value)],
        comma: &mut Comma,
        depth: usize,
    ) -> Result<(), BadProto> {
        let before = (self.out.len(), comma.needed);
        self.name(field, comma);
        self.out.push(b'[');
        let mut element = Comma::default();
        for (_, value) in run {
            match (field.kind, *value) {
                (Kind::Message(place), Value::Bytes(bytes)) => {
                    element.write(self.out);
                    self.message(self.schema.message_at(place), bytes, depth + 1)?;
                }
                (kind, Value::Bytes(mut packed)) if kind.is_number() => {
                    while !packed.is_empty() {
                        element.write(self.out);
                        self.scalar(field, Value::Varint(wire::read_varint(&mut packed)?))?;
                    }
                }
                (_, value) => {
                    element.write(self.out);
                    self.scalar(field, value)?;
                }
            }
        }
        if element.needed {
            self.out.push(b']');
        } else {
            // A packed list may hold nothing; then there is no list.
            self.out.truncate(before.0);
            comma.needed = before.1;
        }
        Ok(())
    }

    fn map(
        &mut self,
        field: &Field,
        run: &[(usize, Value)],
        comma: &mut Comma,
        depth: usize,
    ) -> Result<(), BadProto> {
        let Kind::Message(place) = field.kind else { unreachable!("a map has entries") };
        let entry = self.schema.message_at(place);
        let mut entries = Vec::new();
        for (_, value) in run {
            let Value::Bytes(bytes) = *value else { continue };
            let held = read_values(entry, bytes)?;
            let last = |number| {
                let place = entry.place_of_number(number);
                held.iter().rfind(|(held, _)| Some(*held) == place).map(|(_, value)| *value)
            };
            let Some(Value::Bytes(key)) = last(1).or(Some(Value::Bytes(b""))) else { continue };
            entries.push((text(entry, 0, key)?, last(2)));
        }
        entries.sort_by_key(|(key, _)| *key);
        self.name(field, comma);
        self.out.push(b'{');
        let mut element = Comma::default();
        for (key, value) in entries {
            element.write(self.out);
            write_string(key, self.out);
            self.out.push(b':');
            match (entry.fields[1].kind, value) {
                (Kind::Message(place), value) => {
                    let bytes = if let Some(Value::Bytes(bytes)) = value { bytes } else { b"" };
                    self.message(self.schema.message_at(place), bytes, depth + 1)?;
                }
                (Kind::String | Kind::Bytes, None) => self.out.extend_from_slice(b"\"\""),
                (_, value) => self.scalar(&entry.fields[1], value.unwrap_or(Value::Varint(0)))?,
            }
        }
        self.out.push(b'}');
        Ok(())
    }

    fn scalar(&mut self, field: &Field, value: Value) -> Result<(), BadProto> {
        match (field.kind, value) {
            (Kind::Bool, Value::Varint(bit)) => self.print(if bit != 0 { "true" } else { "false" }),
            (Kind::Int32, Value::Varint(bits)) => self.print(bits as i32),
            (Kind::Uint32, Value::Varint(bits)) => self.print(bits as u32),
            (Kind::Int64, Value::Varint(bits)) => self.print(format_args!("\"{}\"", bits as i64)),
            (Kind::Uint64, Value::Varint(bits)) => self.print(format_args!("\"{bits}\"")),
            (Kind::Enum(place), Value::Varint(bits)) => {
                match self.schema.enum_at(place).name(bits as i32) {
                    Some(name) => write_string(name, self.out),
                    None => self.print(bits as i32),
                }
            }
            (Kind::String, Value::Bytes(bytes)) => {
                let text = std::str::from_utf8(bytes).map_err(|_| not_text(field))?;
                write_string(text, self.out);
            }
            (Kind::Bytes, Value::Bytes(bytes)) => {
                self.out.push(b'"');
                base64::write(bytes, self.out);
                self.out.push(b'"');
            }
            _ => unreachable!("values that do not fit their field were dropped when read"),
        }
        Ok(())
    }

    fn name(&mut self, field: &Field, comma: &mut Comma) {
        comma.write(self.out);
        self.out.push(b'"');
        self.out.extend_from_slice(field.name.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    fn print(&mut self, value: impl std::fmt::Display) {
        use std::io::Write;
        write!(self.out, "{value}").expect("a Vec takes everything");
    }
}

/// Separates what follows something from it.
#[derive(Default)]
struct Comma {
    needed: bool,
}

impl Comma {
    fn write(&mut self, out: &mut Vec<u8>) {
        if self.needed {
            out.push(b',');
        }
        self.needed = true;
    }
}

/// The values of a message in the order of its fields. Unknown fields are dropped, values of a
/// wrong wire type too, and all but the last set member of each oneof.
fn read_values<'a>(
    message: &Message,
    mut proto: &'a [u8],
) -> Result<Vec<(usize, Value<'a>)>, BadProto> {
    let mut values: Vec<(usize, Value)> = Vec::new();
    while let Some((number, value)) = wire::next_field(&mut proto)? {
        let Some(place) = message.place_of_number(number) else { continue };
        let field = &message.fields[place];
        if !fits(field, value) {
            continue;
        }
        if field.oneof.is_some() {
            values.retain(|(held, _)| *held == place || message.fields[*held].oneof != field.oneof);
        }
        values.push((place, value));
    }
    // Usually they are in order already. The sort is stable: lists keep theirs.
    if !values.is_sorted_by_key(|(place, _)| *place) {
        values.sort_by_key(|(place, _)| *place);
    }
    Ok(values)
}

fn fits(field: &Field, value: Value) -> bool {
    match value {
        Value::Varint(_) => field.kind.is_number(),
        Value::Bytes(_) => !field.kind.is_number() || field.shape == Shape::List,
        Value::Fixed => false,
    }
}

/// A message that comes in pieces is their concatenation: so protobuf defines merging.
fn merged<'a>(run: &[(usize, Value<'a>)]) -> Cow<'a, [u8]> {
    let bytes = |value: &Value<'a>| match value {
        Value::Bytes(bytes) => *bytes,
        _ => &[],
    };
    match run {
        [(_, value)] => Cow::Borrowed(bytes(value)),
        _ => Cow::Owned(run.iter().flat_map(|(_, value)| bytes(value)).copied().collect()),
    }
}

fn text<'a>(message: &Message, place: usize, bytes: &'a [u8]) -> Result<&'a str, BadProto> {
    std::str::from_utf8(bytes).map_err(|_| not_text(&message.fields[place]))
}

fn not_text(field: &Field) -> BadProto {
    BadProto(format!("proto: field {} contains invalid UTF-8", field.name))
}
