//! Users: their password hashes and the roles they were given.

use api::Error;
use api::authpb::User;
use api::etcdserverpb::{
    AuthUserAddRequest, AuthUserChangePasswordRequest, AuthUserDeleteRequest, AuthUserGetRequest,
    AuthUserGrantRoleRequest, AuthUserRevokeRoleRequest,
};
use bytes::Bytes;
use engine::{Bucket, Engine};
use prost::Message;

use super::{Auth, ROOT, base64, names};
use crate::applied::ReadError;

impl Auth {
    pub(super) fn user_add(
        &mut self,
        engine: &dyn Engine,
        request: &AuthUserAddRequest,
    ) -> Result<(), ReadError> {
        if request.name.is_empty() {
            return Err(Error::USER_EMPTY.into());
        }
        if self.users.contains_key(&request.name) {
            return Err(Error::USER_EXISTS.into());
        }
        let options = request.options.unwrap_or_default();
        let password = match options.no_password {
            true => Bytes::new(),
            false => stored_password(&request.password, &request.hashed_password)?,
        };
        let name = Bytes::from(request.name.clone());
        self.save_user(engine, User { name, password, roles: vec![], options: Some(options) })?;
        Ok(self.bump(engine)?)
    }

    pub(super) fn user_delete(
        &mut self,
        engine: &dyn Engine,
        request: &AuthUserDeleteRequest,
    ) -> Result<(), ReadError> {
        if self.enabled && request.name == ROOT {
            return Err(Error::INVALID_AUTH_MANAGEMENT.into());
        }
        if self.users.remove(&request.name).is_none() {
            return Err(Error::USER_NOT_FOUND.into());
        }
        engine.delete(Bucket::AuthUsers, request.name.as_bytes())?;
        Ok(self.bump(engine)?)
    }

    pub(super) fn user_change_password(
        &mut self,
        engine: &dyn Engine,
        request: &AuthUserChangePasswordRequest,
    ) -> Result<(), ReadError> {
        let mut user = self.user(&request.name)?.clone();
        user.password = match user.options.is_some_and(|options| options.no_password) {
            true => Bytes::new(),
            false => stored_password(&request.password, &request.hashed_password)?,
        };
        self.save_user(engine, user)?;
        Ok(self.bump(engine)?)
    }

    /// Granting what is granted already succeeds, and does not count as a change.
    pub(super) fn user_grant_role(
        &mut self,
        engine: &dyn Engine,
        request: &AuthUserGrantRoleRequest,
    ) -> Result<(), ReadError> {
        let mut user = self.user(&request.user)?.clone();
        // The role `root` needs no record: its name is all there is to it.
        if request.role != ROOT && !self.roles.contains_key(&request.role) {
            return Err(Error::ROLE_NOT_FOUND.into());
        }
        if user.roles.contains(&request.role) {
            return Ok(());
        }
        user.roles.push(request.role.clone());
        user.roles.sort();
        self.save_user(engine, user)?;
        Ok(self.bump(engine)?)
    }

    pub(super) fn user_revoke_role(
        &mut self,
        engine: &dyn Engine,
        request: &AuthUserRevokeRoleRequest,
    ) -> Result<(), ReadError> {
        if self.enabled && request.name == ROOT && request.role == ROOT {
            return Err(Error::INVALID_AUTH_MANAGEMENT.into());
        }
        let mut user = self.user(&request.name)?.clone();
        let before = user.roles.len();
        user.roles.retain(|role| *role != request.role);
        if user.roles.len() == before {
            return Err(Error::ROLE_NOT_GRANTED.into());
        }
        self.save_user(engine, user)?;
        Ok(self.bump(engine)?)
    }

    pub(super) fn user_get(&self, request: &AuthUserGetRequest) -> Result<Vec<u8>, Error> {
        Ok(names(self.user(&request.name)?.roles.iter()))
    }

    fn user(&self, name: &str) -> Result<&User, Error> {
        self.users.get(name).ok_or(Error::USER_NOT_FOUND)
    }

    pub(super) fn save_user(&mut self, engine: &dyn Engine, user: User) -> engine::Result<()> {
        engine.put(Bucket::AuthUsers, &user.name, &user.encode_to_vec())?;
        let name = String::from_utf8_lossy(&user.name).into_owned();
        self.users.insert(name, user);
        Ok(())
    }
}

/// What is stored for a password: the hash that the receiving member made. Logs of etcd before 3.5
/// hold clear passwords, which every member would hash differently; such an entry is refused.
fn stored_password(clear: &str, hashed: &str) -> Result<Bytes, Error> {
    if hashed.is_empty() && !clear.is_empty() {
        return Err(Error::NO_PASSWORD_USER);
    }
    base64::decode(hashed).map(Bytes::from).ok_or(Error::NO_PASSWORD_USER)
}
