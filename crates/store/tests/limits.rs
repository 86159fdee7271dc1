//! Inputs at the edge of what is taken.

mod support;

use api::etcdserverpb::request_op::Request;
use api::etcdserverpb::{PutRequest, RequestOp, TxnRequest};
use store::{Config, check_txn};
use support::Machine;

/// Transactions within each other, the innermost with one put.
fn nested(depth: usize) -> TxnRequest {
    let put = PutRequest { key: "k".into(), ..PutRequest::default() };
    let mut op = Request::RequestPut(put);
    for _ in 1..depth {
        let success = vec![RequestOp { request: Some(op) }];
        op = Request::RequestTxn(TxnRequest { success, ..TxnRequest::default() });
    }
    TxnRequest { success: vec![RequestOp { request: Some(op) }], ..TxnRequest::default() }
}

#[test]
fn what_is_taken_can_be_read_back_from_the_log() {
    let deepest = (1..128).take_while(|&depth| check_txn(&nested(depth), 128).is_ok());
    let deepest = deepest.last().expect("one level is taken");
    let mut machine = Machine::new(Config::default());
    let applied = machine.apply(entry!(txn, nested(deepest)));
    assert!(applied.result.is_ok(), "{deepest} levels are taken, and then not understood");
    assert!(applied.change.is_some());
}

#[test]
fn the_budget_of_ops_shrinks_from_level_to_level() {
    let puts = |prefix: &str, ops: usize| -> Vec<RequestOp> {
        let put = |n| PutRequest { key: format!("{prefix}{n}").into(), ..PutRequest::default() };
        let op = |n| RequestOp { request: Some(Request::RequestPut(put(n))) };
        (0..ops).map(op).collect()
    };
    let wide = |ops| TxnRequest { success: puts("a", ops), ..TxnRequest::default() };
    let within = |outer: usize, inner: usize| {
        let nested = TxnRequest { failure: puts("b", inner), ..TxnRequest::default() };
        let mut txn = wide(outer - 1);
        txn.success.push(RequestOp { request: Some(Request::RequestTxn(nested)) });
        txn
    };
    assert_eq!(check_txn(&wide(128), 128), Ok(()));
    assert_eq!(check_txn(&wide(129), 128), Err(api::Error::TOO_MANY_OPS));
    assert_eq!(check_txn(&within(100, 28), 128), Ok(()));
    assert_eq!(check_txn(&within(100, 29), 128), Err(api::Error::TOO_MANY_OPS));
}

#[test]
fn the_hash_of_everything_covers_every_bucket() {
    use api::etcdserverpb::{AlarmRequest, LeaseGrantRequest};
    use engine::{Bucket, Revision};

    let mut machine = Machine::new(Config::default());
    machine.apply(entry!(lease_grant, LeaseGrantRequest { id: 7, ttl: 60 }));
    machine.apply(entry!(alarm, AlarmRequest { action: 1, member_id: 3, alarm: 42 }));
    for key in ["a", "b"] {
        let put = PutRequest { key: key.into(), lease: 7, ..PutRequest::default() };
        machine.apply(entry!(put, put));
    }
    let version = api::membershippb::ClusterVersionSetRequest { ver: "3.6.0".into() };
    machine.apply(entry!(cluster_version_set, version));
    let mut bytes = Vec::new();
    let buckets = [
        ("alarm", Bucket::Alarm),
        ("auth", Bucket::Auth),
        ("authRoles", Bucket::AuthRoles),
        ("authUsers", Bucket::AuthUsers),
        ("cluster", Bucket::Cluster),
        ("key", Bucket::Meta),
        ("lease", Bucket::Lease),
        ("members", Bucket::Members),
        ("members_removed", Bucket::MembersRemoved),
        ("meta", Bucket::Meta),
    ];
    for (name, bucket) in buckets {
        bytes.extend_from_slice(name.as_bytes());
        if name == "key" {
            for row in machine.engine.rows(Revision::default(), 100, 10_000).expect("rows") {
                let (key, length) = row.revision.row_key(row.tombstone);
                bytes.extend_from_slice(&key[..length]);
                bytes.extend_from_slice(&row.kv);
            }
            continue;
        }
        for (key, value) in machine.engine.bucket(bucket) {
            if key != "storageVersion" {
                bytes.extend_from_slice(&key);
                bytes.extend_from_slice(&value);
            }
        }
    }
    let hash = machine.store.view().hash().expect("a hash");
    assert_eq!(hash, crc32c::crc32c(&bytes));
    // The term and the applied index are no part of it.
    machine.apply_entry(raftpb::EntryKind::Normal, Vec::new());
    assert_eq!(machine.store.view().hash().expect("a hash"), hash);
}
