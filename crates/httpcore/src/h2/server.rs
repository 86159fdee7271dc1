//! The server's end of a connection.

mod answers;

use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};

use super::connection::{Connection, Incoming};
use super::frame::{PREFACE, setting};
use super::headers::{Headers, Refusal};
use super::{Closed, Limits, Settings, StreamId, error};
use crate::grpc::{Refused, code};
use crate::output::Output;

/// What a client did.
#[derive(Debug, Clone)]
pub enum Event {
    /// A call begins. With `end` no message will follow.
    Request { id: StreamId, path: Bytes, headers: Headers, timeout: Option<Duration>, end: bool },
    /// One whole message of a call.
    Message { id: StreamId, data: Bytes },
    /// A request that is not gRPC begins (only with `Limits::plain_http`). Answer it with
    /// `respond_http`, or `start_http`, `send_data` and `finish_http`.
    HttpRequest { id: StreamId, method: Bytes, path: Bytes, headers: Headers, end: bool },
    /// A piece of the body of an `HttpRequest`.
    Data { id: StreamId, data: Bytes },
    /// The client will send no more on this stream; it still waits for the answer.
    HalfClosed { id: StreamId },
    /// The stream is gone: the client gave up, or it broke a rule and has been answered. Forget it.
    Reset { id: StreamId, code: u32 },
    /// The answer to `ping`.
    PingAck { data: [u8; 8] },
    /// The client is leaving; open streams may still be finished.
    GoAway { code: u32 },
}

/// The server's end of one connection.
pub struct Server {
    connection: Connection,
    preface: usize,
    leaving: Leaving,
}

/// How far a graceful shutdown is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaving {
    No,
    /// The client was told, and may have opened streams before it heard.
    Told,
    /// The client has heard; newer streams are ignored.
    Final,
}

/// The ping that marks the moment a client has heard of the shutdown.
const LEAVING_PING: [u8; 8] = *b"goodbye!";

impl Server {
    /// A fresh connection. Its SETTINGS are queued at once.
    pub fn new(settings: Settings, limits: Limits) -> Server {
        let streams_max = settings.max_concurrent_streams;
        let mut connection = Connection::new(settings, limits, true);
        if streams_max == u32::MAX {
            connection.greet(&[]);
        } else {
            connection.greet(&[(setting::MAX_CONCURRENT_STREAMS, streams_max)]);
        }
        Server { connection, preface: 0, leaving: Leaving::No }
    }

    /// Takes what came from the socket. `input` starts with what an earlier call left there; whole
    /// frames are split off, and the data of messages is shared with them, not copied. So a
    /// message kept for long keeps its whole read buffer: copy what is to stay.
    pub fn receive(
        &mut self,
        input: &mut BytesMut,
        now_ms: u64,
        events: &mut Vec<Event>,
    ) -> Result<(), Closed> {
        if self.preface < PREFACE.len() && !self.take_preface(input)? {
            return Ok(());
        }
        self.connection.guard.tick(now_ms);
        let mut frames = self.connection.frames(input)?;
        while let Some(incoming) = self.connection.next(&mut frames)? {
            match incoming {
                Incoming::Headers { id, headers, end } => self.headers(id, headers, end, events)?,
                Incoming::Data { id, data, end } => self.data(id, data, end, events)?,
                Incoming::Reset { id, code } => self.reset_by_peer(id, code, events)?,
                Incoming::Failed { id, code, disowned: false } => {
                    events.push(Event::Reset { id: StreamId(id), code });
                }
                Incoming::Failed { .. } => {}
                Incoming::Ping => self.pinged(now_ms)?,
                Incoming::PingAck { data: LEAVING_PING } if self.leaving == Leaving::Told => {
                    self.leave_for_good();
                }
                Incoming::PingAck { data } => events.push(Event::PingAck { data }),
                Incoming::GoAway { code, .. } => events.push(Event::GoAway { code }),
            }
        }
        Ok(())
    }

    /// Bytes to send.
    pub fn output(&mut self) -> &mut Output {
        &mut self.connection.link.output
    }

    /// Whether the stream is still there.
    pub fn is_open(&self, id: StreamId) -> bool {
        self.connection.streams.contains_key(&id.0)
    }

    pub fn active_streams(&self) -> usize {
        self.connection.streams.len()
    }

    /// Sends a ping; its answer is `Event::PingAck` with the same data.
    pub fn ping(&mut self, data: [u8; 8]) {
        self.connection.link.ping(&data, false);
    }

    /// Begins a graceful shutdown: the client is asked to open no more streams, the open ones are
    /// finished. Close the connection once `is_idle`.
    pub fn shut_down(&mut self) {
        if self.leaving == Leaving::No {
            self.leaving = Leaving::Told;
            // The highest number first: streams already on their way here must not be lost.
            self.connection.link.go_away(0x7fff_ffff, error::NO_ERROR, b"graceful_stop");
            self.connection.link.ping(&LEAVING_PING, false);
        }
    }

    /// Says goodbye now: no stream that is not open yet will be served.
    pub fn go_away(&mut self, code: u32, debug: &str) {
        self.leaving = Leaving::Final;
        self.connection.link.go_away(self.connection.last_id, code, debug.as_bytes());
    }

    /// Nothing is open and nothing waits to be sent; after `shut_down` also: nothing more will come.
    pub fn is_idle(&self) -> bool {
        self.connection.streams.is_empty()
            && self.connection.link.output.is_empty()
            && self.leaving != Leaving::Told
    }

    /// True once the whole preface was there.
    fn take_preface(&mut self, input: &mut BytesMut) -> Result<bool, Closed> {
        let length = input.len().min(PREFACE.len() - self.preface);
        if input[..length] != PREFACE[self.preface..][..length] {
            self.preface = PREFACE.len();
            return Err(self.connection.fail(error::PROTOCOL_ERROR, "this is not HTTP/2"));
        }
        input.advance(length);
        self.preface += length;
        Ok(self.preface == PREFACE.len())
    }

    fn headers(
        &mut self,
        id: u32,
        headers: Headers,
        end: bool,
        events: &mut Vec<Event>,
    ) -> Result<(), Closed> {
        let connection = &mut self.connection;
        if id <= connection.last_id {
            return self.trailers(id, end, events);
        }
        if id.is_multiple_of(2) {
            return Err(connection.fail(error::PROTOCOL_ERROR, "a client's stream is even"));
        }
        connection.last_id = id;
        if self.leaving == Leaving::Final {
            // The client was told which streams are served; RFC 9113 section 6.8 has us ignore
            // the rest.
            connection.remember_early(id);
            return connection.nuisance();
        }
        if connection.streams.len() >= connection.settings.max_concurrent_streams as usize {
            connection.link.reset(id, error::REFUSED_STREAM);
            connection.remember_early(id);
            return connection.nuisance();
        }
        if let Some(refusal) = headers.refusal(connection.limits.plain_http) {
            return self.refuse(id, end, refusal);
        }
        let mut stream = connection.stream();
        stream.receiving = !end;
        stream.plain = !headers.is_grpc();
        if headers.is_gzip() {
            stream.allow_gzip();
        }
        let path = headers.path().cloned().unwrap_or_default();
        let plain = stream.plain;
        stream.bodyless = plain && headers.method().is_some_and(|method| method == "HEAD");
        connection.streams.insert(id, stream);
        let id = StreamId(id);
        events.push(if plain {
            let method = headers.method().cloned().unwrap_or_default();
            Event::HttpRequest { id, method, path, headers, end }
        } else {
            let timeout = headers.timeout();
            Event::Request { id, path, headers, timeout, end }
        });
        Ok(())
    }

    /// Headers on a stream that is not new: a client's trailers, which say nothing but the end.
    fn trailers(&mut self, id: u32, end: bool, events: &mut Vec<Event>) -> Result<(), Closed> {
        let connection = &mut self.connection;
        match connection.streams.get(&id) {
            Some(stream) if end && (stream.receiving || stream.disowned) => {
                self.data(id, Bytes::new(), true, events)
            }
            Some(stream) => {
                if !stream.disowned {
                    events.push(Event::Reset { id: StreamId(id), code: error::PROTOCOL_ERROR });
                }
                connection.abandon(id, error::PROTOCOL_ERROR);
                Ok(())
            }
            None if connection.closed_early(id) => connection.nuisance(),
            None => Err(connection.fail(error::PROTOCOL_ERROR, "a stream number does not rise")),
        }
    }

    fn refuse(&mut self, id: u32, end: bool, refusal: Refusal) -> Result<(), Closed> {
        let connection = &mut self.connection;
        match refusal {
            Refusal::Reset(code) => connection.link.reset(id, code),
            Refusal::Status { http, code, message } => {
                connection.link.trailers_only(id, http, code, &message);
                if !end {
                    connection.link.reset(id, error::NO_ERROR);
                }
            }
        }
        if !end {
            connection.remember_early(id);
        }
        connection.nuisance()
    }

    fn data(
        &mut self,
        id: u32,
        mut data: Bytes,
        end: bool,
        events: &mut Vec<Event>,
    ) -> Result<(), Closed> {
        let connection = &mut self.connection;
        let Some(stream) = connection.streams.get_mut(&id) else {
            // Data for a stream that we ended early was on its way; any other should not exist.
            if !connection.closed_early(id) {
                connection.link.reset(id, error::STREAM_CLOSED);
            }
            return connection.nuisance();
        };
        if stream.disowned {
            stream.receiving &= !end;
            return Ok(());
        }
        if !stream.receiving {
            connection.abandon(id, error::STREAM_CLOSED);
            events.push(Event::Reset { id: StreamId(id), code: error::STREAM_CLOSED });
            return Ok(());
        }
        if stream.plain {
            if !data.is_empty() {
                events.push(Event::Data { id: StreamId(id), data });
            }
            if end {
                stream.receiving = false;
                events.push(Event::HalfClosed { id: StreamId(id) });
            }
            return Ok(());
        }
        let before = stream.deframer.partial_bytes();
        let max = connection.limits.message_bytes_max;
        let mut refused = loop {
            match stream.deframer.next(&mut data, max) {
                Ok(Some(data)) => events.push(Event::Message { id: StreamId(id), data }),
                Ok(None) => break None,
                Err(refused) => break Some(refused),
            }
        };
        connection.partial_bytes += stream.deframer.partial_bytes();
        connection.partial_bytes -= before;
        if end && refused.is_none() {
            stream.receiving = false;
            if stream.deframer.at_boundary() {
                events.push(Event::HalfClosed { id: StreamId(id) });
                return Ok(());
            }
            refused = Some(Refused { code: code::INTERNAL, message: "unexpected EOF".to_string() });
        } else if connection.partial_bytes > connection.limits.partial_bytes_max {
            let message = "too many unfinished requests on this connection".to_string();
            refused = Some(Refused { code: code::RESOURCE_EXHAUSTED, message });
        }
        if let Some(refused) = refused {
            self.refuse_message(id, end, refused, events);
        }
        Ok(())
    }

    /// Answers a stream whose data cannot be taken. The answer may have to wait for the client's
    /// window; the owner has nothing more to do with it.
    fn refuse_message(&mut self, id: u32, end: bool, refused: Refused, events: &mut Vec<Event>) {
        let Some(stream) = self.connection.streams.get_mut(&id) else { return };
        stream.receiving = !end;
        stream.disowned = true;
        let unfinished = std::mem::take(&mut stream.deframer);
        self.connection.partial_bytes -= unfinished.partial_bytes();
        self.finish(StreamId(id), refused.code, &refused.message);
        events.push(Event::Reset { id: StreamId(id), code: error::NO_ERROR });
    }

    fn reset_by_peer(&mut self, id: u32, code: u32, events: &mut Vec<Event>) -> Result<(), Closed> {
        let Some(stream) = self.connection.remove(id) else {
            return self.connection.nuisance();
        };
        if !stream.disowned {
            events.push(Event::Reset { id: StreamId(id), code });
        }
        if self.connection.guard.reset() {
            return Ok(());
        }
        Err(self.connection.fail(error::ENHANCE_YOUR_CALM, "too many streams were reset"))
    }

    fn pinged(&mut self, now_ms: u64) -> Result<(), Closed> {
        if self.connection.guard.ping(now_ms, self.connection.streams.len()) {
            return Ok(());
        }
        Err(self.connection.fail(error::ENHANCE_YOUR_CALM, "too_many_pings"))
    }

    fn leave_for_good(&mut self) {
        self.leaving = Leaving::Final;
        self.connection.link.go_away(self.connection.last_id, error::NO_ERROR, b"");
    }
}
