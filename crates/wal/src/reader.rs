//! Reads one segment, record by record, and judges what is not a record.
//!
//! A crash may keep any of the sectors that were not yet synced from the disk, in any order, but
//! never half of one. Before they are written they hold zeros. So at the end of the log stands one of:
//!
//! - a length field of zero with nothing behind it in its sector: the end. What stands in later
//!   sectors was never synced, or the sector in between would be there;
//! - a record with a part, bounded by sectors, that is all zeros, or one that runs beyond the end of
//!   the file: a *torn* write, which was never acknowledged and may be cut off;
//! - anything else that does not check is *damage*: its sectors all reached the disk and no longer
//!   hold what was written. Cutting there would forget what may have been acknowledged.
//!
//! A length that is wrong would spoil this judgement, for then the record's end is unknown. It stands
//! in the length field and again in the record's first bytes, so a flipped bit in either shows.
//!
//! "Good records follow" cannot tell the two apart, for sectors land in any order. What no reader of
//! this format can tell from a torn write is a whole sector that the disk zeroed.

use crate::record::{self, Kind, LENGTH_BYTES};
use disk::File;
use std::io;
use std::sync::Arc;

const SECTOR_BYTES: u64 = 512;
const WINDOW_BYTES: u64 = 256 * 1024;

pub struct Reader {
    file: Arc<dyn File>,
    len: u64,
    /// Where the next frame begins: all before it is good.
    pub offset: u64,
    /// The running checksum up to `offset`.
    pub crc: u32,
    window: Vec<u8>,
    window_start: u64,
}

pub enum Step<'a> {
    Record(Kind, &'a [u8]),
    End,
    Torn(&'static str),
    Damaged(&'static str),
}

impl Reader {
    pub fn new(file: Arc<dyn File>, offset: u64, crc: u32) -> io::Result<Reader> {
        let len = file.len()?;
        Ok(Reader { file, len, offset, crc, window: Vec::new(), window_start: 0 })
    }

    /// The next record. Anything but a record leaves the reader where it is.
    pub fn step(&mut self) -> io::Result<Step<'_>> {
        let rest = self.len.saturating_sub(self.offset);
        if rest < LENGTH_BYTES {
            return Ok(Step::End);
        }
        let field = self.bytes(self.offset, LENGTH_BYTES)?;
        let field = u64::from_le_bytes(field.try_into().expect("eight bytes were asked for"));
        if field == 0 {
            return self.end_or_damage();
        }
        let Some(len) = record::record_len(field) else {
            return Ok(Step::Damaged("a length field that no writer writes"));
        };
        let start = self.offset + LENGTH_BYTES;
        let whole = len <= rest - LENGTH_BYTES;
        let present = len.min(rest - LENGTH_BYTES);

        // The first fields of a record state its length once more. If both are there and disagree,
        // one of them is wrong, and how much of what follows belongs to the record is unknown.
        let own = self.len_by_own_account(start, present)?;
        if own.is_some_and(|own| own != len) {
            return Ok(Step::Damaged("a record whose two lengths differ"));
        }
        if !whole {
            return Ok(Step::Torn("a record beyond the end of the file"));
        }

        let crc = self.crc;
        let bytes = self.bytes(start, len)?;
        let verdict = match record::decode(bytes) {
            Ok(record) if record.kind == Kind::Checksum => {
                // A reader that begins in the middle has nothing to compare with.
                if crc == 0 || crc == record.crc {
                    Ok(record.crc)
                } else {
                    Err("a checksum that does not continue the one before")
                }
            }
            Ok(record) => match crc32c::crc32c_append(crc, record.data) {
                crc if crc == record.crc => Ok(crc),
                _ => Err("a record that fails its checksum"),
            },
            Err(_) => Err("a record that cannot be decoded"),
        };
        match verdict {
            Ok(crc) => {
                self.offset = start + len + record::padding(len);
                self.crc = crc;
                let record = record::decode(self.bytes(start, len)?).expect("decoded a moment ago");
                Ok(Step::Record(record.kind, record.data))
            }
            Err(what) if has_empty_sector(bytes, start) => Ok(Step::Torn(what)),
            Err(what) => Ok(Step::Damaged(what)),
        }
    }

    fn len_by_own_account(&mut self, start: u64, present: u64) -> io::Result<Option<u64>> {
        let in_sector = SECTOR_BYTES - start % SECTOR_BYTES;
        let mut stated = present.min(32);
        if stated > in_sector {
            // The statement continues in the next sector, which may be one that never landed.
            let next = SECTOR_BYTES.min(self.len - start - in_sector);
            if self.bytes(start + in_sector, next)?.iter().all(|&byte| byte == 0) {
                stated = in_sector;
            }
        }
        Ok(record::len_by_own_account(self.bytes(start, stated)?))
    }

    fn end_or_damage(&mut self) -> io::Result<Step<'_>> {
        let sector_end = (self.offset / SECTOR_BYTES + 1) * SECTOR_BYTES;
        let rest = self.bytes(self.offset, sector_end.min(self.len) - self.offset)?;
        if rest.iter().all(|&byte| byte == 0) {
            return Ok(Step::End);
        }
        // A sector lands whole: with the bytes behind it, the length field landed too.
        Ok(Step::Damaged("an empty length field with data behind it"))
    }

    /// Bytes that must be within the file. The window grows to the largest record met, no further.
    fn bytes(&mut self, offset: u64, len: u64) -> io::Result<&[u8]> {
        let held = self.window_start..self.window_start + self.window.len() as u64;
        if offset < held.start || offset + len > held.end {
            let wanted = len.max(WINDOW_BYTES).min(self.len - offset);
            self.window.resize(wanted as usize, 0);
            self.window_start = offset;
            let read = self.file.read_exact_at(&mut self.window, offset);
            if read.is_err() {
                self.window.clear();
            }
            read?;
        }
        let at = (offset - self.window_start) as usize;
        Ok(&self.window[at..at + len as usize])
    }
}

/// Whether a part of these bytes, as the file's sectors divide them, is all zeros.
fn has_empty_sector(bytes: &[u8], offset: u64) -> bool {
    let first = (SECTOR_BYTES - offset % SECTOR_BYTES).min(bytes.len() as u64) as usize;
    let (first, rest) = bytes.split_at(first);
    let empty = |part: &[u8]| part.iter().all(|&byte| byte == 0);
    empty(first) || rest.chunks(SECTOR_BYTES as usize).any(empty)
}
