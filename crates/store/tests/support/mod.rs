//! A store with its log, for tests: requests go in, answers come out decoded.
#![allow(dead_code)] // Each test uses its own part of this.

pub mod model;
pub mod show;
pub mod txn_text;

use std::path::Path;
use std::sync::Arc;

use api::etcdserverpb::{InternalRaftRequest, RequestHeader};
use disk::SimDisk;
use engine::{Engine, LogEngine, MemEngine, Options};
use prost::Message;
use raftpb::{ConfChange, Entry, EntryKind};
use store::{Applied, Config, Store};

pub struct Machine {
    pub engine: Arc<dyn Engine>,
    pub config: Config,
    pub store: Store,
    /// If the engine is a log on a disk.
    disk: Option<SimDisk>,
    log: Vec<Entry>,
}

impl Machine {
    pub fn new(config: Config) -> Machine {
        Machine::with(Arc::new(MemEngine::new()), None, config)
    }

    /// On a disk that can lose what was not synced.
    pub fn on_disk(config: Config, seed: u64) -> Machine {
        let disk = SimDisk::new(seed);
        Machine::with(open_log(&disk), Some(disk), config)
    }

    fn with(engine: Arc<dyn Engine>, disk: Option<SimDisk>, config: Config) -> Machine {
        let store = Store::open(engine.clone(), config.clone()).expect("an empty engine opens");
        Machine { engine, config, store, disk, log: Vec::new() }
    }

    /// Drops the store and opens it again on what it has committed.
    pub fn reopen(&mut self) {
        if let Some(disk) = self.disk.clone() {
            self.engine.sync(u64::MAX).expect("the disk is well");
            self.let_go();
            disk.kill();
            self.engine = open_log(&disk);
        }
        self.store = Store::open(self.engine.clone(), self.config.clone()).expect("it opens again");
    }

    /// Loses what was not synced, and applies the log from where the engine is found to be.
    pub fn crash(&mut self) {
        if let Some(disk) = self.disk.clone() {
            self.let_go();
            disk.crash();
            self.engine = open_log(&disk);
        }
        self.store = Store::open(self.engine.clone(), self.config.clone()).expect("it opens again");
        let last = self.engine.last_commit().index as usize;
        for entry in &self.log[last..] {
            self.store.apply(entry).expect("nothing is damaged");
        }
        self.store.end_batch().expect("nothing is damaged");
    }

    /// What the engine's own thread does: syncs some of it, and rewrites what is mostly dead.
    pub fn tend(&mut self, upto: u64, all: bool) {
        self.engine.sync(upto).expect("the disk is well");
        self.engine.collect(2000, all).expect("the disk is well");
    }

    pub fn last_index(&self) -> u64 {
        self.log.len() as u64
    }

    /// The engine's files must be closed before they are opened again.
    fn let_go(&mut self) {
        self.engine = Arc::new(MemEngine::new());
        self.store = Store::open(self.engine.clone(), Config::default()).expect("it opens");
    }

    pub fn apply(&mut self, request: InternalRaftRequest) -> Applied {
        let header = Some(RequestHeader { id: self.last_index() + 1, ..RequestHeader::default() });
        let data = InternalRaftRequest { header, ..request }.encode_to_vec();
        self.apply_entry(EntryKind::Normal, data)
    }

    pub fn apply_conf_change(&mut self, change: &ConfChange) -> Applied {
        let mut data = Vec::new();
        change.encode(&mut data);
        self.apply_entry(EntryKind::ConfChange, data)
    }

    pub fn apply_entry(&mut self, kind: EntryKind, data: Vec<u8>) -> Applied {
        let index = self.last_index() + 1;
        let entry = Entry { kind, term: 1, index, data: data.into() };
        self.log.push(entry.clone());
        let applied = self.store.apply(&entry).expect("nothing is damaged");
        assert_eq!((applied.index, applied.term), (index, 1));
        self.store.end_batch().expect("nothing is damaged");
        applied
    }

    /// Does all the work that compactions left.
    pub fn finish_compactions(&mut self) {
        while self.store.compact_step(3).expect("nothing is damaged") {}
    }
}

/// Small segments, so that a short test has many.
fn open_log(disk: &SimDisk) -> Arc<dyn Engine> {
    let options = Options { segment_bytes: 4000, cache_bytes: 1000, reserve_bytes: 0 };
    let engine = LogEngine::open(Arc::new(disk.clone()), Path::new("store"), options);
    Arc::new(engine.expect("what a crash leaves can be opened"))
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
