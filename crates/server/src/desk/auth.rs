//! Users and roles, of a server that does not ask who you are yet.
//!
//! Users, roles and permissions can be kept; switching authentication on is refused, because
//! nothing would enforce it.

use super::call::CallId;
use super::dispatch::malformed;
use super::run::Desk;
use crate::method::Method;
use api::etcdserverpb::{
    AuthRoleAddRequest, AuthRoleDeleteRequest, AuthRoleGetRequest, AuthRoleGrantPermissionRequest,
    AuthRoleRevokePermissionRequest, AuthStatusRequest, AuthUserAddRequest,
    AuthUserChangePasswordRequest, AuthUserDeleteRequest, AuthUserGetRequest,
    AuthUserGrantRoleRequest, AuthUserRevokeRoleRequest,
};
use api::{Code, Error};
use bytes::Bytes;
use prost::Message;

/// The field of `InternalRaftRequest` that carries a method's request.
fn field_of(method: Method) -> u32 {
    match method {
        Method::AuthEnable => 1000,
        Method::AuthDisable => 1011,
        Method::AuthStatus => 1013,
        Method::UserAdd => 1100,
        Method::UserDelete => 1101,
        Method::UserGet => 1102,
        Method::UserChangePassword => 1103,
        Method::UserGrantRole => 1104,
        Method::UserRevokeRole => 1105,
        Method::UserList => 1106,
        Method::RoleList => 1107,
        Method::RoleAdd => 1200,
        Method::RoleDelete => 1201,
        Method::RoleGet => 1202,
        Method::RoleGrantPermission => 1203,
        Method::RoleRevokePermission => 1204,
        other => unreachable!("{other:?} is no request about users and roles"),
    }
}

impl Desk {
    pub(super) fn auth(&mut self, id: CallId, method: Method, data: Bytes) -> Result<(), Error> {
        match method {
            Method::Authenticate => return Err(Error::AUTH_NOT_ENABLED),
            Method::AuthEnable => {
                self.shared.view.check_root()?;
                return Err(Error::new(
                    Code::FailedPrecondition,
                    "althing: authentication cannot be enabled in this version: nothing would enforce it",
                ));
            }
            // Hashing a password is slow on purpose, so the office does it.
            Method::UserAdd => {
                let request = AuthUserAddRequest::decode(data.clone()).map_err(malformed)?;
                let no_password = request.options.is_some_and(|options| options.no_password);
                if !no_password || !request.password.is_empty() {
                    self.send_to_office(id, method, data);
                    return Ok(());
                }
            }
            Method::UserChangePassword => {
                AuthUserChangePasswordRequest::decode(data.clone()).map_err(malformed)?;
                self.send_to_office(id, method, data);
                return Ok(());
            }
            _ => check_request(method, &data).map_err(malformed)?,
        }
        self.propose_field(id, field_of(method), &data)
    }
}

/// The log must not carry what cannot be read back.
fn check_request(method: Method, data: &Bytes) -> Result<(), prost::DecodeError> {
    fn check<M: Message + Default>(data: &Bytes) -> Result<(), prost::DecodeError> {
        M::decode(data.clone()).map(drop)
    }
    match method {
        Method::UserGet => check::<AuthUserGetRequest>(data),
        Method::UserDelete => check::<AuthUserDeleteRequest>(data),
        Method::UserGrantRole => check::<AuthUserGrantRoleRequest>(data),
        Method::UserRevokeRole => check::<AuthUserRevokeRoleRequest>(data),
        Method::RoleAdd => check::<AuthRoleAddRequest>(data),
        Method::RoleGet => check::<AuthRoleGetRequest>(data),
        Method::RoleDelete => check::<AuthRoleDeleteRequest>(data),
        Method::RoleGrantPermission => check::<AuthRoleGrantPermissionRequest>(data),
        Method::RoleRevokePermission => check::<AuthRoleRevokePermissionRequest>(data),
        // The others have no fields, so any fields at all are unknown ones.
        _ => check::<AuthStatusRequest>(data),
    }
}
