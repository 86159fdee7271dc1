//! A backup of Althing is a backup of etcd: `etcdutl` reads it, and a real etcd goes on from it.

use crate::stage::same_on_both;
use std::path::Path;
use std::process::Command;
use testkit::Server;

#[test]
fn a_snapshot_restores_in_a_real_etcd() {
    let Some(etcd) = testkit::etcd_or_skip("etcd") else { return };
    let Some(etcdctl) = testkit::etcd_or_skip("etcdctl") else { return };
    let Some(etcdutl) = testkit::etcd_or_skip("etcdutl") else { return };
    let server = Server::start(&testkit::althing(), &[]);
    let run = |program: &Path, words: &[&str]| -> String {
        let output = Command::new(program).args(words).output().expect("the program can be run");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    let ctl = |endpoint: &str, words: &[&str]| -> String {
        run(&etcdctl, &[&["--endpoints", endpoint], words].concat())
    };
    let ours = server.endpoint();
    for i in 0..40 {
        ctl(&ours, &["put", &format!("key{:02}", i % 15), &format!("value {i}")]);
    }
    ctl(&ours, &["del", "key03"]);
    ctl(&ours, &["compaction", "20"]);
    let granted = ctl(&ours, &["lease", "grant", "5000"]);
    let lease = granted.split(' ').nth(1).expect("it says which lease");
    ctl(&ours, &["put", "leased", "x", "--lease", lease]);
    ctl(&ours, &["user", "add", "someone:secret"]);
    ctl(&ours, &["role", "add", "reader"]);
    let revision = 43;

    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let file = dir.path().join("backup.db");
    let file = file.to_str().expect("temporary paths are text");
    let saved = ctl(&ours, &["snapshot", "save", file]);
    assert_eq!(saved, format!("Snapshot saved at {file}\nServer version 3.6.0\n"));

    let status = run(&etcdutl, &["snapshot", "status", file, "-w", "json"]);
    let status: serde_json::Value = serde_json::from_str(&status).expect("the status is JSON");
    assert_eq!(status["revision"], revision);
    assert_eq!(status["version"], "3.6.0");

    let restored = dir.path().join("data");
    let restored = restored.to_str().expect("temporary paths are text");
    let (client, peer) = two_addresses();
    run(
        &etcdutl,
        &[
            "snapshot",
            "restore",
            file,
            "--data-dir",
            restored,
            "--name",
            "member",
            "--initial-cluster",
            &format!("member=http://{peer}"),
            "--initial-advertise-peer-urls",
            &format!("http://{peer}"),
        ],
    );
    let mut theirs = Command::new(&etcd)
        .args(["--name=member", "--data-dir", restored, "--log-level=error"])
        .args(["--listen-client-urls", &format!("http://{client}")])
        .args(["--advertise-client-urls", &format!("http://{client}")])
        .args(["--listen-peer-urls", &format!("http://{peer}")])
        .args(["--initial-advertise-peer-urls", &format!("http://{peer}")])
        .args(["--initial-cluster", &format!("member=http://{peer}")])
        .spawn()
        .expect("etcd can be started");
    let shown = std::panic::catch_unwind(|| {
        let questions: [&[&str]; 6] = [
            &["--command-timeout=30s", "get", "", "--prefix", "-w", "json"],
            &["get", "", "--prefix", "--rev=25", "-w", "json"],
            &["lease", "timetolive", lease, "--keys"],
            &["user", "list"],
            &["role", "list"],
            &["endpoint", "hashkv", "--rev=43", "-w", "json"],
        ];
        let answers = |endpoint: &str| questions.map(|words| ctl(endpoint, words));
        (answers(&ours), answers(&client))
    });
    theirs.kill().expect("our child can be killed");
    theirs.wait().expect("our child can be waited for");
    let (ours, theirs) = shown.expect("both servers answer");
    for (i, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
        assert_eq!(without_header(ours), without_header(theirs), "question {i}");
    }
}

/// The restored cluster has ids of its own, and seconds pass.
fn without_header(shown: &str) -> String {
    let shown = match shown.split_once("remaining(") {
        Some((before, after)) => {
            format!("{before}{}", after.split_once(')').expect("a bracket closes").1)
        }
        None => shown.to_string(),
    };
    match serde_json::from_str::<serde_json::Value>(&shown) {
        Ok(mut json) if json.is_array() => json[0]["HashKV"]["hash"].take().to_string(),
        Ok(mut json) => {
            json["header"].take();
            json.to_string()
        }
        Err(_) => shown,
    }
}

fn two_addresses() -> (String, String) {
    (testkit::free_address(), testkit::free_address())
}

#[test]
fn what_snapshot_save_says() {
    same_on_both(&[], |ctl| {
        ctl.run("put a b");
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        let path = dir.path().to_str().expect("temporary paths are text").to_string();
        ctl.name(&path, "DIR");
        ctl.run_changed(&format!("snapshot save {path}/x.db"), "", |shown| {
            // Each server's database has a size of its own.
            let cut = |line: &str| line.split(" size=").next().unwrap_or(line).to_string();
            shown.lines().map(cut).collect::<Vec<_>>().join("\n")
        });
        ctl.run(&format!("snapshot save {path}/missing/x.db"));
        ctl.run("snapshot save");
    });
}
