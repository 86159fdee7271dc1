//! A store with its log, for tests: requests go in, answers come out decoded.
#![allow(dead_code)] // Each test uses its own part of this.

pub mod txn_text;

use std::sync::Arc;

use api::etcdserverpb::{InternalRaftRequest, RequestHeader};
use engine::MemEngine;
use prost::Message;
use raftpb::{ConfChange, Entry, EntryKind};
use store::{Applied, Config, Store};

pub struct Machine {
    pub engine: Arc<MemEngine>,
    pub config: Config,
    pub store: Store,
    index: u64,
}

impl Machine {
    pub fn new(config: Config) -> Machine {
        let engine = Arc::new(MemEngine::new());
        let store = Store::open(engine.clone(), config.clone()).expect("an empty engine opens");
        Machine { engine, config, store, index: 0 }
    }

    /// Drops the store and opens it again on what it has committed.
    pub fn reopen(&mut self) {
        self.store = Store::open(self.engine.clone(), self.config.clone()).expect("it opens again");
    }

    pub fn apply(&mut self, request: InternalRaftRequest) -> Applied {
        let header = Some(RequestHeader { id: self.index + 1, ..RequestHeader::default() });
        let data = InternalRaftRequest { header, ..request }.encode_to_vec();
        self.apply_entry(EntryKind::Normal, data)
    }

    pub fn apply_conf_change(&mut self, change: &ConfChange) -> Applied {
        let mut data = Vec::new();
        change.encode(&mut data);
        self.apply_entry(EntryKind::ConfChange, data)
    }

    pub fn apply_entry(&mut self, kind: EntryKind, data: Vec<u8>) -> Applied {
        self.index += 1;
        let entry = Entry { kind, term: 1, index: self.index, data: data.into() };
        let applied = self.store.apply(&entry).expect("nothing is damaged");
        assert_eq!((applied.index, applied.term), (self.index, 1));
        self.store.end_batch().expect("nothing is damaged");
        applied
    }

    /// Does all the work that compactions left.
    pub fn finish_compactions(&mut self) {
        while self.store.compact_step(3).expect("nothing is damaged") {}
    }
}

/// Makes an entry of one request.
#[macro_export]
macro_rules! entry {
    ($field:ident, $request:expr) => {
        api::etcdserverpb::InternalRaftRequest {
            $field: Some($request),
            ..api::etcdserverpb::InternalRaftRequest::default()
        }
    };
}
