//! How many clients may be connected at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Room for a number of connections, at all desks together. Who finds none waits in the system's
/// queue until somebody leaves, as with etcd.
#[derive(Debug)]
pub struct Seats {
    free: AtomicUsize,
}

/// A place that one connection has, until it is dropped.
#[derive(Debug)]
pub struct Seat(Arc<Seats>);

impl Seats {
    pub fn new(count: usize) -> Arc<Seats> {
        Arc::new(Seats { free: AtomicUsize::new(count) })
    }

    pub fn take(self: &Arc<Seats>) -> Option<Seat> {
        let fewer = |free: usize| free.checked_sub(1);
        let taken = self.free.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fewer);
        taken.ok().map(|_| Seat(self.clone()))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.free.fetch_add(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seat_is_free_again_when_its_connection_is_gone() {
        let seats = Seats::new(2);
        let first = seats.take();
        let second = seats.take();
        assert!(first.is_some() && second.is_some() && seats.take().is_none());
        drop(first);
        assert!(seats.take().is_some());
    }
}
