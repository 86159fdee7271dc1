//! A segment as it stands in memory: where each row is, and which rows are dead.
//!
//! A row costs 24 bytes here, in arrays sorted by revision; there is no second map. The arrays are
//! shared with snapshots and copied only where the writer changes what a snapshot still holds: at
//! most one block of [`BLOCK_ROWS`] rows, or one bit per row of a segment.

use super::record;
use crate::{Revision, RowSum};
use bytes::Bytes;
use disk::File;
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

/// Where a row is, and its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    main: i64,
    sub: u32,
    /// Of the record's header, in its segment.
    pub offset: u32,
    /// Length of the `KeyValue` encoding; the top bit marks a tombstone.
    length: u32,
    pub crc: u32,
}

const TOMBSTONE_BIT: u32 = 1 << 31;
const BLOCK_ROWS: usize = 4096;

/// The rows of a segment in revision order. All blocks but the last are full.
#[derive(Clone, Default)]
pub(crate) struct Rows {
    blocks: Vec<Arc<Vec<Entry>>>,
}

/// One bit for each row of a segment that was forgotten.
#[derive(Clone, Default)]
pub(crate) struct Dead {
    words: Vec<u64>,
}

/// What a reader needs of a segment, and a snapshot keeps of it. Holding it keeps the file readable,
/// even after collection has replaced it.
#[derive(Clone)]
pub(crate) struct View {
    pub seq: u64,
    pub generation: u64,
    /// Set once the segment has been created on disk.
    pub file: Arc<OnceLock<Arc<dyn File>>>,
    pub rows: Arc<Rows>,
    pub dead: Arc<Dead>,
    /// No row of this or an earlier segment is newer.
    pub newest: Revision,
}

/// One segment of the log.
pub(crate) struct Segment {
    pub view: View,
    /// The last place in the sequence that it covers.
    pub last_seq: u64,
    /// The bytes it began with: its header and a checkpoint.
    pub head_bytes: u64,
    /// The bytes of all its records, of the unwritten ones too.
    pub bytes: u64,
    pub live_row_bytes: u64,
    pub dead_rows: usize,
    /// How many of its rows are in the file; `recent` holds the others.
    pub written_rows: usize,
    pub recent: VecDeque<Bytes>,
    /// Complete on disk, and a younger segment follows.
    pub sealed: bool,
    pub hinted: bool,
}

impl Entry {
    pub fn new(sum: RowSum, offset: u64) -> Entry {
        assert!(sum.kv_bytes < TOMBSTONE_BIT, "a KeyValue is below 2 GiB");
        Entry {
            main: sum.revision.main,
            sub: u32::try_from(sum.revision.sub).expect("a transaction has fewer changes"),
            offset: u32::try_from(offset).expect("a segment is cut long before 4 GiB"),
            length: sum.kv_bytes | if sum.tombstone { TOMBSTONE_BIT } else { 0 },
            crc: sum.crc,
        }
    }

    pub fn revision(&self) -> Revision {
        Revision::new(self.main, i64::from(self.sub))
    }

    pub fn tombstone(&self) -> bool {
        self.length & TOMBSTONE_BIT != 0
    }

    pub fn kv_bytes(&self) -> usize {
        (self.length & !TOMBSTONE_BIT) as usize
    }

    pub fn record_bytes(&self) -> u64 {
        record::row_bytes(self.kv_bytes())
    }

    pub fn sum(&self) -> RowSum {
        RowSum {
            revision: self.revision(),
            tombstone: self.tombstone(),
            kv_bytes: self.kv_bytes() as u32,
            crc: self.crc,
        }
    }
}

impl Rows {
    pub fn len(&self) -> usize {
        match self.blocks.split_last() {
            Some((last, full)) => full.len() * BLOCK_ROWS + last.len(),
            None => 0,
        }
    }

    pub fn push(&mut self, entry: Entry) {
        match self.blocks.last_mut() {
            Some(last) if last.len() < BLOCK_ROWS => Arc::make_mut(last).push(entry),
            _ => self.blocks.push(Arc::new(vec![entry])),
        }
    }

    pub fn get(&self, position: usize) -> Option<&Entry> {
        self.blocks.get(position / BLOCK_ROWS)?.get(position % BLOCK_ROWS)
    }

    /// The position of the row at `revision`.
    pub fn find(&self, revision: Revision) -> Option<usize> {
        let (first, last) = (self.blocks.first()?.first()?, self.blocks.last()?.last()?);
        if revision < first.revision() || revision > last.revision() {
            return None;
        }
        // Where every revision has one row, and none was collected, this is the place: one look into
        // memory that is in no cache, instead of a dozen.
        let (ahead, span) = (revision.main - first.main, last.main - first.main);
        let guess = (ahead as u128 * (self.len() - 1) as u128 / span.max(1) as u128) as usize;
        if self.get(guess).is_some_and(|entry| entry.revision() == revision) {
            return Some(guess);
        }
        let position = self.position(revision);
        self.get(position).filter(|entry| entry.revision() == revision).map(|_| position)
    }

    /// The position of the first row at or after `revision`.
    pub fn position(&self, revision: Revision) -> usize {
        let block = self.blocks.partition_point(|block| block[0].revision() <= revision);
        let block = block.saturating_sub(1);
        let Some(rows) = self.blocks.get(block) else { return 0 };
        block * BLOCK_ROWS + rows.partition_point(|entry| entry.revision() < revision)
    }
}

impl Dead {
    pub fn contains(&self, position: usize) -> bool {
        self.words.get(position / 64).is_some_and(|word| word >> (position % 64) & 1 != 0)
    }

    /// Marks a row; `false` if it was marked already.
    pub fn insert(&mut self, position: usize) -> bool {
        let word = position / 64;
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        let bit = 1 << (position % 64);
        let fresh = self.words[word] & bit == 0;
        self.words[word] |= bit;
        fresh
    }

    /// The positions marked here and not in `before`.
    pub fn since<'a>(&'a self, before: &'a Dead) -> impl Iterator<Item = usize> + 'a {
        self.words.iter().enumerate().flat_map(|(i, &word)| {
            let fresh = word & !before.words.get(i).copied().unwrap_or(0);
            (0..64).filter(move |bit| fresh >> bit & 1 != 0).map(move |bit| i * 64 + bit)
        })
    }
}

impl View {
    /// The position of a row that lives; `None` if there is none or it was forgotten.
    pub fn find(&self, revision: Revision) -> Option<usize> {
        self.rows.find(revision).filter(|&position| !self.dead.contains(position))
    }

    /// The rows at or after `from` that live, with their positions.
    pub fn live(&self, from: Revision) -> impl Iterator<Item = (usize, &Entry)> {
        let positions = self.rows.position(from)..self.rows.len();
        positions
            .filter(|&position| !self.dead.contains(position))
            .map(|position| (position, self.rows.get(position).expect("a position in range")))
    }

    /// The open file of a segment of which something has been written.
    pub fn written_file(&self) -> &Arc<dyn File> {
        self.file.get().expect("a row that is not in memory is in a file")
    }
}

impl Segment {
    /// A segment that holds nothing yet; it follows one whose newest row is `newest`.
    pub fn new(seq: u64, newest: Revision, head_bytes: u64) -> Segment {
        Segment {
            view: View {
                seq,
                generation: 0,
                file: Arc::default(),
                rows: Arc::default(),
                dead: Arc::default(),
                newest,
            },
            last_seq: seq,
            head_bytes,
            bytes: head_bytes,
            live_row_bytes: 0,
            dead_rows: 0,
            written_rows: 0,
            recent: VecDeque::new(),
            sealed: false,
            hinted: false,
        }
    }

    /// Takes in a row that is not written yet.
    pub fn append(&mut self, sum: RowSum, kv: Bytes) {
        let entry = Entry::new(sum, self.bytes);
        self.bytes += entry.record_bytes();
        self.add(entry);
        self.recent.push_back(kv);
    }

    /// Takes in a row that is in the file.
    pub fn add_written(&mut self, entry: Entry) {
        self.add(entry);
        self.written_rows += 1;
    }

    fn add(&mut self, entry: Entry) {
        self.live_row_bytes += entry.record_bytes();
        self.view.newest = entry.revision();
        Arc::make_mut(&mut self.view.rows).push(entry);
    }

    /// Marks a row as dead, if it is here and lives.
    pub fn forget(&mut self, revision: Revision) {
        let Some(position) = self.view.find(revision) else { return };
        let entry = self.view.rows.get(position).expect("a position just found");
        self.live_row_bytes -= entry.record_bytes();
        self.dead_rows += 1;
        Arc::make_mut(&mut self.view.dead).insert(position);
    }

    /// The row's bytes, while they are not in the file yet.
    pub fn recent(&self, position: usize) -> Option<&Bytes> {
        self.recent.get(position.checked_sub(self.written_rows)?)
    }
}

/// The file name of a segment.
pub(crate) fn segment_name(seq: u64) -> String {
    format!("{seq:016x}.seg")
}

/// The file name of a segment's hint.
pub(crate) fn hint_name(seq: u64) -> String {
    format!("{seq:016x}.hint")
}

/// The sequence number in a file name with the given ending.
pub(crate) fn seq_in(name: &str, ending: &str) -> Option<u64> {
    let digits = name.strip_suffix(ending)?;
    (digits.len() == 16).then(|| u64::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(main: i64) -> Entry {
        let revision = Revision::new(main, 0);
        Entry::new(RowSum { revision, tombstone: false, kv_bytes: 9, crc: 0 }, 0)
    }

    #[test]
    fn a_row_costs_24_bytes() {
        assert_eq!(size_of::<Entry>(), 24);
    }

    #[test]
    fn positions_are_found_across_blocks() {
        let mut rows = Rows::default();
        assert_eq!(rows.position(Revision::new(5, 0)), 0);
        let count = BLOCK_ROWS as i64 * 2 + 10;
        (0..count).for_each(|i| rows.push(entry(i * 2)));
        assert_eq!(rows.len() as i64, count);
        for i in [0, 1, 4094, 4095, 4096, 4097, 8191, 8192, count - 1] {
            assert_eq!(rows.position(Revision::new(i * 2, 0)) as i64, i);
            assert_eq!(rows.position(Revision::new(i * 2 - 1, 0)) as i64, i);
            assert_eq!(rows.position(Revision::new(i * 2, 1)) as i64, i + 1);
            assert_eq!(rows.find(Revision::new(i * 2, 0)), Some(i as usize));
            assert_eq!(rows.find(Revision::new(i * 2 + 1, 0)), None);
        }
    }

    #[test]
    fn the_dead_since_a_moment_are_found() {
        let mut dead = Dead::default();
        dead.insert(3);
        let before = dead.clone();
        assert!(!dead.insert(3));
        assert!(dead.insert(64) && dead.insert(200));
        assert_eq!(dead.since(&before).collect::<Vec<_>>(), [64, 200]);
    }
}
