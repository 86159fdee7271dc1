//! From a data directory to a member that can go on where it stopped.
//!
//! ```text
//! <data-dir>/member/wal     the log (or --wal-dir)
//!           /member/snap    etcd's snapshot markers
//!           /member/store   the engine
//! ```

use config::Config;
use config::log::Logger;
use disk::{Disk, RealDisk};
use engine::{Engine, LogEngine};
use node::Origin;
use raft::Restored;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::Store;
use wal::{Metadata, Recovered, SnapshotMark, Wal};

/// Why a member cannot start.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("cannot access data directory: {0}")]
    Access(std::io::Error),
    #[error(
        "{dir}: this data directory was written by etcd, and this version of Althing cannot import \
         it yet; give --data-dir a directory of its own, or go on with etcd"
    )]
    WrittenByEtcd { dir: PathBuf },
    #[error(
        "{store}: there is a store but no log at {wal}; a member without its log may have forgotten \
         what it acknowledged. Put the log back (was --wal-dir given before?), or restore a backup \
         into an empty directory"
    )]
    LogMissing { store: PathBuf, wal: PathBuf },
    #[error(
        "{wal}: the log was compacted up to index {first}, but the store at {store} ends at \
         {applied}; they do not belong together. Put back the store that belongs to this log, or \
         restore a backup into an empty directory"
    )]
    StoreBehind { wal: PathBuf, store: PathBuf, first: u64, applied: u64 },
    #[error("{0}")]
    Refused(String),
    #[error(transparent)]
    Wal(#[from] wal::Error),
    #[error(transparent)]
    Engine(#[from] engine::Error),
    #[error(transparent)]
    Raft(#[from] raft::RestoreError),
}

/// A member's disk, opened.
pub struct Opened {
    pub disk: Arc<dyn Disk>,
    pub engine: Arc<LogEngine>,
    pub store: Store,
    pub wal: Wal,
    pub origin: Origin,
    pub member_id: u64,
    pub cluster_id: u64,
    pub snap_dir: PathBuf,
    pub last_mark: u64,
    /// Up to where the log is known to be synced.
    pub synced: u64,
    pub is_new: bool,
    /// What the log was found to end with, when it had been cut by a crash.
    pub commit_index: u64,
}

pub fn open(config: &Config, logger: &Logger) -> Result<Opened, OpenError> {
    let disk: Arc<dyn Disk> = Arc::new(RealDisk { fsync: !config.unsafe_no_fsync });
    let member_dir = config.member_dir();
    let snap_dir = member_dir.join("snap");
    let store_dir = member_dir.join("store");
    let wal_dir = config.wal_path();
    let access = OpenError::Access;

    if disk.exists(&snap_dir.join("db")).map_err(access)?
        && !disk.exists(&store_dir).map_err(access)?
    {
        return Err(OpenError::WrittenByEtcd { dir: config.data_dir.clone() });
    }
    let mut lines = Vec::new();
    let prepared = config::data_dir::prepare(&config.data_dir, &mut lines);
    lines.iter().for_each(|line| logger.write(line));
    prepared.map_err(OpenError::Refused)?;
    disk.create_dir_all(&snap_dir).map_err(access)?;

    let has_log = Wal::exists(&*disk, &wal_dir)?;
    let began = std::time::Instant::now();
    let engine = Arc::new(LogEngine::open(disk.clone(), &store_dir, engine::Options::default())?);
    config::info!(logger, "opened backend db",
        "path" => store_dir.display().to_string(), "took" => began.elapsed());
    let store_config = store::Config {
        quota_bytes: config.quota_backend_bytes,
        min_lease_ttl: config.min_lease_ttl_seconds(),
        lease_checkpoint_persist: config
            .feature_gates
            .is_enabled(config::Gate::LeaseCheckpointPersist),
        max_learners: usize::try_from(config.max_learners).unwrap_or(0),
    };
    // The log is read while the store rebuilds its index: both take a while.
    let applied = engine.last_commit().index;
    let (store, log) = std::thread::scope(|threads| {
        let log = threads.spawn(|| {
            let places = (wal_dir.as_path(), store_dir.as_path());
            has_log.then(|| open_log(&disk, places, applied)).transpose()
        });
        let store = Store::open(engine.clone(), store_config);
        (store, log.join().expect("reading the log does not panic"))
    });
    let (store, log) = (store?, log?);
    config.remarks().iter().for_each(|line| logger.write(line));
    defragment_at_start(config, &engine, logger)?;
    config::info!(logger, "kvstore restored", "current-rev" => store.view().revision());

    let parts = Parts { disk, engine, store, snap_dir, store_dir, wal_dir };
    match log {
        Some(log) => Ok(restart(parts, log, logger)),
        None => found(parts, config),
    }
}

/// A log that was here before.
struct Log {
    wal: Wal,
    recovered: Recovered,
    /// Where reading began.
    mark: SnapshotMark,
}

/// Opens the log at the newest mark that the store has reached.
fn open_log(
    disk: &Arc<dyn Disk>,
    (wal_dir, store_dir): (&Path, &Path),
    applied: u64,
) -> Result<Log, OpenError> {
    let marks = Wal::snapshots(&**disk, wal_dir)?;
    let mark = marks.iter().filter(|mark| mark.index <= applied).max_by_key(|mark| mark.index);
    let mark = match (mark, marks.first()) {
        (Some(mark), _) => mark.clone(),
        (None, None) => SnapshotMark::default(),
        (None, Some(first)) => {
            return Err(OpenError::StoreBehind {
                wal: wal_dir.to_owned(),
                store: store_dir.to_owned(),
                first: first.index,
                applied,
            });
        }
    };
    let (wal, recovered) = Wal::open(disk.clone(), wal_dir, &mark, wal::Options::default())?;
    Ok(Log { wal, recovered, mark })
}

/// `--bootstrap-defrag-threshold-megabytes`: gives back what is free, if it is much.
fn defragment_at_start(
    config: &Config,
    engine: &LogEngine,
    logger: &Logger,
) -> Result<(), engine::Error> {
    let threshold = config.bootstrap_defrag_threshold_megabytes * 1024 * 1024;
    let sizes = engine.sizes();
    let free = sizes.total - sizes.in_use;
    if threshold == 0 {
        return Ok(());
    }
    if free < threshold {
        config::info!(logger, "skipping defragmentation",
            "current-db-size-bytes" => sizes.total,
            "current-db-size-in-use-bytes" => sizes.in_use,
            "experimental-bootstrap-defrag-threshold-bytes" => threshold);
        return Ok(());
    }
    let synced = engine.last_commit().index;
    loop {
        engine.sync(synced)?;
        if !engine.collect(1 << 20, true)? {
            return Ok(());
        }
    }
}

/// Paths and stores, before it is known whether the member is new.
struct Parts {
    disk: Arc<dyn Disk>,
    engine: Arc<LogEngine>,
    store: Store,
    snap_dir: PathBuf,
    store_dir: PathBuf,
    wal_dir: PathBuf,
}

/// A member that begins now, alone.
fn found(parts: Parts, config: &Config) -> Result<Opened, OpenError> {
    let Parts { disk, engine, store, snap_dir, store_dir, wal_dir } = parts;
    if engine.last_commit().index > 0 {
        return Err(OpenError::LogMissing { store: store_dir, wal: wal_dir });
    }
    let cluster = config.initial_cluster().map_err(OpenError::Refused)?;
    let metadata = Metadata {
        node_id: cluster.local_member_id,
        cluster_id: cluster.cluster_id,
        ..Metadata::default()
    };
    let wal = Wal::create(disk.clone(), &wal_dir, &metadata, wal::Options::default())?;
    let context = serde_json::json!({
        "id": cluster.local_member_id,
        "peerURLs": config::urls::texts(&config.initial_advertise_peer_urls),
        "name": config.name,
    });
    Ok(Opened {
        disk,
        engine,
        store,
        wal,
        origin: Origin::Founding(vec![(cluster.local_member_id, context.to_string().into())]),
        member_id: cluster.local_member_id,
        cluster_id: cluster.cluster_id,
        snap_dir,
        last_mark: 0,
        synced: 0,
        is_new: true,
        commit_index: 0,
    })
}

/// A member that has been here before: the store as far as it was durable, then the log.
fn restart(parts: Parts, log: Log, logger: &Logger) -> Opened {
    let Parts { disk, engine, store, snap_dir, .. } = parts;
    let Log { wal, recovered, mark } = log;
    let applied = engine.last_commit().index;
    if let Some(cut) = &recovered.cut {
        config::warn!(logger, "cut a torn write off the end of the log",
            "segment" => cut.segment.display().to_string(),
            "offset" => cut.offset,
            "reason" => cut.what);
    }
    let synced = recovered.entries.last().map_or(mark.index, |entry| entry.index);
    let restored = Restored {
        hard_state: recovered.hard_state,
        conf_state: store.view().conf_state(),
        snapshot: (mark.index, mark.term),
        entries: recovered.entries,
        applied,
    };
    Opened {
        disk,
        engine,
        store,
        wal,
        member_id: recovered.metadata.node_id,
        cluster_id: recovered.metadata.cluster_id,
        snap_dir,
        last_mark: mark.index,
        synced,
        is_new: false,
        commit_index: restored.hard_state.commit.max(applied),
        origin: Origin::Restored(restored),
    }
}
