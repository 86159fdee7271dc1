//! Leases: which exist, how long they live, and which keys die with them.
//!
//! Time is not kept here. The leader's clock decides when a lease has run out, and then proposes
//! its end; here it ends when that entry is applied.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use api::etcdserverpb::{LeaseCheckpoint, LeaseGrantRequest};
use api::leasepb;
use engine::{Bucket, Engine};
use prost::Message;

/// Longer TTLs are refused.
pub const LEASE_TTL_MAX: i64 = 9_000_000_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    pub id: i64,
    /// Granted seconds.
    pub ttl: i64,
    /// Seconds that a new leader gives it, from the last checkpoint; 0: the granted ones.
    pub remaining: i64,
    /// Attached keys, in key order.
    pub keys: BTreeSet<Arc<[u8]>>,
}

#[derive(Debug, Default)]
pub(crate) struct Leases {
    leases: BTreeMap<i64, Lease>,
    /// A key has at most one lease.
    holders: HashMap<Arc<[u8]>, i64>,
}

impl Leases {
    pub fn restore(engine: &dyn Engine) -> Leases {
        let mut leases = Leases::default();
        for (_, record) in engine.bucket(Bucket::Lease) {
            let Ok(stored) = leasepb::Lease::decode(record) else { continue };
            let (id, ttl, remaining) = (stored.id, stored.ttl, stored.remaining_ttl);
            leases.leases.insert(id, Lease { id, ttl, remaining, keys: BTreeSet::new() });
        }
        leases
    }

    /// Grants a lease and returns its effective TTL.
    pub fn grant(
        &mut self,
        engine: &dyn Engine,
        request: &LeaseGrantRequest,
        ttl_min: i64,
    ) -> Result<i64, GrantError> {
        let id = request.id;
        if id == 0 {
            return Err(api::Error::LEASE_NOT_FOUND.into());
        }
        if request.ttl > LEASE_TTL_MAX {
            return Err(api::Error::LEASE_TTL_TOO_LARGE.into());
        }
        if self.leases.contains_key(&id) {
            return Err(api::Error::LEASE_EXISTS.into());
        }
        let ttl = request.ttl.max(ttl_min);
        let lease = Lease { id, ttl, remaining: 0, keys: BTreeSet::new() };
        persist(engine, &lease)?;
        self.leases.insert(id, lease);
        Ok(ttl)
    }

    /// Forgets a lease; its keys must have been deleted.
    pub fn remove(&mut self, engine: &dyn Engine, id: i64) -> engine::Result<()> {
        engine.delete(Bucket::Lease, &id.to_be_bytes())?;
        if let Some(lease) = self.leases.remove(&id) {
            for key in lease.keys {
                self.holders.remove(&key);
            }
        }
        Ok(())
    }

    /// `false`: there is no such lease.
    pub fn checkpoint(
        &mut self,
        engine: &dyn Engine,
        checkpoint: &LeaseCheckpoint,
        durable: bool,
    ) -> engine::Result<bool> {
        let Some(lease) = self.leases.get_mut(&checkpoint.id) else { return Ok(false) };
        lease.remaining = checkpoint.remaining_ttl;
        if durable {
            persist(engine, lease)?;
        }
        Ok(true)
    }

    /// Moves a key to a lease; 0 is none, and so is one that does not exist.
    pub fn attach(&mut self, key: &[u8], id: i64) {
        // Most stores have no leases, and then no put need be looked up.
        if id == 0 && self.holders.is_empty() {
            return;
        }
        if self.holders.get(key) == Some(&id) {
            return;
        }
        if let Some((key, old)) = self.holders.remove_entry(key)
            && let Some(lease) = self.leases.get_mut(&old)
        {
            lease.keys.remove(&key);
        }
        if let Some(lease) = self.leases.get_mut(&id) {
            let key: Arc<[u8]> = key.into();
            lease.keys.insert(key.clone());
            self.holders.insert(key, id);
        }
    }

    /// Some key is attached to some lease.
    pub fn has_keys(&self) -> bool {
        !self.holders.is_empty()
    }

    pub fn get(&self, id: i64) -> Option<&Lease> {
        self.leases.get(&id)
    }

    pub fn contains(&self, id: i64) -> bool {
        self.leases.contains_key(&id)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Lease> {
        self.leases.values()
    }
}

pub(crate) type GrantError = crate::applied::ReadError;

fn persist(engine: &dyn Engine, lease: &Lease) -> engine::Result<()> {
    let record = leasepb::Lease { id: lease.id, ttl: lease.ttl, remaining_ttl: lease.remaining };
    engine.put(Bucket::Lease, &lease.id.to_be_bytes(), &record.encode_to_vec())
}
