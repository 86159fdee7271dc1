//! Roles: which keys they let their users read and write.

use api::Error;
use api::authpb::{Permission, Role, permission};
use api::etcdserverpb::{
    AuthRoleAddRequest, AuthRoleDeleteRequest, AuthRoleGetRequest, AuthRoleGrantPermissionRequest,
    AuthRoleRevokePermissionRequest,
};
use bytes::Bytes;
use engine::{Bucket, Engine};
use prost::Message;

use super::{Auth, ROOT};
use crate::applied::ReadError;
use crate::wire;

impl Auth {
    pub(super) fn role_add(
        &mut self,
        engine: &dyn Engine,
        request: &AuthRoleAddRequest,
    ) -> Result<(), ReadError> {
        if request.name.is_empty() {
            return Err(Error::ROLE_EMPTY.into());
        }
        if self.roles.contains_key(&request.name) {
            return Err(Error::ROLE_EXISTS.into());
        }
        let name = Bytes::from(request.name.clone());
        self.save_role(engine, Role { name, key_permission: vec![] })?;
        Ok(self.bump(engine)?)
    }

    /// The users who had it lose it with the same step of the auth revision.
    pub(super) fn role_delete(
        &mut self,
        engine: &dyn Engine,
        request: &AuthRoleDeleteRequest,
    ) -> Result<(), ReadError> {
        if self.enabled && request.role == ROOT {
            return Err(Error::INVALID_AUTH_MANAGEMENT.into());
        }
        if self.roles.remove(&request.role).is_none() {
            return Err(Error::ROLE_NOT_FOUND.into());
        }
        engine.delete(Bucket::AuthRoles, request.role.as_bytes())?;
        let holders = self.users.values().filter(|user| user.roles.contains(&request.role));
        for mut user in holders.cloned().collect::<Vec<_>>() {
            user.roles.retain(|role| *role != request.role);
            self.save_user(engine, user)?;
        }
        Ok(self.bump(engine)?)
    }

    /// The role `root` shows what it may do, whatever was stored for it.
    pub(super) fn role_get(&self, request: &AuthRoleGetRequest) -> Result<Vec<u8>, Error> {
        let role = self.roles.get(&request.role).ok_or(Error::ROLE_NOT_FOUND)?;
        let everything = [Permission {
            perm_type: permission::Type::Readwrite as i32,
            key: Bytes::new(),
            range_end: Bytes::from_static(b"\0"),
        }];
        let permissions =
            if request.role == ROOT { &everything[..] } else { &role.key_permission[..] };
        let mut body = Vec::new();
        for permission in permissions {
            wire::put_message(&mut body, 2, &permission.encode_to_vec());
        }
        Ok(body)
    }

    /// A grant on the same range replaces the type: READ after READWRITE leaves READ. As in etcd
    /// only the first permission with that key is looked at; otherwise one more is added.
    pub(super) fn role_grant_permission(
        &mut self,
        engine: &dyn Engine,
        request: &AuthRoleGrantPermissionRequest,
    ) -> Result<(), ReadError> {
        let given = request.perm.as_ref().ok_or(Error::PERMISSION_NOT_GIVEN)?;
        if !is_valid_range(given) {
            return Err(Error::INVALID_AUTH_MANAGEMENT.into());
        }
        let mut role = self.roles.get(&request.name).ok_or(Error::ROLE_NOT_FOUND)?.clone();
        let permissions = &mut role.key_permission;
        let first = permissions.partition_point(|permission| permission.key < given.key);
        match permissions.get_mut(first) {
            Some(same) if same.key == given.key && same.range_end == given.range_end => {
                same.perm_type = given.perm_type;
            }
            _ => {
                permissions.push(given.clone());
                permissions.sort_by(|a, b| a.key.cmp(&b.key));
            }
        }
        self.save_role(engine, role)?;
        Ok(self.bump(engine)?)
    }

    pub(super) fn role_revoke_permission(
        &mut self,
        engine: &dyn Engine,
        request: &AuthRoleRevokePermissionRequest,
    ) -> Result<(), ReadError> {
        let mut role = self.roles.get(&request.role).ok_or(Error::ROLE_NOT_FOUND)?.clone();
        let before = role.key_permission.len();
        role.key_permission.retain(|permission| {
            (&permission.key, &permission.range_end) != (&request.key, &request.range_end)
        });
        if role.key_permission.len() == before {
            return Err(Error::PERMISSION_NOT_GRANTED.into());
        }
        self.save_role(engine, role)?;
        Ok(self.bump(engine)?)
    }

    fn save_role(&mut self, engine: &dyn Engine, role: Role) -> engine::Result<()> {
        engine.put(Bucket::AuthRoles, &role.name, &role.encode_to_vec())?;
        let name = String::from_utf8_lossy(&role.name).into_owned();
        self.roles.insert(name, role);
        Ok(())
    }
}

fn is_valid_range(permission: &Permission) -> bool {
    let Permission { key, range_end, .. } = permission;
    !key.is_empty() && (range_end.is_empty() || range_end.as_ref() == b"\0" || key < range_end)
}
