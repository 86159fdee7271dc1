//! A database that a real etcd wrote is read, and what is written here passes its tools.

mod common;

use bolt::{BUCKETS, Database};
use bytes::Bytes;
use common::{Tables, empty, row_key, write};
use sha2::{Digest, Sha256};
use std::path::Path;
use std::process::Command;

fn fixture() -> Vec<u8> {
    std::fs::read("tests/fixtures/database.snapshot").expect("the fixture is there")
}

fn read(file: Vec<u8>) -> Tables {
    let database = Database::open(file).unwrap();
    let rows = |name: &&str| database.rows(*name).unwrap().unwrap().collect::<Result<_, _>>();
    BUCKETS.iter().map(|name| (name.to_string(), rows(name).unwrap())).collect()
}

#[test]
fn a_database_of_etcd_is_read() {
    let file = fixture();
    let database = Database::open(file.clone()).unwrap();
    assert_eq!(database.bytes() + 32, file.len() as u64, "the checksum stands behind the pages");
    assert_eq!(database.buckets().unwrap(), BUCKETS);
    let tables = read(file);
    let rows = &tables["key"];
    assert!(!rows.contains_key(&row_key(4, 0, false)), "compacted");
    assert!(rows[&row_key(5, 0, false)].ends_with(b"value 4"));
    assert_eq!(rows[&row_key(8, 0, true)], &b"\x0a\x01a"[..], "a tombstone");
    assert!(rows[&row_key(9, 0, false)].len() > 10_000, "a row over several pages");
    assert_eq!(rows.len(), 110 - 4);
    assert_eq!(tables["meta"][&b"storageVersion"[..]], "3.6.0");
    assert_eq!(tables["lease"].len(), 1);
    assert!(tables["authUsers"].contains_key(&b"alice"[..]));
    assert_eq!(database.rows("nothing").unwrap().map(|_| ()), None);
}

#[test]
fn a_database_of_etcd_written_anew_holds_the_same() {
    let tables = read(fixture());
    assert_eq!(read(write(&tables)), tables);
}

#[test]
#[ignore = "needs a real etcdutl: ETCDUTL=path cargo test -p bolt -- --ignored"]
fn etcdutl_accepts_what_is_written() {
    let etcdutl = std::env::var("ETCDUTL").expect("ETCDUTL names the tool");
    let dir = tempfile::tempdir().unwrap();
    let status = |name: &str, file: &[u8]| {
        let path = dir.path().join(name);
        std::fs::write(&path, file).unwrap();
        run(&etcdutl, &["snapshot", "status", "-w", "json"], &path)
    };
    // The tool's hash covers every bucket, key and value.
    let ours = with_checksum(write(&read(fixture())));
    let hash = |status: &str| status.split(',').next().unwrap().to_string();
    assert_eq!(hash(&status("ours", &ours)), hash(&status("theirs", &fixture())));

    for rows in [0_i64, 1, 100, 3000, 300_000] {
        let mut tables = read(fixture());
        if rows == 0 {
            tables = empty();
        }
        for main in 1000..1000 + rows {
            let mut kv = vec![0x0a, 8];
            kv.extend_from_slice(&main.to_be_bytes());
            kv.extend_from_slice(&[0x2a, 20]);
            kv.extend_from_slice(&[b'v'; 20]);
            tables.get_mut("key").unwrap().insert(row_key(main, 0, false), Bytes::from(kv));
        }
        let file = with_checksum(write(&tables));
        println!("{rows} rows: {}", status("many", &file));
        let data_dir = dir.path().join(format!("restored {rows}"));
        let data_dir = data_dir.to_str().unwrap();
        if rows > 0 {
            let restore = ["snapshot", "restore", "--data-dir", data_dir];
            run(&etcdutl, &restore, &dir.path().join("many"));
        }
    }
}

fn with_checksum(mut file: Vec<u8>) -> Vec<u8> {
    let sum = Sha256::digest(&file);
    file.extend_from_slice(&sum);
    file
}

fn run(tool: &str, args: &[&str], path: &Path) -> String {
    let output = Command::new(tool).args(args).arg(path).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
