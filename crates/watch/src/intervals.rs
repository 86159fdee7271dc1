//! Ranges of keys, and which of them hold a given key, without looking at all of them.
//!
//! A treap: a binary tree ordered by the ranges and heaped by random priorities, which keep it
//! about log n deep whatever the order of insertion. Each node knows the furthest end in its
//! subtree, so a search passes by every subtree that ends before the key.
//!
//! ```text
//!                [d, k)  furthest p
//!               /                  \
//!   [a, c)  furthest c        [e, p)  furthest p
//! ```
//!
//! Asked for `h`, the left subtree is not entered: all in it ends at `c` or before.

use crate::slots::{Slot, Slots};
use api::KeyRange;
use bytes::Bytes;
use std::cmp::Ordering;

/// A set of ranges, each with a number of the caller's.
pub struct Intervals {
    nodes: Slots<Node>,
    root: Option<Slot>,
    /// Draws the priorities. A fixed seed: the shape of the tree cannot be seen from outside.
    draw: u64,
}

struct Node {
    start: Bytes,
    end: End,
    number: Slot,
    priority: u64,
    furthest: End,
    left: Option<Slot>,
    right: Option<Slot>,
}

/// Where a range ends: before a key, or nowhere.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Before(Bytes),
    Never,
}

impl End {
    fn of(range: &KeyRange) -> End {
        match range {
            KeyRange::One(_) => unreachable!("single keys have a map of their own"),
            KeyRange::From(_) => End::Never,
            KeyRange::Between(_, end) => End::Before(end.clone()),
        }
    }

    fn is_after(&self, key: &[u8]) -> bool {
        match self {
            End::Before(end) => key < end.as_ref(),
            End::Never => true,
        }
    }
}

impl Intervals {
    pub fn new() -> Intervals {
        Intervals { nodes: Slots::new(), root: None, draw: 0x9e37_79b9_7f4a_7c15 }
    }

    /// Calls `found` with the number of every range that holds `key`, in the order of ranges.
    pub fn containing(&self, key: &[u8], found: &mut impl FnMut(Slot)) {
        self.search(self.root, key, found);
    }

    fn search(&self, at: Option<Slot>, key: &[u8], found: &mut impl FnMut(Slot)) {
        let Some(at) = at else { return };
        let node = &self.nodes[at];
        if !node.furthest.is_after(key) {
            return;
        }
        self.search(node.left, key, found);
        if node.start.as_ref() <= key {
            if node.end.is_after(key) {
                found(node.number);
            }
            self.search(node.right, key, found);
        }
    }

    /// The number of exactly this range.
    pub fn get(&self, range: &KeyRange) -> Option<Slot> {
        let (start, end) = (range.start(), &End::of(range));
        let mut at = self.root;
        while let Some(slot) = at {
            let node = &self.nodes[slot];
            at = match (start, end).cmp(&(&node.start, &node.end)) {
                Ordering::Less => node.left,
                Ordering::Greater => node.right,
                Ordering::Equal => return Some(node.number),
            };
        }
        None
    }

    /// Adds a range that is not there yet.
    pub fn insert(&mut self, range: &KeyRange, number: Slot) {
        let (start, end) = (range.start().clone(), End::of(range));
        let (before, after) = self.split(self.root, &start, &end, false);
        let node = Node {
            start,
            furthest: end.clone(),
            end,
            number,
            priority: self.next_priority(),
            left: None,
            right: None,
        };
        let new = self.nodes.insert(node);
        let before = self.join(before, Some(new));
        self.root = self.join(before, after);
    }

    /// Removes a range that is there.
    pub fn remove(&mut self, range: &KeyRange) {
        let (start, end) = (range.start(), End::of(range));
        let (before, rest) = self.split(self.root, start, &end, false);
        let (this, after) = self.split(rest, start, &end, true);
        let this = this.expect("the range removed is there");
        self.nodes.remove(this);
        self.root = self.join(before, after);
    }

    /// Parts a subtree in what sorts before the range (and the range itself, if `with` is set) and
    /// the rest.
    fn split(
        &mut self,
        at: Option<Slot>,
        start: &Bytes,
        end: &End,
        with: bool,
    ) -> (Option<Slot>, Option<Slot>) {
        let Some(slot) = at else { return (None, None) };
        let node = &self.nodes[slot];
        let (left, right) = (node.left, node.right);
        let goes_before = match (&node.start, &node.end).cmp(&(start, end)) {
            Ordering::Less => true,
            Ordering::Equal => with,
            Ordering::Greater => false,
        };
        if goes_before {
            let (before, after) = self.split(right, start, end, with);
            self.nodes[slot].right = before;
            self.renew_furthest(slot);
            (Some(slot), after)
        } else {
            let (before, after) = self.split(left, start, end, with);
            self.nodes[slot].left = after;
            self.renew_furthest(slot);
            (before, Some(slot))
        }
    }

    /// Joins two subtrees, of which all the first sorts before all the second.
    fn join(&mut self, before: Option<Slot>, after: Option<Slot>) -> Option<Slot> {
        let (Some(first), Some(second)) = (before, after) else { return before.or(after) };
        if self.nodes[first].priority >= self.nodes[second].priority {
            self.nodes[first].right = self.join(self.nodes[first].right, after);
            self.renew_furthest(first);
            Some(first)
        } else {
            self.nodes[second].left = self.join(before, self.nodes[second].left);
            self.renew_furthest(second);
            Some(second)
        }
    }

    fn renew_furthest(&mut self, slot: Slot) {
        let node = &self.nodes[slot];
        let children = [node.left, node.right].into_iter().flatten();
        let furthest = children.map(|child| &self.nodes[child].furthest).chain([&node.end]).max();
        let furthest = furthest.expect("a node has an end of its own").clone();
        self.nodes[slot].furthest = furthest;
    }

    /// Xorshift: good enough to balance a tree.
    fn next_priority(&mut self) -> u64 {
        self.draw ^= self.draw << 13;
        self.draw ^= self.draw >> 7;
        self.draw ^= self.draw << 17;
        self.draw
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    #[test]
    fn finds_what_a_scan_of_all_finds() {
        for seed in 0..50 {
            let mut rng = StdRng::seed_from_u64(seed);
            let mut intervals = Intervals::new();
            let mut all: Vec<(KeyRange, Slot)> = Vec::new();
            for number in 0..400 {
                let range = any_range(&mut rng);
                match all.iter().position(|(held, _)| *held == range) {
                    Some(at) => {
                        assert_eq!(intervals.get(&range), Some(all[at].1), "seed {seed}");
                        intervals.remove(&range);
                        all.remove(at);
                    }
                    None => {
                        assert_eq!(intervals.get(&range), None, "seed {seed}");
                        intervals.insert(&range, number);
                        all.push((range, number));
                    }
                }
                let key = any_key(&mut rng);
                let mut found = Vec::new();
                intervals.containing(&key, &mut |number| found.push(number));
                found.sort_unstable();
                let scan = all.iter().filter(|(range, _)| range.contains(&key));
                let scan: Vec<Slot> = scan.map(|&(_, number)| number).collect();
                let mut scan_sorted = scan;
                scan_sorted.sort_unstable();
                assert_eq!(found, scan_sorted, "seed {seed}, key {key:?}");
            }
        }
    }

    #[test]
    fn stays_shallow_when_ranges_come_in_order() {
        let mut intervals = Intervals::new();
        for number in 0..10_000 {
            intervals.insert(&KeyRange::prefix(format!("{number:05}/").into()), number);
        }
        fn depth(intervals: &Intervals, at: Option<Slot>) -> usize {
            let Some(at) = at else { return 0 };
            let node = &intervals.nodes[at];
            1 + depth(intervals, node.left).max(depth(intervals, node.right))
        }
        assert!(depth(&intervals, intervals.root) < 60);
    }

    fn any_key(rng: &mut StdRng) -> Bytes {
        let letters = rng.random_range(1..=2);
        (0..letters).map(|_| rng.random_range(b'a'..=b'f')).collect()
    }

    fn any_range(rng: &mut StdRng) -> KeyRange {
        loop {
            let range = match rng.random_range(0..4) {
                0 => KeyRange::From(any_key(rng)),
                _ => KeyRange::Between(any_key(rng), any_key(rng)),
            };
            if !range.is_empty() {
                return range;
            }
        }
    }
}
