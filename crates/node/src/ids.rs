//! Request ids: unique over the members of a cluster and over restarts of a member.
//!
//! The top 16 bits come from the member, the next 40 from the moment it started. The rest counts,
//! and several counters share the space: each *desk* (whoever waits for answers) draws from its
//! own residue class, so that an id alone says whose it is, without a table that all would lock.

/// Draws the ids of one desk.
#[derive(Clone, Debug)]
pub struct Ids {
    next: u64,
    stride: u64,
}

/// The ids of one process, and which desk an id belongs to.
#[derive(Clone, Copy, Debug)]
pub struct IdSpace {
    first: u64,
    desks: u64,
}

impl IdSpace {
    pub fn new(member_id: u64, start_unix_ms: u64, desks: usize) -> IdSpace {
        assert!(desks > 0, "somebody must wait for answers");
        let first = (member_id & 0xffff) << 48 | (start_unix_ms & ((1 << 40) - 1)) << 8;
        IdSpace { first, desks: desks as u64 }
    }

    pub fn ids(&self, desk: usize) -> Ids {
        // The very first id is left out: 0 means "nobody".
        Ids { next: self.first + self.desks + desk as u64, stride: self.desks }
    }

    pub fn desk_of(&self, id: u64) -> usize {
        (id.wrapping_sub(self.first) % self.desks) as usize
    }
}

impl Ids {
    pub fn draw(&mut self) -> u64 {
        let id = self.next;
        self.next = id.wrapping_add(self.stride);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn desks_draw_from_disjoint_ids_and_are_found_again() {
        let space = IdSpace::new(0x8e9e_05c5_2164_694d, 1_700_000_000_123, 3);
        let mut seen = std::collections::BTreeSet::new();
        for desk in 0..3 {
            let mut ids = space.ids(desk);
            for _ in 0..100 {
                let id = ids.draw();
                assert_eq!(space.desk_of(id), desk);
                assert_eq!(id >> 48, 0x694d);
                assert!(seen.insert(id));
            }
        }
    }
}
