//! The command line and the configuration file.

use config::{Config, Outcome};
use std::path::PathBuf;
use std::sync::LazyLock;

static FILE: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("settings-{}.yml", std::process::id())));

/// The first line is the command line; the rest, if there is any, is the file.
pub fn settings(data: &[u8]) -> bool {
    let text = String::from_utf8_lossy(data);
    let (line, file) = text.split_once('\n').unwrap_or((&text, ""));
    let mut args = vec!["etcd".to_string()];
    // No other file is read: it might be a terminal.
    args.extend(line.split(' ').filter(|arg| !arg.contains("config-file")).map(String::from));
    if !file.is_empty() {
        std::fs::write(&*FILE, file).expect("a writable folder");
        args.push(format!("--config-file={}", FILE.display()));
    }
    let outcome = Config::from_args(&args, std::iter::empty());
    if !file.is_empty() {
        std::fs::remove_file(&*FILE).expect("it was just written");
    }
    let Outcome::Run(config, _) = outcome else { return false };
    let _either_way = (config.initial_cluster(), config.check_listeners(), config.retention());
    config::start_line(&config, false);
    config.remarks();
    true
}
