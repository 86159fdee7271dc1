//! Where a change stands in history: the main revision, and its place within it.

/// Ordered as history is: by main, then by sub.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision {
    pub main: i64,
    pub sub: i64,
}

impl Revision {
    pub const fn new(main: i64, sub: i64) -> Revision {
        Revision { main, sub }
    }

    /// etcd's row key: both numbers big-endian with `_` between, and `t` behind a tombstone.
    /// The first [`Revision::row_key_bytes`] bytes count.
    pub fn row_key(self, tombstone: bool) -> ([u8; 18], usize) {
        let mut key = [0; 18];
        key[..8].copy_from_slice(&self.main.to_be_bytes());
        key[8] = b'_';
        key[9..17].copy_from_slice(&self.sub.to_be_bytes());
        key[17] = b't';
        (key, Self::row_key_bytes(tombstone))
    }

    pub const fn row_key_bytes(tombstone: bool) -> usize {
        if tombstone { 18 } else { 17 }
    }
}
