//! Who in the office waits for which keys to change.
//!
//! A recipe first registers, then looks at the store, then waits: so it misses nothing that
//! happens in between.

use api::KeyRange;
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use store::Change;
use tokio::sync::mpsc;

#[derive(Default)]
pub struct Interests {
    table: Arc<Mutex<Table>>,
    /// Read by whoever applies before the lock is taken: usually nobody is interested.
    registered: Arc<AtomicUsize>,
    next: AtomicU64,
}

type Ear = mpsc::UnboundedSender<Arc<Change>>;

#[derive(Default)]
struct Table {
    /// Waiters for exactly one key: the usual case, and there may be thousands.
    exact: HashMap<Bytes, Vec<(u64, Ear)>>,
    ranges: Vec<(u64, KeyRange, Ear)>,
}

/// Changes that touch the range, from the moment of registering on. Ends when dropped.
pub struct Interest {
    number: u64,
    range: KeyRange,
    changes: mpsc::UnboundedReceiver<Arc<Change>>,
    table: Arc<Mutex<Table>>,
    registered: Arc<AtomicUsize>,
}

impl Interests {
    pub fn register(&self, range: KeyRange) -> Interest {
        let (send, changes) = mpsc::unbounded_channel();
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut table = self.table.lock().expect("no holder of this lock panics");
        match &range {
            KeyRange::One(key) => table.exact.entry(key.clone()).or_default().push((number, send)),
            range => table.ranges.push((number, range.clone(), send)),
        }
        self.registered.fetch_add(1, Ordering::SeqCst);
        drop(table);
        let (table, registered) = (self.table.clone(), self.registered.clone());
        Interest { number, range, changes, table, registered }
    }

    pub fn changed(&self, changes: &[Arc<Change>]) {
        if self.registered.load(Ordering::SeqCst) == 0 {
            return;
        }
        let table = self.table.lock().expect("no holder of this lock panics");
        for change in changes {
            for event in &change.events {
                let exact = table.exact.get(&event.key).into_iter().flatten();
                let ranges = table.ranges.iter().filter(|(_, range, _)| range.contains(&event.key));
                let interested = exact.map(|(_, s)| s).chain(ranges.map(|(.., s)| s));
                for sender in interested {
                    // Whoever listened may just be going.
                    let _gone = sender.send(change.clone());
                }
            }
        }
    }
}

impl Interest {
    /// The next change that touches the range. A change that touches it twice may come twice.
    pub async fn next(&mut self) -> Option<Arc<Change>> {
        self.changes.recv().await
    }
}

impl Drop for Interest {
    fn drop(&mut self) {
        let mut table = self.table.lock().expect("no holder of this lock panics");
        match &self.range {
            KeyRange::One(key) => {
                if let Some(waiters) = table.exact.get_mut(key) {
                    waiters.retain(|(number, _)| *number != self.number);
                    if waiters.is_empty() {
                        table.exact.remove(key);
                    }
                }
            }
            _ => table.ranges.retain(|(number, ..)| *number != self.number),
        }
        self.registered.fetch_sub(1, Ordering::SeqCst);
    }
}
