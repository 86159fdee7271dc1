//! The body of a request, in the pieces it comes in.

use bytes::{Buf, Bytes, BytesMut};

use super::head::Length;
use super::{Closed, Limits};

/// How much of a body has been read.
pub struct Body {
    state: State,
    /// Bytes the body may still have.
    allowed: u64,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// Bytes still missing of a body of fixed length.
    Fixed(u64),
    /// At the line with a chunk's length.
    ChunkSize,
    /// Bytes still missing of a chunk.
    Chunk(u64),
    /// At the line end after a chunk.
    ChunkEnd,
    /// Among the trailers; so many bytes of them were read.
    Trailers(usize),
    Done,
}

/// A chunk's length line is a number and perhaps extensions, which nobody uses.
const SIZE_LINE_BYTES_MAX: usize = 256;

impl Body {
    pub fn new(length: Length, limits: &Limits) -> Result<Body, Closed> {
        let allowed = limits.body_bytes_max;
        let state = match length {
            Length::Fixed(0) => State::Done,
            Length::Fixed(length) if length > allowed => return Err(TOO_LARGE),
            Length::Fixed(length) => State::Fixed(length),
            Length::Chunked => State::ChunkSize,
        };
        Ok(Body { state, allowed })
    }

    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// Takes the next piece off `input`; `None` if more input is needed or the body is done.
    pub fn next(&mut self, input: &mut BytesMut, limits: &Limits) -> Result<Option<Bytes>, Closed> {
        loop {
            match self.state {
                State::Done => return Ok(None),
                State::Fixed(missing) => {
                    let piece = take_up_to(input, missing);
                    let missing = missing - piece.len() as u64;
                    self.state = if missing == 0 { State::Done } else { State::Fixed(missing) };
                    return Ok(Some(piece).filter(|piece| !piece.is_empty()));
                }
                State::ChunkSize => {
                    let Some(line) = take_line(input, SIZE_LINE_BYTES_MAX)? else {
                        return Ok(None);
                    };
                    let length = chunk_size(&line)?;
                    if length > self.allowed {
                        return Err(TOO_LARGE);
                    }
                    self.allowed -= length;
                    self.state =
                        if length == 0 { State::Trailers(0) } else { State::Chunk(length) };
                }
                State::Chunk(missing) => {
                    let piece = take_up_to(input, missing);
                    let missing = missing - piece.len() as u64;
                    self.state = if missing == 0 { State::ChunkEnd } else { State::Chunk(missing) };
                    return Ok(Some(piece).filter(|piece| !piece.is_empty()));
                }
                State::ChunkEnd => {
                    let Some(line) = take_line(input, 2)? else { return Ok(None) };
                    if !line.is_empty() {
                        return Err(MALFORMED);
                    }
                    self.state = State::ChunkSize;
                }
                State::Trailers(read) => {
                    let left = limits.head_bytes_max.saturating_sub(read);
                    let Some(line) = take_line(input, left)? else { return Ok(None) };
                    // Trailers mean nothing to any of our requests.
                    self.state = if line.is_empty() {
                        State::Done
                    } else {
                        State::Trailers(read + line.len() + 2)
                    };
                }
            }
        }
    }
}

const TOO_LARGE: Closed = Closed { status: 413, reason: "the request's body is too large" };
const MALFORMED: Closed = Closed { status: 400, reason: "the chunks of the body are malformed" };

fn take_up_to(input: &mut BytesMut, most: u64) -> Bytes {
    let length = usize::try_from(most).unwrap_or(usize::MAX).min(input.len());
    input.split_to(length).freeze()
}

/// Takes a line off `input`, without its end. A lone line feed is not a line end here: accepting
/// it is one more way for two readers to disagree.
fn take_line(input: &mut BytesMut, bytes_max: usize) -> Result<Option<BytesMut>, Closed> {
    let visible = &input[..input.len().min(bytes_max)];
    let Some(end) = visible.iter().position(|&byte| byte == b'\n') else {
        return if input.len() >= bytes_max { Err(MALFORMED) } else { Ok(None) };
    };
    let mut line = input.split_to(end + 1);
    line.truncate(end);
    if line.last() != Some(&b'\r') {
        return Err(MALFORMED);
    }
    line.truncate(end - 1);
    Ok(Some(line))
}

fn chunk_size(line: &[u8]) -> Result<u64, Closed> {
    let mut digits = line.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii_end();
    if digits.is_empty() || digits.len() > 15 {
        return Err(MALFORMED);
    }
    let mut size = 0;
    while digits.has_remaining() {
        let Some(digit) = (digits.get_u8() as char).to_digit(16) else { return Err(MALFORMED) };
        size = size * 16 + u64::from(digit);
    }
    Ok(size)
}
