//! A bounded cache of hot values.
//!
//! Sixteen shards, each a clock: a value that was read since the hand last passed gets a second
//! round, so one long range does not push out what everybody reads.

use crate::Revision;
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

pub(crate) struct Cache {
    shards: Vec<Mutex<Shard>>,
    shard_bytes_max: usize,
}

#[derive(Default)]
struct Shard {
    places: HashMap<Revision, u32, BuildHasherDefault<Spread>>,
    slots: Vec<Slot>,
    hand: usize,
    bytes: usize,
}

struct Slot {
    revision: Revision,
    value: Bytes,
    hot: bool,
}

const SHARDS: usize = 16;
/// What a cached value costs besides its bytes: slot, map entry, the buffer's own bookkeeping.
const SLOT_BYTES: usize = 128;

impl Cache {
    pub fn new(bytes_max: usize) -> Cache {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        Cache { shards, shard_bytes_max: bytes_max / SHARDS }
    }

    pub fn get(&self, revision: Revision) -> Option<Bytes> {
        let mut shard = self.shard(revision).lock();
        let place = *shard.places.get(&revision)? as usize;
        let slot = &mut shard.slots[place];
        slot.hot = true;
        Some(slot.value.clone())
    }

    /// Takes in a value that owns its buffer.
    pub fn insert(&self, revision: Revision, value: Bytes) {
        let cost = value.len() + SLOT_BYTES;
        // One value must not empty a shard.
        if cost > self.shard_bytes_max / 4 {
            return;
        }
        let mut shard = self.shard(revision).lock();
        if shard.places.contains_key(&revision) {
            return;
        }
        while shard.bytes + cost > self.shard_bytes_max {
            shard.evict_one();
        }
        let place = shard.slots.len() as u32;
        shard.bytes += cost;
        shard.places.insert(revision, place);
        shard.slots.push(Slot { revision, value, hot: false });
    }

    fn shard(&self, revision: Revision) -> &Mutex<Shard> {
        &self.shards[(revision.main as usize).wrapping_add(revision.sub as usize) % SHARDS]
    }
}

impl Shard {
    fn evict_one(&mut self) {
        loop {
            self.hand = if self.hand < self.slots.len() { self.hand } else { 0 };
            let slot = &mut self.slots[self.hand];
            if !slot.hot {
                break;
            }
            slot.hot = false;
            self.hand += 1;
        }
        // The last slot fills the gap, behind the hand: it waits a full round.
        let gone = self.slots.swap_remove(self.hand);
        self.bytes -= gone.value.len() + SLOT_BYTES;
        self.places.remove(&gone.revision);
        if let Some(moved) = self.slots.get(self.hand) {
            self.places.insert(moved.revision, self.hand as u32);
        }
        self.hand += 1;
    }
}

/// Revisions are counted up by ourselves, so nobody can choose colliding ones.
#[derive(Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(26) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_i64(&mut self, number: i64) {
        self.write_u64(number as u64);
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn revision(main: usize) -> Revision {
        Revision::new(main as i64, 0)
    }

    #[test]
    fn memory_is_bounded_and_hot_values_stay() {
        let cache = Cache::new(SHARDS * 64 * (100 + SLOT_BYTES));
        let value = Bytes::from(vec![1; 100]);
        for main in 0..10_000 {
            cache.insert(revision(main), value.clone());
            assert!(main < 16 || cache.get(revision(7)).is_some(), "read often, so kept");
        }
        let held = (0..10_000).filter(|&main| cache.get(revision(main)).is_some()).count();
        assert_eq!(held, SHARDS * 64);
        for shard in &cache.shards {
            assert!(shard.lock().bytes <= cache.shard_bytes_max);
        }
    }

    #[test]
    fn a_value_larger_than_its_share_is_not_kept() {
        let cache = Cache::new(SHARDS * 1000);
        cache.insert(revision(1), Bytes::from(vec![1; 900]));
        assert_eq!(cache.get(revision(1)), None);
    }
}
