//! A gRPC client that blocks: one socket, calls one after the other, streams beside them.

use bytes::{Bytes, BytesMut};
use httpcore::h2::{Client, ClientEvent, Limits, Settings, StreamId, error};
use prost::Message;
use std::collections::{HashMap, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// No call of a test takes this long unless the server is stuck.
const CALL_MAX: Duration = Duration::from_secs(60);

/// What a call came to: its only message, or how it failed.
pub type Answer = Result<Bytes, Status>;

/// A gRPC status, other than OK where it stands for a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    pub code: u8,
    pub message: String,
}

/// A call that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stream(StreamId);

/// One connection.
pub struct Grpc {
    client: Client,
    socket: TcpStream,
    input: BytesMut,
    began: Instant,
    /// What has come on streams that nobody has asked about yet.
    arrived: HashMap<StreamId, VecDeque<Arrival>>,
    closed: bool,
}

enum Arrival {
    Message(Bytes),
    End(Status),
}

impl Grpc {
    pub fn connect(endpoint: &str) -> Grpc {
        let socket = TcpStream::connect(endpoint).expect("the server accepts connections");
        socket.set_nodelay(true).expect("TCP can send at once");
        let limits = Limits { message_bytes_max: 256 << 20, ..Limits::default() };
        Grpc {
            client: Client::new(Settings::default(), limits, endpoint),
            socket,
            input: BytesMut::new(),
            began: Instant::now(),
            arrived: HashMap::new(),
            closed: false,
        }
    }

    /// A unary call.
    pub fn call(&mut self, path: &str, request: &impl Message) -> Answer {
        self.call_bytes(path, &[], request.encode_to_vec().into())
    }

    /// A unary call of any bytes, with metadata.
    pub fn call_bytes(&mut self, path: &str, metadata: &[(&str, &str)], request: Bytes) -> Answer {
        let stream = self.begin(path, metadata, request);
        self.finish(stream)
    }

    /// Sends a unary call without waiting for its answer.
    pub fn begin(&mut self, path: &str, metadata: &[(&str, &str)], request: Bytes) -> Stream {
        let id = self.client.request(path, metadata, &[request]);
        self.arrived.insert(id, VecDeque::new());
        self.flush();
        Stream(id)
    }

    /// The answer to `begin`.
    pub fn finish(&mut self, stream: Stream) -> Answer {
        let mut message = None;
        loop {
            match self.next(stream, CALL_MAX).expect("the server answers in time") {
                Ok(data) => message = Some(data),
                Err(Status { code: 0, .. }) => {
                    self.arrived.remove(&stream.0);
                    return Ok(message.expect("an answer without an error has a message"));
                }
                Err(status) => {
                    self.arrived.remove(&stream.0);
                    return Err(status);
                }
            }
        }
    }

    /// Opens a call that takes a stream of requests.
    pub fn open(&mut self, path: &str, metadata: &[(&str, &str)]) -> Stream {
        let id = self.client.open(path, metadata);
        self.arrived.insert(id, VecDeque::new());
        self.flush();
        Stream(id)
    }

    pub fn send(&mut self, stream: Stream, request: &impl Message) {
        self.client.send_message(stream.0, &[request.encode_to_vec().into()]);
        self.flush();
    }

    pub fn half_close(&mut self, stream: Stream) {
        self.client.half_close(stream.0);
        self.flush();
    }

    pub fn cancel(&mut self, stream: Stream) {
        self.client.reset(stream.0, error::CANCEL);
        self.arrived.remove(&stream.0);
        self.flush();
    }

    /// The next message of a stream, or its end (a status, OK included); `None` if nothing has
    /// come within `wait`.
    pub fn next(&mut self, stream: Stream, wait: Duration) -> Option<Result<Bytes, Status>> {
        let until = Instant::now() + wait;
        loop {
            if let Some(arrival) = self.arrived.get_mut(&stream.0)?.pop_front() {
                return Some(match arrival {
                    Arrival::Message(data) => Ok(data),
                    Arrival::End(status) => Err(status),
                });
            }
            let left = until.saturating_duration_since(Instant::now());
            if !self.receive(left) {
                return None;
            }
        }
    }

    /// Reads once, for at most `wait`. False if nothing came.
    fn receive(&mut self, wait: Duration) -> bool {
        if self.closed {
            return false;
        }
        let wait = wait.max(Duration::from_millis(1));
        self.socket.set_read_timeout(Some(wait)).expect("the timeout is not zero");
        let mut buffer = [0; 64 << 10];
        match self.socket.read(&mut buffer) {
            Ok(0) => self.lost("the server closed the connection"),
            Ok(n) => self.take(&buffer[..n]),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return false;
            }
            Err(e) => self.lost(&format!("the connection broke: {e}")),
        }
        true
    }

    fn take(&mut self, data: &[u8]) {
        self.input.extend_from_slice(data);
        let now_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut events = Vec::new();
        let outcome = self.client.receive(&mut self.input, now_ms, &mut events);
        for event in events {
            match event {
                ClientEvent::Message { id, data } => self.arrive(id, Arrival::Message(data)),
                ClientEvent::Trailers { id, code, message, .. } => {
                    self.arrive(id, Arrival::End(Status { code, message }));
                }
                ClientEvent::Reset { id, code } => {
                    let message = format!("stream reset with HTTP/2 code {code}");
                    self.arrive(id, Arrival::End(Status { code: 255, message }));
                }
                _ => {}
            }
        }
        self.flush();
        if let Err(closed) = outcome {
            self.lost(&closed.to_string());
        }
    }

    fn arrive(&mut self, id: StreamId, arrival: Arrival) {
        if let Some(queue) = self.arrived.get_mut(&id) {
            queue.push_back(arrival);
        }
    }

    /// Every call under way ends as gRPC ends it when the connection is lost.
    fn lost(&mut self, why: &str) {
        self.closed = true;
        for queue in self.arrived.values_mut() {
            queue.push_back(Arrival::End(Status { code: 14, message: why.to_string() }));
        }
    }

    fn flush(&mut self) {
        while !self.client.output().is_empty() && !self.closed {
            match self.socket.write(self.client.output().chunk()) {
                Ok(n) => self.client.output().advance(n),
                Err(e) => self.lost(&format!("the connection broke: {e}")),
            }
        }
    }
}
