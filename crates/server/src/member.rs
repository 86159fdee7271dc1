//! A member: its threads, wired to each other.

use crate::applier::{Applier, Happening, Pace};
use crate::desk::{Desk, DeskConfig, Limits, Listener, Seats, Serves, Shared, WAKER};
use crate::http::Policy;
use crate::inbox::Inbox;
use crate::keeper::{Errand, Keeper, KeeperDoor};
use crate::listen::Bound;
use crate::log_writer::{LogWriter, SyncObserver};
use crate::mail::{DeskBox, Letter};
use crate::method::{METHODS, Shape};
use crate::notices;
use crate::office::{Office, OfficeConfig};
use crate::open::Opened;
use crate::pulse::Pulse;
use crate::replica::Replica;
use crate::threads::{join, spawn, spawn_vital};
use config::exit::Signal;
use config::log::Logger;
use config::{Config, Gate, Retention};
use engine::Engine;
use gateway::Transcoder;
use metrics::Metrics;
use mio::{Poll, Waker};
use node::{CompactionMode, IdSpace, Node, Now};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

/// More desks than this do not help: the log is one.
const DESKS_MAX: usize = 8;
/// Threads for what blocks: backups, hashes, long ranges, passwords. Others wait their turn.
const OFFICE_THREADS_MAX: usize = 64;
/// Bytes of entries that the log keeps in memory.
const RAFT_LOG_BYTES_MAX: usize = 256 << 20;

/// What the main thread waits for.
pub enum Moment {
    /// The member has joined and may serve.
    Ready,
    Signal(Signal),
}

/// Every thread but the desks, running.
pub struct Member {
    config: Config,
    logger: Logger,
    pulse: Arc<Pulse>,
    metrics: Arc<Metrics>,
    office: Office,
    desks: Arc<[DeskBox]>,
    polls: Vec<Poll>,
    ids: IdSpace,
    view: store::View,
    revision: i64,
    member_id: u64,
    cluster_id: u64,
    replica: Arc<Inbox<node::Event>>,
    stop: Vec<Box<dyn FnOnce() + Send>>,
    threads: Vec<JoinHandle<()>>,
}

impl Member {
    /// Starts them. `moments` hears when the member is ready.
    pub fn start(
        config: Config,
        logger: Logger,
        opened: Opened,
        moments: mpsc::Sender<Moment>,
    ) -> Result<Member, String> {
        let Opened { disk, engine, store, wal, origin, member_id, cluster_id, .. } = opened;
        let started = Instant::now();
        let ticks = config.election_ticks() as u32;
        let desk_count = thread::available_parallelism().map_or(1, |n| n.get()).min(DESKS_MAX);
        let unix_ms = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_millis() as u64);
        // The desks, the office and the replica draw request ids.
        let ids = IdSpace::new(member_id, unix_ms, desk_count + 2);
        let view = store.view();
        let metrics = Arc::new(new_metrics(&config, member_id));
        let pulse = Arc::new(Pulse::default());
        pulse.set_applied(engine.last_commit().index, engine.last_commit().term);
        let (mut polls, mut boxes) = (Vec::new(), Vec::new());
        for _ in 0..desk_count {
            let poll = Poll::new().map_err(|error| error.to_string())?;
            let waker = Waker::new(poll.registry(), WAKER).map_err(|error| error.to_string())?;
            boxes.push(DeskBox::new(waker));
            polls.push(poll);
        }
        let desks: Arc<[DeskBox]> = boxes.into();

        config::info!(logger, if opened.is_new { "starting local member" } else { "restarting local member" },
            "local-member-id" => format!("{member_id:x}"),
            "cluster-id" => format!("{cluster_id:x}"),
            "commit-index" => opened.commit_index);
        let node_config = node::Config {
            raft: raft::Config {
                id: member_id,
                election_ticks: ticks,
                heartbeat_ticks: 1,
                pre_vote: config.pre_vote,
                check_quorum: true,
                seed: unix_ms ^ member_id,
                log_bytes_max: RAFT_LOG_BYTES_MAX,
            },
            member_id,
            name: config.name.clone(),
            client_urls: config::urls::texts(&config.advertise_client_urls),
            cluster_version: api::CLUSTER_VERSION.into(),
            election: config.election_ms * node::MILLISECOND,
            request_timeout: config.request_timeout().as_micros() as u64,
            lease_checkpoint: config.feature_gates.is_enabled(Gate::LeaseCheckpoint),
            campaign_at_once: config.initial_election_tick_advance,
            compaction: compaction_mode(&config)?,
            ids: ids.ids(desk_count + 1),
        };
        let mut node =
            Node::new(node_config, origin, Now(0), view.cluster_version(), view.revision())
                .map_err(|error| error.to_string())?;
        if view.downgrade().enabled {
            node.restore_downgrade(view.downgrade().target_version);
        }
        for lease in view.leases() {
            node.restore_lease(Now(0), lease.id, lease.ttl, lease.remaining);
        }

        let replica = Arc::new(Inbox::default());
        let log = Arc::new(Inbox::default());
        let batches = Arc::new(Inbox::default());
        let errands = Arc::new(Inbox::default());
        let synced = Arc::new(AtomicU64::new(opened.synced));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .max_blocking_threads(OFFICE_THREADS_MAX)
            .thread_keep_alive(Duration::from_secs(10))
            .build()
            .map_err(|error| error.to_string())?;
        let office = Office::new(
            OfficeConfig {
                view: view.clone(),
                pulse: pulse.clone(),
                replica: replica.clone(),
                desks: desks.clone(),
                ids: ids.ids(desk_count),
                metrics: metrics.clone(),
                cluster_id,
                member_id,
                request_timeout: config.request_timeout(),
                request_bytes_max: config.max_request_bytes as usize,
                max_txn_ops: config.max_txn_ops as usize,
                bcrypt_cost: config.bcrypt_cost_effective() as u32,
                housekeeping: Arc::new(KeeperDoor(errands.clone())),
                stop_serving_on_defrag: config
                    .feature_gates
                    .is_enabled(Gate::StopGRPCServiceOnDefrag),
                logger: logger.clone(),
            },
            runtime.handle().clone(),
        );

        let mut threads = Vec::new();
        let (stop_office, office_stopped) = tokio::sync::oneshot::channel::<()>();
        threads.push(spawn("office", move || {
            // Ends when the sender is used or dropped.
            let _either_way = runtime.block_on(office_stopped);
            runtime.shutdown_timeout(Duration::from_secs(1));
        }));
        let writer = LogWriter {
            wal,
            tasks: log.clone(),
            replica: replica.clone(),
            pulse: pulse.clone(),
            synced: synced.clone(),
            segments_kept: config.max_wals as usize,
            observer: Arc::new(FsyncMetrics(metrics.clone())),
            logger: logger.clone(),
        };
        threads.push(spawn_vital("log", &logger, move || writer.run()));
        let keeper = Keeper {
            engine: engine.clone(),
            view: view.clone(),
            disk,
            snap_dir: opened.snap_dir,
            errands: errands.clone(),
            log: log.clone(),
            synced,
            interval: config.backend_batch_interval(),
            snapshot_count: config.snapshot_count,
            catch_up_entries: config.snapshot_catchup_entries,
            snapshots_kept: config.max_snapshots as usize,
            last_mark: opened.last_mark,
            pulse: pulse.clone(),
            metrics: metrics.clone(),
            logger: logger.clone(),
        };
        threads.push(spawn_vital("keeper", &logger, move || keeper.run()));
        let happened = {
            let (logger, office) = (logger.clone(), office.clone());
            move |happening: Happening| {
                notices::write_happening(&logger, member_id, cluster_id, &happening);
                match happening {
                    Happening::QuotaExceeded => office.raise_no_space(),
                    Happening::CompactionFinished { revision } => {
                        office.compaction_finished(revision);
                    }
                    Happening::AlarmsChanged => office.count_alarms(),
                    _ => {}
                }
            }
        };
        let revision = view.revision();
        let applier = Applier {
            store,
            batches: batches.clone(),
            replica: replica.clone(),
            desks: desks.clone(),
            office: office.clone(),
            pulse: pulse.clone(),
            ids,
            finished: view.compaction_finished(),
            unsynced: 0,
            pace: Pace {
                compaction_keys: config.compaction_batch_limit() as usize,
                compaction_pause: config.compaction_sleep_interval(),
                batch_limit: config.backend_batch_limit() as usize,
                slow_apply: config.warning_apply_duration,
            },
            keeper: errands.clone(),
            metrics: metrics.clone(),
            logger: logger.clone(),
            happened: Box::new(happened),
        };
        threads.push(spawn_vital("apply", &logger, move || applier.run()));
        let notice = {
            let (logger, config) = (logger.clone(), config.clone());
            let metrics = metrics.clone();
            move |notice: &node::Notice| {
                if let node::Notice::Raft(raft::Event::LeaderElected { .. }) = notice {
                    metrics.server.leader_changes.inc();
                }
                notices::write(&logger, &config, member_id, cluster_id, notice);
                if matches!(notice, node::Notice::Published(_)) {
                    // Later publications have nobody waiting.
                    let _nobody_waits = moments.send(Moment::Ready);
                }
            }
        };
        let stepper = Replica {
            node,
            started,
            tick: Duration::from_millis(config.heartbeat_ms),
            events: replica.clone(),
            log: log.clone(),
            applier: batches.clone(),
            desks: desks.clone(),
            office: office.clone(),
            pulse: pulse.clone(),
            ids,
            metrics: metrics.clone(),
            notice: Box::new(notice),
        };
        threads.push(spawn("replica", move || stepper.run()));

        let stop: Vec<Box<dyn FnOnce() + Send>> = vec![
            Box::new(move || drop(stop_office)),
            Box::new({
                let replica = replica.clone();
                move || replica.close()
            }),
            Box::new(move || log.close()),
            Box::new(move || batches.close()),
            Box::new(move || errands.send(Errand::Stop)),
        ];
        Ok(Member {
            config,
            logger,
            pulse,
            metrics,
            office,
            desks,
            polls,
            ids,
            view,
            revision,
            member_id,
            cluster_id,
            replica,
            stop,
            threads,
        })
    }

    /// Ends a member that never served.
    pub fn stop(self) {
        let Member { desks, stop, threads, .. } = self;
        Serving { desks, desk_threads: Vec::new(), stop, threads }.stop();
    }

    /// Opens the desks. Listeners are spread over them.
    pub fn serve(self, bound: Vec<Bound>, connections_max: usize) -> Result<Serving, String> {
        let Member { config, desks, polls, .. } = self;
        let shared = Arc::new(Shared {
            view: self.view,
            pulse: self.pulse,
            replica: self.replica,
            office: self.office,
            metrics: self.metrics,
            transcoder: Transcoder::new(),
            limits: Limits {
                request_bytes_max: config.max_request_bytes as usize,
                txn_ops_max: config.max_txn_ops as usize,
                request_timeout: config.request_timeout(),
                election: Duration::from_millis(config.election_ms),
                concurrent_streams_max: config.max_concurrent_streams,
                ping_interval_min: config.grpc_keepalive_min_time,
                keepalive: (!config.grpc_keepalive_interval.is_zero()
                    && !config.grpc_keepalive_timeout.is_zero())
                .then_some((config.grpc_keepalive_interval, config.grpc_keepalive_timeout)),
                slow_request: config.warning_unary_request_duration,
            },
            seats: Seats::new(connections_max),
            http: Policy {
                cors: config.cors.clone(),
                host_whitelist: config.host_whitelist.clone(),
                gateway: config.enable_grpc_gateway,
            },
            cluster_id: self.cluster_id,
            member_id: self.member_id,
            desks: desks.clone(),
            logger: self.logger.clone(),
        });
        let mut listeners: Vec<Vec<(Listener, Serves)>> =
            polls.iter().map(|_| Vec::new()).collect();
        for (at, Bound { listener, serves, .. }) in bound.into_iter().enumerate() {
            let desk = at % listeners.len();
            listeners[desk].push((listener, serves));
        }
        let mut threads = self.threads;
        let mut watch = watch::Config::new(self.cluster_id, self.member_id);
        watch.fragment_bytes = config.grpc_receive_bytes_max() as usize;
        watch.progress_interval_ms = config.watch_progress_notify_interval().as_millis() as u64;
        let mut desk_threads = Vec::new();
        for (number, (poll, listeners)) in polls.into_iter().zip(listeners).enumerate() {
            let desk = Desk::new(
                shared.clone(),
                DeskConfig {
                    number,
                    poll,
                    listeners,
                    ids: self.ids.ids(number),
                    watch: watch.clone(),
                    revision: self.revision,
                },
            );
            let name = format!("desk-{number}");
            desk_threads.push(spawn_vital(&name, &self.logger, move || desk.run()));
        }
        threads.reverse();
        Ok(Serving { desks, desk_threads, stop: self.stop, threads })
    }
}

/// A member that serves.
pub struct Serving {
    desks: Arc<[DeskBox]>,
    desk_threads: Vec<JoinHandle<()>>,
    stop: Vec<Box<dyn FnOnce() + Send>>,
    threads: Vec<JoinHandle<()>>,
}

impl Serving {
    /// Ends the desks first, so that whatever was promised to a caller is still kept, then the
    /// rest from front to back; the keeper last, so that all that was applied is durable.
    pub fn stop(self) {
        for desk in &*self.desks {
            desk.send(Letter::Stop);
        }
        self.desk_threads.into_iter().for_each(join);
        self.stop.into_iter().for_each(|stop| stop());
        self.threads.into_iter().for_each(join);
    }
}

struct FsyncMetrics(Arc<Metrics>);

impl SyncObserver for FsyncMetrics {
    fn synced(&self, took: Duration) {
        self.0.disk.wal_fsync.took(took);
    }
}

fn new_metrics(config: &Config, member_id: u64) -> Metrics {
    let methods: Vec<metrics::Method> = METHODS
        .iter()
        .map(|info| metrics::Method {
            service: info.service(),
            name: info.name(),
            grpc_type: match info.shape {
                Shape::Unary => metrics::GrpcType::Unary,
                Shape::ServerStream => metrics::GrpcType::ServerStream,
                Shape::BidiStream => metrics::GrpcType::BidiStream,
            },
        })
        .collect();
    let features = Gate::ALL
        .iter()
        .map(|&gate| metrics::Feature {
            name: gate.name().into(),
            stage: gate.stage().as_str().into(),
            enabled: config.feature_gates.is_enabled(gate),
        })
        .collect();
    let version = api::ETCD_VERSION.to_owned();
    let identity = metrics::Identity { server_id: member_id, version, features };
    Metrics::new(identity, &methods, config.is_metrics_extensive())
}

fn compaction_mode(config: &Config) -> Result<CompactionMode, String> {
    Ok(match config.retention()? {
        Retention::Off => CompactionMode::Off,
        Retention::Periodic(period) => CompactionMode::Periodic(period.as_micros() as u64),
        Retention::Revision(keep) => CompactionMode::Revision(keep),
    })
}
