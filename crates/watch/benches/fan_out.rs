//! What a delivery costs: `cargo bench -p watch`. Figures are for reading, nothing is asserted.

use api::etcdserverpb::watch_request::RequestUnion;
use api::etcdserverpb::{WatchCreateRequest, WatchRequest};
use bytes::{BufMut, Bytes, BytesMut};
use engine::Revision;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;
use store::{Change, Event};
use watch::{Config, Delivery, History, HistoryError, StreamKey, Watches};

fn main() {
    let one_key = |_| (Bytes::from_static(b"key/0"), Bytes::new());
    measure("500 watchers of one key", 500, one_key, |_| vec!["key/0".into()]);
    let own_key = |at| (format!("key/{at}").into(), Bytes::new());
    measure("10000 keys, one watcher each", 10_000, own_key, |change| {
        vec![format!("key/{}", change % 10_000)]
    });
    let own_prefix = |at| (format!("key/{at:05}/").into(), format!("key/{at:05}0").into());
    measure("10000 prefixes, one watcher each", 10_000, own_prefix, |change| {
        vec![format!("key/{:05}/a", change % 10_000)]
    });
    measure("500 watchers of one prefix, 10 keys changed", 500, own_all, |_| {
        (0..10).map(|at| format!("key/{at}")).collect()
    });
}

fn own_all(_: usize) -> (Bytes, Bytes) {
    (Bytes::from_static(b"key/"), Bytes::from_static(b"key0"))
}

/// `watchers` watch what `range` says, ten to a stream; then come changes of the keys that `keys`
/// says.
fn measure(
    name: &str,
    watchers: usize,
    range: impl Fn(usize) -> (Bytes, Bytes),
    keys: impl Fn(usize) -> Vec<String>,
) {
    const CHANGES: usize = 20_000;
    const ROUND: usize = 20;
    let mut watches = Watches::new(Config::new(0x1234_5678_9abc_def0, 0x0fed_cba9_8765_4321), 1);
    let mut out: Vec<Delivery> = Vec::new();
    for at in 0..watchers {
        let stream = StreamKey(at as u64 / 10);
        if at % 10 == 0 {
            watches.open(stream, 0);
        }
        let (key, range_end) = range(at);
        let create = WatchCreateRequest { key, range_end, ..WatchCreateRequest::default() };
        let union = RequestUnion::CreateRequest(create);
        watches.request(stream, WatchRequest { request_union: Some(union) }, 7, &mut out);
    }
    let changes: Vec<Arc<Change>> = (0..CHANGES).map(|at| change(at, &keys(at))).collect();
    // The best of many short rounds: others use the machine as well.
    let mut best = (usize::MAX, 0, 0);
    for round in changes.chunks(ROUND) {
        let (mut deliveries, mut bytes) = (0, 0);
        let began = Instant::now();
        for change in round {
            out.clear();
            watches.changed(std::slice::from_ref(change), 7, &Nothing, &mut out);
            deliveries += out.len();
            bytes +=
                black_box(&out).iter().map(|one| one.head.len() + one.events.len()).sum::<usize>();
        }
        best = best.min((began.elapsed().as_nanos() as usize, deliveries, bytes));
    }
    let (nanos, deliveries, bytes) = best;
    println!(
        "{name}: {} ns a change, {} ns a delivery of {} bytes",
        nanos / ROUND,
        nanos / deliveries,
        bytes / deliveries
    );
}

fn change(at: usize, keys: &[String]) -> Arc<Change> {
    let event = |key: &String| {
        let mut encoded = BytesMut::new();
        encoded.put_bytes(b'x', 300);
        let key = Bytes::copy_from_slice(key.as_bytes());
        Event { key, delete: false, create: true, encoded: encoded.freeze(), previous: None }
    };
    Arc::new(Change { revision: at as i64 + 2, events: keys.iter().map(event).collect() })
}

struct Nothing;

impl History for Nothing {
    fn compacted(&self) -> i64 {
        -1
    }

    fn changes(
        &self,
        _: i64,
        _: i64,
        _: usize,
        _: usize,
    ) -> Result<Vec<Arc<Change>>, HistoryError> {
        Ok(Vec::new())
    }

    fn previous_kv(&self, _: i64, _: Revision) -> Result<Option<Bytes>, HistoryError> {
        Ok(None)
    }
}
