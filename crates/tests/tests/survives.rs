//! Requests that a real etcd dies of, some of them again at every start because the log remembers
//! them. Ours answers them and goes on, now and after a restart.

use api::etcdserverpb::request_op::Request;
use api::etcdserverpb::*;
use bytes::Bytes;
use prost::Message;
use testkit::{Grpc, Server, Status};

#[test]
fn what_kills_etcd_is_answered_and_survived() {
    let mut server = Server::start(&testkit::althing(), &[]);
    let mut grpc = Grpc::connect(&server.endpoint());
    let put = PutRequest { key: "k".into(), value: "v".into(), ..Default::default() };
    grpc.call("/etcdserverpb.KV/Put", &put).expect("a put succeeds");

    // A put that keeps the value of what the same transaction has deleted "from key on".
    for (ignore_value, ignore_lease) in [(true, false), (false, true), (true, true)] {
        let delete = DeleteRangeRequest {
            key: "a".into(),
            range_end: Bytes::from_static(b"\0"),
            ..Default::default()
        };
        let put = PutRequest { key: "k".into(), ignore_value, ignore_lease, ..Default::default() };
        let ops = [Request::RequestDeleteRange(delete), Request::RequestPut(put)];
        let success = ops.map(|request| RequestOp { request: Some(request) }).to_vec();
        let txn = TxnRequest { success, ..Default::default() };
        let refused = grpc.call("/etcdserverpb.KV/Txn", &txn).expect_err("it makes no sense");
        assert_eq!(refused.message, "etcdserver: key not found");
    }

    // Addresses that are none.
    let member = member_id(&mut grpc);
    for id in [member, 5] {
        for urls in [vec![], vec!["nonsense".to_string()], vec!["http://h:1/\u{0}".to_string()]] {
            let update = MemberUpdateRequest { id, peer_ur_ls: urls };
            let answer = grpc.call("/etcdserverpb.Cluster/MemberUpdate", &update);
            let refused = answer.expect_err("nobody could be reached there");
            assert_eq!(refused.message, "etcdserver: given member URLs are invalid");
        }
    }

    // An action that is none. It must not look like success of one that is.
    let alarm = AlarmRequest { action: 9, member_id: member, alarm: 1 };
    if let Ok(answer) = grpc.call("/etcdserverpb.Maintenance/Alarm", &alarm) {
        let answer = AlarmResponse::decode(answer).expect("an alarm is an AlarmResponse");
        assert_eq!(answer.alarms, []);
    }

    for _ in 0..2 {
        assert_eq!(value_of(&mut grpc, "k"), Ok(Bytes::from("v")));
        assert!(server.is_running());
        server.kill();
        server.restart();
        grpc = Grpc::connect(&server.endpoint());
    }
}

fn member_id(grpc: &mut Grpc) -> u64 {
    let status = grpc.call("/etcdserverpb.Maintenance/Status", &StatusRequest {});
    let status = StatusResponse::decode(status.expect("a status is told")).expect("a status");
    status.header.expect("a status has a header").member_id
}

fn value_of(grpc: &mut Grpc, key: &str) -> Result<Bytes, Status> {
    let request = RangeRequest { key: key.to_string().into(), ..Default::default() };
    let answer = grpc.call("/etcdserverpb.KV/Range", &request)?;
    let answer = RangeResponse::decode(answer).expect("a range is a RangeResponse");
    Ok(answer.kvs.into_iter().next().expect("the key is there").value)
}
