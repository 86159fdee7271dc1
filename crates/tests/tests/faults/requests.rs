//! Requests that make no sense: a clear error each, and the server goes on.

use crate::client::{assert_serves, get, put};
use crate::process::Process;
use bytes::{BufMut, Bytes, BytesMut};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::time::Duration;
use testkit::{Grpc, Status, http, http_bytes};

const WAIT: Duration = Duration::from_secs(10);
const MIB: usize = 1 << 20;

const UNARY: [&str; 36] = [
    "/etcdserverpb.KV/Range",
    "/etcdserverpb.KV/Put",
    "/etcdserverpb.KV/DeleteRange",
    "/etcdserverpb.KV/Txn",
    "/etcdserverpb.KV/Compact",
    "/etcdserverpb.Lease/LeaseGrant",
    "/etcdserverpb.Lease/LeaseRevoke",
    "/etcdserverpb.Lease/LeaseTimeToLive",
    "/etcdserverpb.Lease/LeaseLeases",
    "/etcdserverpb.Cluster/MemberAdd",
    "/etcdserverpb.Cluster/MemberRemove",
    "/etcdserverpb.Cluster/MemberUpdate",
    "/etcdserverpb.Cluster/MemberList",
    "/etcdserverpb.Cluster/MemberPromote",
    "/etcdserverpb.Maintenance/Alarm",
    "/etcdserverpb.Maintenance/Status",
    "/etcdserverpb.Maintenance/Hash",
    "/etcdserverpb.Maintenance/HashKV",
    "/etcdserverpb.Maintenance/MoveLeader",
    "/etcdserverpb.Maintenance/Downgrade",
    "/etcdserverpb.Auth/AuthStatus",
    "/etcdserverpb.Auth/Authenticate",
    "/etcdserverpb.Auth/UserAdd",
    "/etcdserverpb.Auth/UserGet",
    "/etcdserverpb.Auth/UserList",
    "/etcdserverpb.Auth/UserDelete",
    "/etcdserverpb.Auth/UserGrantRole",
    "/etcdserverpb.Auth/RoleAdd",
    "/etcdserverpb.Auth/RoleGet",
    "/etcdserverpb.Auth/RoleGrantPermission",
    "/etcdserverpb.Auth/RoleRevokePermission",
    "/etcdserverpb.Auth/RoleDelete",
    "/v3lockpb.Lock/Unlock",
    "/v3electionpb.Election/Leader",
    "/v3electionpb.Election/Resign",
    "/grpc.health.v1.Health/Check",
];

fn start() -> (tempfile::TempDir, Process) {
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let server = Process::start(&dir.path().join("data"), &[]);
    (dir, server)
}

#[test]
fn large_requests_are_refused() {
    let (_dir, server) = start();
    let mut grpc = Grpc::connect(&server.endpoint);
    put(&mut grpc, "key", vec![b'x'; MIB]).expect("a megabyte is no problem");
    let refused = put(&mut grpc, "key", vec![b'x'; 3 * MIB / 2]);
    let too_large = Status { code: 3, message: "etcdserver: request is too large".into() };
    assert_eq!(refused, Err(too_large));
    let refused = put(&mut grpc, "key", vec![b'x'; 4 * MIB]).expect_err("it is beyond all limits");
    assert_eq!(refused.code, 8);
    let says = "grpc: received message larger than max (";
    assert!(refused.message.starts_with(says), "{refused:?}");
    assert!(refused.message.ends_with(" vs. 2097152)"), "{refused:?}");
    let body = format!("{{\"key\":\"a2V5\",\"value\":\"{}\"}}", "eHh4".repeat(800_000));
    let reply = http(&server.endpoint, "POST", "/v3/kv/put", &[], body.as_bytes(), WAIT);
    let says = "grpc: received message larger than max (2400010 vs. 2097152)";
    assert_eq!(reply.json().expect("errors are JSON")["message"], says);
    assert_eq!(reply.status, 429);
    // The connection goes on.
    put(&mut grpc, "key", "x").expect("writes are served");
    assert_serves(&server.endpoint);
}

#[test]
fn an_operator_may_allow_larger_requests() {
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let allowed = ["--max-request-bytes=8388608"];
    let server = Process::start(&dir.path().join("data"), &allowed);
    let mut grpc = Grpc::connect(&server.endpoint);
    put(&mut grpc, "key", vec![b'x'; 6 * MIB]).expect("it is within the limit");
    let body = format!("{{\"key\":\"a2V5\",\"value\":\"{}\"}}", "eHh4".repeat(2 * MIB));
    let reply = http(&server.endpoint, "POST", "/v3/kv/put", &[], body.as_bytes(), WAIT);
    assert_eq!(reply.status, 200, "{}", reply.text());
    let value = get(&mut grpc, "key").expect("reads are served").expect("the key is there");
    assert_eq!(value.len(), 6 * MIB);
}

#[test]
fn a_message_is_not_believed_to_be_as_long_as_it_says() {
    let (_dir, server) = start();
    let before = server.resident_bytes();
    let mut grpc = Grpc::connect(&server.endpoint);
    for claimed in [u32::MAX, 1 << 31, 100 << 20] {
        let mut request = BytesMut::new();
        // A key that says it has so many bytes, of which none come.
        request.put_u8(0x0a);
        let mut claimed = claimed;
        while claimed >= 0x80 {
            request.put_u8(claimed as u8 | 0x80);
            claimed >>= 7;
        }
        request.put_u8(claimed as u8);
        let refused = grpc.call_bytes("/etcdserverpb.KV/Put", &[], request.freeze());
        assert_eq!(refused.expect_err("there is no such key").code, 13);
    }
    assert!(server.resident_bytes() < before + (16 << 20));
    assert_serves(&server.endpoint);
}

#[test]
fn transactions_within_transactions_end_somewhere() {
    let (_dir, server) = start();
    let mut grpc = Grpc::connect(&server.endpoint);
    // A txn whose success holds a txn, and so on: 20 000 of them.
    let mut request = Vec::new();
    for _ in 0..20_000 {
        let mut op = vec![0x22];
        prost::encoding::encode_varint(request.len() as u64, &mut op);
        op.append(&mut request);
        request = vec![0x12];
        prost::encoding::encode_varint(op.len() as u64, &mut request);
        request.append(&mut op);
        if request.len() > MIB {
            break;
        }
    }
    let refused = grpc.call_bytes("/etcdserverpb.KV/Txn", &[], request.into());
    refused.expect_err("nobody nests so deeply");
    assert_serves(&server.endpoint);
}

#[test]
fn random_bytes_are_refused_by_every_method() {
    let (_dir, server) = start();
    let seed = rand::rng().random_range(0..1_000_000);
    eprintln!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let mut grpc = Grpc::connect(&server.endpoint);
    let mut refused = 0;
    for _ in 0..20 {
        for path in UNARY {
            let bytes: Vec<u8> = (0..random.random_range(1..60)).map(|_| random.random()).collect();
            if let Err(status) = grpc.call_bytes(path, &[], bytes.into()) {
                assert_ne!(status.code, 14, "{path} broke the connection: {status:?}");
                refused += 1;
            }
        }
    }
    assert!(refused > 500, "most random bytes are no message, but {refused} were refused");
    for (path, message) in [
        ("/etcdserverpb.KV/Nothing", "unknown method Nothing for service etcdserverpb.KV"),
        ("/nobody.Knows/It", "unknown service nobody.Knows"),
    ] {
        let status = grpc.call_bytes(path, &[], Bytes::new());
        assert_eq!(status, Err(Status { code: 12, message: message.into() }));
    }
    assert_serves(&server.endpoint);
}

#[test]
fn senseless_json_is_refused() {
    let (_dir, server) = start();
    let deep = "[".repeat(500_000);
    let deep_object = "{\"success\":[{\"requestTxn\":".repeat(20_000);
    let long = format!("{{\"key\":\"{}\"}}", "A".repeat(8 * MIB));
    let bodies =
        ["", "{", "[]", "null", "\"", "{\"key\":1}", "{\"key\":\"%%%\"}", "{\"nothing\":1}", "\0"];
    let bodies = bodies.into_iter().chain([deep.as_str(), &deep_object, &long]);
    for body in bodies {
        let body = body.as_bytes();
        for path in ["/v3/kv/put", "/v3/kv/txn", "/v3/lease/grant"] {
            let reply = http(&server.endpoint, "POST", path, &[], body, WAIT);
            let status = reply.status;
            assert!((200..=599).contains(&status), "{path}: {status} {}", reply.text());
            assert!(status != 500 && status != 502, "{path}: {status} {}", reply.text());
        }
        // A stream says nothing about what it does not understand, as in etcd.
        let head =
            format!("POST /v3/watch HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.len());
        http_bytes(&server.endpoint, &[head.as_bytes(), body].concat(), Duration::from_millis(20));
    }
    for (method, path, expected) in [
        ("GET", "/v3/kv/put", 501),
        ("POST", "/v3/nothing", 404),
        ("GET", "/nothing", 404),
        ("POST", "/health", 405),
    ] {
        let reply = http(&server.endpoint, method, path, &[], b"", WAIT);
        assert_eq!(reply.status, expected, "{method} {path}: {}", reply.text());
    }
    assert_serves(&server.endpoint);
}

#[test]
fn senseless_http_is_refused() {
    let (_dir, server) = start();
    let before = server.resident_bytes();
    let endless_header = [b"GET / HTTP/1.1\r\nX: ".to_vec(), vec![b'a'; 4 * MIB]].concat();
    let many_headers =
        [b"GET / HTTP/1.1\r\n".to_vec(), b"X: y\r\n".repeat(200_000), b"\r\n".to_vec()].concat();
    let requests: [&[u8]; 12] = [
        b"\r\n\r\n\r\n\r\n",
        b"hello\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /v3/kv/put HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"POST /v3/kv/put HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"POST /v3/kv/put HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\x00\x01\x02\x03\x04\x05\x06\x07",
        &endless_header,
        &many_headers,
    ];
    for request in requests {
        let start = String::from_utf8_lossy(&request[..request.len().min(40)]).into_owned();
        let answer = http_bytes(&server.endpoint, request, Duration::from_secs(1));
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let refused = answer.is_empty()
            || answer.starts_with("HTTP/1.1 4")
            || answer.starts_with("HTTP/1.1 5");
        assert!(refused, "{start:?} got {answer:?}");
    }
    assert!(server.resident_bytes() < before + (32 << 20));
    assert_serves(&server.endpoint);
}
