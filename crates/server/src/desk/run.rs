//! A desk's loop: wait, read, step, hand over, write.

use super::call::{Call, CallId, Lane, State};
use super::connection::{Connection, Listener, NewConnection, Protocol, ReadOutcome, Serves};
use super::header::Headers;
use super::http::HttpLane;
use super::kv::Deferred;
use super::seats::Seats;
use crate::inbox::Inbox;
use crate::mail::{DeskBox, Letter, Settled};
use crate::office::Office;
use crate::pulse::Pulse;
use api::Error;
use bytes::{Bytes, BytesMut};
use gateway::Transcoder;
use httpcore::h2;
use metrics::Metrics;
use mio::{Events, Interest, Poll, Token};
use node::{Event, Ids};
use rustc_hash::FxHashMap;
use slab::Slab;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::View;
use watch::{StreamKey, Watches};

/// Timeouts, progress notifications and quiet letters are looked at this often.
const TICK: Duration = Duration::from_millis(100);
/// Tokens below this one are listeners; the waker has the one before it.
const FIRST_CONNECTION: usize = 64;
pub const WAKER: Token = Token(FIRST_CONNECTION - 1);
/// What a connection may make us hold of messages that have not come whole.
const PARTIAL_BYTES_MAX: usize = 16 << 20;
/// The first bytes that tell HTTP/2 from HTTP/1.
const PREFACE: &[u8] = h2::PREFACE;

/// Numbers that bound what a caller may ask.
#[derive(Clone, Debug)]
pub struct Limits {
    pub request_bytes_max: usize,
    pub txn_ops_max: usize,
    pub request_timeout: Duration,
    pub election: Duration,
    pub concurrent_streams_max: u32,
    pub ping_interval_min: Duration,
    /// A silent connection is pinged after the first time and closed after the second, if both
    /// are set.
    pub keepalive: Option<(Duration, Duration)>,
    /// A request that takes longer is worth a line in the log.
    pub slow_request: Duration,
}

impl Limits {
    /// What gRPC takes in: a request, and room for what surrounds it.
    pub fn message_bytes_max(&self) -> usize {
        self.request_bytes_max + (512 << 10)
    }
}

/// What all desks read and none changes.
pub struct Shared {
    pub view: View,
    pub pulse: Arc<Pulse>,
    pub replica: Arc<Inbox<Event>>,
    pub office: Office,
    pub metrics: Arc<Metrics>,
    pub transcoder: Transcoder,
    pub limits: Limits,
    pub seats: Arc<Seats>,
    pub http: crate::http::Policy,
    pub cluster_id: u64,
    pub member_id: u64,
    pub desks: Arc<[DeskBox]>,
    pub logger: config::log::Logger,
}

pub struct DeskConfig {
    pub number: usize,
    pub poll: Poll,
    pub listeners: Vec<(Listener, Serves)>,
    pub ids: Ids,
    pub watch: watch::Config,
    /// What the store's revision was when the desk's box began to be filled.
    pub revision: i64,
}

/// A proposal on its way.
pub(super) struct Proposed {
    pub call: CallId,
    /// In milliseconds of the desk's clock.
    pub deadline: u64,
}

pub struct Desk {
    pub(super) shared: Arc<Shared>,
    pub(super) number: usize,
    poll: Poll,
    pub(super) listeners: Vec<(Listener, Serves)>,
    pub(super) connections: Slab<Connection>,
    generation: u32,
    next_desk: usize,
    pub(super) ids: Ids,
    pub(super) proposed: FxHashMap<u64, Proposed>,
    proposals: Vec<Event>,
    /// Questions to the replica that are open, by token.
    pub(super) asked: FxHashMap<u64, (CallId, Deferred)>,
    pub(super) next_token: u64,
    /// Reads that wait for the store to reach an index, in the order of the index.
    pub(super) reads: VecDeque<(u64, CallId, Deferred)>,
    /// Reads of callers that have not yet taken what they asked for before.
    pub(super) parked: Vec<(CallId, Deferred)>,
    /// Permissions to send more of a stream, given back when its peer has taken enough.
    pub(super) held_back: Vec<(CallId, tokio::sync::OwnedSemaphorePermit)>,
    pub(super) watches: Watches,
    pub(super) streams: FxHashMap<StreamKey, CallId>,
    pub(super) next_stream: u64,
    /// Watch streams whose peers do not take enough, by connection.
    pub(super) blocked: FxHashMap<usize, Vec<StreamKey>>,
    pub(super) catching_up: bool,
    pub(super) events_counted: u64,
    pub(super) headers: Headers,
    /// The buffer that sockets are read into.
    spare_input: BytesMut,
    /// Connections with something to write, or something to read that was put off.
    pub(super) dirty: Vec<usize>,
    started: Instant,
    pub(super) now_ms: u64,
    stopping: Option<u64>,
    pub(super) leaderless_since: Option<u64>,
}

impl Desk {
    pub fn new(shared: Arc<Shared>, config: DeskConfig) -> Desk {
        let headers = Headers::new(shared.cluster_id, shared.member_id);
        Desk {
            number: config.number,
            poll: config.poll,
            listeners: config.listeners,
            connections: Slab::new(),
            generation: 0,
            next_desk: config.number,
            ids: config.ids,
            proposed: FxHashMap::default(),
            proposals: Vec::new(),
            asked: FxHashMap::default(),
            next_token: 0,
            reads: VecDeque::new(),
            parked: Vec::new(),
            held_back: Vec::new(),
            watches: Watches::new(config.watch, config.revision),
            streams: FxHashMap::default(),
            next_stream: 0,
            blocked: FxHashMap::default(),
            catching_up: false,
            events_counted: 0,
            headers,
            spare_input: BytesMut::new(),
            dirty: Vec::new(),
            started: Instant::now(),
            now_ms: 0,
            stopping: None,
            leaderless_since: None,
            shared,
        }
    }

    /// Runs until it is told to stop and its connections have ended, or the time for that is over.
    pub fn run(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(1024);
        let mut next_tick = 0;
        for at in 0..self.listeners.len() {
            let source = self.listeners[at].0.source();
            self.poll.registry().register(source, Token(at), Interest::READABLE)?;
        }
        loop {
            let patience = if self.has_work() { Duration::ZERO } else { TICK };
            match self.poll.poll(&mut events, Some(patience)) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                polled => polled?,
            }
            self.now_ms = self.started.elapsed().as_millis() as u64;
            for event in &events {
                match event.token() {
                    WAKER => {}
                    Token(listener) if listener < FIRST_CONNECTION => self.accept(listener),
                    Token(token) => self.on_socket(token - FIRST_CONNECTION, event),
                }
            }
            self.read_letters();
            self.run_ready_reads();
            self.run_parked_reads();
            self.let_streams_go_on();
            self.step_watches();
            if self.now_ms >= next_tick {
                next_tick = self.now_ms + TICK.as_millis() as u64;
                self.tick();
            }
            if !self.proposals.is_empty() {
                let proposals = std::mem::take(&mut self.proposals);
                self.shared.replica.send_all(proposals);
            }
            self.write_all();
            if self.stopping.is_some_and(|until| self.now_ms >= until || self.is_idle()) {
                return Ok(());
            }
        }
    }

    /// Whether there is something to do without anything new happening.
    fn has_work(&mut self) -> bool {
        self.catching_up || !self.dirty.is_empty() || self.can_run_parked()
    }

    fn is_idle(&self) -> bool {
        self.connections.is_empty()
    }

    pub(super) fn accept(&mut self, listener: usize) {
        loop {
            let (listener, serves) = &self.listeners[listener];
            // Those who look after the server get in even when clients have taken all seats.
            let seat = match serves {
                Serves::Metrics | Serves::Peers => None,
                Serves::Everything | Serves::Grpc | Serves::Http => {
                    let Some(seat) = self.shared.seats.take() else { return };
                    Some(seat)
                }
            };
            match listener.accept() {
                Ok(socket) => {
                    let new = NewConnection { socket, serves: *serves, seat };
                    // Connections are dealt out in turn.
                    self.next_desk = (self.next_desk + 1) % self.shared.desks.len();
                    if self.next_desk == self.number {
                        self.begin(new);
                    } else {
                        self.shared.desks[self.next_desk].send(Letter::Connection(new));
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(e) => {
                    config::warn!(self.shared.logger, "cannot accept a connection", "error" => e.to_string());
                    // Out of descriptors, most likely. The listener is looked at again by the tick.
                    return;
                }
            }
        }
    }

    fn begin(&mut self, new: NewConnection) {
        if self.stopping.is_some() {
            return;
        }
        let NewConnection { mut socket, serves, seat } = new;
        let entry = self.connections.vacant_entry();
        let token = Token(entry.key() + FIRST_CONNECTION);
        let interest = Interest::READABLE | Interest::WRITABLE;
        if let Err(e) = self.poll.registry().register(socket.source(), token, interest) {
            config::warn!(self.shared.logger, "cannot watch a connection", "error" => e.to_string());
            return;
        }
        self.generation = self.generation.wrapping_add(1);
        let key = entry.key();
        entry.insert(Connection {
            socket,
            serves,
            _seat: seat,
            generation: self.generation,
            protocol: Protocol::Unknown,
            input: BytesMut::new(),
            readable: true,
            dirty: false,
            closing: false,
            ended: false,
            last_input_ms: self.now_ms,
            pinged: false,
        });
        self.mark_dirty(key);
    }

    fn on_socket(&mut self, key: usize, event: &mio::event::Event) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        if event.is_readable() || event.is_read_closed() {
            connection.readable = true;
            self.read_socket(key);
        }
        if event.is_writable() {
            self.mark_dirty(key);
        }
        if event.is_error() {
            self.close(key);
        }
    }

    /// Reads a socket and steps what arrived. Other sockets get their turn after a few reads.
    fn read_socket(&mut self, key: usize) {
        for _ in 0..4 {
            let Some(connection) = self.connections.get_mut(key) else { return };
            if !connection.readable || connection.closing || connection.is_congested() {
                return;
            }
            // Connections without a started message hold no buffer: they share the desk's.
            if connection.input.is_empty() {
                connection.input = std::mem::take(&mut self.spare_input);
            }
            match connection.read() {
                Ok(ReadOutcome::More) => {}
                Ok(ReadOutcome::Drained) => connection.readable = false,
                Ok(ReadOutcome::Ended) => {
                    connection.readable = false;
                    connection.ended = true;
                }
                Err(_) => {
                    self.close(key);
                    return;
                }
            }
            connection.last_input_ms = self.now_ms;
            connection.pinged = false;
            let ended = connection.ended;
            self.step_input(key);
            if let Some(connection) = self.connections.get_mut(key)
                && connection.input.is_empty()
            {
                self.spare_input = std::mem::take(&mut connection.input);
            }
            if ended {
                self.on_peer_ended(key);
                return;
            }
        }
        self.mark_dirty(key);
    }

    /// The peer has closed its half. An HTTP/1 caller may still wait for its answer.
    fn on_peer_ended(&mut self, key: usize) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        match &connection.protocol {
            Protocol::Http(http) if http.is_busy() => {}
            _ => self.close(key),
        }
    }

    fn step_input(&mut self, key: usize) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        if matches!(connection.protocol, Protocol::Unknown) && !self.tell_protocol(key) {
            return;
        }
        let Some(connection) = self.connections.get_mut(key) else { return };
        match connection.protocol {
            Protocol::Unknown => {}
            Protocol::Grpc { .. } => self.step_grpc(key),
            Protocol::Http(_) => self.step_http(key),
        }
    }

    /// Decides by the first bytes what is spoken. `false`: too few have come.
    fn tell_protocol(&mut self, key: usize) -> bool {
        let limits = self.shared.limits.clone();
        let Some(connection) = self.connections.get_mut(key) else { return false };
        let seen = connection.input.len().min(PREFACE.len());
        let is_h2 = match connection.serves {
            Serves::Grpc => true,
            Serves::Http | Serves::Metrics | Serves::Peers => false,
            Serves::Everything if connection.input[..seen] != PREFACE[..seen] => false,
            Serves::Everything if seen < PREFACE.len() => return false,
            Serves::Everything => true,
        };
        let message_bytes_max = limits.message_bytes_max();
        connection.protocol = if is_h2 {
            let settings = h2::Settings {
                max_concurrent_streams: limits.concurrent_streams_max,
                ..h2::Settings::default()
            };
            let limits = h2::Limits {
                message_bytes_max,
                partial_bytes_max: PARTIAL_BYTES_MAX,
                ping_interval_min_ms: limits.ping_interval_min.as_millis() as u64,
                ..h2::Limits::default()
            };
            let link = Box::new(h2::Server::new(settings, limits));
            Protocol::Grpc { link, calls: FxHashMap::default() }
        } else {
            Protocol::Http(Box::new(HttpLane::new(connection.serves, message_bytes_max)))
        };
        true
    }

    fn step_grpc(&mut self, key: usize) {
        let now_ms = self.now_ms;
        let mut events = Vec::new();
        let Some(connection) = self.connections.get_mut(key) else { return };
        let generation = connection.generation;
        let Protocol::Grpc { link, .. } = &mut connection.protocol else { return };
        let received = link.receive(&mut connection.input, now_ms, &mut events);
        let id = |stream| CallId { connection: key, generation, lane: Lane::Grpc(stream) };
        for event in events {
            match event {
                h2::Event::Request { id: stream, path, headers, timeout, end } => {
                    self.begin_grpc_call(id(stream), &path, &headers, timeout);
                    if end {
                        self.on_half_close(id(stream));
                    }
                }
                h2::Event::Message { id: stream, data } => self.on_message(id(stream), data),
                h2::Event::HalfClosed { id: stream } => self.on_half_close(id(stream)),
                h2::Event::Reset { id: stream, .. } => self.forget_call(id(stream)),
                _ => {}
            }
        }
        if received.is_err()
            && let Some(connection) = self.connections.get_mut(key)
        {
            connection.closing = true;
        }
        self.mark_dirty(key);
    }

    pub(super) fn read_letters(&mut self) {
        let mut letters = Vec::new();
        self.shared.desks[self.number].take(&mut letters);
        for letter in letters {
            self.read_letter(letter);
        }
    }

    fn read_letter(&mut self, letter: Letter) {
        match letter {
            Letter::Connection(new) => self.begin(new),
            Letter::Settled(settled) => {
                for Settled { id, result } in settled {
                    if let Some(Proposed { call, .. }) = self.proposed.remove(&id) {
                        self.settle(call, result);
                    }
                }
            }
            Letter::Changes(changes) => self.on_changes(&changes),
            Letter::Answers(answers) => {
                for (token, answer) in answers {
                    if let Some((call, deferred)) = self.asked.remove(&token) {
                        self.on_answer(call, deferred, answer);
                    }
                }
            }
            Letter::Word(call, word) => self.on_word(call, word),
            Letter::Applied => {}
            Letter::Stop => self.stop(),
        }
    }

    /// No new calls; those under way may end, for as long as a request may take.
    fn stop(&mut self) {
        self.stopping = Some(self.now_ms + self.shared.limits.request_timeout.as_millis() as u64);
        self.listeners.clear();
        for key in self.keys() {
            let Some(connection) = self.connections.get_mut(key) else { continue };
            match &mut connection.protocol {
                Protocol::Unknown => connection.closing = true,
                Protocol::Grpc { link, .. } => link.shut_down(),
                Protocol::Http(http) => connection.closing = !http.is_busy(),
            }
            self.end_streams(key);
            self.mark_dirty(key);
        }
    }

    /// Streams would go on for ever, so a stop ends them.
    fn end_streams(&mut self, key: usize) {
        let Some(connection) = self.connections.get(key) else { return };
        let Protocol::Grpc { calls, .. } = &connection.protocol else { return };
        let endless: Vec<CallId> = calls
            .iter()
            .filter(|(_, call)| !matches!(call.state, State::Working))
            .map(|(&stream, _)| connection.id(key, Lane::Grpc(stream)))
            .collect();
        for call in endless {
            self.fail(call, Error::STOPPED);
        }
    }

    pub(super) fn keys(&self) -> Vec<usize> {
        self.connections.iter().map(|(key, _)| key).collect()
    }

    /// Hands an entry to the log; the call is answered when it is applied.
    pub(super) fn propose(&mut self, call: CallId, id: u64, entry: Bytes) {
        let timeout = self.shared.limits.request_timeout.as_millis() as u64;
        self.proposed.insert(id, Proposed { call, deadline: self.now_ms + timeout });
        self.proposals.push(Event::Propose { id, data: entry });
    }

    pub(super) fn propose_conf_change(&mut self, call: CallId, change: raftpb::ConfChange) {
        let timeout = self.shared.limits.request_timeout.as_millis() as u64;
        self.proposed.insert(change.id, Proposed { call, deadline: self.now_ms + timeout });
        self.proposals.push(Event::ProposeConfChange { change });
    }

    pub(super) fn send_event(&mut self, event: Event) {
        self.proposals.push(event);
    }

    pub(super) fn call_mut(&mut self, id: CallId) -> Option<&mut Call> {
        let connection = self.connections.get_mut(id.connection)?;
        (connection.generation == id.generation).then(|| connection.call_mut(id.lane))?
    }

    pub(super) fn mark_dirty(&mut self, key: usize) {
        if let Some(connection) = self.connections.get_mut(key)
            && !connection.dirty
        {
            connection.dirty = true;
            self.dirty.push(key);
        }
    }

    /// Writes every connection that has something, and reads on where reading was put off.
    fn write_all(&mut self) {
        for key in std::mem::take(&mut self.dirty) {
            let Some(connection) = self.connections.get_mut(key) else { continue };
            connection.dirty = false;
            if connection.flush().is_err() {
                self.close(key);
                continue;
            }
            let drained = connection.output_len() == 0;
            let over = match &connection.protocol {
                Protocol::Unknown => connection.closing || connection.ended,
                Protocol::Grpc { link, .. } => {
                    connection.closing || (self.stopping.is_some() && link.is_idle())
                }
                Protocol::Http(http) => {
                    connection.closing || http.is_over() || (connection.ended && !http.is_busy())
                }
            };
            if drained && over {
                self.close(key);
                continue;
            }
            let wants_more = connection.readable && !connection.closing;
            self.unblock_streams(key);
            if wants_more {
                self.read_socket(key);
            }
        }
    }

    pub(super) fn close(&mut self, key: usize) {
        let Some(mut connection) = self.connections.try_remove(key) else { return };
        for call in connection.take_calls() {
            self.drop_call(call);
        }
        // The descriptor is closed right after, which takes it out of the poll in any case.
        let _gone = self.poll.registry().deregister(connection.socket.source());
    }

    /// The caller has gone away.
    pub(super) fn forget_call(&mut self, id: CallId) {
        let Some(connection) = self.connections.get_mut(id.connection) else { return };
        if connection.generation != id.generation {
            return;
        }
        if let Some(call) = connection.end_call(id.lane) {
            self.drop_call(call);
        }
    }
}
