//! Every method there is: its path, its messages, and where the JSON gateway has it.

/// Who streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Unary,
    ServerStream,
    BidiStream,
}

/// What is known of a method without calling it.
#[derive(Clone, Copy, Debug)]
pub struct Info {
    pub method: Method,
    /// `/package.Service/Method`
    pub path: &'static str,
    pub request: &'static str,
    pub response: &'static str,
    pub shape: Shape,
    /// Where the JSON gateway has it.
    pub gateway: &'static [&'static str],
}

impl Info {
    /// `package.Service`, as metrics label it.
    pub fn service(&self) -> &'static str {
        self.path[1..].split('/').next().expect("split yields at least one part")
    }

    pub fn name(&self) -> &'static str {
        self.path.rsplit('/').next().expect("split yields at least one part")
    }
}

impl Method {
    pub fn info(self) -> &'static Info {
        &METHODS[self as usize]
    }

    /// The method at a gRPC path.
    pub fn at(path: &[u8]) -> Option<Method> {
        // The two that most requests are for need no search.
        match path {
            b"/etcdserverpb.KV/Range" => return Some(Method::Range),
            b"/etcdserverpb.KV/Put" => return Some(Method::Put),
            _ => {}
        }
        METHODS.iter().find(|info| info.path.as_bytes() == path).map(|info| info.method)
    }

    /// The method at a path of the JSON gateway.
    pub fn at_gateway(path: &str) -> Option<Method> {
        METHODS.iter().find(|info| info.gateway.contains(&path)).map(|info| info.method)
    }
}

/// Declares the methods and what is known of each: shape, path, messages, places in the gateway.
macro_rules! methods {
    ($($method:ident $shape:ident $path:literal $request:literal $response:literal [$($gateway:literal),*];)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Method {
            $($method,)*
        }

        /// In the order of [`Method`].
        pub static METHODS: &[Info] = &[$(Info {
            method: Method::$method,
            path: $path,
            request: $request,
            response: $response,
            shape: Shape::$shape,
            gateway: &[$($gateway),*],
        }),*];
    };
}

methods! {
    Range Unary "/etcdserverpb.KV/Range" "etcdserverpb.RangeRequest" "etcdserverpb.RangeResponse" ["/v3/kv/range"];
    RangeStream ServerStream "/etcdserverpb.KV/RangeStream" "etcdserverpb.RangeRequest" "etcdserverpb.RangeStreamResponse" [];
    Put Unary "/etcdserverpb.KV/Put" "etcdserverpb.PutRequest" "etcdserverpb.PutResponse" ["/v3/kv/put"];
    DeleteRange Unary "/etcdserverpb.KV/DeleteRange" "etcdserverpb.DeleteRangeRequest" "etcdserverpb.DeleteRangeResponse" ["/v3/kv/deleterange"];
    Txn Unary "/etcdserverpb.KV/Txn" "etcdserverpb.TxnRequest" "etcdserverpb.TxnResponse" ["/v3/kv/txn"];
    Compact Unary "/etcdserverpb.KV/Compact" "etcdserverpb.CompactionRequest" "etcdserverpb.CompactionResponse" ["/v3/kv/compaction"];
    Watch BidiStream "/etcdserverpb.Watch/Watch" "etcdserverpb.WatchRequest" "etcdserverpb.WatchResponse" ["/v3/watch"];
    LeaseGrant Unary "/etcdserverpb.Lease/LeaseGrant" "etcdserverpb.LeaseGrantRequest" "etcdserverpb.LeaseGrantResponse" ["/v3/lease/grant"];
    LeaseRevoke Unary "/etcdserverpb.Lease/LeaseRevoke" "etcdserverpb.LeaseRevokeRequest" "etcdserverpb.LeaseRevokeResponse" ["/v3/lease/revoke", "/v3/kv/lease/revoke"];
    LeaseKeepAlive BidiStream "/etcdserverpb.Lease/LeaseKeepAlive" "etcdserverpb.LeaseKeepAliveRequest" "etcdserverpb.LeaseKeepAliveResponse" ["/v3/lease/keepalive"];
    LeaseTimeToLive Unary "/etcdserverpb.Lease/LeaseTimeToLive" "etcdserverpb.LeaseTimeToLiveRequest" "etcdserverpb.LeaseTimeToLiveResponse" ["/v3/lease/timetolive", "/v3/kv/lease/timetolive"];
    LeaseLeases Unary "/etcdserverpb.Lease/LeaseLeases" "etcdserverpb.LeaseLeasesRequest" "etcdserverpb.LeaseLeasesResponse" ["/v3/lease/leases", "/v3/kv/lease/leases"];
    MemberAdd Unary "/etcdserverpb.Cluster/MemberAdd" "etcdserverpb.MemberAddRequest" "etcdserverpb.MemberAddResponse" ["/v3/cluster/member/add"];
    MemberRemove Unary "/etcdserverpb.Cluster/MemberRemove" "etcdserverpb.MemberRemoveRequest" "etcdserverpb.MemberRemoveResponse" ["/v3/cluster/member/remove"];
    MemberUpdate Unary "/etcdserverpb.Cluster/MemberUpdate" "etcdserverpb.MemberUpdateRequest" "etcdserverpb.MemberUpdateResponse" ["/v3/cluster/member/update"];
    MemberList Unary "/etcdserverpb.Cluster/MemberList" "etcdserverpb.MemberListRequest" "etcdserverpb.MemberListResponse" ["/v3/cluster/member/list"];
    MemberPromote Unary "/etcdserverpb.Cluster/MemberPromote" "etcdserverpb.MemberPromoteRequest" "etcdserverpb.MemberPromoteResponse" ["/v3/cluster/member/promote"];
    Alarm Unary "/etcdserverpb.Maintenance/Alarm" "etcdserverpb.AlarmRequest" "etcdserverpb.AlarmResponse" ["/v3/maintenance/alarm"];
    Status Unary "/etcdserverpb.Maintenance/Status" "etcdserverpb.StatusRequest" "etcdserverpb.StatusResponse" ["/v3/maintenance/status"];
    Defragment Unary "/etcdserverpb.Maintenance/Defragment" "etcdserverpb.DefragmentRequest" "etcdserverpb.DefragmentResponse" ["/v3/maintenance/defragment"];
    Hash Unary "/etcdserverpb.Maintenance/Hash" "etcdserverpb.HashRequest" "etcdserverpb.HashResponse" ["/v3/maintenance/hash"];
    HashKV Unary "/etcdserverpb.Maintenance/HashKV" "etcdserverpb.HashKVRequest" "etcdserverpb.HashKVResponse" ["/v3/maintenance/hashkv"];
    Snapshot ServerStream "/etcdserverpb.Maintenance/Snapshot" "etcdserverpb.SnapshotRequest" "etcdserverpb.SnapshotResponse" ["/v3/maintenance/snapshot"];
    MoveLeader Unary "/etcdserverpb.Maintenance/MoveLeader" "etcdserverpb.MoveLeaderRequest" "etcdserverpb.MoveLeaderResponse" ["/v3/maintenance/transfer-leadership"];
    Downgrade Unary "/etcdserverpb.Maintenance/Downgrade" "etcdserverpb.DowngradeRequest" "etcdserverpb.DowngradeResponse" ["/v3/maintenance/downgrade"];
    AuthEnable Unary "/etcdserverpb.Auth/AuthEnable" "etcdserverpb.AuthEnableRequest" "etcdserverpb.AuthEnableResponse" ["/v3/auth/enable"];
    AuthDisable Unary "/etcdserverpb.Auth/AuthDisable" "etcdserverpb.AuthDisableRequest" "etcdserverpb.AuthDisableResponse" ["/v3/auth/disable"];
    AuthStatus Unary "/etcdserverpb.Auth/AuthStatus" "etcdserverpb.AuthStatusRequest" "etcdserverpb.AuthStatusResponse" ["/v3/auth/status"];
    Authenticate Unary "/etcdserverpb.Auth/Authenticate" "etcdserverpb.AuthenticateRequest" "etcdserverpb.AuthenticateResponse" ["/v3/auth/authenticate"];
    UserAdd Unary "/etcdserverpb.Auth/UserAdd" "etcdserverpb.AuthUserAddRequest" "etcdserverpb.AuthUserAddResponse" ["/v3/auth/user/add"];
    UserGet Unary "/etcdserverpb.Auth/UserGet" "etcdserverpb.AuthUserGetRequest" "etcdserverpb.AuthUserGetResponse" ["/v3/auth/user/get"];
    UserList Unary "/etcdserverpb.Auth/UserList" "etcdserverpb.AuthUserListRequest" "etcdserverpb.AuthUserListResponse" ["/v3/auth/user/list"];
    UserDelete Unary "/etcdserverpb.Auth/UserDelete" "etcdserverpb.AuthUserDeleteRequest" "etcdserverpb.AuthUserDeleteResponse" ["/v3/auth/user/delete"];
    UserChangePassword Unary "/etcdserverpb.Auth/UserChangePassword" "etcdserverpb.AuthUserChangePasswordRequest" "etcdserverpb.AuthUserChangePasswordResponse" ["/v3/auth/user/changepw"];
    UserGrantRole Unary "/etcdserverpb.Auth/UserGrantRole" "etcdserverpb.AuthUserGrantRoleRequest" "etcdserverpb.AuthUserGrantRoleResponse" ["/v3/auth/user/grant"];
    UserRevokeRole Unary "/etcdserverpb.Auth/UserRevokeRole" "etcdserverpb.AuthUserRevokeRoleRequest" "etcdserverpb.AuthUserRevokeRoleResponse" ["/v3/auth/user/revoke"];
    RoleAdd Unary "/etcdserverpb.Auth/RoleAdd" "etcdserverpb.AuthRoleAddRequest" "etcdserverpb.AuthRoleAddResponse" ["/v3/auth/role/add"];
    RoleGet Unary "/etcdserverpb.Auth/RoleGet" "etcdserverpb.AuthRoleGetRequest" "etcdserverpb.AuthRoleGetResponse" ["/v3/auth/role/get"];
    RoleList Unary "/etcdserverpb.Auth/RoleList" "etcdserverpb.AuthRoleListRequest" "etcdserverpb.AuthRoleListResponse" ["/v3/auth/role/list"];
    RoleDelete Unary "/etcdserverpb.Auth/RoleDelete" "etcdserverpb.AuthRoleDeleteRequest" "etcdserverpb.AuthRoleDeleteResponse" ["/v3/auth/role/delete"];
    RoleGrantPermission Unary "/etcdserverpb.Auth/RoleGrantPermission" "etcdserverpb.AuthRoleGrantPermissionRequest" "etcdserverpb.AuthRoleGrantPermissionResponse" ["/v3/auth/role/grant"];
    RoleRevokePermission Unary "/etcdserverpb.Auth/RoleRevokePermission" "etcdserverpb.AuthRoleRevokePermissionRequest" "etcdserverpb.AuthRoleRevokePermissionResponse" ["/v3/auth/role/revoke"];
    Lock Unary "/v3lockpb.Lock/Lock" "v3lockpb.LockRequest" "v3lockpb.LockResponse" ["/v3/lock/lock"];
    Unlock Unary "/v3lockpb.Lock/Unlock" "v3lockpb.UnlockRequest" "v3lockpb.UnlockResponse" ["/v3/lock/unlock"];
    Campaign Unary "/v3electionpb.Election/Campaign" "v3electionpb.CampaignRequest" "v3electionpb.CampaignResponse" ["/v3/election/campaign"];
    Proclaim Unary "/v3electionpb.Election/Proclaim" "v3electionpb.ProclaimRequest" "v3electionpb.ProclaimResponse" ["/v3/election/proclaim"];
    Leader Unary "/v3electionpb.Election/Leader" "v3electionpb.LeaderRequest" "v3electionpb.LeaderResponse" ["/v3/election/leader"];
    Observe ServerStream "/v3electionpb.Election/Observe" "v3electionpb.LeaderRequest" "v3electionpb.LeaderResponse" ["/v3/election/observe"];
    Resign Unary "/v3electionpb.Election/Resign" "v3electionpb.ResignRequest" "v3electionpb.ResignResponse" ["/v3/election/resign"];
    HealthCheck Unary "/grpc.health.v1.Health/Check" "grpc.health.v1.HealthCheckRequest" "grpc.health.v1.HealthCheckResponse" [];
    HealthList Unary "/grpc.health.v1.Health/List" "grpc.health.v1.HealthListRequest" "grpc.health.v1.HealthListResponse" [];
    HealthWatch ServerStream "/grpc.health.v1.Health/Watch" "grpc.health.v1.HealthCheckRequest" "grpc.health.v1.HealthCheckResponse" [];
}

/// What gRPC tells a caller whose path leads nowhere.
pub fn unknown(path: &str) -> api::Error {
    let text = match path.strip_prefix('/').unwrap_or(path).rsplit_once('/') {
        None => format!("malformed method name: {path:?}"),
        Some((service, method)) if METHODS.iter().any(|info| info.service() == service) => {
            format!("unknown method {method} for service {service}")
        }
        Some((service, _)) => format!("unknown service {service}"),
    };
    api::Error::with_text(api::Code::Unimplemented, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_methods() {
        for (at, info) in METHODS.iter().enumerate() {
            assert_eq!(info.method as usize, at);
            assert_eq!(Method::at(info.path.as_bytes()), Some(info.method));
            for path in info.gateway {
                assert_eq!(Method::at_gateway(path), Some(info.method));
            }
        }
    }

    #[test]
    fn unknown_paths_are_told_apart() {
        let text = |path| unknown(path).message.into_owned();
        assert_eq!(
            text("/etcdserverpb.KV/Nope"),
            "unknown method Nope for service etcdserverpb.KV"
        );
        assert_eq!(text("/no.Such/Thing"), "unknown service no.Such");
        assert_eq!(text("/Range"), "malformed method name: \"/Range\"");
        assert_eq!(text("//Range"), "unknown service ");
    }
}
