//! A fresh server shows the series of a fresh etcd: the same names, kinds, labels and buckets in
//! the same order.
//!
//! The fixture is `/metrics` of a single etcd 3.6.14 just after its start, without help texts and
//! values, its member ID replaced by 1.

use metrics::{ApplyOp, Feature, GrpcType, Identity, Live, Method, Metrics, Process};
use std::time::Duration;

const ETCD: &str = include_str!("fixtures/etcd-3.6.14-fresh.txt");
const ETCD_USED: &str = include_str!("fixtures/etcd-3.6.14-used.txt");

#[test]
fn a_fresh_server_shows_what_a_fresh_etcd_shows() {
    let ours = shape(&fresh(false).render(&live()));
    let theirs: Vec<String> = ETCD.lines().map(our_runtime).collect();
    for (line, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
        assert_eq!(ours, theirs, "line {}", line + 1);
    }
    assert_eq!(ours.len(), theirs.len());
}

#[test]
fn a_fresh_server_is_all_zeros_but_for_what_it_is() {
    let text = fresh(false).render(&live());
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/fresh.txt");
    let kept: String = text.lines().filter(|line| !dull(line)).map(|l| format!("{l}\n")).collect();
    if std::env::var_os("UPDATE_GOLDENFILES").is_some() {
        std::fs::write(path, &kept).expect("recorded");
    }
    let recorded = std::fs::read_to_string(path).expect("recorded before");
    for (kept, recorded) in kept.lines().zip(recorded.lines()) {
        assert_eq!(kept, recorded);
    }
    assert_eq!(kept.len(), recorded.len());
}

#[test]
fn extensive_adds_the_handling_times() {
    let names = |text: &str| -> Vec<String> {
        text.lines().filter_map(|l| l.strip_prefix("# TYPE ")).map(str::to_string).collect()
    };
    let basic = names(&fresh(false).render(&live()));
    let mut extensive = names(&fresh(true).render(&live()));
    extensive.retain(|name| !basic.contains(name));
    assert_eq!(extensive, ["grpc_server_handling_seconds histogram"]);
}

/// Once everything has happened to a server, every family that a used cluster of etcd has is
/// there, with the same kind, labels and buckets. Beyond those there is only what did not happen
/// to that cluster.
#[test]
fn a_used_server_shows_what_a_used_etcd_shows() {
    let metrics = fresh(true);
    let second = Duration::from_secs(1);
    metrics.server.checked("livez", "serializable_read", true);
    metrics.server.alarmed("NOSPACE", 1, true);
    metrics.server.client_requests.count(None, false);
    metrics.server.learner_promote_failures.with(&["membership: ID not found"]).inc();
    metrics.server.range.took(true, second);
    let network = &metrics.network;
    network.active_peers.with(&["1", "2"]).set(1);
    network.disconnected_peers.with(&["1", "2"]).inc();
    network.stream_failures.with(&["watch", "send"]).inc();
    let peer = network.peer(2);
    for counter in
        [&peer.sent_bytes, &peer.received_bytes, &peer.sent_failures, &peer.received_failures]
    {
        counter.inc();
    }
    peer.round_trip.took(second);
    for family in [
        &network.snapshot_send_success,
        &network.snapshot_send_failures,
        &network.snapshot_receive_success,
        &network.snapshot_receive_failures,
    ] {
        family.with(&["2"]).inc();
    }
    network.snapshot_send_inflights.with(&["2"]).set(0);
    network.snapshot_receive_inflights.with(&["2"]).set(0);
    network.snapshot_send.with(&["2"]).took(second);
    network.snapshot_receive.with(&["2"]).took(second);

    let ours = families(&metrics.render(&live()));
    let theirs: Vec<&str> = ETCD_USED.lines().filter(|line| !line.starts_with('#')).collect();
    for family in &theirs {
        assert!(ours.iter().any(|held| held == family), "{family} is missing or different");
    }
    let name = |family: &str| family.split(' ').next().unwrap_or_default().to_string();
    let known: Vec<String> = theirs.iter().map(|family| name(family)).collect();
    let beyond: Vec<String> =
        ours.iter().map(|family| name(family)).filter(|name| !known.contains(name)).collect();
    assert_eq!(
        beyond,
        [
            "etcd_network_peer_received_failures_total",
            "etcd_network_server_stream_failures_total",
            "etcd_network_snapshot_receive_failures",
            "etcd_network_snapshot_send_failures",
        ]
    );
}

/// A call and what it leaves behind; Lock shows only what was used of it.
#[test]
fn calls_are_counted_by_method() {
    let metrics = fresh(true);
    let lock = methods().iter().position(|method| method.name == "Lock").expect("listed");
    let method = metrics.grpc.method(lock);
    method.started();
    method.received();
    method.handled(api::Code::Unavailable, Duration::from_millis(30));
    let text = metrics.render(&live());
    let lines: Vec<&str> = text.lines().filter(|l| l.contains("v3lockpb.Lock")).collect();
    let labels = r#"grpc_method="Lock",grpc_service="v3lockpb.Lock",grpc_type="unary""#;
    let mut expected =
        vec![format!("grpc_server_handled_total{{grpc_code=\"Unavailable\",{labels}}} 1")];
    for (bound, count) in [
        ("0.005", 0),
        ("0.01", 0),
        ("0.025", 0),
        ("0.05", 1),
        ("0.1", 1),
        ("0.25", 1),
        ("0.5", 1),
        ("1", 1),
        ("2.5", 1),
        ("5", 1),
        ("10", 1),
        ("+Inf", 1),
    ] {
        expected.push(format!(
            "grpc_server_handling_seconds_bucket{{{labels},le=\"{bound}\"}} {count}"
        ));
    }
    expected.push(format!("grpc_server_handling_seconds_sum{{{labels}}} 0.03"));
    expected.push(format!("grpc_server_handling_seconds_count{{{labels}}} 1"));
    expected.push(format!("grpc_server_msg_received_total{{{labels}}} 1"));
    expected.push(format!("grpc_server_started_total{{{labels}}} 1"));
    assert_eq!(lines, expected);
}

#[test]
fn labelled_series_look_as_etcds_do() {
    let metrics = fresh(false);
    metrics.server.checked("readyz", "non_learner", true);
    metrics.server.checked("readyz", "non_learner", false);
    metrics.server.alarmed("NOSPACE", 0x1a, true);
    metrics.server.client_requests.count(None, false);
    metrics.server.client_requests.count(Some("3.6"), true);
    metrics.server.client_requests.count(Some("9.9"), true);
    metrics.server.learner_promote_failures.with(&["membership: ID not found"]).inc();
    metrics.server.range.took(true, Duration::from_micros(50));
    metrics.network.active_peers.with(&["1", "2"]).set(1);
    metrics.network.stream_failures.with(&["watch", "receive"]).inc();
    let peer = metrics.network.peer(0xbeef);
    peer.sent_bytes.add(10);
    let text = metrics.render(&live());
    for line in [
        r#"etcd_server_healthcheck{name="non_learner",type="readyz"} 0"#,
        r#"etcd_server_healthchecks_total{name="non_learner",status="error",type="readyz"} 1"#,
        r#"etcd_server_healthchecks_total{name="non_learner",status="success",type="readyz"} 1"#,
        r#"etcd_debugging_server_alarms{alarm_type="NOSPACE",server_id="1a"} 1"#,
        r#"etcd_server_client_requests_total{client_api_version="unknown",type="unary"} 1"#,
        r#"etcd_server_client_requests_total{client_api_version="3.6",type="stream"} 1"#,
        r#"etcd_server_client_requests_total{client_api_version="9.9",type="stream"} 1"#,
        r#"etcd_server_learner_promote_failures{Reason="membership: ID not found"} 1"#,
        r#"etcd_server_range_duration_seconds_bucket{success="true",le="0.0001"} 1"#,
        r#"etcd_network_active_peers{Local="1",Remote="2"} 1"#,
        r#"etcd_network_server_stream_failures_total{API="watch",Type="receive"} 1"#,
        r#"etcd_network_peer_sent_bytes_total{To="beef"} 10"#,
    ] {
        assert!(text.lines().any(|held| held == line), "{line} is missing");
    }
    assert!(!text.contains("peer_round_trip"), "nothing was measured yet");
}

/// A client may name any version; the memory that takes is bounded and no request is lost.
#[test]
fn invented_client_versions_end_up_as_unknown() {
    let metrics = fresh(false);
    for version in 0..1000 {
        metrics.server.client_requests.count(Some(&format!("x{version}")), false);
    }
    let text = metrics.render(&live());
    let counts: Vec<u64> = text
        .lines()
        .filter(|line| line.starts_with("etcd_server_client_requests_total{"))
        .filter_map(|line| line.rsplit(' ').next()?.parse().ok())
        .collect();
    assert_eq!(counts.len(), 51);
    assert_eq!(counts.iter().sum::<u64>(), 1000);
}

#[test]
fn scrapes_count_themselves() {
    let metrics = fresh(false);
    metrics.render(&live());
    let text = metrics.render(&live());
    assert!(text.contains("promhttp_metric_handler_requests_total{code=\"200\"} 1\n"));
    assert!(text.contains("promhttp_metric_handler_requests_in_flight 1\n"));
}

/// Each family as in the fixture: name, kind, labels, buckets.
fn families(text: &str) -> Vec<String> {
    let mut families = Vec::new();
    for family in text.split("# HELP ").skip(1) {
        let mut lines = family.lines().skip(1);
        let heading = lines.next().and_then(|line| line.strip_prefix("# TYPE ")).expect("a type");
        let mut labels: Vec<&str> = Vec::new();
        let mut bounds: Vec<&str> = Vec::new();
        for line in lines {
            let inside = line.split_once('{').map_or("", |(_, rest)| rest);
            // Label values in this test hold neither quotes nor braces.
            for (name, value) in inside.split("\",").filter_map(|pair| pair.split_once("=\"")) {
                let value = value.split('"').next().unwrap_or_default();
                match name {
                    "quantile" => {}
                    "le" if !bounds.contains(&value) => bounds.push(value),
                    "le" => {}
                    name if !labels.contains(&name) => labels.push(name),
                    _ => {}
                }
            }
        }
        let or_dash = |list: Vec<&str>| match list.is_empty() {
            true => "-".to_string(),
            false => list.join(","),
        };
        families.push(format!("{heading} {} {}", or_dash(labels), or_dash(bounds)));
    }
    families
}

/// The lines without values: what exists, not how much of it.
fn shape(text: &str) -> Vec<String> {
    text.lines()
        .filter(|line| !line.starts_with("# HELP"))
        .map(|line| match line.rsplit_once(' ') {
            Some((series, _)) if !line.starts_with('#') => series.to_string(),
            _ => line.to_string(),
        })
        .collect()
}

/// Where etcd names its Go version we name our language.
fn our_runtime(line: &str) -> String {
    line.replace("go1.26.8", "rust")
}

/// Too many to read: the zeros of every method and of every bucket.
fn dull(line: &str) -> bool {
    line.contains("_bucket{") || line.starts_with("grpc_server_")
}

/// What a single member has done by the time of its first scrape.
fn fresh(extensive: bool) -> Metrics {
    let feature = |name: &str, stage: &str, enabled| Feature {
        name: name.into(),
        stage: stage.into(),
        enabled,
    };
    let identity = Identity {
        server_id: 1,
        version: api::ETCD_VERSION.into(),
        features: vec![
            feature("TxnModeWriteWithSharedBuffer", "BETA", true),
            feature("AllAlpha", "ALPHA", false),
            feature("AllBeta", "BETA", false),
            feature("CompactHashCheck", "ALPHA", false),
            feature("InitialCorruptCheck", "ALPHA", false),
            feature("LeaseCheckpoint", "ALPHA", false),
            feature("LeaseCheckpointPersist", "ALPHA", false),
            feature("SetMemberLocalAddr", "ALPHA", false),
            feature("StopGRPCServiceOnDefrag", "ALPHA", false),
        ],
    };
    let metrics = Metrics::new(identity, &methods(), extensive);
    metrics.network.known_peers.with(&["1", "1"]).set(1);
    for op in [ApplyOp::ClusterVersionSet, ApplyOp::ClusterMemberAttrSet] {
        metrics.server.apply.took(op, true, Duration::from_micros(100));
    }
    metrics
}

fn live() -> Live {
    Live {
        has_leader: true,
        is_leader: true,
        proposals_committed: 4,
        proposals_applied: 4,
        quota_backend_bytes: 2 << 30,
        cluster_version: Some("3.6".into()),
        db_total_bytes: 20480,
        db_in_use_bytes: 16384,
        current_revision: 1,
        compact_revision: -1,
        auth_revision: 1,
        process: Process { threads: 5, cores: 2, fds_max: 20000, ..Process::default() },
        ..Live::default()
    }
}

fn methods() -> Vec<Method> {
    use GrpcType::{BidiStream, ServerStream, Unary};
    let services: [(&'static str, &[(&'static str, GrpcType)]); 8] = [
        (
            "etcdserverpb.KV",
            &[
                ("Range", Unary),
                ("RangeStream", ServerStream),
                ("Put", Unary),
                ("DeleteRange", Unary),
                ("Txn", Unary),
                ("Compact", Unary),
            ],
        ),
        ("etcdserverpb.Watch", &[("Watch", BidiStream)]),
        (
            "etcdserverpb.Lease",
            &[
                ("LeaseGrant", Unary),
                ("LeaseRevoke", Unary),
                ("LeaseKeepAlive", BidiStream),
                ("LeaseTimeToLive", Unary),
                ("LeaseLeases", Unary),
            ],
        ),
        (
            "etcdserverpb.Cluster",
            &[
                ("MemberAdd", Unary),
                ("MemberRemove", Unary),
                ("MemberUpdate", Unary),
                ("MemberList", Unary),
                ("MemberPromote", Unary),
            ],
        ),
        (
            "etcdserverpb.Maintenance",
            &[
                ("Alarm", Unary),
                ("Status", Unary),
                ("Defragment", Unary),
                ("Hash", Unary),
                ("HashKV", Unary),
                ("Snapshot", ServerStream),
                ("MoveLeader", Unary),
                ("Downgrade", Unary),
            ],
        ),
        (
            "etcdserverpb.Auth",
            &[
                ("AuthEnable", Unary),
                ("AuthDisable", Unary),
                ("AuthStatus", Unary),
                ("Authenticate", Unary),
                ("UserAdd", Unary),
                ("UserGet", Unary),
                ("UserList", Unary),
                ("UserDelete", Unary),
                ("UserChangePassword", Unary),
                ("UserGrantRole", Unary),
                ("UserRevokeRole", Unary),
                ("RoleAdd", Unary),
                ("RoleGet", Unary),
                ("RoleList", Unary),
                ("RoleDelete", Unary),
                ("RoleGrantPermission", Unary),
                ("RoleRevokePermission", Unary),
            ],
        ),
        ("grpc.health.v1.Health", &[("Check", Unary), ("List", Unary), ("Watch", ServerStream)]),
        ("v3lockpb.Lock", &[("Lock", Unary), ("Unlock", Unary)]),
    ];
    let mut methods = Vec::new();
    for (service, names) in services {
        for (name, grpc_type) in names {
            methods.push(Method { service, name, grpc_type: *grpc_type });
        }
    }
    methods
}
