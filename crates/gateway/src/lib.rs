//! The JSON gateway's translator: JSON text to protobuf bytes and back.
//!
//! In:  a request's JSON, an answer's protobuf bytes. Out: the other of the two.
//!
//! Everything here is a pure function driven by the descriptors of `api`; it knows which fields a
//! message has and nothing of what they mean. Paths, headers, status lines, websockets and the
//! calls themselves belong to the HTTP service around it.
//!
//! Always true: no input makes it panic, and no input makes its stack grow without bound.

mod answer;
mod base64;
mod number;
mod request;
mod response;
mod scan;
mod schema;
mod splitter;
mod text;
mod token;
mod wire;

pub use answer::{error_body, error_line, http_status, result_line};
pub use splitter::Splitter;

use scan::{Scanner, Step};
use schema::Schema;

/// The request's JSON could not be read. The client is told the text with code InvalidArgument
/// (HTTP 400).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadJson(pub String);

impl From<BadJson> for api::Error {
    fn from(bad: BadJson) -> api::Error {
        api::Error::with_text(api::Code::InvalidArgument, bad.0)
    }
}

/// An answer's bytes are not the message they should be, so there is no JSON for them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadProto(pub String);

impl From<BadProto> for api::Error {
    fn from(bad: BadProto) -> api::Error {
        api::Error::with_text(api::Code::Internal, bad.0)
    }
}

/// Messages nested deeper than this are refused in both directions. It is where the decoder of
/// the services behind the gateway stops too; etcd goes further, but no client is known to.
const DEPTH_MAX: usize = 100;

/// All messages of the API, ready to be read from and written as JSON.
pub struct Transcoder {
    schema: Schema,
}

impl Transcoder {
    /// From `api::DESCRIPTORS`. Make it once: it takes about a millisecond.
    pub fn new() -> Transcoder {
        Transcoder { schema: Schema::of_api() }
    }

    /// The protobuf bytes of the first JSON value in `json`; what follows it is ignored, and no
    /// value at all is the empty message. `message` is a full name (`etcdserverpb.PutRequest`); to
    /// name one that does not exist is a bug and panics.
    pub fn request(&self, message: &str, json: &[u8]) -> Result<Vec<u8>, BadJson> {
        let message = self.schema.message(message);
        match first_value(json)? {
            Some(value) => request::read_message(&self.schema, message, value),
            None => Ok(Vec::new()),
        }
    }

    /// Appends the JSON of a message, named as in [`Transcoder::request`]. On failure `out` is as
    /// it was.
    pub fn response(&self, message: &str, proto: &[u8], out: &mut Vec<u8>) -> Result<(), BadProto> {
        let start = out.len();
        let message = self.schema.message(message);
        let written = response::write_message(&self.schema, message, proto, out);
        if written.is_err() {
            out.truncate(start);
        }
        written
    }

    /// The full names of all messages.
    pub fn messages(&self) -> impl Iterator<Item = &str> {
        self.schema.names()
    }
}

impl Default for Transcoder {
    fn default() -> Transcoder {
        Transcoder::new()
    }
}

/// The text of the first JSON value, if there is any.
fn first_value(json: &[u8]) -> Result<Option<&[u8]>, BadJson> {
    let mut scanner = Scanner::new();
    let (mut start, mut at) = (0, 0);
    while let Some(byte) = json.get(at) {
        match scanner.step(*byte)? {
            Step::NotBegun => start = at + 1,
            Step::Within => {}
            Step::Ended => return Ok(Some(&json[start..=at])),
            Step::EndedBefore => return Ok(Some(&json[start..at])),
        }
        at += 1;
        at += scanner.plain(&json[at..]);
    }
    Ok(scanner.finish()?.then(|| &json[start..]))
}
