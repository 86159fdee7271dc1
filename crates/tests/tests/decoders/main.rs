//! Whatever the world sends or leaves on the disk: an answer or an error, never a panic.
//!
//! Every entry of the fuzzer (`fuzz/` in the repository) runs on its corpus and on damaged copies of
//! it. `DECODERS_ROUNDS=100000` looks harder; a failure prints the file and the seed, and
//! `DECODERS_SEED=n` repeats that one. `UPDATE_CORPUS=1` writes the corpus anew.

mod damage;
mod entries;
mod seeds;

use std::fs;
use std::path::{Path, PathBuf};

const CORPUS: &str = "../../fuzz/corpus";

macro_rules! decoders {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                run(stringify!($name), entries::$name);
            }
        )*

        #[test]
        fn every_entry_is_run() {
            let names: Vec<&str> = entries::ENTRIES.iter().map(|(name, _)| *name).collect();
            assert_eq!(names, [$(stringify!($name)),*]);
        }
    };
}

decoders! {
    api_requests
    store_apply
    json_request
    json_response
    json_splitter
    raft_messages
    wal_segment
    wal_records
    snap_file
    engine_files
    bolt_database
    settings
}

fn run(name: &str, entry: entries::Entry) {
    let mut accepted = 0;
    for file in corpus(name) {
        let bytes = fs::read(&file).expect("a readable file");
        let is_accepted = entry(&bytes);
        println!("{} is {}", file.display(), if is_accepted { "accepted" } else { "refused" });
        accepted += u64::from(is_accepted);
        let (from, rounds) = match variable("DECODERS_SEED") {
            Some(seed) => (seed, 1),
            None => (0, variable("DECODERS_ROUNDS").unwrap_or(300)),
        };
        for seed in from..from + rounds {
            println!("DECODERS_SEED={seed}");
            entry(&damage::damaged(&bytes, seed));
        }
    }
    assert!(accepted > 0, "all of the corpus is refused");
}

/// The files of a target, written anew if that is asked for.
fn corpus(name: &str) -> Vec<PathBuf> {
    let folder = Path::new(CORPUS).join(name);
    if std::env::var_os("UPDATE_CORPUS").is_some() {
        fs::create_dir_all(&folder).expect("a writable folder");
        for (seed, bytes) in seeds::of(name) {
            fs::write(folder.join(seed), bytes).expect("a writable folder");
        }
    }
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|file| file.expect("a readable folder").path())
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", folder.display());
    files
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}
