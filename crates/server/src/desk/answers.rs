//! How calls end, and what is sent before that.
//!
//! Always true: a call is answered once. Its record is taken out of the connection first, so a
//! second answer finds nothing.

use super::call::{Call, CallId, Lane, State};
use super::connection::Protocol;
use super::run::Desk;
use super::watching::UNSENT_BYTES_MAX;
use api::{Code, Error};
use bytes::Bytes;
use store::Reply;

impl Desk {
    pub(super) fn settle(&mut self, call: CallId, result: Result<Reply, Error>) {
        match result {
            Ok(reply) => self.reply(call, reply),
            Err(error) => self.fail(call, error),
        }
    }

    /// Answers with a header and what follows it.
    pub(super) fn reply(&mut self, call: CallId, reply: Reply) {
        let header = self.header(reply.revision);
        self.answer(call, &[header, reply.body]);
    }

    pub(super) fn header(&mut self, revision: i64) -> Bytes {
        self.headers.write(revision, self.shared.pulse.applied_term())
    }

    /// The answer of a unary call, in pieces.
    pub(super) fn answer(&mut self, id: CallId, parts: &[Bytes]) {
        let Some(connection) = self.connections.get_mut(id.connection) else { return };
        if connection.generation != id.generation {
            return;
        }
        let Some(call) = connection.end_call(id.lane) else { return };
        match (&mut connection.protocol, id.lane) {
            (Protocol::Grpc { link, .. }, Lane::Grpc(stream)) => link.respond_unary(stream, parts),
            (Protocol::Http(http), _) => {
                http.respond(&self.shared.transcoder, call.method, parts);
            }
            _ => {}
        }
        self.count_sent(parts);
        self.count_end(&call, Code::Ok);
        self.mark_dirty(id.connection);
    }

    /// Ends a call with an error.
    pub(super) fn fail(&mut self, id: CallId, error: Error) {
        let Some(connection) = self.connections.get_mut(id.connection) else { return };
        if connection.generation != id.generation {
            return;
        }
        let Some(call) = connection.end_call(id.lane) else { return };
        match (&mut connection.protocol, id.lane) {
            (Protocol::Grpc { link, .. }, Lane::Grpc(stream)) => {
                link.finish(stream, error.code as u8, &error.message);
            }
            (Protocol::Http(http), _) => http.fail(call.method, &error),
            _ => {}
        }
        if let State::Watching(stream) = call.state {
            self.forget_watch_stream(stream);
        }
        self.count_end(&call, error.code);
        self.mark_dirty(id.connection);
    }

    /// One message of a stream.
    pub(super) fn send_message(&mut self, id: CallId, parts: &[Bytes]) {
        let Some(connection) = self.connections.get_mut(id.connection) else { return };
        if connection.generation != id.generation {
            return;
        }
        let Some(call) = connection.call_mut(id.lane) else { return };
        let method = call.method;
        match (&mut connection.protocol, id.lane) {
            (Protocol::Grpc { link, .. }, Lane::Grpc(stream)) => link.send_message(stream, parts),
            (Protocol::Http(http), _) => {
                http.send_message(&self.shared.transcoder, method, parts);
            }
            _ => {}
        }
        self.count_sent(parts);
        self.shared.metrics.grpc.method(method as usize).sent();
        self.mark_dirty(id.connection);
    }

    /// Ends a stream that went well.
    pub(super) fn finish_stream(&mut self, id: CallId) {
        let Some(connection) = self.connections.get_mut(id.connection) else { return };
        if connection.generation != id.generation {
            return;
        }
        let Some(call) = connection.end_call(id.lane) else { return };
        match (&mut connection.protocol, id.lane) {
            (Protocol::Grpc { link, .. }, Lane::Grpc(stream)) => link.finish(stream, 0, ""),
            (Protocol::Http(http), _) => http.finish_stream(),
            _ => {}
        }
        self.count_end(&call, Code::Ok);
        self.mark_dirty(id.connection);
    }

    /// Streams that the office fills may go on when their peers have taken enough.
    pub(super) fn let_streams_go_on(&mut self) {
        if self.held_back.is_empty() {
            return;
        }
        for (id, permit) in std::mem::take(&mut self.held_back) {
            if self.call_mut(id).is_some() && self.unsent(id) > UNSENT_BYTES_MAX {
                self.held_back.push((id, permit));
            }
        }
    }

    /// Bytes of a call that its peer has not taken yet.
    pub(super) fn unsent(&mut self, id: CallId) -> usize {
        let Some(connection) = self.connections.get_mut(id.connection) else { return 0 };
        let pending = match (&connection.protocol, id.lane) {
            (Protocol::Grpc { link, .. }, Lane::Grpc(stream)) => link.pending(stream),
            _ => 0,
        };
        pending + connection.output_len()
    }

    fn count_sent(&self, parts: &[Bytes]) {
        let bytes: usize = parts.iter().map(Bytes::len).sum();
        self.shared.metrics.network.client_sent_bytes.add(bytes as u64);
    }

    fn count_end(&self, call: &Call, code: Code) {
        let took = call.began.elapsed();
        if took > self.shared.limits.slow_request && !call.is_stream() && !call.may_wait() {
            config::warn!(self.shared.logger, "request stats",
                "time spent" => took,
                "response type" => call.method.info().path,
                "response code" => code as u64);
        }
        self.shared.metrics.grpc.method(call.method as usize).handled(code, took);
    }

    /// Ends a call that nobody waits for any more. Whoever works on it learns it when the call is
    /// dropped here.
    pub(super) fn drop_call(&mut self, call: Call) {
        self.count_end(&call, Code::Canceled);
        if let State::Watching(stream) = call.state {
            self.forget_watch_stream(stream);
        }
    }
}
