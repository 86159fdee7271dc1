//! A store that is nothing but its history, and responses in words.

use api::etcdserverpb::WatchResponse;
use api::mvccpb::{self, KeyValue, event::EventType};
use bytes::{Bytes, BytesMut};
use engine::Revision;
use prost::Message;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use store::{Change, Event};
use watch::{Delivery, History, HistoryError};

pub struct Model {
    /// All changes, from revision 2 on.
    pub changes: Vec<Arc<Change>>,
    pub compacted: i64,
    /// Revisions whose rows cannot be read.
    pub damaged: BTreeSet<i64>,
    /// What was read: first and last revision.
    pub reads: RefCell<Vec<(i64, i64)>>,
    /// How many pairs were asked for.
    pub pairs_read: Cell<usize>,
    /// Every row, `None` where its key was deleted, and the rows of each key.
    rows: BTreeMap<Revision, Option<KeyValue>>,
    versions: BTreeMap<Bytes, Vec<Revision>>,
}

impl Model {
    pub fn new() -> Model {
        Model {
            changes: Vec::new(),
            compacted: -1,
            damaged: BTreeSet::new(),
            reads: RefCell::default(),
            pairs_read: Cell::default(),
            rows: BTreeMap::new(),
            versions: BTreeMap::new(),
        }
    }

    pub fn revision(&self) -> i64 {
        self.changes.len() as i64 + 1
    }

    /// Puts and deletes keys in one revision. Deletes of what is not there do nothing.
    pub fn write(&mut self, ops: &[(Bytes, Option<Bytes>)]) -> Option<Arc<Change>> {
        let revision = self.revision() + 1;
        let mut events = Vec::new();
        for (key, value) in ops {
            let before = self.last(key, i64::MAX);
            let kv = value.as_ref().map(|value| KeyValue {
                key: key.clone(),
                create_revision: before.as_ref().map_or(revision, |kv| kv.create_revision),
                mod_revision: revision,
                version: before.as_ref().map_or(1, |kv| kv.version + 1),
                value: value.clone(),
                lease: 0,
            });
            if kv.is_none() && before.is_none() {
                continue;
            }
            let gone = KeyValue { key: key.clone(), mod_revision: revision, ..KeyValue::default() };
            let delete = kv.is_none();
            let kind = if delete { EventType::Delete } else { EventType::Put };
            let create = kv.as_ref().is_some_and(|kv| kv.create_revision == revision);
            let event = mvccpb::Event {
                r#type: kind as i32,
                kv: Some(kv.clone().unwrap_or(gone)),
                prev_kv: None,
            };
            let previous = self.version(key, revision - 1);
            let row = Revision::new(revision, events.len() as i64);
            self.rows.insert(row, kv);
            self.versions.entry(key.clone()).or_default().push(row);
            events.push(Event {
                key: key.clone(),
                delete,
                create,
                encoded: event.encode_to_vec().into(),
                previous,
            });
        }
        if events.is_empty() {
            return None;
        }
        let change = Arc::new(Change { revision, events });
        self.changes.push(change.clone());
        Some(change)
    }

    /// A key as of a revision.
    pub fn last(&self, key: &[u8], revision: i64) -> Option<KeyValue> {
        self.rows[&self.version(key, revision)?].clone()
    }

    /// The row of a key that exists as of a revision.
    fn version(&self, key: &[u8], revision: i64) -> Option<Revision> {
        let rows = self.versions.get(key)?;
        let last = rows.iter().rev().find(|row| row.main <= revision)?;
        self.rows[last].is_some().then_some(*last)
    }

    fn check_readable(&self, revision: i64) -> Result<(), HistoryError> {
        if self.damaged.contains(&revision) {
            let error = engine::Error::Damaged { file: "model".into(), offset: 0, what: "test" };
            return Err(error.into());
        }
        Ok(())
    }
}

impl History for Model {
    fn compacted(&self) -> i64 {
        self.compacted
    }

    fn changes(
        &self,
        from: i64,
        upto: i64,
        revisions_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<Arc<Change>>, HistoryError> {
        assert!(from <= upto, "a read of nothing");
        if from < self.compacted {
            return Err(HistoryError::Compacted);
        }
        let mut bytes = 0;
        let wanted = self.changes.iter().skip_while(|change| change.revision < from);
        let wanted = wanted.take_while(|change| change.revision <= upto).take(revisions_max);
        let mut read = Vec::new();
        for change in wanted {
            self.check_readable(change.revision)?;
            if bytes >= bytes_max {
                break;
            }
            bytes += change.events.iter().map(|event| event.encoded.len()).sum::<usize>();
            read.push(change.clone());
        }
        let last = read.last().map_or(upto, |change| change.revision);
        self.reads.borrow_mut().push((from, last));
        Ok(read)
    }

    fn previous_kv(
        &self,
        revision: i64,
        previous: Revision,
    ) -> Result<Option<Bytes>, HistoryError> {
        self.pairs_read.set(self.pairs_read.get() + 1);
        if revision - 1 < self.compacted {
            return Ok(None);
        }
        self.check_readable(previous.main)?;
        let kv = self.rows[&previous].as_ref().expect("what is deleted is not a previous pair");
        Ok(Some(kv.encode_to_vec().into()))
    }
}

/// The response that a delivery carries.
pub fn decode(delivery: &Delivery) -> WatchResponse {
    let mut bytes = BytesMut::from(delivery.head.as_ref());
    bytes.extend_from_slice(&delivery.events);
    WatchResponse::decode(bytes.freeze()).expect("a delivery is a response")
}
