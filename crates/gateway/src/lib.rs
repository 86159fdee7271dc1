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
mod text;

pub use answer::{error_body, error_line, http_status, result_line};

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

/// All messages of the API, ready to be read from and written as JSON.
pub struct Transcoder {}

impl Transcoder {
    /// From `api::DESCRIPTORS`.
    pub fn new() -> Transcoder {
        unimplemented!()
    }

    /// The protobuf bytes of the first JSON value in `json`; what follows it is ignored, and no
    /// value at all is the empty message. `message` is a full name (`etcdserverpb.PutRequest`).
    pub fn request(&self, _message: &str, _json: &[u8]) -> Result<Vec<u8>, BadJson> {
        unimplemented!()
    }

    /// Appends the JSON of a message. On failure `out` is as it was.
    pub fn response(
        &self,
        _message: &str,
        _proto: &[u8],
        _out: &mut Vec<u8>,
    ) -> Result<(), BadProto> {
        unimplemented!()
    }
}

impl Default for Transcoder {
    fn default() -> Transcoder {
        Transcoder::new()
    }
}

/// Cuts a request body, as it arrives, into whole JSON values.
pub struct Splitter {}

impl Splitter {
    /// Values longer than `value_bytes_max` are refused.
    pub fn new(_value_bytes_max: usize) -> Splitter {
        unimplemented!()
    }

    /// Adds what arrived.
    pub fn feed(&mut self, _bytes: &[u8]) {
        unimplemented!()
    }

    /// The next whole value, `None` when more bytes are needed. After an error the body counts as
    /// ended: every further call gives the same error.
    pub fn next_value(&mut self) -> Result<Option<Vec<u8>>, BadJson> {
        unimplemented!()
    }

    /// The body has ended: the last value, if one was waiting for its end (a bare number), or an
    /// error if it was cut short.
    pub fn finish(&mut self) -> Result<Option<Vec<u8>>, BadJson> {
        unimplemented!()
    }
}
