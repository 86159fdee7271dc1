//! One member's view of the consensus: its role, its term, its vote.

use crate::config::Membership;
use crate::event::Event;
use crate::log::Log;
use crate::random::Random;
use crate::ready::{Mark, Ready};
use bytes::Bytes;
use raftpb::{ConfChange, ConfState, Entry, EntryKind, HardState};
use thiserror::Error;

#[derive(Clone, Copy, Debug)]
pub struct Config {
    pub id: u64,
    /// After at least this many ticks without a leader, and less than twice as many, a member stands
    /// for election.
    pub election_ticks: u32,
    /// Must be below `election_ticks`.
    pub heartbeat_ticks: u32,
    /// Ask whether an election could be won before the term is raised.
    pub pre_vote: bool,
    /// A leader that does not hear from a quorum for `election_ticks` gives up.
    pub check_quorum: bool,
    pub seed: u64,
    /// Entries are kept in memory up to about this many bytes, unless they wait to be applied.
    pub log_bytes_max: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ProposeError {
    #[error("this member does not lead")]
    NotLeader { leader: Option<u64> },
    #[error("a change of the configuration, or one that might be in the log, is not applied yet")]
    ConfChangePending,
    /// Too much waits to be applied. It may be tried again when some of it is.
    #[error("too many requests")]
    Full,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    #[default]
    Follower,
    PreCandidate,
    Candidate,
    Leader,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    pub id: u64,
    pub term: u64,
    pub vote: u64,
    pub commit: u64,
    pub applied: u64,
    pub last_index: u64,
    pub leader: Option<u64>,
    pub role: Role,
}

pub struct Raft {
    config: Config,
    membership: Membership,
    log: Log,
    pub(crate) term: u64,
    /// 0 while none was given in this term.
    pub(crate) vote: u64,
    /// The term in which the own vote is durable.
    vote_persisted: Option<u64>,
    role: Role,
    leader: Option<u64>,
    /// As a leader: a change of the configuration may stand in the log up to here.
    conf_change_index: u64,
    ticks: u32,
    election_timeout: u32,
    random: Random,
    /// What the last ready said.
    pub(crate) told: (HardState, Role, Option<u64>),
    events: Vec<Event>,
}

impl Raft {
    pub(crate) fn start(config: Config, membership: Membership, log: Log) -> Raft {
        let events = vec![Event::ConfigSwitched { conf_state: membership.conf_state() }];
        Raft {
            config,
            membership,
            log,
            term: 0,
            vote: 0,
            vote_persisted: None,
            role: Role::Follower,
            leader: None,
            conf_change_index: 0,
            ticks: 0,
            election_timeout: 0,
            random: Random::new(config.seed),
            told: Default::default(),
            events,
        }
    }

    /// Time passes.
    pub fn tick(&mut self) {
        self.ticks += 1;
        if self.role == Role::Leader {
            if self.ticks >= self.config.election_ticks {
                self.ticks = 0;
                self.check_quorum();
            }
        } else if self.ticks >= self.election_timeout {
            self.ticks = 0;
            self.campaign();
        }
    }

    /// Lets `n` ticks pass at once: a member that starts alone need not wait for a leader.
    pub fn advance_ticks(&mut self, n: u32) {
        for _ in 0..n {
            self.tick();
        }
    }

    /// Stands for election, if it may.
    pub fn campaign(&mut self) {
        let id = self.config.id;
        if self.role == Role::Leader || !self.membership.is_voter(id) {
            return;
        }
        // Whoever leads must know the configuration that it leads.
        if self.log.has_unapplied_conf_change() {
            self.events.push(Event::CampaignPutOff { term: self.term });
            return;
        }
        self.events.push(Event::Campaigning { term: self.term });
        if self.config.pre_vote {
            self.reset(Role::PreCandidate);
            self.events.push(Event::BecamePreCandidate { term: self.term });
            if !self.membership.is_quorum(|voter| voter == id) {
                return;
            }
        }
        self.term += 1;
        self.vote = id;
        self.reset(Role::Candidate);
        self.events.push(Event::BecameCandidate { term: self.term });
    }

    /// Appends an entry, if this member leads, and returns its index.
    pub fn propose(&mut self, kind: EntryKind, data: Bytes) -> Result<u64, ProposeError> {
        if self.role != Role::Leader {
            return Err(ProposeError::NotLeader { leader: self.leader });
        }
        if self.log.is_full() {
            return Err(ProposeError::Full);
        }
        if kind != EntryKind::Normal {
            if self.conf_change_index > self.log.applied {
                return Err(ProposeError::ConfChangePending);
            }
            self.conf_change_index = self.log.last_index() + 1;
        }
        Ok(self.append(kind, data))
    }

    /// Whether [`Raft::ready`] has anything to say.
    pub fn has_ready(&self) -> bool {
        self.log.has_unpersisted()
            || self.log.has_committed()
            || !self.events.is_empty()
            || self.told != (self.hard_state(), self.role, self.leader)
    }

    /// What is to be done now.
    pub fn ready(&mut self) -> Ready {
        let hard_state = self.hard_state();
        let told = std::mem::replace(&mut self.told, (hard_state, self.role, self.leader));
        let entries = self.log.take_unpersisted();
        let voted = (hard_state.term, hard_state.vote) != (told.0.term, told.0.vote);
        Ready {
            must_sync: voted || !entries.is_empty(),
            hard_state: (hard_state != told.0).then_some(hard_state),
            entries,
            mark: Mark {
                index: self.log.last_index(),
                index_term: self.log.last_term(),
                term: self.term,
                vote: self.vote,
            },
            committed: self.log.take_committed(),
            soft_state: ((self.role, self.leader) != (told.1, told.2))
                .then_some((self.role, self.leader)),
            events: std::mem::take(&mut self.events),
        }
    }

    /// What the ready with this mark, and all before it, asked to be persisted is durable.
    pub fn persisted(&mut self, mark: Mark) {
        self.log.set_persisted(mark.index, mark.index_term);
        if mark.term == self.term && mark.vote == self.config.id {
            self.vote_persisted = Some(self.term);
        }
        match self.role {
            Role::Candidate => self.count_votes(),
            Role::Leader => self.advance_commit(),
            Role::Follower | Role::PreCandidate => {}
        }
    }

    /// All entries up to `index` are applied.
    pub fn applied(&mut self, index: u64) {
        self.log.set_applied(index);
    }

    /// Makes a change that is being applied, and returns the configuration from now on.
    pub fn apply_conf_change(&mut self, change: &ConfChange) -> ConfState {
        self.membership.apply(change);
        let conf_state = self.membership.conf_state();
        self.events.push(Event::ConfigSwitched { conf_state: conf_state.clone() });
        // A smaller quorum may have what the larger one had not.
        if self.role == Role::Leader {
            self.advance_commit();
        }
        conf_state
    }

    /// Forgets the entries in memory up to `index`, as far as they are applied and persisted.
    pub fn compact(&mut self, index: u64) {
        self.log.compact(index);
    }

    pub fn status(&self) -> Status {
        Status {
            id: self.config.id,
            term: self.term,
            vote: self.vote,
            commit: self.log.commit,
            applied: self.log.applied,
            last_index: self.log.last_index(),
            leader: self.leader,
            role: self.role,
        }
    }

    /// The term of an entry, if it is still in memory (or stands just in front of it).
    pub fn term_at(&self, index: u64) -> Option<u64> {
        self.log.term(index)
    }

    /// The index of the first entry in memory.
    pub fn first_index(&self) -> u64 {
        self.log.first_index()
    }

    pub fn conf_state(&self) -> ConfState {
        self.membership.conf_state()
    }

    pub fn is_sole_voter(&self) -> bool {
        self.membership.is_sole_voter(self.config.id)
    }

    /// Whether this member leads and has committed in its term: before that it may not know all
    /// that is committed, so its state must not be read as the latest.
    pub fn committed_in_term(&self) -> bool {
        self.role == Role::Leader && self.log.term(self.log.commit) == Some(self.term)
    }

    fn hard_state(&self) -> HardState {
        HardState { term: self.term, vote: self.vote, commit: self.log.commit }
    }

    /// Only the own vote there is: one voter is its own quorum, and of several none wins.
    fn count_votes(&mut self) {
        let own = self.vote_persisted == Some(self.term);
        let id = self.config.id;
        if own && self.membership.is_quorum(|voter| voter == id) {
            self.become_leader();
        }
    }

    fn become_leader(&mut self) {
        self.reset(Role::Leader);
        self.events.push(Event::BecameLeader { term: self.term });
        self.follow(Some(self.config.id));
        // What an earlier leader appended is not known to be applied; a change might be among it.
        self.conf_change_index = self.log.last_index();
        // Entries of earlier terms are committed together with this one, never by counting alone.
        self.append(EntryKind::Normal, Bytes::new());
    }

    pub(crate) fn become_follower(&mut self) {
        self.reset(Role::Follower);
        self.events.push(Event::BecameFollower { term: self.term });
    }

    fn check_quorum(&mut self) {
        let id = self.config.id;
        if self.config.check_quorum && !self.membership.is_quorum(|voter| voter == id) {
            self.events.push(Event::SteppedDown { term: self.term });
            self.become_follower();
        }
    }

    /// Takes a role, with a new timeout and without a leader.
    fn reset(&mut self, role: Role) {
        self.role = role;
        self.ticks = 0;
        let spread = self.random.below(self.config.election_ticks);
        self.election_timeout = self.config.election_ticks + spread;
        self.follow(None);
    }

    fn follow(&mut self, leader: Option<u64>) {
        if leader == self.leader {
            return;
        }
        let term = self.term;
        match (self.leader, leader) {
            (_, Some(leader)) => self.events.push(Event::LeaderElected { leader, term }),
            (Some(leader), None) => self.events.push(Event::LeaderLost { leader, term }),
            (None, None) => {}
        }
        self.leader = leader;
    }

    fn append(&mut self, kind: EntryKind, data: Bytes) -> u64 {
        let index = self.log.last_index() + 1;
        self.log.append(Entry { kind, term: self.term, index, data });
        index
    }

    fn advance_commit(&mut self) {
        let (id, persisted) = (self.config.id, self.log.persisted);
        let index = self.membership.quorum_index(|voter| if voter == id { persisted } else { 0 });
        if index > self.log.commit && self.log.term(index) == Some(self.term) {
            self.log.commit = index;
        }
    }
}
