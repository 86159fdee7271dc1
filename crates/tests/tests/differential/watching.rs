//! Watches on both servers, and what they should have seen by now.
//!
//! Answers to creates and cancels are compared at once. Events come when they come, so they are
//! compared after they have all arrived: one watcher on each side sees every change from the
//! beginning, and from that the number of events that each other watcher owes is known.

use super::generate::Generator;
use super::pair::{Pair, Side};
use api::KeyRange;
use api::etcdserverpb::watch_request::RequestUnion;
use api::etcdserverpb::*;
use api::mvccpb::Event;
use bytes::Bytes;
use prost::Message;
use rand::Rng;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use testkit::{Grpc, Stream};

/// Events come within a second; a busy machine may need longer, a lost event needs for ever.
const PATIENCE: Duration = Duration::from_secs(30);
const STREAMS: usize = 3;
/// Watchers of one stream at a time.
const WATCHERS_MAX: usize = 12;

pub struct Watches {
    /// Sees everything.
    all: Lane,
    lanes: Vec<Lane>,
    pub created: usize,
}

/// The same stream on both servers.
struct Lane {
    etcd: Ear,
    ours: Ear,
    watchers: BTreeMap<i64, Watcher>,
}

/// What was asked of a watcher that both servers accepted.
#[derive(Debug)]
struct Watcher {
    request: WatchCreateRequest,
    from: i64,
    /// It asked for what was compacted already, and is told so once.
    compacted: bool,
}

/// One end of a stream.
struct Ear {
    grpc: Grpc,
    stream: Stream,
    controls: Vec<WatchResponse>,
    events: BTreeMap<i64, Vec<Event>>,
    compacted: BTreeMap<i64, WatchResponse>,
}

impl Watches {
    pub fn open(pair: &Pair) -> Watches {
        let mut all = Lane::open(pair);
        let create = WatchCreateRequest {
            key: Bytes::from_static(b"\0"),
            range_end: Bytes::from_static(b"\0"),
            start_revision: 1,
            prev_kv: true,
            ..WatchCreateRequest::default()
        };
        all.create(pair, create, -1);
        let lanes = (0..STREAMS).map(|_| Lane::open(pair)).collect();
        Watches { all, lanes, created: 0 }
    }

    /// Creates or cancels one.
    pub fn act(&mut self, pair: &Pair, generator: &mut Generator) {
        let at = generator.rng.random_range(0..STREAMS);
        let full = self.lanes[at].watchers.len() >= WATCHERS_MAX;
        if full || generator.chance(25) {
            // A watcher may be cancelled before its events are out; then none would be owed.
            self.settle(pair, generator.revision);
            let known: Vec<i64> = self.lanes[at].watchers.keys().copied().collect();
            let pick = generator.rng.random_range(0..=known.len());
            let id = known.get(pick).copied().unwrap_or(999);
            self.lanes[at].cancel(pair, id);
        } else {
            let create = random_create(generator);
            self.created += 1;
            self.lanes[at].create(pair, create, generator.compacted);
        }
    }

    /// Waits until everything up to `revision` has arrived everywhere, and compares it.
    pub fn settle(&mut self, pair: &Pair, revision: i64) {
        let began = Instant::now();
        let newest = |ear: &Ear| {
            let events = ear.events.get(&0).and_then(|events| events.last());
            events.and_then(|event| event.kv.as_ref()).map_or(1, |kv| kv.mod_revision)
        };
        for ear in self.all.ears() {
            while newest(ear) < revision {
                assert!(began.elapsed() < PATIENCE, "no event of revision {revision} has come");
                ear.listen(Duration::from_millis(20));
            }
        }
        self.catch_up(pair, revision);
        let history = self.all.etcd.events.get(&0).cloned().unwrap_or_default();
        assert_same(
            pair,
            "all",
            &history,
            &self.all.ours.events.get(&0).cloned().unwrap_or_default(),
        );
        for lane in &mut self.lanes {
            lane.settle(pair, &history, began);
        }
    }
}

impl Watches {
    /// Waits until no watcher lags on either side, not even one that nothing has happened for.
    /// Servers bring all that lag up to date in one go, so it is enough to see one that was
    /// created after them arrive.
    fn catch_up(&mut self, pair: &Pair, revision: i64) {
        const PROBE: i64 = 77;
        if revision <= 1 {
            return;
        }
        let create = WatchCreateRequest {
            key: Bytes::from_static(b"\0"),
            range_end: Bytes::from_static(b"\0"),
            start_revision: revision,
            watch_id: PROBE,
            ..WatchCreateRequest::default()
        };
        self.all.create(pair, create, -1);
        let began = Instant::now();
        for ear in self.all.ears() {
            while !ear.events.contains_key(&PROBE) {
                assert!(began.elapsed() < PATIENCE, "the event of revision {revision} is lost");
                ear.listen(Duration::from_millis(20));
            }
        }
        self.all.cancel(pair, PROBE);
    }
}

impl Lane {
    fn open(pair: &Pair) -> Lane {
        let (etcd, ours) = (Ear::open(&pair.etcd), Ear::open(&pair.ours));
        Lane { etcd, ours, watchers: BTreeMap::new() }
    }

    fn ears(&mut self) -> [&mut Ear; 2] {
        [&mut self.etcd, &mut self.ours]
    }

    fn create(&mut self, pair: &Pair, create: WatchCreateRequest, compacted: i64) {
        let request = RequestUnion::CreateRequest(create.clone());
        let answer = self.same_control(pair, &request);
        if answer.canceled {
            return;
        }
        let revision = answer.header.as_ref().expect("answers have headers").revision;
        let from = if create.start_revision == 0 { revision + 1 } else { create.start_revision };
        let compacted = create.start_revision != 0 && create.start_revision < compacted;
        self.watchers.insert(answer.watch_id, Watcher { request: create, from, compacted });
    }

    /// A cancel of an unknown watcher is not answered, so nothing is waited for.
    fn cancel(&mut self, pair: &Pair, id: i64) {
        let request = RequestUnion::CancelRequest(WatchCancelRequest { watch_id: id });
        if self.watchers.remove(&id).is_none() {
            self.ears().into_iter().for_each(|ear| ear.send(request.clone()));
            return;
        }
        self.same_control(pair, &request);
        for ear in self.ears() {
            ear.events.remove(&id);
            ear.compacted.remove(&id);
        }
    }

    fn same_control(&mut self, pair: &Pair, request: &RequestUnion) -> WatchResponse {
        let [theirs, ours] = self.ears().map(|ear| ear.ask(request.clone()));
        let texts = [
            pair.etcd.anonymous(&format!("{theirs:#?}")),
            pair.ours.anonymous(&format!("{ours:#?}")),
        ];
        assert!(texts[0] == texts[1], "{request:#?}\n\netcd: {}\n\nours: {}", texts[0], texts[1]);
        theirs
    }

    fn settle(&mut self, pair: &Pair, history: &[Event], began: Instant) {
        let Lane { etcd, ours, watchers } = self;
        for (id, watcher) in watchers {
            let owed = history.iter().filter(|event| watcher.wants(event)).count();
            for ear in [&mut *etcd, &mut *ours] {
                ear.wait_for(*id, owed, watcher, began);
            }
            let [theirs, mine] =
                [&*etcd, &*ours].map(|ear| ear.events.get(id).cloned().unwrap_or_default());
            assert_same(pair, &format!("{watcher:?}"), &theirs, &mine);
            let [theirs, mine] = [(&*etcd, &pair.etcd), (&*ours, &pair.ours)]
                .map(|(ear, side)| side.anonymous(&format!("{:?}", ear.compacted.get(id))));
            assert_eq!(theirs, mine, "the end of {watcher:?}");
        }
    }
}

impl Watcher {
    fn wants(&self, event: &Event) -> bool {
        let kv = event.kv.as_ref().expect("events have a pair");
        let key = match self.request.key.is_empty() {
            true => Bytes::from_static(b"\0"),
            false => self.request.key.clone(),
        };
        let range = KeyRange::new(key, self.request.range_end.clone());
        !self.compacted
            && kv.mod_revision >= self.from
            && range.contains(&kv.key)
            && !self.request.filters.contains(&event.r#type)
    }
}

impl Ear {
    fn open(side: &Side) -> Ear {
        let mut grpc = Grpc::connect(&side.server.endpoint());
        let stream = grpc.open("/etcdserverpb.Watch/Watch", &[]);
        let (events, compacted) = (BTreeMap::new(), BTreeMap::new());
        Ear { grpc, stream, controls: Vec::new(), events, compacted }
    }

    fn send(&mut self, request: RequestUnion) {
        self.grpc.send(self.stream, &WatchRequest { request_union: Some(request) });
    }

    /// Sends what is answered by a create or a cancel, and waits for that.
    fn ask(&mut self, request: RequestUnion) -> WatchResponse {
        let began = Instant::now();
        self.send(request.clone());
        while self.controls.is_empty() {
            assert!(began.elapsed() < PATIENCE, "no answer to {request:?}");
            self.listen(Duration::from_millis(20));
        }
        self.controls.remove(0)
    }

    fn wait_for(&mut self, id: i64, owed: usize, watcher: &Watcher, began: Instant) {
        loop {
            let seen = self.events.get(&id).map_or(0, Vec::len);
            let told = !watcher.compacted || self.compacted.contains_key(&id);
            if seen >= owed && told {
                return;
            }
            assert!(began.elapsed() < PATIENCE, "{seen} of {owed} events for {watcher:?}");
            self.listen(Duration::from_millis(20));
        }
    }

    /// Takes what has come, or comes within `wait`.
    fn listen(&mut self, wait: Duration) {
        let Some(arrived) = self.grpc.next(self.stream, wait) else { return };
        let data = arrived.unwrap_or_else(|status| panic!("the watch stream ended: {status:?}"));
        let response = WatchResponse::decode(data).expect("a watch stream has WatchResponses");
        if response.compact_revision != 0 {
            self.compacted.insert(response.watch_id, response);
        } else if response.created || response.canceled {
            self.controls.push(response);
        } else if response.watch_id != -1 || !response.events.is_empty() {
            self.events.entry(response.watch_id).or_default().extend(response.events);
        }
    }
}

fn assert_same(pair: &Pair, what: &str, theirs: &[Event], ours: &[Event]) {
    if let Some(at) = (0..theirs.len().max(ours.len())).find(|&at| theirs.get(at) != ours.get(at)) {
        let text = |side: &Side, event| side.anonymous(&format!("{event:#?}"));
        let (theirs, ours) = (text(&pair.etcd, theirs.get(at)), text(&pair.ours, ours.get(at)));
        panic!("watcher {what}: event {at} differs\n\netcd: {theirs}\n\nours: {ours}");
    }
}

fn random_create(generator: &mut Generator) -> WatchCreateRequest {
    let key = generator.key();
    let range_end = generator.range_end(&key);
    let start_revision = if generator.chance(40) { 0 } else { generator.any_revision() };
    let some =
        |generator: &mut Generator, percent, filter| generator.chance(percent).then_some(filter);
    WatchCreateRequest {
        key,
        range_end,
        start_revision,
        progress_notify: generator.chance(10),
        filters: [(15, 0), (15, 1), (5, 8)]
            .into_iter()
            .filter_map(|(percent, filter)| some(generator, percent, filter))
            .collect(),
        prev_kv: generator.chance(40),
        watch_id: if generator.chance(70) { 0 } else { generator.rng.random_range(-2..9) },
        fragment: generator.chance(20),
    }
}
