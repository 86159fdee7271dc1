//! Watchers that do not read: they hold up nobody, cost little, and miss nothing in the end.

use crate::client::{assert_serves, put};
use crate::process::Process;
use api::etcdserverpb::*;
use prost::Message;
use std::time::Duration;
use testkit::{Grpc, Stream};

const WATCHERS: usize = 10;
const WRITES: usize = 150;
const VALUE_BYTES: usize = 300_000;
const MIB: u64 = 1 << 20;
const WAIT: Duration = Duration::from_secs(30);

#[test]
fn slow_watchers_cost_little_and_miss_nothing() {
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let server = Process::start(&dir.path().join("data"), &[]);
    let mut slow: Vec<(Grpc, Stream)> = (0..WATCHERS).map(|_| watch(&server)).collect();
    let mut writer = Grpc::connect(&server.endpoint);
    put(&mut writer, "key", "first").expect("writes are served");
    let before = server.resident_bytes();
    let mut revisions = Vec::new();
    for i in 0..WRITES {
        let mut value = vec![b'x'; VALUE_BYTES];
        value[..8].copy_from_slice(&(i as u64).to_be_bytes());
        revisions.push(put(&mut writer, "key", value).expect("writes are served"));
    }
    // Somebody who reads is served at once.
    let (mut grpc, stream) = watch(&server);
    let revision = put(&mut writer, "key", "last").expect("writes are served");
    revisions.push(revision);
    assert_eq!(events(&mut grpc, stream, 1), [revision]);
    assert_serves(&server.endpoint);
    // The slow ones were sent 450 MB in all, of which they have taken nothing.
    let grown = server.resident_bytes().saturating_sub(before);
    assert!(grown < 150 * MIB, "{WATCHERS} slow watchers cost {} MiB", grown / MIB);
    for (grpc, stream) in &mut slow {
        let seen = events(grpc, *stream, WRITES + 2);
        assert_eq!(seen[1..], revisions, "a slow watcher sees every change in order");
    }
}

fn watch(server: &Process) -> (Grpc, Stream) {
    let mut grpc = Grpc::connect(&server.endpoint);
    let stream = grpc.open("/etcdserverpb.Watch/Watch", &[]);
    let create = WatchCreateRequest { key: "key".into(), ..Default::default() };
    let request_union = Some(watch_request::RequestUnion::CreateRequest(create));
    grpc.send(stream, &WatchRequest { request_union });
    let created = grpc.next(stream, WAIT).expect("it is answered").expect("it goes on");
    assert!(WatchResponse::decode(created).expect("it is a watch's answer").created);
    (grpc, stream)
}

/// The revisions of the next `count` events.
fn events(grpc: &mut Grpc, stream: Stream, count: usize) -> Vec<i64> {
    let mut revisions = Vec::new();
    while revisions.len() < count {
        let data = grpc.next(stream, WAIT).expect("there are more events").expect("it goes on");
        let response = WatchResponse::decode(data).expect("it is a watch's answer");
        let kvs = response.events.into_iter().filter_map(|event| event.kv);
        revisions.extend(kvs.map(|kv| kv.mod_revision));
    }
    revisions
}
