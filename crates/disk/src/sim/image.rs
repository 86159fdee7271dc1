//! A file's content: as written, as durable, and what stands in between.

use std::collections::BTreeMap;
use std::sync::Arc;

pub const SECTOR_BYTES: u64 = 512;

type Sector = Arc<[u8; SECTOR_BYTES as usize]>;

#[derive(Default)]
pub struct Content {
    written: Image,
    durable: Image,
    /// Each sector's versions since the last sync, oldest first.
    sectors: BTreeMap<u64, Vec<Option<Sector>>>,
    /// The lengths since the last sync, oldest first.
    lengths: Vec<u64>,
    /// Space is reserved up to here.
    reserved: u64,
    /// The handle that holds the lock.
    pub lock: Option<u64>,
}

#[derive(Clone, Default)]
struct Image {
    len: u64,
    /// A sector that is missing holds zeros.
    sectors: BTreeMap<u64, Sector>,
}

impl Image {
    fn set(&mut self, number: u64, sector: Option<Sector>) {
        match sector {
            Some(sector) => self.sectors.insert(number, sector),
            None => self.sectors.remove(&number),
        };
    }
}

impl Content {
    pub fn len(&self) -> u64 {
        self.written.len
    }

    pub fn read(&self, buf: &mut [u8], offset: u64) -> usize {
        let len = (self.written.len.saturating_sub(offset)).min(buf.len() as u64) as usize;
        for (number, at, part) in parts(offset, len) {
            match self.written.sectors.get(&number) {
                Some(sector) => {
                    let length = part.len();
                    buf[part].copy_from_slice(&sector[at..at + length]);
                }
                None => buf[part].fill(0),
            }
        }
        len
    }

    pub fn write(&mut self, data: &[u8], offset: u64) {
        for (number, at, part) in parts(offset, data.len()) {
            self.change(number, |sector| sector[at..at + part.len()].copy_from_slice(&data[part]));
        }
        self.grow_to(offset + data.len() as u64);
    }

    pub fn set_len(&mut self, len: u64) {
        if len < self.written.len {
            let edge = len / SECTOR_BYTES;
            let cut: Vec<u64> = self.written.sectors.range(edge..).map(|(&at, _)| at).collect();
            for number in cut {
                if number == edge && !len.is_multiple_of(SECTOR_BYTES) {
                    self.change(number, |sector| sector[(len % SECTOR_BYTES) as usize..].fill(0));
                } else {
                    self.written.set(number, None);
                    self.sectors.entry(number).or_default().push(None);
                }
            }
            self.reserved = self.reserved.min(len);
        }
        if len != self.written.len {
            self.written.len = len;
            self.lengths.push(len);
        }
    }

    pub fn allocate(&mut self, len: u64) {
        self.reserved = self.reserved.max(len);
        self.grow_to(len);
    }

    pub fn sync(&mut self) {
        self.settle(|versions| versions);
    }

    /// Each sector, and the length, becomes durable in one of its versions: `choose` gets their
    /// number and answers 0 for what was durable before, n for the n-th since.
    pub fn settle(&mut self, mut choose: impl FnMut(usize) -> usize) {
        for (number, mut versions) in std::mem::take(&mut self.sectors) {
            if let Some(chosen) = choose(versions.len()).checked_sub(1) {
                self.durable.set(number, versions.swap_remove(chosen));
            }
        }
        let lengths = std::mem::take(&mut self.lengths);
        if let Some(chosen) = choose(lengths.len()).checked_sub(1) {
            self.durable.len = lengths[chosen];
        }
        // Sectors beyond the length are not part of the file, whatever became of them.
        let end = self.durable.len.div_ceil(SECTOR_BYTES);
        self.durable.sectors.split_off(&end);
        if !self.durable.len.is_multiple_of(SECTOR_BYTES)
            && let Some(last) = self.durable.sectors.get_mut(&(end - 1))
        {
            Arc::make_mut(last)[(self.durable.len % SECTOR_BYTES) as usize..].fill(0);
        }
    }

    /// What is durable is now what is read.
    pub fn reread(&mut self) {
        self.written = self.durable.clone();
        self.reserved = self.reserved.min(self.durable.len);
        self.lock = None;
    }

    /// Changes a sector behind everyone's back.
    pub fn damage(&mut self, offset: u64, f: impl Fn(&mut [u8; SECTOR_BYTES as usize])) {
        let number = offset / SECTOR_BYTES;
        for image in [&mut self.written, &mut self.durable] {
            f(Arc::make_mut(image.sectors.entry(number).or_insert_with(empty)));
        }
    }

    /// The space that the file takes.
    pub fn space(&self) -> u64 {
        let reserved = self.reserved.div_ceil(SECTOR_BYTES);
        let beyond = self.written.sectors.range(reserved..).count() as u64;
        (reserved + beyond) * SECTOR_BYTES
    }

    pub fn space_after_write(&self, len: usize, offset: u64) -> u64 {
        let reserved = self.reserved.div_ceil(SECTOR_BYTES);
        let is_new = |number| number >= reserved && !self.written.sectors.contains_key(&number);
        let new = parts(offset, len).filter(|&(number, ..)| is_new(number)).count() as u64;
        self.space() + new * SECTOR_BYTES
    }

    pub fn space_after_allocate(&self, len: u64) -> u64 {
        let reserved = self.reserved.max(len).div_ceil(SECTOR_BYTES);
        let beyond = self.written.sectors.range(reserved..).count() as u64;
        (reserved + beyond) * SECTOR_BYTES
    }

    fn grow_to(&mut self, len: u64) {
        if len > self.written.len {
            self.written.len = len;
            self.lengths.push(len);
        }
    }

    fn change(&mut self, number: u64, f: impl FnOnce(&mut [u8; SECTOR_BYTES as usize])) {
        let sector = self.written.sectors.entry(number).or_insert_with(empty);
        f(Arc::make_mut(sector));
        self.sectors.entry(number).or_default().push(Some(sector.clone()));
    }
}

fn empty() -> Sector {
    Arc::new([0; SECTOR_BYTES as usize])
}

/// The sectors of a piece of a file: number, where in the sector it begins, and which part of the
/// piece it is.
fn parts(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == len {
            return None;
        }
        let at = offset + done as u64;
        let inside = (at % SECTOR_BYTES) as usize;
        let end = len.min(done + SECTOR_BYTES as usize - inside);
        let part = done..end;
        done = end;
        Some((at / SECTOR_BYTES, inside, part))
    })
}
