//! The table itself: streams, their watchers, and the answers to their requests.

use crate::batch::{Filter, Want};
use crate::groups::Groups;
use crate::lagging::{Lagging, Turn};
use crate::response::{Head, Heads};
use crate::slots::{Slot, Slots};
use crate::{Config, Counts, Delivery, StreamKey};
use api::KeyRange;
use api::etcdserverpb::watch_create_request::FilterType;
use api::etcdserverpb::watch_request::RequestUnion;
use api::etcdserverpb::{WatchCreateRequest, WatchRequest};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The watch id of an answer that is about no watcher: a failed create, or progress of all.
const NO_WATCHER: i64 = -1;

const RANGE_EMPTY: &str = "mvcc: watcher range is empty";
const ID_IN_USE: &str = "mvcc: duplicate watch ID provided on the WatchStream";

/// The watchers of one I/O thread.
pub struct Watches {
    pub(crate) config: Config,
    /// The last revision the table was told of: what "current" means to its clients.
    pub(crate) revision: i64,
    pub(crate) streams: Slots<Stream>,
    /// Only looked up, never walked.
    pub(crate) by_key: HashMap<StreamKey, Slot>,
    pub(crate) watchers: Slots<Watcher>,
    pub(crate) groups: Groups,
    pub(crate) lagging: Lagging,
    pub(crate) heads: Heads,
    /// When each stream's progress is due next.
    pub(crate) due: BTreeSet<(u64, Slot)>,
    pub(crate) now_ms: u64,
    /// Numbers the calls, so that a stream knows what the present one has handed to it.
    pub(crate) call: u64,
    ended: usize,
    slow: usize,
    pub(crate) events_total: u64,
}

pub(crate) struct Stream {
    pub key: StreamKey,
    pub watchers: BTreeMap<i64, Slot>,
    next_id: i64,
    pub blocked: bool,
    slow: usize,
    pub progress_interval_ms: u64,
    pub due_ms: u64,
    /// What the call with this number has handed to this stream.
    pub call: u64,
    pub call_bytes: usize,
}

pub(crate) struct Watcher {
    pub stream: Slot,
    pub id: i64,
    /// As requested: 0 if the client left it to the server.
    start: i64,
    /// The first revision it has not been sent yet, as far as the table keeps account: exact for
    /// lagging ones; synced ones may have been sent more, but never want anything before it.
    pub next: i64,
    pub filter: Filter,
    pub prev_kv: bool,
    pub fragment: bool,
    pub progress_notify: bool,
    /// No event was sent since the last tick of its stream.
    pub quiet: bool,
    pub group: Slot,
    place: usize,
    pub state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Synced,
    /// `turn`: none while its stream is blocked. `parked`: it was synced until its stream filled.
    Lagging {
        turn: Option<Turn>,
        parked: bool,
    },
    /// By compaction. It keeps its id until the client cancels it.
    Ended,
}

impl Watches {
    /// An empty table, to be told of every change after `revision`.
    pub fn new(config: Config, revision: i64) -> Watches {
        let heads = Heads::new(config.cluster_id, config.member_id);
        Watches {
            config,
            revision,
            streams: Slots::new(),
            by_key: HashMap::new(),
            watchers: Slots::new(),
            groups: Groups::new(),
            lagging: Lagging::default(),
            heads,
            due: BTreeSet::new(),
            now_ms: 0,
            call: 0,
            ended: 0,
            slow: 0,
            events_total: 0,
        }
    }

    /// The last revision the table was told of.
    pub fn revision(&self) -> i64 {
        self.revision
    }

    pub fn counts(&self) -> Counts {
        Counts {
            streams: self.streams.len(),
            watchers: self.watchers.len() - self.ended,
            slow_watchers: self.slow,
            events_total: self.events_total,
        }
    }

    /// A stream begins. `jitter` is any random number; it spreads the progress notifications of
    /// streams that were opened together.
    pub fn open(&mut self, key: StreamKey, jitter: u64) {
        let interval_ms = self.config.progress_interval_ms;
        let progress_interval_ms = interval_ms + jitter % (interval_ms / 10 + 1);
        let due_ms = self.now_ms + progress_interval_ms;
        let stream = self.streams.insert(Stream {
            key,
            watchers: BTreeMap::new(),
            next_id: 0,
            blocked: false,
            slow: 0,
            progress_interval_ms,
            due_ms,
            call: 0,
            call_bytes: 0,
        });
        self.due.insert((due_ms, stream));
        let before = self.by_key.insert(key, stream);
        assert!(before.is_none(), "{key:?} was opened twice");
    }

    /// A stream has ended, and its watchers with it.
    pub fn close(&mut self, key: StreamKey) {
        let stream = self.stream(key);
        let watchers: Vec<Slot> = self.streams[stream].watchers.values().copied().collect();
        for watcher in watchers {
            self.forget(watcher);
        }
        self.due.remove(&(self.streams[stream].due_ms, stream));
        self.streams.remove(stream);
        self.by_key.remove(&key);
    }

    /// The stream's queue is full, or has room again. A full stream is sent answers to its requests
    /// but no events; its watchers lag once they miss one. Whoever fills the queue with requests is
    /// stopped by the owner, who reads no more of them while the queue is full.
    pub fn set_blocked(&mut self, key: StreamKey, blocked: bool) {
        let slot = self.stream(key);
        let stream = &mut self.streams[slot];
        if stream.blocked == blocked {
            return;
        }
        stream.blocked = blocked;
        if stream.slow == 0 {
            return;
        }
        for &slot in stream.watchers.values() {
            let watcher = &mut self.watchers[slot];
            let State::Lagging { turn, .. } = &mut watcher.state else { continue };
            match (blocked, turn.take()) {
                (true, Some(held)) => self.lagging.remove(held),
                (true, None) => {}
                (false, _) => *turn = Some(self.lagging.insert(watcher.next, slot)),
            }
        }
    }

    /// Carries out a request. The owner has first told the table of every change whose write has
    /// been acknowledged to anyone, or a watcher of "from now on" would be sent a past write; and
    /// it has asked `auth` (see [`Watches::refuse`]).
    pub fn request(
        &mut self,
        key: StreamKey,
        request: WatchRequest,
        raft_term: u64,
        out: &mut Vec<Delivery>,
    ) {
        let stream = self.stream(key);
        match request.request_union {
            Some(RequestUnion::CreateRequest(create)) => {
                match self.create(stream, create) {
                    Ok(watch_id) => {
                        let head = Head { watch_id, created: true, ..Head::default() };
                        self.answer(stream, raft_term, head, out);
                    }
                    Err(reason) => self.answer_refused(stream, reason, raft_term, out),
                };
            }
            Some(RequestUnion::CancelRequest(cancel)) => {
                let Some(&watcher) = self.streams[stream].watchers.get(&cancel.watch_id) else {
                    return;
                };
                self.forget(watcher);
                let head = Head { watch_id: cancel.watch_id, canceled: true, ..Head::default() };
                self.answer(stream, raft_term, head, out);
            }
            Some(RequestUnion::ProgressRequest(_)) => {
                let watchers = &self.streams[stream].watchers;
                let all_know = watchers.values().all(|&watcher| self.knows_all(watcher));
                if !watchers.is_empty() && all_know {
                    let head = Head { watch_id: NO_WATCHER, ..Head::default() };
                    self.answer(stream, raft_term, head, out);
                }
            }
            None => {}
        }
    }

    /// Answers a create that `auth` has denied. `reason` is the status as Go prints it, such as
    /// `rpc error: code = PermissionDenied desc = etcdserver: permission denied`.
    pub fn refuse(
        &mut self,
        key: StreamKey,
        create: &WatchCreateRequest,
        reason: &str,
        raft_term: u64,
        out: &mut Vec<Delivery>,
    ) {
        // etcd looks at the start revision before it looks at permissions.
        let reason = check_start(create).err().unwrap_or(reason);
        let stream = self.stream(key);
        self.answer_refused(stream, reason, raft_term, out);
    }

    /// Adds a watcher and returns its id, or says why not.
    fn create(&mut self, slot: Slot, create: WatchCreateRequest) -> Result<i64, &'static str> {
        check_start(&create)?;
        let key = if create.key.is_empty() { Bytes::from_static(b"\0") } else { create.key };
        let range = KeyRange::new(key, create.range_end);
        if range.is_empty() {
            return Err(RANGE_EMPTY);
        }
        let stream = &mut self.streams[slot];
        let id = stream.choose_id(create.watch_id)?;
        let start = create.start_revision;
        let watcher = self.watchers.insert(Watcher {
            stream: slot,
            id,
            start,
            next: if start == 0 { self.revision + 1 } else { start },
            filter: Filter {
                no_put: create.filters.contains(&(FilterType::Noput as i32)),
                no_delete: create.filters.contains(&(FilterType::Nodelete as i32)),
            },
            prev_kv: create.prev_kv,
            fragment: create.fragment,
            progress_notify: create.progress_notify,
            quiet: true,
            group: 0,
            place: 0,
            state: State::Synced,
        });
        stream.watchers.insert(id, watcher);
        let (group, place) = self.groups.join(&range, watcher);
        self.watchers[watcher].group = group;
        self.watchers[watcher].place = place;
        if self.watchers[watcher].next <= self.revision {
            self.begin_to_lag(watcher, false);
        }
        Ok(id)
    }

    /// The watcher has been sent everything up to the known revision, and that is not before the
    /// revision it asked for.
    pub(crate) fn knows_all(&self, watcher: Slot) -> bool {
        let watcher = &self.watchers[watcher];
        watcher.state == State::Synced
            && watcher.start <= self.revision
            && !self.streams[watcher.stream].blocked
    }

    /// From its `next` revision on, the watcher has to be sent history.
    pub(crate) fn begin_to_lag(&mut self, slot: Slot, parked: bool) {
        let watcher = &mut self.watchers[slot];
        assert_eq!(watcher.state, State::Synced, "only a synced watcher can begin to lag");
        let stream = &mut self.streams[watcher.stream];
        stream.slow += 1;
        self.slow += 1;
        let turn = (!stream.blocked).then(|| self.lagging.insert(watcher.next, slot));
        watcher.state = State::Lagging { turn, parked };
    }

    /// The watcher lags no more: it is synced or has ended.
    pub(crate) fn stop_lagging(&mut self, slot: Slot, state: State) {
        let watcher = &mut self.watchers[slot];
        let State::Lagging { turn, .. } = watcher.state else {
            panic!("only a lagging watcher can stop lagging")
        };
        if let Some(turn) = turn {
            self.lagging.remove(turn);
        }
        self.streams[watcher.stream].slow -= 1;
        self.slow -= 1;
        watcher.state = state;
        if state == State::Ended {
            self.ended += 1;
            self.leave_group(slot);
        }
    }

    /// Removes all traces of a watcher.
    pub(crate) fn forget(&mut self, slot: Slot) {
        match self.watchers[slot].state {
            State::Synced => self.leave_group(slot),
            State::Lagging { .. } => {
                self.stop_lagging(slot, State::Ended);
                self.ended -= 1;
            }
            State::Ended => self.ended -= 1,
        }
        let watcher = self.watchers.remove(slot);
        self.streams[watcher.stream].watchers.remove(&watcher.id);
    }

    fn leave_group(&mut self, slot: Slot) {
        let Watcher { group, place, .. } = self.watchers[slot];
        if let Some(moved) = self.groups.leave(group, place) {
            self.watchers[moved].place = place;
        }
    }

    /// A response without events, with the current revision in its header.
    pub(crate) fn answer(
        &mut self,
        stream: Slot,
        raft_term: u64,
        head: Head,
        out: &mut Vec<Delivery>,
    ) {
        let header = self.heads.header(self.revision, raft_term);
        let head = self.heads.write(&header, &head);
        out.push(Delivery { stream: self.streams[stream].key, head, events: Bytes::new() });
    }

    fn answer_refused(
        &mut self,
        stream: Slot,
        cancel_reason: &str,
        raft_term: u64,
        out: &mut Vec<Delivery>,
    ) {
        let head = Head {
            watch_id: NO_WATCHER,
            created: true,
            canceled: true,
            cancel_reason,
            ..Head::default()
        };
        self.answer(stream, raft_term, head, out);
    }

    fn stream(&self, key: StreamKey) -> Slot {
        *self.by_key.get(&key).expect("the owner names only streams that it has opened")
    }
}

impl Watcher {
    /// What it wants of changes from a revision on.
    pub fn want(&self, from: i64) -> Want {
        Want { group: self.group, from, filter: self.filter, prev_kv: self.prev_kv }
    }
}

impl Stream {
    /// The id of a new watcher: the one asked for, or the next free one of the stream's own.
    fn choose_id(&mut self, asked: i64) -> Result<i64, &'static str> {
        if asked != 0 {
            let in_use = self.watchers.contains_key(&asked);
            return if in_use { Err(ID_IN_USE) } else { Ok(asked) };
        }
        while self.watchers.contains_key(&self.next_id) {
            self.next_id += 1;
        }
        self.next_id += 1;
        Ok(self.next_id - 1)
    }
}

fn check_start(create: &WatchCreateRequest) -> Result<(), &'static str> {
    // etcd's words for it, though nothing was compacted.
    const NEGATIVE: api::Error = api::Error::COMPACTED;
    let std::borrow::Cow::Borrowed(reason) = NEGATIVE.message else {
        unreachable!("the texts of the table are constants")
    };
    if create.start_revision < 0 { Err(reason) } else { Ok(()) }
}
