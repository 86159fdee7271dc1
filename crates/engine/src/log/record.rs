//! The bytes of a segment: a header, then records.
//!
//! ```text
//! segment header (64 bytes)
//!   0 magic "ALTHSEG1" | 8 sequence | 16 last sequence covered | 24 generation
//!   32 bytes of the head (header and checkpoint) | 40 zeros | 60 CRC-32C of bytes 0..60
//! record
//!   0 kind | 1 codec (0 = plain) | 2 bucket | 3 zero | 4 payload length | 8 payload CRC-32C
//!   12 a (8 bytes) | 20 b (4 bytes) | 24 CRC-32C of bytes 0..24 | 28 payload
//!
//!   kind              a              b     payload
//!   1 row, 2 tombstone  main revision  sub   the KeyValue encoding
//!   3 put             key length           key, value
//!   4 delete          key length           key
//!   5 commit          synced bytes         index, term, revision, compacted, conf state
//! ```
//!
//! All numbers are little-endian. The header's checksum also covers the segment's sequence and the
//! record's offset, so a record that a disk put in the wrong place is not taken for a good one, and a
//! length is trusted only behind a good header. A row's payload checksum covers exactly etcd's row
//! key and the `KeyValue` encoding, so that HashKV can be combined from stored checksums.
//!
//! A commit's "synced bytes" says how much of this segment was durable before the commit was
//! written. It is what tells damage from a torn tail: see `recover`.

use crate::{Bucket, Commit, Revision, RowSum};
use bytes::Bytes;

pub(crate) const SEGMENT_HEADER_BYTES: usize = 64;
pub(crate) const HEADER_BYTES: usize = 28;
const SEGMENT_MAGIC: &[u8; 8] = b"ALTHSEG1";
const COMMIT_FIXED_BYTES: usize = 32;

/// What a segment says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    /// Its place in the sequence of segments.
    pub seq: u64,
    /// The last place it covers: more than `seq` after segments were merged into it.
    pub last_seq: u64,
    /// How often it was rewritten: a hint of an older generation is stale.
    pub generation: u64,
    /// The bytes that were durable before the file got its name: this header, and the checkpoint.
    pub head_bytes: u64,
}

/// One thing that was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    Row { revision: Revision, tombstone: bool, crc: u32, kv: Bytes },
    Put { bucket: Bucket, key: Bytes, value: Bytes },
    Delete { bucket: Bucket, key: Bytes },
    Commit { commit: Commit, synced_bytes: u64 },
}

/// A record's header, verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    kind: u8,
    bucket: u8,
    pub payload_bytes: u32,
    pub crc: u32,
    a: u64,
    b: u32,
}

const ROW: u8 = 1;
const TOMBSTONE: u8 = 2;
const PUT: u8 = 3;
const DELETE: u8 = 4;
const COMMIT: u8 = 5;

impl SegmentHeader {
    pub fn encode(&self) -> [u8; SEGMENT_HEADER_BYTES] {
        let mut out = [0; SEGMENT_HEADER_BYTES];
        out[..8].copy_from_slice(SEGMENT_MAGIC);
        let numbers = [self.seq, self.last_seq, self.generation, self.head_bytes];
        for (place, number) in out[8..40].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        let crc = crc32c::crc32c(&out[..60]);
        out[60..].copy_from_slice(&crc.to_le_bytes());
        out
    }

    pub fn decode(bytes: &[u8; SEGMENT_HEADER_BYTES]) -> Option<SegmentHeader> {
        let good =
            bytes[..8] == *SEGMENT_MAGIC && u32_at(bytes, 60) == crc32c::crc32c(&bytes[..60]);
        good.then(|| SegmentHeader {
            seq: u64_at(bytes, 8),
            last_seq: u64_at(bytes, 16),
            generation: u64_at(bytes, 24),
            head_bytes: u64_at(bytes, 32),
        })
    }
}

impl Record {
    /// The bytes it takes in a segment.
    pub fn bytes(&self) -> u64 {
        match self {
            Record::Row { kv, .. } => row_bytes(kv.len()),
            Record::Put { key, value, .. } => put_bytes(key.len(), value.len()),
            Record::Delete { key, .. } => put_bytes(key.len(), 0),
            Record::Commit { commit, .. } => commit_bytes(commit),
        }
    }

    /// Appends the record to `out`, as it stands at `offset` of segment `seq`.
    pub fn encode(&self, out: &mut Vec<u8>, seq: u64, offset: u64) {
        let start = out.len();
        out.resize(start + HEADER_BYTES, 0);
        let (kind, bucket, a, b) = match self {
            Record::Row { revision, tombstone, kv, .. } => {
                out.extend_from_slice(kv);
                let sub = u32::try_from(revision.sub).expect("a transaction has fewer changes");
                (if *tombstone { TOMBSTONE } else { ROW }, 0, revision.main as u64, sub)
            }
            Record::Put { bucket, key, value } => {
                out.extend_from_slice(key);
                out.extend_from_slice(value);
                (PUT, *bucket as u8, key.len() as u64, 0)
            }
            Record::Delete { bucket, key } => {
                out.extend_from_slice(key);
                (DELETE, *bucket as u8, key.len() as u64, 0)
            }
            Record::Commit { commit, synced_bytes } => {
                let Commit { index, term, revision, compacted, conf_state } = commit;
                for number in [*index, *term, *revision as u64, *compacted as u64] {
                    out.extend_from_slice(&number.to_le_bytes());
                }
                out.extend_from_slice(conf_state);
                (COMMIT, 0, *synced_bytes, 0)
            }
        };
        let payload = &out[start + HEADER_BYTES..];
        let payload_bytes = u32::try_from(payload.len()).expect("a record is below 2 GiB");
        let crc = match self {
            Record::Row { crc, .. } => *crc,
            _ => crc32c::crc32c(payload),
        };
        let header = Header { kind, bucket, payload_bytes, crc, a, b };
        out[start..start + HEADER_BYTES].copy_from_slice(&header.encode(seq, offset));
    }
}

impl Header {
    fn encode(&self, seq: u64, offset: u64) -> [u8; HEADER_BYTES] {
        let mut out = [0; HEADER_BYTES];
        out[0] = self.kind;
        out[2] = self.bucket;
        out[4..8].copy_from_slice(&self.payload_bytes.to_le_bytes());
        out[8..12].copy_from_slice(&self.crc.to_le_bytes());
        out[12..20].copy_from_slice(&self.a.to_le_bytes());
        out[20..24].copy_from_slice(&self.b.to_le_bytes());
        let crc = header_crc(&out, seq, offset);
        out[24..].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// The header at `offset` of segment `seq`; `None` if it is none, or damaged.
    pub fn decode(bytes: &[u8], seq: u64, offset: u64) -> Option<Header> {
        let bytes: &[u8; HEADER_BYTES] = bytes.get(..HEADER_BYTES)?.try_into().ok()?;
        let good = (ROW..=COMMIT).contains(&bytes[0])
            && bytes[1] == 0
            && u32_at(bytes, 24) == header_crc(bytes, seq, offset);
        good.then(|| Header {
            kind: bytes[0],
            bucket: bytes[2],
            payload_bytes: u32_at(bytes, 4),
            crc: u32_at(bytes, 8),
            a: u64_at(bytes, 12),
            b: u32_at(bytes, 20),
        })
    }

    pub fn is_commit(&self) -> bool {
        self.kind == COMMIT
    }

    /// The revision and the tombstone flag, if this is a row.
    pub fn row(&self) -> Option<(Revision, bool)> {
        let revision = Revision::new(self.a as i64, i64::from(self.b));
        matches!(self.kind, ROW | TOMBSTONE).then_some((revision, self.kind == TOMBSTONE))
    }

    /// Whether the payload is the one that was written.
    pub fn fits(&self, payload: &[u8]) -> bool {
        let crc = match self.row() {
            Some((revision, tombstone)) => RowSum::of(revision, tombstone, payload).crc,
            None => crc32c::crc32c(payload),
        };
        crc == self.crc
    }

    /// The record, given a payload that fits. `None`: a record this version does not know.
    pub fn record(&self, payload: &[u8]) -> Option<Record> {
        let split = || {
            let key_bytes = usize::try_from(self.a).ok()?;
            let (key, value) = payload.split_at_checked(key_bytes)?;
            let bucket = *Bucket::ALL.get(usize::from(self.bucket).checked_sub(1)?)?;
            Some((bucket, Bytes::copy_from_slice(key), Bytes::copy_from_slice(value)))
        };
        match self.kind {
            PUT => split().map(|(bucket, key, value)| Record::Put { bucket, key, value }),
            DELETE => split().map(|(bucket, key, _)| Record::Delete { bucket, key }),
            COMMIT if payload.len() >= COMMIT_FIXED_BYTES => {
                let commit = Commit {
                    index: u64_at(payload, 0),
                    term: u64_at(payload, 8),
                    revision: u64_at(payload, 16) as i64,
                    compacted: u64_at(payload, 24) as i64,
                    conf_state: Bytes::copy_from_slice(&payload[COMMIT_FIXED_BYTES..]),
                };
                Some(Record::Commit { commit, synced_bytes: self.a })
            }
            COMMIT => None,
            _ => {
                let (revision, tombstone) = self.row()?;
                let kv = Bytes::copy_from_slice(payload);
                Some(Record::Row { revision, tombstone, crc: self.crc, kv })
            }
        }
    }
}

/// The bytes of a row's record.
pub(crate) fn row_bytes(kv_bytes: usize) -> u64 {
    (HEADER_BYTES + kv_bytes) as u64
}

/// The bytes of a bucket's record.
pub(crate) fn put_bytes(key_bytes: usize, value_bytes: usize) -> u64 {
    (HEADER_BYTES + key_bytes + value_bytes) as u64
}

pub(crate) fn commit_bytes(commit: &Commit) -> u64 {
    (HEADER_BYTES + COMMIT_FIXED_BYTES + commit.conf_state.len()) as u64
}

fn header_crc(bytes: &[u8; HEADER_BYTES], seq: u64, offset: u64) -> u32 {
    let mut covered = [0; 40];
    covered[..24].copy_from_slice(&bytes[..24]);
    covered[24..32].copy_from_slice(&seq.to_le_bytes());
    covered[32..].copy_from_slice(&offset.to_le_bytes());
    crc32c::crc32c(&covered)
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Record> {
        let kv = Bytes::from_static(b"some key value bytes");
        let (revision, bucket) = (Revision::new(77, 3), Bucket::Lease);
        let crc = RowSum::of(revision, true, &kv).crc;
        vec![
            Record::Row { revision, tombstone: true, crc, kv },
            Record::Put { bucket, key: "k".into(), value: "value".into() },
            Record::Delete { bucket, key: "k".into() },
            Record::Commit {
                commit: Commit {
                    index: 9,
                    term: 2,
                    revision: 77,
                    compacted: -1,
                    conf_state: "conf".into(),
                },
                synced_bytes: 4096,
            },
        ]
    }

    #[test]
    fn what_is_written_is_read_back() {
        for record in samples() {
            let mut out = Vec::new();
            record.encode(&mut out, 5, 1000);
            assert_eq!(out.len() as u64, record.bytes());
            let header = Header::decode(&out, 5, 1000).unwrap();
            assert!(header.fits(&out[HEADER_BYTES..]));
            assert_eq!(header.record(&out[HEADER_BYTES..]), Some(record));
        }
    }

    #[test]
    fn every_flipped_bit_and_every_wrong_place_is_noticed() {
        for record in samples() {
            let mut out = Vec::new();
            record.encode(&mut out, 5, 1000);
            assert_eq!(Header::decode(&out, 5, 1001), None, "another offset");
            assert_eq!(Header::decode(&out, 6, 1000), None, "another segment");
            for bit in 0..out.len() * 8 {
                out[bit / 8] ^= 1 << (bit % 8);
                let header = Header::decode(&out, 5, 1000);
                assert!(!header.is_some_and(|h| h.fits(&out[HEADER_BYTES..])), "bit {bit}");
                out[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }
}
