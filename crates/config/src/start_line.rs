//! The fields of `starting an etcd server`, in the order people know.

use std::borrow::Cow;

use crate::bootstrap::{pairs, parse_members};
use crate::duration::{format_duration, format_go_duration};
use crate::log::Value;
use crate::retention::Retention;
use crate::settings::{ClusterState, Config};
use crate::version::{ETCD_VERSION, GIT_SHA, go_arch, go_os, go_version};

/// Everything the server is about to run with. `member_initialized` says whether it has data
/// already; then the founding list means nothing, and etcd prints none.
pub fn start_line(config: &Config, member_initialized: bool) -> Vec<(Cow<'static, str>, Value)> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let discovery = &config.discovery;
    let retention = config.retention().unwrap_or(Retention::Off);
    let retention = format_go_duration(retention.nanos());
    let quota = match config.quota_backend_bytes {
        0 => 2 << 30,
        given => given,
    };
    let election = std::time::Duration::from_millis(config.election_ticks() * config.heartbeat_ms);
    let heartbeat = std::time::Duration::from_millis(config.heartbeat_ms);
    let founded = if member_initialized {
        String::new()
    } else {
        parse_members(&config.initial_cluster).map(|members| pairs(&members)).unwrap_or_default()
    };
    let token = if member_initialized { "" } else { config.initial_cluster_token.as_str() };
    let state = match config.initial_cluster_state {
        ClusterState::New => "new",
        ClusterState::Existing => "existing",
    };
    crate::__fields!([]
        "etcd-version" => ETCD_VERSION,
        "git-sha" => GIT_SHA,
        "go-version" => go_version(),
        "go-os" => go_os(),
        "go-arch" => go_arch(),
        "max-cpu-set" => cpus,
        "max-cpu-available" => cpus,
        "member-initialized" => member_initialized,
        "name" => &config.name,
        "data-dir" => &config.data_dir,
        "wal-dir" => &config.wal_dir,
        "wal-dir-dedicated" => &config.wal_dir,
        "member-dir" => &config.member_dir(),
        "force-new-cluster" => config.force_new_cluster,
        "heartbeat-interval" => heartbeat,
        "election-timeout" => election,
        "initial-election-tick-advance" => config.initial_election_tick_advance,
        "snapshot-count" => config.snapshot_count,
        "max-wals" => config.max_wals,
        "max-snapshots" => config.max_snapshots,
        "snapshot-catchup-entries" => config.snapshot_catchup_entries,
        "initial-advertise-peer-urls" => &config.initial_advertise_peer_urls,
        "listen-peer-urls" => &config.listen_peer_urls,
        "advertise-client-urls" => &config.advertise_client_urls,
        "listen-client-urls" => &config.listen_client_urls,
        "listen-metrics-urls" => &config.listen_metrics_urls,
        "experimental-local-address" => "",
        "cors" => &config.cors,
        "host-whitelist" => &config.host_whitelist,
        "initial-cluster" => founded,
        "initial-cluster-state" => state,
        "initial-cluster-token" => token,
        "quota-backend-bytes" => quota,
        "max-request-bytes" => config.max_request_bytes,
        "max-concurrent-streams" => config.max_concurrent_streams,
        "pre-vote" => config.pre_vote,
        "feature-gates" => %config.feature_gates,
        "initial-corrupt-check" => false,
        "corrupt-check-time-interval" => config.corrupt_check_time,
        "compact-check-time-interval" => config.compact_hash_check_time,
        "auto-compaction-mode" => &config.auto_compaction_mode,
        "auto-compaction-retention" => &retention,
        "auto-compaction-interval" => &retention,
        "discovery-url" => &discovery.url,
        "discovery-proxy" => &discovery.proxy,
        "discovery-token" => &discovery.token,
        "discovery-endpoints" => discovery.endpoints.join(","),
        "discovery-dial-timeout" => format_duration(discovery.dial_timeout),
        "discovery-request-timeout" => format_duration(discovery.request_timeout),
        "discovery-keepalive-time" => format_duration(discovery.keepalive_time),
        "discovery-keepalive-timeout" => format_duration(discovery.keepalive_timeout),
        "discovery-insecure-transport" => discovery.insecure_transport,
        "discovery-insecure-skip-tls-verify" => discovery.insecure_skip_tls_verify,
        "discovery-cert" => &discovery.cert,
        "discovery-key" => &discovery.key,
        "discovery-cacert" => &discovery.cacert,
        "discovery-user" => &discovery.user,
        "downgrade-check-interval" => config.downgrade_check_time,
        "max-learners" => config.max_learners,
        "v2-deprecation" => &config.v2_deprecation,
    )
}
