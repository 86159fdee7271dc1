//! The few requests that show that a server serves.

use api::etcdserverpb::*;
use bytes::Bytes;
use prost::Message;
use testkit::{Grpc, Status};

pub fn put(grpc: &mut Grpc, key: &str, value: impl Into<Bytes>) -> Result<i64, Status> {
    let request = PutRequest {
        key: Bytes::copy_from_slice(key.as_bytes()),
        value: value.into(),
        ..Default::default()
    };
    let data = grpc.call("/etcdserverpb.KV/Put", &request)?;
    Ok(PutResponse::decode(data).expect("it is a put's answer").header.unwrap_or_default().revision)
}

pub fn get(grpc: &mut Grpc, key: &str) -> Result<Option<Bytes>, Status> {
    let key = Bytes::copy_from_slice(key.as_bytes());
    let request = RangeRequest { key, ..Default::default() };
    let data = grpc.call("/etcdserverpb.KV/Range", &request)?;
    let response = RangeResponse::decode(data).expect("it is a range's answer");
    Ok(response.kvs.into_iter().next().map(|kv| kv.value))
}

pub fn delete(grpc: &mut Grpc, key: &str) -> Result<i64, Status> {
    let key = Bytes::copy_from_slice(key.as_bytes());
    let request = DeleteRangeRequest { key, ..Default::default() };
    let data = grpc.call("/etcdserverpb.KV/DeleteRange", &request)?;
    let response = DeleteRangeResponse::decode(data).expect("it is a delete's answer");
    Ok(response.header.unwrap_or_default().revision)
}

pub fn compact(grpc: &mut Grpc, revision: i64) {
    let request = CompactionRequest { revision, physical: true };
    grpc.call("/etcdserverpb.KV/Compact", &request).expect("compaction works");
}

pub fn defragment(grpc: &mut Grpc) {
    let done = grpc.call("/etcdserverpb.Maintenance/Defragment", &DefragmentRequest {});
    done.expect("defragmentation works");
}

pub fn status(grpc: &mut Grpc) -> StatusResponse {
    let data = grpc.call("/etcdserverpb.Maintenance/Status", &StatusRequest {});
    StatusResponse::decode(data.expect("the status is told")).expect("it is a status")
}

pub fn alarms(grpc: &mut Grpc) -> Vec<AlarmMember> {
    alarm(grpc, AlarmRequest::default())
}

/// What `etcdctl alarm disarm` does.
pub fn disarm(grpc: &mut Grpc) {
    for AlarmMember { member_id, alarm: kind } in alarms(grpc) {
        alarm(grpc, AlarmRequest { action: 2, member_id, alarm: kind });
    }
}

fn alarm(grpc: &mut Grpc, request: AlarmRequest) -> Vec<AlarmMember> {
    let data = grpc.call("/etcdserverpb.Maintenance/Alarm", &request).expect("alarms are told");
    AlarmResponse::decode(data).expect("it is an alarm's answer").alarms
}

/// The server answers a write and a read on a new connection.
pub fn assert_serves(endpoint: &str) {
    let mut grpc = Grpc::connect(endpoint);
    put(&mut grpc, "still", "here").expect("writes are served");
    let value = get(&mut grpc, "still").expect("reads are served");
    assert_eq!(value.as_deref(), Some(&b"here"[..]));
}

/// What a write is told when there is no space.
pub fn no_space() -> Status {
    Status { code: 8, message: "etcdserver: mvcc: database space exceeded".into() }
}
