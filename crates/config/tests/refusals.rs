//! Wrong command lines, variables and files: what is said and how the process ends.
//!
//! The texts and codes were recorded from etcd 3.6.14, given the same.

use config::{Config, Outcome};

/// Flags that move the defaults aside, so that only the row's own mistake is left.
const FINE: &[&str] = &["--name=m"];

fn outcome(args: &[&str], env: &[(&str, &str)]) -> Outcome {
    let args: Vec<String> =
        std::iter::once("etcd").chain(args.iter().copied()).map(String::from).collect();
    Config::from_args(&args, env.iter().map(|(k, v)| (k.to_string(), v.to_string())))
}

/// The exit code and the first line of what is printed, or the error of the last line logged.
fn told(outcome: Outcome) -> (i32, String) {
    match outcome {
        Outcome::Print { stderr, code, .. } => {
            (code, stderr.lines().next().unwrap_or_default().to_string())
        }
        Outcome::Refused { lines, code, .. } => {
            let line = lines.iter().rfind(|line| line.msg == "failed to verify flags");
            let line = line.unwrap_or_else(|| panic!("no refusal in {lines:?}"));
            assert!(lines.iter().any(|line| line.msg == "Running: "), "Running comes first");
            match &line.fields[..] {
                [(key, config::log::Value::Text(error))] if key == "error" => (code, error.clone()),
                other => panic!("unexpected fields {other:?}"),
            }
        }
        Outcome::Run(config, _) => panic!("this starts: {config:?}"),
    }
}

#[test]
fn flags_that_cannot_be_read_exit_2() {
    for (args, text) in [
        ("--nosuch", "flag provided but not defined: -nosuch"),
        ("--enable-v2", "flag provided but not defined: -enable-v2"),
        (
            "--experimental-max-learners=1",
            "flag provided but not defined: -experimental-max-learners",
        ),
        ("---x", "bad flag syntax: ---x"),
        ("--=x", "bad flag syntax: --=x"),
        ("--name", "flag needs an argument: -name"),
        ("--pre-vote=foo", "invalid boolean value \"foo\" for -pre-vote: parse error"),
        ("--heartbeat-interval=x", "invalid value \"x\" for flag -heartbeat-interval: parse error"),
        ("--max-wals=-1", "invalid value \"-1\" for flag -max-wals: parse error"),
        (
            "--quota-backend-bytes=99999999999999999999",
            "invalid value \"99999999999999999999\" for flag -quota-backend-bytes: value out of range",
        ),
        (
            "--max-concurrent-streams=4294967296",
            "invalid value \"4294967296\" for flag -max-concurrent-streams: strconv.ParseUint: parsing \"4294967296\": value out of range",
        ),
        (
            "--grpc-keepalive-min-time=5",
            "invalid value \"5\" for flag -grpc-keepalive-min-time: parse error",
        ),
        (
            "--initial-cluster-state=bad",
            "invalid value \"bad\" for flag -initial-cluster-state: invalid value",
        ),
        (
            "--discovery-fallback=x",
            "invalid value \"x\" for flag -discovery-fallback: invalid value",
        ),
        (
            "--v2-deprecation=not-yet",
            "invalid value \"not-yet\" for flag -v2-deprecation: invalid value \"not-yet\"",
        ),
        (
            "--feature-gates=Foo=true",
            "invalid value \"Foo=true\" for flag -feature-gates: unrecognized feature gate: Foo",
        ),
        (
            "--listen-peer-urls=foo",
            "invalid value \"foo\" for flag -listen-peer-urls: URL scheme must be http, https, unix, or unixs: foo",
        ),
        (
            "--listen-peer-urls=http://foo",
            "invalid value \"http://foo\" for flag -listen-peer-urls: URL address does not have the form \"host:port\": http://foo",
        ),
        (
            "--listen-peer-urls=http://1.2.3.4:1/",
            "invalid value \"http://1.2.3.4:1/\" for flag -listen-peer-urls: URL must not contain a path: http://1.2.3.4:1/",
        ),
        (
            "--listen-peer-urls=127.0.0.1:1",
            "invalid value \"127.0.0.1:1\" for flag -listen-peer-urls: parse \"127.0.0.1:1\": first path segment in URL cannot contain colon",
        ),
        (
            "--listen-peer-urls=http://%zz:1",
            "invalid value \"http://%zz:1\" for flag -listen-peer-urls: parse \"http://%zz:1\": invalid URL escape \"%zz\"",
        ),
        (
            "--listen-peer-urls=http://1.2.3.4:x",
            "invalid value \"http://1.2.3.4:x\" for flag -listen-peer-urls: parse \"http://1.2.3.4:x\": invalid port \":x\" after host",
        ),
        (
            "--listen-peer-urls=http://\u{1}:1",
            "invalid value \"http://\\x01:1\" for flag -listen-peer-urls: parse \"http://\\x01:1\": net/url: invalid control character in URL",
        ),
        (
            "--listen-peer-urls=http://a:1,",
            "invalid value \"http://a:1,\" for flag -listen-peer-urls: URL scheme must be http, https, unix, or unixs: ",
        ),
        (
            "--cors=http://a",
            "invalid value \"http://a\" for flag -cors: URL address does not have the form \"host:port\": http://a",
        ),
        ("--log-level=bad", "panic: unrecognized level: \"bad\""),
    ] {
        assert_eq!(told(outcome(&[args], &[])), (2, text.to_string()), "{args}");
    }
}

#[test]
fn settings_that_make_no_sense_exit_1() {
    for (args, text) in [
        (&["foo"][..], "\"foo\" is not a valid flag"),
        (&["-"], "\"-\" is not a valid flag"),
        (&["--pre-vote", "false"], "\"false\" is not a valid flag"),
        (&["--", "--name"], "\"--name\" is not a valid flag"),
        (&["-v", "bar"], "\"bar\" is not a valid flag"),
        (&["--heartbeat-interval=0"], "--heartbeat-interval must be >0 (set to 0ms)"),
        (
            &["--heartbeat-interval=1", "-heartbeat-interval", "0"],
            "--heartbeat-interval must be >0 (set to 0ms)",
        ),
        (&["--election-timeout=0"], "--election-timeout must be >0 (set to 0ms)"),
        (
            &["--election-timeout=499"],
            "--election-timeout[499ms] should be at least as 5 times as --heartbeat-interval[100ms]",
        ),
        (
            &["--election-timeout=50001"],
            "--election-timeout[50001ms] is too long, and should be set less than 50000ms",
        ),
        (&["--auto-compaction-mode=x"], "unknown auto-compaction-mode \"x\""),
        (&["--auto-compaction-mode="], "undefined auto-compaction-mode"),
        (&["--compact-hash-check-time=-1s"], "--compact-hash-check-time must be >0 (set to -1s)"),
        (
            &["--experimental-compact-hash-check-time=0s"],
            "--experimental-compact-hash-check-time must be >0 (set to 0s)",
        ),
        (&["--tls-min-version=x"], "unexpected TLS version \"x\" (must be one of: TLS1.2, TLS1.3)"),
        (
            &["--tls-min-version=TLS1.3", "--tls-max-version=TLS1.2"],
            "min version (TLS1.3) is greater than max version (TLS1.2)",
        ),
        (
            &["--tls-min-version=TLS1.3", "--cipher-suites=a"],
            "cipher suites cannot be configured when only TLS1.3 is enabled",
        ),
        (&["--logger=capnslog"], "--logger=capnslog is removed in v3.5"),
        (&["--logger=x"], "unknown logger option \"x\""),
        (&["--log-format=xx"], "unknown log format: xx, supported values json, console"),
        (&["--log-outputs=default,stderr"], "multi logoutput for \"default\" is not supported yet"),
        (
            &["--log-outputs=systemd/journal,stderr"],
            "running with systemd/journal but other '--log-outputs' values ([\"stderr\" \"systemd/journal\"]) are configured with 'default'; override 'default' value with something else",
        ),
        (
            &["--enable-log-rotation"],
            "--log-outputs requires a single file path when --log-rotate-config-json is defined",
        ),
        (
            &[
                "--enable-log-rotation",
                "--log-outputs=f",
                "--log-rotation-config-json={\"maxsize\":\"x\"}",
            ],
            "invalid log rotation config: json: cannot unmarshal string into Go struct field logRotationConfig.Logger.maxsize of type int",
        ),
        (
            &[
                "--enable-log-rotation",
                "--log-outputs=f",
                "--log-rotation-config-json={\"maxsize\":1.5}",
            ],
            "invalid log rotation config: json: cannot unmarshal number 1.5 into Go struct field logRotationConfig.Logger.maxsize of type int",
        ),
        (
            &["--enable-log-rotation", "--log-outputs=f", "--log-rotation-config-json={"],
            "improperly formatted log rotation config: unexpected end of JSON input",
        ),
        (
            &["--discovery-fallback=proxy"],
            "v2 proxy is deprecated, and --discovery-fallback can't be configured as \"proxy\"",
        ),
        (
            &["--initial-cluster=a=http://1.1.1.1:1", "--discovery-srv=x"],
            "multiple discovery or bootstrap flags are set. Choose one of \"initial-cluster\", \"discovery\", \"discovery-endpoints\" or \"discovery-srv\"",
        ),
        (&["--discovery-token=x"], "both --discovery-token and --discovery-endpoints must be set"),
        (
            &["--discovery-token=x", "--discovery-endpoints=,"],
            "--discovery-endpoints must not contain empty endpoints",
        ),
        (
            &["--feature-gates=LeaseCheckpointPersist=true"],
            "enabling feature gate LeaseCheckpointPersist requires enabling feature gate LeaseCheckpoint",
        ),
        (
            &["--feature-gates=AllAlpha=true", "--experimental-initial-corrupt-check"],
            "cannot specify both flags: --experimental-initial-corrupt-check=true and --feature-gates=InitialCorruptCheck=true at the same time, please just use --feature-gates=InitialCorruptCheck=true",
        ),
        (
            &["--corrupt-check-time=1s", "--experimental-corrupt-check-time=1s"],
            "cannot set --experimental-corrupt-check-time and --corrupt-check-time at the same time, please use --corrupt-check-time only",
        ),
        (
            &[
                "--warning-unary-request-duration=1s",
                "--experimental-warning-unary-request-duration=1s",
            ],
            "both --experimental-warning-unary-request-duration and --warning-unary-request-duration flags are set. Use only --warning-unary-request-duration",
        ),
        (
            &["--enable-distributed-tracing", "--distributed-tracing-sampling-rate=-1"],
            "distributed tracing configurition is not valid: (tracing sampling rate must be positive)",
        ),
        (&["--listen-peer-urls=http://foo:1"], "expected IP in URL for binding (http://foo:1)"),
        (
            &["--initial-advertise-peer-urls=http://:1"],
            "--initial-advertise-peer-urls \"http://:1\" must be \"host:port\" (unexpected empty host (http://:1))",
        ),
        (
            &["--advertise-client-urls=unix:///tmp/x"],
            "--advertise-client-urls \"unix:///tmp/x\" must be \"host:port\" (missing port in address)",
        ),
        (
            &["--listen-client-urls=http://127.0.0.1:1"],
            "--advertise-client-urls is required when --listen-client-urls is set explicitly",
        ),
    ] {
        let args: Vec<&str> = FINE.iter().chain(args).copied().collect();
        assert_eq!(told(outcome(&args, &[])), (1, text.to_string()), "{args:?}");
    }
}

#[test]
fn what_this_version_cannot_do_is_refused_by_name() {
    for flag in [
        "--cert-file=x",
        "--key-file=x",
        "--client-cert-auth",
        "--trusted-ca-file=x",
        "--auto-tls",
        "--peer-cert-file=x",
        "--peer-auto-tls",
        "--experimental-peer-skip-client-san-verification",
        "--discovery=http://x",
        "--discovery-srv=x",
        "--discovery-cert=x",
        "--discovery-dial-timeout=1s",
        "--auth-token=jwt,sign-method=RS256",
        "--enable-distributed-tracing",
        "--force-new-cluster",
        "--enable-pprof",
        "--initial-cluster-state=existing",
        "--initial-cluster=m=http://localhost:2380,n=http://localhost:2381",
    ] {
        let args: Vec<&str> = FINE.iter().copied().chain([flag]).collect();
        let (code, text) = told(outcome(&args, &[]));
        let name = flag.split('=').next().unwrap().replace("experimental-", "");
        assert_eq!(code, 1, "{flag}");
        assert!(text.starts_with(&name), "{text}");
        assert!(text.contains("not supported by this version of Althing; "), "{text}");
    }
}

#[test]
fn a_member_with_data_ignores_the_flags_of_its_first_boot() {
    let dir = tempfile::tempdir().unwrap();
    let wal = dir.path().join("member/wal");
    std::fs::create_dir_all(&wal).unwrap();
    let data_dir = format!("--data-dir={}", dir.path().display());
    let args = [
        "--initial-cluster-state=existing",
        "--initial-cluster=a=http://h:1,b=http://i:1",
        &data_dir,
    ];
    assert!(matches!(outcome(&args, &[]), Outcome::Refused { .. }), "no data yet");
    std::fs::write(wal.join("0000000000000000-0000000000000000.wal"), b"").unwrap();
    assert!(matches!(outcome(&args, &[]), Outcome::Run(..)));
}

#[test]
fn a_variable_beside_its_flag_is_fatal_even_when_empty() {
    for value in ["x", ""] {
        let Outcome::Refused { lines, code, .. } = outcome(&["--name=y"], &[("ETCD_NAME", value)])
        else {
            panic!("this starts")
        };
        let last = lines.last().unwrap();
        assert_eq!(code, 1);
        assert_eq!(
            (last.level.as_str(), &*last.msg),
            (
                "fatal",
                "conflicting environment variable is shadowed by corresponding command-line flag \
                 (either unset environment variable or disable flag))"
            )
        );
        assert_eq!(last.fields, [("environment-variable".into(), "ETCD_NAME".into())]);
    }
}

#[test]
fn a_variable_with_a_wrong_value_exits_1() {
    for (name, value, text) in [
        ("ETCD_PRE_VOTE", "x", "invalid value \"x\" for ETCD_PRE_VOTE: parse error"),
        (
            "ETCD_CORS",
            "zz",
            "invalid value \"zz\" for ETCD_CORS: URL scheme must be http, https, unix, or unixs: zz",
        ),
        ("ETCD_CONFIG_FILE", "/nosuch", "open /nosuch: no such file or directory"),
    ] {
        assert_eq!(told(outcome(&[], &[(name, value)])), (1, text.to_string()));
    }
}

#[test]
fn wrong_files_are_told_as_etcd_tells_them() {
    const UNMARSHAL: &str = "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal ";
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("etcd.yml");
    for (text, code, error) in [
        ("name: [a]", 1, "{}array into Go struct field configYAML.Config.name of type string"),
        ("name: 1", 1, "{}number into Go struct field configYAML.Config.name of type string"),
        (
            "heartbeat-interval: x",
            1,
            "{}string into Go struct field configYAML.Config.heartbeat-interval of type uint",
        ),
        (
            "heartbeat-interval: -1",
            1,
            "{}number -1 into Go struct field configYAML.Config.heartbeat-interval of type uint",
        ),
        ("pre-vote: 1", 1, "{}number into Go struct field configYAML.Config.pre-vote of type bool"),
        (
            "grpc-keepalive-min-time: 5s",
            1,
            "{}string into Go struct field configYAML.Config.grpc-keepalive-min-time of type time.Duration",
        ),
        (
            "log-outputs: stderr",
            1,
            "{}string into Go struct field configYAML.Config.log-outputs of type []string",
        ),
        (
            "log-outputs: [1]",
            1,
            "{}number into Go struct field configYAML.Config.log-outputs of type string",
        ),
        (
            "listen-peer-urls: [a]",
            1,
            "{}array into Go struct field configYAML.configJSON.listen-peer-urls of type string",
        ),
        (
            "client-transport-security: x",
            1,
            "{}string into Go struct field configYAML.configJSON.client-transport-security of type embed.securityConfig",
        ),
        (
            "client-transport-security: {client-cert-auth: 3}",
            1,
            "{}number into Go struct field securityConfig.configJSON.client-transport-security.client-cert-auth of type bool",
        ),
        (
            "socket-options: {reuse-port: 1}",
            1,
            "{}number into Go struct field SocketOpts.Config.socket-options.reuse-port of type bool",
        ),
        (
            "max-concurrent-streams: 4294967296",
            1,
            "{}number 4294967296 into Go struct field configYAML.Config.max-concurrent-streams of type uint32",
        ),
        (
            "quota-backend-bytes: 99999999999999999999",
            1,
            "{}number 100000000000000000000 into Go struct field configYAML.Config.quota-backend-bytes of type int64",
        ),
        (
            "discovery-config: {client: {auth: 3}}",
            1,
            "{}number into Go struct field ConfigSpec.Config.discovery-config.client.auth of type clientv3.AuthConfig",
        ),
        ("[]", 1, "{}array into Go value of type embed.configYAML"),
        ("foo", 1, "{}string into Go value of type embed.configYAML"),
        (
            "a: b: c",
            1,
            "error converting YAML to JSON: yaml: mapping values are not allowed in this context",
        ),
        (
            "a:\n  - b\n c: d\n",
            1,
            "error converting YAML to JSON: yaml: line 2: did not find expected key",
        ),
        ("peer-transport-security:", 1, "invalid peer-transport-security"),
        (
            "listen-peer-urls: foo",
            1,
            "unexpected error setting up listen-peer-urls: URL scheme must be http, https, unix, or unixs: foo",
        ),
        (
            "advertise-client-urls: foo",
            1,
            "unexpected error setting up advertise-peer-urls: URL scheme must be http, https, unix, or unixs: foo",
        ),
        (
            "cors: foo",
            2,
            "panic: new UniqueURLs should never fail: URL scheme must be http, https, unix, or unixs: foo",
        ),
        ("feature-gates: Foo=true", 1, "unrecognized feature gate: Foo"),
        ("initial-cluster-state: foo", 1, "unexpected clusterState \"foo\""),
        ("log-level: bad", 2, "panic: unrecognized level: \"bad\""),
        (
            "election-timeout: 0\nelection-timeout: 1",
            1,
            "--election-timeout[1ms] should be at least as 5 times as --heartbeat-interval[100ms]",
        ),
        ("Election-Timeout: 0", 1, "--election-timeout must be >0 (set to 0ms)"),
        (
            "client-transport-security: {cert-file: x}",
            1,
            "--cert-file is not supported by this version of Althing; serve without TLS, or put a TLS-terminating proxy in front",
        ),
    ] {
        std::fs::write(&path, text).unwrap();
        let file = format!("--config-file={}", path.display());
        let error = error.replace("{}", UNMARSHAL);
        assert_eq!(told(outcome(&[&file], &[])), (code, error), "{text}");
    }
}
