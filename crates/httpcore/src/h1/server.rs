//! The server's end of a connection.

use bytes::{Buf, Bytes, BytesMut};

use super::body::Body;
use super::head::{self, Head};
use super::{Closed, Limits};
use crate::h2::Headers;
use crate::output::Output;

/// What a client did.
#[derive(Debug, Clone)]
pub enum Event {
    Request(Request),
    /// A piece of the body.
    Body {
        data: Bytes,
    },
    /// The request is complete: answer it, if that has not been done.
    End,
}

/// The head of a request.
#[derive(Debug, Clone)]
pub struct Request {
    pub method: Bytes,
    /// As on the request line: a path with perhaps a query.
    pub target: Bytes,
    pub headers: Headers,
    /// A WebSocket handshake: answer with `upgrade`, see `ws::handshake`.
    pub wants_websocket: bool,
}

/// The server's end of one connection.
pub struct Server {
    limits: Limits,
    output: Output,
    receiving: Receiving,
    answering: Answering,
    modern: bool,
    /// The request was a HEAD, so its answer has no body.
    asked_for_head: bool,
    keep_alive: bool,
    /// The last answer was given.
    over: bool,
    closed: Option<Closed>,
}

enum Receiving {
    /// Between requests, or within a head.
    Head,
    Body(Body),
    /// The request is complete.
    Done,
    /// The connection speaks another protocol now.
    Upgraded,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answering {
    Idle,
    /// The body's length was announced.
    Fixed,
    Chunked,
    /// The body ends with the connection, as HTTP/1.0 needs it.
    UntilClose,
    /// There is no body, whatever the owner sends.
    Without,
    Done,
}

impl Server {
    pub fn new(limits: Limits) -> Server {
        Server {
            limits,
            output: Output::new(),
            receiving: Receiving::Head,
            answering: Answering::Done,
            modern: true,
            asked_for_head: false,
            keep_alive: true,
            over: false,
            closed: None,
        }
    }

    /// Takes what came from the socket. `input` starts with what an earlier call left there.
    pub fn receive(&mut self, input: &mut BytesMut, events: &mut Vec<Event>) -> Result<(), Closed> {
        if let Some(closed) = &self.closed {
            return Err(closed.clone());
        }
        self.read(input, events).map_err(|closed| self.fail(closed))
    }

    /// Bytes to send.
    pub fn output(&mut self) -> &mut Output {
        &mut self.output
    }

    /// Gives the whole answer at once.
    pub fn respond(&mut self, status: u16, headers: &[(&str, &str)], body: Bytes) {
        if self.begin(status, headers, Some(body.len())) {
            self.send(body);
            self.finish();
        }
    }

    /// Begins an answer whose length is not known: it is sent in chunks.
    pub fn start(&mut self, status: u16, headers: &[(&str, &str)]) {
        self.begin(status, headers, None);
    }

    /// Sends a piece of an answer.
    pub fn send(&mut self, data: Bytes) {
        // A chunk of no bytes would be the end.
        if data.is_empty() {
            return;
        }
        match self.answering {
            Answering::Fixed | Answering::UntilClose => self.output.put_owned(data),
            Answering::Chunked => {
                self.output.put_slice(format!("{:x}\r\n", data.len()).as_bytes());
                self.output.put_owned(data);
                self.output.put_slice(b"\r\n");
            }
            Answering::Without | Answering::Idle | Answering::Done => {}
        }
    }

    /// Ends an answer. If the input is not empty, call `receive` again: the next request may
    /// already be there.
    pub fn finish(&mut self) {
        if matches!(self.answering, Answering::Idle | Answering::Done) {
            return;
        }
        if self.answering == Answering::Chunked {
            self.output.put_slice(b"0\r\n\r\n");
        }
        self.answering = Answering::Done;
        if self.keep_alive {
            self.receiving = Receiving::Head;
        } else {
            self.over = true;
        }
    }

    /// Agrees to speak another protocol: status 101. What follows in the input belongs to it;
    /// take the output along with `into_output`.
    pub fn upgrade(&mut self, headers: &[(&str, &str)]) {
        if self.answering != Answering::Idle {
            return;
        }
        self.output.put_slice(b"HTTP/1.1 101 Switching Protocols\r\n");
        self.put_fields(headers);
        self.output.put_slice(b"\r\n");
        self.answering = Answering::Done;
        self.receiving = Receiving::Upgraded;
    }

    /// Hands over what is still to be sent, after `upgrade`.
    pub fn into_output(self) -> Output {
        self.output
    }

    /// Whether to close once the output is sent.
    pub fn should_close(&self) -> bool {
        self.over
    }

    /// No request is under way and nothing waits to be sent.
    pub fn is_idle(&self) -> bool {
        matches!(self.receiving, Receiving::Head)
            && self.answering == Answering::Done
            && self.output.is_empty()
    }

    /// Makes the answer under way, if there is one, the last.
    pub fn shut_down(&mut self) {
        self.keep_alive = false;
        if matches!(self.receiving, Receiving::Head) && self.answering == Answering::Done {
            self.over = true;
        }
    }

    fn read(&mut self, input: &mut BytesMut, events: &mut Vec<Event>) -> Result<(), Closed> {
        loop {
            if self.over {
                // Whatever else was sent has lost its reader.
                input.clear();
                return Ok(());
            }
            match &mut self.receiving {
                Receiving::Done | Receiving::Upgraded => return Ok(()),
                Receiving::Head => {
                    skip_empty_lines(input);
                    if input.is_empty() {
                        return Ok(());
                    }
                    let Some(head) = head::take(input, &self.limits)? else { return Ok(()) };
                    self.begin_request(head, events)?;
                }
                Receiving::Body(body) => {
                    while let Some(data) = body.next(input, &self.limits)? {
                        events.push(Event::Body { data });
                    }
                    if !body.is_done() {
                        return Ok(());
                    }
                    self.receiving = Receiving::Done;
                    events.push(Event::End);
                }
            }
        }
    }

    fn begin_request(&mut self, head: Head, events: &mut Vec<Event>) -> Result<(), Closed> {
        self.modern = head.modern;
        self.asked_for_head = &head.method[..] == b"HEAD";
        self.keep_alive = head.keep_alive;
        self.answering = Answering::Idle;
        let body = Body::new(head.length, &self.limits)?;
        if head.expects_continue && !body.is_done() {
            self.output.put_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        let wants_websocket = head.modern
            && head::names(&head.headers, "connection", "upgrade")
            && head::names(&head.headers, "upgrade", "websocket");
        let Head { method, target, headers, .. } = head;
        events.push(Event::Request(Request { method, target, headers, wants_websocket }));
        if body.is_done() {
            self.receiving = Receiving::Done;
            events.push(Event::End);
        } else {
            self.receiving = Receiving::Body(body);
        }
        Ok(())
    }

    /// False if there is nothing to answer.
    fn begin(&mut self, status: u16, headers: &[(&str, &str)], length: Option<usize>) -> bool {
        if self.answering != Answering::Idle {
            return false;
        }
        if !matches!(self.receiving, Receiving::Done) {
            // The rest of the body may be long, and nobody wants it.
            self.keep_alive = false;
        }
        let never_a_body = status == 204 || status == 304 || (100..200).contains(&status);
        let version = if self.modern { "1.1" } else { "1.0" };
        let line = format!("HTTP/{version} {status} {}\r\n", reason(status));
        self.output.put_slice(line.as_bytes());
        self.put_fields(headers);
        self.answering = match length {
            _ if never_a_body => Answering::Without,
            Some(length) => {
                self.output.put_slice(format!("content-length: {length}\r\n").as_bytes());
                Answering::Fixed
            }
            None if self.modern => {
                self.output.put_slice(b"transfer-encoding: chunked\r\n");
                Answering::Chunked
            }
            None => {
                self.keep_alive = false;
                Answering::UntilClose
            }
        };
        if self.asked_for_head {
            self.answering = Answering::Without;
        }
        match (self.keep_alive, self.modern) {
            (false, true) => self.output.put_slice(b"connection: close\r\n"),
            (true, false) => self.output.put_slice(b"connection: keep-alive\r\n"),
            _ => {}
        }
        self.output.put_slice(b"\r\n");
        true
    }

    fn put_fields(&mut self, headers: &[(&str, &str)]) {
        for (name, value) in headers {
            for text in [name, ": ", value] {
                // A line end inside a field would begin a field of somebody else's choice.
                for piece in text.split_inclusive(['\r', '\n']) {
                    self.output.put_slice(piece.trim_end_matches(['\r', '\n']).as_bytes());
                }
            }
            self.output.put_slice(b"\r\n");
        }
    }

    fn fail(&mut self, closed: Closed) -> Closed {
        self.receiving = Receiving::Done;
        self.keep_alive = false;
        if matches!(self.answering, Answering::Idle | Answering::Done) {
            self.answering = Answering::Idle;
            self.asked_for_head = false;
            let text = Bytes::from_static(closed.reason.as_bytes());
            self.respond(closed.status, &[("content-type", "text/plain; charset=utf-8")], text);
        }
        self.over = true;
        self.closed = Some(closed.clone());
        closed
    }
}

/// Some clients send an empty line after a body; RFC 9112 section 2.2 says to skip it.
fn skip_empty_lines(input: &mut BytesMut) {
    while input.starts_with(b"\r\n") {
        input.advance(2);
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        301 => "Moved Permanently",
        302 => "Found",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        412 => "Precondition Failed",
        413 => "Request Entity Too Large",
        415 => "Unsupported Media Type",
        421 => "Misdirected Request",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        _ => "",
    }
}
