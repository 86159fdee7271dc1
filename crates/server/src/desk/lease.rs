//! Leases: granted and revoked through the log, renewed and looked at without it.

use super::call::{CallId, KeepAlive, State};
use super::dispatch::malformed;
use super::header::put_varint;
use super::kv::Deferred;
use super::run::Desk;
use api::Error;
use api::etcdserverpb::{
    LeaseGrantRequest, LeaseKeepAliveRequest, LeaseKeepAliveResponse, LeaseLeasesResponse,
    LeaseRevokeRequest, LeaseStatus, LeaseTimeToLiveRequest, LeaseTimeToLiveResponse,
};
use bytes::Bytes;
use node::{Answer, Asker, Event, Question};
use prost::Message;
use store::Reply;

const GRANT_FIELD: u32 = 8;
const REVOKE_FIELD: u32 = 9;

impl Desk {
    pub(super) fn lease_grant(&mut self, id: CallId, data: Bytes) -> Result<(), Error> {
        let mut request = LeaseGrantRequest::decode(data).map_err(malformed)?;
        self.check_quota(store::LEASE_GRANT_COST)?;
        while request.id == 0 {
            request.id = (self.ids.draw() & i64::MAX as u64) as i64;
        }
        self.propose_field(id, GRANT_FIELD, &request.encode_to_vec())
    }

    pub(super) fn lease_revoke(&mut self, id: CallId, data: Bytes) -> Result<(), Error> {
        LeaseRevokeRequest::decode(data.clone()).map_err(malformed)?;
        self.propose_field(id, REVOKE_FIELD, &data)
    }

    pub(super) fn lease_time_to_live(&mut self, id: CallId, data: Bytes) -> Result<(), Error> {
        let request = LeaseTimeToLiveRequest::decode(data).map_err(malformed)?;
        // What was granted before this call must be seen by it.
        self.after_barrier(id, Deferred::TimeToLive(request));
        Ok(())
    }

    pub(super) fn lease_leases(&mut self, id: CallId) -> Result<(), Error> {
        self.ask(id, Question::Leases, Deferred::Leases);
        Ok(())
    }

    pub(super) fn ask(&mut self, id: CallId, question: Question, deferred: Deferred) {
        let token = self.next_token;
        self.next_token += 1;
        self.asked.insert(token, (id, deferred));
        let asker = Asker { desk: self.number, token };
        self.send_event(Event::Asked { asker, question });
    }

    pub(super) fn on_keep_alive(&mut self, id: CallId, data: &Bytes) {
        let request = match LeaseKeepAliveRequest::decode(data.clone()) {
            Ok(request) => request,
            Err(error) => return self.fail(id, malformed(error)),
        };
        if let Some(keep_alive) = self.keep_alive(id) {
            keep_alive.waiting.push_back(request.id);
            self.ask_next_renewal(id);
        }
    }

    fn keep_alive(&mut self, id: CallId) -> Option<&mut KeepAlive> {
        match &mut self.call_mut(id)?.state {
            State::KeepingAlive(keep_alive) => Some(keep_alive),
            _ => None,
        }
    }

    fn ask_next_renewal(&mut self, id: CallId) {
        let Some(keep_alive) = self.keep_alive(id) else { return };
        if keep_alive.asked {
            return;
        }
        let Some(lease) = keep_alive.waiting.pop_front() else {
            if keep_alive.half_closed {
                self.finish_stream(id);
            }
            return;
        };
        keep_alive.asked = true;
        // The header is from before the renewal. The barrier lets a lease that was just granted
        // be found.
        let revision = self.shared.view.revision();
        self.after_barrier(id, Deferred::KeepAlive { lease, revision });
    }

    pub(super) fn on_answer(&mut self, id: CallId, deferred: Deferred, answer: Answer) {
        match (deferred, answer) {
            (deferred, Answer::ReadAt { index }) => self.run_when_applied(index, id, deferred),
            (Deferred::KeepAlive { lease, revision }, answer) => {
                let ttl = match answer {
                    Answer::Renewed { ttl } => ttl,
                    _ => 0,
                };
                let header = self.header(revision);
                let response = LeaseKeepAliveResponse { header: None, id: lease, ttl };
                self.send_message(id, &[header, response.encode_to_vec().into()]);
                if let Some(keep_alive) = self.keep_alive(id) {
                    keep_alive.asked = false;
                }
                self.ask_next_renewal(id);
            }
            (Deferred::TimeToLive(request), answer) => {
                self.answer_time_to_live(id, &request, &answer);
            }
            (Deferred::Leases, Answer::Leases(leases)) => {
                let leases = leases.into_iter().map(|id| LeaseStatus { id }).collect();
                let response = LeaseLeasesResponse { header: None, leases };
                let revision = self.shared.view.revision();
                self.reply(id, Reply { revision, body: response.encode_to_vec().into() });
            }
            // No other question is asked.
            _ => {}
        }
    }

    fn answer_time_to_live(
        &mut self,
        id: CallId,
        request: &LeaseTimeToLiveRequest,
        answer: &Answer,
    ) {
        let mut response =
            LeaseTimeToLiveResponse { id: request.id, ttl: -1, ..Default::default() };
        if let Answer::TimeToLive { ttl, granted } = *answer {
            response.ttl = ttl;
            response.granted_ttl = granted;
            if request.keys {
                let lease = self.shared.view.lease(request.id);
                let keys = lease.into_iter().flat_map(|lease| lease.keys);
                response.keys = keys.map(|key| Bytes::copy_from_slice(&key)).collect();
            }
        }
        let revision = self.shared.view.revision();
        self.reply(id, Reply { revision, body: response.encode_to_vec().into() });
    }
}

/// A message inside another: its tag, its length, and room for what follows.
pub fn put_message_tag(out: &mut Vec<u8>, field: u32, bytes: usize) {
    put_varint(out, u64::from(field) << 3 | 2);
    put_varint(out, bytes as u64);
}
