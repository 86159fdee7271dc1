//! Runs the fuzzer's entries on its corpus (`fuzz/corpus` of the repository), and on damaged copies
//! of it.

mod entries;

use std::fs;
use std::path::Path;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

#[test]
fn nothing_in_the_corpus_breaks_anything() {
    for (name, entry) in entries::ENTRIES {
        let folder = Path::new("../../fuzz/corpus").join(name);
        let mut files: Vec<_> = fs::read_dir(&folder)
            .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
            .map(|file| file.expect("a readable folder").path())
            .collect();
        files.sort();
        assert!(!files.is_empty(), "{} is empty", folder.display());
        for file in files {
            println!("{}", file.display());
            let bytes = fs::read(&file).expect("a readable file");
            entry(&bytes);
            for seed in 0..200 {
                let mut random = StdRng::seed_from_u64(seed);
                let mut bytes = bytes.clone();
                for _ in 0..random.random_range(1..8) {
                    let at = random.random_range(0..bytes.len());
                    match random.random_range(0..4) {
                        0 => bytes[at] = random.random(),
                        1 => bytes[at] ^= 1 << random.random_range(0..8),
                        2 => bytes.insert(at, random.random()),
                        _ if bytes.len() > 1 => drop(bytes.remove(at)),
                        _ => {}
                    }
                }
                println!("seed {seed}");
                entry(&bytes);
            }
        }
    }
}
