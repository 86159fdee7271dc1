//! The log in memory: the newest entries, and four marks in it.
//!
//! ```text
//!  start            applied      commit            persisted   handed out     last
//!    |  in memory from here on                                 to be persisted
//! ```
//!
//! `applied <= applying <= commit`, and `applying <= persisted`; `commit` and `persisted` may pass
//! each other. What is applied and persisted may leave memory: whoever needs it reads it back from
//! disk.

use raftpb::{Entry, EntryKind};
use std::collections::VecDeque;

pub struct Log {
    /// Index and term of the entry in front of the first one in memory.
    start: (u64, u64),
    entries: VecDeque<Entry>,
    bytes: usize,
    bytes_max: usize,
    /// Of the entries behind `applied`.
    bytes_unapplied: usize,
    /// Handed out to be persisted up to here.
    handed: u64,
    pub persisted: u64,
    pub commit: u64,
    /// Handed out to be applied up to here.
    applying: u64,
    pub applied: u64,
}

impl Log {
    /// A log that is on disk, up to its end, and committed and applied as far as stated.
    pub fn new(
        start: (u64, u64),
        entries: Vec<Entry>,
        commit: u64,
        applied: u64,
        bytes_max: usize,
    ) -> Log {
        let last = start.0 + entries.len() as u64;
        let bytes = entries.iter().map(size).sum();
        let unapplied = entries.iter().filter(|entry| entry.index > applied);
        let bytes_unapplied = unapplied.map(size).sum();
        let mut log = Log {
            start,
            entries: entries.into(),
            bytes,
            bytes_max,
            bytes_unapplied,
            handed: last,
            persisted: last,
            commit,
            applying: applied,
            applied,
        };
        log.shrink();
        log
    }

    pub fn last_index(&self) -> u64 {
        self.start.0 + self.entries.len() as u64
    }

    pub fn last_term(&self) -> u64 {
        self.entries.back().map_or(self.start.1, |entry| entry.term)
    }

    /// The term of an entry that is still in memory, or just in front of it.
    pub fn term(&self, index: u64) -> Option<u64> {
        if index == self.start.0 {
            return Some(self.start.1);
        }
        self.position(index).map(|position| self.entries[position].term)
    }

    pub fn first_index(&self) -> u64 {
        self.start.0 + 1
    }

    /// Whether what waits to be applied has reached the bound on memory.
    pub fn is_full(&self) -> bool {
        self.bytes_unapplied >= self.bytes_max
    }

    pub fn append(&mut self, entry: Entry) {
        assert_eq!(entry.index, self.last_index() + 1, "the log has no gaps");
        self.bytes += size(&entry);
        self.bytes_unapplied += size(&entry);
        self.entries.push_back(entry);
    }

    /// What has not been handed out to be persisted yet.
    pub fn take_unpersisted(&mut self) -> Vec<Entry> {
        let entries = self.slice(self.handed, self.last_index());
        self.handed = self.last_index();
        entries
    }

    /// What may be applied and has not been handed out yet.
    pub fn take_committed(&mut self) -> Vec<Entry> {
        // An entry can be committed by others before it is durable here. The state machine must not
        // get ahead of the own log: after a crash it would hold what the log does not.
        let until = self.commit.min(self.persisted);
        if until <= self.applying {
            return Vec::new();
        }
        let entries = self.slice(self.applying, until);
        self.applying = until;
        entries
    }

    pub fn has_unpersisted(&self) -> bool {
        self.handed < self.last_index()
    }

    pub fn has_committed(&self) -> bool {
        self.commit.min(self.persisted) > self.applying
    }

    pub fn set_persisted(&mut self, index: u64, term: u64) {
        assert!(index <= self.handed, "persisted up to {index}, but handed out to {}", self.handed);
        // The entry may have been replaced while it was being written; then this says nothing.
        if index > self.persisted && self.term(index) == Some(term) {
            self.persisted = index;
        }
    }

    pub fn set_applied(&mut self, index: u64) {
        assert!(index <= self.applying, "applied {index}, but handed out to {}", self.applying);
        for index in self.applied + 1..=index {
            let position = self.position(index).expect("what is not applied stays in memory");
            self.bytes_unapplied -= size(&self.entries[position]);
        }
        self.applied = self.applied.max(index);
        self.shrink();
    }

    /// Drops what stands at or below `index` from memory, if it is applied and persisted.
    pub fn compact(&mut self, index: u64) {
        while self.start.0 < index && self.can_drop_first() {
            self.drop_first();
        }
    }

    /// Whether a change of the configuration is committed and waits to be applied.
    pub fn has_unapplied_conf_change(&self) -> bool {
        let normal = |index| {
            let position = self.position(index).expect("what is not applied stays in memory");
            self.entries[position].kind == EntryKind::Normal
        };
        !(self.applied + 1..=self.commit).all(normal)
    }

    fn shrink(&mut self) {
        while self.bytes > self.bytes_max && self.can_drop_first() {
            self.drop_first();
        }
    }

    fn can_drop_first(&self) -> bool {
        self.start.0 < self.applied.min(self.persisted)
    }

    fn drop_first(&mut self) {
        let entry = self.entries.pop_front().expect("there is an entry behind the start");
        self.bytes -= size(&entry);
        self.start = (entry.index, entry.term);
    }

    fn position(&self, index: u64) -> Option<usize> {
        let position = usize::try_from(index.checked_sub(self.start.0 + 1)?).ok()?;
        (position < self.entries.len()).then_some(position)
    }

    /// The entries behind `after` up to `until`, which must be in memory.
    fn slice(&self, after: u64, until: u64) -> Vec<Entry> {
        let (from, to) = ((after - self.start.0) as usize, (until - self.start.0) as usize);
        self.entries.range(from..to).cloned().collect()
    }
}

/// What an entry takes in memory, roughly.
fn size(entry: &Entry) -> usize {
    size_of::<Entry>() + entry.data.len()
}
