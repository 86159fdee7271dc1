//! Watches: the table is the `watch` crate's, the sockets are ours.

use super::call::{CallId, State};
use super::dispatch::malformed;
use super::run::Desk;
use api::etcdserverpb::WatchRequest;
use bytes::Bytes;
use prost::Message;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use store::Change;
use watch::{Delivery, StreamKey};

/// A stream with more than this waiting to be taken gets nothing more until half of it is gone.
/// Its watchers hold no events meanwhile: they read them from the store when they may go on.
pub const UNSENT_BYTES_MAX: usize = 1 << 20;

impl Desk {
    pub(super) fn open_watch_stream(&mut self, id: CallId) {
        self.next_stream += 1;
        let stream = StreamKey(self.next_stream);
        // Any number spreads the notifications of streams that were opened together.
        let jitter = self.next_stream.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        self.watches.open(stream, jitter);
        self.streams.insert(stream, id);
        self.shared.desks[self.number].watching.store(true, Ordering::SeqCst);
        self.set_state(id, State::Watching(stream));
    }

    pub(super) fn on_watch_request(&mut self, id: CallId, data: &Bytes) {
        // A watch outlives the buffer that it came in, so it gets its own copy.
        let request = match WatchRequest::decode(Bytes::copy_from_slice(data)) {
            Ok(request) => request,
            Err(error) => return self.fail(id, malformed(error)),
        };
        let Some(call) = self.call_mut(id) else { return };
        let State::Watching(stream) = call.state else { return };
        // Letters that were left lying hold changes that this watch must not miss: they are
        // older than the revision its "created" answer will carry.
        self.read_letters();
        let mut deliveries = Vec::new();
        let term = self.shared.pulse.applied_term();
        self.watches.request(stream, request, term, &mut deliveries);
        self.deliver(deliveries);
        self.catching_up = true;
    }

    pub(super) fn on_changes(&mut self, changes: &Arc<[Arc<Change>]>) {
        let mut deliveries = Vec::new();
        let term = self.shared.pulse.applied_term();
        self.watches.changed(changes, term, &self.shared.view, &mut deliveries);
        self.deliver(deliveries);
    }

    /// One bounded step for watchers that lag.
    pub(super) fn step_watches(&mut self) {
        if !self.catching_up {
            return;
        }
        let mut deliveries = Vec::new();
        let term = self.shared.pulse.applied_term();
        let caught_up = self.watches.catch_up(&self.shared.view, term, &mut deliveries);
        self.catching_up = caught_up.unwrap_or_else(|damage| {
            // Not a word of what cannot be read; tried again with the next tick.
            config::error!(self.shared.logger, "cannot read the history that watchers ask for",
                "error" => damage.to_string());
            false
        });
        self.deliver(deliveries);
    }

    pub(super) fn tick_watches(&mut self) {
        let mut deliveries = Vec::new();
        let term = self.shared.pulse.applied_term();
        self.watches.tick(self.now_ms, term, &mut deliveries);
        self.deliver(deliveries);
        // A compaction may have passed a watcher that is blocked.
        self.catching_up = !self.streams.is_empty();
        let counts = self.watches.counts();
        let sent =
            counts.events_total - std::mem::replace(&mut self.events_counted, counts.events_total);
        self.shared.metrics.mvcc.events.add(sent);
        self.shared.desks[self.number].set_watch_counts(
            counts.streams as u64,
            counts.watchers as u64,
            counts.slow_watchers as u64,
        );
    }

    fn deliver(&mut self, deliveries: Vec<Delivery>) {
        for Delivery { stream, head, events } in deliveries {
            let Some(&id) = self.streams.get(&stream) else { continue };
            if events.is_empty() {
                self.send_message(id, &[head]);
            } else {
                self.send_message(id, &[head, events]);
            }
            if self.unsent(id) > UNSENT_BYTES_MAX {
                let blocked = self.blocked.entry(id.connection).or_default();
                if !blocked.contains(&stream) {
                    self.watches.set_blocked(stream, true);
                    blocked.push(stream);
                }
            }
        }
    }

    /// After a connection was written: its streams may take more.
    pub(super) fn unblock_streams(&mut self, connection: usize) {
        let Some(streams) = self.blocked.remove(&connection) else { return };
        let mut still = Vec::new();
        for stream in streams {
            match self.streams.get(&stream).copied() {
                Some(id) if self.unsent(id) > UNSENT_BYTES_MAX / 2 => still.push(stream),
                Some(_) => {
                    self.watches.set_blocked(stream, false);
                    self.catching_up = true;
                }
                None => {}
            }
        }
        if !still.is_empty() {
            self.blocked.insert(connection, still);
        }
    }

    pub(super) fn forget_watch_stream(&mut self, stream: StreamKey) {
        if self.streams.remove(&stream).is_some() {
            self.watches.close(stream);
        }
        if self.streams.is_empty() {
            self.shared.desks[self.number].watching.store(false, Ordering::SeqCst);
        }
    }
}
