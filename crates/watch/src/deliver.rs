//! New changes on their way to the watchers that wait for them, and progress on its way to those
//! that have nothing to wait for.

use crate::batch::Batch;
use crate::response::{Head, Header, fragments};
use crate::slots::Slot;
use crate::table::{State, Watches};
use crate::{Delivery, History};
use bytes::Bytes;
use std::slice;
use std::sync::Arc;
use store::Change;

impl Watches {
    /// New changes, in revision order, each exactly once. What is sent of them goes to `out`.
    pub fn changed(
        &mut self,
        changes: &[Arc<Change>],
        raft_term: u64,
        history: &dyn History,
        out: &mut Vec<Delivery>,
    ) {
        self.call += 1;
        for change in changes {
            assert_eq!(
                change.revision,
                self.revision + 1,
                "a revision that is left out would be missed by every watcher"
            );
            self.revision = change.revision;
            let mut batch = Batch::new(slice::from_ref(change), &self.groups);
            let header = self.heads.header(change.revision, raft_term);
            for group in batch.groups() {
                for at in 0..self.groups[group].watchers.len() {
                    let watcher = self.groups[group].watchers[at];
                    self.offer(watcher, change.revision, &header, &mut batch, history, out);
                }
            }
        }
    }

    /// The store was replaced by a snapshot: the table is now at `revision`, without having been
    /// told of the changes on the way. Watchers are sent them as history.
    pub fn restored(&mut self, revision: i64) {
        assert!(revision >= self.revision, "a snapshot never takes a member back in time");
        let first_missed = self.revision + 1;
        self.revision = revision;
        let slots: Vec<Slot> = self.watchers.slots().collect();
        for slot in slots {
            let watcher = &mut self.watchers[slot];
            if watcher.state == State::Synced {
                watcher.next = watcher.next.max(first_missed);
                if watcher.next <= revision {
                    self.begin_to_lag(slot, false);
                }
            }
        }
    }

    /// Time has passed: streams whose progress is due get it.
    pub fn tick(&mut self, now_ms: u64, raft_term: u64, out: &mut Vec<Delivery>) {
        self.now_ms = now_ms;
        while let Some(&(due_ms, slot)) = self.due.first()
            && due_ms <= now_ms
        {
            let stream = &mut self.streams[slot];
            let next_ms = due_ms + stream.progress_interval_ms;
            // Ticks that were missed are not made up for.
            let next_ms =
                if next_ms > now_ms { next_ms } else { now_ms + stream.progress_interval_ms };
            stream.due_ms = next_ms;
            let watchers: Vec<Slot> = stream.watchers.values().copied().collect();
            self.due.remove(&(due_ms, slot));
            self.due.insert((next_ms, slot));
            for watcher in watchers {
                self.notify_progress(watcher, raft_term, out);
            }
        }
    }

    fn notify_progress(&mut self, slot: Slot, raft_term: u64, out: &mut Vec<Delivery>) {
        let due = self.knows_all(slot);
        let watcher = &mut self.watchers[slot];
        if !watcher.progress_notify {
            return;
        }
        let quiet = std::mem::replace(&mut watcher.quiet, true);
        if quiet && due {
            let (stream, watch_id) = (watcher.stream, watcher.id);
            self.answer(stream, raft_term, Head { watch_id, ..Head::default() }, out);
        }
    }

    /// Sends a new change to one watcher of a group that it concerns, if it wants it and its stream
    /// has room; if there is no room, the watcher lags from here on.
    fn offer(
        &mut self,
        slot: Slot,
        revision: i64,
        header: &Header,
        batch: &mut Batch,
        history: &dyn History,
        out: &mut Vec<Delivery>,
    ) {
        let watcher = &self.watchers[slot];
        if watcher.state != State::Synced || revision < watcher.next {
            return;
        }
        let events_count = batch.choose(watcher.want(revision));
        if events_count == 0 {
            return;
        }
        let encoded = match self.has_room(slot) {
            // Damage is not for here to report: catch_up meets it again.
            true => batch.encoded(history).ok(),
            false => None,
        };
        if let Some(events) = encoded {
            self.send(slot, header, events, events_count, out);
        } else {
            self.watchers[slot].next = revision;
            self.begin_to_lag(slot, true);
        }
    }

    /// The watcher's stream takes more in this call.
    pub(crate) fn has_room(&self, watcher: Slot) -> bool {
        let stream = &self.streams[self.watchers[watcher].stream];
        let handed = if stream.call == self.call { stream.call_bytes } else { 0 };
        !stream.blocked && handed < self.config.stream_bytes_max
    }

    /// Sends events to a watcher, in fragments if there is reason to.
    pub(crate) fn send(
        &mut self,
        slot: Slot,
        header: &Header,
        events: Bytes,
        events_count: u64,
        out: &mut Vec<Delivery>,
    ) {
        let watcher = &mut self.watchers[slot];
        let stream = &mut self.streams[watcher.stream];
        watcher.quiet = false;
        self.events_total += events_count;
        let head = Head { watch_id: watcher.id, ..Head::default() };
        let whole = self.heads.write(header, &head);
        if stream.call != self.call {
            stream.call = self.call;
            stream.call_bytes = 0;
        }
        stream.call_bytes += whole.len() + events.len();
        let bytes_limit = self.config.fragment_bytes;
        if !watcher.fragment || whole.len() + events.len() < bytes_limit {
            out.push(Delivery { stream: stream.key, head: whole, events });
            return;
        }
        let mut parts = fragments(whole.len(), &events, bytes_limit);
        let last = parts.pop().expect("there is at least one part");
        for part in parts {
            let head = self.heads.write(header, &Head { fragment: true, ..head });
            out.push(Delivery { stream: stream.key, head, events: part });
        }
        out.push(Delivery { stream: stream.key, head: whole, events: last });
    }
}
