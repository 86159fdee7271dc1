//! The steps that locks and elections are made of.
//!
//! A contender owns a key below a common prefix, attached to a lease; whoever's key was created
//! first holds the lock or leads. Everybody else waits for the one just before them to go, so that
//! a release wakes one waiter and not all.

use super::Office;
use api::etcdserverpb::range_request::{SortOrder, SortTarget};
use api::etcdserverpb::{
    Compare, DeleteRangeRequest, LeaseGrantRequest, LeaseGrantResponse, PutRequest, RangeRequest,
    RangeResponse, RequestOp, TxnRequest, TxnResponse, compare, request_op,
};
use api::mvccpb::KeyValue;
use api::{Error, KeyRange};
use bytes::Bytes;
use prost::Message;
use store::ReadError;

const LEASE_SECONDS: i64 = 60;

impl Office {
    /// The lease of a contender: its own, or a fresh one of a minute that nobody keeps alive.
    pub(super) async fn contender_lease(&self, lease: i64) -> Result<i64, Error> {
        if lease != 0 {
            return Ok(lease);
        }
        let id = (self.draw_id() & i64::MAX as u64) as i64;
        let request = LeaseGrantRequest { ttl: LEASE_SECONDS, id };
        let reply = self.propose(8, &request.encode_to_vec()).await?;
        Ok(decode::<LeaseGrantResponse>(reply.body)?.id)
    }

    /// A transaction's answer and its revision.
    pub(super) async fn txn(&self, request: &TxnRequest) -> Result<(TxnResponse, i64), Error> {
        let cost = store::txn_cost(request);
        if cost > 0 && !self.config().view.quota_allows(cost) {
            return Err(Error::NO_SPACE);
        }
        store::check_txn(request, self.config().max_txn_ops)?;
        let reply = self.propose(6, &request.encode_to_vec()).await?;
        Ok((decode(reply.body)?, reply.revision))
    }

    /// A fresh read and its revision.
    pub(super) async fn range(
        &self,
        request: &RangeRequest,
    ) -> Result<(RangeResponse, i64), Error> {
        store::check_range(request)?;
        if !request.serializable {
            self.barrier().await?;
        }
        let reply = self.config().view.range(request).map_err(refusal)?;
        Ok((decode(reply.body)?, reply.revision))
    }

    pub(super) async fn delete(&self, key: Bytes) -> Result<i64, Error> {
        let request = DeleteRangeRequest { key, ..DeleteRangeRequest::default() };
        store::check_delete_range(&request)?;
        Ok(self.propose(5, &request.encode_to_vec()).await?.revision)
    }

    /// Waits until no key with the prefix is older than `create_revision`.
    pub(super) async fn wait_for_older(
        &self,
        prefix: &Bytes,
        create_revision: i64,
    ) -> Result<(), Error> {
        let request = RangeRequest {
            limit: 1,
            sort_order: SortOrder::Descend as i32,
            sort_target: SortTarget::Create as i32,
            max_create_revision: create_revision - 1,
            ..prefix_request(prefix)
        };
        while let Some(older) = self.range(&request).await?.0.kvs.into_iter().next() {
            self.wait_until_gone(&older).await?;
        }
        Ok(())
    }

    /// Waits until this incarnation of the key has ended.
    async fn wait_until_gone(&self, kv: &KeyValue) -> Result<(), Error> {
        let mut interest = self.0.interests.register(KeyRange::One(kv.key.clone()));
        let request = RangeRequest {
            key: kv.key.clone(),
            serializable: true,
            keys_only: true,
            ..RangeRequest::default()
        };
        loop {
            let (found, _) = self.range(&request).await?;
            if found.kvs.first().is_none_or(|now| now.create_revision != kv.create_revision) {
                return Ok(());
            }
            if interest.next().await.is_none() {
                return Err(Error::LOST_WATCHER);
            }
        }
    }
}

/// `name/lease`, the lease in hexadecimal; a negative one with its sign.
pub fn contender_key(prefix: &[u8], lease: i64) -> Bytes {
    let lease =
        if lease < 0 { format!("-{:x}", lease.unsigned_abs()) } else { format!("{lease:x}") };
    [prefix, lease.as_bytes()].concat().into()
}

pub fn prefix_of(name: &[u8]) -> Bytes {
    [name, b"/"].concat().into()
}

pub fn prefix_request(prefix: &Bytes) -> RangeRequest {
    RangeRequest { key: prefix.clone(), range_end: api::prefix_end(prefix), ..Default::default() }
}

/// The key with the prefix that was created first.
pub fn oldest(prefix: &Bytes) -> RangeRequest {
    RangeRequest {
        limit: 1,
        sort_order: SortOrder::Ascend as i32,
        sort_target: SortTarget::Create as i32,
        ..prefix_request(prefix)
    }
}

pub fn created_at(key: &Bytes, revision: i64) -> Compare {
    Compare {
        result: compare::CompareResult::Equal as i32,
        target: compare::CompareTarget::Create as i32,
        key: key.clone(),
        target_union: Some(compare::TargetUnion::CreateRevision(revision)),
        ..Compare::default()
    }
}

pub fn put_op(key: &Bytes, value: Bytes, lease: i64) -> RequestOp {
    let put = PutRequest { key: key.clone(), value, lease, ..PutRequest::default() };
    RequestOp { request: Some(request_op::Request::RequestPut(put)) }
}

pub fn range_op(request: RangeRequest) -> RequestOp {
    RequestOp { request: Some(request_op::Request::RequestRange(request)) }
}

pub fn delete_op(key: &Bytes) -> RequestOp {
    let delete = DeleteRangeRequest { key: key.clone(), ..DeleteRangeRequest::default() };
    RequestOp { request: Some(request_op::Request::RequestDeleteRange(delete)) }
}

pub fn key_request(key: &Bytes) -> RangeRequest {
    RangeRequest { key: key.clone(), ..RangeRequest::default() }
}

pub fn decode<M: Message + Default>(bytes: Bytes) -> Result<M, Error> {
    M::decode(bytes).map_err(crate::desk::malformed)
}

pub fn refusal(error: ReadError) -> Error {
    match error {
        ReadError::Refused(error) => error,
        ReadError::Damaged(damage) => Error::with_text(api::Code::DataLoss, damage.to_string()),
    }
}
