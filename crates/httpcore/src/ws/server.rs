//! The server's end of a WebSocket.

use bytes::{Bytes, BytesMut};

use super::frame::{self, Frame};
use super::{Closed, Limits};
use crate::output::Output;

/// What a client did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A whole text message; valid UTF-8.
    Text(Bytes),
    Binary(Bytes),
    /// The answer to `ping`, or a pong nobody asked for.
    Pong(Bytes),
    /// The client ends the connection. The answer is queued: flush and close.
    Close {
        code: Option<u16>,
    },
}

/// The server's end of one WebSocket.
pub struct Server {
    limits: Limits,
    output: Output,
    /// The fragments of a message so far, and whether it is text.
    partial: Option<(bool, BytesMut)>,
    fragments: u32,
    pings: u32,
    closed: Option<Closed>,
    close_sent: bool,
}

/// Fragments of one message; more carry too little to be honest.
const FRAGMENTS_MAX: u32 = 4096;

/// Pings between two messages.
const PINGS_MAX: u32 = 1024;

impl Server {
    /// Goes on with `output`, which may still hold the answer to the handshake.
    pub fn new(limits: Limits, output: Output) -> Server {
        Server {
            limits,
            output,
            partial: None,
            fragments: 0,
            pings: 0,
            closed: None,
            close_sent: false,
        }
    }

    /// Takes what came from the socket. `input` starts with what an earlier call left there.
    pub fn receive(&mut self, input: &mut BytesMut, events: &mut Vec<Event>) -> Result<(), Closed> {
        if let Some(closed) = &self.closed {
            return Err(closed.clone());
        }
        self.read(input, events).inspect_err(|closed| {
            self.close(closed.code, closed.reason);
            self.closed = Some(closed.clone());
        })
    }

    /// Bytes to send.
    pub fn output(&mut self) -> &mut Output {
        &mut self.output
    }

    pub fn send_text(&mut self, text: &Bytes) {
        self.send(frame::TEXT, text);
    }

    pub fn send_binary(&mut self, data: &Bytes) {
        self.send(frame::BINARY, data);
    }

    pub fn ping(&mut self) {
        self.send(frame::PING, &Bytes::new());
    }

    /// Says goodbye; nothing is sent after it.
    pub fn close(&mut self, code: u16, reason: &str) {
        let mut payload = code.to_be_bytes().to_vec();
        // A control frame has room for 125 bytes; the cut must not split a character.
        let mut end = reason.len().min(123);
        while !reason.is_char_boundary(end) {
            end -= 1;
        }
        payload.extend_from_slice(&reason.as_bytes()[..end]);
        self.send(frame::CLOSE, &payload.into());
        self.close_sent = true;
    }

    fn read(&mut self, input: &mut BytesMut, events: &mut Vec<Event>) -> Result<(), Closed> {
        loop {
            let held = self.partial.as_ref().map_or(0, |(_, held)| held.len());
            let allowed = self.limits.message_bytes_max.saturating_sub(held).max(125);
            let Some(frame) = frame::take(input, allowed)? else { return Ok(()) };
            match frame.opcode {
                frame::TEXT | frame::BINARY | frame::CONTINUATION => self.data(frame, events)?,
                frame::PING => {
                    self.pings += 1;
                    if self.pings > PINGS_MAX {
                        return Err(Closed { code: 1008, reason: "too many pings" });
                    }
                    self.send(frame::PONG, &frame.payload.freeze());
                }
                frame::PONG => events.push(Event::Pong(frame.payload.freeze())),
                frame::CLOSE => return self.closed_by_peer(&frame.payload, events),
                _ => return protocol("an unknown kind of frame"),
            }
        }
    }

    fn data(&mut self, frame: Frame, events: &mut Vec<Event>) -> Result<(), Closed> {
        let starts = frame.opcode != frame::CONTINUATION;
        let (text, message) = match (self.partial.take(), starts) {
            (None, true) => (frame.opcode == frame::TEXT, frame.payload),
            (Some((text, mut held)), false) => {
                held.extend_from_slice(&frame.payload);
                (text, held)
            }
            (None, false) => return protocol("a continuation continues nothing"),
            (Some(_), true) => return protocol("a message is interrupted by another"),
        };
        if message.len() > self.limits.message_bytes_max {
            return Err(Closed { code: 1009, reason: "the message is too large" });
        }
        if !frame.last {
            self.fragments += 1;
            if self.fragments > FRAGMENTS_MAX {
                return Err(Closed { code: 1008, reason: "too many fragments" });
            }
            self.partial = Some((text, message));
            return Ok(());
        }
        self.fragments = 0;
        self.pings = 0;
        if !text {
            events.push(Event::Binary(message.freeze()));
            return Ok(());
        }
        if std::str::from_utf8(&message).is_err() {
            return Err(Closed { code: 1007, reason: "a text message is not UTF-8" });
        }
        events.push(Event::Text(message.freeze()));
        Ok(())
    }

    fn closed_by_peer(&mut self, payload: &[u8], events: &mut Vec<Event>) -> Result<(), Closed> {
        let code = match payload {
            [] => None,
            [a, b, reason @ ..] => {
                let code = u16::from_be_bytes([*a, *b]);
                if !matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999) {
                    return protocol("a close code that may not be sent");
                }
                if std::str::from_utf8(reason).is_err() {
                    return Err(Closed { code: 1007, reason: "a close reason is not UTF-8" });
                }
                Some(code)
            }
            _ => return protocol("half a close code"),
        };
        events.push(Event::Close { code });
        Err(Closed { code: code.unwrap_or(1000), reason: "" })
    }

    fn send(&mut self, opcode: u8, payload: &Bytes) {
        if self.close_sent {
            return;
        }
        let mut head = Vec::with_capacity(10);
        frame::head(opcode, payload.len(), &mut head);
        self.output.put_slice(&head);
        self.output.put(payload);
    }
}

fn protocol<T>(reason: &'static str) -> Result<T, Closed> {
    Err(Closed { code: 1002, reason })
}
