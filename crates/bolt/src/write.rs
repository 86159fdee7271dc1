//! The second pass: pages, front to back.

use crate::page::{self, BUCKET_BYTES, IS_BUCKET, Meta, PAGE_BYTES, pages_of};
use crate::plan::{FIRST_PAGE, Layout, Leaf, branch_bytes, groups, row_bytes};
use bytes::Bytes;

/// Where the rows come from: the same ones whose sizes the [`Layout`] was planned with.
pub trait Source {
    type Error;
    /// The next row of a bucket, in key order; `None` at its end. Buckets are asked for in byte order,
    /// each until its end.
    fn next_row(&mut self, bucket: &str) -> Result<Option<(Bytes, Bytes)>, Self::Error>;
}

#[derive(Debug, thiserror::Error)]
pub enum WriteError<E> {
    #[error(transparent)]
    Source(E),
    #[error("bucket {bucket:?}: the rows are not those that the database was planned with")]
    Changed { bucket: String },
}

/// Yields a database in chunks of a few pages.
pub struct Writer<S> {
    source: S,
    layout: Layout,
    /// The bucket being written, and its tree.
    at: usize,
    tree: Tree,
    next_page: u64,
    /// Each bucket's value in the root leaf.
    values: Vec<Vec<u8>>,
    out: Vec<u8>,
    done: bool,
}

/// What of a bucket's tree is under construction.
#[derive(Default)]
struct Tree {
    leaf: Leaf,
    rows: Vec<(Bytes, Bytes)>,
    rows_seen: u64,
    leaves_seen: u64,
    levels: Vec<Level>,
    root: u64,
}

/// A branch under construction, and the sizes of those of its level that follow.
struct Level {
    children: Vec<(Bytes, u64)>,
    groups: Box<dyn Iterator<Item = u64> + Send>,
    group: u64,
}

/// Chunks have at least this many bytes, but for the last.
const CHUNK_BYTES: usize = 32 << 10;

impl<S: Source> Writer<S> {
    pub fn new(layout: Layout, source: S) -> Writer<S> {
        let mut out = Vec::new();
        // As etcd does when it copies a database: both metas, the first one newer.
        for (id, txid) in [(0, 2), (1, 1)] {
            let (pages, root) = (layout.pages, layout.pages - layout.root_pages);
            let meta = Meta { page_bytes: PAGE_BYTES as u32, root, pages, txid };
            page::put_meta(&mut out, id, &meta);
        }
        let tree = Tree::begin(&layout, 0);
        let (at, next_page, values) = (0, FIRST_PAGE, Vec::new());
        Writer { source, layout, at, tree, next_page, values, out, done: false }
    }

    /// The next bytes of the file; `None` at its end. Nothing can be written after an error.
    pub fn next_chunk(&mut self) -> Result<Option<Bytes>, WriteError<S::Error>> {
        while self.out.len() < CHUNK_BYTES && !self.done {
            self.step()?;
        }
        let chunk = std::mem::take(&mut self.out);
        Ok((!chunk.is_empty()).then(|| chunk.into()))
    }

    fn step(&mut self) -> Result<(), WriteError<S::Error>> {
        let Some(bucket) = self.layout.buckets.get(self.at) else {
            self.put_root();
            self.done = true;
            return Ok(());
        };
        let row = self.source.next_row(&bucket.name).map_err(WriteError::Source)?;
        match row {
            Some((key, value)) => {
                if !self.tree.leaf.takes(row_bytes(key.len(), value.len())) {
                    self.put_leaf()?;
                }
                self.tree.add(key, value);
            }
            None => self.end_bucket()?,
        }
        Ok(())
    }

    fn end_bucket(&mut self) -> Result<(), WriteError<S::Error>> {
        let bucket = &self.layout.buckets[self.at];
        if self.tree.rows_seen != bucket.rows {
            return Err(self.changed());
        }
        let mut value;
        if bucket.is_inline() {
            value = vec![0; BUCKET_BYTES];
            page::put_leaf(&mut value, 0, 0, 0, &self.tree.rows);
        } else {
            self.put_leaf()?;
            let bucket = &self.layout.buckets[self.at];
            if self.tree.leaves_seen != bucket.leaves() {
                return Err(self.changed());
            }
            value = self.tree.root.to_le_bytes().to_vec();
            value.resize(BUCKET_BYTES, 0);
        }
        self.values.push(value);
        self.at += 1;
        self.tree = Tree::begin(&self.layout, self.at);
        Ok(())
    }

    /// Writes the leaf under construction, and the branches that it completes.
    fn put_leaf(&mut self) -> Result<(), WriteError<S::Error>> {
        let bucket = &self.layout.buckets[self.at];
        if bucket.is_inline() || self.tree.leaves_seen == bucket.leaves() {
            return Err(self.changed());
        }
        let pages = self.tree.leaf.end();
        let rows = std::mem::take(&mut self.tree.rows);
        let id = self.put_page(pages, |out, id, overflow| {
            page::put_leaf(out, id, overflow, 0, &rows);
        });
        self.tree.leaves_seen += 1;
        let (first_key, _) = rows.into_iter().next().expect("a leaf has rows");
        self.tree.root = id;
        self.put_branches((first_key, id));
        Ok(())
    }

    fn put_branches(&mut self, mut child: (Bytes, u64)) {
        for at in 0..self.tree.levels.len() {
            let level = &mut self.tree.levels[at];
            level.children.push(child);
            if (level.children.len() as u64) < level.group {
                return;
            }
            level.group = level.groups.next().unwrap_or(0);
            let children = std::mem::take(&mut level.children);
            let key_bytes = children.iter().map(|(key, _)| key.len() as u64).sum();
            let pages = pages_of(branch_bytes(children.len() as u64, key_bytes));
            let id = self.put_page(pages, |out, id, overflow| {
                page::put_branch(out, id, overflow, &children);
            });
            let (first_key, _) = children.into_iter().next().expect("a branch has children");
            self.tree.root = id;
            child = (first_key, id);
        }
    }

    /// The leaf that all buckets hang from: the last page.
    fn put_root(&mut self) {
        let values = std::mem::take(&mut self.values);
        let names = self.layout.buckets.iter().map(|bucket| bucket.name.clone());
        let rows: Vec<_> = names.zip(values).collect();
        let id = self.put_page(self.layout.root_pages, |out, id, overflow| {
            page::put_leaf(out, id, overflow, IS_BUCKET, &rows);
        });
        assert_eq!(id + self.layout.root_pages, self.layout.pages, "the pages were planned");
    }

    /// Writes one node at the next free page, and returns where.
    fn put_page(&mut self, pages: u64, put: impl FnOnce(&mut Vec<u8>, u64, u32)) -> u64 {
        let (id, start) = (self.next_page, self.out.len());
        let overflow = u32::try_from(pages - 1).expect("a value is below 2 GiB");
        put(&mut self.out, id, overflow);
        self.next_page += pages;
        let bytes = pages as usize * PAGE_BYTES;
        assert!(self.out.len() <= start + bytes, "a node fits the pages that it is given");
        self.out.resize(start + bytes, 0);
        id
    }

    fn changed(&self) -> WriteError<S::Error> {
        WriteError::Changed { bucket: self.layout.buckets[self.at].name.clone() }
    }
}

impl Tree {
    fn begin(layout: &Layout, at: usize) -> Tree {
        let mut tree = Tree::default();
        let mut children = layout.buckets.get(at).map_or(0, |bucket| bucket.leaves());
        while children > 1 {
            let mut groups = groups(children);
            children = children.div_ceil(crate::plan::FANOUT);
            let group = groups.next().expect("a level has branches");
            let groups = Box::new(groups);
            tree.levels.push(Level { children: Vec::new(), groups, group });
        }
        tree
    }

    fn add(&mut self, key: Bytes, value: Bytes) {
        self.leaf.add(row_bytes(key.len(), value.len()));
        self.rows_seen += 1;
        self.rows.push((key, value));
    }
}
