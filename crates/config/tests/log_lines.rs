//! Lines as they are written.

use std::time::Duration;

use config::log::{Format, Level, LogConfig, Logger, Value};
use config::{debug, error, fatal, info, warn};

#[test]
fn a_line_has_zap_s_keys_and_the_fields_in_order() {
    let (log, lines) = Logger::capture();
    let from = line!();
    info!(log, "ready to serve client requests");
    warn!(log, "apply request took too long",
        "took" => Duration::from_micros(2830), "expected-duration" => Duration::from_secs(7),
        "prefix" => "read-only range ", "size" => 77824u64, "negative" => -1i64, "on" => true);
    error!(log, "a \"quoted\"\tthing\u{1}", "error" => %std::io::Error::other("no\nspace"));
    let raft = log.named("raft");
    fatal!(raft, "elected", "id" => Value::hex(0x8e9e05c52164694d), "urls" => vec!["a".to_string(), "b".to_string()]);
    // The epoch, in whatever zone this runs.
    let stamp = {
        let first = &lines.take();
        assert_eq!(first.len(), 4);
        let stamp = first[0].split('"').nth(7).unwrap().to_string();
        let at = |n: u32| format!("tests/log_lines.rs:{}", from + n);
        assert_eq!(
            *first,
            [
                format!(
                    r#"{{"level":"info","ts":"{stamp}","caller":"{}","msg":"ready to serve client requests"}}"#,
                    at(1)
                ),
                format!(
                    r#"{{"level":"warn","ts":"{stamp}","caller":"{}","msg":"apply request took too long","took":"2.83ms","expected-duration":"7s","prefix":"read-only range ","size":77824,"negative":-1,"on":true}}"#,
                    at(2)
                ),
                format!(
                    r#"{{"level":"error","ts":"{stamp}","caller":"{}","msg":"a \"quoted\"\tthing\u0001","error":"no\nspace"}}"#,
                    at(5)
                ),
                format!(
                    r#"{{"level":"fatal","ts":"{stamp}","logger":"raft","caller":"{}","msg":"elected","id":"8e9e05c52164694d","urls":["a","b"]}}"#,
                    at(7)
                ),
            ]
        );
        stamp
    };
    assert!(stamp.starts_with("19") && stamp.contains(":00.000000"), "{stamp}");
}

#[test]
fn a_level_that_is_off_costs_nothing() {
    let log = Logger::discard();
    let mut was_evaluated = false;
    debug!(log, "hidden", "value" => { was_evaluated = true; 1u64 });
    assert!(!was_evaluated);
}

#[test]
fn a_file_is_appended_to_and_a_level_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("etcd.log");
    std::fs::write(&path, "before\n").unwrap();
    let outputs = vec![path.display().to_string()];
    let config = LogConfig { level: Level::Warn, format: Format::Console, outputs, rotation: None };
    let log = Logger::open(&config).unwrap();
    info!(log, "not this");
    warn!(log, "this", "list" => vec!["a".to_string(), "b".to_string()], "n" => 1u64);
    let text = std::fs::read_to_string(&path).unwrap();
    let (first, line) = text.split_once('\n').unwrap();
    assert_eq!(first, "before");
    let columns: Vec<&str> = line.trim_end().split('\t').collect();
    assert_eq!(columns[1], "warn");
    assert!(columns[2].starts_with("tests/log_lines.rs:"));
    assert_eq!(columns[3..], ["this", "{\"list\": [\"a\", \"b\"], \"n\": 1}"]);
}

#[test]
fn a_flood_of_one_message_is_thinned() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("etcd.log");
    let outputs = vec![path.display().to_string()];
    let log = Logger::open(&LogConfig { outputs, ..LogConfig::default() }).unwrap();
    for n in 0..1000u64 {
        info!(log, "again", "n" => n);
    }
    let lines = std::fs::read_to_string(&path).unwrap().lines().count();
    // A second may have ended in between, and then a hundred more get through.
    assert!(lines < 1000, "{lines} lines");
}

#[test]
fn dev_null_among_the_outputs_silences_all() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("etcd.log");
    let outputs = vec![path.display().to_string(), "/dev/null".into()];
    let log = Logger::open(&LogConfig { outputs, ..LogConfig::default() }).unwrap();
    info!(log, "lost");
    assert!(!path.exists());
}

#[test]
fn an_output_that_cannot_be_opened_is_named() {
    let open = |output: &str| {
        let outputs = vec![output.to_string()];
        Logger::open(&LogConfig { outputs, ..LogConfig::default() }).map(|_| ())
    };
    assert_eq!(
        open("/nosuch/x"),
        Err("open sink \"/nosuch/x\": open /nosuch/x: no such file or directory".into())
    );
    if !std::path::Path::new("/run/systemd/journal/socket").exists() {
        assert_eq!(
            open("systemd/journal"),
            Err("can't find journal (dial unixgram /run/systemd/journal/socket: connect: no such file or directory)".into())
        );
    }
}
