//! The vocabulary of the log: entries, hard state, configurations, and their bytes in etcd's encoding.
//!
//! Shared by `wal` (which stores them), `raft` (which decides about them) and `store` (which
//! applies them). Written by hand because etcd writes these messages in the old style, in which a
//! field that is zero is written all the same, and because an entry is encoded on every put.
//!
//! Decoders take any bytes and answer with an error, never with a panic; unknown fields are skipped.

pub mod codec;

pub use codec::DecodeError;
use codec::{Field, Fields, put_bytes, put_uint};

use bytes::Bytes;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EntryKind {
    #[default]
    Normal = 0,
    ConfChange = 1,
    ConfChangeV2 = 2,
}

/// One entry of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    pub kind: EntryKind,
    pub term: u64,
    pub index: u64,
    pub data: Bytes,
}

impl Entry {
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_uint(out, 1, self.kind as u64);
        put_uint(out, 2, self.term);
        put_uint(out, 3, self.index);
        // The leader's empty entry has no data field at all.
        if !self.data.is_empty() {
            put_bytes(out, 4, &self.data);
        }
    }

    pub fn decode(bytes: &Bytes) -> Result<Entry, DecodeError> {
        let mut entry = Entry::default();
        for field in Fields::new(bytes) {
            match field? {
                Field::Uint(1, 0) => entry.kind = EntryKind::Normal,
                Field::Uint(1, 1) => entry.kind = EntryKind::ConfChange,
                Field::Uint(1, 2) => entry.kind = EntryKind::ConfChangeV2,
                Field::Uint(1, _) => return Err(DecodeError("unknown entry type")),
                Field::Uint(2, term) => entry.term = term,
                Field::Uint(3, index) => entry.index = index,
                Field::Bytes(4, data) => entry.data = bytes.slice_ref(data),
                _ => {}
            }
        }
        Ok(entry)
    }
}

/// What a member must not forget about its votes and its progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HardState {
    pub term: u64,
    pub vote: u64,
    pub commit: u64,
}

impl HardState {
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_uint(out, 1, self.term);
        put_uint(out, 2, self.vote);
        put_uint(out, 3, self.commit);
    }

    pub fn decode(bytes: &[u8]) -> Result<HardState, DecodeError> {
        let mut state = HardState::default();
        for field in Fields::new(bytes) {
            match field? {
                Field::Uint(1, term) => state.term = term,
                Field::Uint(2, vote) => state.vote = vote,
                Field::Uint(3, commit) => state.commit = commit,
                _ => {}
            }
        }
        Ok(state)
    }
}

/// Who votes and who learns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfState {
    pub voters: Vec<u64>,
    pub learners: Vec<u64>,
    pub voters_outgoing: Vec<u64>,
    pub learners_next: Vec<u64>,
    pub auto_leave: bool,
}

impl ConfState {
    pub fn encode(&self, out: &mut Vec<u8>) {
        let lists = [&self.voters, &self.learners, &self.voters_outgoing, &self.learners_next];
        for (number, list) in (1..).zip(lists) {
            for &id in list {
                put_uint(out, number, id);
            }
        }
        put_uint(out, 5, self.auto_leave as u64);
    }

    pub fn decode(bytes: &[u8]) -> Result<ConfState, DecodeError> {
        let mut state = ConfState::default();
        for field in Fields::new(bytes) {
            match field? {
                Field::Uint(1, id) => state.voters.push(id),
                Field::Uint(2, id) => state.learners.push(id),
                Field::Uint(3, id) => state.voters_outgoing.push(id),
                Field::Uint(4, id) => state.learners_next.push(id),
                Field::Uint(5, leave) => state.auto_leave = leave != 0,
                _ => {}
            }
        }
        Ok(state)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConfChangeKind {
    #[default]
    AddNode = 0,
    RemoveNode = 1,
    UpdateNode = 2,
    AddLearnerNode = 3,
}

/// A change of one member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfChange {
    pub id: u64,
    pub kind: ConfChangeKind,
    pub node_id: u64,
    /// The member as JSON; empty when a member is removed.
    pub context: Bytes,
}

impl ConfChange {
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_uint(out, 1, self.id);
        put_uint(out, 2, self.kind as u64);
        put_uint(out, 3, self.node_id);
        if !self.context.is_empty() {
            put_bytes(out, 4, &self.context);
        }
    }

    pub fn decode(bytes: &Bytes) -> Result<ConfChange, DecodeError> {
        let mut change = ConfChange::default();
        for field in Fields::new(bytes) {
            match field? {
                Field::Uint(1, id) => change.id = id,
                Field::Uint(2, 0) => change.kind = ConfChangeKind::AddNode,
                Field::Uint(2, 1) => change.kind = ConfChangeKind::RemoveNode,
                Field::Uint(2, 2) => change.kind = ConfChangeKind::UpdateNode,
                Field::Uint(2, 3) => change.kind = ConfChangeKind::AddLearnerNode,
                Field::Uint(2, _) => return Err(DecodeError("unknown conf change type")),
                Field::Uint(3, id) => change.node_id = id,
                Field::Bytes(4, context) => change.context = bytes.slice_ref(context),
                _ => {}
            }
        }
        Ok(change)
    }
}

/// A snapshot as a peer sends it and as a `.snap` file holds it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The members and the version, as etcd's v2 store writes them in JSON.
    pub data: Bytes,
    pub conf_state: ConfState,
    pub index: u64,
    pub term: u64,
}

impl Snapshot {
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut conf_state = Vec::new();
        self.conf_state.encode(&mut conf_state);
        let mut metadata = Vec::new();
        put_bytes(&mut metadata, 1, &conf_state);
        put_uint(&mut metadata, 2, self.index);
        put_uint(&mut metadata, 3, self.term);
        if !self.data.is_empty() {
            put_bytes(out, 1, &self.data);
        }
        put_bytes(out, 2, &metadata);
    }

    pub fn decode(bytes: &Bytes) -> Result<Snapshot, DecodeError> {
        let mut snapshot = Snapshot::default();
        for field in Fields::new(bytes) {
            match field? {
                Field::Bytes(1, data) => snapshot.data = bytes.slice_ref(data),
                Field::Bytes(2, metadata) => {
                    for field in Fields::new(metadata) {
                        match field? {
                            Field::Bytes(1, state) => {
                                snapshot.conf_state = ConfState::decode(state)?
                            }
                            Field::Uint(2, index) => snapshot.index = index,
                            Field::Uint(3, term) => snapshot.term = term,
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(snapshot)
    }
}
