//! Damage on the disk is noticed at the start, and named with file and offset. What a crash leaves
//! at the very end of the log is cut off, and nothing else.

use crate::client::{get, put};
use crate::process::Process;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use testkit::Grpc;

/// A directory with some keys in it, left by a server that was killed.
fn some_data(dir: &Path) -> PathBuf {
    let data = dir.join("data");
    let mut server = Process::start(&data, &["--backend-batch-interval=1ms"]);
    let mut grpc = Grpc::connect(&server.endpoint);
    for i in 0..20 {
        put(&mut grpc, &format!("key{i:02}"), format!("value{i}")).expect("writes are served");
    }
    // Told to stop, it has all in the engine's segment too.
    server.signal(libc::SIGTERM);
    server.wait();
    data
}

fn first_file(dir: &Path, extension: &str) -> PathBuf {
    let entries = std::fs::read_dir(dir).expect("the directory is there");
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.expect("it can be listed").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == extension));
    paths.sort();
    paths.into_iter().next().expect("there is such a file")
}

fn find(path: &Path, text: &[u8]) -> u64 {
    let content = std::fs::read(path).expect("the file can be read");
    let at = content.windows(text.len()).position(|window| window == text);
    at.expect("the text is in the file") as u64
}

fn flip(path: &Path, offset: u64) {
    let file = OpenOptions::new().read(true).write(true).open(path).expect("it can be opened");
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).expect("the byte is there");
    file.write_all_at(&[byte[0] ^ 0x20], offset).expect("it can be written");
}

/// The offset that a message names, after `at byte`.
fn offset_in(why: &str) -> u64 {
    let after = why.split("at byte ").nth(1).expect("it says where");
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().expect("an offset is a number")
}

#[test]
fn a_damaged_log_is_refused() {
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let data = some_data(dir.path());
    let wal = first_file(&data.join("member/wal"), "wal");
    let damaged = find(&wal, b"value7");
    flip(&wal, damaged);
    let why = Process::refuses(&data, &[]);
    assert!(why.starts_with(&format!("{}: ", wal.display())), "{why}");
    assert!(why.contains("fails its checksum"), "{why}");
    let named = offset_in(&why);
    assert!(named < damaged && damaged - named < 200, "{damaged} in {why}");
    // Nothing was changed by the attempt: with the byte put right it serves.
    flip(&wal, damaged);
    let server = Process::start(&data, &[]);
    let value = get(&mut Grpc::connect(&server.endpoint), "key19").expect("reads are served");
    assert_eq!(value.as_deref(), Some(&b"value19"[..]));
}

#[test]
fn a_damaged_segment_of_the_engine_is_refused() {
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let data = some_data(dir.path());
    let segment = first_file(&data.join("member/store"), "seg");
    let damaged = find(&segment, b"value7");
    flip(&segment, damaged);
    let why = Process::refuses(&data, &[]);
    assert!(why.starts_with(&format!("{}: ", segment.display())), "{why}");
    assert!(why.contains("is damaged"), "{why}");
    let named = offset_in(&why);
    assert!(named < damaged && damaged - named < 200, "{damaged} in {why}");
    flip(&segment, damaged);
    Process::start(&data, &[]);
}

#[test]
fn a_torn_end_of_the_log_is_cut_off() {
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let data = dir.path().join("data");
    let mut server = Process::start(&data, &["--backend-batch-interval=1h"]);
    let mut grpc = Grpc::connect(&server.endpoint);
    put(&mut grpc, "first", "x").expect("writes are served");
    put(&mut grpc, "last", vec![b'y'; 5000]).expect("writes are served");
    server.kill();
    // A crash of the machine in the midst of the last write: from some sector on it never came.
    let wal = first_file(&data.join("member/wal"), "wal");
    let torn = find(&wal, &[b'y'; 5000]).next_multiple_of(512) + 512;
    let file = OpenOptions::new().write(true).open(&wal).expect("it can be opened");
    file.write_all_at(&vec![0; 64 << 10], torn).expect("it can be written");
    let server = Process::start(&data, &[]);
    assert!(server.log().contains("cut a torn write off the end of the log"));
    let mut grpc = Grpc::connect(&server.endpoint);
    let first = get(&mut grpc, "first").expect("reads are served");
    assert_eq!(first.as_deref(), Some(&b"x"[..]));
    assert_eq!(get(&mut grpc, "last").expect("reads are served"), None);
    put(&mut grpc, "next", "z").expect("writes are served");
}
