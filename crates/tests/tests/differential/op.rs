//! One request, as both servers get it, and its answer as text that can be compared.

use api::etcdserverpb::*;
use api::health::{HealthCheckRequest, HealthCheckResponse};
use api::mvccpb::KeyValue;
use api::v3electionpb::*;
use api::v3lockpb::*;
use bytes::Bytes;
use prost::Message;
use testkit::Answer;

/// Stands in a request for the id of the member that gets it.
pub const SELF: u64 = 0x5e1f_5e1f;

macro_rules! ops {
    ($($name:ident: $request:ty => $response:ty, $path:literal, $gateway:literal;)*) => {
        /// Every unary request of the API.
        #[derive(Clone, Debug)]
        pub enum Op { $($name($request),)* }

        enum Reply { $($name($response),)* }

        impl Reply {
            fn text(&self) -> String {
                match self { $(Reply::$name(response) => format!("{response:#?}"),)* }
            }
        }

        impl Op {
            pub fn path(&self) -> &'static str {
                match self { $(Op::$name(_) => $path,)* }
            }

            /// Where the JSON gateway takes it; empty if it does not.
            pub fn gateway_path(&self) -> &'static str {
                match self { $(Op::$name(_) => $gateway,)* }
            }

            /// The request's name in the `.proto` files.
            pub fn message_name(&self) -> String {
                let name = match self { $(Op::$name(_) => std::any::type_name::<$request>(),)* };
                let mut parts = name.rsplit("::");
                let (message, package) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
                format!("{package}.{message}").replace("HashKv", "HashKV")
            }

            pub fn encode(&self) -> Bytes {
                match self { $(Op::$name(request) => request.encode_to_vec().into(),)* }
            }

            fn decode(&self, bytes: Bytes) -> Result<Reply, prost::DecodeError> {
                Ok(match self { $(Op::$name(_) => Reply::$name(<$response>::decode(bytes)?),)* })
            }
        }
    };
}

ops! {
    Range: RangeRequest => RangeResponse, "/etcdserverpb.KV/Range", "/v3/kv/range";
    Put: PutRequest => PutResponse, "/etcdserverpb.KV/Put", "/v3/kv/put";
    DeleteRange: DeleteRangeRequest => DeleteRangeResponse, "/etcdserverpb.KV/DeleteRange", "/v3/kv/deleterange";
    Txn: TxnRequest => TxnResponse, "/etcdserverpb.KV/Txn", "/v3/kv/txn";
    Compact: CompactionRequest => CompactionResponse, "/etcdserverpb.KV/Compact", "/v3/kv/compaction";
    LeaseGrant: LeaseGrantRequest => LeaseGrantResponse, "/etcdserverpb.Lease/LeaseGrant", "/v3/lease/grant";
    LeaseRevoke: LeaseRevokeRequest => LeaseRevokeResponse, "/etcdserverpb.Lease/LeaseRevoke", "/v3/lease/revoke";
    LeaseTimeToLive: LeaseTimeToLiveRequest => LeaseTimeToLiveResponse, "/etcdserverpb.Lease/LeaseTimeToLive", "/v3/lease/timetolive";
    LeaseLeases: LeaseLeasesRequest => LeaseLeasesResponse, "/etcdserverpb.Lease/LeaseLeases", "/v3/lease/leases";
    MemberAdd: MemberAddRequest => MemberAddResponse, "/etcdserverpb.Cluster/MemberAdd", "/v3/cluster/member/add";
    MemberRemove: MemberRemoveRequest => MemberRemoveResponse, "/etcdserverpb.Cluster/MemberRemove", "/v3/cluster/member/remove";
    MemberUpdate: MemberUpdateRequest => MemberUpdateResponse, "/etcdserverpb.Cluster/MemberUpdate", "/v3/cluster/member/update";
    MemberList: MemberListRequest => MemberListResponse, "/etcdserverpb.Cluster/MemberList", "/v3/cluster/member/list";
    MemberPromote: MemberPromoteRequest => MemberPromoteResponse, "/etcdserverpb.Cluster/MemberPromote", "/v3/cluster/member/promote";
    Alarm: AlarmRequest => AlarmResponse, "/etcdserverpb.Maintenance/Alarm", "/v3/maintenance/alarm";
    Status: StatusRequest => StatusResponse, "/etcdserverpb.Maintenance/Status", "/v3/maintenance/status";
    Defragment: DefragmentRequest => DefragmentResponse, "/etcdserverpb.Maintenance/Defragment", "/v3/maintenance/defragment";
    Hash: HashRequest => HashResponse, "/etcdserverpb.Maintenance/Hash", "/v3/maintenance/hash";
    HashKv: HashKvRequest => HashKvResponse, "/etcdserverpb.Maintenance/HashKV", "/v3/maintenance/hashkv";
    MoveLeader: MoveLeaderRequest => MoveLeaderResponse, "/etcdserverpb.Maintenance/MoveLeader", "/v3/maintenance/transfer-leadership";
    Downgrade: DowngradeRequest => DowngradeResponse, "/etcdserverpb.Maintenance/Downgrade", "/v3/maintenance/downgrade";
    AuthEnable: AuthEnableRequest => AuthEnableResponse, "/etcdserverpb.Auth/AuthEnable", "/v3/auth/enable";
    AuthDisable: AuthDisableRequest => AuthDisableResponse, "/etcdserverpb.Auth/AuthDisable", "/v3/auth/disable";
    AuthStatus: AuthStatusRequest => AuthStatusResponse, "/etcdserverpb.Auth/AuthStatus", "/v3/auth/status";
    Authenticate: AuthenticateRequest => AuthenticateResponse, "/etcdserverpb.Auth/Authenticate", "/v3/auth/authenticate";
    UserAdd: AuthUserAddRequest => AuthUserAddResponse, "/etcdserverpb.Auth/UserAdd", "/v3/auth/user/add";
    UserGet: AuthUserGetRequest => AuthUserGetResponse, "/etcdserverpb.Auth/UserGet", "/v3/auth/user/get";
    UserList: AuthUserListRequest => AuthUserListResponse, "/etcdserverpb.Auth/UserList", "/v3/auth/user/list";
    UserDelete: AuthUserDeleteRequest => AuthUserDeleteResponse, "/etcdserverpb.Auth/UserDelete", "/v3/auth/user/delete";
    UserChangePassword: AuthUserChangePasswordRequest => AuthUserChangePasswordResponse, "/etcdserverpb.Auth/UserChangePassword", "/v3/auth/user/changepw";
    UserGrantRole: AuthUserGrantRoleRequest => AuthUserGrantRoleResponse, "/etcdserverpb.Auth/UserGrantRole", "/v3/auth/user/grant";
    UserRevokeRole: AuthUserRevokeRoleRequest => AuthUserRevokeRoleResponse, "/etcdserverpb.Auth/UserRevokeRole", "/v3/auth/user/revoke";
    RoleAdd: AuthRoleAddRequest => AuthRoleAddResponse, "/etcdserverpb.Auth/RoleAdd", "/v3/auth/role/add";
    RoleGet: AuthRoleGetRequest => AuthRoleGetResponse, "/etcdserverpb.Auth/RoleGet", "/v3/auth/role/get";
    RoleList: AuthRoleListRequest => AuthRoleListResponse, "/etcdserverpb.Auth/RoleList", "/v3/auth/role/list";
    RoleDelete: AuthRoleDeleteRequest => AuthRoleDeleteResponse, "/etcdserverpb.Auth/RoleDelete", "/v3/auth/role/delete";
    RoleGrantPermission: AuthRoleGrantPermissionRequest => AuthRoleGrantPermissionResponse, "/etcdserverpb.Auth/RoleGrantPermission", "/v3/auth/role/grant";
    RoleRevokePermission: AuthRoleRevokePermissionRequest => AuthRoleRevokePermissionResponse, "/etcdserverpb.Auth/RoleRevokePermission", "/v3/auth/role/revoke";
    Lock: LockRequest => LockResponse, "/v3lockpb.Lock/Lock", "/v3/lock/lock";
    Unlock: UnlockRequest => UnlockResponse, "/v3lockpb.Lock/Unlock", "/v3/lock/unlock";
    Campaign: CampaignRequest => CampaignResponse, "/v3electionpb.Election/Campaign", "/v3/election/campaign";
    Proclaim: ProclaimRequest => ProclaimResponse, "/v3electionpb.Election/Proclaim", "/v3/election/proclaim";
    Leader: LeaderRequest => LeaderResponse, "/v3electionpb.Election/Leader", "/v3/election/leader";
    Resign: ResignRequest => ResignResponse, "/v3electionpb.Election/Resign", "/v3/election/resign";
    HealthCheck: HealthCheckRequest => HealthCheckResponse, "/grpc.health.v1.Health/Check", "";
}

impl Op {
    /// The request as this member should get it.
    pub fn addressed_to(&self, member: u64) -> Op {
        let mut op = self.clone();
        let id = match &mut op {
            Op::MemberRemove(request) => &mut request.id,
            Op::MemberUpdate(request) => &mut request.id,
            Op::MemberPromote(request) => &mut request.id,
            Op::Alarm(request) => &mut request.member_id,
            Op::MoveLeader(request) => &mut request.target_id,
            _ => return op,
        };
        if *id == SELF {
            *id = member;
        }
        op
    }

    /// The answer as text, without what etcd leaves undefined.
    pub fn render(&self, answer: &Answer) -> String {
        match answer {
            Err(status) => format!("error {}: {}", status.code, status.message),
            Ok(bytes) => match self.decode(bytes.clone()) {
                Err(error) => format!("an answer that cannot be decoded: {error}"),
                Ok(mut reply) => {
                    tidy(self, &mut reply);
                    reply.text()
                }
            },
        }
    }
}

fn tidy(op: &Op, reply: &mut Reply) {
    match (op, reply) {
        (Op::Range(request), Reply::Range(response)) => tidy_range(request, response),
        (Op::Txn(request), Reply::Txn(response)) => tidy_txn(request, response),
        (_, Reply::LeaseTimeToLive(response)) => {
            response.keys.sort();
            // No lease of these tests ends, and no run takes so long.
            if (response.granted_ttl - 900..=response.granted_ttl).contains(&response.ttl) {
                response.ttl = response.granted_ttl;
            }
        }
        (_, Reply::LeaseLeases(response)) => response.leases.sort_by_key(|lease| lease.id),
        (_, Reply::Alarm(response)) => response.alarms.sort_by_key(|a| (a.member_id, a.alarm)),
        // The id of the member itself is longer than any other here.
        (_, Reply::Status(response)) => response.errors.sort_by_key(|e| (e.len(), e.clone())),
        // It covers the member's own record, which differs.
        (_, Reply::Hash(response)) => response.hash = 0,
        _ => {}
    }
}

fn tidy_txn(request: &TxnRequest, response: &mut TxnResponse) {
    use request_op::Request;
    use response_op::Response;
    let branch = if response.succeeded { &request.success } else { &request.failure };
    for (op, result) in branch.iter().zip(&mut response.responses) {
        match (&op.request, &mut result.response) {
            (Some(Request::RequestRange(q)), Some(Response::ResponseRange(r))) => tidy_range(q, r),
            (Some(Request::RequestTxn(q)), Some(Response::ResponseTxn(r))) => tidy_txn(q, r),
            _ => {}
        }
    }
}

/// Equal keys of a sort have no defined order: each run of them is put in key order, and where the
/// limit cuts through one, only its length counts.
fn tidy_range(request: &RangeRequest, response: &mut RangeResponse) {
    let target = request.sort_target;
    if target == 0 {
        return;
    }
    let mut rest = &mut response.kvs[..];
    while !rest.is_empty() {
        let run = rest.iter().take_while(|kv| same_rank(target, kv, &rest[0])).count();
        let (ties, after) = rest.split_at_mut(run);
        ties.sort_by(|a, b| a.key.cmp(&b.key));
        if after.is_empty() && response.more {
            ties.fill(KeyValue { key: "one of several equals".into(), ..KeyValue::default() });
        }
        rest = after;
    }
}

fn same_rank(target: i32, a: &KeyValue, b: &KeyValue) -> bool {
    match target {
        1 => a.version == b.version,
        2 => a.create_revision == b.create_revision,
        3 => a.mod_revision == b.mod_revision,
        // With keys_only the values are gone, and all look equal.
        4 => a.value == b.value,
        _ => a.key == b.key,
    }
}
