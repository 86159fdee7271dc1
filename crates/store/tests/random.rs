//! Random requests against a model so simple that it is obviously right: a list of all rows.

mod support;

use std::collections::BTreeMap;

use api::etcdserverpb::range_request::{SortOrder, SortTarget};
use api::etcdserverpb::request_op::Request;
use api::etcdserverpb::response_op::Response;
use api::etcdserverpb::*;
use api::mvccpb::KeyValue;
use bytes::Bytes;
use prost::Message;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use store::{Config, ReadError};
use support::Machine;

#[test]
fn the_store_does_what_the_model_does() {
    for seed in 0..60 {
        println!("seed {seed}");
        Run::new(seed).steps(400);
    }
}

/// A stored row; a tombstone has no pair.
#[derive(Clone, Debug)]
struct Row {
    main: i64,
    sub: i64,
    key: Bytes,
    kv: Option<KeyValue>,
}

#[derive(Clone)]
struct Model {
    rows: Vec<Row>,
    revision: i64,
    compacted: i64,
    leases: Vec<i64>,
}

type State = BTreeMap<Bytes, KeyValue>;

impl Model {
    fn at(&self, revision: i64) -> State {
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

    fn range(&self, request: &RangeRequest, current: i64) -> Result<RangeResponse, api::Error> {
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

    fn put(&mut self, request: &PutRequest, main: i64) -> PutResponse {
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

    fn delete(&mut self, request: &DeleteRangeRequest, main: i64) -> DeleteRangeResponse {
        let doomed = select(&self.at(i64::MAX), &request.key, &request.range_end);
        for kv in &doomed {
            let sub = self.next_sub(main);
            self.rows.push(Row { main, sub, key: kv.key.clone(), kv: None });
        }
        let deleted = doomed.len() as i64;
        let prev_kvs = if request.prev_kv { doomed } else { vec![] };
        DeleteRangeResponse { header: None, deleted, prev_kvs }
    }

    fn check_put(&self, request: &PutRequest) -> Result<(), api::Error> {
        self.check_lease(request)?;
        self.check_key(request)
    }

    fn check_lease(&self, request: &PutRequest) -> Result<(), api::Error> {
        let missing = request.lease != 0 && !self.leases.contains(&request.lease);
        if missing { Err(api::Error::LEASE_NOT_FOUND) } else { Ok(()) }
    }

    fn check_key(&self, request: &PutRequest) -> Result<(), api::Error> {
        let keeps = request.ignore_value || request.ignore_lease;
        let missing = keeps && !self.at(i64::MAX).contains_key(&request.key);
        if missing { Err(api::Error::KEY_NOT_FOUND) } else { Ok(()) }
    }

    /// Tries it on a copy, and takes the copy over if all went well.
    fn txn(&mut self, request: &TxnRequest) -> Result<TxnResponse, api::Error> {
        let before = self.at(i64::MAX);
        let main = self.revision + 1;
        let mut ops = Vec::new();
        self.flatten(request, &before, &mut ops);
        for op in &ops {
            match op {
                Request::RequestPut(put) => {
                    self.check_key(put)?;
                    self.check_lease(put)?;
                }
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
    fn compact(&mut self, revision: i64) {
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
    fn kept(&self, at: i64) -> Vec<(i64, i64)> {
        let kept = self.kept_by_compaction(at).into_iter().filter(|row| row.kv.is_some());
        kept.map(|row| (row.main, row.sub)).collect()
    }

    /// The rows up to `at` that a compaction keeps: tombstones too.
    fn kept_by_compaction(&self, at: i64) -> Vec<&Row> {
        let mut kept = Vec::new();
        let keys: std::collections::BTreeSet<_> = self.rows.iter().map(|row| &row.key).collect();
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

    fn hash_kv(&self, at: i64) -> u32 {
        self.hash_rows(at, &self.kept(at))
    }

    /// What a compaction leaves behind as the hash of what there was.
    fn compaction_hash(&self, at: i64) -> u32 {
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

struct Run {
    random: StdRng,
    machine: Machine,
    model: Model,
}

impl Run {
    fn new(seed: u64) -> Run {
        let machine = Machine::new(Config::default());
        let model = Model { rows: vec![], revision: 1, compacted: -1, leases: vec![] };
        Run { random: StdRng::seed_from_u64(seed), machine, model }
    }

    fn steps(&mut self, steps: usize) {
        for _ in 0..steps {
            match self.random.random_range(0..100) {
                0..35 => self.put(),
                35..45 => self.delete(),
                45..65 => self.txn(),
                65..85 => self.range(),
                85..88 => self.compact(),
                88..91 => self.hash(),
                91..93 => self.grant(),
                93..95 => self.revoke(),
                95..97 => self.history(),
                97 => self.machine.reopen(),
                _ => drop(self.machine.store.compact_step(2).expect("nothing is damaged")),
            }
            assert_eq!(self.machine.store.view().revision(), self.model.revision);
            assert_eq!(self.machine.store.view().compacted(), self.model.compacted);
        }
        self.settle();
        self.compare_all();
        self.machine.reopen();
        self.compare_all();
    }

    fn put(&mut self) {
        let request = self.random_put();
        let expected = self.model.check_put(&request).map(|()| {
            self.model.revision += 1;
            self.model.put(&request, self.model.revision)
        });
        let applied = self.machine.apply(entry!(put, request));
        assert_eq!(decode::<PutResponse>(applied.result), expected);
        self.compare_change(applied.change.as_deref());
    }

    fn delete(&mut self) {
        let request = self.random_delete();
        let expected = self.model.delete(&request, self.model.revision + 1);
        self.model.revision += i64::from(expected.deleted > 0);
        let applied = self.machine.apply(entry!(delete_range, request));
        assert_eq!(decode::<DeleteRangeResponse>(applied.result), Ok(expected));
        self.compare_change(applied.change.as_deref());
    }

    fn txn(&mut self) {
        let mut from_key = 1;
        let request = self.random_txn(2, &mut from_key);
        if store::check_txn(&request, 128).is_err() {
            return;
        }
        let view = self.machine.store.view();
        if store::is_read_only_txn(&request) {
            let expected = self.model.clone().txn(&request);
            let local = match view.txn_read_only(&request) {
                Ok(reply) => Ok(TxnResponse::decode(reply.body).expect("a response")),
                Err(ReadError::Refused(error)) => Err(error),
                Err(ReadError::Damaged(error)) => panic!("{error}"),
            };
            assert_eq!(local, expected, "{request:?}");
        }
        let expected = self.model.txn(&request);
        let applied = self.machine.apply(entry!(txn, request.clone()));
        assert_eq!(decode::<TxnResponse>(applied.result), expected, "{request:?}");
        self.compare_change(applied.change.as_deref());
    }

    fn range(&mut self) {
        let request = self.random_range();
        self.compare_range(&request);
    }

    fn compare_range(&self, request: &RangeRequest) {
        let expected = self.model.range(request, self.model.revision);
        let actual = match self.machine.store.view().range(request) {
            Ok(reply) => {
                assert_eq!(reply.revision, self.model.revision);
                Ok(RangeResponse::decode(reply.body).expect("a response"))
            }
            Err(ReadError::Refused(error)) => Err(error),
            Err(ReadError::Damaged(error)) => panic!("{error}"),
        };
        assert_eq!(actual, expected, "{request:?}");
    }

    /// The work is left undone, so that what follows meets a compaction that is under way.
    fn compact(&mut self) {
        // The hash covers what an earlier compaction has left; the model has left it already.
        self.settle();
        // Not to 0: its hash would then be the answer whenever HashKV is asked about now.
        let from = self.model.compacted.max(1);
        let revision = self.random.random_range(from..=self.model.revision + 1);
        let request = CompactionRequest { revision, physical: false };
        let result = self.machine.apply(entry!(compaction, request)).result;
        if revision <= self.model.compacted {
            assert_eq!(result, Err(api::Error::COMPACTED));
        } else if revision > self.model.revision {
            assert_eq!(result, Err(api::Error::FUTURE_REVISION));
        } else {
            assert!(result.is_ok());
            let (hash, previous) = (self.model.compaction_hash(revision), self.model.compacted);
            self.model.compact(revision);
            if self.random.random_bool(0.5) {
                self.settle();
                let stored = self.machine.store.view().hash_kv(revision).expect("a hash");
                assert_eq!(stored.hash, hash);
                assert_eq!(stored.compact_revision, previous);
            }
        }
    }

    fn hash(&mut self) {
        let from = self.model.compacted.max(1) + 1;
        if from <= self.model.revision {
            let revision = self.random.random_range(from..=self.model.revision);
            // Without any kept row the hash covers those that a compaction has yet to drop.
            if self.model.kept(revision).is_empty() {
                self.settle();
            }
            let hash = self.machine.store.view().hash_kv(revision).expect("a hash");
            assert_eq!(hash.hash, self.model.hash_kv(revision), "at {revision}");
            assert_eq!(hash.compact_revision, self.model.compacted);
        }
    }

    fn grant(&mut self) {
        let id = self.random.random_range(1..4);
        let result =
            self.machine.apply(entry!(lease_grant, LeaseGrantRequest { id, ttl: 9 })).result;
        if self.model.leases.contains(&id) {
            assert_eq!(result, Err(api::Error::LEASE_EXISTS));
        } else {
            self.model.leases.push(id);
        }
    }

    fn revoke(&mut self) {
        let id = self.random.random_range(1..4);
        let applied = self.machine.apply(entry!(lease_revoke, LeaseRevokeRequest { id }));
        if !self.model.leases.contains(&id) {
            assert_eq!(applied.result, Err(api::Error::LEASE_NOT_FOUND));
            return;
        }
        self.model.leases.retain(|lease| *lease != id);
        let main = self.model.revision + 1;
        let state = self.model.at(i64::MAX);
        for kv in state.values().filter(|kv| kv.lease == id) {
            let request = DeleteRangeRequest { key: kv.key.clone(), ..Default::default() };
            self.model.delete(&request, main);
            self.model.revision = main;
        }
        self.compare_change(applied.change.as_deref());
    }

    /// The events of a change are the model's rows, with the pair that was there before.
    fn compare_change(&self, change: Option<&store::Change>) {
        let Some(change) = change else { return };
        assert_eq!(change.revision, self.model.revision);
        self.compare_events(change);
    }

    fn compare_events(&self, change: &store::Change) {
        let rows = self.model.rows.iter().filter(|row| row.main == change.revision);
        let before = self.model.at(change.revision - 1);
        let view = self.machine.store.view();
        let expected: Vec<_> = rows
            .map(|row| {
                let previous = before.get(&row.key).map(|kv| kv.encode_to_vec());
                let previous = previous.filter(|_| change.revision > self.model.compacted);
                let tombstone = KeyValue {
                    key: row.key.clone(),
                    mod_revision: row.main,
                    ..KeyValue::default()
                };
                let event = api::mvccpb::Event {
                    r#type: i32::from(row.kv.is_none()),
                    kv: Some(row.kv.clone().unwrap_or(tombstone)),
                    prev_kv: None,
                };
                (event.encode_to_vec(), previous)
            })
            .collect();
        let actual: Vec<_> = change
            .events
            .iter()
            .map(|event| {
                let previous = event.previous.and_then(|previous| {
                    view.previous_kv(change.revision, previous).expect("nothing is damaged")
                });
                (event.encoded.to_vec(), previous.map(|kv| kv.to_vec()))
            })
            .collect();
        assert_eq!(actual, expected, "at {}", change.revision);
    }

    /// All of history, in pieces of random size.
    fn history(&mut self) {
        self.settle();
        let view = self.machine.store.view();
        let mut from = self.model.compacted.max(1);
        let mut seen = Vec::new();
        while from <= self.model.revision {
            let bytes_max = self.random.random_range(1..200);
            let history = view.history(from, bytes_max).expect("history");
            for change in &history.changes {
                seen.push(change.revision);
                self.compare_events(change);
            }
            assert!(history.next > from);
            from = history.next;
        }
        let mut expected: Vec<i64> = self.model.rows.iter().map(|row| row.main).collect();
        expected.retain(|main| *main >= self.model.compacted);
        expected.dedup();
        assert_eq!(seen, expected);
    }

    fn settle(&mut self) {
        self.machine.finish_compactions();
    }

    fn compare_all(&self) {
        let view = self.machine.store.view();
        let first = self.model.compacted.max(1);
        for revision in first..=self.model.revision {
            let (key, range_end) = (Bytes::from_static(b"\0"), Bytes::from_static(b"\0"));
            self.compare_range(&RangeRequest { key, range_end, revision, ..Default::default() });
        }
        let hash = view.hash_kv(0).expect("a hash");
        assert_eq!(hash.hash, self.model.hash_kv(self.model.revision));
        let sums = engine::Engine::sums(&*self.machine.engine, engine::Revision::default(), 10_000);
        let rows: Vec<_> = sums.iter().map(|row| (row.revision.main, row.revision.sub)).collect();
        let expected: Vec<_> = self.model.rows.iter().map(|row| (row.main, row.sub)).collect();
        assert_eq!(rows, expected);
        let attached = view.leases().into_iter().flat_map(|lease| {
            lease.keys.into_iter().map(move |key| (Bytes::copy_from_slice(&key), lease.id))
        });
        let mut attached: Vec<_> = attached.collect();
        attached.sort();
        let state = self.model.at(i64::MAX);
        let expected = state.values().filter(|kv| kv.lease != 0);
        let expected: Vec<_> = expected.map(|kv| (kv.key.clone(), kv.lease)).collect();
        assert_eq!(attached, expected);
    }

    fn key(&mut self) -> Bytes {
        const KEYS: [&str; 9] = ["a", "aa", "ab", "b", "ba", "c", "d", "dd", "e"];
        Bytes::from_static(KEYS[self.random.random_range(0..KEYS.len())].as_bytes())
    }

    fn end(&mut self) -> Bytes {
        match self.random.random_range(0..10) {
            0..5 => Bytes::new(),
            5 => Bytes::from_static(b"\0"),
            _ => self.key(),
        }
    }

    fn random_put(&mut self) -> PutRequest {
        let ignore_value = self.random.random_bool(0.1);
        let ignore_lease = self.random.random_bool(0.1);
        let lease = if self.random.random_bool(0.3) { self.random.random_range(1..4) } else { 0 };
        let value = self.random.random_range(0..20).to_string();
        PutRequest {
            key: self.key(),
            value: if ignore_value { Bytes::new() } else { value.into() },
            lease: if ignore_lease { 0 } else { lease },
            prev_kv: self.random.random_bool(0.3),
            ignore_value,
            ignore_lease,
        }
    }

    fn random_delete(&mut self) -> DeleteRangeRequest {
        let (key, range_end) = (self.key(), self.end());
        DeleteRangeRequest { key, range_end, prev_kv: self.random.random_bool(0.3) }
    }

    fn random_range(&mut self) -> RangeRequest {
        let revision = match self.random.random_range(0..4) {
            0 => self.random.random_range(-1..=self.model.revision + 1),
            _ => 0,
        };
        let bound = |random: &mut StdRng, revision: i64| match random.random_range(0..8) {
            0 => random.random_range(0..=revision),
            _ => 0,
        };
        let now = self.model.revision;
        RangeRequest {
            key: self.key(),
            range_end: self.end(),
            limit: self.random.random_range(-1..5),
            revision,
            sort_order: self.random.random_range(0..3),
            sort_target: self.random.random_range(0..5),
            serializable: self.random.random_bool(0.5),
            keys_only: self.random.random_bool(0.2),
            count_only: self.random.random_bool(0.1),
            min_mod_revision: bound(&mut self.random, now),
            max_mod_revision: bound(&mut self.random, now),
            min_create_revision: bound(&mut self.random, now),
            max_create_revision: bound(&mut self.random, now),
        }
    }

    fn random_txn(&mut self, depth: usize, from_key: &mut usize) -> TxnRequest {
        let compares = self.random.random_range(0..3);
        TxnRequest {
            compare: (0..compares).map(|_| self.random_compare()).collect(),
            success: self.random_ops(depth, from_key),
            failure: self.random_ops(depth, from_key),
        }
    }

    fn random_ops(&mut self, depth: usize, from_key: &mut usize) -> Vec<RequestOp> {
        let ops = self.random.random_range(0..4);
        (0..ops)
            .map(|_| {
                let request = match self.random.random_range(0..10) {
                    0..3 => Request::RequestRange(self.random_range()),
                    3..7 => Request::RequestPut(self.random_put()),
                    7 if depth > 0 => Request::RequestTxn(self.random_txn(depth - 1, from_key)),
                    _ => {
                        let mut delete = self.random_delete();
                        // One is enough to slip through the check for duplicate keys; two could
                        // end a key twice in one revision, where even etcd keeps too little.
                        if delete.range_end.as_ref() == b"\0" {
                            match from_key.checked_sub(1) {
                                Some(left) => *from_key = left,
                                None => delete.range_end = Bytes::new(),
                            }
                        }
                        Request::RequestDeleteRange(delete)
                    }
                };
                RequestOp { request: Some(request) }
            })
            .collect()
    }

    fn random_compare(&mut self) -> Compare {
        use compare::{CompareTarget, TargetUnion};
        let near = self.random.random_range(0..=self.model.revision);
        let (target, union) = match self.random.random_range(0..5) {
            0 => (CompareTarget::Version, TargetUnion::Version(self.random.random_range(0..4))),
            1 => (CompareTarget::Create, TargetUnion::CreateRevision(near)),
            2 => (CompareTarget::Mod, TargetUnion::ModRevision(near)),
            3 => {
                let value = self.random.random_range(0..20).to_string();
                (CompareTarget::Value, TargetUnion::Value(value.into()))
            }
            _ => (CompareTarget::Lease, TargetUnion::Lease(self.random.random_range(0..4))),
        };
        Compare {
            result: self.random.random_range(0..4),
            target: target as i32,
            key: self.key(),
            range_end: self.end(),
            target_union: Some(union),
        }
    }
}

fn decode<M: Message + Default>(result: Result<store::Reply, api::Error>) -> Result<M, api::Error> {
    result.map(|reply| M::decode(reply.body).expect("a response"))
}
