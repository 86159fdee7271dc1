//! The client's end of a connection, for load generators, tests, and members that talk to others.

use bytes::{Bytes, BytesMut};

use super::connection::{Connection, Incoming};
use super::frame::{PREFACE, setting};
use super::headers::Headers;
use super::link::Link;
use super::stream::{Ending, Sending};
use super::{Closed, Limits, Settings, StreamId, error};
use crate::grpc::{self, code};
use crate::output::Output;

/// What a server did.
#[derive(Debug, Clone)]
pub enum ClientEvent {
    /// The head of an answer.
    Response { id: StreamId, headers: Headers },
    /// One whole message of an answer.
    Message { id: StreamId, data: Bytes },
    /// The end of an answer. The message is empty where the server sent none.
    Trailers { id: StreamId, code: u8, message: String, headers: Headers },
    /// The stream is gone without an answer.
    Reset { id: StreamId, code: u32 },
    /// The answer to `ping`.
    PingAck { data: [u8; 8] },
    /// The server is leaving: streams above `last` were not served.
    GoAway { last: StreamId, code: u32, debug: Bytes },
}

/// The client's end of one connection.
pub struct Client {
    connection: Connection,
    scheme: &'static str,
    authority: String,
    /// Blocks of calls made before: the same call again is the same bytes.
    known: Vec<Known>,
    next_known: usize,
    going: bool,
}

struct Known {
    path: String,
    headers: Vec<(String, String)>,
    block: Vec<u8>,
    generation: u64,
}

/// Different calls remembered.
const KNOWN_MAX: usize = 8;

impl Client {
    /// A fresh connection. Its preface and SETTINGS are queued at once. `authority` is what the
    /// server is called, as in `127.0.0.1:2379`.
    pub fn new(settings: Settings, limits: Limits, authority: &str) -> Client {
        // Servers ping as often as they like.
        let limits = Limits { ping_interval_min_ms: 0, ..limits };
        let mut connection = Connection::new(settings, limits, false);
        connection.link.output.put_slice(PREFACE);
        connection.greet(&[(setting::ENABLE_PUSH, 0)]);
        Client {
            connection,
            scheme: "http",
            authority: authority.to_string(),
            known: Vec::new(),
            next_known: 0,
            going: false,
        }
    }

    /// Says `https` in requests; for connections that run over TLS.
    pub fn over_tls(mut self) -> Client {
        self.scheme = "https";
        self
    }

    /// Makes a unary call: one message (`parts` joined) and no more.
    pub fn request(&mut self, path: &str, headers: &[(&str, &str)], parts: &[Bytes]) -> StreamId {
        let id = self.begin(path, headers);
        let Connection { link, streams, .. } = &mut self.connection;
        let stream = streams.get_mut(&id).expect("it was just opened");
        stream.sending = Sending::Ended;
        stream.ending = Some(Ending::Flag);
        let pumped = link.message(id, stream, parts);
        self.connection.pumped(id, pumped);
        StreamId(id)
    }

    /// Opens a streaming call.
    pub fn open(&mut self, path: &str, headers: &[(&str, &str)]) -> StreamId {
        StreamId(self.begin(path, headers))
    }

    /// Sends one message of a streaming call.
    pub fn send_message(&mut self, id: StreamId, parts: &[Bytes]) {
        let Connection { link, streams, .. } = &mut self.connection;
        if let Some(stream) = streams.get_mut(&id.0)
            && stream.sending == Sending::Open
        {
            let pumped = link.message(id.0, stream, parts);
            self.connection.pumped(id.0, pumped);
        }
    }

    /// Ends our side of a streaming call.
    pub fn half_close(&mut self, id: StreamId) {
        let Connection { link, streams, .. } = &mut self.connection;
        if let Some(stream) = streams.get_mut(&id.0)
            && stream.sending == Sending::Open
        {
            let pumped = link.end(id.0, stream, Ending::Flag);
            self.connection.pumped(id.0, pumped);
        }
    }

    /// Gives up a call.
    pub fn reset(&mut self, id: StreamId, code: u32) {
        if self.connection.streams.contains_key(&id.0) {
            self.connection.abandon(id.0, code);
        }
    }

    /// Takes what came from the socket, as `Server::receive` does.
    pub fn receive(
        &mut self,
        input: &mut BytesMut,
        now_ms: u64,
        events: &mut Vec<ClientEvent>,
    ) -> Result<(), Closed> {
        self.connection.guard.tick(now_ms);
        let mut frames = self.connection.frames(input)?;
        while let Some(incoming) = self.connection.next(&mut frames)? {
            match incoming {
                Incoming::Headers { id, headers, end } => self.headers(id, headers, end, events)?,
                Incoming::Data { id, data, end } => self.data(id, data, end, events),
                Incoming::Reset { id, code } => {
                    if self.connection.remove(id).is_some() {
                        events.push(ClientEvent::Reset { id: StreamId(id), code });
                    } else {
                        self.connection.nuisance()?;
                    }
                }
                Incoming::Failed { id, code, .. } => {
                    events.push(ClientEvent::Reset { id: StreamId(id), code });
                }
                Incoming::Ping => {}
                Incoming::PingAck { data } => events.push(ClientEvent::PingAck { data }),
                Incoming::GoAway { last, code, debug } => {
                    self.going = true;
                    events.push(ClientEvent::GoAway { last: StreamId(last), code, debug });
                }
            }
        }
        Ok(())
    }

    /// Bytes to send.
    pub fn output(&mut self) -> &mut Output {
        &mut self.connection.link.output
    }

    /// Bytes on this stream that the server's windows have not let out yet.
    pub fn pending(&self, id: StreamId) -> usize {
        self.connection.streams.get(&id.0).map_or(0, |stream| stream.queued)
    }

    pub fn active_streams(&self) -> usize {
        self.connection.streams.len()
    }

    /// Whether the server would take one more call now: its limit of streams is not reached, it
    /// is not leaving, and the numbers of this connection are not used up. A call made all the
    /// same is the server's to refuse.
    pub fn can_open(&self) -> bool {
        !self.going
            && self.connection.streams.len() < self.connection.peer_max_concurrent as usize
            && self.connection.last_id < 0x7fff_fff0
    }

    /// Sends a ping; its answer is `ClientEvent::PingAck` with the same data.
    pub fn ping(&mut self, data: [u8; 8]) {
        self.connection.link.ping(&data, false);
    }

    /// Says goodbye.
    pub fn go_away(&mut self, code: u32, debug: &str) {
        self.connection.link.go_away(0, code, debug.as_bytes());
    }

    fn begin(&mut self, path: &str, headers: &[(&str, &str)]) -> u32 {
        assert!(self.connection.last_id < 0x7fff_fff0, "the connection's numbers are used up");
        let id = if self.connection.last_id == 0 { 1 } else { self.connection.last_id + 2 };
        self.connection.last_id = id;
        self.send_head(id, path, headers);
        let mut stream = self.connection.stream();
        stream.sending = Sending::Open;
        self.connection.streams.insert(id, stream);
        id
    }

    fn send_head(&mut self, id: u32, path: &str, headers: &[(&str, &str)]) {
        let link = &mut self.connection.link;
        let generation = link.encoder.generation();
        let same = |known: &&Known| {
            known.generation == generation
                && known.path == path
                && known.headers.len() == headers.len()
                && known.headers.iter().zip(headers).all(|(a, b)| a.0 == b.0 && a.1 == b.1)
        };
        if let Some(known) = self.known.iter().find(same) {
            link.encoded_block(id, false, &known.block);
            return;
        }
        let block = encode_head(link, self.scheme, &self.authority, path, headers);
        link.encoded_block(id, false, &block);
        if link.encoder.generation() == generation {
            self.remember(path, headers, block, generation);
        }
    }

    fn remember(&mut self, path: &str, headers: &[(&str, &str)], block: Vec<u8>, generation: u64) {
        let own = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
        let headers = headers.iter().map(own).collect();
        let known = Known { path: path.to_string(), headers, block, generation };
        if self.known.len() < KNOWN_MAX {
            self.known.push(known);
        } else {
            self.known[self.next_known] = known;
            self.next_known = (self.next_known + 1) % KNOWN_MAX;
        }
    }

    fn headers(
        &mut self,
        id: u32,
        headers: Headers,
        end: bool,
        events: &mut Vec<ClientEvent>,
    ) -> Result<(), Closed> {
        let connection = &mut self.connection;
        if id > connection.last_id || id.is_multiple_of(2) {
            return Err(connection.fail(error::PROTOCOL_ERROR, "an answer nobody asked for"));
        }
        if !connection.streams.contains_key(&id) {
            // The call was given up while its answer was on the way.
            return connection.nuisance();
        }
        if headers.malformed().is_some() || headers.truncated() {
            connection.abandon(id, error::PROTOCOL_ERROR);
            events.push(ClientEvent::Reset { id: StreamId(id), code: error::PROTOCOL_ERROR });
            return Ok(());
        }
        let id_public = StreamId(id);
        if end {
            let code = headers.grpc_status().unwrap_or_else(|| code_for(headers.status()));
            let text = headers.get("grpc-message");
            let message = text.map(|text| grpc::percent_decode(text)).unwrap_or_default();
            self.received_all(id);
            events.push(ClientEvent::Trailers { id: id_public, code, message, headers });
        } else if headers.status().is_none_or(|status| status >= 200) {
            events.push(ClientEvent::Response { id: id_public, headers });
        }
        Ok(())
    }

    fn data(&mut self, id: u32, mut data: Bytes, end: bool, events: &mut Vec<ClientEvent>) {
        let connection = &mut self.connection;
        let Some(stream) = connection.streams.get_mut(&id) else { return };
        let before = stream.deframer.partial_bytes();
        let max = connection.limits.message_bytes_max;
        let failed = loop {
            match stream.deframer.next(&mut data, max) {
                Ok(Some(data)) => events.push(ClientEvent::Message { id: StreamId(id), data }),
                Ok(None) => break false,
                Err(_) => break true,
            }
        };
        connection.partial_bytes += stream.deframer.partial_bytes();
        connection.partial_bytes -= before;
        // An answer without trailers is no gRPC answer.
        if failed || end {
            connection.abandon(id, error::CANCEL);
            events.push(ClientEvent::Reset { id: StreamId(id), code: error::PROTOCOL_ERROR });
        }
    }

    /// The server has answered completely; whatever we still wanted to say is of no use.
    fn received_all(&mut self, id: u32) {
        let Some(stream) = self.connection.streams.get(&id) else { return };
        if stream.sending == Sending::Ended && stream.ending.is_none() {
            self.connection.remove(id);
        } else {
            self.connection.abandon(id, error::CANCEL);
        }
    }
}

fn encode_head(
    link: &mut Link,
    scheme: &str,
    authority: &str,
    path: &str,
    headers: &[(&str, &str)],
) -> Vec<u8> {
    let mut block = Vec::new();
    let encoder = &mut link.encoder;
    encoder.begin(&mut block);
    encoder.repeated(b":method", b"POST", &mut block);
    encoder.repeated(b":scheme", scheme.as_bytes(), &mut block);
    encoder.repeated(b":path", path.as_bytes(), &mut block);
    encoder.repeated(b":authority", authority.as_bytes(), &mut block);
    encoder.repeated(b"content-type", b"application/grpc", &mut block);
    encoder.repeated(b"te", b"trailers", &mut block);
    for (name, value) in headers {
        // What remains of a deadline is different every time.
        if *name == "grpc-timeout" {
            encoder.once(name.as_bytes(), value.as_bytes(), &mut block);
        } else {
            encoder.repeated(name.as_bytes(), value.as_bytes(), &mut block);
        }
    }
    block
}

/// The status of an answer that names none, by its HTTP status, as gRPC prescribes.
fn code_for(status: Option<u16>) -> u8 {
    match status {
        Some(400) => code::INTERNAL,
        Some(401) => code::UNAUTHENTICATED,
        Some(403) => code::PERMISSION_DENIED,
        Some(404) => code::UNIMPLEMENTED,
        Some(429 | 502..=504) => code::UNAVAILABLE,
        _ => code::UNKNOWN,
    }
}
