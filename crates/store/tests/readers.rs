//! Readers while writes and compactions go on: each answer is that of one revision.

mod support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use api::etcdserverpb::{CompactionRequest, RangeRequest, RangeResponse};
use bytes::Bytes;
use prost::Message;
use store::{Config, ReadError, View};
use support::Machine;
use support::txn_text::txn;

const KEYS: usize = 3000;

/// Every transaction moves one unit from one key to another, so the sum of all values, taken at
/// any one revision, is always the same.
#[test]
fn a_range_is_never_torn() {
    let mut machine = Machine::new(Config::default());
    for first in (0..KEYS).step_by(100) {
        let puts = (first..first + 100).map(|n| format!("[put k{n:05} 100]"));
        let text = format!("then {}", puts.collect::<String>());
        assert!(machine.apply(entry!(txn, txn(&text))).result.is_ok());
    }
    let done = AtomicBool::new(false);
    let view = machine.store.view();
    thread::scope(|scope| {
        let readers: Vec<_> = (0..2).map(|_| scope.spawn(|| read_until(&view, &done))).collect();
        let mut values = vec![100_i64; KEYS];
        for step in 0..3000_usize {
            let (from, to) = (step * 7919 % KEYS, (step * 104_729 + 1) % KEYS);
            if from == to {
                continue;
            }
            values[from] -= 1;
            values[to] += 1;
            let text =
                format!("then [put k{from:05} {}] [put k{to:05} {}]", values[from], values[to]);
            assert!(machine.apply(entry!(txn, txn(&text))).result.is_ok());
            if step % 10 == 0 {
                let revision = machine.store.view().revision();
                let request = CompactionRequest { revision, physical: false };
                assert!(machine.apply(entry!(compaction, request)).result.is_ok());
                // At once, so that rows vanish while somebody is about to read them.
                while machine.store.compact_step(2 * KEYS).expect("nothing is damaged") {}
            }
        }
        done.store(true, Ordering::Release);
        for reader in readers {
            assert!(reader.join().expect("the reader ends well") > 0);
        }
    });
}

/// Reads everything again and again; returns how often.
fn read_until(view: &View, done: &AtomicBool) -> usize {
    let everything = RangeRequest {
        key: Bytes::from_static(b"k"),
        range_end: Bytes::from_static(b"l"),
        ..RangeRequest::default()
    };
    let mut reads = 0;
    while !done.load(Ordering::Acquire) || reads == 0 {
        let reply = view.range(&everything).expect("now can always be read");
        let response = RangeResponse::decode(reply.body).expect("a response");
        assert_eq!((response.count, response.kvs.len()), (KEYS as i64, KEYS));
        let values = response.kvs.iter().map(|kv| {
            assert!(kv.mod_revision <= reply.revision);
            let text = std::str::from_utf8(&kv.value).expect("a number");
            text.parse::<i64>().expect("a number")
        });
        assert_eq!(values.sum::<i64>(), 100 * KEYS as i64);
        // The same again at that revision, or compaction was faster.
        match view.range(&RangeRequest { revision: reply.revision, ..everything.clone() }) {
            Ok(again) => assert_eq!(RangeResponse::decode(again.body), Ok(response)),
            Err(ReadError::Refused(error)) => assert_eq!(error, api::Error::COMPACTED),
            Err(ReadError::Damaged(error)) => panic!("{error}"),
        }
        reads += 1;
    }
    reads
}
