//! Requests written by hand: what is refused and how, and what surprisingly is not.

use super::op::{Op, SELF};
use super::pair::Pair;
use api::authpb;
use api::etcdserverpb::request_op::Request;
use api::etcdserverpb::*;
use api::health::HealthCheckRequest;
use api::v3electionpb::*;
use api::v3lockpb::*;
use bytes::Bytes;
use prost::Message;

#[test]
fn refusals_have_the_same_code_and_text() {
    let Some(mut pair) = Pair::start(&["--unsafe-no-fsync"]) else { return };
    let mut differences = Vec::new();
    for op in requests() {
        let (theirs, ours) = pair.both(&op);
        if theirs != ours {
            differences.push(format!("{op:?}\n  etcd: {theirs}\n  ours: {ours}\n"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// In this order: later ones build on earlier ones.
fn requests() -> Vec<Op> {
    let mut ops = Vec::new();
    ops.extend(compactions());
    ops.extend(keys());
    ops.extend(transactions());
    ops.extend(leases());
    ops.extend(users_and_roles());
    ops.extend(members_and_maintenance());
    ops.extend(locks_and_elections());
    ops
}

/// A fresh store can be compacted to nothing once.
fn compactions() -> Vec<Op> {
    let compact = |revision, physical| Op::Compact(CompactionRequest { revision, physical });
    let hash = |revision| Op::HashKv(HashKvRequest { revision });
    let negative = Op::Txn(txn(vec![range_op(RangeRequest { revision: -1, ..get("a") })]));
    let more_negative = Op::Txn(txn(vec![range_op(RangeRequest { revision: -2, ..get("a") })]));
    vec![
        hash(0),
        hash(1),
        hash(2),
        hash(-1),
        negative.clone(),
        more_negative.clone(),
        compact(-1, false),
        compact(2, false),
        compact(0, false),
        compact(0, true),
        negative,
        more_negative,
        compact(1, true),
        compact(1, true),
        hash(0),
        hash(1),
        hash(i64::MIN),
        hash(i64::MAX),
        compact(i64::MIN, false),
        compact(i64::MAX, true),
    ]
}

fn keys() -> Vec<Op> {
    let put = |request: PutRequest| Op::Put(request);
    let range = |request: RangeRequest| Op::Range(request);
    let whole = || RangeRequest { range_end: Bytes::from_static(b"\0"), ..get("\0") };
    let base = || PutRequest { key: "k".into(), ..PutRequest::default() };
    vec![
        put(PutRequest { key: Bytes::new(), ..base() }),
        put(PutRequest { key: Bytes::new(), ignore_value: true, value: "v".into(), ..base() }),
        put(PutRequest { ignore_value: true, value: "v".into(), ..base() }),
        put(PutRequest { ignore_lease: true, lease: 5, ..base() }),
        put(PutRequest {
            ignore_value: true,
            value: "v".into(),
            ignore_lease: true,
            lease: 5,
            ..base()
        }),
        put(PutRequest { ignore_value: true, ..base() }),
        put(PutRequest { ignore_lease: true, ..base() }),
        put(PutRequest { ignore_value: true, lease: 5, ..base() }),
        put(PutRequest { lease: 5, ..base() }),
        put(PutRequest { prev_kv: true, ..base() }),
        put(PutRequest { prev_kv: true, value: "v".into(), ..base() }),
        put(PutRequest { ignore_value: true, ignore_lease: true, prev_kv: true, ..base() }),
        range(get("")),
        range(RangeRequest { sort_order: 3, ..get("k") }),
        range(RangeRequest { sort_order: -1, ..get("k") }),
        range(RangeRequest { sort_target: 5, ..get("k") }),
        range(RangeRequest { sort_order: 3, ..get("") }),
        range(RangeRequest { revision: 1000, ..get("k") }),
        range(RangeRequest { revision: -1000, ..get("k") }),
        range(RangeRequest { revision: 1, ..get("k") }),
        range(RangeRequest { limit: i64::MIN, ..whole() }),
        range(RangeRequest { limit: i64::MAX, ..whole() }),
        range(RangeRequest { count_only: true, limit: 1, ..whole() }),
        range(RangeRequest { count_only: true, keys_only: true, sort_target: 4, ..whole() }),
        range(RangeRequest { min_mod_revision: -1, max_mod_revision: i64::MAX, ..whole() }),
        range(RangeRequest { max_mod_revision: -1, ..whole() }),
        Op::DeleteRange(DeleteRangeRequest::default()),
        Op::DeleteRange(DeleteRangeRequest { range_end: "z".into(), ..Default::default() }),
        Op::DeleteRange(DeleteRangeRequest {
            key: "z".into(),
            range_end: "a".into(),
            prev_kv: true,
        }),
        Op::DeleteRange(DeleteRangeRequest {
            key: "k".into(),
            prev_kv: true,
            ..Default::default()
        }),
    ]
}

fn transactions() -> Vec<Op> {
    let put = |key: &str| put_op(PutRequest { key: key.to_string().into(), ..Default::default() });
    let del = |key: &str, end: &str| {
        let (key, range_end) = (key.to_string().into(), end.to_string().into());
        op(Request::RequestDeleteRange(DeleteRangeRequest { key, range_end, prev_kv: false }))
    };
    let nested = |ops: Vec<RequestOp>| op(Request::RequestTxn(txn(ops)));
    let of = |ops: Vec<RequestOp>| Op::Txn(txn(ops));
    let ranges = |count| vec![range_op(get("k")); count];
    let compares = |count| TxnRequest { compare: vec![compare("k"); count], ..Default::default() };
    let branches = |success: Vec<RequestOp>, failure: Vec<RequestOp>| {
        op(Request::RequestTxn(TxnRequest { success, failure, ..Default::default() }))
    };
    vec![
        Op::Txn(TxnRequest::default()),
        of(vec![RequestOp { request: None }]),
        of(vec![nested(vec![RequestOp { request: None }])]),
        Op::Txn(TxnRequest { failure: vec![RequestOp { request: None }], ..Default::default() }),
        of(vec![put("")]),
        of(vec![put("a"), put("a")]),
        of(vec![put("a"), put("b"), put("a")]),
        of(vec![put("a"), del("a", "")]),
        of(vec![del("a", ""), put("a")]),
        of(vec![del("a", "c"), put("b")]),
        of(vec![del("a", "c"), put("c")]),
        of(vec![del("a", "\0"), put("b")]),
        of(vec![put("b"), del("a", "\0")]),
        of(vec![del("\0", "\0"), del("\0", "\0")]),
        of(vec![nested(vec![put("a")]), put("a")]),
        of(vec![put("a"), nested(vec![del("a", "")])]),
        of(vec![nested(vec![del("a", "")]), nested(vec![put("a")])]),
        of(vec![nested(vec![put("a")]), nested(vec![del("a", "")])]),
        of(vec![branches(vec![put("a")], vec![put("a")])]),
        of(vec![branches(vec![put("a")], vec![put("a"), del("a", "")])]),
        of(vec![branches(vec![put("a")], vec![del("a", "")])]),
        Op::Txn(TxnRequest { compare: vec![compare("")], ..Default::default() }),
        Op::Txn(TxnRequest {
            compare: vec![compare("")],
            success: vec![put("")],
            ..Default::default()
        }),
        of(ranges(128)),
        of(ranges(129)),
        Op::Txn(compares(128)),
        Op::Txn(compares(129)),
        of(vec![nested(ranges(127))]),
        of(vec![nested(ranges(128))]),
        of([ranges(64), vec![nested(ranges(63))]].concat()),
        of([ranges(64), vec![nested(ranges(64))]].concat()),
        of(vec![range_op(RangeRequest { revision: 1_000_000, ..get("k") })]),
        of(vec![put("x"), range_op(RangeRequest { revision: 1_000_000, ..get("k") })]),
        of(vec![put_op(PutRequest { key: "x".into(), lease: 99, ..Default::default() })]),
        of(vec![put_op(PutRequest {
            key: "missing".into(),
            lease: 99,
            ignore_value: true,
            ..Default::default()
        })]),
        of(vec![range_op(RangeRequest { sort_order: 9, ..get("k") })]),
        of(vec![range_op(RangeRequest { serializable: true, ..get("k") })]),
    ]
}

fn leases() -> Vec<Op> {
    let grant = |id, ttl| Op::LeaseGrant(LeaseGrantRequest { id, ttl });
    let ttl = |id, keys| Op::LeaseTimeToLive(LeaseTimeToLiveRequest { id, keys });
    let revoke = |id| Op::LeaseRevoke(LeaseRevokeRequest { id });
    let attach = |key: &str, lease| {
        Op::Put(PutRequest { key: key.to_string().into(), lease, ..Default::default() })
    };
    vec![
        grant(10, 5000),
        grant(10, 5000),
        grant(-10, 5000),
        grant(i64::MAX, 9_000_000_000),
        grant(i64::MIN, 5000),
        grant(11, 9_000_000_001),
        grant(11, i64::MAX),
        grant(12, 0),
        grant(13, -1),
        grant(14, i64::MIN),
        grant(15, 1),
        revoke(12),
        revoke(13),
        revoke(14),
        revoke(15),
        revoke(0),
        revoke(999),
        ttl(0, true),
        ttl(999, true),
        attach("b", 10),
        attach("a", 10),
        attach("c", -10),
        ttl(10, true),
        ttl(10, false),
        ttl(-10, true),
        attach("a", -10),
        attach("c", 0),
        ttl(10, true),
        ttl(-10, true),
        Op::LeaseLeases(LeaseLeasesRequest {}),
        revoke(10),
        revoke(-10),
        Op::LeaseLeases(LeaseLeasesRequest {}),
        Op::Range(RangeRequest { range_end: Bytes::from_static(b"\0"), ..get("\0") }),
    ]
}

fn users_and_roles() -> Vec<Op> {
    let user = |name: &str, password: &str, options: Option<bool>| {
        let options = options.map(|no_password| authpb::UserAddOptions { no_password });
        let (name, password) = (name.to_string(), password.to_string());
        Op::UserAdd(AuthUserAddRequest { name, password, options, ..Default::default() })
    };
    let role = |name: &str| Op::RoleAdd(AuthRoleAddRequest { name: name.into() });
    let grant = |name: &str, perm_type, key: &'static [u8], end: &'static [u8]| {
        let (key, range_end) = (Bytes::from_static(key), Bytes::from_static(end));
        let perm = Some(authpb::Permission { perm_type, key, range_end });
        Op::RoleGrantPermission(AuthRoleGrantPermissionRequest { name: name.into(), perm })
    };
    let change = |name: &str, password: &str| {
        let (name, password) = (name.to_string(), password.to_string());
        Op::UserChangePassword(AuthUserChangePasswordRequest {
            name,
            password,
            ..Default::default()
        })
    };
    let get_role = |role: &str| Op::RoleGet(AuthRoleGetRequest { role: role.into() });
    let give = |user: &str, role: &str| {
        Op::UserGrantRole(AuthUserGrantRoleRequest { user: user.into(), role: role.into() })
    };
    vec![
        Op::AuthEnable(AuthEnableRequest {}),
        user("", "x", None),
        user("ann", &"p".repeat(72), None),
        user("bob", &"p".repeat(73), None),
        user("bob", "", Some(true)),
        user("bob", "", Some(true)),
        user("cid", "", None),
        user("dan", "", Some(false)),
        user("eve", "given all the same", Some(true)),
        change("nobody", "x"),
        change("ann", &"p".repeat(73)),
        change("ann", ""),
        change("bob", "x"),
        Op::UserList(AuthUserListRequest {}),
        user("root", "", Some(true)),
        Op::AuthEnable(AuthEnableRequest {}),
        role(""),
        role("r"),
        role("r"),
        grant("r", 0, b"a", b""),
        grant("r", 1, b"a", b""),
        grant("r", 0, b"a", b"b"),
        grant("r", 2, b"a", b"b"),
        grant("r", 2, b"\0", b"\0"),
        grant("r", 2, b"b", b"\0"),
        grant("r", 2, b"b", b"b"),
        grant("r", 2, b"b", b"a"),
        grant("r", 2, b"", b""),
        grant("r", 2, b"", b"\0"),
        grant("r", 9, b"x", b""),
        grant("nope", 0, b"a", b""),
        grant("root", 0, b"a", b""),
        get_role("r"),
        get_role("root"),
        give("ann", "root"),
        give("ann", "nope"),
        give("ann", "r"),
        give("ann", "r"),
        give("nobody", "r"),
        give("root", "r"),
        role("root"),
        get_role("root"),
        Op::UserGet(AuthUserGetRequest { name: "ann".into() }),
        Op::UserRevokeRole(AuthUserRevokeRoleRequest { name: "ann".into(), role: "x".into() }),
        Op::UserRevokeRole(AuthUserRevokeRoleRequest { name: "x".into(), role: "r".into() }),
        Op::RoleRevokePermission(AuthRoleRevokePermissionRequest {
            role: "r".into(),
            key: "a".into(),
            range_end: "nope".into(),
        }),
        Op::RoleRevokePermission(AuthRoleRevokePermissionRequest {
            role: "r".into(),
            key: "a".into(),
            range_end: Bytes::new(),
        }),
        get_role("r"),
        Op::RoleDelete(AuthRoleDeleteRequest { role: "r".into() }),
        Op::UserGet(AuthUserGetRequest { name: "ann".into() }),
        Op::RoleDelete(AuthRoleDeleteRequest { role: "root".into() }),
        Op::UserDelete(AuthUserDeleteRequest { name: "root".into() }),
        Op::Authenticate(AuthenticateRequest::default()),
        Op::AuthStatus(AuthStatusRequest {}),
        Op::AuthDisable(AuthDisableRequest {}),
        Op::AuthStatus(AuthStatusRequest {}),
    ]
}

fn members_and_maintenance() -> Vec<Op> {
    let add = |url: &str| {
        Op::MemberAdd(MemberAddRequest { peer_ur_ls: vec![url.to_string()], is_learner: false })
    };
    let downgrade = |action, version: &str| {
        Op::Downgrade(DowngradeRequest { action, version: version.to_string() })
    };
    let update = |id, url: &str| {
        Op::MemberUpdate(MemberUpdateRequest { id, peer_ur_ls: vec![url.to_string()] })
    };
    let mut ops = vec![
        Op::MemberAdd(MemberAddRequest::default()),
        update(77, "http://127.0.0.1:1"),
        update(SELF, "http://127.0.0.1:1"),
        update(SELF, "http://127.0.0.1:1"),
        Op::MemberList(MemberListRequest { linearizable: true }),
        Op::MemberRemove(MemberRemoveRequest { id: 0 }),
        Op::MemberRemove(MemberRemoveRequest { id: SELF }),
        Op::MemberPromote(MemberPromoteRequest { id: 0 }),
        Op::MemberPromote(MemberPromoteRequest { id: SELF }),
        Op::MoveLeader(MoveLeaderRequest { target_id: 0 }),
        Op::MoveLeader(MoveLeaderRequest { target_id: SELF }),
        downgrade(7, "3.5"),
        downgrade(2, ""),
        downgrade(2, "3.5"),
        Op::Defragment(DefragmentRequest {}),
        Op::HealthCheck(HealthCheckRequest { service: String::new() }),
        Op::HealthCheck(HealthCheckRequest { service: "etcdserverpb.KV".into() }),
        Op::Status(StatusRequest {}),
    ];
    ops.extend(
        ["", " ", "nonsense", "http://", "http://h", "http://:1/", "http://h:1/p"]
            .into_iter()
            .chain(["http://h:x", "ftp://h:1", "h:1", "http://h:1,http://i:1"])
            .map(add),
    );
    let versions =
        ["", "3", "3.5", "3.5.9", "3.5.0-x", "3.6", "3.6.0", "3.4", "4.5", "v3.5", "3.5.", " 3.5"];
    ops.extend(versions.into_iter().map(|version| downgrade(0, version)));
    let alarm = |action, member_id, alarm| Op::Alarm(AlarmRequest { action, member_id, alarm });
    ops.extend([
        alarm(0, 0, 0),
        alarm(1, SELF, 0),
        alarm(1, SELF, 1),
        alarm(1, SELF, 1),
        Op::Put(PutRequest { key: "k".into(), ..Default::default() }),
        Op::Put(PutRequest::default()),
        Op::Txn(txn(vec![put_op(PutRequest { key: "k".into(), ..Default::default() })])),
        Op::DeleteRange(DeleteRangeRequest { key: "k".into(), ..Default::default() }),
        Op::LeaseGrant(LeaseGrantRequest { id: 50, ttl: 5000 }),
        Op::Status(StatusRequest {}),
        alarm(1, 5, 2),
        alarm(0, 0, 2),
        alarm(0, 9, 0),
        Op::Put(PutRequest { key: "k".into(), ..Default::default() }),
        Op::DeleteRange(DeleteRangeRequest { key: "k".into(), ..Default::default() }),
        Op::Compact(CompactionRequest { revision: 3, physical: false }),
        Op::LeaseRevoke(LeaseRevokeRequest { id: 1 }),
        Op::Range(get("k")),
        alarm(2, 0, 2),
        alarm(2, 5, 1),
        alarm(2, 5, 0),
        alarm(2, 5, 2),
        alarm(2, 5, 2),
        alarm(1, 0, 44),
        alarm(1, 0, -4),
        alarm(0, 0, 44),
        alarm(0, 0, 0),
        alarm(2, 0, 44),
        alarm(2, 0, -4),
        alarm(2, SELF, 1),
        alarm(0, 0, 0),
    ]);
    ops
}

fn locks_and_elections() -> Vec<Op> {
    let name = || Bytes::from_static(b"n");
    let lock = |lease| Op::Lock(LockRequest { name: name(), lease });
    let campaign = |lease, value: &'static str| {
        Op::Campaign(CampaignRequest { name: name(), lease, value: value.into() })
    };
    let leader =
        |rev, lease| Some(LeaderKey { name: name(), key: Bytes::from_static(b"n/3c"), rev, lease });
    vec![
        lock(60),
        campaign(60, "v"),
        Op::LeaseGrant(LeaseGrantRequest { id: 60, ttl: 5000 }),
        lock(60),
        lock(60),
        Op::Unlock(UnlockRequest::default()),
        Op::Unlock(UnlockRequest { key: "n/3c".into() }),
        Op::Unlock(UnlockRequest { key: "n/3c".into() }),
        Op::Leader(LeaderRequest { name: name() }),
        campaign(60, "v"),
        campaign(60, "w"),
        Op::Leader(LeaderRequest { name: name() }),
        Op::Proclaim(ProclaimRequest { leader: leader(1, 60), value: "x".into() }),
        Op::Proclaim(ProclaimRequest { leader: None, value: "x".into() }),
        Op::Proclaim(ProclaimRequest { leader: Some(LeaderKey::default()), value: "x".into() }),
        Op::Resign(ResignRequest { leader: leader(1, 60) }),
        Op::Resign(ResignRequest { leader: None }),
        Op::Resign(ResignRequest { leader: Some(LeaderKey::default()) }),
        Op::Leader(LeaderRequest::default()),
    ]
}

/// Paths that lead nowhere, metadata, and bytes that are no message.
#[test]
fn broken_calls_fail_alike() {
    let Some(mut pair) = Pair::start(&["--unsafe-no-fsync"]) else { return };
    for path in [
        "/etcdserverpb.KV/Nope",
        "/no.Such/Thing",
        "/etcdserverpb.KV/",
        "/etcdserverpb.KV/Range/More",
        "//Range",
        "/Range",
        "/",
        "/a/b/c",
    ] {
        pair.same_status(path, &[], b"");
    }
    let range = get("k").encode_to_vec();
    for metadata in [
        [("hasleader", "true")],
        [("hasleader", "nonsense")],
        [("client-api-version", "3.6")],
        [("token", "nonsense")],
        [("authorization", "Bearer nonsense")],
        [("grpc-timeout", "5S")],
        [("grpc-timeout", "1n")],
    ] {
        pair.same_status("/etcdserverpb.KV/Range", &metadata, &range);
    }
    // What is wrong with them is told in free text.
    let mut broken: Vec<(&str, &[u8])> = vec![
        ("/etcdserverpb.KV/Range", b"\xff\xff\xff\xff"),
        ("/etcdserverpb.KV/Range", b"\x0a\x05a"),
        ("/etcdserverpb.KV/Range", b"\x08\x01"),
        ("/etcdserverpb.KV/Range", b"\x00\x01"),
        ("/etcdserverpb.KV/Range", b"\x0a\x01k\x1a"),
        (
            "/etcdserverpb.KV/Range",
            b"\x0a\x01k\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        ),
        ("/etcdserverpb.KV/Range", b"\x0a\x01k\xa3\x06\x08\x01\xa4\x06"),
        ("/etcdserverpb.KV/Range", b"\x0a\x01k\xa4\x06"),
        ("/etcdserverpb.KV/Range", b"\x0a\x01k\xa7\x06"),
        ("/etcdserverpb.KV/Range", b"\x0a\x01k\x38\x02"),
        ("/etcdserverpb.KV/Txn", b"\x12\x02\x0a\xff"),
        ("/etcdserverpb.KV/Put", b"\x0a\x01k\x12\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01v"),
    ];
    let mut paths: Vec<&str> = requests().iter().map(Op::path).collect();
    paths.sort_unstable();
    paths.dedup();
    for path in paths {
        broken.extend([(path, &b"\xff"[..]), (path, b"\x0a\x05a"), (path, b"\xa2\x06\x05a")]);
    }
    let mut differences = Vec::new();
    for (path, bytes) in broken {
        let [theirs, ours] = [&mut pair.etcd, &mut pair.ours].map(|side| {
            let answer = side.grpc.call_bytes(path, &[], Bytes::copy_from_slice(bytes));
            answer.map(|_| ()).map_err(|status| status.code)
        });
        if theirs != ours {
            differences.push(format!("{path} {bytes:x?}: etcd {theirs:?}, ours {ours:?}"));
        }
    }
    assert!(differences.is_empty(), "{differences:#?}");
}

/// The largest request that is taken, to the byte; and the largest message that is read.
#[test]
fn sizes_are_limited_alike() {
    let Some(mut pair) = Pair::start(&["--unsafe-no-fsync"]) else { return };
    let put = |bytes: usize| PutRequest {
        key: "k".into(),
        value: vec![b'x'; bytes].into(),
        ..PutRequest::default()
    };
    for side in [&mut pair.etcd, &mut pair.ours] {
        // The top bits of a request's id are the member's, and a varint of ten bytes leaves one less.
        let long_id = side.member & 0x8000 != 0;
        let largest = if long_id { 1_572_839 } else { 1_572_840 };
        let mut put = |bytes| side.grpc.call("/etcdserverpb.KV/Put", &put(bytes)).map(|_| ());
        assert_eq!(put(largest), Ok(()));
        let refused = put(largest + 1).expect_err("a byte too many");
        assert_eq!((refused.code, &*refused.message), (3, "etcdserver: request is too large"));
    }
    // A message of exactly the limit, and of one more.
    let overhead = put(1 << 21).encoded_len() - (1 << 21);
    for bytes in [(1 << 21) - overhead, (1 << 21) - overhead + 1] {
        let request = put(bytes).encode_to_vec();
        pair.same_status("/etcdserverpb.KV/Put", &[], &request);
    }
    pair.same(&Op::Put(PutRequest { key: "still".into(), ..Default::default() }));
}

fn get(key: &str) -> RangeRequest {
    RangeRequest { key: key.to_string().into(), ..RangeRequest::default() }
}

fn compare(key: &str) -> Compare {
    Compare { key: key.to_string().into(), ..Compare::default() }
}

fn op(request: Request) -> RequestOp {
    RequestOp { request: Some(request) }
}

fn put_op(request: PutRequest) -> RequestOp {
    op(Request::RequestPut(request))
}

fn range_op(request: RangeRequest) -> RequestOp {
    op(Request::RequestRange(request))
}

fn txn(success: Vec<RequestOp>) -> TxnRequest {
    TxnRequest { success, ..TxnRequest::default() }
}
