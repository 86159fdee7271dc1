//! The first pass: from the sizes of the rows to the number of pages.
//!
//! A bucket's tree stands in the file in post-order: the leaves of a branch, then the branch; the
//! bucket's root is the last of its pages. So a page's children are always known when it is written,
//! and only one branch per level is under construction.
//!
//! ```text
//!  page   2 3 4  5   6 7 8  9   10
//!         L L L  B   L L L  B   B (root)
//! ```
//!
//! The shape above the leaves follows from their number alone: the children of a level are dealt out
//! evenly, so that no branch is left with a single child (etcd's rebalancing trips over one).

use crate::page::{BUCKET_BYTES, ELEMENT_BYTES, HEADER_BYTES, PAGE_BYTES, pages_of};

/// Leaves are filled to about nine tenths, as etcd fills them: the first changes need no split.
pub(crate) const LEAF_BYTES: u64 = PAGE_BYTES as u64 * 9 / 10;
/// Children of a branch. With revision keys this many fill a page to about five sixths.
pub(crate) const FANOUT: u64 = 100;
/// A smaller bucket lives within the root page. Ten of this size still fit there.
pub(crate) const INLINE_BYTES: u64 = PAGE_BYTES as u64 / 16;
/// The two meta pages.
pub(crate) const FIRST_PAGE: u64 = 2;

/// Takes the sizes of all rows, bucket by bucket.
#[derive(Default)]
pub struct Planner {
    buckets: Vec<BucketPlan>,
    leaf: Leaf,
}

/// Where everything will stand.
#[derive(Clone, Debug)]
pub struct Layout {
    pub(crate) buckets: Vec<BucketPlan>,
    pub(crate) pages: u64,
    pub(crate) root_pages: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct BucketPlan {
    pub name: String,
    pub rows: u64,
    /// The bytes of all rows in one leaf, header included.
    bytes: u64,
    leaf_pages: u64,
    /// The length of each leaf's first key: what the branches will be made of.
    first_keys: Vec<u16>,
}

/// The leaf under construction. Both passes decide by it where a leaf ends.
#[derive(Default)]
pub(crate) struct Leaf {
    bytes: u64,
}

impl Leaf {
    /// Whether a row still belongs into this leaf.
    pub fn takes(&self, row_bytes: u64) -> bool {
        self.bytes == 0 || self.bytes + row_bytes <= LEAF_BYTES
    }

    pub fn add(&mut self, row_bytes: u64) {
        self.bytes = self.bytes.max(HEADER_BYTES as u64) + row_bytes;
    }

    /// Ends the leaf; how many pages it takes.
    pub fn end(&mut self) -> u64 {
        pages_of(std::mem::take(&mut self.bytes))
    }
}

pub(crate) fn row_bytes(key_bytes: usize, value_bytes: usize) -> u64 {
    (ELEMENT_BYTES + key_bytes + value_bytes) as u64
}

impl Planner {
    pub fn new() -> Planner {
        Planner::default()
    }

    /// Begins a bucket. Names come in byte order.
    pub fn bucket(&mut self, name: &str) {
        self.end_bucket();
        let before = self.buckets.last().map(|bucket| bucket.name.as_str());
        assert!(before.is_none_or(|before| before < name), "buckets come in byte order");
        self.buckets.push(BucketPlan {
            name: name.to_string(),
            rows: 0,
            bytes: HEADER_BYTES as u64,
            leaf_pages: 0,
            first_keys: Vec::new(),
        });
    }

    /// The next row of the bucket, by its sizes. Keys have 1 to 32768 bytes.
    pub fn row(&mut self, key_bytes: usize, value_bytes: usize) {
        let bucket = self.buckets.last_mut().expect("a row belongs to a bucket");
        let first_key = u16::try_from(key_bytes).expect("a key has at most 32768 bytes");
        let row_bytes = row_bytes(key_bytes, value_bytes);
        if !self.leaf.takes(row_bytes) {
            bucket.leaf_pages += self.leaf.end();
        }
        if self.leaf.bytes == 0 {
            bucket.first_keys.push(first_key);
        }
        self.leaf.add(row_bytes);
        bucket.rows += 1;
        bucket.bytes += row_bytes;
    }

    pub fn finish(mut self) -> Layout {
        self.end_bucket();
        let buckets = self.buckets;
        let in_root = |bucket: &BucketPlan| {
            let page = if bucket.is_inline() { bucket.bytes as usize } else { 0 };
            row_bytes(bucket.name.len(), BUCKET_BYTES + page)
        };
        let root_bytes = HEADER_BYTES as u64 + buckets.iter().map(in_root).sum::<u64>();
        let root_pages = pages_of(root_bytes);
        let bucket_pages: u64 = buckets.iter().map(BucketPlan::pages).sum();
        Layout { buckets, pages: FIRST_PAGE + bucket_pages + root_pages, root_pages }
    }

    fn end_bucket(&mut self) {
        if let Some(bucket) = self.buckets.last_mut() {
            bucket.leaf_pages += self.leaf.end();
        }
    }
}

impl Layout {
    /// The length of the file.
    pub fn bytes(&self) -> u64 {
        self.pages * PAGE_BYTES as u64
    }
}

impl BucketPlan {
    pub fn is_inline(&self) -> bool {
        self.bytes <= INLINE_BYTES
    }

    pub fn leaves(&self) -> u64 {
        self.first_keys.len() as u64
    }

    /// The pages of the bucket's own.
    fn pages(&self) -> u64 {
        if self.is_inline() {
            return 0;
        }
        let mut pages = self.leaf_pages;
        let mut keys = self.first_keys.clone();
        while keys.len() > 1 {
            let mut above = Vec::new();
            let mut left = &keys[..];
            for children in groups(keys.len() as u64) {
                let (group, rest) = left.split_at(children as usize);
                let key_bytes: u64 = group.iter().map(|&bytes| u64::from(bytes)).sum();
                pages += pages_of(branch_bytes(children, key_bytes));
                above.push(group[0]);
                left = rest;
            }
            keys = above;
        }
        pages
    }
}

/// How the children of a level are dealt out to branches: evenly, at most [`FANOUT`] each.
pub(crate) fn groups(children: u64) -> impl Iterator<Item = u64> {
    let groups = children.div_ceil(FANOUT);
    (0..groups).map(move |place| children / groups + u64::from(place < children % groups))
}

pub(crate) fn branch_bytes(children: u64, key_bytes: u64) -> u64 {
    HEADER_BYTES as u64 + children * ELEMENT_BYTES as u64 + key_bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_branch_has_a_single_child() {
        for children in (2..1000).chain((1000..1_000_000).step_by(99_991)) {
            let groups: Vec<_> = groups(children).collect();
            assert_eq!(groups.iter().sum::<u64>(), children);
            assert!(groups.iter().all(|&size| (2..=FANOUT).contains(&size)), "{children}");
        }
    }
}
