//! The header that stands before every answer.

use bytes::{BufMut, Bytes, BytesMut};

/// Writes `ResponseHeader`s as field 1 of a response. An answer's other fields are simply put
/// behind it: protobuf messages concatenate.
#[derive(Debug)]
pub struct Headers {
    cluster_id: u64,
    member_id: u64,
    scratch: BytesMut,
}

/// Bytes set aside at a time for headers: a few hundred of them share one allocation.
const SCRATCH_BYTES: usize = 16 << 10;
/// Tag and length, and four fields of at most a tag and ten bytes.
const HEADER_BYTES_MAX: usize = 2 + 4 * 11;

impl Headers {
    pub fn new(cluster_id: u64, member_id: u64) -> Headers {
        Headers { cluster_id, member_id, scratch: BytesMut::new() }
    }

    pub fn write(&mut self, revision: i64, raft_term: u64) -> Bytes {
        if self.scratch.capacity() - self.scratch.len() < HEADER_BYTES_MAX {
            self.scratch = BytesMut::with_capacity(SCRATCH_BYTES);
        }
        self.scratch.put_slice(&[0x0a, 0]);
        let fields = [self.cluster_id, self.member_id, revision as u64, raft_term];
        for (number, value) in (1u8..).zip(fields) {
            if value != 0 {
                self.scratch.put_u8(number << 3);
                put_varint(&mut self.scratch, value);
            }
        }
        // At most 44 bytes, so the length is one byte.
        self.scratch[1] = (self.scratch.len() - 2) as u8;
        self.scratch.split().freeze()
    }
}

pub fn put_varint(out: &mut impl BufMut, mut value: u64) {
    while value >= 0x80 {
        out.put_u8(value as u8 | 0x80);
        value >>= 7;
    }
    out.put_u8(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::etcdserverpb::{PutResponse, ResponseHeader};
    use prost::Message;

    #[test]
    fn a_header_reads_back_with_whatever_follows_it() {
        let mut headers = Headers::new(u64::MAX, 7);
        for (revision, raft_term) in [(0, 0), (1, 2), (i64::MAX, u64::MAX), (-1, 3)] {
            let mut bytes = headers.write(revision, raft_term).to_vec();
            bytes.extend([0x12, 3, 0x0a, 1, b'k']);
            let response = PutResponse::decode(&bytes[..]).expect("it decodes");
            let header = ResponseHeader { cluster_id: u64::MAX, member_id: 7, revision, raft_term };
            assert_eq!(response.header, Some(header));
            assert_eq!(response.prev_kv.expect("the rest is there").key, "k");
        }
    }
}
