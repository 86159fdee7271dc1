//! Chance decides what happens; every response is checked against the whole history, which the
//! model keeps. `SEED=n cargo test -p watch --test random` repeats one run, `SEEDS=n` tries more.

mod common;

use api::KeyRange;
use api::etcdserverpb::watch_request::RequestUnion;
use api::etcdserverpb::{
    WatchCancelRequest, WatchCreateRequest, WatchProgressRequest, WatchRequest, WatchResponse,
};
use api::mvccpb;
use bytes::Bytes;
use common::{Model, decode};
use prost::Message;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};
use watch::{Config, Delivery, StreamKey, Watches};

#[test]
fn every_watcher_gets_exactly_its_events() {
    let number = |name| std::env::var(name).ok().map(|n| n.parse::<u64>().expect("a number"));
    let seeds = match number("SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("SEEDS").unwrap_or(300),
    };
    let mut seen = Seen::default();
    for seed in seeds.clone() {
        let run = std::panic::AssertUnwindSafe(|| Run::new(seed).run());
        match std::panic::catch_unwind(run) {
            Ok(of_run) => seen.add(&of_run),
            Err(panic) => {
                eprintln!("seed {seed}");
                std::panic::resume_unwind(panic);
            }
        }
    }
    // A test that never meets the hard cases would prove nothing.
    if seeds.end - seeds.start >= 100 {
        let Seen { events, fragments, compacted, progress, caught_up, previous } = seen;
        let least = [events, fragments, compacted, progress, caught_up, previous];
        assert!(least.iter().all(|&count| count > 100), "too little was met: {least:?}");
    }
}

/// How often the interesting things happened.
#[derive(Default)]
struct Seen {
    events: u64,
    fragments: u64,
    compacted: u64,
    progress: u64,
    caught_up: u64,
    previous: u64,
}

impl Seen {
    fn add(&mut self, other: &Seen) {
        self.events += other.events;
        self.fragments += other.fragments;
        self.compacted += other.compacted;
        self.progress += other.progress;
        self.caught_up += other.caught_up;
        self.previous += other.previous;
    }
}

struct Run {
    rng: StdRng,
    model: Model,
    watches: Watches,
    /// The revision that the table was told of.
    told: i64,
    now_ms: u64,
    streams: BTreeSet<u64>,
    blocked: BTreeSet<u64>,
    next_stream: u64,
    clients: BTreeMap<(u64, i64), Client>,
    fragment_bytes: usize,
    seen: Seen,
}

/// A watcher as its client sees it.
struct Client {
    request: WatchCreateRequest,
    range: KeyRange,
    /// No event before this revision is still to come.
    next: i64,
    /// The parts of a response whose last part has not come yet.
    parts: Vec<mvccpb::Event>,
    ended: bool,
}

impl Run {
    fn new(seed: u64) -> Run {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut config = Config::new(1, 2);
        config.catch_up_revisions_max = rng.random_range(1..6);
        config.catch_up_watchers_max = rng.random_range(1..5);
        config.catch_up_bytes_max = rng.random_range(1..400);
        config.stream_bytes_max = rng.random_range(30..600);
        config.fragment_bytes = rng.random_range(40..200);
        config.progress_interval_ms = 1000;
        Run {
            fragment_bytes: config.fragment_bytes,
            model: Model::new(),
            watches: Watches::new(config, 1),
            told: 1,
            now_ms: 0,
            streams: BTreeSet::new(),
            blocked: BTreeSet::new(),
            next_stream: 0,
            clients: BTreeMap::new(),
            seen: Seen::default(),
            rng,
        }
    }

    fn run(mut self) -> Seen {
        for _ in 0..400 {
            self.step();
        }
        self.settle();
        self.seen
    }

    fn step(&mut self) {
        match self.rng.random_range(0..100) {
            0..3 => {
                self.streams.insert(self.next_stream);
                self.watches.open(StreamKey(self.next_stream), self.rng.random());
                self.next_stream += 1;
            }
            3 => {
                let Some(stream) = self.any_stream() else { return };
                self.streams.remove(&stream);
                self.blocked.remove(&stream);
                self.clients.retain(|&(of, _), _| of != stream);
                self.watches.close(StreamKey(stream));
            }
            4..14 => self.create(),
            14..18 => self.cancel(),
            18..26 => {
                let Some(stream) = self.any_stream() else { return };
                let blocked = self.blocked.insert(stream) || !self.blocked.remove(&stream);
                self.watches.set_blocked(StreamKey(stream), blocked);
            }
            26..30 if self.told > 1 => {
                let upto = self.rng.random_range(1..=self.model.revision());
                self.model.compacted = self.model.compacted.max(upto);
            }
            30..45 => self.catch_up(),
            45..52 => {
                let Some(stream) = self.any_stream() else { return };
                self.request(stream, RequestUnion::ProgressRequest(WatchProgressRequest {}));
            }
            52..56 => {
                self.now_ms += self.rng.random_range(1..1500);
                let mut out = Vec::new();
                self.watches.tick(self.now_ms, 1, &mut out);
                self.check(&out);
            }
            56 => {
                self.write();
                self.told = self.model.revision();
                self.watches.restored(self.told);
            }
            57..60 => self.write(),
            _ => {
                self.write();
                self.tell();
            }
        }
    }

    /// Everything comes to rest, and then nobody may have missed anything.
    fn settle(&mut self) {
        self.tell();
        for stream in std::mem::take(&mut self.blocked) {
            self.watches.set_blocked(StreamKey(stream), false);
        }
        let mut steps = 0;
        while self.watches.counts().slow_watchers > 0 {
            self.catch_up();
            steps += 1;
            assert!(steps < 100_000, "catching up comes to an end");
        }
        for (name, client) in &self.clients {
            let missed = self.expected(client, self.told);
            assert!(client.ended || missed.is_empty(), "{name:?} has missed {missed:?}");
        }
        let live = self.clients.values().filter(|client| !client.ended).count();
        assert_eq!(self.watches.counts().watchers, live);
        for stream in self.streams.clone() {
            let clients = self.clients.range((stream, i64::MIN)..=(stream, i64::MAX));
            let due = clients.clone().count() > 0
                && clients
                    .map(|(_, client)| client)
                    .all(|client| !client.ended && client.request.start_revision <= self.told);
            let progress = RequestUnion::ProgressRequest(WatchProgressRequest {});
            assert_eq!(self.request(stream, progress), usize::from(due), "stream {stream}");
        }
        for stream in std::mem::take(&mut self.streams) {
            self.watches.close(StreamKey(stream));
        }
        let counts = self.watches.counts();
        assert_eq!((counts.streams, counts.watchers, counts.slow_watchers), (0, 0, 0));
    }

    fn any_stream(&mut self) -> Option<u64> {
        let at = self.rng.random_range(0..self.streams.len().max(1));
        self.streams.iter().nth(at).copied()
    }

    fn any_key(&mut self) -> Bytes {
        let letters = self.rng.random_range(1..=2);
        (0..letters).map(|_| self.rng.random_range(b'a'..=b'd')).collect()
    }

    fn write(&mut self) {
        let ops = if self.rng.random_bool(0.6) { 1 } else { self.rng.random_range(1..6) };
        let mut writes = Vec::new();
        for _ in 0..ops {
            let bytes = self.rng.random_range(0..40);
            let value = self.rng.random_bool(0.7).then(|| Bytes::from(vec![b'v'; bytes]));
            writes.push((self.any_key(), value));
        }
        self.model.write(&writes);
    }

    /// Tells the table of all that it has not been told of.
    fn tell(&mut self) {
        let untold = self.model.changes[self.told as usize - 1..].to_vec();
        self.told = self.model.revision();
        let mut out = Vec::new();
        self.watches.changed(&untold, 1, &self.model, &mut out);
        for delivery in out.iter().filter(|delivery| !delivery.events.is_empty()) {
            let response = decode(delivery);
            let revision = response.header.expect("a header").revision;
            let of_revision = |event: &mvccpb::Event| {
                event.kv.as_ref().is_some_and(|kv| kv.mod_revision == revision)
            };
            assert!(response.events.iter().all(of_revision), "one revision: {response:?}");
        }
        self.check(&out);
    }

    fn catch_up(&mut self) {
        let mut out = Vec::new();
        self.watches.catch_up(&self.model, 1, &mut out).expect("nothing is damaged");
        self.seen.caught_up += out.len() as u64;
        self.check(&out);
    }

    fn create(&mut self) {
        let Some(stream) = self.any_stream() else { return };
        let around_now = self.told + self.rng.random_range(-20..5);
        let range_end = match self.rng.random_range(0..4) {
            0 => self.any_key(),
            1 => Bytes::from_static(b"\0"),
            _ => Bytes::new(),
        };
        let request = WatchCreateRequest {
            key: if self.rng.random_bool(0.1) { Bytes::new() } else { self.any_key() },
            range_end,
            start_revision: if self.rng.random_bool(0.5) { 0 } else { around_now.max(0) },
            progress_notify: self.rng.random_bool(0.3),
            filters: (0..2).filter(|_| self.rng.random_bool(0.1)).collect(),
            prev_kv: self.rng.random_bool(0.3),
            watch_id: if self.rng.random_bool(0.7) { 0 } else { self.rng.random_range(-2..4) },
            fragment: self.rng.random_bool(0.3),
        };
        let mut out = Vec::new();
        let union = RequestUnion::CreateRequest(request.clone());
        let message = WatchRequest { request_union: Some(union) };
        self.watches.request(StreamKey(stream), message, 1, &mut out);
        let [delivery] = &out[..] else { panic!("a create has one answer: {out:?}") };
        let response = decode(delivery);
        assert!(response.created && response.events.is_empty());
        let key =
            if request.key.is_empty() { Bytes::from_static(b"\0") } else { request.key.clone() };
        let range = KeyRange::new(key, request.range_end.clone());
        if response.canceled {
            let in_use = self.clients.contains_key(&(stream, request.watch_id));
            assert!(range.is_empty() || request.watch_id != 0 && in_use, "{response:?}");
            return;
        }
        let next = match request.start_revision {
            0 => self.told + 1,
            start => start,
        };
        let client = Client { request, range, next, parts: Vec::new(), ended: false };
        let before = self.clients.insert((stream, response.watch_id), client);
        assert!(before.is_none(), "an id in use was given out");
    }

    fn cancel(&mut self) {
        let Some(stream) = self.any_stream() else { return };
        let watch_id = self.rng.random_range(-2..6);
        let known = self.clients.remove(&(stream, watch_id)).is_some();
        let answers =
            self.request(stream, RequestUnion::CancelRequest(WatchCancelRequest { watch_id }));
        assert_eq!(answers, usize::from(known));
    }

    /// Returns the number of answers.
    fn request(&mut self, stream: u64, union: RequestUnion) -> usize {
        let mut out = Vec::new();
        let cancel = matches!(union, RequestUnion::CancelRequest(_));
        let message = WatchRequest { request_union: Some(union) };
        self.watches.request(StreamKey(stream), message, 1, &mut out);
        if !cancel {
            self.check(&out);
        }
        out.len()
    }

    fn check(&mut self, out: &[Delivery]) {
        for delivery in out {
            let response = decode(delivery);
            let stream = delivery.stream.0;
            let revision = response.header.expect("a header").revision;
            assert!(self.streams.contains(&stream));
            if response.events.is_empty() && !response.canceled {
                self.check_progress(stream, &response, revision);
                continue;
            }
            assert!(!self.blocked.contains(&stream), "stream {stream} is full");
            let name = (stream, response.watch_id);
            let mut client = self.clients.remove(&name).expect("the watcher exists");
            assert!(!client.ended, "{name:?} has ended");
            if response.canceled {
                assert_eq!((response.compact_revision, revision), (self.model.compacted, 0));
                assert!(client.next < self.model.compacted, "{name:?} was ended for nothing");
                assert!(client.parts.is_empty(), "{name:?} was left with a fragment");
                client.ended = true;
                self.seen.compacted += 1;
            } else {
                self.check_events(name, &mut client, response, delivery, revision);
            }
            self.clients.insert(name, client);
        }
    }

    /// All whom it concerns have been sent everything up to this revision.
    fn check_progress(&mut self, stream: u64, response: &WatchResponse, revision: i64) {
        assert_eq!(revision, self.told);
        let mut concerned = self.clients.range((stream, i64::MIN)..=(stream, i64::MAX));
        let all = response.watch_id == -1;
        let own = self.clients.get(&(stream, -1)).is_some_and(|one| one.request.progress_notify);
        let up_to_date = |(&(_, id), client): (&(u64, i64), &Client)| {
            id != response.watch_id && (!all || own)
                || !client.ended
                    && client.request.start_revision <= revision
                    && self.expected(client, revision).is_empty()
        };
        assert!(concerned.all(up_to_date), "progress without all events: {response:?}");
        self.seen.progress += 1;
    }

    fn check_events(
        &mut self,
        name: (u64, i64),
        client: &mut Client,
        response: WatchResponse,
        delivery: &Delivery,
        revision: i64,
    ) {
        if client.request.fragment && response.events.len() > 1 {
            let bytes = delivery.head.len() + delivery.events.len();
            assert!(bytes < self.fragment_bytes, "{name:?}: a fragment of {bytes} bytes");
        }
        self.seen.events += response.events.len() as u64;
        let fragment = response.fragment;
        client.parts.extend(response.events);
        if fragment {
            assert!(client.request.fragment, "{name:?} did not ask for fragments");
            self.seen.fragments += 1;
            return;
        }
        let got = std::mem::take(&mut client.parts);
        let last = got.last().and_then(|event| event.kv.as_ref()).expect("an event").mod_revision;
        assert!(last <= revision && revision <= self.told, "{name:?}: header {revision}");
        let expected = self.expected(client, last);
        assert_eq!(got, expected, "{name:?} from {} to {last}", client.next);
        self.seen.previous += got.iter().filter(|event| event.prev_kv.is_some()).count() as u64;
        client.next = last + 1;
    }

    /// What a client is still to be sent, up to a revision, if it were sent now.
    fn expected(&self, client: &Client, upto: i64) -> Vec<mvccpb::Event> {
        let changes = self.model.changes.iter();
        let changes = changes.filter(|change| (client.next..=upto).contains(&change.revision));
        let mut expected = Vec::new();
        for (revision, event) in
            changes.flat_map(|change| change.events.iter().map(|event| (change.revision, event)))
        {
            let dropped = client.request.filters.contains(&i32::from(event.delete));
            if dropped || !client.range.contains(&event.key) {
                continue;
            }
            let mut decoded = mvccpb::Event::decode(event.encoded.clone()).expect("an event");
            if client.request.prev_kv && !event.create && revision > self.model.compacted {
                decoded.prev_kv = self.model.last(&event.key, revision - 1);
            }
            expected.push(decoded);
        }
        expected
    }
}
