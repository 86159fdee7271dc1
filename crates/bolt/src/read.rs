//! Reading a database, without trusting it.

use crate::page::{
    BRANCH, BUCKET_BYTES, ELEMENT_BYTES, HEADER_BYTES, IS_BUCKET, LEAF, META_BYTES, Meta, u16_at,
    u32_at, u64_at,
};
use bytes::Bytes;
use std::io;

/// A file, or bytes that stand for one.
pub trait ReadAt {
    /// Fills `buf` from an offset, or fails.
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()>;
    fn bytes(&self) -> io::Result<u64>;
}

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("this is not an etcd database: {0}")]
    NotADatabase(&'static str),
    #[error(
        "page {page} of the database is damaged ({what}); use another backup, or one taken anew"
    )]
    Damaged { page: u64, what: &'static str },
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// An open database.
pub struct Database<R> {
    file: R,
    page_bytes: u64,
    pages: u64,
    root: u64,
}

/// The rows of a bucket, in key order.
pub struct Rows<'a, R> {
    database: &'a Database<R>,
    stack: Vec<(Node, usize)>,
    /// Every page has one parent: whoever meets more pages than there are walks in a circle.
    pages_left: u64,
    last_key: Option<Bytes>,
    failed: bool,
}

/// A page in memory, its overflow included.
struct Node {
    page: u64,
    is_leaf: bool,
    count: usize,
    bytes: Bytes,
}

impl<R: ReadAt> Database<R> {
    /// Opens a database. What follows its pages (a snapshot's checksum, unused space) is left alone.
    pub fn open(file: R) -> Result<Database<R>, ReadError> {
        let bytes = file.bytes()?;
        let meta = newest_meta(&file, bytes)?;
        let page_bytes = u64::from(meta.page_bytes);
        let total = meta.pages.checked_mul(page_bytes).filter(|&total| total <= bytes);
        if total.is_none() {
            return Err(ReadError::NotADatabase("the file is shorter than its pages"));
        }
        Ok(Database { file, page_bytes, pages: meta.pages, root: meta.root })
    }

    /// The length of all pages in use.
    pub fn bytes(&self) -> u64 {
        self.pages * self.page_bytes
    }

    /// The names of all buckets, in order.
    pub fn buckets(&self) -> Result<Vec<Bytes>, ReadError> {
        let mut names = Vec::new();
        let mut walk = self.walk(self.node(self.root)?);
        while let Some((flags, name, _)) = walk.step()? {
            if flags & IS_BUCKET != 0 {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// The rows of a bucket; `None` if there is no such bucket.
    pub fn rows(&self, bucket: impl AsRef<[u8]>) -> Result<Option<Rows<'_, R>>, ReadError> {
        let mut walk = self.walk(self.node(self.root)?);
        while let Some((flags, name, value)) = walk.step()? {
            if flags & IS_BUCKET == 0 || name != bucket.as_ref() {
                continue;
            }
            let damaged = |what| ReadError::Damaged { page: self.root, what };
            if value.len() < BUCKET_BYTES {
                return Err(damaged("a bucket without a root"));
            }
            let node = match u64_at(&value, 0) {
                0 => Node::parse(self.root, value.slice(BUCKET_BYTES..))?,
                root => self.node(root)?,
            };
            return Ok(Some(self.walk(node)));
        }
        Ok(None)
    }

    fn walk(&self, node: Node) -> Rows<'_, R> {
        let stack = vec![(node, 0)];
        Rows { database: self, stack, pages_left: self.pages, last_key: None, failed: false }
    }

    /// Reads a page with all that belongs to it.
    fn node(&self, page: u64) -> Result<Node, ReadError> {
        let damaged = |what| ReadError::Damaged { page, what };
        if page < 2 || page >= self.pages {
            return Err(damaged("there is no such page"));
        }
        let offset = page * self.page_bytes;
        let mut header = [0; HEADER_BYTES];
        self.file.read_exact_at(&mut header, offset)?;
        if u64_at(&header, 0) != page {
            return Err(damaged("its number is another"));
        }
        let pages = u64::from(u32_at(&header, 12)) + 1;
        if pages > self.pages - page {
            return Err(damaged("it goes on beyond the end of the file"));
        }
        let mut bytes = vec![0; (pages * self.page_bytes) as usize];
        self.file.read_exact_at(&mut bytes, offset)?;
        Node::parse(page, bytes.into())
    }
}

impl<R: ReadAt> Iterator for Rows<'_, R> {
    type Item = Result<(Bytes, Bytes), ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let step = self.step();
        self.failed = step.is_err();
        step.map(|row| row.map(|(_, key, value)| (key, value))).transpose()
    }
}

impl<R: ReadAt> Rows<'_, R> {
    /// The next element of a leaf: flags, key and value.
    fn step(&mut self) -> Result<Option<(u32, Bytes, Bytes)>, ReadError> {
        while let Some((node, at)) = self.stack.last_mut() {
            if *at == node.count {
                self.stack.pop();
                continue;
            }
            let place = *at;
            *at += 1;
            let damaged = |what| ReadError::Damaged { page: node.page, what };
            if node.is_leaf {
                let (flags, key, value) =
                    node.row(place).ok_or_else(|| damaged("a row lies outside of it"))?;
                if self.last_key.as_ref().is_some_and(|last| *last >= key) {
                    return Err(damaged("its keys are not in order"));
                }
                self.last_key = Some(key.clone());
                return Ok(Some((flags, key, value)));
            }
            let child = node.child(place);
            self.pages_left =
                self.pages_left.checked_sub(1).ok_or_else(|| damaged("it leads in a circle"))?;
            let child = self.database.node(child)?;
            self.stack.push((child, 0));
        }
        Ok(None)
    }
}

impl Node {
    fn parse(page: u64, bytes: Bytes) -> Result<Node, ReadError> {
        let damaged = |what| ReadError::Damaged { page, what };
        if bytes.len() < HEADER_BYTES {
            return Err(damaged("it is shorter than its header"));
        }
        let (flags, count) = (u16_at(&bytes, 8), usize::from(u16_at(&bytes, 10)));
        let is_leaf = match flags {
            LEAF => true,
            BRANCH => false,
            _ => return Err(damaged("it is neither a leaf nor a branch")),
        };
        if HEADER_BYTES + count * ELEMENT_BYTES > bytes.len() {
            return Err(damaged("it has more elements than space"));
        }
        Ok(Node { page, is_leaf, count, bytes })
    }

    /// A leaf's element. `None`: it lies outside of the page.
    fn row(&self, place: usize) -> Option<(u32, Bytes, Bytes)> {
        let at = HEADER_BYTES + place * ELEMENT_BYTES;
        let [flags, pos, key_bytes, value_bytes] =
            [0, 4, 8, 12].map(|word| u32_at(&self.bytes, at + word));
        let start = at.checked_add(pos as usize)?;
        let middle = start.checked_add(key_bytes as usize)?;
        let end = middle.checked_add(value_bytes as usize)?;
        (end <= self.bytes.len()).then(|| {
            // Copies: a row must not keep its whole page in memory.
            let key = Bytes::copy_from_slice(&self.bytes[start..middle]);
            (flags, key, Bytes::copy_from_slice(&self.bytes[middle..end]))
        })
    }

    /// The page that a branch's element leads to.
    fn child(&self, place: usize) -> u64 {
        u64_at(&self.bytes, HEADER_BYTES + place * ELEMENT_BYTES + 8)
    }
}

/// The valid meta with the newer transaction. The second one stands at a place that depends on the
/// page size, which only a good first one tells; so all are tried.
fn newest_meta(file: &impl ReadAt, bytes: u64) -> Result<Meta, ReadError> {
    let places = std::iter::once(0).chain((0..15).map(|shift| 1024u64 << shift));
    let mut newest: Option<Meta> = None;
    for place in places {
        let end = place + (HEADER_BYTES + META_BYTES) as u64;
        if end > bytes {
            break;
        }
        let mut meta = [0; META_BYTES];
        file.read_exact_at(&mut meta, place + HEADER_BYTES as u64)?;
        let Some(meta) = Meta::decode(&meta) else { continue };
        let page_bytes = u64::from(meta.page_bytes);
        let sane = page_bytes.is_power_of_two() && (1024..=1 << 24).contains(&page_bytes);
        // Anywhere but at the first two pages these bytes are somebody's value.
        let in_place = place == 0 || place == page_bytes;
        if sane && in_place && newest.is_none_or(|newest| newest.txid < meta.txid) {
            newest = Some(meta);
        }
    }
    newest.ok_or(ReadError::NotADatabase("no valid meta page"))
}

impl ReadAt for [u8] {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let start = usize::try_from(offset).ok();
        let part = start.and_then(|start| self.get(start..start.checked_add(buf.len())?));
        buf.copy_from_slice(part.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }
}

impl ReadAt for Vec<u8> {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.as_slice().read_exact_at(buf, offset)
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }
}

impl ReadAt for Bytes {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        (**self).read_exact_at(buf, offset)
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }
}

impl ReadAt for std::fs::File {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(self, buf, offset)
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}
