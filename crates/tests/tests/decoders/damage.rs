//! Damaged copies of an input.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Numbers that sizes and counts go wrong at.
const EDGES: [u8; 8] = [0, 1, 0x7f, 0x80, 0x81, 0xfe, 0xff, b'"'];

pub fn damaged(bytes: &[u8], seed: u64) -> Vec<u8> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut bytes = bytes.to_vec();
    for _ in 0..random.random_range(1..6) {
        if bytes.is_empty() {
            return bytes;
        }
        let at = random.random_range(0..bytes.len());
        let some = random.random_range(1..20).min(bytes.len() - at);
        match random.random_range(0..9) {
            0 => bytes[at] = random.random(),
            1 => bytes[at] ^= 1 << random.random_range(0..8),
            2 => bytes[at] = EDGES[random.random_range(0..EDGES.len())],
            3 => bytes[at..at + some].fill(EDGES[random.random_range(0..EDGES.len())]),
            4 => bytes.insert(at, random.random()),
            5 => drop(bytes.drain(at..at + some)),
            6 => bytes.truncate(at),
            7 => {
                let copy = bytes[at..at + some].to_vec();
                let to = random.random_range(0..=bytes.len());
                bytes.splice(to..to, copy);
            }
            _ => {
                let copy = bytes[at..at + some].to_vec();
                let to = random.random_range(0..=bytes.len() - some);
                bytes[to..to + some].copy_from_slice(&copy);
            }
        }
    }
    bytes
}
