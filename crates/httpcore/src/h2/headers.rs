//! A decoded header block, and what it means to gRPC.
//!
//! Clients repeat themselves: after the first call on a connection, the header block of the next
//! call to the same method is usually the same few bytes. `Blocks` remembers the decoded form of
//! such blocks, so that a repeated one costs a comparison and a reference count.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::error;
use crate::grpc::{self, code};
use crate::hpack::{Block, Decoder, Field, Malformed};

/// The header fields of a request, answer or trailer. Cheap to clone.
#[derive(Clone)]
pub struct Headers(Arc<Inner>);

struct Inner {
    pseudo: Pseudo,
    fields: Vec<Field>,
    facts: Facts,
}

#[derive(Default)]
struct Pseudo {
    method: Option<Bytes>,
    scheme: Option<Bytes>,
    authority: Option<Bytes>,
    path: Option<Bytes>,
    status: Option<Bytes>,
}

/// What the fields mean, worked out once.
#[derive(Default)]
struct Facts {
    /// Breaks the rules of HTTP/2.
    malformed: Option<&'static str>,
    truncated: bool,
    grpc: bool,
    timeout: Option<Result<Duration, String>>,
    grpc_status: Option<u8>,
    authorities: usize,
    hosts: usize,
    connection: bool,
    encoding: Encoding,
}

/// How the messages of a stream are compressed.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    #[default]
    Identity,
    Gzip,
    Unknown,
}

/// How a request that cannot be served is turned away.
#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    Reset(u32),
    Status { http: u16, code: u8, message: String },
}

impl Headers {
    /// The first value of `name` (lower case).
    pub fn get(&self, name: &str) -> Option<&Bytes> {
        self.0.fields.iter().find(|field| field.name == name).map(|field| &field.value)
    }

    /// All values of `name` (lower case), in order.
    pub fn get_all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Bytes> {
        self.0.fields.iter().filter(move |field| field.name == name).map(|field| &field.value)
    }

    /// All fields in order, without the pseudo fields.
    pub fn iter(&self) -> impl Iterator<Item = (&Bytes, &Bytes)> {
        self.0.fields.iter().map(|field| (&field.name, &field.value))
    }

    pub fn method(&self) -> Option<&Bytes> {
        self.0.pseudo.method.as_ref()
    }

    pub fn scheme(&self) -> Option<&Bytes> {
        self.0.pseudo.scheme.as_ref()
    }

    /// `:authority`, or `host` where that is missing.
    pub fn authority(&self) -> Option<&Bytes> {
        self.0.pseudo.authority.as_ref().or_else(|| self.get("host"))
    }

    pub fn path(&self) -> Option<&Bytes> {
        self.0.pseudo.path.as_ref()
    }

    /// `:status` of an answer.
    pub fn status(&self) -> Option<u16> {
        std::str::from_utf8(self.0.pseudo.status.as_ref()?).ok()?.parse().ok()
    }

    /// `grpc-status` of a trailer.
    pub fn grpc_status(&self) -> Option<u8> {
        self.0.facts.grpc_status
    }

    /// `grpc-timeout`, if it is there and readable.
    pub fn timeout(&self) -> Option<Duration> {
        self.0.facts.timeout.as_ref()?.as_ref().ok().copied()
    }

    /// The headers of a request that came another way than over HTTP/2. Names must be lower case.
    pub(crate) fn from_parts(method: Bytes, path: Bytes, fields: Vec<Field>) -> Headers {
        let mut facts = Facts::default();
        for field in &fields {
            note(field, &mut facts);
        }
        let pseudo = Pseudo { method: Some(method), path: Some(path), ..Pseudo::default() };
        Headers(Arc::new(Inner { pseudo, fields, facts }))
    }

    pub(super) fn is_grpc(&self) -> bool {
        self.0.facts.grpc
    }

    pub(super) fn is_gzip(&self) -> bool {
        self.0.facts.encoding == Encoding::Gzip
    }

    pub(super) fn malformed(&self) -> Option<&'static str> {
        self.0.facts.malformed
    }

    pub(super) fn truncated(&self) -> bool {
        self.0.facts.truncated
    }

    /// Whether this request can be served at all, with the answers of grpc-go and in its order.
    pub(super) fn refusal(&self, plain_http: bool) -> Option<Refusal> {
        let Inner { pseudo, facts, .. } = &*self.0;
        let refuse = |http, code, message| Some(Refusal::Status { http, code, message });
        if facts.truncated {
            return Some(Refusal::Reset(error::FRAME_SIZE_ERROR));
        }
        let complete = pseudo.method.is_some()
            && pseudo.scheme.is_some()
            && pseudo.path.as_ref().is_some_and(|path| !path.is_empty());
        if facts.malformed.is_some() || !complete || pseudo.status.is_some() {
            return Some(Refusal::Reset(error::PROTOCOL_ERROR));
        }
        if facts.authorities > 1 || facts.hosts > 1 {
            let message = format!(
                "num values of :authority: {}, num values of host: {}, both must only have 1 value as per HTTP/2 spec",
                facts.authorities, facts.hosts
            );
            return refuse(400, code::INTERNAL, message);
        }
        if facts.connection {
            return Some(Refusal::Reset(error::PROTOCOL_ERROR));
        }
        if !facts.grpc {
            if plain_http {
                return None;
            }
            let content_type = self.get("content-type").map_or(&b""[..], |value| value);
            let shown = String::from_utf8_lossy(content_type);
            let message = format!("invalid gRPC request content-type {shown:?}");
            return refuse(415, code::INVALID_ARGUMENT, message);
        }
        if let Some(Err(what)) = &facts.timeout {
            return refuse(400, code::INTERNAL, format!("malformed grpc-timeout: {what}"));
        }
        let method = pseudo.method.as_ref().map_or(&b""[..], |method| method);
        if method != b"POST" {
            let shown = String::from_utf8_lossy(method);
            let message =
                format!("Received a HEADERS frame with :method {shown:?} which should be POST");
            return refuse(405, code::INTERNAL, message);
        }
        if matches!(facts.timeout, Some(Ok(Duration::ZERO))) {
            return refuse(200, code::DEADLINE_EXCEEDED, "context deadline exceeded".to_string());
        }
        if facts.encoding == Encoding::Unknown {
            let encoding = self.get("grpc-encoding").map_or(&b""[..], |value| value);
            let shown = String::from_utf8_lossy(encoding);
            let message =
                format!("grpc: Decompressor is not installed for grpc-encoding {shown:?}");
            return refuse(200, code::UNIMPLEMENTED, message);
        }
        None
    }

    fn new(block: Block) -> Headers {
        let mut pseudo = Pseudo::default();
        let mut facts = Facts { truncated: block.truncated, ..Facts::default() };
        let mut fields = block.fields;
        let mut pseudo_count = 0;
        for (position, field) in fields.iter().enumerate() {
            if field.name.first() == Some(&b':') {
                if position != pseudo_count {
                    facts.malformed = Some("a pseudo field follows a regular one");
                }
                pseudo_count += 1;
                take_pseudo(field, &mut pseudo, &mut facts);
            } else {
                note(field, &mut facts);
            }
        }
        fields.retain(|field| field.name.first() != Some(&b':'));
        Headers(Arc::new(Inner { pseudo, fields, facts }))
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Pseudo { method, scheme, authority, path, status } = &self.0.pseudo;
        let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
        let pseudo = [
            (":method", method),
            (":scheme", scheme),
            (":authority", authority),
            (":path", path),
            (":status", status),
        ];
        f.debug_map()
            .entries(
                pseudo
                    .into_iter()
                    .filter_map(|(name, value)| Some((name, value.as_ref().map(text)?))),
            )
            .entries(self.iter().map(|(name, value)| (text(name), text(value))))
            .finish()
    }
}

fn take_pseudo(field: &Field, pseudo: &mut Pseudo, facts: &mut Facts) {
    let place = match &field.name[..] {
        b":method" => &mut pseudo.method,
        b":scheme" => &mut pseudo.scheme,
        b":path" => &mut pseudo.path,
        b":status" => &mut pseudo.status,
        b":authority" => {
            // grpc-go counts these and answers in words, so a second one is no protocol error.
            facts.authorities += 1;
            pseudo.authority = Some(field.value.clone());
            return;
        }
        _ => {
            facts.malformed = Some("an unknown pseudo field");
            return;
        }
    };
    if place.replace(field.value.clone()).is_some() {
        facts.malformed = Some("a pseudo field appears twice");
    }
    if !field.value.iter().all(|&byte| byte > b' ' && byte != 0x7f) {
        facts.malformed = Some("a pseudo field with an illegal character");
    }
}

fn note(field: &Field, facts: &mut Facts) {
    let legal =
        |&byte: &u8| byte > b' ' && byte < 0x7f && !byte.is_ascii_uppercase() && byte != b':';
    if field.name.is_empty() || !field.name.iter().all(legal) {
        facts.malformed = Some("an illegal field name");
    }
    if field.value.iter().any(|byte| matches!(byte, 0 | b'\r' | b'\n')) {
        facts.malformed = Some("a field value with an illegal character");
    }
    match &field.name[..] {
        b"content-type" => facts.grpc |= is_grpc_content_type(&field.value),
        b"grpc-timeout" => facts.timeout = Some(grpc::parse_timeout(&field.value)),
        b"grpc-status" => {
            let number = std::str::from_utf8(&field.value).ok().and_then(|text| text.parse().ok());
            facts.grpc_status = Some(number.unwrap_or(code::UNKNOWN));
        }
        b"grpc-encoding" => {
            facts.encoding = match &field.value[..] {
                b"" | b"identity" => Encoding::Identity,
                b"gzip" if cfg!(feature = "gzip") => Encoding::Gzip,
                _ => Encoding::Unknown,
            };
        }
        b"te" if !field.value.eq_ignore_ascii_case(b"trailers") => {
            facts.malformed = Some("a TE other than trailers");
        }
        b"host" => facts.hosts += 1,
        b"connection" => facts.connection = true,
        _ => {}
    }
}

/// `application/grpc`, alone or followed by `+subtype` or `;parameters`.
fn is_grpc_content_type(value: &[u8]) -> bool {
    const BASE: &[u8] = b"application/grpc";
    let Some((base, rest)) = value.split_at_checked(BASE.len()) else { return false };
    base.eq_ignore_ascii_case(BASE) && matches!(rest.first(), None | Some(b'+' | b';'))
}

/// Decodes header blocks and remembers those that will come again.
#[derive(Default)]
pub struct Blocks {
    decoder: Decoder,
    known: Vec<Known>,
    next: usize,
}

struct Known {
    block: Vec<u8>,
    generation: u64,
    headers: Headers,
}

/// Different blocks remembered: a client mixes a few methods on one connection.
const KNOWN_MAX: usize = 8;

/// Longer blocks are too rare to be worth comparing.
const KNOWN_BYTES_MAX: usize = 64;

impl Blocks {
    pub fn decode(&mut self, block: &[u8], list_bytes_max: usize) -> Result<Headers, Malformed> {
        let generation = self.decoder.generation();
        let known = |known: &&Known| known.generation == generation && known.block == block;
        if let Some(known) = self.known.iter().find(known) {
            return Ok(known.headers.clone());
        }
        let decoded = self.decoder.decode(block, list_bytes_max)?;
        // A literal is there because its value changes; remembering it would push out the rest.
        let repeats = decoded.indexed && block.len() <= KNOWN_BYTES_MAX;
        let headers = Headers::new(decoded);
        if repeats && self.decoder.generation() == generation {
            let known = Known { block: block.to_vec(), generation, headers: headers.clone() };
            if self.known.len() < KNOWN_MAX {
                self.known.push(known);
            } else {
                self.known[self.next] = known;
                self.next = (self.next + 1) % KNOWN_MAX;
            }
        }
        Ok(headers)
    }
}
