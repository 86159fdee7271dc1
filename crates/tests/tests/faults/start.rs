use crate::client::{assert_serves, get, put};
use crate::process::{Process, free_address};
use std::os::unix::process::ExitStatusExt;
use testkit::Grpc;

#[test]
fn a_data_directory_in_use_is_refused() {
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let data = dir.path().join("data");
    let first = Process::start(&data, &[]);
    // The log of the second one must not replace that of the first.
    let alias = dir.path().join("alias");
    std::os::unix::fs::symlink(&data, &alias).expect("links can be made");
    let why = Process::refuses(&alias, &[]);
    assert!(why.contains("another process is using this data directory"), "{why}");
    assert_serves(&first.endpoint);
}

#[test]
fn a_data_directory_of_etcd_is_refused() {
    let Some(etcd) = testkit::etcd_or_skip("etcd") else { return };
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let data = dir.path().join("data");
    let client = free_address();
    let flags = [
        format!("--listen-client-urls=http://{client}"),
        format!("--advertise-client-urls=http://{client}"),
        format!("--listen-peer-urls=http://{}", free_address()),
    ];
    let mut theirs = Process::spawn_with(&etcd, &data, &flags);
    theirs.wait_for_log("ready to serve client requests");
    theirs.kill();
    let why = Process::refuses(&data, &[]);
    assert!(why.contains("this data directory was written by etcd"), "{why}");
}

#[test]
fn a_port_in_use_is_named() {
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it is bound").to_string();
    for flag in ["client", "peer", "metrics", "client-http"] {
        let taken = format!("--listen-{flag}-urls=http://{address}");
        let why = Process::refuses(&dir.path().join("data"), &[&taken]);
        assert_eq!(why, format!("listen tcp {address}: bind: address already in use"));
    }
}

#[test]
fn signals_end_it_as_they_end_etcd() {
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let data = dir.path().join("data");
    for (signal, name) in [(libc::SIGTERM, "terminated"), (libc::SIGINT, "interrupt")] {
        let mut server = Process::start(&data, &[]);
        server.signal(libc::SIGUSR1);
        assert_serves(&server.endpoint);
        server.signal(signal);
        let status = server.wait();
        // The shell shows 128 + the signal: 143 and 130.
        assert_eq!(status.signal(), Some(signal), "{status}");
        assert!(server.log().contains(&format!("\"signal\":\"{name}\"")));
        assert!(server.log().contains("closed etcd server"));
    }
}

#[test]
fn a_log_or_a_store_that_is_missing_is_noticed() {
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let data = dir.path().join("data");
    let flags = ["--snapshot-count=10", "--snapshot-catchup-entries=1", "--max-wals=1"];
    let mut server = Process::start(&data, &flags);
    let mut grpc = Grpc::connect(&server.endpoint);
    for i in 0..50 {
        put(&mut grpc, &format!("key{i}"), "value").expect("writes are served");
    }
    // Told to stop, it leaves nothing in the log that is not in the store too.
    server.signal(libc::SIGTERM);
    server.wait();
    let (wal, store) = (data.join("member/wal"), data.join("member/store"));
    let aside = dir.path().join("aside");
    std::fs::rename(&wal, &aside).expect("the log can be moved");
    let why = Process::refuses(&data, &flags);
    assert!(why.contains("there is a store but no log"), "{why}");
    std::fs::rename(&aside, &wal).expect("the log can be moved back");
    // The log is still whole, so the store can be made again from it.
    std::fs::remove_dir_all(&store).expect("the store can be removed");
    let server = Process::start(&data, &flags);
    let mut grpc = Grpc::connect(&server.endpoint);
    let value = get(&mut grpc, "key49").expect("reads are served");
    assert_eq!(value.as_deref(), Some(&b"value"[..]));
}
