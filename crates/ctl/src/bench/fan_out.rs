//! Watch fan-out: a few writers, many watchers of the same key, and the time until all know all.
//!
//! The writers are a closed loop on a connection of their own. The watchers sit on other
//! connections, each on its own stream unless fewer streams are asked for. Of an answer only the
//! number of events is read: its outermost fields are skipped over, nothing is decoded.
//!
//! Watchers receive events in order, so the n-th event of a watcher belongs to the n-th put. With
//! one writer that gives each event's latency without a timestamp in the value.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use api::etcdserverpb::watch_request::RequestUnion;
use api::etcdserverpb::{PutRequest, WatchCreateRequest, WatchRequest};
use bytes::{Buf, Bytes};
use httpcore::h2::{ClientEvent, StreamId};
use mio::{Events, Poll};
use prost::Message;
use prost::encoding::{WireType, decode_key, decode_varint};

use super::Error;
use super::histogram::Histogram;
use super::line::{Line, Request, SILENCE_MAX};
use super::load::{ServerUsage, Stop};
use super::process::{self, Usage};
use super::requests::PUT;

const WATCH: &str = "/etcdserverpb.Watch/Watch";
const KEY: &[u8] = b"bench/watched";

#[derive(Clone, Debug)]
pub struct Plan {
    pub endpoints: Vec<SocketAddr>,
    pub connections: u64,
    pub writers: u64,
    pub watchers: u64,
    pub streams: u64,
    /// Watch the keys that begin with `bench/` rather than the one key.
    pub prefix: bool,
    pub value_bytes: usize,
    pub warmup_puts: u64,
    /// Counted in puts.
    pub stop: Stop,
    pub pid: Option<u32>,
}

pub struct Outcome {
    pub puts: u64,
    pub events: u64,
    /// Answers that carried them; fewer when the server sends several events in one.
    pub messages: u64,
    /// From the put's start to the event's arrival; empty with more than one writer.
    pub delivery: Histogram,
    pub put_latency: Histogram,
    pub elapsed: Duration,
    pub generator_cpu: Duration,
    pub server: Option<ServerUsage>,
}

impl Outcome {
    pub fn events_per_second(&self) -> f64 {
        self.events as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    pub fn events_per_cpu_second(&self) -> Option<f64> {
        Some(self.events as f64 / self.server?.cpu.as_secs_f64().max(1e-9))
    }
}

pub fn run(plan: &Plan) -> Result<Outcome, Error> {
    let mut room = Room::connect(plan)?;
    room.create_watches(plan)?;
    room.writing(plan, Stop::Total(plan.warmup_puts))?;

    let before = plan.pid.map(process::usage).transpose()?;
    let cpu_before = process::own_cpu();
    let start = Instant::now();
    let mut outcome = room.writing(plan, plan.stop)?;
    outcome.elapsed = start.elapsed();
    outcome.generator_cpu = process::own_cpu() - cpu_before;
    if let (Some(before), Some(pid)) = (before, plan.pid) {
        let after: Usage = process::usage(pid)?;
        outcome.server = Some(ServerUsage::between(before, after));
    }
    Ok(outcome)
}

/// One writers' connection (the first) and the watchers' connections.
struct Room {
    poll: Poll,
    lines: Vec<Line>,
    streams: Vec<Stream>,
    scratch: Vec<u8>,
    ready: Events,
}

struct Stream {
    line: usize,
    id: StreamId,
    watches: u64,
    /// Events received in this phase.
    received: u64,
}

impl Room {
    fn connect(plan: &Plan) -> Result<Room, Error> {
        let poll = Poll::new().map_err(Error::io("cannot wait for sockets"))?;
        let mut lines = Vec::new();
        for connection in 0..=plan.connections as usize {
            let mut line = Line::connect(plan.endpoints[connection % plan.endpoints.len()])?;
            line.register(poll.registry(), connection)?;
            lines.push(line);
        }
        let ready = Events::with_capacity(1024);
        Ok(Room { poll, lines, streams: Vec::new(), scratch: vec![0; 64 << 10], ready })
    }

    /// Opens the streams, asks for the watches, and waits until all are confirmed.
    fn create_watches(&mut self, plan: &Plan) -> Result<(), Error> {
        let (key, range_end) = match plan.prefix {
            true => (&b"bench/"[..], &b"bench0"[..]),
            false => (KEY, &b""[..]),
        };
        let create = WatchCreateRequest {
            key: Bytes::from_static(key),
            range_end: Bytes::from_static(range_end),
            ..Default::default()
        };
        let create = WatchRequest { request_union: Some(RequestUnion::CreateRequest(create)) };
        let create = Bytes::from(create.encode_to_vec());
        for number in 0..plan.streams {
            let line = 1 + (number % plan.connections) as usize;
            let id = self.lines[line].open(WATCH);
            let watches = (number..plan.watchers).step_by(plan.streams as usize).count() as u64;
            for _ in 0..watches {
                self.lines[line].send_message(id, create.clone());
            }
            self.streams.push(Stream { line, id, watches, received: 0 });
        }
        let mut created = 0;
        while created < plan.watchers {
            self.wait(|_, event| {
                if let ClientEvent::Message { data, .. } = event {
                    created += u64::from(glance(data).created);
                }
            })?;
        }
        Ok(())
    }

    /// Writes, and returns when every watcher has seen every put.
    fn writing(&mut self, plan: &Plan, stop: Stop) -> Result<Outcome, Error> {
        let value = Bytes::from(vec![b'v'; plan.value_bytes]);
        let put = PutRequest { key: Bytes::from_static(KEY), value, ..Default::default() };
        let put = Request { path: PUT, parts: [put.encode_to_vec().into(), Bytes::new()] };
        let begin = Instant::now();
        let may_begin = |begun: usize, now: Instant| match stop {
            Stop::Total(total) => (begun as u64) < total,
            Stop::After(time) => now - begin < time,
        };
        let mut place_of: Vec<Vec<usize>> = vec![Vec::new(); self.lines.len()];
        for (place, stream) in self.streams.iter_mut().enumerate() {
            stream.received = 0;
            let known = &mut place_of[stream.line];
            known.resize(known.len().max(stream.id.number() as usize / 2 + 1), usize::MAX);
            known[stream.id.number() as usize / 2] = place;
        }
        let mut streams = std::mem::take(&mut self.streams);
        let mut starts: Vec<Instant> = Vec::new();
        for _ in 0..plan.writers {
            if may_begin(starts.len(), begin) {
                starts.push(begin);
                self.lines[0].request(&put, begin);
            }
        }
        let (mut events, mut messages, mut puts) = (0, 0, 0);
        let (mut delivery, mut put_latency) = (Histogram::default(), Histogram::default());
        let mut failure = None;
        while failure.is_none()
            && (self.lines[0].outstanding() > 0 || events < puts * plan.watchers)
        {
            let mut answered = Vec::new();
            let now = self.wait(|line, event| match event {
                ClientEvent::Trailers { id, code: 0, .. } if line == 0 => answered.push(*id),
                ClientEvent::Trailers { code, message, .. } => {
                    failure = Some(format!("code {code}: {message}"));
                }
                ClientEvent::Reset { code, .. } => {
                    failure = Some(format!("stream reset with code {code}"));
                }
                ClientEvent::Message { id, data } if line > 0 => {
                    let glance = glance(data);
                    if glance.canceled {
                        failure = Some("the server canceled a watch".to_string());
                    }
                    let place = place_of[line].get(id.number() as usize / 2).copied();
                    let Some(stream) = place.and_then(|place| streams.get_mut(place)) else {
                        return;
                    };
                    events += glance.events;
                    messages += u64::from(glance.events > 0);
                    if plan.writers == 1 {
                        let now = Instant::now();
                        for n in stream.received..stream.received + glance.events {
                            let start = starts.get((n / stream.watches) as usize);
                            delivery.record(start.map_or(Duration::ZERO, |start| now - *start));
                        }
                    }
                    stream.received += glance.events;
                }
                _ => {}
            })?;
            for id in answered {
                if let Some(start) = self.lines[0].finish(id) {
                    put_latency.record(now - start);
                    puts += 1;
                }
                if may_begin(starts.len(), now) {
                    starts.push(now);
                    self.lines[0].request(&put, now);
                }
            }
        }
        if let Some(reason) = failure {
            return Err(self.lines[0].lost(&reason));
        }
        self.streams = streams;
        let (elapsed, generator_cpu) = (Duration::ZERO, Duration::ZERO);
        let server = None;
        Ok(Outcome {
            puts,
            events,
            messages,
            delivery,
            put_latency,
            elapsed,
            generator_cpu,
            server,
        })
    }

    /// Sends what is queued, waits for the sockets once, and shows what came, with the number of
    /// its connection. Returns when that was.
    fn wait(&mut self, mut see: impl FnMut(usize, &ClientEvent)) -> Result<Instant, Error> {
        // Windows are opened again and puts are queued between two waits.
        for line in &mut self.lines {
            line.flush()?;
        }
        let begin = Instant::now();
        loop {
            match self.poll.poll(&mut self.ready, Some(Duration::from_secs(1))) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                polled => polled.map_err(Error::io("cannot wait for sockets"))?,
            }
            if !self.ready.is_empty() {
                break;
            }
            if begin.elapsed() > SILENCE_MAX {
                let outstanding = self.lines[0].outstanding();
                let endpoint = self.lines[0].endpoint;
                return Err(Error::Silent { endpoint, outstanding, silence: SILENCE_MAX });
            }
        }
        let mut happened = Vec::new();
        for event in self.ready.iter() {
            let number = event.token().0;
            if event.is_readable() || event.is_read_closed() {
                let closed = event.is_read_closed();
                self.lines[number].read(&mut self.scratch, closed, &mut happened)?;
                happened.drain(..).for_each(|event| see(number, &event));
            }
        }
        Ok(Instant::now())
    }
}

/// What the outermost fields of a `WatchResponse` say.
#[derive(Debug, Default, PartialEq, Eq)]
struct Glance {
    created: bool,
    canceled: bool,
    events: u64,
}

fn glance(message: &Bytes) -> Glance {
    let mut glance = Glance::default();
    let mut rest: &[u8] = message;
    while !rest.is_empty() {
        let Ok((tag, wire)) = decode_key(&mut rest) else { break };
        match wire {
            WireType::Varint => {
                let Ok(value) = decode_varint(&mut rest) else { break };
                match tag {
                    3 => glance.created = value != 0,
                    4 => glance.canceled = value != 0,
                    _ => {}
                }
            }
            WireType::LengthDelimited => {
                let Ok(length) = decode_varint(&mut rest) else { break };
                if length > rest.len() as u64 {
                    break;
                }
                rest.advance(length as usize);
                glance.events += u64::from(tag == 11);
            }
            _ => break,
        }
    }
    glance
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::etcdserverpb::{ResponseHeader, WatchResponse};
    use api::mvccpb::{Event, KeyValue};

    #[test]
    fn a_glance_counts_events_without_decoding_them() {
        let event = Event {
            kv: Some(KeyValue { value: Bytes::from(vec![0x5a; 300]), ..Default::default() }),
            ..Default::default()
        };
        let header = Some(ResponseHeader { revision: 1 << 40, ..Default::default() });
        let full =
            WatchResponse { header, watch_id: 5, events: vec![event; 3], ..Default::default() };
        let bytes = Bytes::from(full.encode_to_vec());
        let expected = Glance { created: false, canceled: false, events: 3 };
        assert_eq!(glance(&bytes), expected);
        // Cut short, it counts what is whole and does not panic.
        for end in 0..bytes.len() {
            assert!(glance(&bytes.slice(..end)).events < 3);
        }
        let created = WatchResponse { created: true, canceled: true, ..Default::default() };
        let seen = glance(&created.encode_to_vec().into());
        assert_eq!(seen, Glance { created: true, canceled: true, events: 0 });
    }
}
