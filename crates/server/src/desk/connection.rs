//! One socket and the protocol that is spoken on it.

use super::call::{Call, CallId, Lane};
use super::http::HttpLane;
use bytes::BytesMut;
use httpcore::Output;
use httpcore::h2::{self, StreamId};
use mio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use rustc_hash::FxHashMap;
use std::io::{self, IoSlice, Write};
use std::os::fd::{AsRawFd, RawFd};

/// A socket is read in pieces of about this size.
const READ_BYTES: usize = 64 << 10;
/// While a peer does not take what it asked for, nothing more is read from it.
const OUTPUT_BYTES_MAX: usize = 4 << 20;
/// `writev` takes this many pieces at a time.
const SLICES_MAX: usize = 256;

/// What is served behind a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serves {
    /// gRPC and HTTP, told apart by the first bytes.
    Everything,
    Grpc,
    Http,
    /// Only metrics and health.
    Metrics,
    /// What members ask each other.
    Peers,
}

#[derive(Debug)]
pub enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

#[derive(Debug)]
pub enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

#[derive(Debug)]
pub struct NewConnection {
    pub socket: Socket,
    pub serves: Serves,
}

pub enum Protocol {
    /// Nothing has arrived yet that would tell.
    Unknown,
    Grpc {
        link: Box<h2::Server>,
        calls: FxHashMap<StreamId, Call>,
    },
    Http(Box<HttpLane>),
}

pub struct Connection {
    pub socket: Socket,
    pub serves: Serves,
    pub generation: u32,
    pub protocol: Protocol,
    pub input: BytesMut,
    /// There may be more to read than was read.
    pub readable: bool,
    /// Something was queued that has not been written.
    pub dirty: bool,
    /// Nothing more is read; closed once all is written.
    pub closing: bool,
    /// The peer will send nothing more.
    pub ended: bool,
    pub last_input_ms: u64,
    /// A ping was sent since the last input.
    pub pinged: bool,
}

/// What came of reading a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadOutcome {
    /// Nothing is left for now.
    Drained,
    /// There may be more.
    More,
    Ended,
}

impl Connection {
    /// Reads once. A read that does not fill the space has emptied the socket: the next bytes
    /// make a new event, so one system call is saved.
    pub fn read(&mut self) -> io::Result<ReadOutcome> {
        self.input.reserve(READ_BYTES);
        let space = self.input.spare_capacity_mut();
        let space_bytes = space.len();
        // SAFETY: the descriptor is open, and the kernel writes at most `space_bytes` bytes into
        // memory that is ours to fill.
        let read =
            unsafe { libc::read(self.socket.as_raw_fd(), space.as_mut_ptr().cast(), space_bytes) };
        let read = usize::try_from(read).map_err(|_| io::Error::last_os_error());
        match read {
            Ok(0) => Ok(ReadOutcome::Ended),
            Ok(n) => {
                // SAFETY: `read` has initialised `n` bytes of the spare capacity.
                unsafe { self.input.set_len(self.input.len() + n) };
                Ok(if n == space_bytes { ReadOutcome::More } else { ReadOutcome::Drained })
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(ReadOutcome::Drained),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(ReadOutcome::More),
            Err(e) => Err(e),
        }
    }

    pub fn output(&mut self) -> Option<&mut Output> {
        match &mut self.protocol {
            Protocol::Unknown => None,
            Protocol::Grpc { link, .. } => Some(link.output()),
            Protocol::Http(lane) => Some(lane.output()),
        }
    }

    pub fn output_len(&mut self) -> usize {
        self.output().map_or(0, |output| output.len())
    }

    pub fn is_congested(&mut self) -> bool {
        self.output_len() > OUTPUT_BYTES_MAX
    }

    /// Whether answers for this peer pile up here. Unlike with a congested socket reading must go
    /// on: it may be our turn only when the peer has made room in its windows.
    pub fn is_behind(&mut self) -> bool {
        let queued = match &self.protocol {
            Protocol::Grpc { link, .. } => link.pending_all(),
            Protocol::Unknown | Protocol::Http(_) => 0,
        };
        queued + self.output_len() > OUTPUT_BYTES_MAX
    }

    /// Writes as much as the socket takes.
    pub fn flush(&mut self) -> io::Result<()> {
        let output = match &mut self.protocol {
            Protocol::Unknown => return Ok(()),
            Protocol::Grpc { link, .. } => link.output(),
            Protocol::Http(lane) => lane.output(),
        };
        while !output.is_empty() {
            let mut slices: Vec<IoSlice<'_>> = Vec::new();
            output.io_slices(&mut slices);
            slices.truncate(SLICES_MAX);
            let written = match &mut self.socket {
                Socket::Tcp(socket) => socket.write_vectored(&slices),
                Socket::Unix(socket) => socket.write_vectored(&slices),
            };
            match written {
                Ok(n) => output.advance(n),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    pub fn call_mut(&mut self, lane: Lane) -> Option<&mut Call> {
        match (&mut self.protocol, lane) {
            (Protocol::Grpc { calls, .. }, Lane::Grpc(stream)) => calls.get_mut(&stream),
            (Protocol::Http(http), Lane::Http(number)) => http.call_mut(number),
            _ => None,
        }
    }

    pub fn end_call(&mut self, lane: Lane) -> Option<Call> {
        match (&mut self.protocol, lane) {
            (Protocol::Grpc { calls, .. }, Lane::Grpc(stream)) => calls.remove(&stream),
            (Protocol::Http(http), Lane::Http(number)) => http.end_call(number),
            _ => None,
        }
    }

    /// All calls under way, for when the connection goes.
    pub fn take_calls(&mut self) -> Vec<Call> {
        match &mut self.protocol {
            Protocol::Unknown => Vec::new(),
            Protocol::Grpc { calls, .. } => calls.drain().map(|(_, call)| call).collect(),
            Protocol::Http(http) => http.take_call().into_iter().collect(),
        }
    }

    pub fn id(&self, connection: usize, lane: Lane) -> CallId {
        CallId { connection, generation: self.generation, lane }
    }
}

impl Listener {
    /// The next connection that waits to be accepted.
    pub fn accept(&self) -> io::Result<Socket> {
        match self {
            Listener::Tcp(listener) => {
                let (socket, _) = listener.accept()?;
                // Answers are written whole, so there is nothing to gain from waiting for more.
                socket.set_nodelay(true)?;
                Ok(Socket::Tcp(socket))
            }
            Listener::Unix(listener) => {
                let (socket, _) = listener.accept()?;
                Ok(Socket::Unix(socket))
            }
        }
    }

    pub fn source(&mut self) -> &mut dyn mio::event::Source {
        match self {
            Listener::Tcp(listener) => listener,
            Listener::Unix(listener) => listener,
        }
    }
}

impl Socket {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Socket::Tcp(socket) => socket.as_raw_fd(),
            Socket::Unix(socket) => socket.as_raw_fd(),
        }
    }

    pub fn source(&mut self) -> &mut dyn mio::event::Source {
        match self {
            Socket::Tcp(socket) => socket,
            Socket::Unix(socket) => socket,
        }
    }
}
