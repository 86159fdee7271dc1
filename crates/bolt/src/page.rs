//! The bytes of a page.
//!
//! ```text
//! page    0 id (8) | 8 flags (2) | 10 count (2) | 12 overflow (4) | 16 elements, then keys and values
//! leaf    0 flags (4) | 4 pos (4) | 8 key length (4) | 12 value length (4)
//! branch  0 pos (4) | 4 key length (4) | 8 page (8)
//! meta    0 magic | 4 version | 8 page size | 12 flags | 16 root page (8) | 24 sequence (8)
//!         32 free list (8) | 40 number of pages (8) | 48 transaction (8) | 56 FNV-1a of 0..56 (8)
//! ```
//!
//! All little-endian. `pos` counts from the start of its own element. A page with overflow `n` goes on
//! through the `n` pages behind it.

/// The page size that is written; any other is read.
pub const PAGE_BYTES: usize = 4096;
pub(crate) const HEADER_BYTES: usize = 16;
pub(crate) const ELEMENT_BYTES: usize = 16;
pub(crate) const META_BYTES: usize = 64;
/// A bucket in its parent's leaf: root page and sequence; a small bucket's page follows right there.
pub(crate) const BUCKET_BYTES: usize = 16;

pub(crate) const BRANCH: u16 = 0x01;
pub(crate) const LEAF: u16 = 0x02;
pub(crate) const META: u16 = 0x04;
/// The flag of a leaf element that is a bucket.
pub(crate) const IS_BUCKET: u32 = 0x01;

const MAGIC: u32 = 0xED0C_DAED;
const VERSION: u32 = 2;
const NO_FREELIST: u64 = u64::MAX;

/// What a meta page says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meta {
    pub page_bytes: u32,
    pub root: u64,
    /// The number of pages in use.
    pub pages: u64,
    pub txid: u64,
}

impl Meta {
    pub fn encode(&self) -> [u8; META_BYTES] {
        let mut out = [0; META_BYTES];
        let words = [MAGIC, VERSION, self.page_bytes, 0];
        for (place, word) in out.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        let numbers = [self.root, 0, NO_FREELIST, self.pages, self.txid];
        for (place, number) in out[16..56].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        let sum = fnv1a(&out[..56]);
        out[56..].copy_from_slice(&sum.to_le_bytes());
        out
    }

    pub fn decode(bytes: &[u8]) -> Option<Meta> {
        let bytes = bytes.get(..META_BYTES)?;
        let good = u32_at(bytes, 0) == MAGIC
            && u32_at(bytes, 4) == VERSION
            && u64_at(bytes, 56) == fnv1a(&bytes[..56]);
        good.then(|| Meta {
            page_bytes: u32_at(bytes, 8),
            root: u64_at(bytes, 16),
            pages: u64_at(bytes, 40),
            txid: u64_at(bytes, 48),
        })
    }
}

/// Appends a meta page.
pub(crate) fn put_meta(out: &mut Vec<u8>, id: u64, meta: &Meta) {
    let start = out.len();
    put_header(out, id, META, 0, 0);
    out.extend_from_slice(&meta.encode());
    out.resize(start + PAGE_BYTES, 0);
}

/// Appends a leaf's header, elements, keys and values. `overflow` as the header has it.
pub(crate) fn put_leaf<K: AsRef<[u8]>, V: AsRef<[u8]>>(
    out: &mut Vec<u8>,
    id: u64,
    overflow: u32,
    element_flags: u32,
    rows: &[(K, V)],
) {
    put_header(out, id, LEAF, rows.len(), overflow);
    let mut data_at = ELEMENT_BYTES * rows.len();
    for (place, (key, value)) in rows.iter().enumerate() {
        let (key_bytes, value_bytes) = (key.as_ref().len(), value.as_ref().len());
        let pos = data_at - ELEMENT_BYTES * place;
        for word in [element_flags, pos as u32, key_bytes as u32, value_bytes as u32] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        data_at += key_bytes + value_bytes;
    }
    for (key, value) in rows {
        out.extend_from_slice(key.as_ref());
        out.extend_from_slice(value.as_ref());
    }
}

/// Appends a branch's header, elements and keys.
pub(crate) fn put_branch<K: AsRef<[u8]>>(
    out: &mut Vec<u8>,
    id: u64,
    overflow: u32,
    children: &[(K, u64)],
) {
    put_header(out, id, BRANCH, children.len(), overflow);
    let mut data_at = ELEMENT_BYTES * children.len();
    for (place, (key, page)) in children.iter().enumerate() {
        let pos = data_at - ELEMENT_BYTES * place;
        for word in [pos as u32, key.as_ref().len() as u32] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.extend_from_slice(&page.to_le_bytes());
        data_at += key.as_ref().len();
    }
    for (key, _) in children {
        out.extend_from_slice(key.as_ref());
    }
}

fn put_header(out: &mut Vec<u8>, id: u64, flags: u16, count: usize, overflow: u32) {
    let count = u16::try_from(count).expect("a page holds fewer elements");
    out.extend_from_slice(&id.to_le_bytes());
    out.extend_from_slice(&flags.to_le_bytes());
    out.extend_from_slice(&count.to_le_bytes());
    out.extend_from_slice(&overflow.to_le_bytes());
}

/// How many pages a node of this size takes.
pub(crate) fn pages_of(bytes: u64) -> u64 {
    bytes.div_ceil(PAGE_BYTES as u64)
}

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, &byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_meta_checksum_is_the_one_that_etcd_computes() {
        // As a fresh database has it: root 3, free list 2, 4 pages.
        for (txid, sum) in [(0, 0x0751_6e11_4689_fdee_u64), (1, 0x264c_351a_5179_480f)] {
            let mut bytes = Meta { page_bytes: 4096, root: 3, pages: 4, txid }.encode();
            bytes[32..40].copy_from_slice(&2u64.to_le_bytes());
            let found = fnv1a(&bytes[..56]);
            assert_eq!(found, sum);
        }
    }

    #[test]
    fn a_leaf_is_laid_out_as_etcd_does_it() {
        // An inline page with a tombstone at revision 3 and a put at revision 4.
        let rows = [
            (&b"\0\0\0\0\0\0\0\x03_\0\0\0\0\0\0\0\0t"[..], &b"\x0a\x01a"[..]),
            (b"\0\0\0\0\0\0\0\x04_\0\0\0\0\0\0\0\0", b"\x0a\x01b\x10\x04\x18\x04\x20\x01\x2a\x012"),
        ];
        let mut out = Vec::new();
        put_leaf(&mut out, 0, 0, 0, &rows);
        assert_eq!(out.len() + BUCKET_BYTES, 114);
        assert_eq!(out[8..16], [2, 0, 2, 0, 0, 0, 0, 0]);
        assert_eq!(out[16..32], [0, 0, 0, 0, 0x20, 0, 0, 0, 0x12, 0, 0, 0, 3, 0, 0, 0]);
        assert_eq!(out[32..48], [0, 0, 0, 0, 0x25, 0, 0, 0, 0x11, 0, 0, 0, 0x0c, 0, 0, 0]);
    }
}
