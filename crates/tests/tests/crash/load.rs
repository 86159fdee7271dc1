//! Those who keep the server busy until it goes away.

use crate::history::{Attempt, Changes, Write};
use api::etcdserverpb::*;
use bytes::Bytes;
use prost::Message;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::time::Duration;
use testkit::{Grpc, Stream};

/// Keys of each kind that a writer uses again and again.
const KEYS: u32 = 30;
/// Now and then a value is large, so that segments fill up.
const LARGE_BYTES: usize = 200_000;
/// A watcher that hears nothing for so long looks whether the connection still stands.
const LOOK: Duration = Duration::from_millis(50);

/// Writes until the connection breaks. Values say who wrote them and when, so they are unique.
pub fn write_until_broken(mut grpc: Grpc, writer: u32, round: u32, seed: u64) -> Vec<Attempt> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut attempts = Vec::new();
    for number in 0.. {
        let mut value = format!("{round}-{writer}-{number}");
        let slot = random.random_range(0..KEYS);
        let write = match random.random_range(0..100) {
            0..50 => Write::Put { key: format!("put/{writer}/{slot}"), value },
            50..85 => {
                let keys = ["a", "b"].map(|half| format!("pair/{writer}/{slot}/{half}"));
                Write::Pair { keys, value }
            }
            85..98 => Write::Delete { key: format!("put/{writer}/{slot}") },
            _ => {
                value.push_str(&"x".repeat(LARGE_BYTES));
                Write::Put { key: format!("large/{writer}"), value }
            }
        };
        match perform(&mut grpc, &write) {
            Some(Done::At(revision)) => attempts.push(Attempt { write, revision: Some(revision) }),
            Some(Done::Nothing) => {}
            None => {
                attempts.push(Attempt { write, revision: None });
                break;
            }
        }
    }
    attempts
}

enum Done {
    At(i64),
    /// There was nothing to delete.
    Nothing,
}

/// `None` if the connection broke before the answer came.
fn perform(grpc: &mut Grpc, write: &Write) -> Option<Done> {
    let header = match write {
        Write::Put { key, value } => {
            let data = call(grpc, "/etcdserverpb.KV/Put", &put(key, value))?;
            PutResponse::decode(data).expect("it is a put's answer").header
        }
        Write::Pair { keys, value } => {
            let success = keys.iter().map(|key| RequestOp {
                request: Some(request_op::Request::RequestPut(put(key, value))),
            });
            let txn = TxnRequest { success: success.collect(), ..Default::default() };
            let data = call(grpc, "/etcdserverpb.KV/Txn", &txn)?;
            TxnResponse::decode(data).expect("it is a transaction's answer").header
        }
        Write::Delete { key } => {
            let request = DeleteRangeRequest { key: bytes(key), ..Default::default() };
            let data = call(grpc, "/etcdserverpb.KV/DeleteRange", &request)?;
            let response = DeleteRangeResponse::decode(data).expect("it is a delete's answer");
            if response.deleted == 0 {
                return Some(Done::Nothing);
            }
            response.header
        }
    };
    Some(Done::At(header.expect("answers have headers").revision))
}

/// Compacts up to where the round began, and defragments, until the connection breaks.
pub fn compact_until_broken(mut grpc: Grpc, from: i64, to: i64, seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let mut revision = from;
    loop {
        let done = match random.random_range(0..3) {
            0 if revision < to => {
                revision = random.random_range(revision + 1..=to);
                let physical = random.random_bool(0.5);
                let request = CompactionRequest { revision, physical };
                call(&mut grpc, "/etcdserverpb.KV/Compact", &request)
            }
            1 => call(&mut grpc, "/etcdserverpb.Maintenance/Defragment", &DefragmentRequest {}),
            _ => call(&mut grpc, "/etcdserverpb.Maintenance/Status", &StatusRequest {}),
        };
        if done.is_none() {
            return;
        }
    }
}

/// Grants leases until the connection breaks; returns which were acknowledged, and the last one
/// that was not.
pub fn grant_until_broken(mut grpc: Grpc, round: u32) -> (Vec<i64>, i64) {
    let mut granted = Vec::new();
    for number in 1.. {
        let id = i64::from(round) * 1_000_000 + number;
        let request = LeaseGrantRequest { id, ttl: 10_000 };
        if call(&mut grpc, "/etcdserverpb.Lease/LeaseGrant", &request).is_none() {
            return (granted, id);
        }
        granted.push(id);
    }
    unreachable!("the connection breaks before the numbers end")
}

/// Looks on until the connection breaks.
pub fn watch_until_broken(mut grpc: Grpc, from: i64) -> BTreeMap<i64, Changes> {
    let stream = open_watch(&mut grpc, from);
    let mut seen = BTreeMap::new();
    loop {
        match grpc.next(stream, LOOK) {
            Some(Ok(data)) => take_events(&data, &mut seen),
            Some(Err(_)) => return seen,
            None => {}
        }
    }
}

/// Watches everything from a revision on.
pub fn open_watch(grpc: &mut Grpc, from: i64) -> Stream {
    let stream = grpc.open("/etcdserverpb.Watch/Watch", &[]);
    let create = WatchCreateRequest {
        key: bytes("\0"),
        range_end: bytes("\0"),
        start_revision: from,
        ..Default::default()
    };
    let request_union = Some(watch_request::RequestUnion::CreateRequest(create));
    grpc.send(stream, &WatchRequest { request_union });
    stream
}

pub fn take_events(data: &Bytes, seen: &mut BTreeMap<i64, Changes>) {
    let response = WatchResponse::decode(data.clone()).expect("it is a watch's answer");
    assert!(!response.canceled, "the watch was cancelled: {response:?}");
    for event in response.events {
        let kv = event.kv.expect("events have a key");
        let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
        let value = (event.r#type == 0).then(|| text(&kv.value));
        let changes = seen.entry(kv.mod_revision).or_default();
        let before = changes.insert(text(&kv.key), value);
        assert!(before.is_none(), "the same event twice at revision {}", kv.mod_revision);
    }
}

/// `None` if the connection is gone. Any other failure is one of the test.
fn call(grpc: &mut Grpc, path: &str, request: &impl Message) -> Option<Bytes> {
    match grpc.call(path, request) {
        Ok(data) => Some(data),
        Err(status) if status.code == 14 => None,
        Err(status) => panic!("{path}: {status:?}"),
    }
}

fn put(key: &str, value: &str) -> PutRequest {
    PutRequest { key: bytes(key), value: bytes(value), ..Default::default() }
}

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}
