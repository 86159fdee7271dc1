//! Right command lines, variables and files: what they set, and what is remarked about them.

use std::time::Duration;

use config::log::Logger;
use config::{ClusterState, Config, Gate, Outcome, start_line};

fn run(args: &[&str], env: &[(&str, &str)]) -> (Config, Vec<String>) {
    let args: Vec<String> =
        std::iter::once("etcd").chain(args.iter().copied()).map(String::from).collect();
    match Config::from_args(&args, env.iter().map(|(k, v)| (k.to_string(), v.to_string()))) {
        Outcome::Run(config, lines) => {
            let said = lines.iter().map(|line| format!("{} {}", line.level.as_str(), line.msg));
            (*config, said.collect())
        }
        other => panic!("this does not start: {other:?}"),
    }
}

#[test]
fn nothing_said_gives_etcd_s_defaults_and_its_remarks() {
    let (config, said) = run(&[], &[]);
    let expected = Config { data_dir: "default.etcd".into(), ..Config::default() };
    assert_eq!(config, expected);
    assert_eq!(
        said,
        [
            "warn Running http and grpc server on single port. This is not recommended for production.",
            "warn it isn't recommended to use default name, please set a value for --name. \
             Note that etcd might run into issue when multiple members have the same default name",
            "info Running: ",
            "warn 'data-dir' was empty; using default",
        ]
    );
}

#[test]
fn flags_are_typed() {
    let (config, _) = run(
        &[
            "-name",
            "m1",
            "--snapshot-count=0x10",
            "--pre-vote=F",
            "--quota-backend-bytes=-1",
            "--grpc-keepalive-interval=1m30s",
            "--backend-batch-interval=-5s",
            "--listen-metrics-urls=http://127.0.0.1:3,http://127.0.0.1:2,http://127.0.0.1:3",
            "--listen-client-urls=",
            "--advertise-client-urls=http://a.example:2379",
            "--cors=http://b:1,http://a:1",
            "--host-whitelist=b,a,b",
            "--config",
            "--force=whatever",
            "--feature-gates=LeaseCheckpoint=true,LeaseCheckpointPersist=true",
            "--max-txn-ops=1",
            "--max-txn-ops=2",
        ],
        &[],
    );
    assert_eq!(config.name, "m1");
    assert_eq!(config.snapshot_count, 16);
    assert!(!config.pre_vote);
    assert_eq!(config.quota_bytes(), None);
    assert_eq!(config.grpc_keepalive_interval, Duration::from_secs(90));
    assert_eq!(config.backend_batch_interval(), Duration::from_millis(100));
    assert_eq!(
        config::urls::texts(&config.listen_metrics_urls),
        ["http://127.0.0.1:2", "http://127.0.0.1:3"]
    );
    assert_eq!(config::urls::texts(&config.listen_client_urls), ["http://localhost:2379"]);
    assert_eq!(config.cors, ["http://a:1", "http://b:1"]);
    assert_eq!(config.host_whitelist, ["a", "b"]);
    assert!(config.feature_gates.is_enabled(Gate::LeaseCheckpointPersist));
    assert_eq!(config.max_txn_ops, 2);
    assert_eq!(config.initial_cluster, "m1=http://localhost:2380", "only the name was given");
    assert_eq!(config.data_dir.to_str(), Some("m1.etcd"));
}

#[test]
fn zero_means_the_default_where_etcd_says_so() {
    let config = Config::default();
    assert_eq!(config.quota_bytes(), Some(2_147_483_648));
    assert_eq!(config.backend_batch_limit(), 10_000);
    assert_eq!(config.compaction_batch_limit(), 1_000);
    assert_eq!(config.compaction_sleep_interval(), Duration::from_millis(10));
    assert_eq!(config.watch_progress_notify_interval(), Duration::from_secs(600));
    assert_eq!(config.grpc_receive_bytes_max(), 1_572_864 + 512 * 1024);
    assert_eq!(config.request_timeout(), Duration::from_secs(7));
}

#[test]
fn short_raft_timeouts_are_raised() {
    let (config, said) = run(&["--raft-read-timeout=1s"], &[]);
    assert_eq!(config.raft_read_timeout, Duration::from_secs(5));
    assert!(said.contains(&"info raft-read-timeout increased to minimum value: 5s".into()));
}

#[test]
fn experimental_names_work_and_are_told_off() {
    let (config, said) = run(
        &[
            "--experimental-compaction-sleep-interval=1ms",
            "--experimental-compact-hash-check-enabled",
            "--experimental-compact-hash-check-time=2m",
            "--experimental-distributed-tracing-address=a:1",
            "--experimental-initial-corrupt-check",
            "--experimental-txn-mode-write-with-shared-buffer=false",
            "--experimental-warning-unary-request-duration=1s",
            "--experimental-watch-progress-notify-interval=5s",
            "--max-snapshots=3",
            "--v2-deprecation=gone",
        ],
        &[],
    );
    assert_eq!(config.compaction_sleep_interval(), Duration::from_millis(1));
    assert_eq!(config.compact_hash_check_time, Duration::from_secs(120));
    assert_eq!(config.warning_unary_request_duration, Duration::from_secs(1));
    assert_eq!(config.v2_deprecation, "write-only");
    assert_eq!(
        config.feature_gates.to_string(),
        "CompactHashCheck=true,InitialCorruptCheck=true,TxnModeWriteWithSharedBuffer=false"
    );
    let told: Vec<&str> = said.iter().filter_map(|line| line.strip_prefix("warn --")).collect();
    assert_eq!(
        told,
        [
            "experimental-warning-unary-request-duration is deprecated, and will be decommissioned in v3.7. Use --warning-unary-request-duration instead.",
            "experimental-compact-hash-check-enabled is deprecated in 3.6 and will be decommissioned in 3.7. Use '--feature-gates=CompactHashCheck=true' instead.",
            "experimental-compact-hash-check-time is deprecated in 3.6 and will be decommissioned in 3.7. Use '--compact-hash-check-time' instead.",
            "experimental-compaction-sleep-interval is deprecated in v3.6 and will be decommissioned in v3.7. Use 'compaction-sleep-interval' instead.",
            "experimental-distributed-tracing-address is deprecated in 3.6 and will be decommissioned in 3.7. Use --distributed-tracing-address instead.",
            "experimental-txn-mode-write-with-shared-buffer is deprecated in v3.6 and will be decommissioned in v3.7. Use '--feature-gates=TxnModeWriteWithSharedBuffer=true' instead.",
            "experimental-watch-progress-notify-interval is deprecated in v3.6 and will be decommissioned in v3.7. Use '--watch-progress-notify-interval' instead.",
            "max-snapshots is deprecated in 3.6 and will be decommissioned in 3.8.",
            "v2-deprecation is deprecated and scheduled for removal in v3.8. The default value is enforced, ignoring user input.",
        ]
    );
}

#[test]
fn variables_fill_in_for_flags() {
    let (config, said) = run(
        &["--name=m"],
        &[
            ("ETCD_SNAPSHOT_COUNT", "7"),
            ("ETCD_DATA_DIR", ""),
            ("ETCD_FOO", "1"),
            ("ETCD_VERSION", "3"),
            ("ETCD_V", "x"),
            ("PATH", "/bin"),
        ],
    );
    assert_eq!(config.snapshot_count, 7);
    assert_eq!(
        said[..5],
        [
            "warn cannot set special environment variable",
            "info recognized and used environment variable",
            "info recognized and used environment variable",
            "warn unrecognized environment variable",
            "warn unrecognized environment variable",
        ]
    );
}

#[test]
fn a_file_replaces_flags_and_variables() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("etcd.yml");
    std::fs::write(
        &path,
        "name: from-file\n\
         data-dir: /d\n\
         listen-client-urls: http://127.0.0.1:1,http://127.0.0.1:1\n\
         corrupt-check-time: 60000000000\n\
         auto-compaction-retention: '1'\n\
         log-outputs: [stdout, stderr]\n\
         socket-options:\n  reuse-port: yes\n\
         discovery-fallback: proxy\n\
         raft-read-timeout: 1\n\
         no-such-key: {a: [b]}\n\
         max-wals: ~\n",
    )
    .unwrap();
    let file = format!("--config-file={}", path.display());
    let (config, said) = run(
        &["--name=from-flag", "--raft-write-timeout=1s", &file],
        &[("ETCD_NAME", "from-env"), ("ETCD_FOO", "1"), ("ETCD_PRE_VOTE", "nonsense")],
    );
    assert_eq!(config.name, "from-file");
    assert_eq!(config.corrupt_check_time, Duration::from_secs(60));
    assert_eq!(config.log.outputs, ["stdout", "stderr"]);
    assert!(config.socket_reuse_port);
    assert_eq!(config.max_wals, 5);
    assert_eq!(config.raft_read_timeout, Duration::from_secs(5), "there is no such key");
    assert_eq!(config.raft_write_timeout, Duration::from_secs(1), "this flag survives, unchecked");
    assert_eq!(config.listen_client_urls.len(), 2, "a file keeps doubles");
    assert_eq!(config::urls::texts(&config.advertise_client_urls), ["http://localhost:2379"]);
    assert_eq!(config.initial_cluster_state, ClusterState::New);
    assert_eq!(config.initial_cluster, "from-file=http://localhost:2380");
    assert_eq!(
        said,
        [
            "warn Running http and grpc server on single port. This is not recommended for production.",
            "info loaded server configuration, other configuration command line flags and environment variables will be ignored if provided",
            "info Running: ",
        ]
    );
}

#[test]
fn a_member_that_listens_everywhere_advertises_an_address() {
    let (config, said) = run(&["--name=m", "--listen-peer-urls=http://0.0.0.0:7777"], &[]);
    let advertised = config::urls::texts(&config.initial_advertise_peer_urls);
    if said.contains(&"info detected default host for advertise".to_string()) {
        assert!(advertised[0].ends_with(":7777"), "{advertised:?}");
        assert_eq!(config.initial_cluster, format!("m={}", advertised[0]));
    } else {
        // A machine without a route has nothing better to offer.
        assert!(said.contains(&"info failed to detect default host".to_string()), "{said:?}");
        assert_eq!(advertised, ["http://localhost:2380"]);
    }
}

#[test]
fn the_founding_list_is_checked_against_this_member() {
    let founded = |args: &[&str]| run(args, &[]).0.initial_cluster();
    let default = founded(&[]).unwrap();
    assert_eq!(format!("{:x}", default.local_member_id), "8e9e05c52164694d");
    assert_eq!(format!("{:x}", default.cluster_id), "cdf818194e3a8c32");
    let peer = "--initial-advertise-peer-urls=http://127.0.0.1:28380";
    for (list, error) in [
        (
            "a=http://127.0.0.1:28380",
            "couldn't find local name \"default\" in the initial cluster configuration",
        ),
        (
            "default=foo",
            "error setting up initial cluster: URL scheme must be http, https, unix, or unixs: foo",
        ),
        (
            "default=http://127.0.0.1:28381",
            "--initial-cluster has default=http://127.0.0.1:28381 but missing from --initial-advertise-peer-urls=http://127.0.0.1:28380 (resolved urls: \"http://127.0.0.1:28380\" != \"http://127.0.0.1:28381\")",
        ),
        (
            "default=http://127.0.0.1:28380,default=http://127.0.0.1:28382",
            "--initial-cluster has default=http://127.0.0.1:28382 but missing from --initial-advertise-peer-urls=http://127.0.0.1:28380 (len([\"http://127.0.0.1:28380\"]) != len([\"http://127.0.0.1:28380\" \"http://127.0.0.1:28382\"]))",
        ),
    ] {
        let list = format!("--initial-cluster={list}");
        assert_eq!(founded(&[peer, &list]), Err(error.to_string()));
    }
    assert_eq!(
        founded(&["--initial-cluster=default=http://localhost:2380", "--initial-advertise-peer-urls=http://localhost:2380,http://localhost:2381"]),
        Err("--initial-advertise-peer-urls has http://localhost:2381 but missing from --initial-cluster=default=http://localhost:2380,default=http://localhost:2381".into())
    );
}

#[test]
fn listeners_that_need_certificates_or_collide_are_refused() {
    let check = |args: &[&str]| run(args, &[]).0.check_listeners();
    assert_eq!(check(&[]), Ok(()));
    let client = "--advertise-client-urls=http://localhost:1";
    assert_eq!(
        check(&[client, "--listen-client-urls=https://127.0.0.1:1"]),
        Err("TLS key/cert (--cert-file, --key-file) must be provided for client url https://127.0.0.1:1 with HTTPS scheme".into())
    );
    assert_eq!(
        check(&[client, "--listen-client-urls=http://127.0.0.1:1", "--listen-client-http-urls=http://127.0.0.1:1"]),
        Err("cannot bind both --listen-client-urls and --listen-client-http-urls on the same url http://127.0.0.1:1".into())
    );
    assert_eq!(
        run(&["--auth-token=foo"], &[]).0.check_services(),
        Err("auth: invalid auth options".into())
    );
}

#[test]
fn help_names_every_flag_and_version_says_what_we_are_taken_for() {
    let printed =
        |arg: &str| match Config::from_args(&["etcd".into(), arg.into()], std::iter::empty()) {
            Outcome::Print { stdout, stderr, code } => (stdout, stderr, code),
            other => panic!("{other:?}"),
        };
    let (help, usage, code) = printed("-h");
    assert_eq!(code, 0);
    assert!(usage.starts_with("Usage:\n"));
    for wanted in [
        "  --name 'default'\n",
        "  --unsafe-no-fsync 'false'\n",
        "  --max-concurrent-streams '4294967295'\n",
        "    TxnModeWriteWithSharedBuffer=true|false (BETA - default=true)\n",
        "  --experimental-memory-mlock\n    Use --memory-mlock instead.\n",
    ] {
        assert!(help.contains(wanted), "{wanted}");
    }
    assert_eq!(help.matches("\n  --").count(), 115 + 23, "every flag and every alias has its line");
    let (version, _, code) = printed("--version");
    assert_eq!(code, 0);
    let lines: Vec<&str> = version.lines().collect();
    assert_eq!(lines[0], "etcd Version: 3.6.14");
    assert!(lines[1].starts_with("Git SHA: "));
    assert!(lines[2].starts_with("Go Version: rust"));
    assert!(lines[3].starts_with("Go OS/Arch: "));
    assert!(lines[4].starts_with("Althing Version: "));
}

#[test]
fn the_start_line_has_etcd_s_fields_in_etcd_s_order() {
    let (config, _) = run(
        &[
            "--auto-compaction-mode=revision",
            "--auto-compaction-retention=1000",
            "--feature-gates=AllBeta=false",
        ],
        &[],
    );
    let (log, lines) = Logger::capture();
    let mut entry = config::entry!(config::log::Level::Info, "starting an etcd server");
    entry.fields = start_line(&config, false);
    log.write(&entry);
    let line = lines.take().remove(0);
    let from = line.find("\"member-initialized\"").unwrap();
    assert_eq!(
        line[from..],
        *concat!(
            r#""member-initialized":false,"name":"default","data-dir":"default.etcd","wal-dir":"","wal-dir-dedicated":"","#,
            r#""member-dir":"default.etcd/member","force-new-cluster":false,"heartbeat-interval":"100ms","election-timeout":"1s","#,
            r#""initial-election-tick-advance":true,"snapshot-count":10000,"max-wals":5,"max-snapshots":5,"#,
            r#""snapshot-catchup-entries":5000,"initial-advertise-peer-urls":["http://localhost:2380"],"#,
            r#""listen-peer-urls":["http://localhost:2380"],"advertise-client-urls":["http://localhost:2379"],"#,
            r#""listen-client-urls":["http://localhost:2379"],"listen-metrics-urls":[],"experimental-local-address":"","#,
            r#""cors":["*"],"host-whitelist":["*"],"initial-cluster":"default=http://localhost:2380","#,
            r#""initial-cluster-state":"new","initial-cluster-token":"etcd-cluster","quota-backend-bytes":2147483648,"#,
            r#""max-request-bytes":1572864,"max-concurrent-streams":4294967295,"pre-vote":true,"#,
            r#""feature-gates":"AllBeta=false,TxnModeWriteWithSharedBuffer=false","initial-corrupt-check":false,"#,
            r#""corrupt-check-time-interval":"0s","compact-check-time-interval":"1m0s","auto-compaction-mode":"revision","#,
            r#""auto-compaction-retention":"1µs","auto-compaction-interval":"1µs","discovery-url":"","discovery-proxy":"","#,
            r#""discovery-token":"","discovery-endpoints":"","discovery-dial-timeout":"2s","discovery-request-timeout":"5s","#,
            r#""discovery-keepalive-time":"2s","discovery-keepalive-timeout":"6s","discovery-insecure-transport":true,"#,
            r#""discovery-insecure-skip-tls-verify":false,"discovery-cert":"","discovery-key":"","discovery-cacert":"","#,
            r#""discovery-user":"","downgrade-check-interval":"5s","max-learners":1,"v2-deprecation":"write-only"}"#,
        )
    );
}
