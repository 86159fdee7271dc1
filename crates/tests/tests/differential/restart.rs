//! What a server knows after kill -9 and a restart, and with other limits than the usual ones.

use super::generate::Generator;
use super::op::Op;
use super::pair::Pair;
use super::random::{learn, number};
use api::etcdserverpb::*;
use bytes::Bytes;

#[test]
fn both_know_the_same_after_a_restart() {
    let Some(mut pair) = Pair::start(&[]) else { return };
    let seed = number("ALTHING_SEED").unwrap_or_else(rand::random);
    println!("differential restart: ALTHING_SEED={seed}");
    let mut generator = Generator::new(seed);
    for round in 0..4 {
        for _ in 0..150 {
            let op = generator.op();
            let text = pair.same(&op);
            learn(&mut generator, &op, &text, &pair.answer);
        }
        let middle = (generator.revision + generator.compacted.max(1)) / 2;
        let compact = Op::Compact(CompactionRequest { revision: middle, physical: round % 2 == 0 });
        let text = pair.same(&compact);
        learn(&mut generator, &compact, &text, &pair.answer);
        pair.restart();
        for op in all_that_is_known(&generator) {
            pair.same(&op);
        }
    }
}

/// Questions whose answers show the whole state.
fn all_that_is_known(generator: &Generator) -> Vec<Op> {
    let mut ops = vec![
        Op::LeaseLeases(LeaseLeasesRequest {}),
        Op::Alarm(AlarmRequest::default()),
        Op::Status(StatusRequest {}),
        Op::MemberList(MemberListRequest { linearizable: true }),
        Op::AuthStatus(AuthStatusRequest {}),
        Op::UserList(AuthUserListRequest {}),
        Op::RoleList(AuthRoleListRequest {}),
    ];
    for id in [-5, 1, 2, 3, 4] {
        ops.push(Op::LeaseTimeToLive(LeaseTimeToLiveRequest { id, keys: true }));
    }
    for role in ["r1", "r2", "root"] {
        ops.push(Op::RoleGet(AuthRoleGetRequest { role: role.into() }));
    }
    for revision in generator.compacted.max(0)..=generator.revision {
        ops.push(Op::Range(RangeRequest {
            key: Bytes::from_static(b"\0"),
            range_end: Bytes::from_static(b"\0"),
            revision,
            ..Default::default()
        }));
        ops.push(Op::HashKv(HashKvRequest { revision }));
    }
    ops
}

#[test]
fn smaller_limits_are_kept_alike() {
    let flags = ["--unsafe-no-fsync", "--max-txn-ops=4", "--max-request-bytes=1000"];
    let Some(mut pair) = Pair::start(&flags) else { return };
    let range = RangeRequest { key: "k".into(), ..Default::default() };
    let op = RequestOp { request: Some(request_op::Request::RequestRange(range)) };
    for count in [4, 5] {
        pair.same(&Op::Txn(TxnRequest { success: vec![op.clone(); count], ..Default::default() }));
    }
    for bytes in [900, 1100, 10_000, 525_288 - 10, 525_288, 600_000] {
        let value = vec![b'x'; bytes].into();
        pair.same(&Op::Put(PutRequest { key: "k".into(), value, ..Default::default() }));
    }
    pair.same(&Op::Range(RangeRequest { key: "k".into(), ..Default::default() }));
}
