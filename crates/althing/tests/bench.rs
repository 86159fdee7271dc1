//! `althing bench` against a server of our own: every command runs, counts what it did, and says so.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use testkit::Server;

const ALTHING: &str = env!("CARGO_BIN_EXE_althing");

fn bench(args: &str) -> Output {
    let args = args.split_whitespace();
    Command::new(ALTHING).arg("bench").args(args).output().expect("the binary runs")
}

/// Runs a command with JSON output that must succeed.
fn figures(server: &Server, command: &str) -> Value {
    let (endpoint, pid) = (server.endpoint(), server.pid());
    let out = bench(&format!("{command} --endpoints={endpoint} --pid={pid} --output=json"));
    let (stdout, stderr) =
        (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{command}: {stdout}{stderr}");
    serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{command}: {error}: {stdout}"))
}

#[test]
fn every_load_counts_what_it_did() {
    let server = Server::start(Path::new(ALTHING), &[]);

    let put = figures(
        &server,
        "put --sequential --key-space=300 --total=300 --clients=8 --connections=2 --threads=2",
    );
    assert_eq!((&put["answered"], &put["errors"]), (&300.into(), &0.into()), "{put}");
    assert!(put["server_memory"]["rss"].as_u64() > Some(0), "{put}");

    // All keys are there: every answer holds a value of 256 bytes.
    let range = figures(&server, "range --key-space=300 --total=200 --clients=8 --connections=3");
    assert_eq!(range["answered"], 200, "{range}");
    assert!(range["answer_size"].as_f64() > Some(256.0), "{range}");
    let few = figures(&server, "range --key-space=200 --total=50 --limit=10 --consistency=s");
    assert!(few["answer_size"].as_f64() > Some(2560.0), "{few}");

    let mixed = figures(&server, "mixed --total=200 --clients=8 --connections=8");
    assert_eq!(mixed["answered"], 200, "{mixed}");

    for watch in [
        "watch --watchers=20 --total=15",
        "watch --watchers=20 --streams=3 --prefix --clients=4 --total=15",
    ] {
        let watch = figures(&server, watch);
        assert_eq!((&watch["puts"], &watch["events"]), (&15.into(), &300.into()), "{watch}");
    }

    let stall = figures(&server, "stall --keys=200 --revisions=3 --settle=0.1");
    for phase in ["quiet", "compaction", "defragmentation"] {
        assert!(stall[phase]["requests"].as_u64() > Some(0), "{stall}");
    }
}

#[test]
fn a_run_for_a_time_ends_by_itself_after_a_warm_up() {
    let server = Server::start(Path::new(ALTHING), &[]);
    let put = figures(&server, "put --seconds=0.2 --warmup=0.1 --clients=4");
    assert!(put["answered"].as_u64() > Some(0), "{put}");
}

#[test]
fn requests_that_fail_are_counted_and_change_the_exit_code() {
    let server = Server::start(Path::new(ALTHING), &["--max-request-bytes=1000"]);
    let endpoint = server.endpoint();
    let out = bench(&format!("put --val-size=3000 --total=5 --endpoints={endpoint}"));
    let stdout = String::from_utf8_lossy(&out.stdout);
    assert_eq!(out.status.code(), Some(1), "{stdout}");
    assert!(stdout.contains("5, the first one: code 3"), "{stdout}");
}

#[test]
fn mistakes_are_explained() {
    let complaint = |args: &str| {
        let out = bench(args);
        (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    let (code, text) = complaint("put --endpoints=127.0.0.1:1");
    assert_eq!(code, Some(1));
    assert!(text.contains("cannot connect to 127.0.0.1:1"), "{text}");
    let (code, text) = complaint("put --cilents=3");
    assert_eq!(code, Some(2));
    assert!(text.contains("unknown flag --cilents; see althing bench put --help"), "{text}");
    let (code, text) = complaint("compare --etcd=/nowhere/etcd");
    assert_eq!(code, Some(1));
    assert!(text.contains("scripts/install-etcd.sh"), "{text}");
    let (code, text) = complaint("fly");
    assert_eq!(code, Some(2));
    assert!(text.contains("unknown command \"fly\""), "{text}");
    let help = bench("watch --help");
    assert!(help.status.success());
    assert!(String::from_utf8_lossy(&help.stdout).contains("--watchers=N"));
}
