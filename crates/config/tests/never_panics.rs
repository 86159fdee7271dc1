//! Whatever is on the command line, in the environment or in the file: an answer, never a panic.
//!
//! `CONFIG_SEED` replays a failure, `CONFIG_ROUNDS` looks harder.

use config::{Config, Outcome};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

const VALUES: &[&str] = &[
    "",
    "0",
    "-1",
    "1",
    "true",
    "x",
    "é",
    "0x",
    "0é",
    "5s",
    "-5s",
    ".5s",
    "1e400",
    "*",
    ",",
    "=",
    "a=b",
    "http://1.2.3.4:1",
    "http://[::1]:2",
    "http://[",
    "http://%",
    "http://%e",
    "unix:x",
    ":",
    "#",
    "default=http://localhost:2380",
    "AllAlpha=true",
    "simple",
    "jwt,",
    "99999999999999999999",
    "stderr",
    "{\"maxsize\":1}",
    "[1]",
    "revision",
    "TLS1.3",
    "\u{1}",
    "\u{7f}",
];

fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn names() -> Vec<String> {
    let help = Config::from_args(&["etcd".into(), "--help".into()], std::iter::empty());
    let Outcome::Print { stdout, .. } = help else { panic!("help is printed") };
    let lines = stdout.lines().filter_map(|line| line.strip_prefix("  --"));
    lines.filter_map(|line| line.split(' ').next()).map(String::from).collect()
}

#[test]
fn any_settings_get_an_answer() {
    let seed = variable("CONFIG_SEED", rand::random());
    println!("CONFIG_SEED={seed}");
    let mut rng = StdRng::seed_from_u64(seed);
    let names: Vec<String> = names().into_iter().filter(|name| name != "config-file").collect();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("etcd.yml");
    let mut starts = 0;
    for _ in 0..variable("CONFIG_ROUNDS", 500) {
        let mut args = vec!["etcd".to_string()];
        let mut env = Vec::new();
        let mut file = String::new();
        for _ in 0..rng.random_range(0..4) {
            let name = names.choose(&mut rng).unwrap();
            let value = VALUES.choose(&mut rng).unwrap();
            match rng.random_range(0..3) {
                0 => args.push(format!("--{name}={value}")),
                1 => {
                    let name = name.to_uppercase().replace('-', "_");
                    env.push((format!("ETCD_{name}"), value.to_string()));
                }
                _ => file.push_str(&format!("{name}: {value}\n")),
            }
        }
        if !file.is_empty() {
            // Cut anywhere, as an editor that crashed would leave it.
            let cut = rng.random_range(0..=file.len());
            let text = file.get(..cut).unwrap_or(&file);
            std::fs::write(&path, text).unwrap();
            args.push(format!("--config-file={}", path.display()));
        }
        match Config::from_args(&args, env.into_iter()) {
            Outcome::Run(config, _) => {
                starts += 1;
                let _ = (config.initial_cluster(), config.check_listeners(), config.retention());
                assert!(!config::start_line(&config, false).is_empty());
                assert!(!config.remarks().is_empty());
            }
            Outcome::Print { stdout, stderr, .. } => assert!(stdout.len() + stderr.len() > 0),
            Outcome::Refused { lines, code, .. } => {
                assert_eq!(code, 1);
                assert!(!lines.is_empty(), "{args:?}");
            }
        }
    }
    assert!(starts > 0, "some of them are fine");
}
