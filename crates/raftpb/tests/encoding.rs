//! The bytes are those that etcd writes, and no bytes make a decoder panic.

use bytes::Bytes;
use raftpb::{
    ConfChange, ConfChangeKind, ConfState, DecodeError, Entry, EntryKind, HardState, Snapshot,
};

fn bytes_of(encode: impl Fn(&mut Vec<u8>)) -> Bytes {
    let mut out = Vec::new();
    encode(&mut out);
    out.into()
}

#[test]
fn zeros_are_written_and_an_empty_entry_has_no_data() {
    let leaders = Entry { term: 2, index: 2, ..Entry::default() };
    assert_eq!(bytes_of(|out| leaders.encode(out))[..], [8, 0, 16, 2, 24, 2]);
    let state = HardState { term: 1, vote: 0, commit: 1 };
    assert_eq!(bytes_of(|out| state.encode(out))[..], [8, 1, 16, 0, 24, 1]);
    let change = ConfChange { node_id: 300, ..ConfChange::default() };
    assert_eq!(bytes_of(|out| change.encode(out))[..], [8, 0, 16, 0, 24, 0xac, 2]);
    let state = ConfState { voters: vec![1, 2], learners: vec![3], ..ConfState::default() };
    assert_eq!(bytes_of(|out| state.encode(out))[..], [8, 1, 8, 2, 16, 3, 40, 0]);
}

fn entry() -> Entry {
    let data = Bytes::from_static(b"some data");
    Entry { kind: EntryKind::ConfChangeV2, term: u64::MAX, index: 1 << 40, data }
}

fn change() -> ConfChange {
    let context = Bytes::from_static(b"{}");
    ConfChange { id: 9, kind: ConfChangeKind::AddLearnerNode, node_id: u64::MAX, context }
}

fn conf_state() -> ConfState {
    ConfState {
        voters: vec![1, u64::MAX],
        learners: vec![2],
        voters_outgoing: vec![3, 4, 5],
        learners_next: vec![6],
        auto_leave: true,
    }
}

fn snapshot() -> Snapshot {
    let data = Bytes::from_static(b"{\"Root\":{}}");
    Snapshot { data, conf_state: conf_state(), index: 77, term: 5 }
}

#[test]
fn what_is_encoded_is_decoded() {
    assert_eq!(Entry::decode(&bytes_of(|out| entry().encode(out))), Ok(entry()));
    assert_eq!(ConfChange::decode(&bytes_of(|out| change().encode(out))), Ok(change()));
    assert_eq!(ConfState::decode(&bytes_of(|out| conf_state().encode(out))), Ok(conf_state()));
    assert_eq!(Snapshot::decode(&bytes_of(|out| snapshot().encode(out))), Ok(snapshot()));
    let state = HardState { term: u64::MAX, vote: 1, commit: 1 << 63 };
    assert_eq!(HardState::decode(&bytes_of(|out| state.encode(out))), Ok(state));
}

#[test]
fn an_entrys_data_is_not_copied() {
    let bytes = bytes_of(|out| entry().encode(out));
    let data = Entry::decode(&bytes).unwrap().data;
    assert!(bytes.as_ptr_range().contains(&data.as_ptr()));
}

#[test]
fn fields_of_others_are_skipped() {
    let mut bytes = bytes_of(|out| entry().encode(out)).to_vec();
    // Field 9 as a number, as bytes, in eight and in four bytes.
    bytes.extend([0x48, 1, 0x4a, 2, 7, 7, 0x49, 1, 2, 3, 4, 5, 6, 7, 8, 0x4d, 1, 2, 3, 4]);
    assert_eq!(Entry::decode(&bytes.into()), Ok(entry()));
}

#[test]
fn bad_bytes_are_refused_with_a_reason() {
    let reason = |bytes: &'static [u8]| match Entry::decode(&Bytes::from_static(bytes)) {
        Err(DecodeError(reason)) => reason,
        Ok(entry) => panic!("{entry:?}"),
    };
    assert_eq!(reason(&[8, 3]), "unknown entry type");
    assert_eq!(reason(&[16]), "cut varint");
    assert_eq!(reason(&[16, 0xff]), "cut varint");
    assert_eq!(reason(&[0x22, 5, 1]), "field longer than its message");
    assert_eq!(reason(&[0x23]), "unknown wire type");
    assert_eq!(
        reason(&[16, 255, 255, 255, 255, 255, 255, 255, 255, 255, 2]),
        "varint beyond 64 bits"
    );
    let kind = ConfChange::decode(&Bytes::from_static(&[16, 4]));
    assert_eq!(kind, Err(DecodeError("unknown conf change type")));
}

#[test]
fn no_bytes_make_a_decoder_panic() {
    let whole = [
        bytes_of(|out| entry().encode(out)),
        bytes_of(|out| change().encode(out)),
        bytes_of(|out| conf_state().encode(out)),
        bytes_of(|out| snapshot().encode(out)),
    ];
    for bytes in whole {
        for cut in 0..bytes.len() {
            decode_all(bytes.slice(..cut));
            for value in 0..=u8::MAX {
                let mut changed = bytes.to_vec();
                changed[cut] = value;
                decode_all(changed.into());
            }
        }
    }
}

fn decode_all(bytes: Bytes) {
    let _ = Entry::decode(&bytes);
    let _ = HardState::decode(&bytes);
    let _ = ConfState::decode(&bytes);
    let _ = ConfChange::decode(&bytes);
    let _ = Snapshot::decode(&bytes);
}
