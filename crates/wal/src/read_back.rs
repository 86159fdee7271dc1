//! Reading entries back that are no longer in memory, for a follower that is slow.

use crate::log::Wal;
use crate::reader::{Reader, Step};
use crate::record::Kind;
use crate::{Error, Result, at};
use bytes::Bytes;
use raftpb::Entry;

impl Wal {
    /// Reads entries back: from index `from` to before `to`, as many as fit into `bytes_max`, but
    /// at least one.
    pub fn read_entries(&self, from: u64, to: u64, bytes_max: usize) -> Result<Vec<Entry>> {
        let mut entries = Vec::new();
        let mut next = from;
        let mut bytes = 0;
        let to = to.min(self.places.end());
        while next < to {
            let Some((place, until)) = self.places.find(next) else {
                return Err(Error::Removed { dir: self.dir.clone(), index: next });
            };
            let held = self.held.iter().find(|held| held.name.sequence == place.sequence);
            let held = held.expect("places are forgotten together with their segment");
            let path = held.name.path(&self.dir);
            let mut reader =
                Reader::new(held.file.clone(), place.offset, place.crc).map_err(at(&path))?;
            while next < until.min(to) {
                let offset = reader.offset;
                let damaged = |what| Error::Damaged { segment: path.clone(), offset, what };
                let data = match reader.step().map_err(at(&path))? {
                    Step::Record(Kind::Entry, data) => Bytes::copy_from_slice(data),
                    Step::Record(..) => continue,
                    Step::Torn(what) | Step::Damaged(what) => return Err(damaged(what)),
                    Step::End => return Err(damaged("the end before an entry that was written")),
                };
                let entry = Entry::decode(&data).map_err(|_| damaged("a malformed entry"))?;
                if entry.index < next {
                    continue;
                }
                if entry.index > next {
                    return Err(damaged("an entry out of its order"));
                }
                bytes += entry.data.len();
                if bytes > bytes_max && !entries.is_empty() {
                    return Ok(entries);
                }
                entries.push(entry);
                next += 1;
            }
        }
        Ok(entries)
    }

    /// The lowest index that [`Wal::read_entries`] finds.
    pub fn first_index(&self) -> u64 {
        self.places.first()
    }
}
