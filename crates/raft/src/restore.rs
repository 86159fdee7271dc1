//! How a member begins: from its disk, or as a founder.

use crate::config::Membership;
use crate::log::Log;
use crate::raft::{Config, Raft};
use bytes::Bytes;
use raftpb::{ConfChange, ConfState, Entry, EntryKind, HardState};
use thiserror::Error;

/// What a member finds on its disk.
#[derive(Clone, Debug, Default)]
pub struct Restored {
    pub hard_state: HardState,
    /// The configuration in force at `applied`.
    pub conf_state: ConfState,
    /// Index and term of the snapshot behind which the entries begin.
    pub snapshot: (u64, u64),
    pub entries: Vec<Entry>,
    pub applied: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RestoreError {
    #[error("the member id must not be 0")]
    NoId,
    #[error("the election timeout ({election} ticks) must be above the heartbeat ({heartbeat})")]
    Ticks { election: u32, heartbeat: u32 },
    #[error("entry {found} stands in the log where entry {expected} should")]
    OutOfOrder { expected: u64, found: u64 },
    #[error(
        "the log ends at index {last}, but {needed} was {what}: entries are missing at its end. Was \
         the log replaced by an older copy? Put the right one back, or empty the data directory and \
         start again as a new member"
    )]
    EntriesLost { last: u64, needed: u64, what: &'static str },
    #[error(
        "the state was applied up to index {applied}, but the log begins behind {start}: entries are \
         missing in between. Put the right log back, or start again as a new member"
    )]
    EntriesMissing { applied: u64, start: u64 },
}

impl Raft {
    /// A member that continues from its disk.
    pub fn new(config: Config, restored: Restored) -> Result<Raft, RestoreError> {
        check(&config)?;
        let Restored { hard_state, conf_state, snapshot, entries, applied } = restored;
        for (expected, entry) in (snapshot.0 + 1..).zip(&entries) {
            if entry.index != expected {
                return Err(RestoreError::OutOfOrder { expected, found: entry.index });
            }
        }
        let last = snapshot.0 + entries.len() as u64;
        for (needed, what) in [(hard_state.commit, "committed"), (applied, "applied")] {
            if needed > last {
                return Err(RestoreError::EntriesLost { last, needed, what });
            }
        }
        if applied < snapshot.0 {
            return Err(RestoreError::EntriesMissing { applied, start: snapshot.0 });
        }
        let last_term = entries.last().map_or(snapshot.1, |entry| entry.term);
        // The state machine may have made its commit durable while the hard state was not.
        let commit = hard_state.commit.max(applied);
        let log = Log::new(snapshot, entries, commit, applied, config.log_bytes_max);
        let mut raft = Raft::start(config, Membership::new(&conf_state), log);
        raft.term = hard_state.term;
        raft.vote = hard_state.vote;
        if last_term > raft.term {
            // The hard state that came with these entries did not reach the disk. No vote was sent
            // in that term either, for votes wait for it.
            raft.term = last_term;
            raft.vote = 0;
        }
        raft.told.0 = hard_state;
        raft.become_follower();
        Ok(raft)
    }

    /// A founding member: the log of all founders begins with the same entries, one for each,
    /// committed from the start. Each comes with its context (the member as JSON).
    pub fn found(config: Config, members: &[(u64, Bytes)]) -> Result<Raft, RestoreError> {
        check(&config)?;
        let mut members = members.to_vec();
        members.sort();
        let mut log = Log::new((0, 0), Vec::new(), 0, 0, config.log_bytes_max);
        let mut membership = Membership::default();
        for (index, (node_id, context)) in (1..).zip(members) {
            let change = ConfChange { node_id, context, ..ConfChange::default() };
            membership.apply(&change);
            let mut data = Vec::new();
            change.encode(&mut data);
            let kind = EntryKind::ConfChange;
            log.append(Entry { kind, term: 1, index, data: data.into() });
        }
        log.commit = log.last_index();
        let mut raft = Raft::start(config, membership, log);
        raft.term = 1;
        raft.become_follower();
        Ok(raft)
    }
}

fn check(config: &Config) -> Result<(), RestoreError> {
    let (election, heartbeat) = (config.election_ticks, config.heartbeat_ticks);
    if config.id == 0 {
        return Err(RestoreError::NoId);
    }
    if heartbeat == 0 || election <= heartbeat {
        return Err(RestoreError::Ticks { election, heartbeat });
    }
    Ok(())
}
