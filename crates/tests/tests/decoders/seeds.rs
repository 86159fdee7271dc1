//! What the corpus is made of: small whole examples of everything that is read.

use api::etcdserverpb as pb;
use api::etcdserverpb::compare::{CompareResult, CompareTarget, TargetUnion};
use api::etcdserverpb::request_op::Request;
use api::etcdserverpb::watch_request::RequestUnion;
use bytes::Bytes;
use disk::{Disk, SimDisk};
use engine::{Bucket, Commit, Engine, LogEngine, Revision};
use gateway::Transcoder;
use prost::Message;
use raftpb::{ConfChange, ConfState, Entry, EntryKind, HardState, Snapshot};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

type Seeds = Vec<(&'static str, Vec<u8>)>;

/// The seeds of a target, each with its file name.
pub fn of(target: &str) -> Seeds {
    match target {
        "api_requests" => requests()
            .into_iter()
            .map(|(name, _, bytes)| (name, bytes))
            .chain([("groups", nested_groups())])
            .collect(),
        "store_apply" => logs(),
        "json_request" => requests()
            .into_iter()
            .map(|(name, message, bytes)| (name, named(message, &json(message, &bytes))))
            .chain([("oddities", named("etcdserverpb.RangeRequest", ODDITIES.as_bytes()))])
            .collect(),
        "json_response" => requests()
            .into_iter()
            .map(|(name, message, bytes)| (name, named(message, &bytes)))
            .collect(),
        "json_splitter" => vec![("stream", STREAM.into())],
        "raft_messages" => raft_messages(),
        "wal_segment" => {
            let path = "../wal/tests/fixtures/etcd-3.6/wal/0000000000000000-0000000000000000.wal";
            vec![("etcd", std::fs::read(path).expect("the fixture is there"))]
        }
        "wal_records" => vec![("records", wal_records())],
        "snap_file" => vec![("snapshot", wal::snap::encode(&snapshot()))],
        "engine_files" => vec![("engine", engine_files())],
        "bolt_database" => vec![("small", bolt_database())],
        "settings" => vec![
            ("flags", FLAGS.into()),
            ("odd-flags", ODD_FLAGS.into()),
            ("file", format!("--logger=zap\n{FILE}").into_bytes()),
            ("odd-file", format!("--name one\n{ODD_FILE}").into_bytes()),
        ],
        other => panic!("{other} has no seeds"),
    }
}

const ODDITIES: &str = r#" {"key":"Zm9v","range_end":"\u005a-_8","limit":"9223372036854775807",
"revision":-1.0e3,"sort_order":"DESCEND","sortTarget":2,"serializable":true,"keys_only":null,
"min_mod_revision":12345678901234567890e-19,"unknown":[{},[],"\ud83d\ude00",false]} rest"#;

const STREAM: &str = "\x05{\"create_request\":{\"key\":\"Zm9v\"}} \n\t[1,2,{\"a\":\"}\\\"\"}]12 -0.5e+7 \
    true null\"\\u00e9\"{}";

const FLAGS: &str = "--name=one --data-dir dir --listen-client-urls=http://127.0.0.1:1 \
    --advertise-client-urls http://[::1]:1 --auto-compaction-mode=periodic \
    --auto-compaction-retention=1h30m --quota-backend-bytes=100 --max-txn-ops=0x10 --log-level debug \
    --feature-gates=LeaseCheckpoint=true --cors=* --pre-vote=false";

const ODD_FLAGS: &str = "-name one --listen-client-urls=http://127.0.0.1:1,unix://x:2 \
    --initial-cluster one=http://localhost:2380,two=http://[::1:3 --quota-backend-bytes=8GiB \
    --feature-gates=AllBeta=false,,X --auth-token=jwt,pub-key=a,sign-method=RS256 \
    --initial-cluster-state=old --experimental-x=1 -- --pre-vote=maybe rest";

const FILE: &str = "# A file.\nname: 'two'\ndata-dir: \"d\\u0061ta\"\nheartbeat-interval: 100\n\
    election-timeout: 1000\nlisten-client-urls: http://127.0.0.1:1\n\
    advertise-client-urls: http://127.0.0.1:1\nlog-outputs: [stderr]\n\
    auto-compaction-retention: 5s\n";

const ODD_FILE: &str = "name: >-\n  two\nelection-timeout: 1_000\nlog-outputs: [stderr, \"x\"]\n\
    client-transport-security:\n  cert-file: a\n  client-cert-auth: true\nfeature-gates: {}\n\
    unknown: &anchor |\n  text\nother: *anchor\n? complex\n: !!str 5\n---\nname: three\n";

fn named(message: &str, bytes: &[u8]) -> Vec<u8> {
    [message.as_bytes(), b"\n", bytes].concat()
}

fn json(message: &str, proto: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Transcoder::new().response(message, proto, &mut out).expect("our own encoding");
    out
}

/// A name, the message's name, and its bytes.
fn requests() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let put = pb::PutRequest {
        key: Bytes::from_static(b"key"),
        value: Bytes::from_static(b"value"),
        lease: -7,
        prev_kv: true,
        ..pb::PutRequest::default()
    };
    let range = pb::RangeRequest {
        key: Bytes::from_static(b"a"),
        range_end: Bytes::from_static(b"\0"),
        limit: 3,
        revision: 5,
        sort_order: 2,
        sort_target: 3,
        max_create_revision: i64::MAX,
        ..pb::RangeRequest::default()
    };
    let inner = pb::TxnRequest {
        success: vec![op(Request::RequestPut(put.clone()))],
        ..pb::TxnRequest::default()
    };
    let compare = pb::Compare {
        result: CompareResult::Greater as i32,
        target: CompareTarget::Value as i32,
        key: Bytes::from_static(b"key"),
        target_union: Some(TargetUnion::Value(Bytes::from_static(b"value"))),
        ..pb::Compare::default()
    };
    let txn = pb::TxnRequest {
        compare: vec![compare],
        success: vec![op(Request::RequestTxn(inner)), op(Request::RequestRange(range.clone()))],
        failure: vec![op(Request::RequestDeleteRange(pb::DeleteRangeRequest {
            key: Bytes::from_static(b"b"),
            range_end: Bytes::from_static(b"c"),
            prev_kv: true,
        }))],
    };
    let watch = pb::WatchRequest {
        request_union: Some(RequestUnion::CreateRequest(pb::WatchCreateRequest {
            key: Bytes::from_static(b"key"),
            start_revision: 2,
            filters: vec![0, 1],
            watch_id: 9,
            fragment: true,
            ..pb::WatchCreateRequest::default()
        })),
    };
    let user = pb::AuthUserAddRequest {
        name: "somebody".into(),
        password: "päss".into(),
        options: Some(api::authpb::UserAddOptions { no_password: true }),
        ..pb::AuthUserAddRequest::default()
    };
    vec![
        ("put", "etcdserverpb.PutRequest", put.encode_to_vec()),
        ("range", "etcdserverpb.RangeRequest", range.encode_to_vec()),
        ("txn", "etcdserverpb.TxnRequest", txn.encode_to_vec()),
        ("watch", "etcdserverpb.WatchRequest", watch.encode_to_vec()),
        ("user", "etcdserverpb.AuthUserAddRequest", user.encode_to_vec()),
    ]
}

/// A put with a field that nobody knows, as deep as it may be nested.
fn nested_groups() -> Vec<u8> {
    [&[0x0a, 1, b'k'][..], &[0x7b; 100], &[0x7c; 100]].concat()
}

fn op(request: Request) -> pb::RequestOp {
    pb::RequestOp { request: Some(request) }
}

fn logs() -> Seeds {
    let path = "../store/tests/fixtures/etcd-3.6.14.entries";
    let mut log = Vec::new();
    let grant = pb::InternalRaftRequest {
        lease_grant: Some(pb::LeaseGrantRequest { id: -7, ttl: 60 }),
        ..pb::InternalRaftRequest::default()
    };
    put_entry(&mut log, EntryKind::Normal, grant.encode_to_vec());
    for (field, (_, _, request)) in [4, 3, 6].into_iter().zip(requests()) {
        let mut data = Vec::new();
        raftpb::codec::put_bytes(&mut data, field, &request);
        put_entry(&mut log, EntryKind::Normal, data);
    }
    let requests = [
        pb::InternalRaftRequest {
            compaction: Some(pb::CompactionRequest { revision: 2, physical: true }),
            ..pb::InternalRaftRequest::default()
        },
        pb::InternalRaftRequest {
            v2: Some(pb::Request {
                method: Some("PUT".into()),
                path: Some("/0/version".into()),
                val: Some("3.6.0".into()),
                ..pb::Request::default()
            }),
            ..pb::InternalRaftRequest::default()
        },
        pb::InternalRaftRequest {
            alarm: Some(pb::AlarmRequest { action: 1, member_id: 1, alarm: 2 }),
            ..pb::InternalRaftRequest::default()
        },
    ];
    for request in requests {
        put_entry(&mut log, EntryKind::Normal, request.encode_to_vec());
    }
    let mut data = Vec::new();
    conf_change().encode(&mut data);
    put_entry(&mut log, EntryKind::ConfChange, data);
    vec![("etcd", std::fs::read(path).expect("the fixture is there")), ("ours", log)]
}

fn put_entry(log: &mut Vec<u8>, kind: EntryKind, data: Vec<u8>) {
    let mut entry = Vec::new();
    Entry { kind, term: 1, index: 1, data: data.into() }.encode(&mut entry);
    log.extend_from_slice(&(entry.len() as u32).to_le_bytes());
    log.extend_from_slice(&entry);
}

fn conf_change() -> ConfChange {
    let context = br#"{"id":2,"peerURLs":["http://127.0.0.1:2"],"isLearner":true}"#;
    ConfChange { id: 3, node_id: 2, context: Bytes::from_static(context), ..ConfChange::default() }
}

fn snapshot() -> Snapshot {
    let conf_state = ConfState { voters: vec![1, u64::MAX], ..ConfState::default() };
    Snapshot { data: Bytes::from_static(b"{}"), conf_state, index: 300, term: 2 }
}

fn raft_messages() -> Seeds {
    let encoded = |encode: &dyn Fn(&mut Vec<u8>)| {
        let mut out = Vec::new();
        encode(&mut out);
        out
    };
    let entry = Entry {
        kind: EntryKind::Normal,
        term: 2,
        index: 300,
        data: Bytes::from_static(b"some data"),
    };
    let state = HardState { term: 2, vote: u64::MAX, commit: 300 };
    vec![
        ("entry", encoded(&|out| entry.encode(out))),
        ("hard-state", encoded(&|out| state.encode(out))),
        ("conf-change", encoded(&|out| conf_change().encode(out))),
        ("snapshot", encoded(&|out| snapshot().encode(out))),
    ]
}

/// As `wal_records` takes them.
fn wal_records() -> Vec<u8> {
    let mut out = Vec::new();
    let mut put = |kind: u8, data: &[u8]| {
        out.extend_from_slice(&[kind, data.len() as u8]);
        out.extend_from_slice(data);
    };
    for (term, index) in [(1, 1), (1, 2), (1, 3), (2, 3), (2, 4)] {
        let mut entry = Vec::new();
        let data = Bytes::from_static(b"data");
        Entry { kind: EntryKind::Normal, term, index, data }.encode(&mut entry);
        put(2, &entry);
        let mut state = Vec::new();
        HardState { term, vote: 1, commit: index - 1 }.encode(&mut state);
        put(3, &state);
    }
    // Snapshot 2 of term 1, with one voter.
    put(5, &[0x08, 2, 0x10, 1, 0x1a, 2, 0x08, 1]);
    out
}

/// As `engine_files` takes them: a few segments, with rows, a tombstone and a bucket's records.
fn engine_files() -> Vec<u8> {
    let disk = SimDisk::new(0);
    let dir = Path::new("member");
    let options = engine::Options { segment_bytes: 400, cache_bytes: 1000, reserve_bytes: 0 };
    let engine = LogEngine::open(Arc::new(disk.clone()), dir, options).expect("it opens");
    for main in 2..12 {
        let kv = api::mvccpb::KeyValue {
            key: Bytes::from(format!("key {}", main % 3)),
            value: Bytes::from(vec![b'v'; 40]),
            create_revision: 2,
            mod_revision: main,
            version: 1,
            lease: main % 2,
        };
        let revision = Revision { main, sub: 0 };
        engine.append(revision, main == 7, kv.encode_to_vec().into()).expect("the disk is well");
        engine.put(Bucket::Lease, &[main as u8 % 4], b"lease").expect("the disk is well");
        if main == 9 {
            engine.delete(Bucket::Lease, &[1]).expect("the disk is well");
            engine.forget(&[Revision { main: 3, sub: 0 }]).expect("the disk is well");
        }
        let commit = Commit {
            index: main as u64,
            term: 1,
            revision: main,
            compacted: -1,
            conf_state: Bytes::from_static(&[0x08, 1]),
        };
        engine.commit(commit).expect("the disk is well");
        engine.sync(u64::MAX).expect("the disk is well");
    }
    drop(engine);
    let mut out = Vec::new();
    for name in disk.list(dir).expect("the disk is well") {
        let content = disk.content(&dir.join(&name)).expect("the disk is well");
        out.push(name.len() as u8);
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(&(content.len() as u32).to_le_bytes());
        out.extend_from_slice(&content);
    }
    out
}

/// A row for every bucket, but for one of them rows enough for a second level.
fn bolt_database() -> Vec<u8> {
    struct Rows(BTreeMap<String, Vec<(Bytes, Bytes)>>);
    impl bolt::Source for Rows {
        type Error = std::convert::Infallible;
        fn next_row(&mut self, bucket: &str) -> Result<Option<(Bytes, Bytes)>, Self::Error> {
            Ok(self.0.get_mut(bucket).and_then(Vec::pop))
        }
    }
    let mut planner = bolt::Planner::new();
    let mut rows = Rows(BTreeMap::new());
    for name in bolt::BUCKETS {
        planner.bucket(name);
        let (count, value) = if name == "key" { (8, 900) } else { (1, 5) };
        let row = |n| (Bytes::from(format!("row {n}")), Bytes::from(vec![b'v'; value]));
        let mut of_bucket: Vec<_> = (0..count).map(row).collect();
        of_bucket.iter().for_each(|(key, value)| planner.row(key.len(), value.len()));
        of_bucket.reverse();
        rows.0.insert(name.to_string(), of_bucket);
    }
    let mut writer = bolt::Writer::new(planner.finish(), rows);
    let mut file = Vec::new();
    while let Some(chunk) = writer.next_chunk().expect("the rows are the planned ones") {
        file.extend_from_slice(&chunk);
    }
    file
}
