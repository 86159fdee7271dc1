//! Locks: a queue of keys, the oldest of which holds.

use super::Office;
use super::recipe::{
    contender_key, created_at, decode, key_request, oldest, prefix_of, put_op, range_op,
};
use api::Error;
use api::etcdserverpb::{TxnRequest, TxnResponse, response_op};
use api::mvccpb::KeyValue;
use api::v3lockpb::{LockRequest, LockResponse, UnlockRequest};
use bytes::Bytes;
use prost::Message;
use tokio::sync::oneshot;

/// Where in the queue a contender stands.
enum Place {
    First {
        revision: i64,
    },
    /// Its key was created at `mine`, and there are older ones.
    Behind {
        mine: i64,
    },
}

impl Office {
    /// Joins the queue and answers when all before are gone.
    pub(super) async fn lock(
        &self,
        data: Bytes,
        cancelled: oneshot::Receiver<()>,
    ) -> Result<Bytes, Error> {
        let request: LockRequest = decode(data)?;
        let lease = self.contender_lease(request.lease).await.map_err(Error::as_unknown)?;
        let prefix = prefix_of(&request.name);
        let key = contender_key(&prefix, lease);
        // Refused here, nothing has changed: a lock that this lease holds already stays held.
        let place = self.join(&prefix, &key, lease).await.map_err(Error::as_unknown)?;
        let held = tokio::select! {
            biased;
            _ = cancelled => Err(Error::CONTEXT_CANCELED),
            held = self.await_turn(&prefix, &key, place) => held,
        };
        match held {
            Ok(revision) => {
                let body = LockResponse { header: None, key }.encode_to_vec();
                Ok(self.with_header(revision, &body))
            }
            Err(error) => {
                // The place in the queue is given back; the lease would do it later anyway.
                let _the_lease_will = self.delete(key).await;
                Err(error.as_unknown())
            }
        }
    }

    async fn join(&self, prefix: &Bytes, key: &Bytes, lease: i64) -> Result<Place, Error> {
        let request = TxnRequest {
            compare: vec![created_at(key, 0)],
            success: vec![put_op(key, Bytes::new(), lease), range_op(oldest(prefix))],
            failure: vec![range_op(key_request(key)), range_op(oldest(prefix))],
        };
        let (response, revision) = self.txn(&request).await?;
        let mine = match response.succeeded {
            true => revision,
            false => range_kv(&response, 0).map_or(0, |kv| kv.create_revision),
        };
        let holder = range_kv(&response, 1);
        Ok(match holder.is_none_or(|holder| holder.create_revision == mine) {
            true => Place::First { revision },
            false => Place::Behind { mine },
        })
    }

    async fn await_turn(&self, prefix: &Bytes, key: &Bytes, place: Place) -> Result<i64, Error> {
        let mine = match place {
            Place::First { revision } => return Ok(revision),
            Place::Behind { mine } => mine,
        };
        self.wait_for_older(prefix, mine).await?;
        let (own, revision) = self.range(&key_request(key)).await?;
        if own.kvs.is_empty() {
            // The lease ended while we waited, and the key with it.
            return Err(Error::MUTEX_SESSION_EXPIRED);
        }
        Ok(revision)
    }

    /// Whoever knows the key may unlock.
    pub(super) async fn unlock(&self, data: Bytes) -> Result<Bytes, Error> {
        let request: UnlockRequest = decode(data)?;
        let revision = self.delete(request.key).await.map_err(Error::as_unknown)?;
        Ok(self.header(revision))
    }
}

/// The first pair of the range that is the transaction's `at`-th operation.
pub fn range_kv(response: &TxnResponse, at: usize) -> Option<&KeyValue> {
    match response.responses.get(at)?.response.as_ref()? {
        response_op::Response::ResponseRange(range) => range.kvs.first(),
        _ => None,
    }
}
