//! What an answer promises holds at once, however busy the threads behind it are.

use crate::client::put;
use crate::process::Process;
use api::etcdserverpb::*;
use prost::Message;
use std::thread::scope;
use std::time::Duration;
use testkit::Grpc;

const CALLERS: i64 = 6;
const ROUNDS: i64 = 150;
const WAIT: Duration = Duration::from_secs(30);

/// Plays a part on several connections at once.
fn together(part: impl Fn(&mut Grpc, i64) + Sync) {
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let server = Process::start(&dir.path().join("data"), &[]);
    scope(|threads| {
        for caller in 1..=CALLERS {
            let mut grpc = Grpc::connect(&server.endpoint);
            let part = &part;
            threads.spawn(move || part(&mut grpc, caller));
        }
    });
}

#[test]
fn a_lease_can_be_renewed_as_soon_as_it_is_granted() {
    together(|grpc, caller| {
        let stream = grpc.open("/etcdserverpb.Lease/LeaseKeepAlive", &[]);
        for round in 0..ROUNDS {
            let id = caller * 1000 + round;
            let request = LeaseGrantRequest { id, ttl: 1000 };
            grpc.call("/etcdserverpb.Lease/LeaseGrant", &request).expect("it is granted");
            grpc.send(stream, &LeaseKeepAliveRequest { id });
            let renewed = grpc.next(stream, WAIT).expect("it is answered").expect("it goes on");
            let renewed = LeaseKeepAliveResponse::decode(renewed).expect("it is a renewal");
            assert_eq!((renewed.id, renewed.ttl), (id, 1000));
        }
    });
}

#[test]
fn a_watch_opened_after_a_write_sees_only_what_comes_later() {
    together(|grpc, caller| {
        let stream = grpc.open("/etcdserverpb.Watch/Watch", &[]);
        for round in 0..ROUNDS {
            let key = format!("{caller}/{round}");
            put(grpc, &key, "before").expect("writes are served");
            let create = WatchCreateRequest { key: key.clone().into(), ..Default::default() };
            let request_union = Some(watch_request::RequestUnion::CreateRequest(create));
            grpc.send(stream, &WatchRequest { request_union });
            let created = grpc.next(stream, WAIT).expect("it is answered").expect("it goes on");
            let created = WatchResponse::decode(created).expect("it is a watch's answer");
            assert!(created.created && created.events.is_empty(), "{created:?}");
            let revision = put(grpc, &key, "after").expect("writes are served");
            let seen = grpc.next(stream, WAIT).expect("it is seen").expect("it goes on");
            let seen = WatchResponse::decode(seen).expect("it is a watch's answer");
            let values: Vec<(i64, &[u8])> = seen
                .events
                .iter()
                .filter_map(|event| event.kv.as_ref())
                .map(|kv| (kv.mod_revision, &kv.value[..]))
                .collect();
            assert_eq!(values, [(revision, &b"after"[..])]);
        }
    });
}
