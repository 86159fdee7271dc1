//! Reading a segment from front to back, trusting nothing.

use super::record::{HEADER_BYTES, Header};
use disk::File;
use std::io;

/// Reads record after record. A length is followed only if its header is good and the file is long
/// enough for it.
pub(crate) struct Scan<'a> {
    file: &'a dyn File,
    seq: u64,
    offset: u64,
    end: u64,
    window: Window,
}

pub(crate) enum Step<'a> {
    Record {
        offset: u64,
        header: Header,
        payload: &'a [u8],
    },
    /// What is at the offset is not a good record.
    Bad {
        offset: u64,
        what: &'static str,
    },
    End,
}

/// A piece of a file in memory.
#[derive(Default)]
pub(crate) struct Window {
    start: u64,
    bytes: Vec<u8>,
}

const WINDOW_BYTES: usize = 1 << 20;

impl<'a> Scan<'a> {
    /// Scans the records of segment `seq` that stand between two offsets.
    pub fn new(file: &'a dyn File, seq: u64, offset: u64, end: u64) -> Scan<'a> {
        Scan { file, seq, offset, end, window: Window::default() }
    }

    pub fn next(&mut self) -> io::Result<Step<'_>> {
        let offset = self.offset;
        let left = self.end - offset;
        if left == 0 {
            return Ok(Step::End);
        }
        if left < HEADER_BYTES as u64 {
            return Ok(Step::Bad { offset, what: "half a header" });
        }
        let header = self.window.get(self.file, offset, HEADER_BYTES, self.end)?;
        let Some(header) = Header::decode(header, self.seq, offset) else {
            return Ok(Step::Bad { offset, what: "the header does not match its checksum" });
        };
        if left - (HEADER_BYTES as u64) < u64::from(header.payload_bytes) {
            return Ok(Step::Bad { offset, what: "the file ends within the record" });
        }
        let payload_bytes = header.payload_bytes as usize;
        let start = offset + HEADER_BYTES as u64;
        let payload = self.window.get(self.file, start, payload_bytes, self.end)?;
        if !header.fits(payload) {
            return Ok(Step::Bad { offset, what: "the content does not match its checksum" });
        }
        self.offset = start + payload_bytes as u64;
        Ok(Step::Record { offset, header, payload })
    }
}

impl Window {
    /// The bytes at an offset; the caller has checked that the file has them.
    pub fn get(
        &mut self,
        file: &dyn File,
        offset: u64,
        bytes: usize,
        end: u64,
    ) -> io::Result<&[u8]> {
        let held = self.start..self.start + self.bytes.len() as u64;
        if offset < held.start || offset + bytes as u64 > held.end {
            let fill = (end - offset).min(WINDOW_BYTES.max(bytes) as u64) as usize;
            self.bytes.resize(fill, 0);
            self.start = offset;
            file.read_exact_at(&mut self.bytes, offset)?;
        }
        let at = (offset - self.start) as usize;
        Ok(&self.bytes[at..at + bytes])
    }
}
