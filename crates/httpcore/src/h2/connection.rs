//! What both ends of a connection do alike: cut frames, keep windows, answer control frames.
//!
//! `next` hands on only the frames that mean something to one end in particular.

mod control;

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

use super::frame::{self, HEAD_BYTES, Head, setting};
use super::guard::Guard;
use super::headers::{Blocks, Headers};
use super::link::{Link, Pumped};
use super::stream::{Stream, Streams};
use super::{Closed, Limits, Settings, error};

pub struct Connection {
    pub link: Link,
    pub streams: Streams,
    pub settings: Settings,
    pub limits: Limits,
    pub guard: Guard,
    /// The highest stream number the peer has used (a server) or we have used (a client).
    pub last_id: u32,
    pub peer_initial_window: u32,
    pub peer_max_concurrent: u32,
    /// Bytes of unfinished messages in all streams.
    pub partial_bytes: usize,
    blocks: Blocks,
    receive_window: i64,
    receive_used: i64,
    /// Streams that have data but found the connection's window used up, in order.
    waiting: VecDeque<u32>,
    unfinished: Option<Unfinished>,
    greeted: bool,
    /// What one stream may bring. The default until the peer has acknowledged our settings: until
    /// then it may not know better.
    stream_window: i64,
    closed: Option<Closed>,
    serves: bool,
    /// Streams answered before the peer had ended them: their last frames may still come.
    early: VecDeque<u32>,
}

/// The window of a stream and of a connection before anybody says otherwise.
const WINDOW_DEFAULT: i64 = 65535;

/// Streams remembered in `early`.
const EARLY_MAX: usize = 128;

/// A header block whose CONTINUATION frames have not all come.
struct Unfinished {
    id: u32,
    end: bool,
    block: Vec<u8>,
    frames: u32,
}

/// CONTINUATION frames for one block; a block of the largest size allowed needs far fewer.
const CONTINUATIONS_MAX: u32 = 64;

/// A frame one end must look at itself.
pub enum Incoming {
    Headers {
        id: u32,
        headers: Headers,
        end: bool,
    },
    /// Windows are already accounted for; the stream may be unknown.
    Data {
        id: u32,
        data: Bytes,
        end: bool,
    },
    Reset {
        id: u32,
        code: u32,
    },
    Ping,
    PingAck {
        data: [u8; 8],
    },
    GoAway {
        last: u32,
        code: u32,
        debug: Bytes,
    },
    /// The peer misbehaved on this stream only; it has been reset and forgotten.
    Failed {
        id: u32,
        code: u32,
        disowned: bool,
    },
}

/// Whole frames, not yet looked at.
pub struct Frames {
    bytes: Bytes,
    at: usize,
    /// The frame after these is longer than allowed.
    too_long: bool,
}

impl Connection {
    pub fn new(settings: Settings, limits: Limits, serves: bool) -> Connection {
        Connection {
            link: Link::new(),
            streams: Streams::default(),
            guard: Guard::new(&limits),
            last_id: 0,
            peer_initial_window: 65535,
            peer_max_concurrent: u32::MAX,
            partial_bytes: 0,
            blocks: Blocks::default(),
            receive_window: i64::from(settings.connection_window).max(WINDOW_DEFAULT),
            receive_used: 0,
            waiting: VecDeque::new(),
            unfinished: None,
            greeted: false,
            stream_window: WINDOW_DEFAULT,
            closed: None,
            serves,
            early: VecDeque::new(),
            settings,
            limits,
        }
    }

    /// Sends the first SETTINGS and opens the connection's window.
    pub fn greet(&mut self, extra: &[(u16, u32)]) {
        let settings = &self.settings;
        let mut list = extra.to_vec();
        list.extend([
            (setting::INITIAL_WINDOW_SIZE, settings.initial_window),
            (setting::MAX_HEADER_LIST_SIZE, settings.header_list_max),
        ]);
        if settings.max_frame != 16384 {
            list.push((setting::MAX_FRAME_SIZE, settings.max_frame));
        }
        self.link.settings(&list);
        let more = self.receive_window - WINDOW_DEFAULT;
        if more > 0 {
            self.link.window_update(0, more);
        }
    }

    /// Splits the whole frames off `input`, in one piece.
    pub fn frames(&mut self, input: &mut BytesMut) -> Result<Frames, Closed> {
        if let Some(closed) = &self.closed {
            return Err(closed.clone());
        }
        let (mut end, mut too_long) = (0, false);
        while let Some(head) = Head::read(&input[end..]) {
            too_long = head.length > self.settings.max_frame as usize;
            if too_long || input.len() - end < HEAD_BYTES + head.length {
                break;
            }
            end += HEAD_BYTES + head.length;
        }
        Ok(Frames { bytes: input.split_to(end).freeze(), at: 0, too_long })
    }

    /// Handles frames until one concerns the caller. `None` once all are handled.
    pub fn next(&mut self, frames: &mut Frames) -> Result<Option<Incoming>, Closed> {
        while let Some(head) = Head::read(&frames.bytes[frames.at..]) {
            let start = frames.at + HEAD_BYTES;
            frames.at = start + head.length;
            let payload = start..frames.at;
            if self.unfinished.is_some() || !self.greeted {
                self.check_order(head)?;
            }
            let incoming = match head.kind {
                frame::DATA => self.data(head, &frames.bytes, payload)?,
                frame::HEADERS => self.headers(head, &frames.bytes[payload])?,
                frame::CONTINUATION => self.continuation(head, &frames.bytes[payload])?,
                frame::RST_STREAM => Some(self.rst_stream(head, &frames.bytes[payload])?),
                frame::SETTINGS => self.settings(head, &frames.bytes[payload])?,
                frame::PING => self.ping(head, &frames.bytes[payload])?,
                frame::GOAWAY => Some(self.go_away(head, &frames.bytes, payload)?),
                frame::WINDOW_UPDATE => self.window_update(head, &frames.bytes[payload])?,
                frame::PRIORITY => self.priority(head)?,
                frame::PUSH_PROMISE => {
                    return Err(self.fail(error::PROTOCOL_ERROR, "a PUSH_PROMISE nobody allowed"));
                }
                _ => {
                    self.nuisance()?;
                    None
                }
            };
            if incoming.is_some() {
                return Ok(incoming);
            }
        }
        if frames.too_long {
            return Err(self.fail(error::FRAME_SIZE_ERROR, "a frame is too long"));
        }
        Ok(None)
    }

    /// Ends the connection: nothing is received any more.
    pub fn fail(&mut self, code: u32, reason: &str) -> Closed {
        let closed = Closed { code, reason: reason.to_string() };
        if self.closed.is_none() {
            self.link.go_away(self.last_id, code, reason.as_bytes());
            self.closed = Some(closed.clone());
        }
        closed
    }

    /// Counts a frame that means no work.
    pub fn nuisance(&mut self) -> Result<(), Closed> {
        if self.guard.nuisance() {
            return Ok(());
        }
        Err(self.fail(error::ENHANCE_YOUR_CALM, "too many frames that carry nothing"))
    }

    /// Notes that a stream could not send all it has, so that it is continued in time.
    pub fn pumped(&mut self, id: u32, pumped: Pumped) {
        if pumped == Pumped::ConnectionFull
            && let Some(stream) = self.streams.get_mut(&id)
            && !stream.waits
        {
            stream.waits = true;
            self.waiting.push_back(id);
            // Streams that were reset while they waited are still in the list.
            if self.waiting.len() > 2 * self.streams.len() + 64 {
                self.waiting.retain(|id| self.streams.contains_key(id));
            }
        }
    }

    /// Forgets a stream and gives back what it held.
    pub fn remove(&mut self, id: u32) -> Option<Stream> {
        let stream = self.streams.remove(&id)?;
        self.partial_bytes -= stream.deframer.partial_bytes();
        self.link.queued -= stream.queued;
        Some(stream)
    }

    /// Only SETTINGS may be first, and only its continuation may follow an unfinished block.
    fn check_order(&mut self, head: Head) -> Result<(), Closed> {
        if let Some(unfinished) = &self.unfinished
            && (head.kind != frame::CONTINUATION || head.id != unfinished.id)
        {
            return Err(self.fail(error::PROTOCOL_ERROR, "a header block is interrupted"));
        }
        if !self.greeted {
            if head.kind != frame::SETTINGS || head.has(frame::ACK) {
                return Err(self.fail(error::PROTOCOL_ERROR, "the first frame is not SETTINGS"));
            }
            self.greeted = true;
        }
        Ok(())
    }

    fn data(
        &mut self,
        head: Head,
        bytes: &Bytes,
        payload: std::ops::Range<usize>,
    ) -> Result<Option<Incoming>, Closed> {
        if head.id == 0 || head.id > self.last_id {
            return Err(self.fail(error::PROTOCOL_ERROR, "data on a stream that was never opened"));
        }
        let Some(inside) = frame::unpadded(head, &bytes[payload.clone()]) else {
            return Err(self.fail(error::PROTOCOL_ERROR, "the padding is longer than the frame"));
        };
        let length = head.length as i64;
        self.receive_window -= length;
        if self.receive_window < 0 {
            return Err(self.fail(error::FLOW_CONTROL_ERROR, "the connection's window is exceeded"));
        }
        self.receive_used += length;
        if self.receive_used * 2 >= i64::from(self.settings.connection_window) {
            self.link.window_update(0, self.receive_used);
            self.receive_window += self.receive_used;
            self.receive_used = 0;
        }
        let end = head.has(frame::END_STREAM);
        if inside.is_empty() && !end {
            self.nuisance()?;
        }
        if let Some(stream) = self.streams.get_mut(&head.id) {
            stream.receive_window -= length;
            if length > 0 && stream.receive_window < 0 {
                return Ok(Some(self.fail_stream(head.id, error::FLOW_CONTROL_ERROR)));
            }
            stream.receive_used += length;
            if !end && stream.receive_used * 2 >= i64::from(self.settings.initial_window) {
                self.link.window_update(head.id, stream.receive_used);
                stream.receive_window += stream.receive_used;
                stream.receive_used = 0;
            }
        }
        let data = bytes.slice(payload.start + inside.start..payload.start + inside.end);
        Ok(Some(Incoming::Data { id: head.id, data, end }))
    }

    fn headers(&mut self, head: Head, payload: &[u8]) -> Result<Option<Incoming>, Closed> {
        if head.id == 0 {
            return Err(self.fail(error::PROTOCOL_ERROR, "headers on stream 0"));
        }
        let inside = frame::unpadded(head, payload).map(|range| &payload[range]);
        let priority_bytes = if head.has(frame::WITH_PRIORITY) { 5 } else { 0 };
        let Some(block) = inside.and_then(|inside| inside.get(priority_bytes..)) else {
            return Err(self.fail(error::PROTOCOL_ERROR, "a HEADERS frame is too short"));
        };
        let end = head.has(frame::END_STREAM);
        if head.has(frame::END_HEADERS) {
            return self.block(head.id, end, block).map(Some);
        }
        self.unfinished = Some(Unfinished { id: head.id, end, block: block.to_vec(), frames: 0 });
        Ok(None)
    }

    fn continuation(&mut self, head: Head, payload: &[u8]) -> Result<Option<Incoming>, Closed> {
        let Some(mut unfinished) = self.unfinished.take() else {
            return Err(self.fail(error::PROTOCOL_ERROR, "a CONTINUATION continues nothing"));
        };
        unfinished.block.extend_from_slice(payload);
        unfinished.frames += 1;
        // The list is larger decoded than encoded, so a block beyond the list's limit is no
        // mistake of measure; decoding it would only serve the sender.
        let block_bytes_max = self.settings.header_list_max as usize + 16384;
        if unfinished.block.len() > block_bytes_max || unfinished.frames > CONTINUATIONS_MAX {
            return Err(self.fail(error::ENHANCE_YOUR_CALM, "a header block is too long"));
        }
        if !head.has(frame::END_HEADERS) {
            self.unfinished = Some(unfinished);
            return Ok(None);
        }
        self.block(unfinished.id, unfinished.end, &unfinished.block).map(Some)
    }

    fn block(&mut self, id: u32, end: bool, block: &[u8]) -> Result<Incoming, Closed> {
        match self.blocks.decode(block, self.settings.header_list_max as usize) {
            Ok(headers) => Ok(Incoming::Headers { id, headers, end }),
            Err(malformed) => Err(self.fail(error::COMPRESSION_ERROR, malformed.0)),
        }
    }

    /// Opens a stream with the windows of this moment.
    pub fn stream(&self) -> Stream {
        Stream::new(i64::from(self.peer_initial_window), self.stream_window)
    }

    fn fail_stream(&mut self, id: u32, code: u32) -> Incoming {
        let disowned = self.streams.get(&id).is_none_or(|stream| stream.disowned);
        self.abandon(id, code);
        Incoming::Failed { id, code, disowned }
    }

    /// The connection's window has grown: the waiting streams take turns, one frame each, so
    /// that a huge answer does not hold up the small ones.
    fn continue_waiting(&mut self) {
        while self.link.window > 0
            && let Some(id) = self.waiting.pop_front()
        {
            if let Some(stream) = self.streams.get_mut(&id) {
                stream.waits = false;
                self.pump(id, 1);
            }
        }
    }

    fn pump(&mut self, id: u32, frames_max: usize) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if stream.queued == 0 && stream.ending.is_none() {
            return;
        }
        let window = self.link.window;
        let pumped = self.link.pump(id, stream, frames_max);
        if self.link.window < window {
            self.guard.sent_more();
        }
        match pumped {
            Pumped::Ended => self.ended(id),
            pumped => self.pumped(id, pumped),
        }
    }

    /// Our side of a stream is out completely.
    pub fn ended(&mut self, id: u32) {
        let Some(stream) = self.streams.get(&id) else { return };
        if !stream.receiving {
            self.remove(id);
        } else if self.serves {
            // The answer is complete and the peer still sends: say that nobody listens.
            self.abandon(id, error::NO_ERROR);
        }
    }

    /// Resets a stream and forgets it, but not that its last frames may still come.
    pub fn abandon(&mut self, id: u32, code: u32) {
        self.link.reset(id, code);
        self.remove(id);
        self.remember_early(id);
    }

    pub fn remember_early(&mut self, id: u32) {
        if self.early.len() == EARLY_MAX {
            self.early.pop_front();
        }
        self.early.push_back(id);
    }

    /// Whether frames on this closed stream may still be on their way to us.
    pub fn closed_early(&self, id: u32) -> bool {
        self.early.contains(&id)
    }
}
