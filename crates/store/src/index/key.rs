//! A key as the index holds it: short ones in place, so that finding a key touches little memory.

use std::borrow::Borrow;
use std::cmp::Ordering;

/// Twenty-four bytes, and for keys longer than `SHORT_MAX` a box.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Key {
    Short { length: u8, bytes: [u8; SHORT_MAX] },
    Long(Box<[u8]>),
}

const SHORT_MAX: usize = 22;

impl Key {
    pub fn new(key: &[u8]) -> Key {
        if key.len() > SHORT_MAX {
            return Key::Long(key.into());
        }
        let mut bytes = [0; SHORT_MAX];
        bytes[..key.len()].copy_from_slice(key);
        Key::Short { length: key.len() as u8, bytes }
    }

    pub fn bytes(&self) -> &[u8] {
        match self {
            Key::Short { length, bytes } => &bytes[..usize::from(*length)],
            Key::Long(bytes) => bytes,
        }
    }
}

// A map is asked with plain bytes, so keys must be ordered exactly as those are.

impl Borrow<[u8]> for Key {
    fn borrow(&self) -> &[u8] {
        self.bytes()
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Key) -> Ordering {
        self.bytes().cmp(other.bytes())
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Key) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_ordered_as_their_bytes() {
        let long = [b'a'; 40];
        let keys: [&[u8]; 8] = [b"", b"\0", b"\0\0", b"a", &long[..22], &long[..23], &long, b"b"];
        for (at, key) in keys.iter().enumerate() {
            assert_eq!(Key::new(key).bytes(), *key);
            for (other_at, other) in keys.iter().enumerate() {
                assert_eq!(Key::new(key).cmp(&Key::new(other)), at.cmp(&other_at));
            }
        }
    }

    #[test]
    fn a_short_key_costs_no_box() {
        assert_eq!(size_of::<Key>(), 24);
    }
}
