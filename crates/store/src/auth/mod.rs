//! Users, roles and grants, as replicated records.
//!
//! In:  the auth requests of the log. Out: answers, and the records that a permission check needs.
//!
//! The records can be written and read whether auth is on or off, as in etcd. Tokens are not kept
//! here: they have a lifetime, and there is no clock in this crate. Passwords never come here in
//! the clear: the member that takes the request hashes them before it proposes.
//!
//! Always true: the auth revision grows with every successful change, and is never 0, because 0
//! marks an anonymous request.

mod base64;
mod roles;
mod users;

use std::collections::BTreeMap;

use api::authpb::{Role, User};
use api::etcdserverpb::InternalRaftRequest;
use engine::{Bucket, Engine};
use prost::Message;

use crate::applied::{Effect, ReadError};
use crate::wire;

const ENABLED: &[u8] = b"authEnabled";
const REVISION: &[u8] = b"authRevision";
/// The name of the user that must exist, and of the role that may do everything.
pub(crate) const ROOT: &str = "root";

#[derive(Debug, Default)]
pub(crate) struct Auth {
    pub enabled: bool,
    pub revision: u64,
    users: BTreeMap<String, User>,
    roles: BTreeMap<String, Role>,
}

impl Auth {
    pub fn restore(engine: &dyn Engine) -> engine::Result<Auth> {
        let text = |name: bytes::Bytes| String::from_utf8_lossy(&name).into_owned();
        let users = engine.bucket(Bucket::AuthUsers).into_iter();
        let users = users.filter_map(|(name, user)| Some((text(name), User::decode(user).ok()?)));
        let roles = engine.bucket(Bucket::AuthRoles).into_iter();
        let roles = roles.filter_map(|(name, role)| Some((text(name), Role::decode(role).ok()?)));
        let revision = engine.get(Bucket::Auth, REVISION);
        let revision = revision.and_then(|revision| revision.as_ref().try_into().ok());
        let mut auth = Auth {
            enabled: engine.get(Bucket::Auth, ENABLED).as_deref() == Some(&[1]),
            revision: revision.map_or(0, u64::from_be_bytes),
            users: users.collect(),
            roles: roles.collect(),
        };
        if auth.revision == 0 {
            auth.bump(engine)?;
        }
        Ok(auth)
    }

    /// Carries out the auth request of an entry. `None`: the entry holds none. The answer is the
    /// body of its response.
    pub fn apply(
        &mut self,
        engine: &dyn Engine,
        entry: &InternalRaftRequest,
        effects: &mut Vec<Effect>,
    ) -> Option<Result<Vec<u8>, ReadError>> {
        let before = (self.revision, self.enabled);
        let answer = self.dispatch(engine, entry, effects)?;
        if (self.revision, self.enabled) != before {
            effects.push(Effect::AuthChanged);
        }
        Some(answer)
    }

    fn dispatch(
        &mut self,
        engine: &dyn Engine,
        entry: &InternalRaftRequest,
        effects: &mut Vec<Effect>,
    ) -> Option<Result<Vec<u8>, ReadError>> {
        let nothing = |()| Vec::new();
        Some(if let Some(request) = &entry.authenticate {
            self.authenticate(&request.name, &request.simple_token, effects)
        } else if entry.auth_enable.is_some() {
            self.enable(engine).map(nothing)
        } else if entry.auth_disable.is_some() {
            self.disable(engine).map(nothing)
        } else if entry.auth_status.is_some() {
            Ok(self.status())
        } else if let Some(request) = &entry.auth_user_add {
            self.user_add(engine, request).map(nothing)
        } else if let Some(request) = &entry.auth_user_delete {
            self.user_delete(engine, request).map(nothing)
        } else if let Some(request) = &entry.auth_user_change_password {
            self.user_change_password(engine, request).map(nothing)
        } else if let Some(request) = &entry.auth_user_grant_role {
            self.user_grant_role(engine, request).map(nothing)
        } else if let Some(request) = &entry.auth_user_get {
            self.user_get(request).map_err(ReadError::from)
        } else if let Some(request) = &entry.auth_user_revoke_role {
            self.user_revoke_role(engine, request).map(nothing)
        } else if let Some(request) = &entry.auth_role_add {
            self.role_add(engine, request).map(nothing)
        } else if let Some(request) = &entry.auth_role_grant_permission {
            self.role_grant_permission(engine, request).map(nothing)
        } else if let Some(request) = &entry.auth_role_get {
            self.role_get(request).map_err(ReadError::from)
        } else if let Some(request) = &entry.auth_role_revoke_permission {
            self.role_revoke_permission(engine, request).map(nothing)
        } else if let Some(request) = &entry.auth_role_delete {
            self.role_delete(engine, request).map(nothing)
        } else if entry.auth_user_list.is_some() {
            Ok(names(self.users.keys()))
        } else if entry.auth_role_list.is_some() {
            Ok(names(self.roles.keys()))
        } else {
            return None;
        })
    }

    fn enable(&mut self, engine: &dyn Engine) -> Result<(), ReadError> {
        if self.enabled {
            return Ok(());
        }
        self.check_root()?;
        engine.put(Bucket::Auth, ENABLED, &[1])?;
        self.enabled = true;
        Ok(())
    }

    /// Whether somebody could still administer the store once it asks who they are.
    pub fn check_root(&self) -> Result<(), api::Error> {
        let root = self.users.get(ROOT).ok_or(api::Error::ROOT_USER_NOT_EXIST)?;
        match root.roles.iter().any(|role| role == ROOT) {
            true => Ok(()),
            false => Err(api::Error::ROOT_ROLE_NOT_GRANTED),
        }
    }

    fn disable(&mut self, engine: &dyn Engine) -> Result<(), ReadError> {
        if self.enabled {
            engine.put(Bucket::Auth, ENABLED, &[0])?;
            self.enabled = false;
            self.bump(engine)?;
        }
        Ok(())
    }

    /// The fields of an `AuthStatusResponse`.
    pub fn status(&self) -> Vec<u8> {
        let mut body = Vec::new();
        wire::put_bool_field(&mut body, 2, self.enabled);
        wire::put_int_field(&mut body, 3, self.revision as i64);
        body
    }

    fn authenticate(
        &self,
        user: &str,
        token: &str,
        effects: &mut Vec<Effect>,
    ) -> Result<Vec<u8>, ReadError> {
        if !self.enabled {
            return Err(api::Error::AUTH_NOT_ENABLED.into());
        }
        if !self.users.contains_key(user) {
            return Err(api::Error::AUTH_FAILED.into());
        }
        if !token.is_empty() {
            let (user, token) = (user.to_owned(), token.to_owned());
            effects.push(Effect::TokenAssigned { user, token });
        }
        let mut body = Vec::new();
        wire::put_bytes_field(&mut body, 2, token.as_bytes());
        Ok(body)
    }

    fn bump(&mut self, engine: &dyn Engine) -> engine::Result<()> {
        self.revision += 1;
        engine.put(Bucket::Auth, REVISION, &self.revision.to_be_bytes())
    }
}

fn names<'a>(names: impl Iterator<Item = &'a String>) -> Vec<u8> {
    let mut body = Vec::new();
    for name in names {
        wire::put_message(&mut body, 2, name.as_bytes());
    }
    body
}
