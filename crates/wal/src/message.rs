//! What the log stores besides Raft's own messages: whose log it is, and where snapshots were.

use bytes::Bytes;
use raftpb::codec::{Field, Fields, put_bytes, put_uint};
use raftpb::{ConfState, DecodeError};

/// Whose log this is. Stands at the head of every segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    pub node_id: u64,
    pub cluster_id: u64,
    /// Fields of other numbers, in their wire form. etcd's tools skip them.
    pub extra: Bytes,
}

impl Metadata {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_uint(&mut out, 1, self.node_id);
        put_uint(&mut out, 2, self.cluster_id);
        out.extend_from_slice(&self.extra);
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Metadata, DecodeError> {
        let mut metadata = Metadata::default();
        let mut extra = Vec::new();
        let mut fields = Fields::new(bytes);
        loop {
            let before = fields.rest();
            let Some(field) = fields.next() else { break };
            match field? {
                Field::Uint(1, id) => metadata.node_id = id,
                Field::Uint(2, id) => metadata.cluster_id = id,
                _ => extra.extend_from_slice(&before[..before.len() - fields.rest().len()]),
            }
        }
        metadata.extra = extra.into();
        Ok(metadata)
    }
}

/// The log's note that a snapshot exists and is durable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SnapshotMark {
    pub index: u64,
    pub term: u64,
    /// Missing at index 0, and in logs that began before etcd 3.5.
    pub conf_state: Option<ConfState>,
}

impl SnapshotMark {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_uint(&mut out, 1, self.index);
        put_uint(&mut out, 2, self.term);
        if let Some(conf_state) = &self.conf_state {
            let mut inner = Vec::new();
            conf_state.encode(&mut inner);
            put_bytes(&mut out, 3, &inner);
        }
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<SnapshotMark, DecodeError> {
        let mut mark = SnapshotMark::default();
        for field in Fields::new(bytes) {
            match field? {
                Field::Uint(1, index) => mark.index = index,
                Field::Uint(2, term) => mark.term = term,
                Field::Bytes(3, state) => mark.conf_state = Some(ConfState::decode(state)?),
                _ => {}
            }
        }
        Ok(mark)
    }
}
