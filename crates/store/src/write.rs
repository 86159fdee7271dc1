//! Changing keys: one request's puts and deletes, which share one main revision.

use std::sync::Arc;

use api::KeyRange;
use api::etcdserverpb::{DeleteRangeRequest, PutRequest};
use bytes::Bytes;
use engine::Revision;

use crate::applied::ReadError;
use crate::change::{Change, Event, Pair, encode_delete};
use crate::index::Rev;
use crate::range;
use crate::shared::Shared;
use crate::wire::Kv;

/// A request while it changes keys. Readers see nothing of it before [`Write::end`].
pub(crate) struct Write<'a> {
    shared: &'a Shared,
    /// The revision that is taken if anything changes.
    main: i64,
    events: Vec<Event>,
}

impl<'a> Write<'a> {
    pub fn begin(shared: &'a Shared) -> Write<'a> {
        Write { shared, main: shared.revision() + 1, events: Vec::new() }
    }

    /// The revision that a put of this request has.
    pub fn main(&self) -> i64 {
        self.main
    }

    /// The newest revision that a read within this request sees.
    pub fn revision(&self) -> i64 {
        if self.events.is_empty() { self.main - 1 } else { self.main }
    }

    /// Makes the changes visible, all at once.
    pub fn end(self) -> Option<Arc<Change>> {
        if self.events.is_empty() {
            return None;
        }
        self.shared.set_revision(self.main);
        Some(Arc::new(Change { revision: self.main, events: self.events }))
    }

    /// Puts a key. The lease was checked before, and so was the key if it must exist. Returns the
    /// row before, if that was asked for.
    pub fn put(&mut self, request: &PutRequest) -> Result<Option<Bytes>, ReadError> {
        let rev = self.next_rev();
        let placed = self.shared.index.write().put(&request.key, rev);
        let needed = request.prev_kv || request.ignore_value || request.ignore_lease;
        let before = match placed.replaced {
            Some(replaced) if needed => Some(self.shared.row(replaced, self.main)?),
            _ => None,
        };
        let kept = before.as_deref().map(Kv::read).unwrap_or_default();
        let lease = if request.ignore_lease { kept.lease } else { request.lease };
        let encoded = Pair {
            key: &request.key,
            create_revision: placed.created,
            mod_revision: self.main,
            version: placed.version,
            value: if request.ignore_value { kept.value } else { &request.value },
            lease,
        }
        .encode();
        self.shared.engine.append(rev.into(), false, encoded.row)?;
        self.attach(&request.key, lease);
        self.events.push(Event {
            key: encoded.key,
            delete: false,
            create: placed.created == self.main,
            encoded: encoded.event,
            previous: placed.previous.map(Revision::from),
        });
        Ok(before.filter(|_| request.prev_kv))
    }

    /// Deletes the keys of a range that exist, in key order. Returns how many, and their rows if
    /// they were asked for.
    pub fn delete_range(
        &mut self,
        request: &DeleteRangeRequest,
    ) -> Result<(i64, Vec<Bytes>), ReadError> {
        let range = KeyRange::new(request.key.clone(), request.range_end.clone());
        let mut doomed: Vec<(Box<[u8]>, Rev)> = Vec::new();
        let mut after: Option<Box<[u8]>> = None;
        loop {
            let index = self.shared.index.read();
            after =
                index.walk(&range, after.as_deref(), self.main, range::CHUNK_KEYS, |key, found| {
                    doomed.push((key.into(), found.modified));
                    true
                });
            if after.is_none() {
                break;
            }
        }
        let mut rows = Vec::new();
        for (key, replaced) in &doomed {
            if request.prev_kv {
                rows.push(self.shared.row(*replaced, self.main)?);
            }
            self.delete(key)?;
        }
        Ok((doomed.len() as i64, rows))
    }

    /// Deletes one key, if it exists.
    pub fn delete_key(&mut self, key: &[u8]) -> Result<(), ReadError> {
        let exists = self.shared.index.read().newest(key).is_some();
        if exists { self.delete(key) } else { Ok(()) }
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), ReadError> {
        let rev = self.next_rev();
        let previous = self.shared.index.write().delete(key, rev).map(Revision::from);
        let encoded = encode_delete(key, self.main);
        self.shared.engine.append(rev.into(), true, encoded.row)?;
        self.attach(key, 0);
        let (key, encoded) = (encoded.key, encoded.event);
        self.events.push(Event { key, delete: true, create: false, encoded, previous });
        Ok(())
    }

    fn next_rev(&self) -> Rev {
        Rev { main: self.main, sub: self.events.len() as u32 }
    }

    /// The key leaves its old lease and joins the new one; 0 is no lease.
    fn attach(&self, key: &[u8], lease: i64) {
        if lease != 0 || self.shared.leases.read().has_keys() {
            self.shared.leases.write().attach(key, lease);
        }
    }
}
