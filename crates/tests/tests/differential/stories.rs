//! Streams and calls that wait, told step by step to each server; the transcripts must be equal.

use super::pair::{Pair, Side};
use api::etcdserverpb::watch_request::RequestUnion;
use api::etcdserverpb::*;
use api::health::{HealthCheckRequest, HealthCheckResponse};
use api::v3electionpb::*;
use api::v3lockpb::*;
use bytes::Bytes;
use prost::Message;
use std::fmt::Debug;
use std::time::Duration;
use testkit::{Grpc, Stream};

/// What comes, comes within this.
const SOON: Duration = Duration::from_secs(20);
/// What has not come within this does not come. Only a wrong answer would be missed by it, none
/// invented.
const QUIET: Duration = Duration::from_millis(400);

/// One server and what it has said.
struct Story<'a> {
    side: &'a Side,
    grpc: Grpc,
    transcript: Vec<String>,
}

fn same_story(name: &str, tell: impl Fn(&mut Story)) {
    let Some(pair) = Pair::start(&["--unsafe-no-fsync"]) else { return };
    let [theirs, ours] = [&pair.etcd, &pair.ours].map(|side| {
        let grpc = Grpc::connect(&side.server.endpoint());
        let mut story = Story { side, grpc, transcript: Vec::new() };
        tell(&mut story);
        story.transcript
    });
    assert!(!theirs.is_empty(), "{name} tells nothing");
    for (at, (theirs, ours)) in theirs.iter().zip(&ours).enumerate() {
        assert!(theirs == ours, "{name}, step {at}\n\netcd: {theirs}\n\nours: {ours}");
    }
    assert_eq!(theirs.len(), ours.len(), "{name}");
}

impl Story<'_> {
    fn say(&mut self, what: impl Debug) {
        let text = self.side.anonymous(&format!("{what:#?}"));
        self.transcript.push(text);
    }

    fn put(&mut self, key: &str, value: impl Into<Bytes>) -> i64 {
        let request =
            PutRequest { key: key.to_string().into(), value: value.into(), ..Default::default() };
        let answer = self.grpc.call("/etcdserverpb.KV/Put", &request).expect("a put succeeds");
        let answer = PutResponse::decode(answer).expect("a put is answered with a PutResponse");
        answer.header.expect("answers have headers").revision
    }

    fn delete(&mut self, key: &str) {
        let request = DeleteRangeRequest { key: key.to_string().into(), ..Default::default() };
        self.grpc.call("/etcdserverpb.KV/DeleteRange", &request).expect("a delete succeeds");
    }

    fn grant(&mut self, id: i64, ttl: i64) {
        let request = LeaseGrantRequest { id, ttl };
        self.grpc.call("/etcdserverpb.Lease/LeaseGrant", &request).expect("a lease is granted");
    }

    fn keys(&mut self) {
        let request = RangeRequest {
            key: Bytes::from_static(b"\0"),
            range_end: Bytes::from_static(b"\0"),
            ..Default::default()
        };
        let answer = self.grpc.call("/etcdserverpb.KV/Range", &request).expect("a range succeeds");
        self.say(RangeResponse::decode(answer));
    }

    fn watch_stream(&mut self, metadata: &[(&str, &str)]) -> Stream {
        self.grpc.open("/etcdserverpb.Watch/Watch", metadata)
    }

    fn send(&mut self, stream: Stream, request: Option<RequestUnion>) {
        self.grpc.send(stream, &WatchRequest { request_union: request });
    }

    fn create(&mut self, stream: Stream, create: WatchCreateRequest) {
        self.send(stream, Some(RequestUnion::CreateRequest(create)));
    }

    fn progress(&mut self, stream: Stream) {
        self.send(stream, Some(RequestUnion::ProgressRequest(WatchProgressRequest {})));
    }

    /// The next message of a stream, which must come; or the stream's end.
    fn hear<M: Message + Default + Debug>(&mut self, stream: Stream) -> Option<M> {
        let heard = self.grpc.next(stream, SOON);
        match heard.unwrap_or_else(|| panic!("nothing came after {:#?}", self.transcript)) {
            Ok(data) => {
                let message = M::decode(data).expect("the message is of its type");
                self.say(&message);
                Some(message)
            }
            Err(status) => {
                self.say(status);
                None
            }
        }
    }

    fn hear_nothing(&mut self, stream: Stream) {
        let heard = self.grpc.next(stream, QUIET);
        self.say(heard.map(|heard| heard.map(WatchResponse::decode)));
    }
}

fn all_keys() -> WatchCreateRequest {
    WatchCreateRequest {
        key: Bytes::from_static(b"\0"),
        range_end: Bytes::from_static(b"\0"),
        ..Default::default()
    }
}

fn key(key: &'static str) -> WatchCreateRequest {
    WatchCreateRequest { key: key.into(), ..Default::default() }
}

#[test]
fn a_watch_tells_of_progress_when_all_is_told() {
    same_story("progress", |story| {
        let stream = story.watch_stream(&[]);
        story.progress(stream);
        story.send(stream, None);
        story.hear_nothing(stream);
        story.create(stream, key("a"));
        story.hear::<WatchResponse>(stream);
        story.progress(stream);
        story.hear::<WatchResponse>(stream);
        let now = story.put("b", "1");
        // One that waits for the future keeps the stream from speaking of progress.
        story.create(stream, WatchCreateRequest { start_revision: now + 2, ..key("b") });
        story.hear::<WatchResponse>(stream);
        story.progress(stream);
        story.hear_nothing(stream);
        story.put("b", "2");
        story.put("b", "3");
        story.hear::<WatchResponse>(stream);
        story.progress(stream);
        story.hear::<WatchResponse>(stream);
    });
}

#[test]
fn a_watch_ends_as_it_was_asked_to() {
    same_story("ends", |story| {
        for number in 0..5 {
            story.put("a", number.to_string());
        }
        let compact = CompactionRequest { revision: 4, physical: true };
        story.grpc.call("/etcdserverpb.KV/Compact", &compact).expect("history is compacted");
        let stream = story.watch_stream(&[]);
        story.create(stream, WatchCreateRequest { start_revision: 2, ..key("a") });
        story.hear::<WatchResponse>(stream);
        story.hear::<WatchResponse>(stream);
        // Its id is taken, and it keeps progress from being told, until it is cancelled.
        story.create(stream, WatchCreateRequest { watch_id: 7, ..key("a") });
        story.hear::<WatchResponse>(stream);
        story.create(stream, WatchCreateRequest { watch_id: 7, ..key("a") });
        story.hear::<WatchResponse>(stream);
        story.progress(stream);
        story.hear_nothing(stream);
        let cancel = |watch_id| Some(RequestUnion::CancelRequest(WatchCancelRequest { watch_id }));
        story.send(stream, cancel(0));
        story.hear::<WatchResponse>(stream);
        story.send(stream, cancel(0));
        story.send(stream, cancel(99));
        story.hear_nothing(stream);
        story.progress(stream);
        story.hear::<WatchResponse>(stream);
        // At the compacted revision itself history is there, but what was before it is not.
        let create = WatchCreateRequest { start_revision: 4, prev_kv: true, ..key("a") };
        story.create(stream, create);
        story.hear::<WatchResponse>(stream);
        story.hear::<WatchResponse>(stream);
        // The end of the requests is not the end of the stream.
        story.grpc.half_close(stream);
        story.put("a", "more");
        // Two watchers hear of it; which first is open.
        let mut heard: Vec<_> = (0..2)
            .map(|_| {
                story.grpc.next(stream, SOON).expect("an event comes").expect("the stream goes on")
            })
            .map(|data| WatchResponse::decode(data).expect("an event is a WatchResponse"))
            .collect();
        heard.sort_by_key(|response| response.watch_id);
        story.say(heard);
    });
}

/// How history is cut into answers is open, but the events of one revision are one answer, or
/// fragments of one. With the pairs before them they are more than one message may hold.
#[test]
fn a_big_revision_is_cut_alike() {
    same_story("fragments", |story| {
        let stream = story.watch_stream(&[]);
        for fragment in [true, false] {
            story.create(stream, WatchCreateRequest { fragment, prev_kv: true, ..all_keys() });
            story.hear::<WatchResponse>(stream);
        }
        for fill in [1_u8, 2] {
            let put = |number: u8| PutRequest {
                key: vec![b'k', number].into(),
                value: vec![fill; 12_000].into(),
                ..Default::default()
            };
            let op =
                |number| RequestOp { request: Some(request_op::Request::RequestPut(put(number))) };
            let txn = TxnRequest { success: (0..100).map(op).collect(), ..Default::default() };
            story.grpc.call("/etcdserverpb.KV/Txn", &txn).expect("the puts succeed");
            let mut parts = [Vec::new(), Vec::new()];
            while parts.iter().flatten().map(|(_, count)| count).sum::<usize>() < 200 {
                let heard = story.grpc.next(stream, SOON).expect("events come").expect("no end");
                let part = WatchResponse::decode(heard).expect("events are a WatchResponse");
                parts[part.watch_id as usize].push((part.fragment, part.events.len()));
            }
            story.say(parts);
        }
    });
}

#[test]
fn leases_are_kept_alive_and_end() {
    same_story("leases", |story| {
        let watch = story.watch_stream(&[]);
        story.create(watch, WatchCreateRequest { prev_kv: true, ..all_keys() });
        story.hear::<WatchResponse>(watch);
        story.grant(5, 5000);
        story.grant(6, 1);
        for key in ["b", "c", "a"] {
            let put = PutRequest { key: key.into(), lease: 6, ..Default::default() };
            story.grpc.call("/etcdserverpb.KV/Put", &put).expect("a put succeeds");
            story.hear::<WatchResponse>(watch);
        }
        let stream = story.grpc.open("/etcdserverpb.Lease/LeaseKeepAlive", &[]);
        for id in [5, 99, 0, 6, 5] {
            story.grpc.send(stream, &LeaseKeepAliveRequest { id });
            story.hear::<LeaseKeepAliveResponse>(stream);
        }
        // The lease ends by itself, and its keys in one revision.
        story.hear::<WatchResponse>(watch);
        story.grpc.send(stream, &LeaseKeepAliveRequest { id: 6 });
        story.hear::<LeaseKeepAliveResponse>(stream);
        story.grpc.half_close(stream);
        story.hear::<LeaseKeepAliveResponse>(stream);
    });
}

#[test]
fn locks_are_handed_on() {
    same_story("locks", |story| {
        (1..5).for_each(|lease| story.grant(lease, 5000));
        let lock = |story: &mut Story, lease| {
            let request = LockRequest { name: "l".into(), lease }.encode_to_vec();
            story.grpc.begin("/v3lockpb.Lock/Lock", &[], request.into())
        };
        let first = lock(story, 1);
        story.hear::<LockResponse>(first);
        let second = lock(story, 2);
        story.hear_nothing(second);
        let third = lock(story, 3);
        story.hear_nothing(third);
        // Whoever gives up leaves the queue.
        story.grpc.cancel(second);
        let gone = |story: &mut Story| {
            let request = RangeRequest { key: "l/2".into(), ..Default::default() };
            let answer = story.grpc.call("/etcdserverpb.KV/Range", &request).expect("it is read");
            RangeResponse::decode(answer).expect("a range").kvs.is_empty()
        };
        while !gone(story) {}
        story.keys();
        let unlock = UnlockRequest { key: "l/1".into() };
        story.grpc.call("/v3lockpb.Lock/Unlock", &unlock).expect("a lock is given back");
        story.hear::<LockResponse>(third);
        // A lease that ends while it waits has lost.
        let fourth = lock(story, 4);
        story.hear_nothing(fourth);
        let revoke = LeaseRevokeRequest { id: 4 };
        story.grpc.call("/etcdserverpb.Lease/LeaseRevoke", &revoke).expect("a lease is revoked");
        let revoke = LeaseRevokeRequest { id: 3 };
        story.grpc.call("/etcdserverpb.Lease/LeaseRevoke", &revoke).expect("a lease is revoked");
        story.hear::<LockResponse>(fourth);
        story.keys();
    });
}

#[test]
fn elections_are_won_and_watched() {
    same_story("elections", |story| {
        (1..4).for_each(|lease| story.grant(lease, 5000));
        let observe = LeaderRequest { name: "e".into() }.encode_to_vec();
        let observer = story.grpc.begin("/v3electionpb.Election/Observe", &[], observe.into());
        story.hear_nothing(observer);
        let campaign = |story: &mut Story, lease, value: &'static str| {
            let request = CampaignRequest { name: "e".into(), lease, value: value.into() };
            let request = request.encode_to_vec().into();
            story.grpc.begin("/v3electionpb.Election/Campaign", &[], request)
        };
        let first = campaign(story, 1, "one");
        let won = story.hear::<CampaignResponse>(first).expect("the first wins");
        story.hear::<LeaderResponse>(observer);
        let second = campaign(story, 2, "two");
        story.hear_nothing(second);
        let leader = won.leader;
        let proclaim = ProclaimRequest { leader: leader.clone(), value: "new".into() };
        story.grpc.call("/v3electionpb.Election/Proclaim", &proclaim).expect("a leader speaks");
        story.hear::<LeaderResponse>(observer);
        let again = campaign(story, 1, "again");
        story.hear::<CampaignResponse>(again);
        story.hear::<LeaderResponse>(observer);
        let resign = ResignRequest { leader };
        story.grpc.call("/v3electionpb.Election/Resign", &resign).expect("a leader resigns");
        story.hear::<CampaignResponse>(second);
        story.hear::<LeaderResponse>(observer);
        story.delete("e/2");
        story.hear_nothing(observer);
        let third = campaign(story, 3, "three");
        story.hear::<CampaignResponse>(third);
        story.hear::<LeaderResponse>(observer);
    });
}

#[test]
fn calls_without_or_with_too_many_requests() {
    same_story("calls", |story| {
        let empty = story.grpc.open("/etcdserverpb.KV/Range", &[]);
        story.grpc.half_close(empty);
        // What gRPC says of it is its library's own text.
        let end = story.grpc.next(empty, SOON).expect("the call ends").expect_err("by an error");
        story.say(end.code);
        let watch = HealthCheckRequest { service: String::new() }.encode_to_vec();
        let stream = story.grpc.begin("/grpc.health.v1.Health/Watch", &[], watch.into());
        story.hear::<HealthCheckResponse>(stream);
        let watch = HealthCheckRequest { service: "nonsense".into() }.encode_to_vec();
        let stream = story.grpc.begin("/grpc.health.v1.Health/Watch", &[], watch.into());
        story.hear::<HealthCheckResponse>(stream);
        story.hear_nothing(stream);
    });
}
