//! HTTP/2 under chance: bytes cut anywhere, bytes damaged, windows of every size.
//!
//! Every test prints its seed; `HTTPCORE_SEED=n` repeats one.

mod wire;

use std::collections::{BTreeMap, VecDeque};

use bytes::{Bytes, BytesMut};
use httpcore::Output;
use httpcore::h2::{Client, ClientEvent, Event, Limits, Server, Settings, StreamId};
use httpcore::hpack::Decoder;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use wire::{describe, drain};

fn seeds(count: u64) -> impl Iterator<Item = u64> {
    let only = std::env::var("HTTPCORE_SEED").ok().and_then(|seed| seed.parse().ok());
    let range = only.map_or(0..count, |seed| seed..seed + 1);
    range.inspect(|seed| println!("seed {seed}"))
}

fn settings(random: &mut StdRng) -> Settings {
    Settings {
        initial_window: [50, 1000, 65535, 1 << 20][random.random_range(0..4)],
        connection_window: [65535, 70000, 16 << 20][random.random_range(0..3)],
        ..Settings::default()
    }
}

fn limits() -> Limits {
    Limits { message_bytes_max: 100_000, ping_interval_min_ms: 0, ..Limits::default() }
}

fn payload(random: &mut StdRng) -> Bytes {
    let most = [0, 10, 300, 3000, 20_000][random.random_range(0..5)];
    let length = random.random_range(0..=most);
    let mut bytes = vec![0; length];
    random.fill(&mut bytes[..]);
    bytes.into()
}

/// What a lively client sends, with a server's SETTINGS heard beforehand.
fn client_session(random: &mut StdRng) -> Vec<u8> {
    let mut client = Client::new(settings(random), limits(), "host:1");
    let mut server = Server::new(settings(random), limits());
    let mut greeting = BytesMut::from(&drain(server.output())[..]);
    client.receive(&mut greeting, 0, &mut Vec::new()).expect("a server's greeting");
    let mut open: Vec<StreamId> = Vec::new();
    let mut bytes = drain(client.output());
    for _ in 0..random.random_range(1..25) {
        let number = random.random_range(0..5).to_string();
        let headers = [("x-number", number.as_str()), ("grpc-timeout", "5S")];
        let headers = &headers[..random.random_range(0..=2)];
        let path = ["/a.B/C", "/a.B/Other"][random.random_range(0..2)];
        match random.random_range(0..7) {
            0 | 1 => drop(client.request(path, headers, &[payload(random)])),
            2 => open.push(client.open(path, headers)),
            3 => client.ping([3; 8]),
            other => {
                if open.is_empty() {
                    continue;
                }
                let at = random.random_range(0..open.len());
                match other {
                    4 => client.send_message(open[at], &[payload(random), payload(random)]),
                    5 => client.half_close(open.swap_remove(at)),
                    _ => client.reset(open.swap_remove(at), 8),
                }
            }
        }
        bytes.extend(drain(client.output()));
    }
    bytes
}

/// Feeds `pieces` one by one; nobody answers.
fn listen<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (String, Vec<u8>) {
    let mut server = Server::new(Settings::default(), limits());
    let (mut input, mut events, mut out) = (BytesMut::new(), Vec::new(), Vec::new());
    let mut end = String::new();
    for piece in pieces {
        input.extend_from_slice(piece);
        let received = server.receive(&mut input, 0, &mut events);
        out.extend(drain(server.output()));
        if let Err(closed) = received {
            end = closed.to_string();
            break;
        }
    }
    (format!("{events:?} {end}"), out)
}

fn cut<'a>(mut bytes: &'a [u8], random: &mut StdRng) -> Vec<&'a [u8]> {
    let most = [1, 9, 100, 20_000][random.random_range(0..4)];
    let mut pieces = Vec::new();
    while !bytes.is_empty() {
        let (piece, rest) = bytes.split_at(random.random_range(1..=most.min(bytes.len())));
        pieces.push(piece);
        bytes = rest;
    }
    pieces
}

#[test]
fn the_same_bytes_mean_the_same_however_they_are_cut() {
    for seed in seeds(60) {
        let mut random = StdRng::seed_from_u64(seed);
        let mut bytes = client_session(&mut random);
        if random.random_bool(0.5) {
            damage(&mut bytes, &mut random);
        }
        let whole = listen([&bytes[..]].into_iter());
        for _ in 0..5 {
            assert_eq!(listen(cut(&bytes, &mut random).into_iter()), whole);
        }
        if bytes.len() < 3000 {
            for at in 0..bytes.len() {
                let (head, tail) = bytes.split_at(at);
                assert_eq!(listen([head, tail].into_iter()), whole, "cut at {at}");
            }
        }
    }
}

fn damage(bytes: &mut Vec<u8>, random: &mut StdRng) {
    for _ in 0..random.random_range(1..6) {
        if bytes.is_empty() {
            return;
        }
        let at = random.random_range(0..bytes.len());
        match random.random_range(0..5) {
            0 => bytes[at] ^= 1 << random.random_range(0..8),
            1 => bytes[at] = random.random(),
            2 => drop(bytes.remove(at)),
            3 => bytes.insert(at, random.random()),
            _ => {
                let end = (at + random.random_range(0..100)).min(bytes.len());
                let copy = bytes[at..end].to_vec();
                let to = random.random_range(0..=bytes.len());
                bytes.splice(to..to, copy);
            }
        }
    }
}

#[test]
fn a_damaged_client_never_breaks_the_server() {
    for seed in seeds(400) {
        let mut random = StdRng::seed_from_u64(seed);
        let mut bytes = client_session(&mut random);
        damage(&mut bytes, &mut random);
        let mut server = Server::new(settings(&mut random), limits());
        let (mut input, mut events, mut decoder) =
            (BytesMut::new(), Vec::new(), Decoder::default());
        for piece in cut(&bytes, &mut random) {
            input.extend_from_slice(piece);
            let received = server.receive(&mut input, 0, &mut events);
            for event in events.drain(..) {
                answer(&mut server, event, &mut random);
            }
            describe(&drain(server.output()), &mut decoder);
            if received.is_err() {
                break;
            }
        }
    }
}

fn answer(server: &mut Server, event: Event, random: &mut StdRng) {
    let (Event::Request { id, .. } | Event::Message { id, .. } | Event::HalfClosed { id }) = event
    else {
        return;
    };
    match random.random_range(0..7) {
        0 => server.respond_unary(id, &[payload(random)]),
        1 => server.respond_error(id, 5, "no\u{e9}"),
        2 => server.start_response(id),
        3 | 4 => server.send_message(id, &[payload(random)]),
        5 => server.finish(id, 0, ""),
        _ => server.reset(id, 8),
    }
}

#[test]
fn a_damaged_server_never_breaks_the_client() {
    for seed in seeds(400) {
        let mut random = StdRng::seed_from_u64(seed);
        let mut server = Server::new(settings(&mut random), limits());
        let mut client = Client::new(settings(&mut random), limits(), "host:1");
        for _ in 0..8 {
            client.request("/a.B/C", &[], &[payload(&mut random)]);
        }
        let mut input = BytesMut::from(&drain(client.output())[..]);
        let mut events = Vec::new();
        server.receive(&mut input, 0, &mut events).expect("the client is correct");
        for event in events {
            answer(&mut server, event, &mut random);
        }
        let mut bytes = drain(server.output());
        damage(&mut bytes, &mut random);
        let mut input = BytesMut::new();
        for piece in cut(&bytes, &mut random) {
            input.extend_from_slice(piece);
            if client.receive(&mut input, 0, &mut Vec::new()).is_err() {
                break;
            }
        }
        describe(&drain(client.output()), &mut Decoder::default());
    }
}

/// One direction of a socket: bytes leave when it pleases.
#[derive(Default)]
struct Pipe(VecDeque<u8>);

impl Pipe {
    fn carry(&mut self, from: &mut Output, to: &mut BytesMut, random: &mut StdRng) {
        // Part of the output only, as a full socket would take it.
        while !from.is_empty() && random.random_bool(0.8) {
            let length = random.random_range(1..=from.chunk().len());
            self.0.extend(&from.chunk()[..length]);
            from.advance(length);
        }
        let length = random.random_range(0..=self.0.len());
        to.extend(self.0.drain(..length));
    }
}

#[derive(Default, Debug, PartialEq)]
struct Call {
    sent: Vec<Bytes>,
    heard: Vec<Bytes>,
    answered: Vec<Bytes>,
    returned: Vec<Bytes>,
    half_closed: bool,
    code: Option<u8>,
}

#[test]
fn conversations_arrive_whole_through_windows_of_every_size() {
    for seed in seeds(60) {
        let mut random = StdRng::seed_from_u64(seed);
        converse(&mut random);
    }
}

fn converse(random: &mut StdRng) {
    let mut client = Client::new(settings(random), limits(), "host:1");
    let mut server = Server::new(settings(random), limits());
    let (mut up, mut down) = (Pipe::default(), Pipe::default());
    let (mut to_server, mut to_client) = (BytesMut::new(), BytesMut::new());
    let mut calls: BTreeMap<StreamId, Call> = BTreeMap::new();
    let mut open: Vec<StreamId> = Vec::new();
    let (mut requests, mut answers) = (Vec::new(), Vec::new());
    let mut rounds = 0;
    loop {
        rounds += 1;
        assert!(rounds < 200_000, "the conversation is stuck: {} open", client.active_streams());
        let talking = rounds < 40;
        if talking && random.random_bool(0.5) {
            let message = payload(random);
            if random.random_bool(0.5) {
                let id = client.request("/a.B/C", &[], std::slice::from_ref(&message));
                calls.insert(id, Call { sent: vec![message], ..Call::default() });
            } else {
                let id = client.open("/a.B/C", &[("x-name", "value")]);
                calls.insert(id, Call::default());
                open.push(id);
            }
        }
        if let Some(&id) = open.first() {
            if talking && random.random_bool(0.7) {
                let message = payload(random);
                let (left, right) =
                    (message.slice(..message.len() / 2), message.slice(message.len() / 2..));
                client.send_message(id, &[left, right]);
                calls.get_mut(&id).expect("opened above").sent.push(message);
            } else {
                client.half_close(id);
                open.remove(0);
            }
        }
        up.carry(client.output(), &mut to_server, random);
        server.receive(&mut to_server, 0, &mut requests).expect("the client is correct");
        for event in requests.drain(..) {
            match event {
                Event::Message { id, data } => {
                    let call = calls.get_mut(&id).expect("a call that was made");
                    call.heard.push(data);
                    let message = payload(random);
                    server.send_message(id, std::slice::from_ref(&message));
                    call.answered.push(message);
                }
                Event::HalfClosed { id } => {
                    calls.get_mut(&id).expect("a call that was made").half_closed = true;
                    server.finish(id, 0, "");
                }
                Event::Request { .. } => {}
                other => panic!("nobody did this: {other:?}"),
            }
        }
        down.carry(server.output(), &mut to_client, random);
        client.receive(&mut to_client, 0, &mut answers).expect("the server is correct");
        for event in answers.drain(..) {
            match event {
                ClientEvent::Message { id, data } => {
                    calls.get_mut(&id).expect("a call that was made").returned.push(data);
                }
                ClientEvent::Trailers { id, code, .. } => {
                    calls.get_mut(&id).expect("a call that was made").code = Some(code);
                }
                ClientEvent::Response { .. } => {}
                other => panic!("nobody did this: {other:?}"),
            }
        }
        if !talking && client.active_streams() == 0 {
            break;
        }
    }
    for (id, call) in &calls {
        assert_eq!(call.sent, call.heard, "{id:?}: what the server heard");
        assert_eq!(call.answered, call.returned, "{id:?}: what the client heard");
        assert!(call.half_closed && call.code == Some(0), "{id:?} ended");
        assert_eq!(server.pending(*id), 0);
    }
    assert_eq!(server.active_streams(), 0);
}
