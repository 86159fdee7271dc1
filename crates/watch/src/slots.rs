//! A table of things that are named by small numbers, given out again once they are free.

use std::ops::{Index, IndexMut};

/// The place of a thing in its table. Good until the thing is removed.
pub type Slot = u32;

pub struct Slots<T> {
    places: Vec<Option<T>>,
    free: Vec<Slot>,
}

impl<T> Slots<T> {
    pub fn new() -> Slots<T> {
        Slots { places: Vec::new(), free: Vec::new() }
    }

    pub fn insert(&mut self, thing: T) -> Slot {
        match self.free.pop() {
            Some(slot) => {
                self.places[slot as usize] = Some(thing);
                slot
            }
            None => {
                let slot = Slot::try_from(self.places.len()).expect("fewer than 2^32 things");
                self.places.push(Some(thing));
                slot
            }
        }
    }

    pub fn remove(&mut self, slot: Slot) -> T {
        let thing = self.places[slot as usize].take().expect("the slot removed is in use");
        self.free.push(slot);
        thing
    }

    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// The slots in use, in order.
    pub fn slots(&self) -> impl Iterator<Item = Slot> + '_ {
        (0..).zip(&self.places).filter(|(_, place)| place.is_some()).map(|(slot, _)| slot)
    }
}

impl<T> Index<Slot> for Slots<T> {
    type Output = T;

    fn index(&self, slot: Slot) -> &T {
        self.places[slot as usize].as_ref().expect("the slot is in use")
    }
}

impl<T> IndexMut<Slot> for Slots<T> {
    fn index_mut(&mut self, slot: Slot) -> &mut T {
        self.places[slot as usize].as_mut().expect("the slot is in use")
    }
}
