//! What one applied request changed, encoded once for all who watch.

use bytes::{BufMut, Bytes};
use engine::Revision;

use crate::wire;

/// All that happened at one main revision, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub revision: i64,
    pub events: Vec<Event>,
}

/// One key put or deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub key: Bytes,
    pub delete: bool,
    /// A put that began an incarnation: its create and mod revision are the same.
    pub create: bool,
    /// The `mvccpb.Event` encoding without `prev_kv`; append that field (number 3) where wanted.
    pub encoded: Bytes,
    /// The row that held the key before this change's revision, if the key existed then.
    pub previous: Option<Revision>,
}

/// The pair that a put stores.
pub(crate) struct Pair<'a> {
    pub key: &'a [u8],
    pub create_revision: i64,
    pub mod_revision: i64,
    pub version: i64,
    pub value: &'a [u8],
    pub lease: i64,
}

/// An event and the row that is stored for it; both share one buffer, so a value is copied once.
pub(crate) struct Encoded {
    pub key: Bytes,
    pub event: Bytes,
    pub row: Bytes,
}

impl Pair<'_> {
    pub fn encode(&self) -> Encoded {
        let kv_bytes = wire::bytes_field_len(1, self.key)
            + wire::int_field_len(2, self.create_revision)
            + wire::int_field_len(3, self.mod_revision)
            + wire::int_field_len(4, self.version)
            + wire::bytes_field_len(5, self.value)
            + wire::int_field_len(6, self.lease);
        // type PUT is zero, so the event is nothing but its field 2.
        let head_bytes = 1 + wire::varint_len(kv_bytes as u64);
        let mut out = Vec::with_capacity(head_bytes + kv_bytes);
        out.put_u8(0x12);
        wire::put_varint(&mut out, kv_bytes as u64);
        wire::put_bytes_field(&mut out, 1, self.key);
        let key_end = out.len();
        wire::put_int_field(&mut out, 2, self.create_revision);
        wire::put_int_field(&mut out, 3, self.mod_revision);
        wire::put_int_field(&mut out, 4, self.version);
        wire::put_bytes_field(&mut out, 5, self.value);
        wire::put_int_field(&mut out, 6, self.lease);
        debug_assert_eq!(out.len(), head_bytes + kv_bytes);
        let event = Bytes::from(out);
        let key = event.slice(key_end - self.key.len()..key_end);
        let row = event.slice(head_bytes..);
        Encoded { key, event, row }
    }
}

/// The event of a delete names its revision; the stored tombstone is the key alone.
pub(crate) fn encode_delete(key: &[u8], mod_revision: i64) -> Encoded {
    let row_bytes = wire::bytes_field_len(1, key);
    let kv_bytes = row_bytes + wire::int_field_len(3, mod_revision);
    let head_bytes = 3 + wire::varint_len(kv_bytes as u64);
    let mut out = Vec::with_capacity(head_bytes + kv_bytes);
    out.put_slice(&[0x08, 0x01, 0x12]);
    wire::put_varint(&mut out, kv_bytes as u64);
    wire::put_bytes_field(&mut out, 1, key);
    let row_end = out.len();
    wire::put_int_field(&mut out, 3, mod_revision);
    let event = Bytes::from(out);
    let key = event.slice(row_end - key.len()..row_end);
    let row = event.slice(row_end - row_bytes..row_end);
    Encoded { key, event, row }
}

/// The event of a stored row, for watchers that catch up from history.
pub(crate) fn event_of_row(row: &engine::Row, previous: Option<Revision>) -> Event {
    let stored = wire::Kv::read(&row.kv);
    let encoded = if row.tombstone {
        encode_delete(stored.key, row.revision.main).event
    } else {
        let mut out = Vec::with_capacity(1 + wire::varint_len(row.kv.len() as u64) + row.kv.len());
        wire::put_bytes_field(&mut out, 2, &row.kv);
        Bytes::from(out)
    };
    let create = !row.tombstone && stored.create_revision == row.revision.main;
    let key = row.kv.slice_ref(stored.key);
    Event { key, delete: row.tombstone, create, encoded, previous }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::mvccpb;
    use prost::Message;

    #[test]
    fn a_put_is_encoded_as_protobuf_would() {
        for (value, lease) in [(&b"v"[..], 0), (b"", -3), (&[7; 300], 99)] {
            let pair =
                Pair { key: b"k", create_revision: 5, mod_revision: 7, version: 2, value, lease };
            let encoded = pair.encode();
            let event = mvccpb::Event::decode(encoded.event.clone()).expect("an event");
            assert_eq!(event.r#type(), mvccpb::event::EventType::Put);
            let kv = event.kv.expect("a pair");
            assert_eq!(kv.encode_to_vec(), encoded.row);
            assert_eq!(kv.value, value);
            assert_eq!((kv.create_revision, kv.mod_revision, kv.version), (5, 7, 2));
            assert_eq!(kv.lease, lease);
            assert_eq!(encoded.key.as_ref(), b"k");
        }
    }

    #[test]
    fn a_delete_event_names_its_revision_and_the_row_does_not() {
        let encoded = encode_delete(b"gone", 300);
        let event = mvccpb::Event::decode(encoded.event).expect("an event");
        let kv = mvccpb::KeyValue { key: "gone".into(), mod_revision: 300, ..Default::default() };
        assert_eq!(event.r#type(), mvccpb::event::EventType::Delete);
        assert_eq!(event.kv, Some(kv));
        let row = mvccpb::KeyValue { key: "gone".into(), ..Default::default() };
        assert_eq!(encoded.row, row.encode_to_vec());
        assert_eq!(encoded.key.as_ref(), b"gone");
    }
}
