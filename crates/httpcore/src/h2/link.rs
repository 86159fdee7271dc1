//! The sending half of a connection: header blocks, data within the peer's windows, control frames.

use bytes::{Buf, Bytes};

use super::frame::{self, HEAD_BYTES};
use super::stream::{Ending, Sending, Stream};
use crate::grpc::{self, PREFIX_BYTES};
use crate::hpack::Encoder;
use crate::output::Output;

pub struct Link {
    pub output: Output,
    pub encoder: Encoder,
    /// Bytes the peer lets us send on all streams together.
    pub window: i64,
    /// Bytes that wait in all streams together.
    pub queued: usize,
    pub peer_max_frame: usize,
    scratch: Vec<u8>,
    answer_head: Constant,
    good_trailers: Constant,
}

/// A header block that is the same every time, until the encoder's table changes.
#[derive(Default)]
struct Constant {
    generation: Option<u64>,
    block: Vec<u8>,
}

/// How far sending on a stream got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pumped {
    /// All that was queued is out.
    Empty,
    /// All is out, and so is the end of our side.
    Ended,
    /// Waits for the stream's window.
    StreamFull,
    /// Waits for the connection's window.
    ConnectionFull,
}

impl Link {
    pub fn new() -> Link {
        Link {
            output: Output::new(),
            encoder: Encoder::default(),
            window: 65535,
            queued: 0,
            peer_max_frame: 16384,
            scratch: Vec::new(),
            answer_head: Constant::default(),
            good_trailers: Constant::default(),
        }
    }

    /// The head of every gRPC answer.
    pub fn answer_head(&mut self, id: u32, gzip: bool) {
        if gzip {
            return self.header_block(id, false, |encoder, block| {
                encoder.repeated(b":status", b"200", block);
                encoder.repeated(b"content-type", b"application/grpc", block);
                encoder.repeated(b"grpc-encoding", b"gzip", block);
            });
        }
        constant(&mut self.answer_head, &mut self.encoder, |encoder, block| {
            encoder.repeated(b":status", b"200", block);
            encoder.repeated(b"content-type", b"application/grpc", block);
        });
        let block = &self.answer_head.block;
        let head = frame::head(block.len(), frame::HEADERS, frame::END_HEADERS, id);
        self.output.put_slice(&head);
        self.output.put_slice(block);
    }

    /// The trailers of a gRPC answer.
    pub fn trailers(&mut self, id: u32, code: u8, message: &str) {
        if code == grpc::code::OK && message.is_empty() {
            constant(&mut self.good_trailers, &mut self.encoder, |encoder, block| {
                encoder.repeated(b"grpc-status", b"0", block);
            });
            let flags = frame::END_HEADERS | frame::END_STREAM;
            let block = &self.good_trailers.block;
            self.output.put_slice(&frame::head(block.len(), frame::HEADERS, flags, id));
            self.output.put_slice(block);
            return;
        }
        self.header_block(id, true, |encoder, block| status(encoder, block, code, message));
    }

    /// An answer that is only a status.
    pub fn trailers_only(&mut self, id: u32, http: u16, code: u8, message: &str) {
        self.header_block(id, true, |encoder, block| {
            encoder.once(b":status", http.to_string().as_bytes(), block);
            encoder.repeated(b"content-type", b"application/grpc", block);
            status(encoder, block, code, message);
        });
    }

    /// Encodes and sends a header block, in as many frames as it needs.
    pub fn header_block(
        &mut self,
        id: u32,
        end: bool,
        fill: impl FnOnce(&mut Encoder, &mut Vec<u8>),
    ) {
        let mut block = std::mem::take(&mut self.scratch);
        block.clear();
        self.encoder.begin(&mut block);
        fill(&mut self.encoder, &mut block);
        self.encoded_block(id, end, &block);
        self.scratch = block;
    }

    /// Sends a block that `encoder` has just produced.
    pub fn encoded_block(&mut self, id: u32, end: bool, block: &[u8]) {
        let mut kind = frame::HEADERS;
        let mut flags = if end { frame::END_STREAM } else { 0 };
        let mut rest = block;
        loop {
            let (part, after) = rest.split_at(rest.len().min(self.peer_max_frame));
            if after.is_empty() {
                flags |= frame::END_HEADERS;
            }
            self.output.put_slice(&frame::head(part.len(), kind, flags, id));
            self.output.put_slice(part);
            if after.is_empty() {
                return;
            }
            (kind, flags, rest) = (frame::CONTINUATION, 0, after);
        }
    }

    /// Sends one gRPC message, or as much of it as the windows allow; the rest waits in `stream`.
    pub fn message(&mut self, id: u32, stream: &mut Stream, parts: &[Bytes]) -> Pumped {
        #[cfg(feature = "gzip")]
        let compressed;
        #[cfg(feature = "gzip")]
        let parts = if stream.gzip {
            compressed = [crate::gzip::compress(parts)];
            &compressed[..]
        } else {
            parts
        };
        let length: usize = parts.iter().map(Bytes::len).sum();
        let prefix = grpc::prefix(length, stream.gzip);
        let total = PREFIX_BYTES + length;
        let fits =
            total <= self.peer_max_frame && total as i64 <= self.window.min(stream.send_window);
        // The end of the stream rides on the last frame only if it needs no trailers.
        if stream.queue.is_empty() && fits {
            let ends = stream.ending == Some(Ending::Flag);
            let flags = if ends { frame::END_STREAM } else { 0 };
            let mut start = [0; HEAD_BYTES + PREFIX_BYTES];
            start[..HEAD_BYTES].copy_from_slice(&frame::head(total, frame::DATA, flags, id));
            start[HEAD_BYTES..].copy_from_slice(&prefix);
            self.output.put_slice(&start);
            for part in parts {
                self.output.put(part);
            }
            self.window -= total as i64;
            stream.send_window -= total as i64;
            if ends {
                stream.ending = None;
                return Pumped::Ended;
            }
            return self.pump(id, stream, usize::MAX);
        }
        stream.queue.push_back(Bytes::copy_from_slice(&prefix));
        stream.queue.extend(parts.iter().filter(|part| !part.is_empty()).cloned());
        stream.queued += total;
        self.queued += total;
        self.pump(id, stream, usize::MAX)
    }

    /// Sends plain data as `message` does, without a prefix.
    pub fn data(&mut self, id: u32, stream: &mut Stream, data: Bytes) -> Pumped {
        if !data.is_empty() {
            stream.queued += data.len();
            self.queued += data.len();
            stream.queue.push_back(data);
        }
        self.pump(id, stream, usize::MAX)
    }

    /// Sends up to `frames_max` frames of what waits in `stream`.
    pub fn pump(&mut self, id: u32, stream: &mut Stream, mut frames_max: usize) -> Pumped {
        while stream.queued > 0 {
            if stream.send_window <= 0 {
                return Pumped::StreamFull;
            }
            if self.window <= 0 || frames_max == 0 {
                return Pumped::ConnectionFull;
            }
            frames_max -= 1;
            let allowed = self.window.min(stream.send_window) as usize;
            let length = stream.queued.min(allowed).min(self.peer_max_frame);
            let last = length == stream.queued && stream.ending == Some(Ending::Flag);
            let flags = if last { frame::END_STREAM } else { 0 };
            self.output.put_slice(&frame::head(length, frame::DATA, flags, id));
            self.take_queued(stream, length);
            self.window -= length as i64;
            stream.send_window -= length as i64;
            if last {
                stream.ending = None;
                return Pumped::Ended;
            }
        }
        match stream.ending.take() {
            None => Pumped::Empty,
            Some(Ending::Flag) => {
                self.output.put_slice(&frame::head(0, frame::DATA, frame::END_STREAM, id));
                Pumped::Ended
            }
            Some(Ending::Trailers { code, message }) => {
                self.trailers(id, code, &message);
                Pumped::Ended
            }
        }
    }

    fn take_queued(&mut self, stream: &mut Stream, mut length: usize) {
        stream.queued -= length;
        self.queued -= length;
        while length > 0 {
            let front = stream.queue.front_mut().expect("queued bytes are in the queue");
            if front.len() > length {
                self.output.put_owned(front.slice(..length));
                front.advance(length);
                return;
            }
            length -= front.len();
            let front = stream.queue.pop_front().expect("the front was there");
            self.output.put_owned(front);
        }
    }

    /// Ends our side of `stream` once all that waits is out.
    pub fn end(&mut self, id: u32, stream: &mut Stream, ending: Ending) -> Pumped {
        stream.sending = Sending::Ended;
        stream.ending = Some(ending);
        self.pump(id, stream, usize::MAX)
    }

    pub fn reset(&mut self, id: u32, code: u32) {
        self.control(frame::RST_STREAM, 0, id, &code.to_be_bytes());
    }

    pub fn window_update(&mut self, id: u32, bytes: i64) {
        debug_assert!(bytes > 0, "an update of nothing is a protocol error");
        self.control(frame::WINDOW_UPDATE, 0, id, &(bytes as u32).to_be_bytes());
    }

    pub fn ping(&mut self, data: &[u8; 8], ack: bool) {
        self.control(frame::PING, if ack { frame::ACK } else { 0 }, 0, data);
    }

    pub fn go_away(&mut self, last: u32, code: u32, debug: &[u8]) {
        let mut payload = Vec::with_capacity(8 + debug.len());
        payload.extend_from_slice(&last.to_be_bytes());
        payload.extend_from_slice(&code.to_be_bytes());
        payload.extend_from_slice(debug);
        self.control(frame::GOAWAY, 0, 0, &payload);
    }

    pub fn settings(&mut self, settings: &[(u16, u32)]) {
        let mut payload = Vec::with_capacity(settings.len() * 6);
        for (name, value) in settings {
            payload.extend_from_slice(&name.to_be_bytes());
            payload.extend_from_slice(&value.to_be_bytes());
        }
        self.control(frame::SETTINGS, 0, 0, &payload);
    }

    pub fn settings_ack(&mut self) {
        self.control(frame::SETTINGS, frame::ACK, 0, &[]);
    }

    fn control(&mut self, kind: u8, flags: u8, id: u32, payload: &[u8]) {
        self.output.put_slice(&frame::head(payload.len(), kind, flags, id));
        self.output.put_slice(payload);
    }
}

/// Encodes `constant` anew unless the table is as it was. A block that itself changed the table is
/// used once and then encoded again, shorter.
fn constant(
    constant: &mut Constant,
    encoder: &mut Encoder,
    fill: impl FnOnce(&mut Encoder, &mut Vec<u8>),
) {
    let generation = encoder.generation();
    if constant.generation == Some(generation) {
        return;
    }
    constant.block.clear();
    encoder.begin(&mut constant.block);
    fill(encoder, &mut constant.block);
    constant.generation = (encoder.generation() == generation).then_some(generation);
}

fn status(encoder: &mut Encoder, block: &mut Vec<u8>, code: u8, message: &str) {
    encoder.once(b"grpc-status", code.to_string().as_bytes(), block);
    if !message.is_empty() {
        let mut text = Vec::with_capacity(message.len());
        grpc::percent_encode(message, &mut text);
        encoder.once(b"grpc-message", &text, block);
    }
}
