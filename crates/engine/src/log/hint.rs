//! Hint files: everything of a sealed segment's rows but the values.
//!
//! A restart reads these instead of the segments. A hint is a copy: if it is missing, stale or
//! damaged, the segment is read instead and the hint is written again.
//!
//! ```text
//! header (52 bytes): magic "ALTHHNT1" | sequence | last sequence | generation | segment's length
//!                    | number of rows | CRC-32C of all before
//! block: length (4 bytes) | CRC-32C, continued from the block before | rows
//! row:   kind (1 row, 2 tombstone) | main, as difference | sub | offset, as difference
//!        | KeyValue length | CRC-32C (4 bytes) | key length | key | create revision | version | lease
//! ```
//! The numbers of a row are varints.

use super::record::{SegmentHeader, u32_at, u64_at};
use super::segment::{Entry, hint_name};
use crate::kv::{self, Head, put_varint, varint};
use crate::{Revision, RowSum};
use disk::{Disk, File, Open};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const MAGIC: &[u8; 8] = b"ALTHHNT1";
const HEADER_BYTES: usize = 52;
const BLOCK_BYTES: usize = 64 << 10;
/// A block ends with the row that fills it; no key is longer than this.
const BLOCK_BYTES_MAX: u64 = 1 << 30;

/// Writes a hint, row by row, under a temporary name.
pub(crate) struct Writer {
    file: Arc<dyn File>,
    tmp: PathBuf,
    path: PathBuf,
    offset: u64,
    block: Vec<u8>,
    crc: u32,
    rows: u64,
    before: Before,
}

/// What the next row's numbers are counted from.
#[derive(Default)]
struct Before {
    main: i64,
    offset: u32,
}

impl Writer {
    pub fn create(disk: &dyn Disk, dir: &Path, seq: u64) -> io::Result<Writer> {
        let path = dir.join(hint_name(seq));
        let tmp = dir.join(format!("{}.tmp", hint_name(seq)));
        let file = disk.open(&tmp, Open::Create)?;
        file.set_len(0)?;
        Ok(Writer {
            file,
            tmp,
            path,
            offset: HEADER_BYTES as u64,
            block: Vec::with_capacity(BLOCK_BYTES + 4096),
            crc: 0,
            rows: 0,
            before: Before::default(),
        })
    }

    /// Takes in a row; `encoded` is its `KeyValue`.
    pub fn push(&mut self, entry: &Entry, encoded: &[u8]) {
        // The engine takes any bytes for a `KeyValue`; what is none has an empty head.
        let head = kv::head(encoded).unwrap_or_default();
        let Revision { main, sub } = entry.revision();
        let out = &mut self.block;
        out.push(if entry.tombstone() { 2 } else { 1 });
        put_varint(out, main.wrapping_sub(self.before.main) as u64);
        put_varint(out, sub as u64);
        put_varint(out, u64::from(entry.offset - self.before.offset));
        put_varint(out, entry.kv_bytes() as u64);
        out.extend_from_slice(&entry.crc.to_le_bytes());
        put_varint(out, head.key.len() as u64);
        out.extend_from_slice(head.key);
        for number in [head.create_revision, head.version, head.lease] {
            put_varint(out, number as u64);
        }
        self.before = Before { main, offset: entry.offset };
        self.rows += 1;
    }

    /// Time to `flush`.
    pub fn is_full(&self) -> bool {
        self.block.len() >= BLOCK_BYTES
    }

    /// Writes the rows taken in. If that fails it can be repeated.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        let crc = crc32c::crc32c_append(self.crc, &self.block);
        let mut out = (self.block.len() as u32).to_le_bytes().to_vec();
        out.extend_from_slice(&crc.to_le_bytes());
        out.extend_from_slice(&self.block);
        self.file.write_at(&out, self.offset)?;
        self.offset += out.len() as u64;
        self.crc = crc;
        self.block.clear();
        Ok(())
    }

    /// Completes the file under its temporary name; `sync` and `publish` follow. If it fails it can
    /// be repeated.
    pub fn finish(&mut self, header: &SegmentHeader, segment_bytes: u64) -> io::Result<()> {
        self.flush()?;
        let mut out = MAGIC.to_vec();
        let SegmentHeader { seq, last_seq, generation, .. } = *header;
        for number in [seq, last_seq, generation, segment_bytes, self.rows] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&crc32c::crc32c(&out).to_le_bytes());
        self.file.write_at(&out, 0)
    }

    pub fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn publish(&self, disk: &dyn Disk) -> io::Result<()> {
        disk.rename(&self.tmp, &self.path)
    }

    /// Removes the unfinished file.
    pub fn discard(&self, disk: &dyn Disk) {
        let _ = disk.remove(&self.tmp);
    }
}

/// Reads a hint that fits its segment.
pub(crate) struct Reader {
    file: Arc<dyn File>,
    offset: u64,
    end: u64,
    block: Vec<u8>,
    at: usize,
    crc: u32,
    rows_left: u64,
    segment_bytes: u64,
    before: Before,
}

/// The hint is damaged. That is no error: the segment tells the same.
#[derive(Debug)]
pub(crate) struct Unusable;

impl Reader {
    /// `None`: there is no hint, or it is damaged or stale.
    pub fn open(
        disk: &dyn Disk,
        dir: &Path,
        segment: &SegmentHeader,
        segment_bytes: u64,
    ) -> Option<Reader> {
        let file = disk.open(&dir.join(hint_name(segment.seq)), Open::Read).ok()?;
        let end = file.len().ok()?;
        let mut header = [0; HEADER_BYTES];
        file.read_exact_at(&mut header, 0).ok()?;
        let good = header[..8] == *MAGIC
            && u32_at(&header, 48) == crc32c::crc32c(&header[..48])
            && u64_at(&header, 8) == segment.seq
            && u64_at(&header, 16) == segment.last_seq
            && u64_at(&header, 24) == segment.generation
            && u64_at(&header, 32) == segment_bytes;
        good.then(|| Reader {
            file,
            offset: HEADER_BYTES as u64,
            end,
            block: Vec::new(),
            at: 0,
            crc: 0,
            rows_left: u64_at(&header, 40),
            segment_bytes,
            before: Before::default(),
        })
    }

    /// The next row; `Ok(None)` at the end of a whole hint.
    pub fn next(&mut self) -> Result<Option<(Entry, Head<'_>)>, Unusable> {
        if self.rows_left == 0 {
            let whole = self.at == self.block.len() && self.offset == self.end;
            return if whole { Ok(None) } else { Err(Unusable) };
        }
        if self.at == self.block.len() {
            self.next_block().ok_or(Unusable)?;
        }
        self.rows_left -= 1;
        self.row().map(Some).ok_or(Unusable)
    }

    fn row(&mut self) -> Option<(Entry, Head<'_>)> {
        let input = &mut &self.block[self.at..];
        let left_before = input.len();
        let tombstone = byte(input)? == 2;
        let main = self.before.main.wrapping_add(varint(input)? as i64);
        let sub = i64::from(u32::try_from(varint(input)?).ok()?);
        let offset = u64::from(self.before.offset).checked_add(varint(input)?)?;
        let kv_bytes = u32::try_from(varint(input)?).ok().filter(|bytes| *bytes < 1 << 31)?;
        let crc = u32_at(input.split_off(..4)?, 0);
        let key_bytes = usize::try_from(varint(input)?).ok()?;
        let key_at = self.at + left_before - input.len();
        input.split_off(..key_bytes)?;
        let create_revision = varint(input)? as i64;
        let version = varint(input)? as i64;
        let lease = varint(input)? as i64;
        if offset + u64::from(kv_bytes) > self.segment_bytes {
            return None;
        }
        self.at += left_before - input.len();
        self.before = Before { main, offset: u32::try_from(offset).ok()? };
        let sum = RowSum { revision: Revision::new(main, sub), tombstone, kv_bytes, crc };
        let key = &self.block[key_at..key_at + key_bytes];
        let head = Head { key, create_revision, version, lease };
        Some((Entry::new(sum, offset), head))
    }

    fn next_block(&mut self) -> Option<()> {
        let mut frame = [0; 8];
        self.file.read_exact_at(&mut frame, self.offset).ok()?;
        let bytes = u64::from(u32_at(&frame, 0));
        let start = self.offset + 8;
        if bytes == 0 || bytes > BLOCK_BYTES_MAX || start + bytes > self.end {
            return None;
        }
        self.block.resize(bytes as usize, 0);
        self.file.read_exact_at(&mut self.block, start).ok()?;
        self.crc = crc32c::crc32c_append(self.crc, &self.block);
        self.offset = start + bytes;
        self.at = 0;
        (self.crc == u32_at(&frame, 4)).then_some(())
    }
}

fn byte(input: &mut &[u8]) -> Option<u8> {
    let (&byte, rest) = input.split_first()?;
    *input = rest;
    Some(byte)
}
