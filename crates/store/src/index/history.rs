//! The life of one key: at which revisions it was put and deleted.
//!
//! A key lives in incarnations. Each begins with a put, and all but the last end with a tombstone,
//! which is the last revision of its incarnation:
//!
//! ```text
//! put@2 put@4 delete@5   put@8 put@9
//! └── incarnation 1 ──┘  └─ alive ─┘
//! ```
//!
//! Most keys of most stores were put once and never again, and cost sixteen bytes here; most others
//! have one revision left after compaction, and cost little more.

use engine::Revision;

/// A [`Revision`] in sixteen bytes. No request changes 2^32 keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rev {
    pub main: i64,
    pub sub: u32,
}

impl From<Revision> for Rev {
    fn from(revision: Revision) -> Rev {
        let sub = u32::try_from(revision.sub).expect("no request changes 2^32 keys");
        Rev { main: revision.main, sub }
    }
}

impl From<Rev> for Revision {
    fn from(rev: Rev) -> Revision {
        Revision { main: rev.main, sub: i64::from(rev.sub) }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum History {
    /// Created here and untouched since.
    Once {
        main: i64,
        sub: u32,
    },
    /// Alive, with nothing left of its past but this.
    Last(Box<Found>),
    Long(Box<Long>),
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Long {
    /// Each ends with its tombstone.
    ended: Vec<Incarnation>,
    /// Empty if the key does not exist now.
    alive: Incarnation,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Incarnation {
    created: i64,
    /// Version of the oldest revision that is still here; the others count up from it.
    version: i64,
    revisions: Vec<Rev>,
}

/// A key as it was at some revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub modified: Rev,
    pub created: i64,
    pub version: i64,
}

impl History {
    pub fn created_at(rev: Rev) -> History {
        History::Once { main: rev.main, sub: rev.sub }
    }

    /// The key now, if it exists.
    pub fn newest(&self) -> Option<Found> {
        match self {
            History::Once { main, .. } => self.at(*main),
            History::Last(found) => Some(**found),
            History::Long(long) => long.alive.found(long.alive.revisions.len().checked_sub(1)?),
        }
    }

    /// The key as it was at a main revision, if it existed.
    pub fn at(&self, main: i64) -> Option<Found> {
        match self {
            &History::Once { main: created, sub } => (created <= main).then_some(Found {
                modified: Rev { main: created, sub },
                created,
                version: 1,
            }),
            History::Last(found) => (found.modified.main <= main).then_some(**found),
            History::Long(long) => {
                if let Some(at) = long.alive.newest_upto(main) {
                    return long.alive.found(at);
                }
                for incarnation in long.ended.iter().rev() {
                    if incarnation.end() <= main {
                        return None;
                    }
                    if let Some(at) = incarnation.newest_upto(main) {
                        return incarnation.found(at);
                    }
                }
                None
            }
        }
    }

    /// The row that held the key just before a main revision, if it existed then.
    pub fn before(&self, main: i64) -> Option<Rev> {
        self.at(main - 1).map(|found| found.modified)
    }

    pub fn put(&mut self, rev: Rev) {
        let alive = &mut self.long().alive;
        if alive.revisions.is_empty() {
            *alive = Incarnation { created: rev.main, version: 1, revisions: vec![rev] };
        } else {
            alive.revisions.push(rev);
        }
    }

    /// Ends the incarnation. The key must exist.
    pub fn delete(&mut self, rev: Rev) {
        let long = self.long();
        assert!(!long.alive.revisions.is_empty(), "a key that does not exist was deleted");
        long.alive.revisions.push(rev);
        long.ended.push(std::mem::take(&mut long.alive));
    }

    /// A put as it is read back at start. Rows that compaction declared dead may be gone or not,
    /// so each row is believed about its own incarnation and version.
    pub fn restore_put(&mut self, rev: Rev, created: i64, version: i64) {
        let long = self.long();
        if long.alive.created != created && !long.alive.revisions.is_empty() {
            // The tombstone between them was already dropped.
            long.ended.push(std::mem::take(&mut long.alive));
        }
        long.alive.created = created;
        long.alive.version = version - long.alive.revisions.len() as i64;
        long.alive.revisions.push(rev);
    }

    /// A tombstone as it is read back at start; what it ended may be gone already.
    pub fn restore_delete(&mut self, rev: Rev) {
        let long = self.long();
        if long.alive.revisions.is_empty() {
            long.alive = Incarnation { created: rev.main, version: 1, revisions: vec![] };
        }
        long.alive.revisions.push(rev);
        long.ended.push(std::mem::take(&mut long.alive));
    }

    pub fn empty() -> History {
        History::Long(Box::default())
    }

    /// Drops what nobody may ask for once `main` is compacted, and puts it into `dead`. What stays:
    /// all above `main`, and the newest revision up to it unless the key was deleted before it.
    pub fn compact(&mut self, main: i64, dead: &mut Vec<Revision>) {
        let History::Long(long) = self else { return };
        let gone = long.ended.partition_point(|incarnation| incarnation.end() < main);
        for incarnation in long.ended.drain(..gone) {
            dead.extend(incarnation.revisions.into_iter().map(Revision::from));
        }
        let oldest = long.ended.first_mut().unwrap_or(&mut long.alive);
        if let Some(kept) = oldest.newest_upto(main) {
            dead.extend(oldest.revisions.drain(..kept).map(Revision::from));
            oldest.version += kept as i64;
        }
        if long.ended.is_empty()
            && long.alive.revisions.len() == 1
            && let Some(found) = long.alive.found(0)
        {
            *self = History::last(found);
        }
    }

    /// A key that exists, and of which nothing older is known.
    pub fn last(found: Found) -> History {
        match (found.created, found.version) == (found.modified.main, 1) {
            true => History::created_at(found.modified),
            false => History::Last(Box::new(found)),
        }
    }

    /// Nothing is left of the key.
    pub fn is_empty(&self) -> bool {
        match self {
            History::Once { .. } | History::Last(_) => false,
            History::Long(long) => long.ended.is_empty() && long.alive.revisions.is_empty(),
        }
    }

    /// Its oldest revision, which may be a tombstone, is not newer than `main`.
    pub fn reaches_back_to(&self, main: i64) -> bool {
        match self {
            History::Once { .. } | History::Last(_) => self.at(main).is_some(),
            History::Long(long) => {
                let oldest = long.ended.first().unwrap_or(&long.alive);
                oldest.revisions.first().is_some_and(|rev| rev.main <= main)
            }
        }
    }

    /// The revision that HashKV at `main` counts as kept: the one that compaction to `main` would
    /// keep, tombstones left out.
    pub fn kept_at(&self, main: i64) -> Option<Rev> {
        match self {
            History::Once { .. } | History::Last(_) => self.at(main).map(|found| found.modified),
            History::Long(long) => {
                let first = long.ended.iter().find(|incarnation| incarnation.end() >= main);
                let oldest = first.unwrap_or(&long.alive);
                let kept = oldest.newest_upto(main)?;
                let tombstone = first.is_some() && kept + 1 == oldest.revisions.len();
                (!tombstone).then(|| oldest.revisions[kept])
            }
        }
    }

    fn long(&mut self) -> &mut Long {
        if !matches!(self, History::Long(_))
            && let Some(found) = self.newest()
        {
            let mut revisions = Vec::with_capacity(2);
            revisions.push(found.modified);
            let (created, version) = (found.created, found.version);
            let alive = Incarnation { created, version, revisions };
            *self = History::Long(Box::new(Long { ended: Vec::new(), alive }));
        }
        match self {
            History::Long(long) => long,
            _ => unreachable!("it was made long above"),
        }
    }
}

impl Incarnation {
    fn found(&self, at: usize) -> Option<Found> {
        Some(Found {
            modified: self.revisions[at],
            created: self.created,
            version: self.version + at as i64,
        })
    }

    /// The place of the newest revision up to `main`.
    fn newest_upto(&self, main: i64) -> Option<usize> {
        // Nearly every question is about now.
        if let Some(last) = self.revisions.last()
            && last.main <= main
        {
            return Some(self.revisions.len() - 1);
        }
        self.revisions.partition_point(|rev| rev.main <= main).checked_sub(1)
    }

    /// The main revision of the tombstone.
    fn end(&self) -> i64 {
        self.revisions.last().expect("an ended incarnation has its tombstone").main
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rev(main: i64) -> Rev {
        Rev { main, sub: 0 }
    }

    /// put@2 put@4 delete@6 put@8 put@9
    fn two_lives() -> History {
        let mut history = History::created_at(rev(2));
        history.put(rev(4));
        history.delete(rev(6));
        history.put(rev(8));
        history.put(rev(9));
        history
    }

    #[test]
    fn a_key_is_found_as_it_was() {
        let history = two_lives();
        let at = |main| {
            history.at(main).map(|found| (found.modified.main, found.created, found.version))
        };
        assert_eq!(at(1), None);
        assert_eq!(at(3), Some((2, 2, 1)));
        assert_eq!(at(5), Some((4, 2, 2)));
        assert_eq!(at(6), None);
        assert_eq!(at(7), None);
        assert_eq!(at(8), Some((8, 8, 1)));
        assert_eq!(at(100), Some((9, 8, 2)));
    }

    #[test]
    fn compaction_keeps_the_newest_and_a_tombstone_only_at_its_own_revision() {
        let dead_after = |main| {
            let mut history = two_lives();
            let mut dead = Vec::new();
            history.compact(main, &mut dead);
            let dead: Vec<i64> = dead.into_iter().map(|revision| revision.main).collect();
            (dead, history.at(9).map(|found| (found.modified.main, found.version)))
        };
        assert_eq!(dead_after(1), (vec![], Some((9, 2))));
        assert_eq!(dead_after(3), (vec![], Some((9, 2))));
        assert_eq!(dead_after(5), (vec![2], Some((9, 2))));
        assert_eq!(dead_after(6), (vec![2, 4], Some((9, 2))));
        assert_eq!(dead_after(7), (vec![2, 4, 6], Some((9, 2))));
        assert_eq!(dead_after(9), (vec![2, 4, 6, 8], Some((9, 2))));
    }

    #[test]
    fn a_deleted_key_goes_when_its_tombstone_does() {
        let mut history = History::created_at(rev(2));
        history.delete(rev(3));
        history.compact(3, &mut Vec::new());
        assert!(!history.is_empty());
        assert_eq!(history.at(3), None);
        history.compact(4, &mut Vec::new());
        assert!(history.is_empty());
    }

    #[test]
    fn hashes_keep_no_tombstones() {
        let history = two_lives();
        let kept = |main| history.kept_at(main).map(|rev| rev.main);
        assert_eq!(kept(1), None);
        assert_eq!(kept(5), Some(4));
        assert_eq!(kept(6), None);
        assert_eq!(kept(7), None);
        assert_eq!(kept(8), Some(8));
        assert_eq!(kept(20), Some(9));
    }

    #[test]
    fn a_history_read_back_with_holes_knows_its_newest_version() {
        let mut history = History::empty();
        history.restore_put(rev(2), 2, 1); // dead, but not dropped yet
        history.restore_put(rev(9), 2, 4); // versions 2 and 3 were dropped
        assert_eq!(history.newest().map(|found| found.version), Some(4));
        history.restore_put(rev(12), 11, 2); // and so was a tombstone, and a put
        let newest = history.newest().expect("the key exists");
        assert_eq!((newest.modified.main, newest.created, newest.version), (12, 11, 2));
        history.compact(12, &mut Vec::new());
        assert_eq!(history.at(12), Some(newest));
    }

    #[test]
    fn a_key_put_once_costs_sixteen_bytes() {
        assert_eq!(size_of::<History>(), 16);
    }
}
