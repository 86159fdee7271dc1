//! The quota: writes that would exceed it are refused and an alarm is raised; deleting, compacting
//! and defragmenting make room, and disarming lets writes through again.

use crate::client::*;
use crate::process::Process;
use api::etcdserverpb::*;
use bytes::Bytes;
use prost::Message;
use std::time::Duration;
use testkit::{Grpc, http};

const WAIT: Duration = Duration::from_secs(10);

#[test]
fn a_full_store_refuses_writes_until_there_is_room() {
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let flags = ["--quota-backend-bytes=2000000", "--backend-batch-interval=1ms"];
    let mut server = Process::start(&dir.path().join("data"), &flags);
    let mut grpc = Grpc::connect(&server.endpoint);
    assert_eq!(status(&mut grpc).db_size_quota, 2_000_000);
    let mut written = 0;
    let refused = loop {
        match put(&mut grpc, &format!("key{written}"), vec![b'x'; 100_000]) {
            Ok(_) => written += 1,
            Err(status) => break status,
        }
    };
    assert_eq!(refused, no_space());
    assert!((15..25).contains(&written), "{written} writes of 100 kB fit into 2 MB");
    let member = status(&mut grpc).header.unwrap_or_default().member_id;
    assert_eq!(alarms(&mut grpc), [AlarmMember { member_id: member, alarm: 1 }]);
    assert_eq!(status(&mut grpc).errors, [format!("memberID:{member} alarm:NOSPACE ")]);
    let health = http(&server.endpoint, "GET", "/health", &[], b"", WAIT);
    assert_eq!(
        (health.status, health.text().as_str()),
        (503, "{\"health\":\"false\",\"reason\":\"ALARM NOSPACE\"}\n",)
    );
    assert_eq!(http(&server.endpoint, "GET", "/readyz", &[], b"", WAIT).status, 200);

    // The alarm outlives a restart.
    server.kill();
    let server = Process::start(&dir.path().join("data"), &flags);
    let mut grpc = Grpc::connect(&server.endpoint);
    assert_eq!(alarms(&mut grpc).len(), 1);
    assert_eq!(put(&mut grpc, "small", "x"), Err(no_space()));
    let put_inside = RequestOp {
        request: Some(request_op::Request::RequestPut(PutRequest {
            key: Bytes::from_static(b"small"),
            ..Default::default()
        })),
    };
    let txn = TxnRequest { failure: vec![put_inside], ..Default::default() };
    assert_eq!(grpc.call("/etcdserverpb.KV/Txn", &txn), Err(no_space()));
    let grant = LeaseGrantRequest { id: 0, ttl: 100 };
    assert_eq!(grpc.call("/etcdserverpb.Lease/LeaseGrant", &grant), Err(no_space()));
    assert!(get(&mut grpc, "key0").expect("reads go on").is_some());

    let mut revision = 0;
    for i in 0..written {
        revision = delete(&mut grpc, &format!("key{i}")).expect("deletes go on");
    }
    compact(&mut grpc, revision);
    defragment(&mut grpc);
    assert!(status(&mut grpc).db_size < 100_000);
    // There is room, but somebody must say that it is well.
    assert_eq!(put(&mut grpc, "small", "x"), Err(no_space()));
    disarm(&mut grpc);
    put(&mut grpc, "small", "x").expect("writes are served again");
    assert!(alarms(&mut grpc).is_empty());
    let health = http(&server.endpoint, "GET", "/health", &[], b"", WAIT);
    assert_eq!(health.text(), "{\"health\":\"true\",\"reason\":\"\"}");
}

#[test]
fn disarming_without_room_raises_the_alarm_again() {
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let flags = ["--quota-backend-bytes=500000", "--backend-batch-interval=1ms"];
    let server = Process::start(&dir.path().join("data"), &flags);
    let mut grpc = Grpc::connect(&server.endpoint);
    while put(&mut grpc, "key", vec![b'x'; 100_000]).is_ok() {}
    disarm(&mut grpc);
    assert!(alarms(&mut grpc).is_empty());
    assert_eq!(put(&mut grpc, "key", vec![b'x'; 100_000]), Err(no_space()));
    assert_eq!(alarms(&mut grpc).len(), 1);
}

#[test]
fn a_negative_quota_is_none() {
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let server = Process::start(&dir.path().join("data"), &["--quota-backend-bytes=-1"]);
    let mut grpc = Grpc::connect(&server.endpoint);
    for i in 0..20 {
        put(&mut grpc, &format!("key{i}"), vec![b'x'; 100_000]).expect("there is no limit");
    }
    let request = RangeRequest { key: "key1".into(), ..Default::default() };
    let data = grpc.call("/etcdserverpb.KV/Range", &request).expect("reads are served");
    assert_eq!(RangeResponse::decode(data).expect("it is a range's answer").count, 1);
}
