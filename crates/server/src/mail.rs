//! What the other threads tell the desks.
//!
//! A desk is a thread that owns connections (see `desk`). It waits for sockets and for letters in
//! one place, so its box wakes it through the poll and not through a condition variable.

use crate::desk::CallId;
use api::Error;
use bytes::Bytes;
use mio::Waker;
use node::Answer;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use store::{Change, Reply};

/// The fate of a proposal.
#[derive(Debug)]
pub struct Settled {
    pub id: u64,
    pub result: Result<Reply, Error>,
}

/// What the office (see `office`) has to say to a caller.
#[derive(Debug)]
pub enum Word {
    /// The whole answer of a unary call.
    Answer(Result<Bytes, Error>),
    /// One message of a stream.
    Message(Bytes),
    /// One message of a long stream, with the permission that its sender waits to get back.
    Piece(Bytes, tokio::sync::OwnedSemaphorePermit),
    /// The answer to a request that is no call.
    Http(crate::office::HttpResponse),
    /// The end of a stream.
    End(Result<(), Error>),
}

#[derive(Debug)]
pub enum Letter {
    Connection(crate::desk::NewConnection),
    Settled(Vec<Settled>),
    /// What changed, in revision order; every desk gets every change exactly once.
    Changes(Arc<[Arc<Change>]>),
    Answers(Vec<(u64, Answer)>),
    Word(CallId, Word),
    /// The store has come further: reads that waited may run.
    Applied,
    Stop,
}

/// One desk's box.
#[derive(Debug)]
pub struct DeskBox {
    inside: Mutex<Inside>,
    waker: Waker,
    /// Whether changes are worth waking it for; if not, it reads them at its next tick.
    pub watching: AtomicBool,
    /// Whether reads wait for the store to come further.
    pub reading: AtomicBool,
    /// For the metrics: streams, watchers, slow watchers, and proposals under way.
    counts: [AtomicU64; 4],
}

#[derive(Debug, Default)]
struct Inside {
    letters: Vec<Letter>,
    /// Whether the desk was woken since it last looked. What was left without waking it says
    /// nothing about that, even if it would be worth waking for by now.
    woken: bool,
}

impl DeskBox {
    pub fn new(waker: Waker) -> DeskBox {
        DeskBox {
            inside: Mutex::default(),
            waker,
            watching: AtomicBool::new(false),
            reading: AtomicBool::new(false),
            counts: Default::default(),
        }
    }

    pub fn set_watch_counts(&self, streams: u64, watchers: u64, slow: u64) {
        for (count, value) in self.counts.iter().zip([streams, watchers, slow]) {
            count.store(value, Ordering::Relaxed);
        }
    }

    pub fn watch_counts(&self) -> (u64, u64, u64) {
        let count = |at: usize| self.counts[at].load(Ordering::Relaxed);
        (count(0), count(1), count(2))
    }

    pub fn set_pending(&self, proposals: u64) {
        self.counts[3].store(proposals, Ordering::Relaxed);
    }

    pub fn pending(&self) -> u64 {
        self.counts[3].load(Ordering::Relaxed)
    }

    pub fn send(&self, letter: Letter) {
        self.send_all([letter]);
    }

    pub fn send_all(&self, letters: impl IntoIterator<Item = Letter>) {
        let mut inside = self.inside.lock().expect("no holder of this lock panics");
        let mut wake = false;
        for letter in letters {
            wake |= !self.is_quiet(&letter);
            inside.letters.push(letter);
        }
        wake &= !inside.woken;
        inside.woken |= wake;
        drop(inside);
        if wake {
            // If the poll is gone the desk is, and then nobody needs the letter.
            let _gone = self.waker.wake();
        }
    }

    fn is_quiet(&self, letter: &Letter) -> bool {
        match letter {
            Letter::Changes(_) => !self.watching.load(Ordering::SeqCst),
            Letter::Applied => !self.reading.load(Ordering::SeqCst),
            _ => false,
        }
    }

    pub fn take(&self, out: &mut Vec<Letter>) {
        let mut inside = self.inside.lock().expect("no holder of this lock panics");
        inside.woken = false;
        std::mem::swap(&mut inside.letters, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mio::{Events, Poll, Token};
    use std::time::Duration;

    struct Desk {
        poll: Poll,
        mail: DeskBox,
    }

    impl Desk {
        fn new() -> Desk {
            let poll = Poll::new().expect("a poll");
            let mail = DeskBox::new(Waker::new(poll.registry(), Token(0)).expect("a waker"));
            Desk { poll, mail }
        }

        /// Whether somebody has woken it since it was last asked.
        fn is_woken(&mut self) -> bool {
            let mut events = Events::with_capacity(8);
            self.poll.poll(&mut events, Some(Duration::ZERO)).expect("a poll");
            !events.is_empty()
        }

        fn take(&self) -> usize {
            let mut letters = Vec::new();
            self.mail.take(&mut letters);
            letters.len()
        }
    }

    fn changes() -> Letter {
        Letter::Changes(Arc::new([]))
    }

    #[test]
    fn a_desk_is_woken_once_until_it_looks() {
        let mut desk = Desk::new();
        desk.mail.send(Letter::Answers(Vec::new()));
        assert!(desk.is_woken());
        desk.mail.send(Letter::Stop);
        assert!(!desk.is_woken());
        assert_eq!(desk.take(), 2);
        desk.mail.send(Letter::Stop);
        assert!(desk.is_woken());
    }

    #[test]
    fn a_desk_is_not_woken_for_what_nobody_there_waits_for() {
        let mut desk = Desk::new();
        desk.mail.send_all([changes(), Letter::Applied]);
        assert!(!desk.is_woken());
        assert_eq!(desk.take(), 2);
        desk.mail.watching.store(true, Ordering::SeqCst);
        desk.mail.send(Letter::Applied);
        assert!(!desk.is_woken());
        desk.mail.send(changes());
        assert!(desk.is_woken());
        assert_eq!(desk.take(), 2);
        desk.mail.reading.store(true, Ordering::SeqCst);
        desk.mail.send(Letter::Applied);
        assert!(desk.is_woken());
    }

    #[test]
    fn what_was_left_without_waking_does_not_keep_the_next_from_waking() {
        let mut desk = Desk::new();
        desk.mail.send(changes());
        desk.mail.send(Letter::Stop);
        assert!(desk.is_woken());
        assert_eq!(desk.take(), 2);
        // A read begins to wait while a letter lies there that came before it did.
        desk.mail.send(Letter::Applied);
        desk.mail.reading.store(true, Ordering::SeqCst);
        assert!(!desk.is_woken());
        desk.mail.send(Letter::Applied);
        assert!(desk.is_woken());
    }
}
