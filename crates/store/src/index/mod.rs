//! The key index: every key, and where in history its values are.
//!
//! In:  puts and deletes in revision order, and compactions. Out: which row holds a key at a
//! revision, and ranges of such rows, in key order.
//!
//! It holds no values and does no I/O: rows are read from the engine by the revisions found here.
//! All of it is in memory, so a key that was put once must cost little: see `examples/measure.rs`.

mod history;
mod key;
mod restore;

pub(crate) use history::{Found, History, Rev};
pub(crate) use restore::Restorer;

use std::collections::BTreeMap;
use std::ops::Bound;

use api::KeyRange;
use engine::Revision;

use key::Key;

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Index {
    keys: BTreeMap<Key, History>,
}

/// What a put did to a key.
pub(crate) struct Placed {
    pub created: i64,
    pub version: i64,
    /// The row that held the key until now.
    pub replaced: Option<Rev>,
    /// The row that held the key before this main revision: not the one just replaced, if one
    /// request touches a key twice.
    pub previous: Option<Rev>,
}

impl Index {
    /// Keys with any history.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    pub fn newest(&self, key: &[u8]) -> Option<Found> {
        self.keys.get(key)?.newest()
    }

    pub fn at(&self, key: &[u8], main: i64) -> Option<Found> {
        self.keys.get(key)?.at(main)
    }

    pub fn put(&mut self, key: &[u8], rev: Rev) -> Placed {
        let Some(history) = self.keys.get_mut(key) else {
            self.keys.insert(Key::new(key), History::created_at(rev));
            return Placed { created: rev.main, version: 1, replaced: None, previous: None };
        };
        let before = history.newest();
        let previous = history.before(rev.main);
        history.put(rev);
        let (created, version) = match before {
            Some(found) => (found.created, found.version + 1),
            None => (rev.main, 1),
        };
        Placed { created, version, replaced: before.map(|found| found.modified), previous }
    }

    /// Deletes a key that exists. Returns the row that held it before this main revision.
    pub fn delete(&mut self, key: &[u8], rev: Rev) -> Option<Rev> {
        let history = self.keys.get_mut(key).expect("only keys that exist are deleted");
        let previous = history.before(rev.main);
        history.delete(rev);
        previous
    }

    /// Walks the keys of a range that existed at `main`, in key order, from just behind `after`.
    /// `visit` says whether to go on; at most `keys_max` keys are looked at. Returns the last key
    /// looked at, or `None` at the end of the range.
    pub fn walk(
        &self,
        range: &KeyRange,
        after: Option<&[u8]>,
        main: i64,
        keys_max: usize,
        mut visit: impl FnMut(&[u8], Found) -> bool,
    ) -> Option<Box<[u8]>> {
        if range.is_empty() {
            return None;
        }
        let (start, end) = range.bounds();
        let start = match after {
            Some(key) => Bound::Excluded(key),
            None => start,
        };
        let mut looked = 0;
        for (key, history) in self.keys.range::<[u8], _>((start, end)) {
            let go_on = history.at(main).is_none_or(|found| visit(key.bytes(), found));
            looked += 1;
            if looked == keys_max || !go_on {
                return Some(key.bytes().into());
            }
        }
        None
    }

    /// Compacts the next `keys_max` keys behind `after`, and puts the revisions nobody may ask for
    /// any more into `dead`; `kept` hears of each key whether one of its old revisions stays.
    /// Returns the key to go on behind, or `None` when all are done.
    pub fn compact(
        &mut self,
        after: Option<&[u8]>,
        main: i64,
        keys_max: usize,
        dead: &mut Vec<Revision>,
        mut kept: impl FnMut(bool),
    ) -> Option<Box<[u8]>> {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut emptied = Vec::new();
        let mut next = None;
        let range = self.keys.range_mut::<[u8], _>((start, Bound::Unbounded));
        for (looked, (key, history)) in range.enumerate() {
            if looked == keys_max {
                break;
            }
            history.compact(main, dead);
            kept(history.reaches_back_to(main));
            if history.is_empty() {
                emptied.push(Box::<[u8]>::from(key.bytes()));
            }
            if looked + 1 == keys_max {
                next = Some(key.bytes().into());
            }
        }
        for key in emptied {
            self.keys.remove(&*key);
        }
        next
    }

    /// The revisions that HashKV at `main` keeps, of the next `keys_max` keys behind `after`.
    pub fn kept_at(
        &self,
        after: Option<&[u8]>,
        main: i64,
        keys_max: usize,
        mut visit: impl FnMut(Rev),
    ) -> Option<Box<[u8]>> {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let range = self.keys.range::<[u8], _>((start, Bound::Unbounded));
        for (looked, (key, history)) in range.enumerate() {
            if let Some(rev) = history.kept_at(main) {
                visit(rev);
            }
            if looked + 1 == keys_max {
                return Some(key.bytes().into());
            }
        }
        None
    }
}
