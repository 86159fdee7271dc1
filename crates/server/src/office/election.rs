//! Elections: a lock whose holder has something to say.

use super::lock::range_kv;
use super::recipe::{
    contender_key, created_at, decode, delete_op, key_request, oldest, prefix_of, put_op, range_op,
};
use super::{Caller, Office};
use api::etcdserverpb::TxnRequest;
use api::mvccpb::{Event, KeyValue, event::EventType};
use api::v3electionpb::{
    CampaignRequest, CampaignResponse, LeaderKey, LeaderRequest, LeaderResponse, ProclaimRequest,
    ResignRequest,
};
use api::{Error, KeyRange};
use bytes::Bytes;
use prost::Message;
use store::Change;
use tokio::sync::oneshot;

impl Office {
    /// Stands for election and answers when elected.
    pub(super) async fn campaign(
        &self,
        data: Bytes,
        cancelled: oneshot::Receiver<()>,
    ) -> Result<Bytes, Error> {
        let request: CampaignRequest = decode(data)?;
        let lease = self.contender_lease(request.lease).await.map_err(Error::as_unknown)?;
        let prefix = prefix_of(&request.name);
        let key = contender_key(&prefix, lease);
        let txn = TxnRequest {
            compare: vec![created_at(&key, 0)],
            success: vec![put_op(&key, request.value.clone(), lease)],
            failure: vec![range_op(key_request(&key))],
        };
        let (response, revision) = self.txn(&txn).await.map_err(Error::as_unknown)?;
        let mut leader = LeaderKey { name: request.name, key, rev: revision, lease };
        if !response.succeeded {
            // The same lease stands already: it may have something new to say.
            let standing = range_kv(&response, 0).cloned().unwrap_or_default();
            leader.rev = standing.create_revision;
            if standing.value != request.value
                && let Err(error) = self.proclaim_as(&leader, request.value).await
            {
                let _best_effort = self.resign_as(&leader).await;
                return Err(error.as_unknown());
            }
        }
        tokio::select! {
            biased;
            _ = cancelled => {
                let _the_lease_will = self.resign_as(&leader).await;
                return Err(Error::CONTEXT_CANCELED.as_unknown());
            }
            elected = self.wait_for_older(&prefix, leader.rev) => elected.map_err(Error::as_unknown)?,
        }
        let body = CampaignResponse { header: None, leader: Some(leader) }.encode_to_vec();
        Ok(self.with_header(revision, &body))
    }

    pub(super) async fn proclaim(&self, data: Bytes) -> Result<Bytes, Error> {
        let request: ProclaimRequest = decode(data)?;
        let leader = request.leader.ok_or(Error::ELECTION_LEADER_MISSING)?;
        let revision = self.proclaim_as(&leader, request.value).await.map_err(Error::as_unknown)?;
        Ok(self.header(revision))
    }

    async fn proclaim_as(&self, leader: &LeaderKey, value: Bytes) -> Result<i64, Error> {
        let txn = TxnRequest {
            compare: vec![created_at(&leader.key, leader.rev)],
            success: vec![put_op(&leader.key, value, leader.lease)],
            failure: vec![],
        };
        let (response, revision) = self.txn(&txn).await?;
        if response.succeeded { Ok(revision) } else { Err(Error::ELECTION_NOT_LEADER) }
    }

    pub(super) async fn resign(&self, data: Bytes) -> Result<Bytes, Error> {
        let request: ResignRequest = decode(data)?;
        let leader = request.leader.ok_or(Error::ELECTION_LEADER_MISSING)?;
        let revision = self.resign_as(&leader).await.map_err(Error::as_unknown)?;
        Ok(self.header(revision))
    }

    async fn resign_as(&self, leader: &LeaderKey) -> Result<i64, Error> {
        let txn = TxnRequest {
            compare: vec![created_at(&leader.key, leader.rev)],
            success: vec![delete_op(&leader.key)],
            failure: vec![],
        };
        Ok(self.txn(&txn).await?.1)
    }

    pub(super) async fn leader(&self, data: Bytes) -> Result<Bytes, Error> {
        let request: LeaderRequest = decode(data)?;
        let found = self.range(&oldest(&prefix_of(&request.name))).await;
        let (response, revision) = found.map_err(Error::as_unknown)?;
        let kv = response.kvs.into_iter().next().ok_or(Error::ELECTION_NO_LEADER)?;
        Ok(self.leader_response(revision, kv))
    }

    fn leader_response(&self, revision: i64, kv: KeyValue) -> Bytes {
        let body = LeaderResponse { header: None, kv: Some(kv) }.encode_to_vec();
        self.with_header(revision, &body)
    }

    /// Tells who leads, and whatever every leader says, until the caller goes.
    pub(super) async fn observe(
        &self,
        caller: &Caller,
        data: Bytes,
        cancelled: oneshot::Receiver<()>,
    ) {
        let request: LeaderRequest = match decode(data) {
            Ok(request) => request,
            Err(error) => return caller.end(Err(error)),
        };
        tokio::select! {
            biased;
            _ = cancelled => {}
            // A failure inside ends the stream quietly.
            _failed = self.observe_prefix(caller, prefix_of(&request.name)) => caller.end(Ok(())),
        }
    }

    async fn observe_prefix(&self, caller: &Caller, prefix: Bytes) -> Result<(), Error> {
        // Registered once and before the first look: nothing between two looks is missed.
        let mut interest = self.0.interests.register(KeyRange::prefix(prefix.clone()));
        // All up to here was seen, by looking or by hearing of it.
        let mut seen = 0;
        loop {
            let (found, revision) = self.range(&oldest(&prefix)).await?;
            let leader = match found.kvs.into_iter().next() {
                Some(kv) => {
                    seen = revision.max(seen);
                    caller.message(self.leader_response(revision, kv.clone()));
                    kv
                }
                None => {
                    seen = revision.max(seen);
                    let kv = loop {
                        let change = interest.next().await.ok_or(Error::LOST_WATCHER)?;
                        if change.revision <= seen {
                            continue;
                        }
                        seen = change.revision;
                        if let Some(kv) = puts(&change).find(|kv| kv.key.starts_with(&prefix)) {
                            break kv;
                        }
                    };
                    caller.message(self.leader_response(kv.mod_revision, kv.clone()));
                    kv
                }
            };
            'leads: loop {
                let change = interest.next().await.ok_or(Error::LOST_WATCHER)?;
                if change.revision <= seen {
                    continue;
                }
                seen = change.revision;
                for event in events(&change) {
                    let kv = event.kv.unwrap_or_default();
                    if kv.key != leader.key {
                        continue;
                    }
                    if event.r#type == EventType::Delete as i32 {
                        break 'leads;
                    }
                    caller.message(self.leader_response(change.revision, kv));
                }
            }
        }
    }
}

fn events(change: &Change) -> impl Iterator<Item = Event> {
    // We encoded them ourselves.
    change.events.iter().filter_map(|event| Event::decode(event.encoded.clone()).ok())
}

fn puts(change: &Change) -> impl Iterator<Item = KeyValue> {
    events(change).filter(|e| e.r#type == EventType::Put as i32).filter_map(|e| e.kv)
}
