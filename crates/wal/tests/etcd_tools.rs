//! A real etcd reads what we wrote. Needs the programs `etcd`, `etcdctl` and `dump-logs` of etcd 3.6 in
//! the directory that the variable `ETCD_DIR` names; without it there is nothing to ask.

use bytes::Bytes;
use disk::RealDisk;
use raftpb::{ConfState, Entry, HardState, Snapshot};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use wal::{Metadata, Options, SnapshotMark, Wal, snap};

fn tool(name: &str) -> Option<PathBuf> {
    let dir = std::env::var_os("ETCD_DIR");
    if dir.is_none() {
        println!("ETCD_DIR is not set: no etcd to ask");
    }
    Some(Path::new(&dir?).join(name))
}

#[test]
fn etcds_dump_tool_reads_our_log() {
    let Some(dump) = tool("dump-logs") else { return };
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("member/wal");
    let snaps = root.path().join("member/snap");
    std::fs::create_dir_all(&snaps).unwrap();
    let disk = Arc::new(RealDisk::default());
    let metadata = Metadata { node_id: 1, cluster_id: 2, extra: Bytes::from_static(&[0x58, 7]) };
    let mut wal =
        Wal::create(disk.clone(), &dir, &metadata, Options { segment_bytes: 2048 }).unwrap();
    for index in 1..=100 {
        let data = put("key", &format!("value {index}"));
        let entry = Entry { term: 1, index, data, ..Entry::default() };
        wal.append(Some(HardState { term: 1, vote: 1, commit: index - 1 }), &[entry]).unwrap();
    }
    let conf_state = ConfState { voters: vec![1], ..ConfState::default() };
    let data = Bytes::from_static(b"{}");
    let snapshot = Snapshot { data, conf_state: conf_state.clone(), index: 50, term: 1 };
    snap::write(&*disk, &snaps, &snapshot).unwrap();
    let mark = SnapshotMark { index: 50, term: 1, conf_state: Some(conf_state) };
    wal.save_snapshot(&mark).unwrap();
    wal.append(None, &[Entry { term: 2, index: 100, ..Entry::default() }]).unwrap();
    wal.sync().unwrap();
    let segments = std::fs::read_dir(&dir).unwrap().count() - 1;
    assert!(segments > 3, "{segments} segments");

    let out = Command::new(&dump).arg(root.path()).output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success(), "{text}{}", String::from_utf8_lossy(&out.stderr));
    for expected in [
        "nodeID=1 clusterID=2 term=1 commitIndex=99 vote=1",
        "Entry types (Normal,ConfigChange) count is : 50",
        "value 99",
    ] {
        assert!(text.contains(expected), "no {expected:?} in {text}");
    }
    assert!(!text.contains("value 100"), "the entry was replaced: {text}");
}

#[test]
fn etcd_goes_on_with_a_log_that_we_appended_to() {
    let Some(etcd) = tool("etcd") else { return };
    let root = tempfile::tempdir().unwrap();
    let member = Member { etcd, data: root.path().join("data"), ports: [free_port(), free_port()] };
    let mut running = member.start();
    member.ctl(&["put", "theirs", "1"]);

    // While etcd runs, its log is its own.
    let dir = member.data.join("member/wal");
    let disk = Arc::new(RealDisk::default());
    let start = SnapshotMark::default();
    let refused = Wal::open(disk.clone(), &dir, &start, Options::default());
    assert!(matches!(refused, Err(wal::Error::InUse { .. })));
    running.kill();

    let (mut wal, recovered) = Wal::open(disk, &dir, &start, Options::default()).unwrap();
    let last = recovered.entries.last().unwrap();
    let (term, index) = (last.term, last.index + 1);
    let entry = Entry { term, index, data: put("ours", "2"), ..Entry::default() };
    let state = HardState { commit: index, ..recovered.hard_state };
    wal.append(Some(state), &[entry]).unwrap();
    wal.sync().unwrap();
    drop(wal);

    let _running = member.start();
    assert_eq!(member.ctl(&["get", "", "--prefix", "--print-value-only"]), "2\n1\n");
}

/// A put as it stands in the log.
fn put(key: &str, value: &str) -> Bytes {
    let mut put = vec![0x0a, key.len() as u8];
    put.extend_from_slice(key.as_bytes());
    put.extend_from_slice(&[0x12, value.len() as u8]);
    put.extend_from_slice(value.as_bytes());
    let mut request = vec![0x22, put.len() as u8];
    request.extend(put);
    // The request's id, without which etcd panics.
    request.extend_from_slice(&[0xa2, 0x06, 0x02, 0x08, 0x01]);
    request.into()
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

struct Member {
    etcd: PathBuf,
    data: PathBuf,
    ports: [u16; 2],
}

struct Running(Child);

impl Running {
    fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Member {
    fn url(&self, port: usize) -> String {
        format!("http://127.0.0.1:{}", self.ports[port])
    }

    fn start(&self) -> Running {
        let (client, peer) = (self.url(0), self.url(1));
        let mut command = Command::new(&self.etcd);
        command.arg("--data-dir").arg(&self.data);
        command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        command.args(["--initial-cluster", &format!("default={peer}")]);
        let child = command.stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        let mut running = Running(child);
        let began = Instant::now();
        while !self.ctl_command(&["endpoint", "health"]).output().unwrap().status.success() {
            assert!(running.0.try_wait().unwrap().is_none(), "etcd refused to start");
            assert!(began.elapsed() < Duration::from_secs(60), "etcd does not get healthy");
        }
        running
    }

    fn ctl(&self, args: &[&str]) -> String {
        let out = self.ctl_command(args).output().unwrap();
        assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    }

    fn ctl_command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.etcd.with_file_name("etcdctl"));
        command.arg("--endpoints").arg(self.url(0)).args(args);
        command
    }
}
