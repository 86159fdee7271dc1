//! The bytes of a `WatchResponse`: the head that each watcher has for its own, and the cutting of
//! big responses into fragments. Written by hand because a head is written for every watcher of
//! every change, and the events behind it must not be encoded again.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use prost::encoding::{decode_varint, encode_varint};

/// Field numbers and wire types, as they stand before each field.
mod tag {
    pub const HEADER: u8 = 1 << 3 | 2;
    pub const WATCH_ID: u8 = 2 << 3;
    pub const CREATED: u8 = 3 << 3;
    pub const CANCELED: u8 = 4 << 3;
    pub const COMPACT_REVISION: u8 = 5 << 3;
    pub const CANCEL_REASON: u8 = 6 << 3 | 2;
    pub const FRAGMENT: u8 = 7 << 3;
    pub const EVENTS: u8 = 11 << 3 | 2;
    pub const EVENT_PREV_KV: u8 = 3 << 3 | 2;
}

/// Everything of a response but its header and events. Zero values are left out on the wire.
#[derive(Clone, Copy, Default)]
pub struct Head<'a> {
    pub watch_id: i64,
    pub created: bool,
    pub canceled: bool,
    pub compact_revision: i64,
    pub cancel_reason: &'a str,
    pub fragment: bool,
}

/// An encoded `header` field: written once for all the responses of one call that say the same.
#[derive(Clone, Copy)]
pub struct Header {
    bytes: [u8; 46],
    used: usize,
}

/// Writes heads, one behind the other into shared buffers: a change that a thousand watchers wait
/// for costs a few allocations.
pub struct Heads {
    cluster_id: u64,
    member_id: u64,
    buffer: BytesMut,
}

const BUFFER_BYTES: usize = 16 << 10;

impl Heads {
    pub fn new(cluster_id: u64, member_id: u64) -> Heads {
        Heads { cluster_id, member_id, buffer: BytesMut::new() }
    }

    pub fn header(&self, revision: i64, raft_term: u64) -> Header {
        let mut bytes = [0; 46];
        let mut rest = &mut bytes[2..];
        let fields = [self.cluster_id, self.member_id, revision as u64, raft_term];
        for (number, value) in (1..).zip(fields).filter(|&(_, value)| value != 0) {
            rest.put_u8(number << 3);
            encode_varint(value, &mut rest);
        }
        let inner = 44 - rest.len();
        // At most 4 fields of 11 bytes: the length takes one byte.
        bytes[0] = tag::HEADER;
        bytes[1] = inner as u8;
        Header { bytes, used: 2 + inner }
    }

    pub fn write(&mut self, header: &Header, head: &Head) -> Bytes {
        let bytes_max = header.used + 48 + head.cancel_reason.len();
        if self.buffer.capacity() < bytes_max {
            self.buffer.reserve(BUFFER_BYTES.max(bytes_max));
        }
        let buffer = &mut self.buffer;
        buffer.put_slice(&header.bytes[..header.used]);
        if head.watch_id != 0 {
            buffer.put_u8(tag::WATCH_ID);
            encode_varint(head.watch_id as u64, buffer);
        }
        if head.created {
            buffer.put_slice(&[tag::CREATED, 1]);
        }
        if head.canceled {
            buffer.put_slice(&[tag::CANCELED, 1]);
        }
        if head.compact_revision != 0 {
            buffer.put_u8(tag::COMPACT_REVISION);
            encode_varint(head.compact_revision as u64, buffer);
        }
        if !head.cancel_reason.is_empty() {
            buffer.put_u8(tag::CANCEL_REASON);
            encode_varint(head.cancel_reason.len() as u64, buffer);
            buffer.put_slice(head.cancel_reason.as_bytes());
        }
        if head.fragment {
            buffer.put_slice(&FRAGMENT_FLAG);
        }
        buffer.split().freeze()
    }
}

const FRAGMENT_FLAG: [u8; 2] = [tag::FRAGMENT, 1];

/// Appends one tagged event: the encoding that all share, and behind it the previous pair.
pub fn put_event(buffer: &mut BytesMut, event: &[u8], previous: Option<&[u8]>) {
    let previous_bytes = previous.map_or(0, |kv| 1 + varint_bytes(kv.len()) + kv.len());
    let event_bytes = event.len() + previous_bytes;
    buffer.reserve(1 + varint_bytes(event_bytes) + event_bytes);
    buffer.put_u8(tag::EVENTS);
    encode_varint(event_bytes as u64, buffer);
    buffer.put_slice(event);
    if let Some(kv) = previous {
        buffer.put_u8(tag::EVENT_PREV_KV);
        encode_varint(kv.len() as u64, buffer);
        buffer.put_slice(kv);
    }
}

fn varint_bytes(value: usize) -> usize {
    prost::encoding::encoded_len_varint(value as u64)
}

/// Cuts tagged events into the parts of a fragmented response: as many events as stay below the
/// limit together with a head of this size, and at least one. A single part means that nothing is
/// to be cut.
pub fn fragments(head_bytes: usize, events: &Bytes, bytes_limit: usize) -> Vec<Bytes> {
    if head_bytes + events.len() < bytes_limit {
        return vec![events.clone()];
    }
    // All parts but the last say that more follows; etcd counts that flag for the last one too.
    let head_bytes = head_bytes + FRAGMENT_FLAG.len();
    let mut parts = Vec::new();
    let (mut begin, mut end) = (0, 0);
    while end < events.len() {
        let next = end + event_bytes(&events[end..]);
        if end > begin && head_bytes + next - begin >= bytes_limit {
            parts.push(events.slice(begin..end));
            begin = end;
        }
        end = next;
    }
    parts.push(events.slice(begin..end));
    parts
}

/// The size of the first of some tagged events, its tag and length included.
fn event_bytes(events: &[u8]) -> usize {
    let mut rest = events;
    assert_eq!(rest.get_u8(), tag::EVENTS, "tagged events begin with their tag");
    let inner = decode_varint(&mut rest).expect("the length was written by put_event");
    events.len() - rest.len() + inner as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::etcdserverpb::{ResponseHeader, WatchResponse};
    use prost::Message;

    /// What is written by hand is byte for byte what the generated encoder writes.
    #[test]
    fn heads_are_canonical() {
        for revision in [0, 1, i64::MAX] {
            for (watch_id, flags) in [(0, false), (7, true), (-1, true), (i64::MIN, false)] {
                let mut heads = Heads::new(u64::MAX, 1 << 63);
                let header = heads.header(revision, u64::MAX);
                let reason = if flags { "why" } else { "" };
                let head = heads.write(
                    &header,
                    &Head {
                        watch_id,
                        created: flags,
                        canceled: flags,
                        compact_revision: revision,
                        cancel_reason: reason,
                        fragment: flags,
                    },
                );
                let expected = WatchResponse {
                    header: Some(ResponseHeader {
                        cluster_id: u64::MAX,
                        member_id: 1 << 63,
                        revision,
                        raft_term: u64::MAX,
                    }),
                    watch_id,
                    created: flags,
                    canceled: flags,
                    compact_revision: revision,
                    cancel_reason: reason.into(),
                    fragment: flags,
                    events: Vec::new(),
                };
                assert_eq!(head, expected.encode_to_vec());
            }
        }
    }

    #[test]
    fn fragments_stay_below_the_limit_and_never_cut_an_event() {
        let mut events = BytesMut::new();
        for bytes in [10, 10, 200, 10, 10] {
            put_event(&mut events, &vec![b'x'; bytes], None);
        }
        let events = events.freeze();
        let sizes = |limit| -> Vec<usize> {
            fragments(20, &events, limit).iter().map(|part| part.len()).collect()
        };
        assert_eq!(sizes(1000), [251]);
        assert_eq!(sizes(272), [251]);
        // Each event takes 2 or 3 bytes more than its size, a head with its flag 22.
        assert_eq!(sizes(271), [239, 12]);
        assert_eq!(sizes(47), [24, 203, 24]);
        assert_eq!(sizes(46), [12, 12, 203, 12, 12]);
        assert_eq!(sizes(1), [12, 12, 203, 12, 12]);
    }
}
