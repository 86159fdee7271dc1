//! What a desk looks at ten times a second: who has waited too long, who has gone quiet.

use super::call::Lane;
use super::connection::Protocol;
use super::run::{Desk, Proposed};
use api::Error;
use std::time::Duration;

/// How long a connection may be silent before it has said what it wants.
const HEAD_PATIENCE: Duration = Duration::from_secs(300);

impl Desk {
    pub(super) fn tick(&mut self) {
        for listener in 0..self.listeners.len() {
            self.accept(listener);
        }
        let now = self.now_ms;
        let late: Vec<u64> =
            self.proposed.iter().filter(|(_, p)| p.deadline <= now).map(|(&id, _)| id).collect();
        for id in late {
            if let Some(Proposed { call, .. }) = self.proposed.remove(&id) {
                self.shared.metrics.server.proposals_failed.inc();
                self.fail(call, Error::TIMEOUT);
            }
        }
        self.shared.desks[self.number].set_pending(self.proposed.len() as u64);
        self.expire_reads();
        self.expire_calls();
        self.end_leaderless_streams();
        self.look_after_connections();
        self.tick_watches();
    }

    /// Calls whose callers have stopped waiting.
    fn expire_calls(&mut self) {
        let now = self.now_ms;
        let mut late = Vec::new();
        for (key, connection) in &self.connections {
            if let Protocol::Grpc { calls, .. } = &connection.protocol {
                let due = calls.iter().filter(|(_, call)| call.deadline.is_some_and(|d| d <= now));
                late.extend(due.map(|(&stream, _)| connection.id(key, Lane::Grpc(stream))));
            }
        }
        for call in late {
            self.fail(call, Error::CONTEXT_DEADLINE_EXCEEDED);
        }
    }

    /// Streams whose callers want a leader end when there has been none for a while.
    fn end_leaderless_streams(&mut self) {
        if self.shared.pulse.leader() != 0 {
            self.leaderless_since = None;
            return;
        }
        let since = *self.leaderless_since.get_or_insert(self.now_ms);
        let patience = 3 * self.shared.limits.election.as_millis() as u64;
        if self.now_ms - since < patience {
            return;
        }
        let mut ended = Vec::new();
        for (key, connection) in &self.connections {
            if let Protocol::Grpc { calls, .. } = &connection.protocol {
                let waiting =
                    calls.iter().filter(|(_, call)| call.needs_leader && call.is_stream());
                ended.extend(waiting.map(|(&stream, _)| connection.id(key, Lane::Grpc(stream))));
            }
        }
        for call in ended {
            self.fail(call, Error::NO_LEADER);
        }
    }

    /// Pings the silent, and closes those that do not even answer that, or that never finish
    /// saying what they want.
    fn look_after_connections(&mut self) {
        let now = self.now_ms;
        let keepalive = self.shared.limits.keepalive;
        let mut gone = Vec::new();
        let mut pinged = Vec::new();
        for (key, connection) in &mut self.connections {
            let silent = Duration::from_millis(now - connection.last_input_ms);
            match (&mut connection.protocol, keepalive) {
                (Protocol::Grpc { link, .. }, Some((interval, timeout))) => {
                    if silent >= interval + timeout {
                        gone.push(key);
                    } else if silent >= interval && !connection.pinged {
                        connection.pinged = true;
                        link.ping([0; 8]);
                        pinged.push(key);
                    }
                }
                (Protocol::Grpc { .. }, None) => {}
                (Protocol::Unknown, _) if silent >= HEAD_PATIENCE => gone.push(key),
                (Protocol::Http(http), _) if silent >= HEAD_PATIENCE && !http.is_busy() => {
                    gone.push(key);
                }
                _ => {}
            }
        }
        pinged.into_iter().for_each(|key| self.mark_dirty(key));
        gone.into_iter().for_each(|key| self.close(key));
    }
}
