//! History on its way to watchers that lag, a bounded step at a time.

use crate::batch::Batch;
use crate::response::Head;
use crate::slots::Slot;
use crate::table::{State, Watches};
use crate::{Delivery, History, HistoryError};

impl Watches {
    /// Reads some history once, for everyone who needs it, and sends it. Watchers that compaction
    /// has passed are told so and end. `true`: there is more to do now.
    ///
    /// An error is damage that was met on the way, for the log, and for the owner to decide whether
    /// the member stops. The watchers that needed the damaged rows have been told and are gone, and
    /// the others are served: if the member goes on, call again.
    pub fn catch_up(
        &mut self,
        history: &dyn History,
        raft_term: u64,
        out: &mut Vec<Delivery>,
    ) -> Result<bool, engine::Error> {
        self.call += 1;
        self.end_compacted(history.compacted(), raft_term, out);
        let Some((from, first)) = self.lagging.first() else { return Ok(false) };
        let read = history.changes(
            from,
            self.revision,
            self.config.catch_up_revisions_max,
            self.config.catch_up_bytes_max,
        );
        let changes = match read {
            Ok(changes) => changes,
            // It passed between the question and the read: the next step tells them.
            Err(HistoryError::Compacted) => return Ok(true),
            Err(HistoryError::Damaged(error)) => {
                self.end_damaged(first, raft_term, out);
                return Err(error);
            }
        };
        // Revisions without a row are those that compaction emptied: nothing is missed there.
        let covered = changes.last().map_or(self.revision, |change| change.revision);
        assert!(from <= covered && covered <= self.revision, "history answers what was asked");
        let mut batch = Batch::new(&changes, &self.groups);
        let others = self.lagging.between(from, covered).filter(|&other| other != first);
        let others = others.take(self.config.catch_up_watchers_max - 1);
        let served: Vec<Slot> = [first].into_iter().chain(others).collect();
        let mut met = Ok(());
        for watcher in served {
            let done = self.serve(watcher, covered, &mut batch, history, raft_term, out);
            if let Err(HistoryError::Damaged(error)) = done {
                self.end_damaged(watcher, raft_term, out);
                met = Err(error);
            }
        }
        met.map(|()| !self.lagging.is_empty())
    }

    /// Sends a watcher what it wants of a batch that ends at revision `covered`.
    fn serve(
        &mut self,
        slot: Slot,
        covered: i64,
        batch: &mut Batch,
        history: &dyn History,
        raft_term: u64,
        out: &mut Vec<Delivery>,
    ) -> Result<(), HistoryError> {
        let watcher = &self.watchers[slot];
        let State::Lagging { parked, .. } = watcher.state else {
            unreachable!("only lagging watchers are served history")
        };
        let events_count = batch.choose(watcher.want(watcher.next));
        if events_count > 0 {
            if !self.has_room(slot) {
                let next = watcher.next;
                self.advance(slot, next);
                return Ok(());
            }
            let events = batch.encoded(history)?;
            // After a full stream the header tells how far the batch goes; during catch-up it
            // tells the current revision, which may be further.
            let revision = if parked { covered } else { self.revision };
            let header = self.heads.header(revision, raft_term);
            self.send(slot, &header, events, events_count, out);
        }
        self.advance(slot, covered + 1);
        Ok(())
    }

    /// The watcher has been sent everything before `next`.
    fn advance(&mut self, slot: Slot, next: i64) {
        let still_parked = self.watchers[slot].next == next
            && matches!(self.watchers[slot].state, State::Lagging { parked: true, .. });
        self.stop_lagging(slot, State::Synced);
        self.watchers[slot].next = next;
        if next <= self.revision {
            // Behind all others that lag: everyone gets a turn.
            self.begin_to_lag(slot, still_parked);
        }
    }

    fn end_compacted(&mut self, compacted: i64, raft_term: u64, out: &mut Vec<Delivery>) {
        let passed = self.lagging.below(compacted).take(self.config.catch_up_watchers_max);
        let passed: Vec<Slot> = passed.collect();
        for slot in passed {
            self.stop_lagging(slot, State::Ended);
            let watcher = &self.watchers[slot];
            let head = Head {
                watch_id: watcher.id,
                canceled: true,
                compact_revision: compacted,
                ..Head::default()
            };
            // Clients know this answer by its header without a revision.
            let header = self.heads.header(0, raft_term);
            let stream = self.streams[watcher.stream].key;
            let head = self.heads.write(&header, &head);
            out.push(Delivery { stream, head, events: bytes::Bytes::new() });
        }
    }

    /// This member cannot read what the watcher needs. Going on without it would lose events in
    /// silence, and another member can serve it.
    fn end_damaged(&mut self, slot: Slot, raft_term: u64, out: &mut Vec<Delivery>) {
        let (stream, watch_id) = (self.watchers[slot].stream, self.watchers[slot].id);
        let cancel_reason = format!(
            "the changes from revision {} on cannot be read on this member (its log says why); \
             watch them on another member",
            self.watchers[slot].next
        );
        self.forget(slot);
        let head =
            Head { watch_id, canceled: true, cancel_reason: &cancel_reason, ..Head::default() };
        self.answer(stream, raft_term, head, out);
    }
}
