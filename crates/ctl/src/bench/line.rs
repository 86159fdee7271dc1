//! One connection of the generator: a socket, the client's end of HTTP/2, and nothing between them.

use std::collections::VecDeque;
use std::io::{self, IoSlice, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use httpcore::h2::{Client, ClientEvent, Limits, Settings, StreamId};
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};

use super::Error;

/// A server that says nothing for so long is given up.
pub const SILENCE_MAX: Duration = Duration::from_secs(60);

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const HEADERS: [(&str, &str); 1] = [("user-agent", "althing-bench")];

/// What is asked, encoded already: the message is its parts joined.
pub struct Request {
    pub path: &'static str,
    pub parts: [Bytes; 2],
}

pub struct Line {
    pub endpoint: SocketAddr,
    socket: TcpStream,
    client: Client,
    input: BytesMut,
    sent_at: SentAt,
}

impl Line {
    pub fn connect(endpoint: SocketAddr) -> Result<Line, Error> {
        let refused = |source| Error::Refused { endpoint, source };
        let socket =
            std::net::TcpStream::connect_timeout(&endpoint, CONNECT_TIMEOUT).map_err(refused)?;
        socket.set_nodelay(true).map_err(refused)?;
        socket.set_nonblocking(true).map_err(refused)?;
        // Answers of any size: a range of a whole store is the user's choice.
        let limits = Limits { message_bytes_max: 1 << 30, ..Limits::default() };
        Ok(Line {
            endpoint,
            socket: TcpStream::from_std(socket),
            client: Client::new(Settings::default(), limits, &endpoint.to_string()),
            input: BytesMut::new(),
            sent_at: SentAt::default(),
        })
    }

    pub fn register(&mut self, registry: &Registry, token: usize) -> Result<(), Error> {
        let both = Interest::READABLE | Interest::WRITABLE;
        let registered = registry.register(&mut self.socket, Token(token), both);
        registered.map_err(Error::io("cannot wait for a socket"))
    }

    /// Queues a unary call. `start` is what its latency will be counted from.
    pub fn request(&mut self, request: &Request, start: Instant) {
        let id = self.client.request(request.path, &HEADERS, &request.parts);
        self.sent_at.insert(id, start);
    }

    /// Opens a streaming call.
    pub fn open(&mut self, path: &str) -> StreamId {
        self.client.open(path, &HEADERS)
    }

    pub fn send_message(&mut self, id: StreamId, message: Bytes) {
        self.client.send_message(id, &[message]);
    }

    /// The start of a call that has ended.
    pub fn finish(&mut self, id: StreamId) -> Option<Instant> {
        self.sent_at.remove(id)
    }

    /// Unary calls that have no answer yet.
    pub fn outstanding(&self) -> usize {
        self.sent_at.waiting
    }

    /// Takes what the socket has. With `to_end` it reads until nothing is left, the end of the
    /// connection included; otherwise a short read is taken as the sign that nothing is.
    pub fn read(
        &mut self,
        scratch: &mut [u8],
        to_end: bool,
        events: &mut Vec<ClientEvent>,
    ) -> Result<(), Error> {
        loop {
            let n = match self.socket.read(scratch) {
                Ok(0) => return Err(self.lost("the server closed it")),
                Ok(n) => n,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.lost(&error.to_string())),
            };
            self.input.extend_from_slice(&scratch[..n]);
            if let Err(closed) = self.client.receive(&mut self.input, 0, events) {
                return Err(self.lost(&closed.to_string()));
            }
            if n < scratch.len() && !to_end {
                return Ok(());
            }
        }
    }

    /// Sends what is queued, as far as the socket takes it; the rest waits for `WRITABLE`.
    pub fn flush(&mut self) -> Result<(), Error> {
        while !self.client.output().is_empty() {
            let sent = {
                let mut slices: Vec<IoSlice> = Vec::new();
                self.client.output().io_slices(&mut slices);
                // The kernel takes 1024 pieces at a time.
                slices.truncate(1024);
                self.socket.write_vectored(&slices)
            };
            match sent {
                Ok(n) => self.client.output().advance(n),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.lost(&error.to_string())),
            }
        }
        Ok(())
    }

    pub fn lost(&self, reason: &str) -> Error {
        Error::Lost { endpoint: self.endpoint, reason: reason.to_string() }
    }
}

/// When each outstanding call began. Stream numbers only grow and calls end in about the order they
/// began, so a short queue with holes serves as the map.
#[derive(Default)]
struct SentAt {
    first: u32,
    starts: VecDeque<Option<Instant>>,
    waiting: usize,
}

impl SentAt {
    fn insert(&mut self, id: StreamId, start: Instant) {
        let place = id.number() / 2;
        if self.starts.is_empty() {
            self.first = place;
        }
        // Streaming calls take numbers too and leave holes here.
        let index = (place - self.first) as usize;
        self.starts.resize(index, None);
        self.starts.push_back(Some(start));
        self.waiting += 1;
    }

    fn remove(&mut self, id: StreamId) -> Option<Instant> {
        let index = (id.number() / 2).checked_sub(self.first)? as usize;
        let start = self.starts.get_mut(index)?.take()?;
        self.waiting -= 1;
        while let Some(None) = self.starts.front() {
            self.starts.pop_front();
            self.first += 1;
        }
        Some(start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(count: usize) -> Vec<StreamId> {
        let mut client = Client::new(Settings::default(), Limits::default(), "x");
        (0..count).map(|_| client.open("/x", &[])).collect()
    }

    #[test]
    fn calls_may_end_in_any_order_and_only_once() {
        let ids = ids(6);
        let base = Instant::now();
        let at = |n: u64| base + Duration::from_secs(n);
        let mut sent = SentAt::default();
        // Number 2 is a stream of another kind and never entered.
        for n in [0, 1, 3, 4] {
            sent.insert(ids[n], at(n as u64));
        }
        assert_eq!(sent.remove(ids[3]), Some(at(3)));
        assert_eq!(sent.remove(ids[3]), None);
        assert_eq!(sent.remove(ids[2]), None);
        assert_eq!(sent.remove(ids[0]), Some(at(0)));
        assert_eq!(sent.remove(ids[0]), None);
        assert_eq!(sent.remove(ids[4]), Some(at(4)));
        assert_eq!(sent.remove(ids[1]), Some(at(1)));
        assert_eq!((sent.waiting, sent.starts.len()), (0, 0));
        sent.insert(ids[5], at(5));
        assert_eq!(sent.remove(ids[5]), Some(at(5)));
    }
}
