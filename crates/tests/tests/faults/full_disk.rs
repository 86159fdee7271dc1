//! A disk that is really full: a small file system in memory, in a mount namespace of its own, so
//! that nobody else sees it and it goes away with the process that holds it.

use crate::client::*;
use crate::process::Process;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use testkit::Grpc;

/// Two log segments, the engine's reserve and its first segment, and a little more.
const DISK_MB: u32 = 330;

/// A small file system.
struct SmallDisk {
    holder: Child,
    path: PathBuf,
    _mount_point: tempfile::TempDir,
}

impl SmallDisk {
    /// `None` where the system allows no mounts.
    fn mount() -> Option<SmallDisk> {
        let mount_point = tempfile::tempdir().expect("a temporary directory can be made");
        let at = mount_point.path().display();
        let script = format!("mount -t tmpfs -o size={DISK_MB}m tmpfs {at} && exec sleep 600");
        let holder = Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", &script])
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        // What its holder sees under its root is seen through /proc by whoever may look.
        let path = PathBuf::from(format!("/proc/{}/root{at}", holder.id()));
        let mut disk = SmallDisk { holder, path, _mount_point: mount_point };
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(10) {
            let mounts = format!("/proc/{}/mountinfo", disk.holder.id());
            let mounts = std::fs::read_to_string(mounts).unwrap_or_default();
            if mounts.contains(&format!(" {} ", disk._mount_point.path().display())) {
                return Some(disk);
            }
            if !matches!(disk.holder.try_wait(), Ok(None)) {
                break;
            }
            sleep(Duration::from_millis(10));
        }
        eprintln!("skipped: this system lets nobody mount a small file system");
        None
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

const FLAGS: [&str; 4] = [
    "--snapshot-count=10",
    "--snapshot-catchup-entries=1",
    "--max-wals=1",
    "--backend-batch-interval=10ms",
];

#[test]
fn a_full_disk_refuses_writes_and_recovers() {
    let Some(disk) = SmallDisk::mount() else { return };
    let data = disk.path.join("data");
    let mut server = Process::start(&data, &FLAGS);
    let mut grpc = Grpc::connect(&server.endpoint);
    let mut written = 0;
    let refused = loop {
        match put(&mut grpc, &format!("key{written}"), value(written)) {
            Ok(_) => written += 1,
            Err(status) => break status,
        }
        assert!(written < 1000, "a disk of {DISK_MB} MB takes more than a gigabyte");
    };
    assert_eq!(refused, no_space());
    assert_eq!(alarms(&mut grpc).len(), 1);

    // Also after a crash on the full disk all that was acknowledged is there, and is served.
    server.kill();
    let server = Process::start(&data, &FLAGS);
    let mut grpc = Grpc::connect(&server.endpoint);
    for i in 0..written {
        let found = get(&mut grpc, &format!("key{i}")).expect("reads go on");
        assert!(found.is_some_and(|found| found == value(i)), "key{i} is lost");
    }
    assert_eq!(put(&mut grpc, "small", "x"), Err(no_space()));
    recover(&mut grpc, written);
}

#[test]
fn a_disk_that_others_fill_refuses_writes_and_recovers() {
    let Some(disk) = SmallDisk::mount() else { return };
    let server = Process::start(&disk.path.join("data"), &FLAGS);
    let mut grpc = Grpc::connect(&server.endpoint);
    put(&mut grpc, "before", "x").expect("writes are served");
    let filler = disk.path.join("filler");
    let mut file = std::fs::File::create(&filler).expect("a file can be made");
    while file.write_all(&[0; 64 << 10]).is_ok() {}
    while file.write_all(&[0; 512]).is_ok() {}
    let mut written = 0;
    let refused = loop {
        match put(&mut grpc, &format!("key{written}"), value(written)) {
            Ok(_) => written += 1,
            Err(status) => break status,
        }
        assert!(written < 1000, "a full disk takes a gigabyte");
    };
    assert_eq!(refused, no_space());
    assert!(get(&mut grpc, "before").expect("reads go on").is_some());
    drop(file);
    std::fs::remove_file(&filler).expect("the file can be removed");
    recover(&mut grpc, written);
}

/// A megabyte that is another for each key.
fn value(i: u32) -> Vec<u8> {
    let mut value = vec![b'x'; 1_000_000];
    value[..4].copy_from_slice(&i.to_be_bytes());
    value
}

/// What an operator does about it.
fn recover(grpc: &mut Grpc, written: u32) {
    let mut revision = 0;
    for i in 0..written {
        revision = delete(grpc, &format!("key{i}")).expect("deletes go on");
    }
    compact(grpc, revision);
    defragment(grpc);
    // The log notices with the next write that there is room again.
    let began = Instant::now();
    loop {
        disarm(grpc);
        match put(grpc, "after", "x") {
            Ok(_) => break,
            Err(refused) => assert_eq!(refused, no_space()),
        }
        assert!(began.elapsed() < Duration::from_secs(20), "writes are refused for ever");
        sleep(Duration::from_millis(50));
    }
    for i in 0..20 {
        put(grpc, &format!("key{i}"), value(i)).expect("there is room");
    }
    assert!(alarms(grpc).is_empty());
}
