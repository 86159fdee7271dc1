//! Random messages survive the way through JSON, and nothing makes the translator panic.
//!
//! Set `SEED` to repeat a run.

use gateway::{Splitter, Transcoder};
use prost::Message;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorSet};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::HashMap;

#[test]
fn every_message_survives_the_way_through_json() {
    let mut random = Random::new("survives");
    let transcoder = Transcoder::new();
    for message in random.names() {
        for _ in 0..200 {
            let proto = random.message(&message, 4);
            let json = json(&transcoder, &message, &proto);
            serde_json::from_slice::<serde_json::Value>(&json).expect("it is JSON");
            let text = String::from_utf8_lossy(&json);
            let again = transcoder.request(&message, &json);
            assert_eq!(again, Ok(proto), "{message} {text}");
            let again = transcoder.request(&message, camel(&text).as_bytes());
            assert_eq!(again.map(|proto| self::json(&transcoder, &message, &proto)), Ok(json));
        }
    }
}

/// The random messages above are what our own code would send: prost writes the same bytes.
#[test]
fn random_messages_are_canonical() {
    let mut random = Random::new("canonical");
    macro_rules! canonical {
        ($($name:ident)*) => {
            $(for _ in 0..100 {
                let proto = random.message(concat!("etcdserverpb.", stringify!($name)), 4);
                let message = api::etcdserverpb::$name::decode(&proto[..]).expect("a message");
                assert_eq!(message.encode_to_vec(), proto, "{message:?}");
            })*
        };
    }
    canonical!(RangeRequest RangeResponse PutRequest TxnRequest TxnResponse WatchRequest
        WatchResponse AlarmResponse MemberListResponse StatusResponse HashResponse);
}

/// Any order on the wire, fields of the future and scalars given twice: the JSON is the same.
#[test]
fn the_order_on_the_wire_does_not_show() {
    let transcoder = Transcoder::new();
    let orderly = [0x0a, 1, b'k', 0x12, 1, b'v', 0x18, 7];
    let jumbled = [
        0x18, 6, 0xfa, 0x7f, 2, 1, 2, 0x12, 1, b'v', 0xfd, 0x7f, 1, 2, 3, 4, 0x18, 7, 0x0a, 1, b'k',
    ];
    let expected = r#"{"key":"aw==","value":"dg==","lease":"7"}"#;
    for proto in [&orderly[..], &jumbled] {
        let json = json(&transcoder, "etcdserverpb.PutRequest", proto);
        assert_eq!(String::from_utf8_lossy(&json), expected);
    }
    // A header in two pieces is merged; the last member of a oneof stays.
    let pieces = [0x0a, 2, 0x08, 5, 0x0a, 2, 0x10, 6];
    let merged = json(&transcoder, "etcdserverpb.PutResponse", &pieces);
    let expected = r#"{"header":{"cluster_id":"5","member_id":"6"}}"#;
    assert_eq!(String::from_utf8_lossy(&merged), expected);
    let both = [0x0a, 0, 0x12, 0];
    let last = json(&transcoder, "etcdserverpb.RequestOp", &both);
    assert_eq!(String::from_utf8_lossy(&last), r#"{"request_put":{}}"#);
    // A list of numbers, packed, not packed, and packed without any.
    let packed = [0x2a, 2, 0, 1, 0x28, 1, 0x2a, 0];
    let list = json(&transcoder, "etcdserverpb.WatchCreateRequest", &packed);
    assert_eq!(String::from_utf8_lossy(&list), r#"{"filters":["NOPUT","NODELETE","NODELETE"]}"#);
    let none = json(&transcoder, "etcdserverpb.WatchCreateRequest", &[0x0a, 0, 0x2a, 0, 0x30, 1]);
    assert_eq!(String::from_utf8_lossy(&none), r#"{"prev_kv":true}"#);
}

#[test]
fn damaged_json_is_refused_or_read_but_never_worse() {
    let mut random = Random::new("damaged json");
    let transcoder = Transcoder::new();
    let names = random.names();
    for _ in 0..20_000 {
        let message = &names[random.rng.random_range(0..names.len())];
        let proto = random.message(message, 3);
        let mut text = json(&transcoder, message, &proto);
        random.damage(&mut text, b"{}[]\",:\\u0e-.\xff tnf");
        agrees_with_serde(&text);
        if let Ok(read) = transcoder.request(message, &text) {
            json(&transcoder, message, &read);
        }
    }
}

#[test]
fn damaged_messages_are_refused_or_written_but_never_worse() {
    let mut random = Random::new("damaged proto");
    let transcoder = Transcoder::new();
    let names = random.names();
    for _ in 0..20_000 {
        let message = &names[random.rng.random_range(0..names.len())];
        let mut proto = random.message(message, 3);
        random.damage(&mut proto, b"\x00\x08\x0a\x0b\x12\x7f\x80\xff");
        let mut out = b"before".to_vec();
        match transcoder.response(message, &proto, &mut out) {
            Ok(()) => {
                serde_json::from_slice::<serde_json::Value>(&out[6..]).expect("it is JSON");
            }
            Err(_) => assert_eq!(out, b"before"),
        }
    }
}

/// Whatever serde takes for a JSON value, the splitter takes for the same value.
fn agrees_with_serde(text: &[u8]) {
    let mut values =
        serde_json::Deserializer::from_slice(text).into_iter::<serde::de::IgnoredAny>();
    let mut splitter = Splitter::new(text.len());
    splitter.feed(text);
    let mut start = 0;
    while let Some(Ok(_)) = values.next() {
        let end = values.byte_offset();
        let ours = splitter.next_value().and_then(|value| match value {
            Some(value) => Ok(Some(value)),
            None => splitter.finish(),
        });
        let theirs = text[start..end].trim_ascii_start();
        assert_eq!(ours, Ok(Some(theirs.to_vec())), "{}", String::from_utf8_lossy(text));
        start = end;
    }
}

fn json(transcoder: &Transcoder, message: &str, proto: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    transcoder.response(message, proto, &mut out).expect("a sound message can be written");
    out
}

/// The same JSON with lowerCamelCase names. Random strings hold no underscores.
fn camel(json: &str) -> String {
    let mut out = String::new();
    let mut raise = false;
    for letter in json.chars() {
        match letter {
            '_' => raise = true,
            _ if raise => {
                out.push(letter.to_ascii_uppercase());
                raise = false;
            }
            _ => out.push(letter),
        }
    }
    // Names of enums have underscores that belong to them.
    out.replace("NOTEQUAL", "NOT_EQUAL")
        .replace("NOTSERVING", "NOT_SERVING")
        .replace("SERVICEUNKNOWN", "SERVICE_UNKNOWN")
}

struct Random {
    rng: StdRng,
    messages: HashMap<String, (DescriptorProto, bool)>,
    enums: HashMap<String, Vec<i32>>,
}

impl Random {
    fn new(test: &str) -> Random {
        let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or_else(rand::random::<u64>);
        println!("{test}: SEED={seed}");
        let mut random = Random {
            rng: StdRng::seed_from_u64(seed),
            messages: HashMap::new(),
            enums: HashMap::new(),
        };
        let set = FileDescriptorSet::decode(api::DESCRIPTORS).expect("descriptors");
        for file in &set.file {
            for held in &file.enum_type {
                let numbers = held.value.iter().map(|value| value.number()).collect();
                random.enums.insert(format!(".{}.{}", file.package(), held.name()), numbers);
            }
            let explicit = file.syntax() != "proto3";
            for message in &file.message_type {
                random.learn(&format!(".{}", file.package()), message, explicit);
            }
        }
        random
    }

    fn learn(&mut self, scope: &str, message: &DescriptorProto, explicit: bool) {
        let name = format!("{scope}.{}", message.name());
        for held in &message.enum_type {
            let numbers = held.value.iter().map(|value| value.number()).collect();
            self.enums.insert(format!("{name}.{}", held.name()), numbers);
        }
        for nested in &message.nested_type {
            self.learn(&name, nested, explicit);
        }
        self.messages.insert(name, (message.clone(), explicit));
    }

    /// All but the entries of maps, which are no messages of their own in JSON.
    fn names(&self) -> Vec<String> {
        let is_entry = |message: &DescriptorProto| {
            message.options.as_ref().is_some_and(|options| options.map_entry())
        };
        let mut names: Vec<String> = self
            .messages
            .iter()
            .filter(|(_, (message, _))| !is_entry(message))
            .map(|(name, _)| name[1..].to_string())
            .collect();
        names.sort();
        names
    }

    /// A random message, encoded as prost would.
    fn message(&mut self, name: &str, depth: usize) -> Vec<u8> {
        let (message, explicit) = self.messages[&format!(".{name}")].clone();
        let mut chosen = HashMap::new();
        for (place, field) in message.field.iter().enumerate() {
            if let Some(oneof) = field.oneof_index {
                let held = chosen.entry(oneof).or_insert(place);
                if self.rng.random_bool(0.5) {
                    *held = place;
                }
            }
        }
        let mut out = Vec::new();
        for (place, field) in message.field.iter().enumerate() {
            let in_oneof = field.oneof_index.map(|oneof| chosen[&oneof] == place);
            if self.rng.random_bool(0.3) || in_oneof == Some(false) {
                continue;
            }
            let presence = explicit || in_oneof == Some(true);
            self.field(field, presence, depth, &mut out);
        }
        out
    }

    fn field(
        &mut self,
        field: &FieldDescriptorProto,
        presence: bool,
        depth: usize,
        out: &mut Vec<u8>,
    ) {
        let number = field.number() as u32;
        let repeated = field.label() == Label::Repeated;
        if field.r#type() == Type::Message {
            if depth == 0 {
                return;
            }
            let name = field.type_name()[1..].to_string();
            if name.ends_with("StatusesEntry") {
                // A map: one entry, both parts there, or its bytes would not be canonical.
                let mut entry = Vec::new();
                prost::encoding::bytes::encode(1, &b"key".to_vec(), &mut entry);
                let value = self.message("grpc.health.v1.HealthCheckResponse", depth - 1);
                prost::encoding::bytes::encode(2, &value, &mut entry);
                return prost::encoding::bytes::encode(number, &entry, out);
            }
            for _ in 0..if repeated { self.rng.random_range(0..3) } else { 1 } {
                let inner = self.message(&name, depth - 1);
                prost::encoding::bytes::encode(number, &inner, out);
            }
        } else if matches!(field.r#type(), Type::String | Type::Bytes) {
            for _ in 0..if repeated { self.rng.random_range(0..3) } else { 1 } {
                let bytes = self.bytes(field.r#type() == Type::String);
                if presence || repeated || !bytes.is_empty() {
                    prost::encoding::bytes::encode(number, &bytes, out);
                }
            }
        } else if repeated {
            let numbers: Vec<u64> =
                (0..self.rng.random_range(0..4)).map(|_| self.number(field)).collect();
            prost::encoding::uint64::encode_packed(number, &numbers, out);
        } else {
            let value = self.number(field);
            if presence || value != 0 {
                prost::encoding::uint64::encode(number, &value, out);
            }
        }
    }

    fn number(&mut self, field: &FieldDescriptorProto) -> u64 {
        let edges = [0, 1, u64::MAX, i64::MIN as u64, i64::MAX as u64, 1_000_000];
        let any = match self.rng.random_range(0..3) {
            0 => edges[self.rng.random_range(0..edges.len())],
            1 => self.rng.random_range(0..100),
            _ => self.rng.random(),
        };
        match field.r#type() {
            Type::Bool => any & 1,
            Type::Int32 => any as i32 as i64 as u64,
            Type::Uint32 => u64::from(any as u32),
            Type::Enum if self.rng.random_bool(0.2) => any as i32 as i64 as u64,
            Type::Enum => {
                let known = &self.enums[field.type_name()];
                known[self.rng.random_range(0..known.len())] as i64 as u64
            }
            _ => any,
        }
    }

    fn bytes(&mut self, text: bool) -> Vec<u8> {
        let length = self.rng.random_range(0..12);
        if !text {
            return (0..length).map(|_| self.rng.random()).collect();
        }
        let letters = [
            'a', 'Z', '"', '\\', '/', '\n', '\u{0}', '\u{1f}', '\u{7f}', 'é', '\u{2028}', '😀',
            '<', '\u{fffd}',
        ];
        (0..length)
            .map(|_| letters[self.rng.random_range(0..letters.len())])
            .collect::<String>()
            .into_bytes()
    }

    /// Changes, removes, repeats or inserts a few bytes.
    fn damage(&mut self, bytes: &mut Vec<u8>, favourites: &[u8]) {
        for _ in 0..self.rng.random_range(1..4) {
            let at = self.rng.random_range(0..=bytes.len());
            let byte = match self.rng.random_bool(0.8) {
                true => favourites[self.rng.random_range(0..favourites.len())],
                false => self.rng.random(),
            };
            match self.rng.random_range(0..5) {
                0 => bytes.truncate(at),
                1 if at < bytes.len() => {
                    bytes.remove(at);
                }
                2 if at < bytes.len() => bytes[at] = byte,
                3 => {
                    let end = (at + 20).min(bytes.len());
                    let copy = bytes[at..end].to_vec();
                    bytes.splice(at..at, copy);
                }
                _ => bytes.insert(at, byte),
            }
        }
    }
}
