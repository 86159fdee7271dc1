//! Hashes over the stored rows, by which members find out that they differ.
//!
//! The engine keeps the checksum of every row, so a hash over all of history combines those and
//! reads no values.

use std::collections::VecDeque;

use engine::{Bucket, Engine, Revision, RowSum};

use crate::applied::ReadError;
use crate::crc;
use crate::index::Rev;
use crate::range::CHUNK_KEYS;
use crate::shared::Shared;

/// What HashKV answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashKv {
    pub hash: u32,
    /// History below this was left out; -1: nothing was.
    pub compact_revision: i64,
    /// The revision that was hashed.
    pub hash_revision: i64,
}

/// The hashes that compactions left behind: how members compare what they have just dropped.
#[derive(Debug, Default)]
pub(crate) struct CompactionHashes(VecDeque<HashKv>);

const COMPACTION_HASHES_MAX: usize = 10;

impl CompactionHashes {
    pub fn remember(&mut self, hash: HashKv) {
        self.0.push_back(hash);
        if self.0.len() > COMPACTION_HASHES_MAX {
            self.0.pop_front();
        }
    }

    pub fn get(&self, revision: i64) -> Option<HashKv> {
        self.0.iter().find(|hash| hash.hash_revision == revision).copied()
    }

    /// Newest first.
    pub fn list(&self) -> Vec<HashKv> {
        self.0.iter().rev().copied().collect()
    }
}

/// A hash in the making: the bucket's name, then every row that counts, in order.
#[derive(Clone, Copy)]
pub(crate) struct RowHash(u32);

impl RowHash {
    pub fn new() -> RowHash {
        RowHash(crc32c::crc32c(b"key"))
    }

    /// Goes on from an earlier `value`.
    pub fn resume(hash: u32) -> RowHash {
        RowHash(hash)
    }

    pub fn add(&mut self, row: &RowSum) {
        let bytes = Revision::row_key_bytes(row.tombstone) + row.kv_bytes as usize;
        self.0 = crc::combine(self.0, row.crc, bytes);
    }

    pub fn value(self) -> u32 {
        self.0
    }
}

/// Hashes the store as it was at a revision; 0 is now.
pub(crate) fn hash_kv(shared: &Shared, revision: i64) -> Result<HashKv, ReadError> {
    if let Some(stored) = shared.hashes.lock().get(revision) {
        return Ok(stored);
    }
    loop {
        let compacted = shared.compacted();
        let current = shared.revision();
        if revision > 0 && revision < compacted {
            return Err(api::Error::COMPACTED.into());
        }
        if revision > current {
            return Err(api::Error::FUTURE_REVISION.into());
        }
        let at = if revision == 0 { current } else { revision };
        let hash = hash_rows(shared, at, compacted);
        // A compaction that came between has dropped rows of which we may have missed some.
        if shared.compacted() == compacted {
            return Ok(HashKv { hash, compact_revision: compacted, hash_revision: at });
        }
    }
}

fn hash_rows(shared: &Shared, at: i64, compacted: i64) -> u32 {
    let mut kept: Vec<Rev> = Vec::new();
    let mut keeps_any = false;
    let mut after: Option<Box<[u8]>> = None;
    loop {
        let index = shared.index.read();
        after = index.kept_at(after.as_deref(), at, CHUNK_KEYS, |rev| {
            keeps_any = true;
            // Only rows that compaction has passed are looked for in here.
            if rev.main <= compacted {
                kept.push(rev);
            }
        });
        if after.is_none() {
            break;
        }
    }
    kept.sort_unstable();
    let mut hash = RowHash::new();
    for_each_sum(&*shared.engine, at, |row| {
        let old = row.revision.main <= compacted;
        let dropped = old && keeps_any && kept.binary_search(&row.revision.into()).is_err();
        let tombstone_at_compaction = row.tombstone && row.revision.main == compacted;
        if !dropped && !tombstone_at_compaction {
            hash.add(row);
        }
    });
    hash.value()
}

fn for_each_sum(engine: &dyn Engine, upto: i64, mut visit: impl FnMut(&RowSum)) {
    let mut from = Revision::default();
    loop {
        let sums = engine.sums(from, CHUNK_KEYS);
        for sum in &sums {
            if sum.revision.main > upto {
                return;
            }
            visit(sum);
        }
        let Some(last) = sums.last() else { return };
        from = Revision::new(last.revision.main, last.revision.sub + 1);
    }
}

/// Hashes everything that etcd's database file would hold: each bucket's name and records, but not
/// the records that differ between members by right.
pub(crate) fn hash_all(engine: &dyn Engine) -> engine::Result<u32> {
    const BY_NAME: [(&str, Option<Bucket>); 10] = [
        ("alarm", Some(Bucket::Alarm)),
        ("auth", Some(Bucket::Auth)),
        ("authRoles", Some(Bucket::AuthRoles)),
        ("authUsers", Some(Bucket::AuthUsers)),
        ("cluster", Some(Bucket::Cluster)),
        ("key", None),
        ("lease", Some(Bucket::Lease)),
        ("members", Some(Bucket::Members)),
        ("members_removed", Some(Bucket::MembersRemoved)),
        ("meta", Some(Bucket::Meta)),
    ];
    const LOCAL: [&[u8]; 3] = [b"consistent_index", b"term", b"storageVersion"];
    let snapshot = engine.snapshot()?;
    let mut hash = 0;
    for (name, bucket) in BY_NAME {
        hash = crc32c::crc32c_append(hash, name.as_bytes());
        let Some(bucket) = bucket else {
            let mut rows = RowHash(hash);
            let mut from = Revision::default();
            loop {
                let sums = snapshot.sums(from, CHUNK_KEYS);
                sums.iter().for_each(|row| rows.add(row));
                let Some(last) = sums.last() else { break };
                from = Revision::new(last.revision.main, last.revision.sub + 1);
            }
            hash = rows.value();
            continue;
        };
        for (key, value) in snapshot.bucket(bucket) {
            if bucket != Bucket::Meta || !LOCAL.contains(&key.as_ref()) {
                hash = crc32c::crc32c_append(hash, &key);
                hash = crc32c::crc32c_append(hash, &value);
            }
        }
    }
    Ok(hash)
}
