//! From a path and a message to the room that answers it.

use super::call::{Call, CallId, KeepAlive, Lane, State};
use super::connection::Protocol;
use super::header::put_varint;
use super::run::Desk;
use crate::mail::Word;
use crate::method::{self, Method, Shape};
use api::etcdserverpb::{
    AuthDisableRequest, AuthEnableRequest, AuthRoleAddRequest, AuthRoleDeleteRequest,
    AuthRoleGetRequest, AuthRoleGrantPermissionRequest, AuthRoleListRequest,
    AuthRoleRevokePermissionRequest, AuthStatusRequest, AuthUserDeleteRequest, AuthUserGetRequest,
    AuthUserGrantRoleRequest, AuthUserListRequest, AuthUserRevokeRoleRequest, AuthenticateRequest,
    DefragmentRequest, HashRequest, LeaseLeasesRequest, SnapshotRequest, StatusRequest,
};
use api::health::HealthListRequest;
use api::{Code, Error};
use bytes::Bytes;
use httpcore::h2;
use std::time::{Duration, Instant};

/// Entries may be this far ahead of the store before new ones are refused.
const APPLY_LAG_MAX: u64 = 5000;

/// What a caller says about itself beside the request.
#[derive(Clone, Debug, Default)]
pub struct Metadata {
    pub needs_leader: bool,
    /// `client-api-version`, if it is text.
    pub api_version: Option<String>,
    pub api_version_invalid: bool,
    pub timeout: Option<Duration>,
}

impl Metadata {
    pub fn of_grpc(headers: &h2::Headers, timeout: Option<Duration>) -> Metadata {
        let mut metadata = Metadata { timeout, ..Metadata::default() };
        if let Some(value) = headers.get("hasleader") {
            metadata.needs_leader = value.as_ref() == b"true";
        }
        if let Some(value) = headers.get("client-api-version") {
            match std::str::from_utf8(value) {
                Ok(version) => metadata.api_version = Some(version.to_owned()),
                Err(_) => metadata.api_version_invalid = true,
            }
        }
        metadata
    }
}

impl Desk {
    pub(super) fn begin_grpc_call(
        &mut self,
        id: CallId,
        path: &[u8],
        headers: &h2::Headers,
        timeout: Option<Duration>,
    ) {
        let Some(method) = Method::at(path) else {
            let error = method::unknown(&String::from_utf8_lossy(path));
            return self.refuse_stream(id, &error);
        };
        let metadata = Metadata::of_grpc(headers, timeout);
        self.begin_call(id, method, &metadata);
    }

    /// Answers a stream that never became a call.
    fn refuse_stream(&mut self, id: CallId, error: &Error) {
        let Some(connection) = self.connections.get_mut(id.connection) else { return };
        if let (Protocol::Grpc { link, .. }, Lane::Grpc(stream)) =
            (&mut connection.protocol, id.lane)
        {
            link.respond_error(stream, error.code as u8, &error.message);
            self.mark_dirty(id.connection);
        }
    }

    /// Opens a call, or refuses it before its message is looked at.
    pub(super) fn begin_call(&mut self, id: CallId, method: Method, metadata: &Metadata) {
        let deadline = metadata.timeout.map(|timeout| {
            self.now_ms.saturating_add(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX))
        });
        let call = Call {
            method,
            deadline,
            needs_leader: metadata.needs_leader,
            began: Instant::now(),
            state: State::Expecting,
        };
        let metrics = &self.shared.metrics;
        metrics.grpc.method(method as usize).started();
        let streams = method.info().shape != Shape::Unary;
        metrics.server.client_requests.count(metadata.api_version.as_deref(), streams);
        self.insert_call(id, call);
        if metadata.timeout.is_some_and(|timeout| timeout < Duration::from_micros(1)) {
            // Over before it began.
            self.fail(id, Error::CONTEXT_DEADLINE_EXCEEDED);
        } else if metadata.api_version_invalid {
            self.fail(id, Error::INVALID_CLIENT_API_VERSION);
        } else if metadata.needs_leader && self.shared.pulse.leader() == 0 {
            self.fail(id, Error::NO_LEADER);
        } else if method == Method::Watch {
            self.open_watch_stream(id);
        } else if method == Method::LeaseKeepAlive {
            self.set_state(id, State::KeepingAlive(KeepAlive::default()));
        }
    }

    /// A whole message has come.
    pub(super) fn on_message(&mut self, id: CallId, data: Bytes) {
        let Some(call) = self.call_mut(id) else { return };
        let method = call.method;
        let expecting = matches!(call.state, State::Expecting);
        let metrics = &self.shared.metrics;
        metrics.grpc.method(method as usize).received();
        metrics.network.client_received_bytes.add(data.len() as u64);
        match method {
            Method::Watch => self.on_watch_request(id, &data),
            Method::LeaseKeepAlive => self.on_keep_alive(id, &data),
            // A second message on a call that takes one is the caller's mistake; the first counts.
            _ if !expecting => {}
            _ => {
                self.set_state(id, State::Working);
                self.dispatch(id, method, data);
            }
        }
    }

    fn dispatch(&mut self, id: CallId, method: Method, data: Bytes) {
        if let Err(error) = check_unread(method, &data) {
            return self.fail(id, malformed(error));
        }
        let outcome = match method {
            Method::Range => self.range(id, data),
            Method::RangeStream => self.range_stream(id, data),
            Method::Put => self.put(id, data),
            Method::DeleteRange => self.delete_range(id, data),
            Method::Txn => self.txn(id, data),
            Method::Compact => self.compact(id, data),
            Method::LeaseGrant => self.lease_grant(id, data),
            Method::LeaseRevoke => self.lease_revoke(id, data),
            Method::LeaseTimeToLive => self.lease_time_to_live(id, data),
            Method::LeaseLeases => self.lease_leases(id),
            Method::MemberAdd => self.member_add(id, data),
            Method::MemberRemove => self.member_remove(id, data),
            Method::MemberUpdate => self.member_update(id, data),
            Method::MemberList => self.member_list(id, data),
            Method::MemberPromote => self.member_promote(id, data),
            Method::Alarm => self.alarm(id, data),
            Method::Status => self.status(id),
            Method::MoveLeader => self.move_leader(id, data),
            Method::HealthCheck => self.health_check(id, data),
            Method::HealthList => self.health_list(id),
            Method::HealthWatch => self.health_watch(id, data),
            Method::AuthEnable
            | Method::AuthDisable
            | Method::AuthStatus
            | Method::Authenticate
            | Method::UserAdd
            | Method::UserGet
            | Method::UserList
            | Method::UserDelete
            | Method::UserChangePassword
            | Method::UserGrantRole
            | Method::UserRevokeRole
            | Method::RoleAdd
            | Method::RoleGet
            | Method::RoleList
            | Method::RoleDelete
            | Method::RoleGrantPermission
            | Method::RoleRevokePermission => self.auth(id, method, data),
            Method::Defragment
            | Method::Hash
            | Method::HashKV
            | Method::Snapshot
            | Method::Downgrade
            | Method::Lock
            | Method::Unlock
            | Method::Campaign
            | Method::Proclaim
            | Method::Leader
            | Method::Observe
            | Method::Resign => {
                self.send_to_office(id, method, data);
                Ok(())
            }
            Method::Watch | Method::LeaseKeepAlive => {
                unreachable!("streams of requests are taken before")
            }
        };
        if let Err(error) = outcome {
            self.fail(id, error);
        }
    }

    pub(super) fn on_half_close(&mut self, id: CallId) {
        let Some(call) = self.call_mut(id) else { return };
        match &mut call.state {
            // What a Go server says of a call without its message.
            State::Expecting => self.fail(id, Error::new(Code::Unknown, "EOF")),
            State::KeepingAlive(keep_alive) => {
                keep_alive.half_closed = true;
                if !keep_alive.asked && keep_alive.waiting.is_empty() {
                    self.finish_stream(id);
                }
            }
            // Watches go on: clients of the gateway depend on it.
            _ => {}
        }
    }

    /// The office takes calls that may block or take long; it answers by letter.
    pub(super) fn send_to_office(&mut self, id: CallId, method: Method, data: Bytes) {
        let (cancel, cancelled) = tokio::sync::oneshot::channel();
        self.set_state(id, State::AtOffice(cancel));
        self.shared.office.take_call(self.number, id, method, data, cancelled);
    }

    pub(super) fn on_word(&mut self, id: CallId, word: Word) {
        match word {
            Word::Answer(Ok(body)) => self.answer(id, &[body]),
            Word::Answer(Err(error)) => self.fail(id, error),
            Word::Message(body) => self.send_message(id, &[body]),
            Word::Piece(body, permit) => {
                self.send_message(id, &[body]);
                self.held_back.push((id, permit));
            }
            Word::End(Ok(())) => self.finish_stream(id),
            Word::End(Err(error)) => self.fail(id, error),
            Word::Http(response) => self.answer_http(id, response),
        }
    }

    /// Proposes a request whose encoding is field `field` of an `InternalRaftRequest`.
    pub(super) fn propose_field(
        &mut self,
        id: CallId,
        field: u32,
        request: &[u8],
    ) -> Result<(), Error> {
        let pulse = &self.shared.pulse;
        if pulse.commit().saturating_sub(pulse.applied()) > APPLY_LAG_MAX {
            return Err(Error::TOO_MANY_REQUESTS);
        }
        let request_id = self.ids.draw();
        let entry = encode_entry(field, request, request_id);
        if entry.len() > self.shared.limits.request_bytes_max {
            return Err(Error::REQUEST_TOO_LARGE);
        }
        self.propose(id, request_id, entry);
        Ok(())
    }

    pub(super) fn set_state(&mut self, id: CallId, state: State) {
        if let Some(call) = self.call_mut(id) {
            call.state = state;
        }
    }
}

/// An `InternalRaftRequest` with one request and a header with its id, fields in ascending order.
/// The request's bytes are taken as the caller sent them: decoded once for the checks, never
/// encoded again.
pub fn encode_entry(field: u32, request: &[u8], request_id: u64) -> Bytes {
    let mut entry = Vec::with_capacity(request.len() + 32);
    let put_header = |entry: &mut Vec<u8>| {
        let mut header = [0; 11];
        let mut rest = &mut header[..];
        bytes::BufMut::put_u8(&mut rest, 0x08);
        put_varint(&mut rest, request_id);
        let header_bytes = 11 - rest.len();
        put_varint(entry, 100 << 3 | 2);
        put_varint(entry, header_bytes as u64);
        entry.extend_from_slice(&header[..header_bytes]);
    };
    if field > 100 {
        put_header(&mut entry);
    }
    put_varint(&mut entry, u64::from(field) << 3 | 2);
    put_varint(&mut entry, request.len() as u64);
    entry.extend_from_slice(request);
    if field < 100 {
        put_header(&mut entry);
    }
    entry.into()
}

/// Checks the messages that no room reads: what is empty, and what goes into the log as it came,
/// where bytes that are no message must never get.
fn check_unread(method: Method, data: &Bytes) -> Result<(), prost::DecodeError> {
    fn is<M: prost::Message + Default>(data: &Bytes) -> Result<(), prost::DecodeError> {
        M::decode(data.clone()).map(drop)
    }
    match method {
        Method::LeaseLeases => is::<LeaseLeasesRequest>(data),
        Method::Status => is::<StatusRequest>(data),
        Method::Defragment => is::<DefragmentRequest>(data),
        Method::Hash => is::<HashRequest>(data),
        Method::Snapshot => is::<SnapshotRequest>(data),
        Method::HealthList => is::<HealthListRequest>(data),
        Method::AuthEnable => is::<AuthEnableRequest>(data),
        Method::AuthDisable => is::<AuthDisableRequest>(data),
        Method::AuthStatus => is::<AuthStatusRequest>(data),
        Method::Authenticate => is::<AuthenticateRequest>(data),
        Method::UserGet => is::<AuthUserGetRequest>(data),
        Method::UserList => is::<AuthUserListRequest>(data),
        Method::UserDelete => is::<AuthUserDeleteRequest>(data),
        Method::UserGrantRole => is::<AuthUserGrantRoleRequest>(data),
        Method::UserRevokeRole => is::<AuthUserRevokeRoleRequest>(data),
        Method::RoleAdd => is::<AuthRoleAddRequest>(data),
        Method::RoleGet => is::<AuthRoleGetRequest>(data),
        Method::RoleList => is::<AuthRoleListRequest>(data),
        Method::RoleDelete => is::<AuthRoleDeleteRequest>(data),
        Method::RoleGrantPermission => is::<AuthRoleGrantPermissionRequest>(data),
        Method::RoleRevokePermission => is::<AuthRoleRevokePermissionRequest>(data),
        _ => Ok(()),
    }
}

/// What gRPC says of bytes that are not the message they should be.
pub fn malformed(error: prost::DecodeError) -> Error {
    Error::with_text(Code::Internal, format!("grpc: error unmarshalling request: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::etcdserverpb::{InternalRaftRequest, PutRequest, RequestHeader};
    use prost::Message;

    #[test]
    fn entries_are_what_prost_would_write() {
        let header = Some(RequestHeader { id: u64::MAX - 5, ..RequestHeader::default() });
        let put =
            PutRequest { key: "k".into(), value: vec![7; 300].into(), ..PutRequest::default() };
        let encoded = encode_entry(4, &put.encode_to_vec(), u64::MAX - 5);
        let whole =
            InternalRaftRequest { header: header.clone(), put: Some(put), ..Default::default() };
        assert_eq!(encoded, whole.encode_to_vec());

        let status = AuthStatusRequest {};
        let encoded = encode_entry(1013, &status.encode_to_vec(), u64::MAX - 5);
        let whole = InternalRaftRequest { header, auth_status: Some(status), ..Default::default() };
        assert_eq!(encoded, whole.encode_to_vec());
    }
}
