//! Every setting of one member, typed, after all sources were read and checked.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::gates::Gates;
use crate::log::LogConfig;
use crate::retention::{CompactionMode, Retention};
use crate::urls::Url;

/// The settings of one member. The defaults are etcd 3.6's, except that zero-means-default values
/// (quota, batch limits, intervals) are already resolved by the accessor methods below.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    // The member itself.
    pub name: String,
    /// Empty only while parsing; afterwards at least `<name>.etcd`.
    pub data_dir: PathBuf,
    /// A WAL directory of its own; empty means `<data_dir>/member/wal`.
    pub wal_dir: PathBuf,
    pub snapshot_count: u64,
    pub snapshot_catchup_entries: u64,
    pub heartbeat_ms: u64,
    pub election_ms: u64,
    pub initial_election_tick_advance: bool,
    pub pre_vote: bool,
    pub listen_peer_urls: Vec<Url>,
    pub listen_client_urls: Vec<Url>,
    /// Not empty: HTTP is served only here, and the client URLs speak gRPC only.
    pub listen_client_http_urls: Vec<Url>,
    pub listen_metrics_urls: Vec<Url>,
    /// Files kept; 0 keeps all.
    pub max_snapshots: u64,
    /// Files kept; 0 keeps all.
    pub max_wals: u64,
    pub memory_mlock: bool,
    /// As given: 0 is the default of 2 GiB, negative is none. See [`Config::quota_bytes`].
    pub quota_backend_bytes: i64,
    pub backend_freelist_type: String,
    /// As given, 0 is the default. See [`Config::backend_batch_interval`].
    pub backend_batch_interval_given: Duration,
    /// As given, 0 is the default. See [`Config::backend_batch_limit`].
    pub backend_batch_limit_given: i64,
    pub max_txn_ops: u64,
    pub max_request_bytes: u64,
    pub max_concurrent_streams: u32,
    pub grpc_keepalive_min_time: Duration,
    pub grpc_keepalive_interval: Duration,
    pub grpc_keepalive_timeout: Duration,
    pub socket_reuse_port: bool,
    pub socket_reuse_address: bool,
    pub raft_read_timeout: Duration,
    pub raft_write_timeout: Duration,
    pub max_learners: i64,
    pub enable_grpc_gateway: bool,
    pub unsafe_no_fsync: bool,
    pub force_new_cluster: bool,

    // The cluster.
    pub initial_advertise_peer_urls: Vec<Url>,
    pub advertise_client_urls: Vec<Url>,
    pub initial_cluster: String,
    pub initial_cluster_state: ClusterState,
    pub initial_cluster_token: String,
    pub strict_reconfig_check: bool,
    pub discovery: Discovery,
    /// `write-only` or `write-only-skip-check`; anything else that was asked for is not kept.
    pub v2_deprecation: String,

    // Security.
    pub client_tls: Tls,
    pub peer_tls: Tls,
    pub self_signed_cert_validity_years: u64,
    pub cipher_suites: Vec<String>,
    pub tls_min_version: String,
    pub tls_max_version: String,
    /// Allowed origins, sorted; `*` for all.
    pub cors: Vec<String>,
    /// Allowed Host headers, sorted; `*` for all.
    pub host_whitelist: Vec<String>,
    pub auth_token: String,
    pub bcrypt_cost: u64,
    pub auth_token_ttl_seconds: u64,

    // Compaction, warnings and checks.
    pub auto_compaction_mode: String,
    /// As written; [`Config::retention`] gives it meaning when the member boots.
    pub auto_compaction_retention: String,
    /// As given, 0 is the default. See [`Config::compaction_batch_limit`].
    pub compaction_batch_limit_given: i64,
    /// As given, 0 is the default. See [`Config::compaction_sleep_interval`].
    pub compaction_sleep_interval_given: Duration,
    pub corrupt_check_time: Duration,
    pub compact_hash_check_time: Duration,
    /// As given, 0 is the default. See [`Config::watch_progress_notify_interval`].
    pub watch_progress_notify_interval_given: Duration,
    pub warning_apply_duration: Duration,
    pub warning_unary_request_duration: Duration,
    pub bootstrap_defrag_threshold_megabytes: u64,
    pub downgrade_check_time: Duration,
    pub feature_gates: Gates,

    // What can be seen from outside.
    pub log: LogConfig,
    pub enable_pprof: bool,
    pub metrics: String,
    pub enable_distributed_tracing: bool,
    pub distributed_tracing_address: String,
    pub distributed_tracing_service_name: String,
    pub distributed_tracing_instance_id: String,
    pub distributed_tracing_sampling_rate: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterState {
    New,
    Existing,
}

/// Certificates and rules of one side, clients or peers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    pub cert_file: String,
    pub key_file: String,
    pub client_cert_file: String,
    pub client_key_file: String,
    pub client_cert_auth: bool,
    pub trusted_ca_file: String,
    pub crl_file: String,
    pub allowed_cns: Vec<String>,
    pub allowed_hostnames: Vec<String>,
    pub skip_client_san_verification: bool,
    pub auto: bool,
}

/// How a member finds its cluster when nobody wrote the list down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discovery {
    pub url: String,
    pub proxy: String,
    pub srv: String,
    pub srv_name: String,
    pub endpoints: Vec<String>,
    pub token: String,
    pub dial_timeout: Duration,
    pub request_timeout: Duration,
    pub keepalive_time: Duration,
    pub keepalive_timeout: Duration,
    pub insecure_transport: bool,
    pub insecure_skip_tls_verify: bool,
    pub cert: String,
    pub key: String,
    pub cacert: String,
    pub user: String,
    pub password: String,
}

pub const DEFAULT_NAME: &str = "default";
pub const DEFAULT_PEER_URL: &str = "http://localhost:2380";
pub const DEFAULT_CLIENT_URL: &str = "http://localhost:2379";
const QUOTA_BYTES_DEFAULT: u64 = 2 << 30;
const GRPC_OVERHEAD_BYTES: u64 = 512 << 10;

impl Default for Config {
    fn default() -> Self {
        let peer = || vec![Url::parse(DEFAULT_PEER_URL).expect("the default peer URL is a URL")];
        let client =
            || vec![Url::parse(DEFAULT_CLIENT_URL).expect("the default client URL is one")];
        Self {
            name: DEFAULT_NAME.into(),
            data_dir: PathBuf::new(),
            wal_dir: PathBuf::new(),
            snapshot_count: 10_000,
            snapshot_catchup_entries: 5_000,
            heartbeat_ms: 100,
            election_ms: 1_000,
            initial_election_tick_advance: true,
            pre_vote: true,
            listen_peer_urls: peer(),
            listen_client_urls: client(),
            listen_client_http_urls: Vec::new(),
            listen_metrics_urls: Vec::new(),
            max_snapshots: 5,
            max_wals: 5,
            memory_mlock: false,
            quota_backend_bytes: 0,
            backend_freelist_type: String::new(),
            backend_batch_interval_given: Duration::ZERO,
            backend_batch_limit_given: 0,
            max_txn_ops: 128,
            max_request_bytes: 1_572_864,
            max_concurrent_streams: u32::MAX,
            grpc_keepalive_min_time: Duration::from_secs(5),
            grpc_keepalive_interval: Duration::from_secs(2 * 3600),
            grpc_keepalive_timeout: Duration::from_secs(20),
            socket_reuse_port: false,
            socket_reuse_address: false,
            raft_read_timeout: Duration::from_secs(5),
            raft_write_timeout: Duration::from_secs(5),
            max_learners: 1,
            enable_grpc_gateway: true,
            unsafe_no_fsync: false,
            force_new_cluster: false,
            initial_advertise_peer_urls: peer(),
            advertise_client_urls: client(),
            initial_cluster: format!("{DEFAULT_NAME}={DEFAULT_PEER_URL}"),
            initial_cluster_state: ClusterState::New,
            initial_cluster_token: "etcd-cluster".into(),
            strict_reconfig_check: true,
            discovery: Discovery::default(),
            v2_deprecation: "write-only".into(),
            client_tls: Tls::default(),
            peer_tls: Tls::default(),
            self_signed_cert_validity_years: 1,
            cipher_suites: Vec::new(),
            tls_min_version: "TLS1.2".into(),
            tls_max_version: String::new(),
            cors: vec!["*".into()],
            host_whitelist: vec!["*".into()],
            auth_token: "simple".into(),
            bcrypt_cost: 10,
            auth_token_ttl_seconds: 300,
            auto_compaction_mode: "periodic".into(),
            auto_compaction_retention: "0".into(),
            compaction_batch_limit_given: 0,
            compaction_sleep_interval_given: Duration::ZERO,
            corrupt_check_time: Duration::ZERO,
            compact_hash_check_time: Duration::from_secs(60),
            watch_progress_notify_interval_given: Duration::ZERO,
            warning_apply_duration: Duration::from_millis(100),
            warning_unary_request_duration: Duration::from_millis(300),
            bootstrap_defrag_threshold_megabytes: 0,
            downgrade_check_time: Duration::from_secs(5),
            feature_gates: Gates::default(),
            log: LogConfig::default(),
            enable_pprof: false,
            metrics: "basic".into(),
            enable_distributed_tracing: false,
            distributed_tracing_address: "localhost:4317".into(),
            distributed_tracing_service_name: "etcd".into(),
            distributed_tracing_instance_id: String::new(),
            distributed_tracing_sampling_rate: 0,
        }
    }
}

impl Default for Discovery {
    fn default() -> Self {
        Self {
            url: String::new(),
            proxy: String::new(),
            srv: String::new(),
            srv_name: String::new(),
            endpoints: Vec::new(),
            token: String::new(),
            dial_timeout: Duration::from_secs(2),
            request_timeout: Duration::from_secs(5),
            keepalive_time: Duration::from_secs(2),
            keepalive_timeout: Duration::from_secs(6),
            insecure_transport: true,
            insecure_skip_tls_verify: false,
            cert: String::new(),
            key: String::new(),
            cacert: String::new(),
            user: String::new(),
            password: String::new(),
        }
    }
}

impl Config {
    /// The directory of the write-ahead log.
    pub fn wal_path(&self) -> PathBuf {
        if self.wal_dir.as_os_str().is_empty() {
            self.member_dir().join("wal")
        } else {
            self.wal_dir.clone()
        }
    }

    /// `<data_dir>/member`, the home of everything this member writes.
    pub fn member_dir(&self) -> PathBuf {
        self.data_dir.join("member")
    }

    /// Whether this member has lived before: a log is there. Then the flags of the first boot
    /// (`initial-*`) mean nothing any more.
    pub fn is_initialized(&self) -> bool {
        holds_segment(&self.wal_path())
    }

    /// The space quota; `None` when the operator switched it off with a negative value.
    pub fn quota_bytes(&self) -> Option<u64> {
        match self.quota_backend_bytes {
            0 => Some(QUOTA_BYTES_DEFAULT),
            given => u64::try_from(given).ok(),
        }
    }

    /// The largest gRPC message accepted from a client.
    pub fn grpc_receive_bytes_max(&self) -> u64 {
        self.max_request_bytes.saturating_add(GRPC_OVERHEAD_BYTES)
    }

    pub fn backend_batch_interval(&self) -> Duration {
        or_default(self.backend_batch_interval_given, Duration::from_millis(100))
    }

    pub fn backend_batch_limit(&self) -> u64 {
        u64::try_from(self.backend_batch_limit_given).ok().filter(|&n| n > 0).unwrap_or(10_000)
    }

    pub fn compaction_batch_limit(&self) -> u64 {
        u64::try_from(self.compaction_batch_limit_given).ok().filter(|&n| n > 0).unwrap_or(1_000)
    }

    pub fn compaction_sleep_interval(&self) -> Duration {
        or_default(self.compaction_sleep_interval_given, Duration::from_millis(10))
    }

    /// The interval between progress notes on an idle watch, before its jitter; never under 100 ms.
    pub fn watch_progress_notify_interval(&self) -> Duration {
        or_default(self.watch_progress_notify_interval_given, Duration::from_secs(600))
            .max(Duration::from_millis(100))
    }

    /// How much history auto-compaction leaves; the error ends the process before it boots.
    pub fn retention(&self) -> Result<Retention, String> {
        let mode = CompactionMode::parse(&self.auto_compaction_mode).ok_or_else(|| {
            format!("unsupported auto-compaction-mode {}", self.auto_compaction_mode)
        })?;
        Retention::parse(mode, &self.auto_compaction_retention)
    }

    /// Heartbeats in one election timeout, rounded down as etcd does.
    pub fn election_ticks(&self) -> u64 {
        self.election_ms / self.heartbeat_ms.max(1)
    }

    /// How long a request may take from the door to the answer.
    /// Leases live at least one and a half election timeouts, in whole seconds: anything shorter
    /// could end while there is no leader to renew it.
    pub fn min_lease_ttl_seconds(&self) -> i64 {
        let ticks = 3 * self.election_ticks() / 2;
        i64::try_from((ticks * self.heartbeat_ms).div_ceil(1000)).unwrap_or(i64::MAX)
    }

    pub fn request_timeout(&self) -> Duration {
        Duration::from_secs(5) + 2 * Duration::from_millis(self.election_ms)
    }

    /// The bcrypt cost in force: a cost outside 4..=31 falls back to 10, as in etcd.
    pub fn bcrypt_cost_effective(&self) -> u64 {
        if (4..=31).contains(&self.bcrypt_cost) { self.bcrypt_cost } else { 10 }
    }

    pub fn is_metrics_extensive(&self) -> bool {
        self.metrics == "extensive"
    }
}

fn or_default(given: Duration, default: Duration) -> Duration {
    if given.is_zero() { default } else { given }
}

fn holds_segment(dir: &Path) -> bool {
    let Ok(names) = std::fs::read_dir(dir) else { return false };
    names.flatten().any(|entry| entry.file_name().to_string_lossy().ends_with(".wal"))
}
