//! What the owner says: answers, whole or in parts. All are ignored for a stream that is gone.

use bytes::Bytes;

use super::super::StreamId;
use super::super::connection::Connection;
use super::super::link::Pumped;
use super::super::stream::{Ending, Sending};
use super::Server;
use crate::grpc::code;

impl Server {
    /// Answers a unary call: one message (`parts` joined), status OK.
    #[inline]
    pub fn respond_unary(&mut self, id: StreamId, parts: &[Bytes]) {
        let Connection { link, streams, guard, .. } = &mut self.connection;
        let Some(stream) = streams.get_mut(&id.0) else { return };
        if stream.sending == Sending::Ended {
            return;
        }
        guard.sent();
        if stream.sending == Sending::Idle {
            link.answer_head(id.0, stream.gzip);
        }
        stream.sending = Sending::Ended;
        stream.ending = Some(Ending::Trailers { code: code::OK, message: String::new() });
        let pumped = link.message(id.0, stream, parts);
        self.settle(id.0, pumped);
    }

    /// Answers a call with a status only.
    pub fn respond_error(&mut self, id: StreamId, code: u8, message: &str) {
        self.finish(id, code, message);
    }

    /// Sends the head of a streaming answer. `send_message` does so too if it is missing.
    pub fn start_response(&mut self, id: StreamId) {
        let Connection { link, streams, guard, .. } = &mut self.connection;
        if let Some(stream) = streams.get_mut(&id.0)
            && stream.sending == Sending::Idle
        {
            guard.sent();
            stream.sending = Sending::Open;
            link.answer_head(id.0, stream.gzip);
        }
    }

    /// Sends one message of a streaming answer.
    pub fn send_message(&mut self, id: StreamId, parts: &[Bytes]) {
        self.start_response(id);
        let Connection { link, streams, guard, .. } = &mut self.connection;
        if let Some(stream) = streams.get_mut(&id.0)
            && stream.sending == Sending::Open
        {
            guard.sent();
            let pumped = link.message(id.0, stream, parts);
            self.settle(id.0, pumped);
        }
    }

    /// Ends an answer with a status. What waits for the client's window is sent first.
    pub fn finish(&mut self, id: StreamId, code: u8, message: &str) {
        let Connection { link, streams, guard, .. } = &mut self.connection;
        let Some(stream) = streams.get_mut(&id.0) else { return };
        guard.sent();
        let pumped = match stream.sending {
            Sending::Ended => return,
            Sending::Idle => {
                stream.sending = Sending::Ended;
                link.trailers_only(id.0, 200, code, message);
                Pumped::Ended
            }
            Sending::Open => {
                let ending = Ending::Trailers { code, message: message.to_string() };
                link.end(id.0, stream, ending)
            }
        };
        self.settle(id.0, pumped);
    }

    /// Answers a request that is not gRPC. `content-length` is added.
    pub fn respond_http(
        &mut self,
        id: StreamId,
        status: u16,
        headers: &[(&str, &str)],
        body: Bytes,
    ) {
        let length = body.len().to_string();
        let mut all = headers.to_vec();
        all.push(("content-length", &length));
        self.start_http(id, status, &all);
        let Connection { link, streams, .. } = &mut self.connection;
        if let Some(stream) = streams.get_mut(&id.0)
            && stream.sending == Sending::Open
        {
            stream.sending = Sending::Ended;
            stream.ending = Some(Ending::Flag);
            let body = if stream.bodyless { Bytes::new() } else { body };
            let pumped = link.data(id.0, stream, body);
            self.settle(id.0, pumped);
        }
    }

    /// Sends the head of an answer to a request that is not gRPC. Names must be lower case.
    pub fn start_http(&mut self, id: StreamId, status: u16, headers: &[(&str, &str)]) {
        let Connection { link, streams, guard, .. } = &mut self.connection;
        let Some(stream) = streams.get_mut(&id.0) else { return };
        if stream.sending != Sending::Idle {
            return;
        }
        guard.sent();
        stream.sending = Sending::Open;
        link.header_block(id.0, false, |encoder, block| {
            encoder.once(b":status", status.to_string().as_bytes(), block);
            for (name, value) in headers {
                encoder.once(name.as_bytes(), value.as_bytes(), block);
            }
        });
    }

    /// Sends a piece of the body of an answer that is not gRPC.
    pub fn send_data(&mut self, id: StreamId, data: Bytes) {
        let Connection { link, streams, guard, .. } = &mut self.connection;
        if let Some(stream) = streams.get_mut(&id.0)
            && stream.sending == Sending::Open
            && !stream.bodyless
        {
            guard.sent();
            let pumped = link.data(id.0, stream, data);
            self.settle(id.0, pumped);
        }
    }

    /// Ends an answer that is not gRPC.
    pub fn finish_http(&mut self, id: StreamId) {
        let Connection { link, streams, .. } = &mut self.connection;
        if let Some(stream) = streams.get_mut(&id.0)
            && stream.sending == Sending::Open
        {
            let pumped = link.end(id.0, stream, Ending::Flag);
            self.settle(id.0, pumped);
        }
    }

    /// Ends a stream at once; what waits on it is dropped.
    pub fn reset(&mut self, id: StreamId, code: u32) {
        if self.connection.streams.contains_key(&id.0) {
            self.connection.abandon(id.0, code);
        }
    }

    /// Bytes on this stream that the client's windows have not let out yet.
    pub fn pending(&self, id: StreamId) -> usize {
        self.connection.streams.get(&id.0).map_or(0, |stream| stream.queued)
    }

    /// The same for all streams together: what this client makes us hold.
    pub fn pending_all(&self) -> usize {
        self.connection.link.queued
    }

    #[inline]
    fn settle(&mut self, id: u32, pumped: Pumped) {
        match pumped {
            Pumped::Ended => self.connection.ended(id),
            pumped => self.connection.pumped(id, pumped),
        }
    }
}
