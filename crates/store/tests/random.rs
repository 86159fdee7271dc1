//! Random requests go to the store and to a naive model, and every answer is compared.

mod support;

use api::etcdserverpb::request_op::Request;
use api::etcdserverpb::*;
use api::mvccpb::KeyValue;
use bytes::Bytes;
use prost::Message;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use store::{Config, ReadError};
use support::Machine;
use support::model::Model;

#[test]
fn the_store_does_what_the_model_does() {
    for seed in 0..60 {
        println!("seed {seed}");
        Run::new(seed, Machine::new(Config::default())).steps(400);
    }
}

#[test]
fn crashes_change_nothing_that_the_log_has() {
    for seed in 0..40 {
        println!("seed {seed}");
        Run::new(seed, Machine::on_disk(Config::default(), seed)).steps(400);
    }
}

struct Run {
    random: StdRng,
    machine: Machine,
    model: Model,
}

impl Run {
    fn new(seed: u64, machine: Machine) -> Run {
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
                97 if self.random.random_bool(0.5) => self.machine.crash(),
                97 => self.machine.reopen(),
                98 => {
                    let upto = self.random.random_range(0..=self.machine.last_index());
                    self.machine.tend(upto, self.random.random_bool(0.5));
                }
                _ => drop(self.machine.store.compact_step(2).expect("nothing is damaged")),
            }
            assert_eq!(self.machine.store.view().revision(), self.model.revision);
            assert_eq!(self.machine.store.view().compacted(), self.model.compacted);
        }
        self.settle();
        self.compare_all();
        self.machine.reopen();
        self.compare_all();
        self.machine.crash();
        self.settle();
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
