//! Letters between threads, fetched by the bundle.
//!
//! Whoever writes wakes the reader only if the box was empty; the reader takes all that is there
//! at once. So a hundred requests that arrive together cost one wake-up, not a hundred.

use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// A box that one thread reads and any number write to.
#[derive(Debug)]
pub struct Inbox<T> {
    letters: Mutex<Letters<T>>,
    arrived: Condvar,
}

#[derive(Debug)]
struct Letters<T> {
    waiting: Vec<T>,
    closed: bool,
}

impl<T> Default for Inbox<T> {
    fn default() -> Self {
        let letters = Letters { waiting: Vec::new(), closed: false };
        Inbox { letters: Mutex::new(letters), arrived: Condvar::new() }
    }
}

impl<T> Inbox<T> {
    pub fn send(&self, letter: T) {
        self.send_all(std::iter::once(letter));
    }

    pub fn send_all(&self, letters: impl IntoIterator<Item = T>) {
        let mut inside = self.lock();
        let was_empty = inside.waiting.is_empty();
        inside.waiting.extend(letters);
        let wake = was_empty && !inside.waiting.is_empty();
        drop(inside);
        if wake {
            self.arrived.notify_one();
        }
    }

    /// After this, readers are told that nothing more comes once the box is empty.
    pub fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_one();
    }

    /// Waits for letters, at most `patience`, and moves all of them into `out`. `false`: the box is
    /// closed and empty.
    pub fn receive(&self, patience: Option<Duration>, out: &mut Vec<T>) -> bool {
        let mut inside = self.lock();
        while inside.waiting.is_empty() && !inside.closed {
            match patience {
                None => inside = self.arrived.wait(inside).expect("no holder of this lock panics"),
                Some(patience) => {
                    let (guard, timeout) = self
                        .arrived
                        .wait_timeout(inside, patience)
                        .expect("no holder of this lock panics");
                    inside = guard;
                    if timeout.timed_out() {
                        break;
                    }
                }
            }
        }
        let open = !inside.closed || !inside.waiting.is_empty();
        if out.is_empty() {
            std::mem::swap(&mut inside.waiting, out);
        } else {
            out.append(&mut inside.waiting);
        }
        open
    }

    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    fn lock(&self) -> MutexGuard<'_, Letters<T>> {
        self.letters.lock().expect("no holder of this lock panics")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn letters_come_in_order_and_the_end_is_told() {
        let inbox = Arc::new(Inbox::default());
        let writer = inbox.clone();
        let thread = std::thread::spawn(move || {
            for n in 0..1000 {
                writer.send(n);
            }
            writer.close();
        });
        let mut got = Vec::new();
        let mut bundle = Vec::new();
        while inbox.receive(None, &mut bundle) {
            got.append(&mut bundle);
        }
        thread.join().expect("the writer ends");
        assert_eq!(got, (0..1000).collect::<Vec<_>>());
    }
}
