use crate::stage::{Stage, same_on_both};
use serde_json::Value;
use std::thread::sleep;
use std::time::{Duration, Instant};

#[test]
fn endpoint_status() {
    same_on_both(&["--quota-backend-bytes=100000000"], |ctl| {
        ctl.run("put a b");
        for format in ["simple", "table", "fields"] {
            ctl.run_changed(&format!("endpoint status -w {format}"), "", without_sizes);
        }
        let shown = ctl.output("endpoint status -w json --cluster", "").stdout;
        let mut shown: Value = serde_json::from_slice(&shown).expect("the status is JSON");
        for size in ["dbSize", "dbSizeInUse"] {
            let bytes = shown[0]["Status"][size].take();
            assert!(bytes.as_u64().is_some_and(|bytes| bytes > 0), "{size} is {bytes}");
        }
        ctl.write(&shown.to_string());
    });
}

/// Sizes on disk are each server's own; of a table, the blanks differ with them.
fn without_sizes(shown: String) -> String {
    let size = |field: &str| {
        let field = field.trim();
        let bytes = field.strip_suffix(" kB").or(field.strip_suffix(" B"));
        bytes.is_some_and(|n| n.parse::<f64>().is_ok())
            || field.strip_suffix('%').is_some_and(|n| n.parse::<u32>().is_ok())
    };
    let mut lines = Vec::new();
    for line in shown.lines().filter(|line| !line.starts_with('+')) {
        let split = if line.starts_with('|') { '|' } else { ',' };
        let fields = line.split(split).map(|field| if size(field) { "SIZE" } else { field.trim() });
        let line = fields.collect::<Vec<_>>().join(" ; ");
        let line = match line.split_once(" : ") {
            Some((name @ ("\"DBSize\"" | "\"DBSizeInUse\""), _)) => format!("{name} : SIZE"),
            _ => line,
        };
        lines.push(line);
    }
    lines.join("\n")
}

/// A health check says how long it took.
fn without_took(shown: String) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in shown.split_inclusive([' ', '\n', ',', '"']) {
        let duration = word.trim_end_matches([' ', '\n', ',', '"']);
        let number = duration.trim_end_matches(['m', 's', 'µ']);
        let is_duration = number.len() < duration.len() && number.parse::<f64>().is_ok();
        words.push(if is_duration { word.replace(duration, "TOOK") } else { word.to_string() });
    }
    words.concat()
}

#[test]
fn endpoint_health() {
    same_on_both(&[], |ctl| {
        ctl.run_changed("endpoint health", "", without_took);
        ctl.run_changed("endpoint health -w json", "", without_took);
        ctl.run_changed("endpoint health -w fields", "", without_took);
        ctl.run_changed("endpoint health --cluster", "", without_took);
    });
}

#[test]
fn endpoint_hashkv() {
    same_on_both(&[], |ctl| {
        ctl.run("endpoint hashkv");
        ctl.run("endpoint hashkv -w json");
        for i in 0..20 {
            ctl.output(&format!("put key{} value{i}", i % 7), "");
        }
        ctl.run("del key3");
        ctl.run("endpoint hashkv");
        ctl.run("endpoint hashkv --rev=10");
        ctl.run("endpoint hashkv -w json");
        ctl.run("endpoint hashkv -w fields");
        ctl.run("compaction 12 --physical");
        ctl.run("endpoint hashkv --rev=15 -w json");
        ctl.run("endpoint hashkv --rev=12");
        ctl.run("endpoint hashkv --rev=11");
        ctl.run("endpoint hashkv --rev=1000");
    });
}

#[test]
fn alarms_without_any() {
    same_on_both(&[], |ctl| {
        ctl.run("alarm list");
        ctl.run("alarm list -w json");
        ctl.run("alarm disarm");
        ctl.run("alarm disarm -w json");
        ctl.run("alarm list x");
    });
}

#[test]
fn a_store_that_is_full_and_what_to_do_about_it() {
    same_on_both(&["--quota-backend-bytes=3000000"], |ctl| {
        let large = "x".repeat(500_000);
        // How many fit depends on how each server stores them.
        let mut fitted = 0;
        while ctl.output("put filler", &large).status.success() {
            fitted += 1;
            assert!(fitted < 100, "50 MB do not fit into 3 MB");
        }
        ctl.run("put small x");
        ctl.run("alarm list");
        ctl.run_changed("endpoint health", "", without_took);
        ctl.run_changed("endpoint health -w json", "", without_took);
        ctl.run_with("txn", "\nput small x\n\nget small\n\n");
        ctl.run("lease grant 100");
        ctl.run("get small");
        ctl.run("del filler");
        let filled = ctl.output("get filler -w json", "").stdout;
        let filled: Value = serde_json::from_slice(&filled).expect("a range is JSON");
        let revision = &filled["header"]["revision"];
        let compacted = ctl.output(&format!("compaction {revision} --physical"), "");
        assert!(compacted.status.success(), "{compacted:?}");
        ctl.run_changed("defrag", "", without_took);
        ctl.run("put small x");
        ctl.run("alarm disarm");
        ctl.run("alarm list");
        ctl.run("put small x");
        ctl.run("get small");
        ctl.run_changed("endpoint health", "", without_took);
    });
}

#[test]
fn defrag_and_downgrade_and_version() {
    same_on_both(&[], |ctl| {
        ctl.run("put a b");
        ctl.run_changed("defrag", "", without_took);
        ctl.run_changed("defrag --cluster", "", without_took);
        ctl.run("get a");
        for version in ["3.5", "3.5.0", "3.4", "3.6", "3.7", "foo", "3"] {
            ctl.run(&format!("downgrade validate {version}"));
        }
        ctl.run("downgrade validate 3.5 -w json");
        ctl.run("downgrade validate");
        ctl.run("downgrade cancel");
        ctl.run("version");
    });
}

#[test]
fn a_downgrade_is_enabled_and_cancelled() {
    same_on_both(&[], |ctl| {
        ctl.run("downgrade enable 3.5");
        wait_for_version(ctl, "3.5.0");
        ctl.run("downgrade validate 3.4");
        ctl.run("downgrade cancel");
        wait_for_version(ctl, "3.6.0");
        ctl.run("downgrade cancel");
    });
}

/// Both servers come to the version in their own time.
fn wait_for_version(ctl: &mut Stage, version: &str) {
    let wanted =
        format!(r#"{{"etcdserver":"3.6.14","etcdcluster":"{version}","storage":"{version}"}}"#);
    let began = Instant::now();
    loop {
        let page = testkit::http(
            &ctl.server.endpoint(),
            "GET",
            "/version",
            &[],
            b"",
            Duration::from_secs(5),
        )
        .text();
        if page == wanted {
            return ctl.write(&page);
        }
        assert!(began.elapsed() < Duration::from_secs(60), "it stays at {page}");
        sleep(Duration::from_millis(100));
    }
}
