//! Events in, effects out.

use crate::compactor::{Compactor, Mode};
use crate::lease::{self, Leases, Renewal, Wish};
use crate::{Ids, Now};
use api::etcdserverpb::{
    CompactionRequest, InternalRaftRequest, LeaseCheckpoint, LeaseCheckpointRequest,
    LeaseRevokeRequest, RequestHeader,
};
use api::membershippb::{Attributes, ClusterMemberAttrSetRequest, ClusterVersionSetRequest};
use bytes::Bytes;
use prost::Message;
use raft::{Raft, Restored, Role};
use raftpb::{ConfChange, Entry, EntryKind, HardState};
use std::collections::BTreeMap;

/// How this replica behaves.
#[derive(Clone, Debug)]
pub struct Config {
    pub raft: raft::Config,
    pub member_id: u64,
    /// What this member tells the cluster about itself at every start.
    pub name: String,
    pub client_urls: Vec<String>,
    /// The version a leader raises the cluster to.
    pub cluster_version: String,
    /// Microseconds.
    pub election: u64,
    pub request_timeout: u64,
    pub lease_checkpoint: bool,
    /// A single member need not wait for an election timeout: there is nobody to disagree.
    pub campaign_at_once: bool,
    pub compaction: Mode,
    /// The request ids of the proposals that are made here.
    pub ids: Ids,
}

/// Where a replica's log comes from.
#[derive(Clone, Debug)]
pub enum Origin {
    /// Nowhere: it is one of the founders, each with its member's JSON.
    Founding(Vec<(u64, Bytes)>),
    Restored(Restored),
}

/// Who asked: one of the shell's desks, and its own word for the question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asker {
    pub desk: usize,
    pub token: u64,
}

/// What only the leader can answer, and does so without the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// From which applied index on is a read fresh?
    Read,
    Renew {
        lease: i64,
    },
    TimeToLive {
        lease: i64,
    },
    Leases,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    ReadAt {
        index: u64,
    },
    Renewed {
        ttl: i64,
    },
    TimeToLive {
        ttl: i64,
        granted: i64,
    },
    /// There is no such lease.
    NoLease,
    Leases(Vec<i64>),
}

/// Everything that can happen to a replica.
#[derive(Clone, Debug)]
pub enum Event {
    /// One heartbeat interval has passed.
    Tick,
    /// A request for the log, as an encoded `InternalRaftRequest`.
    Propose {
        id: u64,
        data: Bytes,
    },
    ProposeConfChange {
        change: ConfChange,
    },
    /// The log is synced up to what came with this mark.
    Persisted {
        mark: raft::Mark,
    },
    /// The store has applied up to this entry, and these are the facts that matter here.
    Applied {
        index: u64,
        revision: i64,
        facts: Vec<Fact>,
    },
    /// A proposal made here was applied.
    Settled {
        id: u64,
        done: bool,
    },
    Asked {
        asker: Asker,
        question: Question,
    },
}

/// What the store learnt from an entry that the replica must know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    LeaseGranted {
        lease: i64,
        ttl: i64,
    },
    LeaseRevoked {
        lease: i64,
    },
    LeaseCheckpointed {
        lease: i64,
        remaining: i64,
    },
    /// A change of members went through the log. One that the store refused has node id 0.
    ConfChange(ConfChange),
    ClusterVersion(String),
    /// The cluster is to go back to this version; `None`: it is not.
    Downgrade {
        target: Option<String>,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Persist {
    pub hard_state: Option<HardState>,
    pub entries: Vec<Entry>,
    /// A new commit index alone may wait for the next sync.
    pub must_sync: bool,
    /// Comes back with `Persisted` when all this is synced.
    pub mark: raft::Mark,
}

/// What this member has told the cluster about itself, once it is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published;

/// What an operator may want to read in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    Raft(raft::Event),
    Published(Published),
    SettingClusterVersion,
    Compacting { revision: i64 },
    Compacted { revision: i64 },
    CompactionFailed { revision: i64 },
}

/// Everything a replica may ask of the world. Carried out in the order of the fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// To be appended to the log and synced, then reported as `Persisted`.
    pub persist: Persist,
    /// Committed, to be applied in this order, then reported as `Applied`.
    pub apply: Vec<Entry>,
    pub answers: Vec<(Asker, Answer)>,
    /// Ids of proposals that could not even be tried.
    pub refused: Vec<u64>,
    pub notices: Vec<Notice>,
}

/// What a proposal of our own is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Errand {
    Publish,
    ClusterVersion,
    Compaction {
        revision: i64,
    },
    Lease,
    /// A lease is to be renewed, so what its checkpoint says is left must no longer count.
    ClearCheckpoint {
        lease: i64,
    },
}

pub struct Node {
    config: Config,
    raft: Raft,
    leases: Leases,
    compactor: Compactor,
    /// Proposals made here that have not come back yet, and when to try again.
    errands: BTreeMap<u64, (Errand, Now)>,
    published: bool,
    cluster_version: Option<String>,
    /// The version that the cluster was told to go back to.
    downgrade: Option<String>,
    /// Whether the store has applied this leader's first entry: from then on it counts leases.
    leading: bool,
    revision: i64,
    reads: Vec<Asker>,
    /// Questions about a lease that wait for a leader who counts.
    early: Vec<(Asker, Question)>,
    /// Renewals that wait until their lease is gone, or its checkpoint cleared.
    renewals: Vec<(Asker, i64)>,
    wishes: Vec<Wish>,
}

impl Node {
    pub fn new(
        config: Config,
        origin: Origin,
        now: Now,
        cluster_version: Option<String>,
        revision: i64,
    ) -> Result<Node, raft::RestoreError> {
        let raft = match origin {
            Origin::Founding(members) => Raft::found(config.raft, &members)?,
            Origin::Restored(restored) => Raft::new(config.raft, restored)?,
        };
        let leases = Leases::new(lease::Config {
            election: config.election,
            request_timeout: config.request_timeout,
            checkpoint: config.lease_checkpoint,
        });
        let compactor = Compactor::new(config.compaction, now);
        Ok(Node {
            config,
            raft,
            leases,
            compactor,
            errands: BTreeMap::new(),
            published: false,
            cluster_version,
            downgrade: None,
            leading: false,
            revision,
            reads: Vec::new(),
            early: Vec::new(),
            renewals: Vec::new(),
            wishes: Vec::new(),
        })
    }

    /// A downgrade that was under way when the store was opened.
    pub fn restore_downgrade(&mut self, target: String) {
        self.downgrade = Some(target);
    }

    /// A lease that was there when the store was opened. Its time starts when somebody leads.
    pub fn restore_lease(&mut self, now: Now, lease: i64, ttl: i64, remaining: i64) {
        self.leases.granted(now, lease, ttl, remaining);
    }

    fn campaign_if_alone(&mut self) {
        let status = self.raft.status();
        let ready = status.role == Role::Follower && status.applied == status.commit;
        if self.config.campaign_at_once && ready && self.raft.is_sole_voter() {
            self.raft.campaign();
        }
    }

    pub fn status(&self) -> raft::Status {
        self.raft.status()
    }

    /// The index from which a read is fresh, if that can be said without asking anybody: this
    /// member is the only voter, leads, and has committed in its term.
    pub fn sole_read_index(&self) -> Option<u64> {
        (self.raft.is_sole_voter() && self.raft.committed_in_term())
            .then(|| self.raft.status().commit)
    }

    pub fn is_published(&self) -> bool {
        self.published
    }

    /// Decides what follows from one event. Never blocks. Call [`Node::finish`] after a batch.
    pub fn step(&mut self, now: Now, event: Event, effects: &mut Effects) {
        match event {
            Event::Tick => self.tick(now, effects),
            Event::Propose { id, data } => {
                if self.raft.propose(EntryKind::Normal, data).is_err() {
                    effects.refused.push(id);
                }
            }
            Event::ProposeConfChange { change } => {
                let mut data = Vec::new();
                change.encode(&mut data);
                if self.raft.propose(EntryKind::ConfChange, data.into()).is_err() {
                    effects.refused.push(change.id);
                }
            }
            Event::Persisted { mark } => self.raft.persisted(mark),
            Event::Applied { index, revision, facts } => {
                self.revision = revision;
                for fact in facts {
                    self.learn(now, fact, effects);
                }
                self.raft.applied(index);
                if self.raft.is_sole_voter() {
                    // Nobody will ask for them; the log on disk has them anyway.
                    self.raft.compact(index);
                }
                self.campaign_if_alone();
                self.begin_leading_when_applied(now, effects);
            }
            Event::Settled { id, done } => self.settle(now, id, done, effects),
            Event::Asked { asker, question } => self.answer(now, asker, question, effects),
        }
    }

    /// Ends a batch of events: gathers what Raft wants done and what was waiting for this.
    pub fn finish(&mut self, now: Now, effects: &mut Effects) {
        self.propose_wishes(now);
        let ready = self.raft.ready();
        effects.persist = Persist {
            hard_state: ready.hard_state,
            entries: ready.entries,
            must_sync: ready.must_sync,
            mark: ready.mark,
        };
        effects.apply = ready.committed;
        effects.notices.extend(ready.events.into_iter().map(Notice::Raft));
        if self.raft.committed_in_term() && self.raft.is_sole_voter() && !self.reads.is_empty() {
            let index = self.raft.status().commit;
            let reads = self.reads.drain(..);
            effects.answers.extend(reads.map(|asker| (asker, Answer::ReadAt { index })));
        }
    }

    fn tick(&mut self, now: Now, effects: &mut Effects) {
        self.raft.tick();
        self.campaign_if_alone();
        if self.raft.status().role != Role::Leader && self.leading {
            self.leading = false;
            self.leases.follow();
            let waited = self.renewals.drain(..);
            self.early.extend(waited.map(|(asker, lease)| (asker, Question::Renew { lease })));
        }
        self.leases.tick(now, &mut self.wishes);
        if let Some(revision) = self.compactor.tick(now, self.revision, self.leading) {
            effects.notices.push(Notice::Compacting { revision });
            let request = CompactionRequest { revision, physical: false };
            self.run_errand(now, Errand::Compaction { revision }, |entry| {
                entry.compaction = Some(request);
            });
        }
        let lost: Vec<u64> = self
            .errands
            .iter()
            .filter(|(_, (_, until))| *until <= now)
            .map(|(&id, _)| id)
            .collect();
        for id in lost {
            self.settle(now, id, false, effects);
        }
    }

    /// A leader begins its work when its own first entry is applied: before that it may not know
    /// all that its predecessors committed.
    fn begin_leading_when_applied(&mut self, now: Now, effects: &mut Effects) {
        let status = self.raft.status();
        let leads = status.role == Role::Leader;
        if self.leading || !leads || self.raft.term_at(status.applied) != Some(status.term) {
            return;
        }
        self.leading = true;
        self.leases.lead(now);
        self.publish(now);
        self.agree_on_version(now);
        for (asker, question) in std::mem::take(&mut self.early) {
            self.answer(now, asker, question, effects);
        }
    }

    fn publish(&mut self, now: Now) {
        let attributes = Attributes {
            name: self.config.name.clone(),
            client_urls: self.config.client_urls.clone(),
        };
        let request = ClusterMemberAttrSetRequest {
            member_id: self.config.member_id,
            member_attributes: Some(attributes),
        };
        self.run_errand(now, Errand::Publish, |entry| {
            entry.cluster_member_attr_set = Some(request);
        });
    }

    /// A leader brings the cluster to its own version, or to the one it was told to go back to.
    fn agree_on_version(&mut self, now: Now) {
        let wanted = self.downgrade.as_ref().unwrap_or(&self.config.cluster_version);
        if self.leading && self.cluster_version.as_ref() != Some(wanted) {
            let request = ClusterVersionSetRequest { ver: wanted.clone() };
            self.run_errand(now, Errand::ClusterVersion, |entry| {
                entry.cluster_version_set = Some(request);
            });
        }
    }

    fn learn(&mut self, now: Now, fact: Fact, effects: &mut Effects) {
        match fact {
            Fact::LeaseGranted { lease, ttl } => self.leases.granted(now, lease, ttl, 0),
            Fact::LeaseRevoked { lease } => {
                self.leases.revoked(lease);
                self.leases.propose_revokes(now, &mut self.wishes);
                self.renew_again(now, lease, effects);
            }
            Fact::LeaseCheckpointed { lease, remaining } => {
                self.leases.checkpointed(lease, remaining);
            }
            Fact::ConfChange(change) => {
                self.raft.apply_conf_change(&change);
            }
            Fact::ClusterVersion(version) => self.cluster_version = Some(version),
            Fact::Downgrade { target } => {
                self.downgrade = target;
                self.agree_on_version(now);
            }
        }
    }

    fn answer(&mut self, now: Now, asker: Asker, question: Question, effects: &mut Effects) {
        let of_time = matches!(question, Question::Renew { .. } | Question::TimeToLive { .. });
        if of_time && !self.leading {
            self.early.push((asker, question));
            return;
        }
        let answer = match question {
            Question::Read => {
                self.reads.push(asker);
                return;
            }
            Question::Renew { lease } => match self.leases.renew(now, lease) {
                Renewal::Renewed { ttl } => Answer::Renewed { ttl },
                Renewal::Gone => Answer::NoLease,
                Renewal::Ending => {
                    self.renewals.push((asker, lease));
                    return;
                }
                Renewal::Checkpointed => {
                    self.renewals.push((asker, lease));
                    self.clear_checkpoint(now, lease);
                    return;
                }
            },
            Question::TimeToLive { lease } => match self.leases.time_to_live(now, lease) {
                Some((ttl, granted)) => Answer::TimeToLive { ttl, granted },
                None => Answer::NoLease,
            },
            Question::Leases => Answer::Leases(self.leases.by_remaining_time()),
        };
        effects.answers.push((asker, answer));
    }

    /// Something has become of a lease: whoever waits to renew it may ask again.
    fn renew_again(&mut self, now: Now, lease: i64, effects: &mut Effects) {
        let waited: Vec<_> = self.renewals.extract_if(.., |(_, of)| *of == lease).collect();
        for (asker, lease) in waited {
            self.answer(now, asker, Question::Renew { lease }, effects);
        }
    }

    /// Whoever renews is answered when this is applied: a crash right after the answer must not
    /// bring the checkpoint back.
    fn clear_checkpoint(&mut self, now: Now, lease: i64) {
        let errand = Errand::ClearCheckpoint { lease };
        if self.errands.values().any(|(other, _)| *other == errand) {
            return;
        }
        let cleared = LeaseCheckpoint { id: lease, remaining_ttl: 0 };
        self.run_errand(now, errand, |entry| {
            entry.lease_checkpoint = Some(LeaseCheckpointRequest { checkpoints: vec![cleared] });
        });
    }

    fn settle(&mut self, now: Now, id: u64, done: bool, effects: &mut Effects) {
        let Some((errand, _)) = self.errands.remove(&id) else { return };
        match (errand, done) {
            (Errand::Publish, true) => {
                self.published = true;
                effects.notices.push(Notice::Published(Published));
            }
            (Errand::Publish, false) => self.publish(now),
            (Errand::ClusterVersion, true) => effects.notices.push(Notice::SettingClusterVersion),
            (Errand::ClusterVersion, false) => self.agree_on_version(now),
            (Errand::Compaction { revision }, true) => {
                self.compactor.done(revision);
                effects.notices.push(Notice::Compacted { revision });
            }
            (Errand::Compaction { revision }, false) => {
                self.compactor.failed();
                effects.notices.push(Notice::CompactionFailed { revision });
            }
            // The next scan proposes again what is still due.
            (Errand::Lease, _) => {}
            (Errand::ClearCheckpoint { lease }, _) => self.renew_again(now, lease, effects),
        }
    }

    fn propose_wishes(&mut self, now: Now) {
        for wish in std::mem::take(&mut self.wishes) {
            self.run_errand(now, Errand::Lease, |entry| match wish {
                Wish::Revoke { lease } => {
                    entry.lease_revoke = Some(LeaseRevokeRequest { id: lease });
                }
                Wish::Checkpoint { leases } => {
                    let checkpoints = leases
                        .into_iter()
                        .map(|(id, remaining_ttl)| LeaseCheckpoint { id, remaining_ttl })
                        .collect();
                    entry.lease_checkpoint = Some(LeaseCheckpointRequest { checkpoints });
                }
            });
        }
    }

    /// Proposes a request of our own. If nobody leads it is tried again after the timeout.
    fn run_errand(
        &mut self,
        now: Now,
        errand: Errand,
        fill: impl FnOnce(&mut InternalRaftRequest),
    ) {
        let id = self.config.ids.draw();
        let mut request = InternalRaftRequest {
            header: Some(RequestHeader { id, ..RequestHeader::default() }),
            ..InternalRaftRequest::default()
        };
        fill(&mut request);
        self.errands.insert(id, (errand, now.plus(self.config.request_timeout)));
        let _retried_after_the_timeout =
            self.raft.propose(EntryKind::Normal, request.encode_to_vec().into());
    }
}
