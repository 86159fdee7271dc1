//! Watchers by what they watch: all watchers of the same range stand in one group, and a key is
//! looked up once for all of them.

use crate::intervals::Intervals;
use crate::slots::{Slot, Slots};
use api::KeyRange;
use bytes::Bytes;
use std::collections::HashMap;
use std::ops::Index;

pub struct Groups {
    groups: Slots<Group>,
    /// Only looked up, never walked: the order of a hash map must not be seen.
    keys: HashMap<Bytes, Slot>,
    ranges: Intervals,
}

pub struct Group {
    range: KeyRange,
    pub watchers: Vec<Slot>,
}

impl Groups {
    pub fn new() -> Groups {
        Groups { groups: Slots::new(), keys: HashMap::new(), ranges: Intervals::new() }
    }

    /// Adds a watcher to the group of its range. Returns the group, and the watcher's place in it.
    pub fn join(&mut self, range: &KeyRange, watcher: Slot) -> (Slot, usize) {
        let known = match range {
            KeyRange::One(key) => self.keys.get(key).copied(),
            _ => self.ranges.get(range),
        };
        let slot = known.unwrap_or_else(|| self.begin(range));
        let watchers = &mut self.groups[slot].watchers;
        watchers.push(watcher);
        (slot, watchers.len() - 1)
    }

    fn begin(&mut self, range: &KeyRange) -> Slot {
        // A copy, because the request's bytes are a slice of all that was received with it, and
        // a watcher may live for months.
        let range = match range {
            KeyRange::One(key) => KeyRange::One(Bytes::copy_from_slice(key)),
            KeyRange::From(start) => KeyRange::From(Bytes::copy_from_slice(start)),
            KeyRange::Between(start, end) => {
                KeyRange::Between(Bytes::copy_from_slice(start), Bytes::copy_from_slice(end))
            }
        };
        let slot = self.groups.insert(Group { range: range.clone(), watchers: Vec::new() });
        match &range {
            KeyRange::One(key) => drop(self.keys.insert(key.clone(), slot)),
            _ => self.ranges.insert(&range, slot),
        }
        slot
    }

    /// Removes the watcher at a place of a group. Another watcher may take that place: it is
    /// returned.
    pub fn leave(&mut self, slot: Slot, place: usize) -> Option<Slot> {
        let watchers = &mut self.groups[slot].watchers;
        watchers.swap_remove(place);
        let moved = watchers.get(place).copied();
        if watchers.is_empty() {
            let group = self.groups.remove(slot);
            match &group.range {
                KeyRange::One(key) => drop(self.keys.remove(key)),
                range => self.ranges.remove(range),
            }
        }
        moved
    }

    /// Calls `found` with every group whose range holds `key`.
    pub fn containing(&self, key: &[u8], mut found: impl FnMut(Slot)) {
        if let Some(&group) = self.keys.get(key) {
            found(group);
        }
        self.ranges.containing(key, &mut found);
    }
}

impl Index<Slot> for Groups {
    type Output = Group;

    fn index(&self, slot: Slot) -> &Group {
        &self.groups[slot]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(groups: &Groups, key: &[u8]) -> Vec<Slot> {
        let mut watchers = Vec::new();
        groups.containing(key, |group| watchers.extend(&groups[group].watchers));
        watchers
    }

    #[test]
    fn watchers_of_one_range_share_a_group() {
        let mut groups = Groups::new();
        let one = KeyRange::One(Bytes::from_static(b"ab"));
        let prefix = KeyRange::prefix(Bytes::from_static(b"a"));
        let (first, _) = groups.join(&one, 1);
        let (second, place) = groups.join(&one, 2);
        let (third, _) = groups.join(&prefix, 3);
        assert_eq!((first, place), (second, 1));
        assert_ne!(first, third);
        assert_eq!(found(&groups, b"ab"), [1, 2, 3]);
        assert_eq!(found(&groups, b"ac"), [3]);
        assert!(found(&groups, b"b").is_empty());
    }

    #[test]
    fn an_empty_group_is_forgotten() {
        let mut groups = Groups::new();
        let one = KeyRange::One(Bytes::from_static(b"a"));
        let from = KeyRange::From(Bytes::from_static(b"a"));
        let (group, _) = groups.join(&one, 1);
        groups.join(&one, 2);
        assert_eq!(groups.leave(group, 0), Some(2), "the last watcher takes the free place");
        assert_eq!(groups.leave(group, 0), None);
        let (group, _) = groups.join(&from, 3);
        groups.leave(group, 0);
        assert!(found(&groups, b"a").is_empty());
        assert_eq!((groups.groups.len(), groups.keys.len()), (0, 0));
        assert_eq!(groups.ranges.get(&from), None);
    }
}
