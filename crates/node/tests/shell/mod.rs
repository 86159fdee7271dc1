//! A shell around the node: a disk and a store of a few lines, and a clock that the script turns.

use api::etcdserverpb::{
    InternalRaftRequest, LeaseCheckpointRequest, LeaseGrantRequest, LeaseRevokeRequest, PutRequest,
    RequestHeader,
};
use bytes::Bytes;
use node::{
    Answer, Asker, CompactionMode, Config, Effects, Event, Fact, IdSpace, MILLISECOND, Node,
    Notice, Now, Origin, Persist, Question, SECOND,
};
use prost::Message;
use raft::Restored;
use raftpb::{ConfChange, ConfState, Entry, EntryKind, HardState};
use std::collections::{BTreeMap, VecDeque};
use std::error::Error;
use std::fmt::Write;

const TICK: u64 = 100 * MILLISECOND;
const ELECTION: u64 = SECOND;
const REQUEST_TIMEOUT: u64 = 7 * SECOND;
/// The desks: clients at 0, the node's own errands at 1.
const DESKS: usize = 2;

#[derive(Clone)]
pub struct Options {
    pub compaction: CompactionMode,
    pub lease_checkpoint: bool,
    pub campaign_at_once: bool,
    /// Founders besides this member. They never say a word.
    pub others: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            compaction: CompactionMode::Off,
            lease_checkpoint: false,
            campaign_at_once: true,
            others: 0,
        }
    }
}

pub struct Member {
    node: Node,
    ids: IdSpace,
    clients: node::Ids,
    now: Now,
    next_tick: Now,
    disk_held: bool,
    store_held: bool,
    /// The kind of request that the store refuses.
    pub fail: String,
    /// The kind of request that is applied, but never settled.
    pub lose: String,
    writing: VecDeque<Persist>,
    applying: VecDeque<Entry>,
    disk: Disk,
    store: Store,
    tokens: u64,
    transcript: String,
}

#[derive(Clone, Default)]
struct Disk {
    hard_state: HardState,
    entries: Vec<Entry>,
}

/// What the store of the test keeps.
#[derive(Clone)]
struct Store {
    applied: u64,
    revision: i64,
    /// Seconds granted, and left at the last checkpoint.
    leases: BTreeMap<i64, (i64, i64)>,
    cluster_version: Option<String>,
    voters: Vec<u64>,
}

impl Member {
    pub fn found(options: Options) -> Result<Member, Box<dyn Error>> {
        let founders = (1..=1 + options.others).map(|id| (id, Bytes::from_static(b"{}")));
        let origin = Origin::Founding(founders.collect());
        let store = Store {
            applied: 0,
            revision: 1,
            leases: BTreeMap::new(),
            cluster_version: None,
            voters: Vec::new(),
        };
        Member::start(options, origin, Disk::default(), store)
    }

    /// Starts again from what was persisted and applied. The clock starts anew as well.
    pub fn restart(self, options: Options, busy: u64) -> Result<Member, Box<dyn Error>> {
        let Disk { hard_state, entries } = self.disk.clone();
        let conf_state = ConfState { voters: self.store.voters.clone(), ..ConfState::default() };
        let applied = self.store.applied;
        let restored = Restored { hard_state, conf_state, snapshot: (0, 0), entries, applied };
        let mut member = Member::start(options, Origin::Restored(restored), self.disk, self.store)?;
        for (&lease, &(ttl, remaining)) in &member.store.leases {
            member.node.restore_lease(Now(0), lease, ttl, remaining);
        }
        // Reading the log back took its time.
        member.now = Now(busy);
        member.next_tick = member.now.plus(TICK);
        Ok(member)
    }

    fn start(
        options: Options,
        origin: Origin,
        disk: Disk,
        store: Store,
    ) -> Result<Member, Box<dyn Error>> {
        let ids = IdSpace::new(0, 0, DESKS);
        let config = Config {
            raft: raft::Config {
                id: 1,
                election_ticks: (ELECTION / TICK) as u32,
                heartbeat_ticks: 1,
                pre_vote: true,
                check_quorum: true,
                seed: 7,
                log_bytes_max: 1 << 20,
            },
            member_id: 1,
            name: "one".into(),
            client_urls: vec!["http://one:2379".into()],
            cluster_version: "3.6.0".into(),
            election: ELECTION,
            request_timeout: REQUEST_TIMEOUT,
            lease_checkpoint: options.lease_checkpoint,
            campaign_at_once: options.campaign_at_once,
            compaction: options.compaction,
            ids: ids.ids(1),
        };
        let now = Now(0);
        let node = Node::new(config, origin, now, store.cluster_version.clone(), store.revision)?;
        Ok(Member {
            node,
            ids,
            clients: ids.ids(0),
            now,
            next_tick: now.plus(TICK),
            disk_held: false,
            store_held: false,
            fail: String::new(),
            lose: String::new(),
            writing: VecDeque::new(),
            applying: VecDeque::new(),
            disk,
            store,
            tokens: 0,
            transcript: String::new(),
        })
    }

    pub fn take_transcript(&mut self) -> String {
        std::mem::take(&mut self.transcript)
    }

    pub fn hold(&mut self, what: &str) -> Result<(), Box<dyn Error>> {
        match what {
            "" => {}
            "disk" => self.disk_held = true,
            "store" => self.store_held = true,
            other => return Err(format!("{other} cannot be held").into()),
        }
        Ok(())
    }

    pub fn release(&mut self) {
        (self.disk_held, self.store_held) = (false, false);
        self.carry_on();
    }

    /// The disk has written what waits now.
    pub fn persist(&mut self) {
        for _ in 0..self.writing.len() {
            self.write_one();
        }
        self.carry_on();
    }

    /// The store has applied the first few of what waits now.
    pub fn apply(&mut self, count: usize) {
        self.apply_batch(count);
        self.carry_on();
    }

    /// Lets time pass, tick by tick.
    pub fn wait(&mut self, micros: u64) {
        let until = self.now.plus(micros);
        while self.next_tick <= until {
            self.now = self.next_tick;
            self.next_tick = self.now.plus(TICK);
            self.step(Event::Tick);
        }
        self.now = until;
    }

    pub fn propose(&mut self, requests: impl IntoIterator<Item = InternalRaftRequest>) {
        let mut effects = Effects::default();
        for mut request in requests {
            let id = self.clients.draw();
            request.header = Some(RequestHeader { id, ..RequestHeader::default() });
            let data = request.encode_to_vec().into();
            self.node.step(self.now, Event::Propose { id, data }, &mut effects);
        }
        self.finish(effects);
        self.carry_on();
    }

    pub fn ask(&mut self, question: Question) {
        self.tokens += 1;
        let asker = Asker { desk: 0, token: self.tokens };
        self.step(Event::Asked { asker, question });
    }

    pub fn step(&mut self, event: Event) {
        let mut effects = Effects::default();
        self.node.step(self.now, event, &mut effects);
        self.finish(effects);
        self.carry_on();
    }

    pub fn write_status(&mut self) {
        let published = if self.node.is_published() { "published" } else { "not published" };
        let status = self.node.status();
        let fresh = self.node.sole_read_index();
        self.tell(&format!(
            "{:?} at term {}, commit {}, applied {}, reads fresh at {fresh:?}, {published}",
            status.role, status.term, status.commit, status.applied
        ));
    }

    /// How many leases have how many seconds left.
    pub fn write_ends(&mut self) {
        let mut ends: BTreeMap<i64, usize> = BTreeMap::new();
        for lease in self.store.leases.keys().copied().collect::<Vec<_>>() {
            let mut effects = Effects::default();
            let asker = Asker { desk: 0, token: 0 };
            let event = Event::Asked { asker, question: Question::TimeToLive { lease } };
            self.node.step(self.now, event, &mut effects);
            let Some((_, Answer::TimeToLive { ttl, .. })) = effects.answers.pop() else {
                panic!("lease {lease} is in the store, but not in the node");
            };
            *ends.entry(ttl).or_default() += 1;
        }
        for (seconds, leases) in ends {
            self.tell(&format!("{leases} leases have {seconds}s left"));
        }
    }

    /// Lets the disk and the store do what they are asked, until nothing is left to do.
    pub fn carry_on(&mut self) {
        self.finish(Effects::default());
        loop {
            if !self.disk_held && !self.writing.is_empty() {
                self.write_one();
            } else if !self.store_held && !self.applying.is_empty() {
                self.apply_batch(usize::MAX);
            } else {
                return;
            }
        }
    }

    fn finish(&mut self, mut effects: Effects) {
        self.node.finish(self.now, &mut effects);
        for notice in &effects.notices {
            // What Raft says is told in its own scripts.
            if !matches!(notice, Notice::Raft(_)) {
                self.tell(&format!("notice {notice:?}"));
            }
        }
        self.tell_entries("write", &effects.persist.entries);
        for (asker, answer) in &effects.answers {
            self.tell(&format!("answer {}: {answer:?}", asker.token));
        }
        for id in &effects.refused {
            self.tell(&format!("refused {id}"));
        }
        let persist = effects.persist;
        if persist.hard_state.is_some() || !persist.entries.is_empty() {
            self.writing.push_back(persist);
        }
        if self.store_held {
            self.tell_entries("to apply", &effects.apply);
        }
        self.applying.extend(effects.apply);
    }

    fn write_one(&mut self) {
        let Some(persist) = self.writing.pop_front() else { return };
        self.disk.hard_state = persist.hard_state.unwrap_or(self.disk.hard_state);
        self.disk.entries.extend(persist.entries);
        let mut effects = Effects::default();
        self.node.step(self.now, Event::Persisted { mark: persist.mark }, &mut effects);
        self.finish(effects);
    }

    /// Applies a batch and tells the node of all of it at once, as the server does.
    fn apply_batch(&mut self, count: usize) {
        let batch: Vec<Entry> = self.applying.drain(..count.min(self.applying.len())).collect();
        let Some(last) = batch.last() else { return };
        let index = last.index;
        let mut facts = Vec::new();
        let mut settled = Vec::new();
        for entry in batch {
            if entry.kind == EntryKind::ConfChange {
                let change = ConfChange::decode(&entry.data).expect("what was proposed");
                self.store.voters.push(change.node_id);
                facts.push(Fact::ConfChange(change));
            } else if !entry.data.is_empty() {
                let request = InternalRaftRequest::decode(&*entry.data).expect("it was proposed");
                let done = kind(&request) != self.fail && self.store.take(&request, &mut facts);
                let id = request.header.as_ref().map_or(0, |header| header.id);
                if self.ids.desk_of(id) == 1 && kind(&request) != self.lose {
                    settled.push(Event::Settled { id, done });
                }
            }
        }
        self.store.applied = index;
        let applied = Event::Applied { index, revision: self.store.revision, facts };
        let mut effects = Effects::default();
        for event in [applied].into_iter().chain(settled) {
            self.node.step(self.now, event, &mut effects);
        }
        self.finish(effects);
    }

    fn tell_entries(&mut self, what: &str, entries: &[Entry]) {
        if let [first, _, _, .., last] = entries {
            let count = entries.len();
            let (first, last) = (describe(first), describe(last));
            self.tell(&format!("{what} {first} to {last} ({count} entries)"));
            return;
        }
        for entry in entries {
            self.tell(&format!("{what} {}", describe(entry)));
        }
    }

    fn tell(&mut self, what: &str) {
        let (seconds, rest) = (self.now.0 / SECOND, self.now.0 % SECOND / MILLISECOND);
        writeln!(self.transcript, "{seconds}.{rest:03}s {what}").expect("a string takes it");
    }
}

impl Store {
    /// Applies a request, if it can be.
    fn take(&mut self, request: &InternalRaftRequest, facts: &mut Vec<Fact>) -> bool {
        if request.put.is_some() {
            self.revision += 1;
        }
        if let Some(LeaseGrantRequest { id: lease, ttl }) = request.lease_grant {
            self.leases.insert(lease, (ttl, 0));
            facts.push(Fact::LeaseGranted { lease, ttl });
        }
        if let Some(LeaseRevokeRequest { id: lease }) = request.lease_revoke {
            self.leases.remove(&lease);
            facts.push(Fact::LeaseRevoked { lease });
        }
        for checkpoint in request.lease_checkpoint.iter().flat_map(|request| &request.checkpoints) {
            let (lease, remaining) = (checkpoint.id, checkpoint.remaining_ttl);
            let Some(held) = self.leases.get_mut(&lease) else { return false };
            held.1 = remaining;
            facts.push(Fact::LeaseCheckpointed { lease, remaining });
        }
        if let Some(request) = &request.cluster_version_set {
            self.cluster_version = Some(request.ver.clone());
            facts.push(Fact::ClusterVersion(request.ver.clone()));
        }
        true
    }
}

pub fn grant(id: i64, ttl: i64) -> InternalRaftRequest {
    let request = LeaseGrantRequest { id, ttl };
    InternalRaftRequest { lease_grant: Some(request), ..InternalRaftRequest::default() }
}

pub fn revoke(id: i64) -> InternalRaftRequest {
    let request = LeaseRevokeRequest { id };
    InternalRaftRequest { lease_revoke: Some(request), ..InternalRaftRequest::default() }
}

pub fn put() -> InternalRaftRequest {
    let request = PutRequest { key: Bytes::from_static(b"key"), ..PutRequest::default() };
    InternalRaftRequest { put: Some(request), ..InternalRaftRequest::default() }
}

fn describe(entry: &Entry) -> String {
    let what = match entry.kind {
        EntryKind::Normal if entry.data.is_empty() => "empty".to_string(),
        EntryKind::Normal => {
            let request = InternalRaftRequest::decode(&*entry.data).expect("what was proposed");
            format!("{}{}", kind(&request), details(&request))
        }
        _ => {
            let change = ConfChange::decode(&entry.data).expect("what was proposed");
            format!("{:?} {}", change.kind, change.node_id)
        }
    };
    format!("{}@{} {what}", entry.index, entry.term)
}

fn kind(request: &InternalRaftRequest) -> &'static str {
    match request {
        InternalRaftRequest { put: Some(_), .. } => "put",
        InternalRaftRequest { lease_grant: Some(_), .. } => "grant",
        InternalRaftRequest { lease_revoke: Some(_), .. } => "revoke",
        InternalRaftRequest { lease_checkpoint: Some(_), .. } => "checkpoint",
        InternalRaftRequest { compaction: Some(_), .. } => "compact",
        InternalRaftRequest { cluster_version_set: Some(_), .. } => "cluster-version",
        InternalRaftRequest { cluster_member_attr_set: Some(_), .. } => "publish",
        _ => "unknown",
    }
}

fn details(request: &InternalRaftRequest) -> String {
    match request {
        InternalRaftRequest { lease_grant: Some(grant), .. } => {
            format!(" {} ttl={}", grant.id, grant.ttl)
        }
        InternalRaftRequest { lease_revoke: Some(revoke), .. } => format!(" {}", revoke.id),
        InternalRaftRequest { lease_checkpoint: Some(request), .. } => checkpoints(request),
        InternalRaftRequest { compaction: Some(request), .. } => {
            format!(" to {}", request.revision)
        }
        InternalRaftRequest { cluster_version_set: Some(set), .. } => format!(" {}", set.ver),
        InternalRaftRequest { cluster_member_attr_set: Some(set), .. } => {
            let attributes = set.member_attributes.clone().unwrap_or_default();
            format!(" {} {} {:?}", set.member_id, attributes.name, attributes.client_urls)
        }
        _ => String::new(),
    }
}

fn checkpoints(request: &LeaseCheckpointRequest) -> String {
    match &*request.checkpoints {
        few if few.len() < 10 => {
            let each = few.iter().map(|one| format!(" {}:{}s", one.id, one.remaining_ttl));
            each.collect()
        }
        many => format!(" of {} leases", many.len()),
    }
}
