//! The names of segments: `<sequence>-<first index>.wal`, both in hex.

use crate::{Error, Result, at};
use disk::Disk;
use std::fmt;
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    /// Counts up from 0, without gaps.
    pub sequence: u64,
    /// The index that the first entry written to it was expected to have.
    pub index: u64,
}

impl Name {
    pub fn path(self, dir: &Path) -> PathBuf {
        dir.join(self.to_string())
    }

    fn parse(name: &str) -> Option<Name> {
        let (sequence, index) = name.strip_suffix(".wal")?.split_once('-')?;
        let number = |hex: &str| {
            let digits = hex.len() == 16 && hex.bytes().all(|b| b.is_ascii_hexdigit());
            digits.then(|| u64::from_str_radix(hex, 16).ok())?
        };
        Some(Name { sequence: number(sequence)?, index: number(index)? })
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}-{:016x}.wal", self.sequence, self.index)
    }
}

/// The segments of a directory in order; none if there is no such directory.
pub fn list(disk: &dyn Disk, dir: &Path) -> Result<Vec<Name>> {
    if !disk.exists(dir).map_err(at(dir))? {
        return Ok(Vec::new());
    }
    let names = disk.list(dir).map_err(at(dir))?;
    let mut names: Vec<Name> = names.iter().filter_map(|name| Name::parse(name)).collect();
    names.sort();
    Ok(names)
}

/// The position of the segment from which what follows `index` can be read.
pub fn position(names: &[Name], dir: &Path, index: u64) -> Result<usize> {
    let start = names
        .iter()
        .rposition(|name| name.index <= index)
        .ok_or_else(|| Error::Removed { dir: dir.to_path_buf(), index })?;
    for pair in names[start..].windows(2) {
        if pair[1].sequence != pair[0].sequence + 1 {
            let missing = pair[0].sequence + 1;
            return Err(Error::SegmentMissing { dir: dir.to_path_buf(), missing });
        }
    }
    Ok(start)
}
