//! A store so simple that it is obviously right: a list of all rows.

use std::collections::{BTreeMap, BTreeSet};

use api::etcdserverpb::range_request::{SortOrder, SortTarget};
use api::etcdserverpb::request_op::Request;
use api::etcdserverpb::response_op::Response;
use api::etcdserverpb::*;
use api::mvccpb::KeyValue;
use bytes::Bytes;
use prost::Message;

/// A stored row; a tombstone has no pair.
#[derive(Clone, Debug)]
pub struct Row {
    pub main: i64,
    pub sub: i64,
    pub key: Bytes,
    pub kv: Option<KeyValue>,
}

#[derive(Clone)]
pub struct Model {
    pub rows: Vec<Row>,
    pub revision: i64,
    pub compacted: i64,
    pub leases: Vec<i64>,
}

pub type State = BTreeMap<Bytes, KeyValue>;

impl Model {
    pub fn at(&self, revision: i64) -> State {
        let mut state = State::new();
        for row in self.rows.iter().filter(|row| row.main <= revision) {
            match &row.kv {
                Some(kv) => state.insert(row.key.clone(), kv.clone()),
                None => state.remove(&row.key),
            };
        }
        state
    }

    fn next_sub(&self, main: i64) -> i64 {
        self.rows.iter().filter(|row| row.main == main).count() as i64
    }

    pub fn range(&self, request: &RangeRequest, current: i64) -> Result<RangeResponse, api::Error> {
        if request.revision > current {
            return Err(api::Error::FUTURE_REVISION);
        }
        let at = if request.revision <= 0 { current } else { request.revision };
        if at < self.compacted {
            return Err(api::Error::COMPACTED);
        }
        let state = self.at(at);
        let mut kvs: Vec<KeyValue> = select(&state, &request.key, &request.range_end);
        let count = kvs.len() as i64;
        if request.count_only {
            return Ok(RangeResponse { count, ..RangeResponse::default() });
        }
        let filters = [
            request.min_mod_revision,
            request.max_mod_revision,
            request.min_create_revision,
            request.max_create_revision,
        ];
        if request.sort_order() == SortOrder::None && filters == [0; 4] && request.limit > 0 {
            kvs.truncate(request.limit as usize + 1);
        }
        let within = |value, min, max| (min == 0 || value >= min) && (max == 0 || value <= max);
        kvs.retain(|kv| {
            within(kv.mod_revision, filters[0], filters[1])
                && within(kv.create_revision, filters[2], filters[3])
        });
        let order = |a: &KeyValue, b: &KeyValue| match request.sort_target() {
            SortTarget::Key => a.key.cmp(&b.key),
            SortTarget::Version => a.version.cmp(&b.version),
            SortTarget::Create => a.create_revision.cmp(&b.create_revision),
            SortTarget::Mod => a.mod_revision.cmp(&b.mod_revision),
            SortTarget::Value => a.value.cmp(&b.value),
        };
        match request.sort_order() {
            SortOrder::Descend => kvs.sort_by(|a, b| order(b, a)),
            SortOrder::None | SortOrder::Ascend => kvs.sort_by(order),
        }
        let more = request.limit > 0 && kvs.len() > request.limit as usize;
        if more {
            kvs.truncate(request.limit as usize);
        }
        if request.keys_only {
            kvs.iter_mut().for_each(|kv| kv.value = Bytes::new());
        }
        Ok(RangeResponse { header: None, kvs, more, count })
    }

    pub fn put(&mut self, request: &PutRequest, main: i64) -> PutResponse {
        let before = self.at(i64::MAX).get(&request.key).cloned();
        let kept = before.clone().unwrap_or_default();
        let kv = KeyValue {
            key: request.key.clone(),
            create_revision: before.as_ref().map_or(main, |kv| kv.create_revision),
            mod_revision: main,
            version: kept.version + 1,
            value: if request.ignore_value { kept.value } else { request.value.clone() },
            lease: if request.ignore_lease { kept.lease } else { request.lease },
        };
        let sub = self.next_sub(main);
        self.rows.push(Row { main, sub, key: request.key.clone(), kv: Some(kv) });
        PutResponse { header: None, prev_kv: before.filter(|_| request.prev_kv) }
    }

    pub fn delete(&mut self, request: &DeleteRangeRequest, main: i64) -> DeleteRangeResponse {
        let doomed = select(&self.at(i64::MAX), &request.key, &request.range_end);
        for kv in &doomed {
            let sub = self.next_sub(main);
            self.rows.push(Row { main, sub, key: kv.key.clone(), kv: None });
        }
        let deleted = doomed.len() as i64;
        let prev_kvs = if request.prev_kv { doomed } else { vec![] };
        DeleteRangeResponse { header: None, deleted, prev_kvs }
    }

    /// A put of its own asks for its lease first.
    pub fn check_put(&self, request: &PutRequest) -> Result<(), api::Error> {
        self.check_lease(request).and_then(|()| self.check_kept(request))
    }

    /// One in a transaction asks for its key first.
    pub fn check_put_in_txn(&self, request: &PutRequest) -> Result<(), api::Error> {
        self.check_kept(request).and_then(|()| self.check_lease(request))
    }

    fn check_lease(&self, request: &PutRequest) -> Result<(), api::Error> {
        let known = request.lease == 0 || self.leases.contains(&request.lease);
        if known { Ok(()) } else { Err(api::Error::LEASE_NOT_FOUND) }
    }

    /// Whether what is to be kept is there.
    fn check_kept(&self, request: &PutRequest) -> Result<(), api::Error> {
        let keeps = request.ignore_value || request.ignore_lease;
        let lacks = keeps && !self.at(i64::MAX).contains_key(&request.key);
        if lacks { Err(api::Error::KEY_NOT_FOUND) } else { Ok(()) }
    }

    /// Tries it on a copy, and takes the copy over if all went well.
    pub fn txn(&mut self, request: &TxnRequest) -> Result<TxnResponse, api::Error> {
        let before = self.at(i64::MAX);
        let main = self.revision + 1;
        let mut ops = Vec::new();
        self.flatten(request, &before, &mut ops);
        for op in &ops {
            match op {
                Request::RequestPut(put) => self.check_put_in_txn(put)?,
                Request::RequestRange(range) if range.revision > self.revision => {
                    return Err(api::Error::FUTURE_REVISION);
                }
                Request::RequestRange(range)
                    if range.revision != 0 && range.revision < self.compacted =>
                {
                    return Err(api::Error::COMPACTED);
                }
                _ => {}
            }
        }
        let mut copy = self.clone();
        let response = copy.execute(request, &before, main)?;
        if copy.rows.len() > self.rows.len() {
            copy.revision = main;
        }
        *self = copy;
        Ok(response)
    }

    fn flatten<'a>(&self, request: &'a TxnRequest, before: &State, ops: &mut Vec<&'a Request>) {
        let taken = request.compare.iter().all(|compare| holds(compare, before));
        for op in if taken { &request.success } else { &request.failure } {
            match op.request.as_ref().expect("an op") {
                Request::RequestTxn(nested) => self.flatten(nested, before, ops),
                request => ops.push(request),
            }
        }
    }

    fn execute(
        &mut self,
        request: &TxnRequest,
        before: &State,
        main: i64,
    ) -> Result<TxnResponse, api::Error> {
        let succeeded = request.compare.iter().all(|compare| holds(compare, before));
        let mut responses = Vec::new();
        for op in if succeeded { &request.success } else { &request.failure } {
            let newest = |model: &Model| {
                if model.next_sub(main) > 0 { main } else { main - 1 }
            };
            let header = |revision| Some(ResponseHeader { revision, ..ResponseHeader::default() });
            let response = match op.request.as_ref().expect("an op") {
                Request::RequestRange(range) => {
                    let current = newest(self);
                    let response = self.range(range, current)?;
                    let header = header(current);
                    Response::ResponseRange(RangeResponse { header, ..response })
                }
                Request::RequestPut(put) => {
                    let keeps = put.ignore_value || put.ignore_lease;
                    if keeps && !self.at(i64::MAX).contains_key(&put.key) {
                        return Err(api::Error::KEY_NOT_FOUND);
                    }
                    let response = self.put(put, main);
                    Response::ResponsePut(PutResponse { header: header(main), ..response })
                }
                Request::RequestDeleteRange(delete) => {
                    let response = self.delete(delete, main);
                    let header = header(newest(self));
                    Response::ResponseDeleteRange(DeleteRangeResponse { header, ..response })
                }
                Request::RequestTxn(nested) => {
                    let response = self.execute(nested, before, main)?;
                    let header = Some(ResponseHeader::default());
                    Response::ResponseTxn(TxnResponse { header, ..response })
                }
            };
            responses.push(ResponseOp { response: Some(response) });
        }
        Ok(TxnResponse { header: None, succeeded, responses })
    }

    /// What compaction leaves: all above, tombstones at the revision itself, and of each key the
    /// newest row up to it if that is a put.
    pub fn compact(&mut self, revision: i64) {
        self.compacted = revision;
        let rows = self.rows.clone();
        self.rows.retain(|row| {
            let newest = rows
                .iter()
                .rfind(|other| other.key == row.key && other.main <= revision)
                .is_some_and(|newest| (newest.main, newest.sub) == (row.main, row.sub));
            row.main > revision
                || row.kv.is_some() && newest
                || row.kv.is_none() && row.main == revision
        });
    }

    /// The rows that HashKV keeps, by the letter of its definition.
    pub fn kept(&self, at: i64) -> Vec<(i64, i64)> {
        let kept = self.kept_by_compaction(at).into_iter().filter(|row| row.kv.is_some());
        kept.map(|row| (row.main, row.sub)).collect()
    }

    /// The rows up to `at` that a compaction keeps: tombstones too.
    fn kept_by_compaction(&self, at: i64) -> Vec<&Row> {
        let mut kept = Vec::new();
        let keys: BTreeSet<_> = self.rows.iter().map(|row| &row.key).collect();
        for key in keys {
            let mut lives: Vec<Vec<&Row>> = vec![vec![]];
            for row in self.rows.iter().filter(|row| row.key == *key) {
                lives.last_mut().expect("one life").push(row);
                if row.kv.is_none() {
                    lives.push(vec![]);
                }
            }
            let last = lives.len() - 1;
            let ends_at = |life: &Vec<&Row>| life.last().expect("a tombstone").main;
            let life = (0..last).find(|life| ends_at(&lives[*life]) >= at).unwrap_or(last);
            let newest = lives[life].iter().rfind(|row| row.main <= at);
            kept.extend(newest);
        }
        kept
    }

    pub fn hash_kv(&self, at: i64) -> u32 {
        self.hash_rows(at, &self.kept(at))
    }

    /// What a compaction leaves behind as the hash of what there was.
    pub fn compaction_hash(&self, at: i64) -> u32 {
        let kept = self.kept_by_compaction(at).into_iter();
        self.hash_rows(at, &kept.map(|row| (row.main, row.sub)).collect::<Vec<_>>())
    }

    fn hash_rows(&self, at: i64, kept: &[(i64, i64)]) -> u32 {
        let mut hashed = b"key".to_vec();
        for row in self.rows.iter().filter(|row| row.main <= at) {
            let old = row.main <= self.compacted;
            if old && !kept.is_empty() && !kept.contains(&(row.main, row.sub)) {
                continue;
            }
            if row.main == self.compacted && row.kv.is_none() {
                continue;
            }
            let revision = engine::Revision::new(row.main, row.sub);
            let (key, length) = revision.row_key(row.kv.is_none());
            hashed.extend_from_slice(&key[..length]);
            let tombstone = KeyValue { key: row.key.clone(), ..KeyValue::default() };
            hashed.extend(row.kv.as_ref().unwrap_or(&tombstone).encode_to_vec());
        }
        crc32c::crc32c(&hashed)
    }
}

fn select(state: &State, key: &Bytes, end: &Bytes) -> Vec<KeyValue> {
    let range = api::KeyRange::new(key.clone(), end.clone());
    state.values().filter(|kv| range.contains(&kv.key)).cloned().collect()
}

fn holds(compare: &Compare, state: &State) -> bool {
    use compare::{CompareResult, CompareTarget, TargetUnion};
    let missing = KeyValue::default();
    let selected = select(state, &compare.key, &compare.range_end);
    if selected.is_empty() && compare.target() == CompareTarget::Value {
        return false;
    }
    let kvs = if selected.is_empty() { vec![missing] } else { selected };
    kvs.iter().all(|kv| {
        let order = match compare.target_union.as_ref().expect("an operand") {
            TargetUnion::Version(given) => kv.version.cmp(given),
            TargetUnion::CreateRevision(given) => kv.create_revision.cmp(given),
            TargetUnion::ModRevision(given) => kv.mod_revision.cmp(given),
            TargetUnion::Value(given) => kv.value.cmp(given),
            TargetUnion::Lease(given) => kv.lease.cmp(given),
        };
        match compare.result() {
            CompareResult::Equal => order.is_eq(),
            CompareResult::NotEqual => order.is_ne(),
            CompareResult::Greater => order.is_gt(),
            CompareResult::Less => order.is_lt(),
        }
    })
}
