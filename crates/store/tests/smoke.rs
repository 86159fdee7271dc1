use std::sync::Arc;

use api::etcdserverpb::{
    DeleteRangeRequest, InternalRaftRequest, PutRequest, RangeRequest, RangeResponse, RequestHeader,
};
use prost::Message;
use raftpb::{Entry, EntryKind};
use store::{Applied, Config, Store};

fn apply(store: &mut Store, index: u64, request: InternalRaftRequest) -> Applied {
    let header = Some(RequestHeader { id: index, ..Default::default() });
    let data = InternalRaftRequest { header, ..request }.encode_to_vec().into();
    let entry = Entry { kind: EntryKind::Normal, term: 1, index, data };
    let applied = store.apply(&entry).expect("no damage");
    store.end_batch().expect("no damage");
    applied
}

#[test]
fn put_range_delete() {
    let engine = Arc::new(engine::MemEngine::new());
    let mut store = Store::open(engine, Config::default()).expect("it opens");
    let put = PutRequest { key: "a".into(), value: "1".into(), ..Default::default() };
    let applied =
        apply(&mut store, 1, InternalRaftRequest { put: Some(put), ..Default::default() });
    assert_eq!(applied.request_id, 1);
    assert_eq!(applied.result.expect("it is put").revision, 2);
    assert_eq!(applied.change.expect("it changed").events.len(), 1);
    let view = store.view();
    let range = RangeRequest { key: "a".into(), ..Default::default() };
    let reply = view.range(&range).expect("it is read");
    let response = RangeResponse::decode(reply.body).expect("a response");
    assert_eq!((response.count, response.kvs.len()), (1, 1));
    assert_eq!(response.kvs[0].value.as_ref(), b"1");
    let delete = DeleteRangeRequest { key: "a".into(), ..Default::default() };
    let delete_range = Some(delete);
    apply(&mut store, 2, InternalRaftRequest { delete_range, ..Default::default() });
    let reply = view.range(&range).expect("it is read");
    assert_eq!((reply.revision, reply.body.len()), (3, 0));
    let history = view.history(2, 1 << 20).expect("history");
    assert_eq!((history.changes.len(), history.next), (2, 4));
}
