//! Which keys a request means: etcd's reading of `key` and `range_end`.

use bytes::Bytes;
use std::ops::Bound;

/// The keys that `key` and `range_end` of a request select.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum KeyRange {
    /// `range_end` empty: exactly this key.
    One(Bytes),
    /// `range_end` is a single zero byte: this key and all above it.
    From(Bytes),
    /// All others: `start <= key < end`, which is nothing if `end <= start`.
    Between(Bytes, Bytes),
}

impl KeyRange {
    pub fn new(key: Bytes, range_end: Bytes) -> KeyRange {
        match range_end.as_ref() {
            b"" => KeyRange::One(key),
            b"\0" => KeyRange::From(key),
            _ => KeyRange::Between(key, range_end),
        }
    }

    /// All keys that begin with `prefix`.
    pub fn prefix(prefix: Bytes) -> KeyRange {
        let end = prefix_end(&prefix);
        KeyRange::new(prefix, end)
    }

    pub fn start(&self) -> &Bytes {
        match self {
            KeyRange::One(key) | KeyRange::From(key) | KeyRange::Between(key, _) => key,
        }
    }

    pub fn contains(&self, key: &[u8]) -> bool {
        match self {
            KeyRange::One(one) => one.as_ref() == key,
            KeyRange::From(start) => start.as_ref() <= key,
            KeyRange::Between(start, end) => start.as_ref() <= key && key < end.as_ref(),
        }
    }

    /// No key can be in it.
    pub fn is_empty(&self) -> bool {
        matches!(self, KeyRange::Between(start, end) if end <= start)
    }

    /// For ordered maps. Must not be asked of an empty range: `BTreeMap::range` would panic.
    pub fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        assert!(!self.is_empty(), "bounds of an empty key range");
        match self {
            KeyRange::One(key) => (Bound::Included(key), Bound::Included(key)),
            KeyRange::From(start) => (Bound::Included(start), Bound::Unbounded),
            KeyRange::Between(start, end) => (Bound::Included(start), Bound::Excluded(end)),
        }
    }
}

/// The `range_end` with which a client asks for a prefix: the prefix with its last byte that can
/// grow, grown, and the rest cut; a single zero byte if none can.
pub fn prefix_end(prefix: &[u8]) -> Bytes {
    match prefix.iter().rposition(|&byte| byte < 0xff) {
        Some(at) => {
            let mut end = prefix[..=at].to_vec();
            end[at] += 1;
            end.into()
        }
        None => Bytes::from_static(b"\0"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(key: &'static [u8], end: &'static [u8]) -> KeyRange {
        KeyRange::new(Bytes::from_static(key), Bytes::from_static(end))
    }

    #[test]
    fn the_three_readings_of_range_end() {
        assert!(range(b"b", b"").contains(b"b"));
        assert!(!range(b"b", b"").contains(b"b\0"));
        assert!(range(b"b", b"\0").contains(b"zzz"));
        assert!(!range(b"b", b"\0").contains(b"a"));
        assert!(range(b"b", b"d").contains(b"c"));
        assert!(!range(b"b", b"d").contains(b"d"));
        assert!(range(b"d", b"b").is_empty());
        assert!(range(b"b", b"b").is_empty());
    }

    #[test]
    fn prefixes_end_where_no_key_with_them_can_be() {
        assert_eq!(prefix_end(b"ab").as_ref(), b"ac");
        assert_eq!(prefix_end(b"a\xff").as_ref(), b"b");
        assert_eq!(prefix_end(b"\xff\xff").as_ref(), b"\0");
        assert_eq!(prefix_end(b"").as_ref(), b"\0");
    }
}
