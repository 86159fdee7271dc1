//! However many watchers are sent an event, it is encoded once, and what it replaced is read once.

mod common;

use api::etcdserverpb::watch_request::RequestUnion;
use api::etcdserverpb::{WatchCreateRequest, WatchRequest};
use bytes::Bytes;
use common::{Model, decode};
use std::collections::BTreeSet;
use watch::{Config, Delivery, StreamKey, Watches};

struct Table {
    model: Model,
    watches: Watches,
}

impl Table {
    fn new() -> Table {
        let model = Model::new();
        let mut watches = Watches::new(Config::new(1, 2), model.revision());
        watches.open(StreamKey(1), 0);
        watches.open(StreamKey(2), 0);
        Table { model, watches }
    }

    fn watch(&mut self, stream: u64, key: &'static str, end: &'static str, from: i64, prev: bool) {
        let create = WatchCreateRequest {
            key: Bytes::from_static(key.as_bytes()),
            range_end: Bytes::from_static(end.as_bytes()),
            start_revision: from,
            prev_kv: prev,
            ..WatchCreateRequest::default()
        };
        let request = WatchRequest { request_union: Some(RequestUnion::CreateRequest(create)) };
        self.watches.request(StreamKey(stream), request, 1, &mut Vec::new());
    }

    fn write(&mut self, keys: &[&'static str]) -> Vec<Delivery> {
        let value = Some(Bytes::from_static(b"value"));
        let ops: Vec<_> =
            keys.iter().map(|key| (Bytes::from_static(key.as_bytes()), value.clone())).collect();
        let change = self.model.write(&ops).expect("puts change something");
        let mut out = Vec::new();
        self.watches.changed(&[change], 1, &self.model, &mut out);
        out
    }
}

/// How many different buffers of events these deliveries hold.
fn encodings(out: &[Delivery]) -> usize {
    out.iter().map(|delivery| delivery.events.as_ptr()).collect::<BTreeSet<_>>().len()
}

#[test]
fn watchers_of_different_ranges_share_an_event() {
    let mut table = Table::new();
    for stream in [1, 2] {
        table.watch(stream, "b", "", 0, false);
        table.watch(stream, "a", "c", 0, false);
        table.watch(stream, "b", "", 0, true);
        table.watch(stream, "a", "\0", 0, true);
    }
    table.write(&["b"]);
    let pairs_before = table.model.pairs_read.get();
    let out = table.write(&["b"]);
    assert_eq!(out.len(), 8);
    assert_eq!(encodings(&out), 2, "one with the previous pair and one without");
    let with_previous = out.iter().filter(|one| decode(one).events[0].prev_kv.is_some());
    assert_eq!(with_previous.count(), 4);
    assert_eq!(table.model.pairs_read.get() - pairs_before, 1);
}

#[test]
fn watchers_that_want_the_same_of_a_transaction_share_it() {
    let mut table = Table::new();
    table.watch(1, "a", "c", 0, false);
    table.watch(2, "aa", "bb", 0, false);
    table.watch(1, "b", "", 0, false);
    table.watch(2, "a", "z", 0, false);
    let out = table.write(&["aa", "b", "c"]);
    assert_eq!(out.len(), 4);
    assert_eq!(encodings(&out), 3, "two of them want aa and b");
}

#[test]
fn watchers_that_catch_up_share_what_was_read() {
    let mut table = Table::new();
    table.write(&["a"]);
    table.write(&["a"]);
    for stream in [1, 2] {
        table.watch(stream, "a", "", 2, false);
        table.watch(stream, "a", "z", 2, true);
        table.watch(stream, "a", "b", 2, true);
    }
    let mut out = Vec::new();
    let more = table.watches.catch_up(&table.model, 1, &mut out).expect("nothing is damaged");
    assert!(!more);
    assert_eq!(out.len(), 6);
    assert_eq!(encodings(&out), 2);
    assert_eq!(table.model.reads.borrow().len(), 1);
    assert_eq!(table.model.pairs_read.get(), 1, "the first put replaced nothing");
}
