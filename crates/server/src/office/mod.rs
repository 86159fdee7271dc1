//! The office: everything that may wait or take long, and that nobody does a thousand times a
//! second.
//!
//! In:  calls from the desks. Out: words to the desk that the caller sits at.
//!
//! Locks and elections are recipes of several steps with waiting in between, so they are written
//! as async functions, and one thread runs them all. What computes or reads disks for long
//! (hashes, backups, defragmentation, passwords) runs on threads of its own. The office proposes
//! to the log and reads the store like a desk does; it has a place of its own among those who
//! draw request ids.
//!
//! Always true: a recipe whose caller has gone away stops, and gives back what it holds.

mod backup;
mod election;
mod http;
mod interests;
mod lock;
mod long_work;
mod password;
mod range;
mod recipe;
mod version;

pub use http::{HttpRequest, HttpResponse};
pub use long_work::Housekeeping;

use crate::desk::{CallId, Headers};
use crate::inbox::Inbox;
use crate::mail::{DeskBox, Letter, Settled, Word};
use crate::method::Method;
use crate::pulse::Pulse;
use api::Error;
use api::etcdserverpb::{AlarmRequest, AlarmType, alarm_request::AlarmAction};
use api::health::health_check_response::ServingStatus;
use bytes::Bytes;
use config::log::Logger;
use interests::Interests;
use metrics::Metrics;
use node::{Event, Ids};
use prost::Message;
use std::collections::{BTreeSet, HashMap};
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::{Change, Reply, View};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot, watch as signal};

const ALARM_FIELD: u32 = 10;
/// Long ranges that are read as a whole at once.
const LONG_READS_MAX: usize = 4;

/// A handle to the office; cheap to clone.
#[derive(Clone)]
pub struct Office(Arc<Inner>);

pub struct OfficeConfig {
    pub view: View,
    pub pulse: Arc<Pulse>,
    pub replica: Arc<Inbox<Event>>,
    pub desks: Arc<[DeskBox]>,
    pub ids: Ids,
    pub metrics: Arc<Metrics>,
    pub cluster_id: u64,
    pub member_id: u64,
    pub request_timeout: Duration,
    pub request_bytes_max: usize,
    pub bcrypt_cost: u32,
    pub housekeeping: Arc<dyn Housekeeping>,
    /// `StopGRPCServiceOnDefrag`
    pub stop_serving_on_defrag: bool,
    pub max_txn_ops: usize,
    pub logger: Logger,
}

struct Inner {
    config: OfficeConfig,
    runtime: Handle,
    ids: Mutex<Ids>,
    headers: Mutex<Headers>,
    /// Who waits for which proposal.
    proposed: Mutex<HashMap<u64, oneshot::Sender<Result<Reply, Error>>>>,
    interests: Interests,
    serving: signal::Sender<ServingStatus>,
    /// The last revision whose physical compaction has ended.
    finished_compaction: signal::Sender<i64>,
    /// Turns at reading long ranges as a whole.
    long_reads: Semaphore,
    /// The alarms that the metrics show.
    alarms: Mutex<BTreeSet<(u64, i32)>>,
}

impl Office {
    pub fn new(config: OfficeConfig, runtime: Handle) -> Office {
        let ids = config.ids.clone();
        let headers = Headers::new(config.cluster_id, config.member_id);
        Office(Arc::new(Inner {
            config,
            runtime,
            ids: Mutex::new(ids),
            headers: Mutex::new(headers),
            proposed: Mutex::default(),
            interests: Interests::default(),
            serving: signal::Sender::new(ServingStatus::Serving),
            finished_compaction: signal::Sender::new(0),
            long_reads: Semaphore::new(LONG_READS_MAX),
            alarms: Mutex::default(),
        }))
    }

    fn config(&self) -> &OfficeConfig {
        &self.0.config
    }

    /// Takes a call off a desk's hands. `cancelled` is done when the caller has gone.
    pub fn take_call(
        &self,
        desk: usize,
        call: CallId,
        method: Method,
        data: Bytes,
        cancelled: oneshot::Receiver<()>,
    ) {
        let office = self.clone();
        let caller = Caller { office: self.clone(), desk, call };
        self.0.runtime.spawn(async move {
            match method {
                Method::Lock => caller.answer(office.lock(data, cancelled).await),
                Method::Unlock => caller.answer(office.unlock(data).await),
                Method::Campaign => caller.answer(office.campaign(data, cancelled).await),
                Method::Proclaim => caller.answer(office.proclaim(data).await),
                Method::Leader => caller.answer(office.leader(data).await),
                Method::Resign => caller.answer(office.resign(data).await),
                Method::Observe => office.observe(&caller, data, cancelled).await,
                Method::Downgrade => caller.answer(office.downgrade(data).await),
                Method::Compact => caller.answer(office.compact_physically(data).await),
                Method::Defragment => caller.answer(office.defragment().await),
                Method::Hash => caller.answer(office.hash().await),
                Method::HashKV => caller.answer(office.hash_kv(data).await),
                Method::Snapshot => office.snapshot(&caller, cancelled).await,
                Method::UserAdd => caller.answer(office.user_add(data).await),
                Method::UserChangePassword => {
                    caller.answer(office.user_change_password(data).await);
                }
                other => unreachable!("{other:?} is answered at the desk"),
            }
        });
    }

    /// Proposes a request and waits until it is applied here.
    async fn propose(&self, field: u32, request: &[u8]) -> Result<Reply, Error> {
        let id = self.draw_id();
        let entry = crate::desk::encode_entry(field, request, id);
        if entry.len() > self.config().request_bytes_max {
            return Err(Error::REQUEST_TOO_LARGE);
        }
        let (settle, settled) = oneshot::channel();
        self.0.proposed.lock().expect("no holder of this lock panics").insert(id, settle);
        self.config().replica.send(Event::Propose { id, data: entry });
        match tokio::time::timeout(self.config().request_timeout, settled).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(Error::STOPPED),
            Err(_) => {
                self.0.proposed.lock().expect("no holder of this lock panics").remove(&id);
                Err(Error::TIMEOUT)
            }
        }
    }

    /// Waits until all that was answered before can be seen in the store.
    async fn barrier(&self) -> Result<(), Error> {
        let until = tokio::time::Instant::now() + self.config().request_timeout;
        loop {
            let index = self.config().pulse.sole_read_index();
            if index.is_some_and(|index| self.config().pulse.applied() >= index) {
                return Ok(());
            }
            if tokio::time::Instant::now() >= until {
                return Err(Error::TIMEOUT);
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    fn draw_id(&self) -> u64 {
        self.0.ids.lock().expect("no holder of this lock panics").draw()
    }

    fn header(&self, revision: i64) -> Bytes {
        let term = self.config().pulse.applied_term();
        self.0.headers.lock().expect("no holder of this lock panics").write(revision, term)
    }

    /// A header and what follows it, in one piece.
    fn with_header(&self, revision: i64, body: &[u8]) -> Bytes {
        [self.header(revision).as_ref(), body].concat().into()
    }

    /// Called by whoever applies: these proposals are done.
    pub fn settle(&self, settled: Vec<Settled>) {
        if settled.is_empty() {
            return;
        }
        let mut proposed = self.0.proposed.lock().expect("no holder of this lock panics");
        for Settled { id, result } in settled {
            if let Some(waiting) = proposed.remove(&id) {
                // Whoever waited may have given up.
                let _gave_up = waiting.send(result);
            }
        }
    }

    /// Called by whoever applies: the store has changed.
    pub fn changed(&self, changes: &[Arc<Change>]) {
        self.0.interests.changed(changes);
    }

    pub fn serving_status(&self) -> ServingStatus {
        *self.0.serving.borrow()
    }

    /// Sends the status now and whenever it changes.
    pub fn watch_health(&self, desk: usize, call: CallId, mut cancelled: oneshot::Receiver<()>) {
        let caller = Caller { office: self.clone(), desk, call };
        let mut status = self.0.serving.subscribe();
        self.0.runtime.spawn(async move {
            loop {
                let now = *status.borrow_and_update();
                caller.message(crate::desk::serving(now));
                tokio::select! {
                    biased;
                    _ = &mut cancelled => return,
                    changed = status.changed() => if changed.is_err() { return },
                }
            }
        });
    }

    /// Runs something that blocks on a thread of its own.
    async fn on_own_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        self.0.runtime.spawn_blocking(work).await.map_err(|_| Error::STOPPED)
    }

    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.0.runtime.spawn(work);
    }

    /// Shows the alarms as they are now in the metrics.
    pub fn count_alarms(&self) {
        let now: BTreeSet<(u64, i32)> = self
            .config()
            .view
            .alarms()
            .iter()
            .map(|alarm| (alarm.member_id, alarm.alarm))
            .collect();
        let mut shown = self.0.alarms.lock().expect("no holder of this lock panics");
        for &(member_id, alarm) in shown.union(&now) {
            let name = AlarmType::try_from(alarm).map_or("UNKNOWN", |alarm| alarm.as_str_name());
            let raised = now.contains(&(member_id, alarm));
            self.config().metrics.server.alarmed(name, member_id, raised);
        }
        *shown = now;
    }

    /// The quota is exceeded or the disk is full: everybody must know.
    pub fn raise_no_space(&self) {
        let request = AlarmRequest {
            action: AlarmAction::Activate as i32,
            member_id: self.config().member_id,
            alarm: AlarmType::Nospace as i32,
        };
        let id = self.draw_id();
        let data = crate::desk::encode_entry(ALARM_FIELD, &request.encode_to_vec(), id);
        self.config().replica.send(Event::Propose { id, data });
    }
}

/// Whoever waits for an answer at some desk.
#[derive(Clone)]
struct Caller {
    office: Office,
    desk: usize,
    call: CallId,
}

impl Caller {
    fn say(&self, word: Word) {
        self.office.config().desks[self.desk].send(Letter::Word(self.call, word));
    }

    fn answer(&self, result: Result<Bytes, Error>) {
        self.say(Word::Answer(result));
    }

    fn message(&self, body: Bytes) {
        self.say(Word::Message(body));
    }

    async fn piece(&self, permits: &Arc<Semaphore>, body: Bytes) {
        let permit = permits.clone().acquire_owned().await.expect("nobody closes the permits");
        self.say(Word::Piece(body, permit));
    }

    fn end(&self, result: Result<(), Error>) {
        self.say(Word::End(result));
    }
}
