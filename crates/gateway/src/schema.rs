//! The API's messages as the translator needs them: fields by number, by name and in order.

use prost::Message as _;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorSet};
use std::collections::HashMap;

/// Every message and enum of a set of descriptors.
pub(crate) struct Schema {
    messages: Vec<Message>,
    enums: Vec<Enum>,
    message_names: HashMap<String, usize>,
}

pub(crate) struct Message {
    pub(crate) name: String,
    /// In the order of the `.proto` file, which is the order of the JSON.
    pub(crate) fields: Vec<Field>,
    by_name: HashMap<String, usize>,
    by_number: HashMap<u32, usize>,
    pub(crate) oneofs: Vec<String>,
}

pub(crate) struct Field {
    pub(crate) number: u32,
    /// As in the `.proto` file: what is written.
    pub(crate) name: String,
    /// lowerCamelCase: what is read too, and what errors say.
    pub(crate) json_name: String,
    pub(crate) kind: Kind,
    pub(crate) shape: Shape,
    /// Whether a zero differs from no value, as in a oneof.
    pub(crate) presence: bool,
    pub(crate) oneof: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    One,
    List,
    /// Entries of a key and a value, written as one JSON object. Keys are strings.
    Map,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    Int32,
    Int64,
    Uint32,
    Uint64,
    String,
    Bytes,
    Enum(usize),
    Message(usize),
}

pub(crate) struct Enum {
    names: HashMap<i32, String>,
    numbers: HashMap<String, i32>,
}

impl Schema {
    /// The API's own messages.
    pub(crate) fn of_api() -> Schema {
        let set = FileDescriptorSet::decode(api::DESCRIPTORS)
            .expect("the descriptors were written by the build of this very code");
        Schema::new(&set)
    }

    fn new(set: &FileDescriptorSet) -> Schema {
        let mut found = Found::default();
        for file in &set.file {
            let explicit = !matches!(file.syntax(), "proto3");
            found.look(file.package(), &file.message_type, &file.enum_type, explicit);
        }
        let index = |names: Vec<&String>| -> HashMap<String, usize> {
            names.into_iter().cloned().enumerate().map(|(place, name)| (name, place)).collect()
        };
        let message_names = index(found.messages.iter().map(|(name, ..)| name).collect());
        let enum_names = index(found.enums.iter().map(|(name, _)| name).collect());
        let messages = found
            .messages
            .iter()
            .map(|(name, message, explicit)| {
                let fields = message.field.iter().map(|field| {
                    let kind = kind(field, &message_names, &enum_names);
                    let entry = matches!(kind, Kind::Message(entry) if found.is_map_entry(entry));
                    read_field(field, kind, entry, *explicit)
                });
                Message::new(name.clone(), fields.collect(), message)
            })
            .collect();
        let enums = found.enums.iter().map(|(_, held)| Enum::new(held)).collect();
        Schema { messages, enums, message_names }
    }

    /// The message of that full name. Names come from our own table of routes, never from outside.
    pub(crate) fn message(&self, name: &str) -> &Message {
        match self.message_names.get(name) {
            Some(place) => &self.messages[*place],
            None => panic!("{name} is no message of the API"),
        }
    }

    pub(crate) fn message_at(&self, place: usize) -> &Message {
        &self.messages[place]
    }

    pub(crate) fn enum_at(&self, place: usize) -> &Enum {
        &self.enums[place]
    }

    /// The full names of all messages.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.messages.iter().map(|message| message.name.as_str())
    }
}

impl Message {
    fn new(name: String, fields: Vec<Field>, described: &DescriptorProto) -> Message {
        assert!(fields.len() <= 64, "{name} has more fields than a word of marks");
        let mut by_name = HashMap::new();
        for (place, field) in fields.iter().enumerate() {
            by_name.insert(field.name.clone(), place);
            by_name.insert(field.json_name.clone(), place);
        }
        let by_number = fields.iter().enumerate().map(|(place, field)| (field.number, place));
        let by_number = by_number.collect();
        let oneofs = described.oneof_decl.iter().map(|oneof| oneof.name().to_string()).collect();
        Message { name, fields, by_name, by_number, oneofs }
    }

    pub(crate) fn place_of_name(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    pub(crate) fn place_of_number(&self, number: u32) -> Option<usize> {
        self.by_number.get(&number).copied()
    }
}

impl Enum {
    fn new(described: &EnumDescriptorProto) -> Enum {
        let values = described.value.iter();
        let numbers = values.clone().map(|value| (value.name().to_string(), value.number()));
        let names = values.map(|value| (value.number(), value.name().to_string()));
        Enum { names: names.collect(), numbers: numbers.collect() }
    }

    pub(crate) fn name(&self, number: i32) -> Option<&str> {
        self.names.get(&number).map(String::as_str)
    }

    pub(crate) fn number(&self, name: &str) -> Option<i32> {
        self.numbers.get(name).copied()
    }
}

impl Kind {
    /// What errors call it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Kind::Bool => "bool",
            Kind::Int32 => "int32",
            Kind::Int64 => "int64",
            Kind::Uint32 => "uint32",
            Kind::Uint64 => "uint64",
            Kind::String => "string",
            Kind::Bytes => "bytes",
            Kind::Enum(_) => "enum",
            Kind::Message(_) => "message",
        }
    }

    /// Whether it is a varint on the wire, so that a list of it is packed.
    pub(crate) fn is_number(self) -> bool {
        !matches!(self, Kind::String | Kind::Bytes | Kind::Message(_))
    }
}

/// Messages and enums with their full names, while the descriptors are being walked.
#[derive(Default)]
struct Found<'a> {
    messages: Vec<(String, &'a DescriptorProto, bool)>,
    enums: Vec<(String, &'a EnumDescriptorProto)>,
}

impl<'a> Found<'a> {
    fn look(
        &mut self,
        scope: &str,
        messages: &'a [DescriptorProto],
        enums: &'a [EnumDescriptorProto],
        explicit: bool,
    ) {
        for held in enums {
            self.enums.push((format!("{scope}.{}", held.name()), held));
        }
        for message in messages {
            let name = format!("{scope}.{}", message.name());
            self.messages.push((name.clone(), message, explicit));
            self.look(&name, &message.nested_type, &message.enum_type, explicit);
        }
    }

    fn is_map_entry(&self, place: usize) -> bool {
        self.messages[place].1.options.as_ref().is_some_and(|options| options.map_entry())
    }
}

fn kind(
    field: &FieldDescriptorProto,
    messages: &HashMap<String, usize>,
    enums: &HashMap<String, usize>,
) -> Kind {
    let place = |names: &HashMap<String, usize>| {
        *names.get(field.type_name().trim_start_matches('.')).expect("descriptors are complete")
    };
    match field.r#type() {
        Type::Bool => Kind::Bool,
        Type::Int32 => Kind::Int32,
        Type::Int64 => Kind::Int64,
        Type::Uint32 => Kind::Uint32,
        Type::Uint64 => Kind::Uint64,
        Type::String => Kind::String,
        Type::Bytes => Kind::Bytes,
        Type::Enum => Kind::Enum(place(enums)),
        Type::Message => Kind::Message(place(messages)),
        other => panic!("{} has type {other:?}, which the API does not use", field.name()),
    }
}

fn read_field(field: &FieldDescriptorProto, kind: Kind, entry: bool, explicit: bool) -> Field {
    let shape = match field.label() {
        Label::Repeated if entry => Shape::Map,
        Label::Repeated => Shape::List,
        _ => Shape::One,
    };
    let oneof = field.oneof_index.map(|place| place as usize);
    Field {
        number: field.number() as u32,
        name: field.name().to_string(),
        json_name: lower_camel(field.name()),
        kind,
        shape,
        presence: explicit || oneof.is_some() || matches!(kind, Kind::Message(_)),
        oneof,
    }
}

/// `create_revision` to `createRevision`; what has no underscore stays (`ID`, `peerURLs`).
fn lower_camel(name: &str) -> String {
    let mut camel = String::new();
    let mut raise = false;
    for letter in name.chars() {
        if letter == '_' {
            raise = true;
        } else {
            camel.push(if raise { letter.to_ascii_uppercase() } else { letter });
            raise = false;
        }
    }
    camel
}
