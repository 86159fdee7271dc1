//! One stream: its windows, its unfinished message, and what waits to be sent.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use bytes::Bytes;

use crate::grpc::Deframer;

pub struct Stream {
    /// Bytes the peer lets us send. Negative after the peer shrank its initial window.
    pub send_window: i64,
    /// Bytes we still let the peer send.
    pub receive_window: i64,
    /// Bytes received and not yet given back to the peer's window.
    pub receive_used: i64,
    pub deframer: Deframer,
    /// Not gRPC: data is handed on as it comes.
    pub plain: bool,
    /// The client compresses, so it is answered compressed.
    pub gzip: bool,
    /// The answer has no body, whatever the owner sends: the request was a HEAD.
    pub bodyless: bool,
    /// The owner has been told that this stream is gone; it stays only until its answer is out.
    pub disowned: bool,
    /// The peer has not ended its side.
    pub receiving: bool,
    pub sending: Sending,
    /// Data that flow control has not let out yet, and its length.
    pub queue: VecDeque<Bytes>,
    pub queued: usize,
    /// How to end our side once the queue is empty.
    pub ending: Option<Ending>,
    /// Already in the list of streams that wait for the connection's window.
    pub waits: bool,
}

/// How far our side of a stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sending {
    /// No header was sent yet.
    Idle,
    Open,
    /// The owner has ended it; the end may still wait in the queue.
    Ended,
}

/// What ends our side of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// `grpc-status` and `grpc-message`.
    Trailers { code: u8, message: String },
    /// The last data frame says it.
    Flag,
}

impl Stream {
    pub fn new(send_window: i64, receive_window: i64) -> Stream {
        Stream {
            send_window,
            receive_window,
            receive_used: 0,
            deframer: Deframer::default(),
            plain: false,
            gzip: false,
            bodyless: false,
            disowned: false,
            receiving: true,
            sending: Sending::Idle,
            queue: VecDeque::new(),
            queued: 0,
            ending: None,
            waits: false,
        }
    }
}

impl Stream {
    /// Messages on this stream may be compressed.
    #[cfg(feature = "gzip")]
    pub fn allow_gzip(&mut self) {
        self.gzip = true;
        self.deframer = Deframer::with_gzip();
    }

    #[cfg(not(feature = "gzip"))]
    pub fn allow_gzip(&mut self) {}
}

/// The open streams of a connection, by number.
pub type Streams = HashMap<u32, Stream, BuildHasherDefault<NumberHasher>>;

/// Spreads stream numbers. The standard hasher would take longer than the rest of the lookup; the
/// numbers are the peer's choice, but they must rise, and a peer can slow down only itself.
#[derive(Default)]
pub struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn write(&mut self, _: &[u8]) {
        unreachable!("stream numbers are hashed as u32");
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        let mixed = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
