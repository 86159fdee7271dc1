//! Where in the segments an entry stands, roughly.
//!
//! A place is noted every 64 KiB, wherever a segment begins and wherever entries are replaced. From
//! one place to the index of the next, entries stand one after the other with ascending indexes,
//! so a reader goes to the place at or below the index it wants and reads on from there.

const STRIDE_BYTES: u64 = 64 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub index: u64,
    /// The sequence number of the segment.
    pub sequence: u64,
    pub offset: u64,
    /// The running checksum in front of the entry.
    pub crc: u32,
}

pub struct Places {
    /// Ascending by index.
    places: Vec<Place>,
    /// One behind the last entry.
    end: u64,
}

impl Places {
    /// No entries yet; the first one will have the index `end`.
    pub fn new(end: u64) -> Places {
        Places { places: Vec::new(), end }
    }

    /// Takes note of an entry that was written or read at a place.
    pub fn note(&mut self, place: Place) {
        if place.index > self.end {
            // A snapshot took the place of the entries in between; those before it are not wanted.
            self.places.clear();
        } else if place.index < self.end {
            let kept = self.places.partition_point(|kept| kept.index < place.index);
            self.places.truncate(kept);
        }
        let continues = place.index == self.end
            && self.places.last().is_some_and(|last| {
                last.sequence == place.sequence && place.offset < last.offset + STRIDE_BYTES
            });
        if !continues {
            self.places.push(place);
        }
        self.end = place.index + 1;
    }

    /// Forgets the places in segments before this one.
    pub fn forget_before(&mut self, sequence: u64) {
        self.places.retain(|place| place.sequence >= sequence);
    }

    /// The lowest index that can be found.
    pub fn first(&self) -> u64 {
        self.places.first().map_or(self.end, |place| place.index)
    }

    pub fn end(&self) -> u64 {
        self.end
    }

    /// Where to begin for `index`, and the index at which to look for the next place.
    pub fn find(&self, index: u64) -> Option<(Place, u64)> {
        if index >= self.end {
            return None;
        }
        let next = self.places.partition_point(|place| place.index <= index);
        let place = *self.places.get(next.checked_sub(1)?)?;
        Some((place, self.places.get(next).map_or(self.end, |next| next.index)))
    }
}
