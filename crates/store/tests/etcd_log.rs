//! The log of a real etcd leads to the state of that etcd, to the byte.
//!
//! `fixtures/etcd-3.6.14.entries` holds the committed entries of one member, each behind its length
//! (32 bits, little-endian): puts, deletes, transactions (one that deletes from a key on and puts in
//! the same revision), leases, alarms, users and roles, compactions (one to the future), a write
//! that a CORRUPT alarm refused, and a learner that came, moved and went. The numbers below are what
//! etcd answered at the end; its database file was compared row by row when this was recorded.

use std::sync::Arc;

use bytes::{Buf, Bytes};
use engine::MemEngine;
use raftpb::Entry;
use store::{Config, HashKv, Store};

#[test]
fn an_etcd_log_leads_to_the_same_state() {
    let mut fixture = Bytes::from_static(include_bytes!("fixtures/etcd-3.6.14.entries"));
    let mut store = Store::open(Arc::new(MemEngine::new()), Config::default()).expect("it opens");
    let mut refused = Vec::new();
    while fixture.has_remaining() {
        let length = fixture.get_u32_le() as usize;
        let entry = Entry::decode(&fixture.split_to(length)).expect("an entry");
        let applied = store.apply(&entry).expect("nothing is damaged");
        if let Err(error) = applied.result {
            refused.push((entry.index, error));
        }
        store.end_batch().expect("nothing is damaged");
        while store.compact_step(10).expect("nothing is damaged") {}
    }
    assert_eq!(refused, [(27, api::Error::CORRUPT), (45, api::Error::FUTURE_REVISION)]);
    let view = store.view();
    assert_eq!(view.revision(), 22);
    assert_eq!(view.hash().expect("a hash"), 2_896_269_691);
    let hash = HashKv { hash: 2_223_926_543, compact_revision: 9, hash_revision: 22 };
    assert_eq!(view.hash_kv(0).expect("a hash"), hash);
    let [member] = &view.members()[..] else { panic!("one member is left") };
    assert_eq!(member.name, "default");
    assert_eq!(view.removed_members(), [0xc3a4_c2c3_a0c3_fae9]);
}
