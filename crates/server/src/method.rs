//! Every method there is: its path, its messages, and where the JSON gateway has it.

/// Who streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Unary,
    ServerStream,
    BidiStream,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Method {
    Range,
    RangeStream,
    Put,
    DeleteRange,
    Txn,
    Compact,
    Watch,
    LeaseGrant,
    LeaseRevoke,
    LeaseKeepAlive,
    LeaseTimeToLive,
    LeaseLeases,
    MemberAdd,
    MemberRemove,
    MemberUpdate,
    MemberList,
    MemberPromote,
    Alarm,
    Status,
    Defragment,
    Hash,
    HashKV,
    Snapshot,
    MoveLeader,
    Downgrade,
    AuthEnable,
    AuthDisable,
    AuthStatus,
    Authenticate,
    UserAdd,
    UserGet,
    UserList,
    UserDelete,
    UserChangePassword,
    UserGrantRole,
    UserRevokeRole,
    RoleAdd,
    RoleGet,
    RoleList,
    RoleDelete,
    RoleGrantPermission,
    RoleRevokePermission,
    Lock,
    Unlock,
    Campaign,
    Proclaim,
    Leader,
    Observe,
    Resign,
    HealthCheck,
    HealthList,
    HealthWatch,
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

/// In the order of [`Method`].
pub static METHODS: &[Info] = &[
    Info {
        method: Method::Range,
        path: "/etcdserverpb.KV/Range",
        request: "etcdserverpb.RangeRequest",
        response: "etcdserverpb.RangeResponse",
        shape: Shape::Unary,
        gateway: &["/v3/kv/range"],
    },
    Info {
        method: Method::RangeStream,
        path: "/etcdserverpb.KV/RangeStream",
        request: "etcdserverpb.RangeRequest",
        response: "etcdserverpb.RangeStreamResponse",
        shape: Shape::ServerStream,
        gateway: &[],
    },
    Info {
        method: Method::Put,
        path: "/etcdserverpb.KV/Put",
        request: "etcdserverpb.PutRequest",
        response: "etcdserverpb.PutResponse",
        shape: Shape::Unary,
        gateway: &["/v3/kv/put"],
    },
    Info {
        method: Method::DeleteRange,
        path: "/etcdserverpb.KV/DeleteRange",
        request: "etcdserverpb.DeleteRangeRequest",
        response: "etcdserverpb.DeleteRangeResponse",
        shape: Shape::Unary,
        gateway: &["/v3/kv/deleterange"],
    },
    Info {
        method: Method::Txn,
        path: "/etcdserverpb.KV/Txn",
        request: "etcdserverpb.TxnRequest",
        response: "etcdserverpb.TxnResponse",
        shape: Shape::Unary,
        gateway: &["/v3/kv/txn"],
    },
    Info {
        method: Method::Compact,
        path: "/etcdserverpb.KV/Compact",
        request: "etcdserverpb.CompactionRequest",
        response: "etcdserverpb.CompactionResponse",
        shape: Shape::Unary,
        gateway: &["/v3/kv/compaction"],
    },
    Info {
        method: Method::Watch,
        path: "/etcdserverpb.Watch/Watch",
        request: "etcdserverpb.WatchRequest",
        response: "etcdserverpb.WatchResponse",
        shape: Shape::BidiStream,
        gateway: &["/v3/watch"],
    },
    Info {
        method: Method::LeaseGrant,
        path: "/etcdserverpb.Lease/LeaseGrant",
        request: "etcdserverpb.LeaseGrantRequest",
        response: "etcdserverpb.LeaseGrantResponse",
        shape: Shape::Unary,
        gateway: &["/v3/lease/grant"],
    },
    Info {
        method: Method::LeaseRevoke,
        path: "/etcdserverpb.Lease/LeaseRevoke",
        request: "etcdserverpb.LeaseRevokeRequest",
        response: "etcdserverpb.LeaseRevokeResponse",
        shape: Shape::Unary,
        gateway: &["/v3/lease/revoke", "/v3/kv/lease/revoke"],
    },
    Info {
        method: Method::LeaseKeepAlive,
        path: "/etcdserverpb.Lease/LeaseKeepAlive",
        request: "etcdserverpb.LeaseKeepAliveRequest",
        response: "etcdserverpb.LeaseKeepAliveResponse",
        shape: Shape::BidiStream,
        gateway: &["/v3/lease/keepalive"],
    },
    Info {
        method: Method::LeaseTimeToLive,
        path: "/etcdserverpb.Lease/LeaseTimeToLive",
        request: "etcdserverpb.LeaseTimeToLiveRequest",
        response: "etcdserverpb.LeaseTimeToLiveResponse",
        shape: Shape::Unary,
        gateway: &["/v3/lease/timetolive", "/v3/kv/lease/timetolive"],
    },
    Info {
        method: Method::LeaseLeases,
        path: "/etcdserverpb.Lease/LeaseLeases",
        request: "etcdserverpb.LeaseLeasesRequest",
        response: "etcdserverpb.LeaseLeasesResponse",
        shape: Shape::Unary,
        gateway: &["/v3/lease/leases", "/v3/kv/lease/leases"],
    },
    Info {
        method: Method::MemberAdd,
        path: "/etcdserverpb.Cluster/MemberAdd",
        request: "etcdserverpb.MemberAddRequest",
        response: "etcdserverpb.MemberAddResponse",
        shape: Shape::Unary,
        gateway: &["/v3/cluster/member/add"],
    },
    Info {
        method: Method::MemberRemove,
        path: "/etcdserverpb.Cluster/MemberRemove",
        request: "etcdserverpb.MemberRemoveRequest",
        response: "etcdserverpb.MemberRemoveResponse",
        shape: Shape::Unary,
        gateway: &["/v3/cluster/member/remove"],
    },
    Info {
        method: Method::MemberUpdate,
        path: "/etcdserverpb.Cluster/MemberUpdate",
        request: "etcdserverpb.MemberUpdateRequest",
        response: "etcdserverpb.MemberUpdateResponse",
        shape: Shape::Unary,
        gateway: &["/v3/cluster/member/update"],
    },
    Info {
        method: Method::MemberList,
        path: "/etcdserverpb.Cluster/MemberList",
        request: "etcdserverpb.MemberListRequest",
        response: "etcdserverpb.MemberListResponse",
        shape: Shape::Unary,
        gateway: &["/v3/cluster/member/list"],
    },
    Info {
        method: Method::MemberPromote,
        path: "/etcdserverpb.Cluster/MemberPromote",
        request: "etcdserverpb.MemberPromoteRequest",
        response: "etcdserverpb.MemberPromoteResponse",
        shape: Shape::Unary,
        gateway: &["/v3/cluster/member/promote"],
    },
    Info {
        method: Method::Alarm,
        path: "/etcdserverpb.Maintenance/Alarm",
        request: "etcdserverpb.AlarmRequest",
        response: "etcdserverpb.AlarmResponse",
        shape: Shape::Unary,
        gateway: &["/v3/maintenance/alarm"],
    },
    Info {
        method: Method::Status,
        path: "/etcdserverpb.Maintenance/Status",
        request: "etcdserverpb.StatusRequest",
        response: "etcdserverpb.StatusResponse",
        shape: Shape::Unary,
        gateway: &["/v3/maintenance/status"],
    },
    Info {
        method: Method::Defragment,
        path: "/etcdserverpb.Maintenance/Defragment",
        request: "etcdserverpb.DefragmentRequest",
        response: "etcdserverpb.DefragmentResponse",
        shape: Shape::Unary,
        gateway: &["/v3/maintenance/defragment"],
    },
    Info {
        method: Method::Hash,
        path: "/etcdserverpb.Maintenance/Hash",
        request: "etcdserverpb.HashRequest",
        response: "etcdserverpb.HashResponse",
        shape: Shape::Unary,
        gateway: &["/v3/maintenance/hash"],
    },
    Info {
        method: Method::HashKV,
        path: "/etcdserverpb.Maintenance/HashKV",
        request: "etcdserverpb.HashKVRequest",
        response: "etcdserverpb.HashKVResponse",
        shape: Shape::Unary,
        gateway: &["/v3/maintenance/hashkv"],
    },
    Info {
        method: Method::Snapshot,
        path: "/etcdserverpb.Maintenance/Snapshot",
        request: "etcdserverpb.SnapshotRequest",
        response: "etcdserverpb.SnapshotResponse",
        shape: Shape::ServerStream,
        gateway: &["/v3/maintenance/snapshot"],
    },
    Info {
        method: Method::MoveLeader,
        path: "/etcdserverpb.Maintenance/MoveLeader",
        request: "etcdserverpb.MoveLeaderRequest",
        response: "etcdserverpb.MoveLeaderResponse",
        shape: Shape::Unary,
        gateway: &["/v3/maintenance/transfer-leadership"],
    },
    Info {
        method: Method::Downgrade,
        path: "/etcdserverpb.Maintenance/Downgrade",
        request: "etcdserverpb.DowngradeRequest",
        response: "etcdserverpb.DowngradeResponse",
        shape: Shape::Unary,
        gateway: &["/v3/maintenance/downgrade"],
    },
    Info {
        method: Method::AuthEnable,
        path: "/etcdserverpb.Auth/AuthEnable",
        request: "etcdserverpb.AuthEnableRequest",
        response: "etcdserverpb.AuthEnableResponse",
        shape: Shape::Unary,
        gateway: &["/v3/auth/enable"],
    },
    Info {
        method: Method::AuthDisable,
        path: "/etcdserverpb.Auth/AuthDisable",
        request: "etcdserverpb.AuthDisableRequest",
        response: "etcdserverpb.AuthDisableResponse",
        shape: Shape::Unary,
        gateway: &["/v3/auth/disable"],
    },
    Info {
        method: Method::AuthStatus,
        path: "/etcdserverpb.Auth/AuthStatus",
        request: "etcdserverpb.AuthStatusRequest",
        response: "etcdserverpb.AuthStatusResponse",
        shape: Shape::Unary,
        gateway: &["/v3/auth/status"],
    },
    Info {
        method: Method::Authenticate,
        path: "/etcdserverpb.Auth/Authenticate",
        request: "etcdserverpb.AuthenticateRequest",
        response: "etcdserverpb.AuthenticateResponse",
        shape: Shape::Unary,
        gateway: &["/v3/auth/authenticate"],
    },
    Info {
        method: Method::UserAdd,
        path: "/etcdserverpb.Auth/UserAdd",
        request: "etcdserverpb.AuthUserAddRequest",
        response: "etcdserverpb.AuthUserAddResponse",
        shape: Shape::Unary,
        gateway: &["/v3/auth/user/add"],
    },
    Info {
        method: Method::UserGet,
        path: "/etcdserverpb.Auth/UserGet",
        request: "etcdserverpb.AuthUserGetRequest",
        response: "etcdserverpb.AuthUserGetResponse",
        shape: Shape::Unary,
        gateway: &["/v3/auth/user/get"],
    },
    Info {
        method: Method::UserList,
        path: "/etcdserverpb.Auth/UserList",
        request: "etcdserverpb.AuthUserListRequest",
        response: "etcdserverpb.AuthUserListResponse",
        shape: Shape::Unary,
        gateway: &["/v3/auth/user/list"],
    },
    Info {
        method: Method::UserDelete,
        path: "/etcdserverpb.Auth/UserDelete",
        request: "etcdserverpb.AuthUserDeleteRequest",
        response: "etcdserverpb.AuthUserDeleteResponse",
        shape: Shape::Unary,
        gateway: &["/v3/auth/user/delete"],
    },
    Info {
        method: Method::UserChangePassword,
        path: "/etcdserverpb.Auth/UserChangePassword",
        request: "etcdserverpb.AuthUserChangePasswordRequest",
        response: "etcdserverpb.AuthUserChangePasswordResponse",
        shape: Shape::Unary,
        gateway: &["/v3/auth/user/changepw"],
    },
    Info {
        method: Method::UserGrantRole,
        path: "/etcdserverpb.Auth/UserGrantRole",
        request: "etcdserverpb.AuthUserGrantRoleRequest",
        response: "etcdserverpb.AuthUserGrantRoleResponse",
        shape: Shape::Unary,
        gateway: &["/v3/auth/user/grant"],
    },
    Info {
        method: Method::UserRevokeRole,
        path: "/etcdserverpb.Auth/UserRevokeRole",
        request: "etcdserverpb.AuthUserRevokeRoleRequest",
        response: "etcdserverpb.AuthUserRevokeRoleResponse",
        shape: Shape::Unary,
        gateway: &["/v3/auth/user/revoke"],
    },
    Info {
        method: Method::RoleAdd,
        path: "/etcdserverpb.Auth/RoleAdd",
        request: "etcdserverpb.AuthRoleAddRequest",
        response: "etcdserverpb.AuthRoleAddResponse",
        shape: Shape::Unary,
        gateway: &["/v3/auth/role/add"],
    },
    Info {
        method: Method::RoleGet,
        path: "/etcdserverpb.Auth/RoleGet",
        request: "etcdserverpb.AuthRoleGetRequest",
        response: "etcdserverpb.AuthRoleGetResponse",
        shape: Shape::Unary,
        gateway: &["/v3/auth/role/get"],
    },
    Info {
        method: Method::RoleList,
        path: "/etcdserverpb.Auth/RoleList",
        request: "etcdserverpb.AuthRoleListRequest",
        response: "etcdserverpb.AuthRoleListResponse",
        shape: Shape::Unary,
        gateway: &["/v3/auth/role/list"],
    },
    Info {
        method: Method::RoleDelete,
        path: "/etcdserverpb.Auth/RoleDelete",
        request: "etcdserverpb.AuthRoleDeleteRequest",
        response: "etcdserverpb.AuthRoleDeleteResponse",
        shape: Shape::Unary,
        gateway: &["/v3/auth/role/delete"],
    },
    Info {
        method: Method::RoleGrantPermission,
        path: "/etcdserverpb.Auth/RoleGrantPermission",
        request: "etcdserverpb.AuthRoleGrantPermissionRequest",
        response: "etcdserverpb.AuthRoleGrantPermissionResponse",
        shape: Shape::Unary,
        gateway: &["/v3/auth/role/grant"],
    },
    Info {
        method: Method::RoleRevokePermission,
        path: "/etcdserverpb.Auth/RoleRevokePermission",
        request: "etcdserverpb.AuthRoleRevokePermissionRequest",
        response: "etcdserverpb.AuthRoleRevokePermissionResponse",
        shape: Shape::Unary,
        gateway: &["/v3/auth/role/revoke"],
    },
    Info {
        method: Method::Lock,
        path: "/v3lockpb.Lock/Lock",
        request: "v3lockpb.LockRequest",
        response: "v3lockpb.LockResponse",
        shape: Shape::Unary,
        gateway: &["/v3/lock/lock"],
    },
    Info {
        method: Method::Unlock,
        path: "/v3lockpb.Lock/Unlock",
        request: "v3lockpb.UnlockRequest",
        response: "v3lockpb.UnlockResponse",
        shape: Shape::Unary,
        gateway: &["/v3/lock/unlock"],
    },
    Info {
        method: Method::Campaign,
        path: "/v3electionpb.Election/Campaign",
        request: "v3electionpb.CampaignRequest",
        response: "v3electionpb.CampaignResponse",
        shape: Shape::Unary,
        gateway: &["/v3/election/campaign"],
    },
    Info {
        method: Method::Proclaim,
        path: "/v3electionpb.Election/Proclaim",
        request: "v3electionpb.ProclaimRequest",
        response: "v3electionpb.ProclaimResponse",
        shape: Shape::Unary,
        gateway: &["/v3/election/proclaim"],
    },
    Info {
        method: Method::Leader,
        path: "/v3electionpb.Election/Leader",
        request: "v3electionpb.LeaderRequest",
        response: "v3electionpb.LeaderResponse",
        shape: Shape::Unary,
        gateway: &["/v3/election/leader"],
    },
    Info {
        method: Method::Observe,
        path: "/v3electionpb.Election/Observe",
        request: "v3electionpb.LeaderRequest",
        response: "v3electionpb.LeaderResponse",
        shape: Shape::ServerStream,
        gateway: &["/v3/election/observe"],
    },
    Info {
        method: Method::Resign,
        path: "/v3electionpb.Election/Resign",
        request: "v3electionpb.ResignRequest",
        response: "v3electionpb.ResignResponse",
        shape: Shape::Unary,
        gateway: &["/v3/election/resign"],
    },
    Info {
        method: Method::HealthCheck,
        path: "/grpc.health.v1.Health/Check",
        request: "grpc.health.v1.HealthCheckRequest",
        response: "grpc.health.v1.HealthCheckResponse",
        shape: Shape::Unary,
        gateway: &[],
    },
    Info {
        method: Method::HealthList,
        path: "/grpc.health.v1.Health/List",
        request: "grpc.health.v1.HealthListRequest",
        response: "grpc.health.v1.HealthListResponse",
        shape: Shape::Unary,
        gateway: &[],
    },
    Info {
        method: Method::HealthWatch,
        path: "/grpc.health.v1.Health/Watch",
        request: "grpc.health.v1.HealthCheckRequest",
        response: "grpc.health.v1.HealthCheckResponse",
        shape: Shape::ServerStream,
        gateway: &[],
    },
];

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
