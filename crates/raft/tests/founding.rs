//! A founding member asks for the bytes that a founding etcd writes.

use bytes::Bytes;
use raft::{Config, Raft, Ready};
use raftpb::ConfChange;

const MEMBER: u64 = 0x8e9e_05c5_2164_694d;
const JSON: &[u8] =
    br#"{"id":10276657743932975437,"peerURLs":["http://localhost:2380"],"name":"default"}"#;

fn config(id: u64) -> Config {
    Config {
        id,
        election_ticks: 10,
        heartbeat_ticks: 1,
        pre_vote: true,
        check_quorum: true,
        seed: 1,
        log_bytes_max: 1 << 20,
    }
}

/// What goes into the log: entries, then the state, as hex.
fn records(ready: &Ready) -> Vec<String> {
    let mut records: Vec<Vec<u8>> = Vec::new();
    for entry in &ready.entries {
        let mut bytes = Vec::new();
        entry.encode(&mut bytes);
        records.push(bytes);
    }
    if let Some(state) = ready.hard_state {
        let mut bytes = Vec::new();
        state.encode(&mut bytes);
        records.push(bytes);
    }
    let hex = |bytes: &Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    records.iter().map(hex).collect()
}

#[test]
fn the_first_records_are_etcds() {
    let mut raft = Raft::found(config(MEMBER), &[(MEMBER, Bytes::from_static(JSON))]).unwrap();
    let ready = raft.ready();
    let json: String = JSON.iter().map(|byte| format!("{byte:02x}")).collect();
    let entry = format!("0801100118012262{}{json}", "0800100018cdd2918bd2b881cf8e012251");
    assert_eq!(records(&ready), [entry.as_str(), "080110001801"]);
    raft.persisted(ready.mark);

    let ready = raft.ready();
    let change = ConfChange::decode(&ready.committed[0].data).unwrap();
    raft.apply_conf_change(&change);
    raft.applied(1);
    raft.campaign();
    let ready = raft.ready();
    assert_eq!(records(&ready), ["080210cdd2918bd2b881cf8e011801"]);
    raft.persisted(ready.mark);
    assert_eq!(records(&raft.ready()), ["080010021802"]);
}

#[test]
fn founders_begin_alike_in_whatever_order_they_are_listed() {
    let one = (1, Bytes::from_static(b"one"));
    let two = (2, Bytes::from_static(b"two"));
    let mut first = Raft::found(config(1), &[one.clone(), two.clone()]).unwrap();
    let mut second = Raft::found(config(2), &[two, one]).unwrap();
    assert_eq!(first.ready().entries, second.ready().entries);
    assert_eq!(first.conf_state().voters, [1, 2]);
}
