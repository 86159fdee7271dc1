//! The bytes a connection wants to send, kept in pieces for `writev`.
//!
//! Small writes (frame headers, header blocks, short messages) collect in one growing tail, so
//! that many small frames leave as one piece. Big payloads are appended as shared `Bytes` and never
//! copied: a 1 MiB value goes from the store to the socket as it is.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::{Buf, Bytes, BytesMut};

/// Payloads of at least this many bytes are shared, smaller ones are copied: below about 2 KiB a
/// copy is cheaper than one more entry in `writev` and one more reference to count.
pub const SHARE_BYTES_MIN: usize = 2048;

/// Once the tail has this many bytes it becomes a piece of its own, so that it can be freed as
/// soon as it is sent.
const TAIL_BYTES_MAX: usize = 64 * 1024;

/// The largest tail kept while there is nothing to send.
const TAIL_BYTES_KEPT: usize = 16 * 1024;

/// A queue of bytes to send.
#[derive(Default)]
pub struct Output {
    pieces: VecDeque<Bytes>,
    tail: BytesMut,
    len: usize,
}

impl Output {
    pub fn new() -> Output {
        Output::default()
    }

    /// Bytes waiting to be sent.
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds the waiting bytes to `out`, in order, for one `writev`.
    pub fn io_slices<'a>(&'a self, out: &mut Vec<IoSlice<'a>>) {
        out.extend(self.pieces.iter().map(|piece| IoSlice::new(piece)));
        if !self.tail.is_empty() {
            out.push(IoSlice::new(&self.tail));
        }
    }

    /// The first contiguous run of waiting bytes; empty only if nothing waits. For a TLS layer,
    /// which takes one slice at a time.
    pub fn chunk(&self) -> &[u8] {
        self.pieces.front().map_or(&self.tail, |piece| piece)
    }

    /// Forgets the first `n` bytes: they were sent.
    pub fn advance(&mut self, mut n: usize) {
        assert!(n <= self.len, "more bytes were sent than were queued");
        self.len -= n;
        while n > 0 {
            let Some(front) = self.pieces.front_mut() else {
                // The usual case: everything fitted into the tail and was sent whole. Clearing
                // keeps the allocation for the next answers, unless a burst made it large: a
                // thousand idle connections must not hold a thousand bursts.
                if n == self.tail.len() {
                    if self.tail.capacity() > TAIL_BYTES_KEPT {
                        self.tail = BytesMut::new();
                    } else {
                        self.tail.clear();
                    }
                } else {
                    self.tail.advance(n);
                }
                return;
            };
            if n < front.len() {
                front.advance(n);
                return;
            }
            n -= front.len();
            self.pieces.pop_front();
        }
    }

    /// Appends a copy of `bytes`.
    #[inline]
    pub fn put_slice(&mut self, bytes: &[u8]) {
        if self.tail.len() >= TAIL_BYTES_MAX {
            self.seal_tail();
        }
        self.tail.extend_from_slice(bytes);
        self.len += bytes.len();
    }

    /// Appends `bytes`, shared if they are big enough for that to pay.
    pub fn put(&mut self, bytes: &Bytes) {
        if bytes.len() < SHARE_BYTES_MIN {
            self.put_slice(bytes);
        } else {
            self.put_owned(bytes.clone());
        }
    }

    /// As `put`, for a caller that does not need its handle any more.
    pub fn put_owned(&mut self, bytes: Bytes) {
        if bytes.len() < SHARE_BYTES_MIN {
            self.put_slice(&bytes);
            return;
        }
        self.seal_tail();
        self.len += bytes.len();
        self.pieces.push_back(bytes);
    }

    fn seal_tail(&mut self) {
        if !self.tail.is_empty() {
            self.pieces.push_back(self.tail.split().freeze());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slices(output: &Output) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        output.io_slices(&mut out);
        out.iter().map(|slice| slice.to_vec()).collect()
    }

    #[test]
    fn small_writes_coalesce() {
        let mut output = Output::new();
        output.put_slice(b"ab");
        output.put(&Bytes::from_static(b"cd"));
        assert_eq!(slices(&output), vec![b"abcd".to_vec()]);
        assert_eq!(output.len(), 4);
    }

    #[test]
    fn big_payloads_are_shared_and_keep_their_place() {
        let big = Bytes::from(vec![7; SHARE_BYTES_MIN]);
        let mut output = Output::new();
        output.put_slice(b"head");
        output.put(&big);
        output.put_slice(b"tail");
        assert_eq!(slices(&output), vec![b"head".to_vec(), big.to_vec(), b"tail".to_vec()]);
        assert!(std::ptr::eq(output.pieces[1].as_ptr(), big.as_ptr()), "the payload was copied");
    }

    #[test]
    fn a_burst_is_not_held_when_it_is_over() {
        let mut output = Output::new();
        output.put_slice(&[0; TAIL_BYTES_KEPT + 1]);
        output.advance(TAIL_BYTES_KEPT + 1);
        assert_eq!(output.tail.capacity(), 0);
        output.put_slice(&[0; 100]);
        output.advance(100);
        assert!(output.tail.capacity() >= 100, "an ordinary tail is kept");
    }

    #[test]
    fn advance_stops_anywhere() {
        let all = {
            let mut all = b"head".to_vec();
            all.extend(vec![7; SHARE_BYTES_MIN]);
            all.extend(b"tail");
            all
        };
        for at in 0..=all.len() {
            let mut output = Output::new();
            output.put_slice(b"head");
            output.put_owned(Bytes::from(vec![7; SHARE_BYTES_MIN]));
            output.put_slice(b"tail");
            output.advance(at);
            assert_eq!(slices(&output).concat(), all[at..]);
            assert_eq!(output.len(), all.len() - at);
            assert_eq!(output.chunk().is_empty(), output.is_empty());
        }
    }
}
