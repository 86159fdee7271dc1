//! Protobuf from clients, and from the log.

use api::{authpb, etcdserverpb as pb, health, leasepb, membershippb, mvccpb};
use api::{v3electionpb, v3lockpb};
use bytes::{Buf, Bytes};
use engine::MemEngine;
use prost::Message;
use raftpb::{ConfChange, ConfState, Entry, EntryKind, HardState};
use std::sync::Arc;
use store::{Config, Store};

/// The bytes as every message that a client, a peer or a file may hold.
pub fn api_requests(data: &[u8]) -> bool {
    let data = Bytes::copy_from_slice(data);
    macro_rules! each {
        ($($message:ty)*) => { [$(survives::<$message>(&data)),*] };
    }
    let read = each! {
        pb::RangeRequest pb::PutRequest pb::DeleteRangeRequest pb::TxnRequest pb::CompactionRequest
        pb::HashRequest pb::HashKvRequest pb::SnapshotRequest pb::WatchRequest
        pb::LeaseGrantRequest pb::LeaseRevokeRequest pb::LeaseKeepAliveRequest
        pb::LeaseTimeToLiveRequest pb::LeaseLeasesRequest pb::LeaseCheckpointRequest
        pb::MemberAddRequest pb::MemberRemoveRequest pb::MemberUpdateRequest pb::MemberListRequest
        pb::MemberPromoteRequest pb::DefragmentRequest pb::MoveLeaderRequest pb::AlarmRequest
        pb::DowngradeRequest pb::StatusRequest pb::AuthEnableRequest pb::AuthDisableRequest
        pb::AuthStatusRequest pb::AuthenticateRequest pb::AuthUserAddRequest pb::AuthUserGetRequest
        pb::AuthUserDeleteRequest pb::AuthUserChangePasswordRequest pb::AuthUserGrantRoleRequest
        pb::AuthUserRevokeRoleRequest pb::AuthRoleAddRequest pb::AuthRoleGetRequest
        pb::AuthUserListRequest pb::AuthRoleListRequest pb::AuthRoleDeleteRequest
        pb::AuthRoleGrantPermissionRequest pb::AuthRoleRevokePermissionRequest
        pb::InternalRaftRequest pb::Request
        health::HealthCheckRequest v3electionpb::CampaignRequest v3electionpb::LeaderRequest
        v3electionpb::ResignRequest v3electionpb::ProclaimRequest v3lockpb::LockRequest
        v3lockpb::UnlockRequest
        mvccpb::KeyValue leasepb::Lease authpb::User authpb::Role
        membershippb::ClusterMemberAttrSetRequest membershippb::ClusterVersionSetRequest
    };
    // What becomes an entry as it came, without being encoded again.
    answered::<pb::PutRequest>(4, &data, |_| true);
    answered::<pb::DeleteRangeRequest>(5, &data, |_| true);
    answered::<pb::TxnRequest>(6, &data, |request| store::check_txn(request, 128).is_ok());
    answered::<pb::CompactionRequest>(7, &data, |_| true);
    answered::<pb::LeaseRevokeRequest>(9, &data, |_| true);
    answered::<pb::AlarmRequest>(10, &data, |_| true);
    if let Ok(request) = pb::RangeRequest::decode(data.clone()) {
        let _either_way = store::check_range_stream(&request);
    }
    if let Ok(request) = pb::TxnRequest::decode(data) {
        let _either_way = store::check_txn(&request, 128);
        store::txn_cost(&request);
        store::is_serializable_txn(&request);
    }
    read.contains(&true)
}

/// What can be read can be written, and read again.
fn survives<M: Message + Default + PartialEq + std::fmt::Debug>(data: &Bytes) -> bool {
    let Ok(message) = M::decode(data.clone()) else { return false };
    let again = M::decode(Bytes::from(message.encode_to_vec())).expect("our own encoding");
    assert_eq!(again, message);
    true
}

/// Whoever sent a request that was accepted is told what came of it: its id comes back from the log.
fn answered<M: Message + Default>(field: u32, data: &Bytes, accepted: impl Fn(&M) -> bool) {
    if !M::decode(data.clone()).is_ok_and(|request| accepted(&request)) {
        return;
    }
    let mut entry = Vec::new();
    raftpb::codec::put_bytes(&mut entry, field, data);
    // The header: field 100, with the id 7.
    entry.extend_from_slice(&[0xa2, 0x06, 2, 0x08, 7]);
    let entry = Entry { kind: EntryKind::Normal, term: 1, index: 1, data: entry.into() };
    let engine = Arc::new(MemEngine::new());
    let mut store = Store::open(engine, Config::default()).expect("an empty engine opens");
    let applied = store.apply(&entry).expect("nothing is damaged");
    assert_eq!(applied.request_id, 7);
}

/// Entries of a log, each behind its length (32 bits, little-endian): whatever they hold, the store
/// goes on, and is the same after a restart.
pub fn store_apply(data: &[u8]) -> bool {
    let mut data = Bytes::copy_from_slice(data);
    let engine = Arc::new(MemEngine::new());
    let mut store = Store::open(engine.clone(), Config::default()).expect("an empty engine opens");
    let mut index = 0;
    while data.len() > 4 {
        let length = (data.get_u32_le() as usize).min(data.len());
        let Ok(entry) = Entry::decode(&data.split_to(length)) else { continue };
        index += 1;
        store.apply(&Entry { index, term: 1, ..entry }).expect("nothing is damaged");
        store.end_batch().expect("nothing is damaged");
        while store.compact_step(10).expect("nothing is damaged") {}
    }
    let view = store.view();
    let state = |view: &store::View| {
        let hash = view.hash().expect("nothing is damaged");
        (view.revision(), hash, view.leases().len(), view.members(), view.alarms().len())
    };
    let before = state(&view);
    drop(store);
    let store = Store::open(engine, Config::default()).expect("nothing is damaged");
    assert_eq!(state(&store.view()), before);
    before.0 > 1
}

pub fn raft_messages(data: &[u8]) -> bool {
    let bytes = Bytes::copy_from_slice(data);
    let mut out = Vec::new();
    if let Ok(entry) = Entry::decode(&bytes) {
        entry.encode(&mut out);
        assert_eq!(Entry::decode(&Bytes::from(std::mem::take(&mut out))).ok(), Some(entry));
    }
    if let Ok(state) = HardState::decode(data) {
        state.encode(&mut out);
        assert_eq!(HardState::decode(&std::mem::take(&mut out)).ok(), Some(state));
    }
    if let Ok(state) = ConfState::decode(data) {
        state.encode(&mut out);
        assert_eq!(ConfState::decode(&std::mem::take(&mut out)).ok(), Some(state));
    }
    if let Ok(change) = ConfChange::decode(&bytes) {
        change.encode(&mut out);
        assert_eq!(ConfChange::decode(&Bytes::from(std::mem::take(&mut out))).ok(), Some(change));
    }
    if let Ok(snapshot) = raftpb::Snapshot::decode(&bytes) {
        snapshot.encode(&mut out);
        let again = raftpb::Snapshot::decode(&Bytes::from(std::mem::take(&mut out)));
        assert_eq!(again.ok(), Some(snapshot));
        return true;
    }
    false
}
