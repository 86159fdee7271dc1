//! What each kind of entry does.
//!
//! Everything here is decided from the entry and the state alone, so that all members decide
//! alike. What would crash etcd is answered with an error, since the log replays at every start.

use api::Code;
use api::etcdserverpb::{
    AlarmRequest, CompactionRequest, DeleteRangeRequest, InternalRaftRequest,
    LeaseCheckpointRequest, LeaseGrantRequest, LeaseRevokeRequest, PutRequest, Request, TxnRequest,
};
use api::membershippb::{Attributes, ClusterMemberAttrSetRequest, ClusterVersionSetRequest};
use bytes::Bytes;
use prost::Message;
use raftpb::{ConfChange, Entry, EntryKind};
use std::sync::Arc;

use crate::applied::{Applied, Effect, MemberChange, ReadError, Reply};
use crate::change::Change;
use crate::cluster::Member;
use crate::quota;
use crate::range;
use crate::store::Store;
use crate::txn;
use crate::wire;
use crate::write::Write;

/// What applying a request comes to.
#[derive(Default)]
struct Outcome {
    body: Vec<u8>,
    change: Option<Arc<Change>>,
    effects: Vec<Effect>,
    /// The quota is exceeded: everything was done as it should be, but the client is told that
    /// there is no space. Doing less here would split the members, whose sizes differ.
    over_quota: bool,
    /// Answers about the cluster have no revision.
    no_revision: bool,
}

impl Store {
    pub(crate) fn apply_entry(&mut self, entry: &Entry) -> Result<Applied, engine::Error> {
        let (request_id, outcome) = match entry.kind {
            EntryKind::Normal if entry.data.is_empty() => (0, Ok(Outcome::default())),
            EntryKind::Normal => match decode(&entry.data) {
                Ok(request) => (request_id(&request), self.apply_request(&request)),
                Err(error) => (wire::request_id(&entry.data), Err(error.into())),
            },
            EntryKind::ConfChange => match ConfChange::decode(&entry.data) {
                Ok(change) => (change.id, self.apply_conf_change(&change)),
                Err(_) => (0, Err(unreadable().into())),
            },
            EntryKind::ConfChangeV2 => (0, Err(unreadable().into())),
        };
        let mut applied = Applied {
            index: entry.index,
            term: entry.term,
            request_id,
            result: Ok(Reply::default()),
            change: None,
            effects: Vec::new(),
        };
        match outcome {
            Ok(outcome) => {
                let revision = if outcome.no_revision { 0 } else { self.shared.revision() };
                applied.result = match outcome.over_quota {
                    true => Err(api::Error::NO_SPACE),
                    false => Ok(Reply { revision, body: Bytes::from(outcome.body) }),
                };
                applied.change = outcome.change;
                applied.effects = outcome.effects;
            }
            Err(Refusal { error: ReadError::Damaged(error), .. }) => return Err(error),
            Err(Refusal { error: ReadError::Refused(error), effects }) => {
                applied.result = Err(error);
                applied.effects = effects;
            }
        }
        Ok(applied)
    }

    fn apply_request(&mut self, request: &InternalRaftRequest) -> Result<Outcome, Refusal> {
        if let Some(outcome) = self.apply_membership(request) {
            return outcome;
        }
        if let Some(request) = &request.range {
            self.refuse_if_corrupt()?;
            let mut body = Vec::new();
            range::read(&self.shared, request, self.shared.revision(), &mut body)?;
            return Ok(Outcome { body, ..Outcome::default() });
        }
        if let Some(request) = &request.put {
            return self.put(request);
        }
        if let Some(request) = &request.delete_range {
            return self.delete_range(request);
        }
        if let Some(request) = &request.txn {
            return self.txn(request);
        }
        if let Some(request) = &request.compaction {
            return self.compact(request);
        }
        if let Some(request) = &request.lease_grant {
            return self.lease_grant(request);
        }
        if let Some(request) = &request.lease_revoke {
            return self.lease_revoke(request);
        }
        if let Some(request) = &request.lease_checkpoint {
            return self.lease_checkpoint(request);
        }
        if let Some(request) = &request.alarm {
            return self.alarm(request);
        }
        let mut effects = Vec::new();
        let engine = &*self.shared.engine;
        match self.shared.auth.write().apply(engine, request, &mut effects) {
            Some(answer) => Ok(Outcome { body: answer?, effects, ..Outcome::default() }),
            None => Err(unreadable().into()),
        }
    }

    fn put(&mut self, request: &PutRequest) -> Result<Outcome, Refusal> {
        self.refuse_if_corrupt()?;
        self.refuse_if_no_space()?;
        txn::must_have_lease(&self.shared, request)?;
        txn::must_exist(&self.shared, request)?;
        let over_quota = !self.allows(quota::put_cost(request));
        let mut write = Write::begin(&self.shared);
        let before = write.put(request)?;
        let mut body = Vec::new();
        if let Some(row) = before {
            wire::put_message(&mut body, 2, &row);
        }
        let change = write.end();
        Ok(self.gated(over_quota, Outcome { body, change, ..Outcome::default() }))
    }

    fn delete_range(&mut self, request: &DeleteRangeRequest) -> Result<Outcome, Refusal> {
        self.refuse_if_corrupt()?;
        let mut write = Write::begin(&self.shared);
        let (deleted, rows) = write.delete_range(request)?;
        let mut body = Vec::new();
        txn::put_deleted(&mut body, deleted, &rows);
        Ok(Outcome { body, change: write.end(), ..Outcome::default() })
    }

    fn txn(&mut self, request: &TxnRequest) -> Result<Outcome, Refusal> {
        self.refuse_if_corrupt()?;
        let cost = quota::txn_cost(request);
        if cost > 0 {
            self.refuse_if_no_space()?;
        }
        let over_quota = !self.allows(cost);
        let mut write = Write::begin(&self.shared);
        let body = txn::apply(&self.shared, &mut write, request)?;
        let change = write.end();
        Ok(self.gated(over_quota, Outcome { body, change, ..Outcome::default() }))
    }

    fn compact(&mut self, request: &CompactionRequest) -> Result<Outcome, Refusal> {
        self.refuse_if_corrupt()?;
        let revision = request.revision;
        self.compactions.schedule(&self.shared, revision)?;
        let effects = vec![Effect::CompactionScheduled { revision }];
        Ok(Outcome { effects, ..Outcome::default() })
    }

    fn lease_grant(&mut self, request: &LeaseGrantRequest) -> Result<Outcome, Refusal> {
        self.refuse_if_corrupt()?;
        self.refuse_if_no_space()?;
        let over_quota = !self.allows(quota::LEASE_GRANT_COST);
        let engine = &*self.shared.engine;
        let id = request.id;
        let ttl = self.shared.leases.write().grant(engine, request, self.config.min_lease_ttl)?;
        let mut body = Vec::new();
        wire::put_int_field(&mut body, 2, id);
        wire::put_int_field(&mut body, 3, ttl);
        let effects = vec![Effect::LeaseGranted { id, ttl }];
        Ok(self.gated(over_quota, Outcome { body, effects, ..Outcome::default() }))
    }

    /// The lease and its keys go together, the keys in key order and in one revision.
    fn lease_revoke(&mut self, request: &LeaseRevokeRequest) -> Result<Outcome, Refusal> {
        self.refuse_if_corrupt()?;
        let id = request.id;
        let lease = self.shared.leases.read().get(id).cloned();
        let keys = lease.ok_or(api::Error::LEASE_NOT_FOUND)?.keys;
        let mut write = Write::begin(&self.shared);
        for key in keys {
            write.delete_key(&key)?;
        }
        self.shared.leases.write().remove(&*self.shared.engine, id)?;
        let effects = vec![Effect::LeaseRevoked { id }];
        Ok(Outcome { change: write.end(), effects, ..Outcome::default() })
    }

    fn lease_checkpoint(&mut self, request: &LeaseCheckpointRequest) -> Result<Outcome, Refusal> {
        let durable = self.config.lease_checkpoint_persist
            || self.shared.cluster.read().version_is_at_least(3, 6);
        let mut effects = Vec::new();
        for checkpoint in &request.checkpoints {
            let engine = &*self.shared.engine;
            if !self.shared.leases.write().checkpoint(engine, checkpoint, durable)? {
                // Those before it stay checkpointed.
                let error = api::Error::LEASE_NOT_FOUND.into();
                return Err(Refusal { error, effects });
            }
            let (id, remaining) = (checkpoint.id, checkpoint.remaining_ttl);
            effects.push(Effect::LeaseCheckpointed { id, remaining });
        }
        Ok(Outcome { effects, ..Outcome::default() })
    }

    fn alarm(&mut self, request: &AlarmRequest) -> Result<Outcome, Refusal> {
        let (alarms, changed) = self.shared.alarms.write().apply(&*self.shared.engine, request)?;
        let mut body = Vec::new();
        for alarm in alarms {
            wire::put_message(&mut body, 2, &alarm.encode_to_vec());
        }
        let effects = if changed { vec![Effect::AlarmsChanged] } else { Vec::new() };
        Ok(Outcome { body, effects, ..Outcome::default() })
    }

    /// Versions, and what members tell about themselves.
    fn apply_membership(
        &mut self,
        request: &InternalRaftRequest,
    ) -> Option<Result<Outcome, Refusal>> {
        let engine = &*self.shared.engine;
        let with = |effect: Option<Effect>| Outcome {
            effects: effect.into_iter().collect(),
            ..Outcome::default()
        };
        let mut cluster = self.shared.cluster.write();
        let outcome = if let Some(request) = &request.cluster_version_set {
            cluster
                .set_version(engine, &request.ver)
                .map(|set| with(set.then(|| Effect::ClusterVersionSet(request.ver.clone()))))
        } else if let Some(request) = &request.cluster_member_attr_set {
            let id = request.member_id;
            cluster
                .set_attributes(engine, request)
                .map(|set| with(set.then_some(Effect::MemberAttributesSet { id })))
        } else if let Some(request) = &request.downgrade_info_set {
            let target = request.enabled.then(|| request.ver.clone());
            let effect = Effect::DowngradeSet { target };
            cluster.set_downgrade(engine, request).map(|()| with(Some(effect)))
        } else if request.downgrade_version_test.is_some() {
            Ok(Outcome::default())
        } else {
            return None;
        };
        Some(outcome.map_err(Refusal::from))
    }

    fn apply_conf_change(&mut self, change: &ConfChange) -> Result<Outcome, Refusal> {
        let mut cluster = self.shared.cluster.write();
        let max_learners = self.config.max_learners;
        let (changed, result) =
            cluster.apply_conf_change(&*self.shared.engine, change, max_learners)?;
        let mut body = Vec::new();
        let mut list = 2;
        if let MemberChange::Added(member) = &changed.member {
            // The new member alone, and then all of them.
            let bare = Member { name: String::new(), client_urls: vec![], ..member.clone() };
            wire::put_message(&mut body, 2, &bare.to_wire().encode_to_vec());
            list = 3;
        }
        for member in cluster.members.values() {
            wire::put_message(&mut body, list, &member.to_wire().encode_to_vec());
        }
        let effects = vec![Effect::ConfChanged(Box::new(changed))];
        match result {
            Ok(()) => Ok(Outcome { body, effects, no_revision: true, ..Outcome::default() }),
            Err(error) => Err(Refusal { error: error.into(), effects }),
        }
    }

    fn refuse_if_corrupt(&self) -> Result<(), api::Error> {
        if self.shared.alarms.read().corrupt() { Err(api::Error::CORRUPT) } else { Ok(()) }
    }

    fn refuse_if_no_space(&self) -> Result<(), api::Error> {
        if self.shared.alarms.read().no_space() { Err(api::Error::NO_SPACE) } else { Ok(()) }
    }

    fn allows(&self, cost: usize) -> bool {
        quota::allows(self.shared.quota_bytes, self.shared.size(), cost)
    }

    fn gated(&self, over_quota: bool, mut outcome: Outcome) -> Outcome {
        if over_quota {
            outcome.over_quota = true;
            outcome.effects.push(Effect::QuotaExceeded);
        }
        outcome
    }
}

/// A request that was not carried out, or damage.
struct Refusal {
    error: ReadError,
    effects: Vec<Effect>,
}

impl<E: Into<ReadError>> From<E> for Refusal {
    fn from(error: E) -> Refusal {
        Refusal { error: error.into(), effects: Vec::new() }
    }
}

fn request_id(request: &InternalRaftRequest) -> u64 {
    match &request.header {
        Some(header) if request.id == 0 => header.id,
        _ => request.id,
    }
}

/// Reads an entry, also one that an etcd older than 3.5 wrote in the manner of its v2 store.
fn decode(data: &Bytes) -> Result<InternalRaftRequest, api::Error> {
    match InternalRaftRequest::decode(data.clone()) {
        Ok(InternalRaftRequest { v2: Some(request), id, .. }) => translate_v2(&request, id),
        Ok(request) => Ok(request),
        Err(_) => {
            let request = Request::decode(data.clone()).map_err(|_| unreadable())?;
            translate_v2(&request, 0)
        }
    }
}

/// Two writes of the v2 store have a meaning still: a member's attributes and the cluster version.
fn translate_v2(request: &Request, id: u64) -> Result<InternalRaftRequest, api::Error> {
    let id = if id == 0 { request.id() } else { id };
    let translated = InternalRaftRequest { id, ..InternalRaftRequest::default() };
    if request.method() != "PUT" {
        return Err(unreadable());
    }
    if request.path() == "/0/version" {
        let ver = request.val().to_owned();
        let cluster_version_set = Some(ClusterVersionSetRequest { ver });
        return Ok(InternalRaftRequest { cluster_version_set, ..translated });
    }
    let member = request.path().strip_prefix("/0/members/");
    let member = member.and_then(|path| path.strip_suffix("/attributes"));
    let member_id = member.and_then(|hex| u64::from_str_radix(hex, 16).ok());
    let Some(member_id) = member_id else { return Err(unreadable()) };
    let attributes: Member = serde_json::from_str(request.val()).map_err(|_| unreadable())?;
    let member_attributes =
        Some(Attributes { name: attributes.name, client_urls: attributes.client_urls });
    let cluster_member_attr_set =
        Some(ClusterMemberAttrSetRequest { member_id, member_attributes });
    Ok(InternalRaftRequest { cluster_member_attr_set, ..translated })
}

fn unreadable() -> api::Error {
    api::Error::new(
        Code::Internal,
        "althing: this entry of the log asks for nothing that this version knows; it was skipped",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_the_v2_store_are_understood() {
        let request = Request {
            id: Some(9),
            method: Some("PUT".into()),
            path: Some("/0/members/8e9e05c52164694d/attributes".into()),
            val: Some(r#"{"name":"a","clientURLs":["http://a:1"]}"#.into()),
            ..Request::default()
        };
        let translated = decode(&request.encode_to_vec().into()).expect("it is understood");
        assert_eq!(request_id(&translated), 9);
        let set = translated.cluster_member_attr_set.expect("attributes");
        assert_eq!(set.member_id, 0x8e9e05c52164694d);
        assert_eq!(set.member_attributes.expect("attributes").name, "a");
    }
}
