//! What is written is read back, at any size; what is damaged is refused.

mod common;

use bolt::{BUCKETS, Database, PAGE_BYTES, ReadError, WriteError};
use bytes::Bytes;
use common::{Tables, empty, plan, row_key, write, write_planned};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

fn read(file: &[u8]) -> Result<Tables, ReadError> {
    let database = Database::open(file.to_vec())?;
    let mut tables = Tables::new();
    for name in database.buckets()? {
        let rows = database.rows(&name)?.expect("a bucket that was listed");
        let name = String::from_utf8_lossy(&name).into_owned();
        tables.insert(name, rows.collect::<Result<_, _>>()?);
    }
    Ok(tables)
}

fn random(seed: u64) -> Tables {
    let mut random = StdRng::seed_from_u64(seed);
    let mut tables = empty();
    for main in 2..random.random_range(2..[3, 30, 500, 20_000][seed as usize % 4]) {
        let bytes = [0, 10, 300, 4000, 30_000]
            [random.random_range(0..5) * usize::from(!seed.is_multiple_of(3))];
        let value = vec![main as u8; random.random_range(0..=bytes)];
        let key = row_key(main, random.random_range(0..3), random.random());
        tables.get_mut("key").unwrap().insert(key, value.into());
    }
    for name in BUCKETS.iter().filter(|name| **name != "key") {
        let rows_max = [2, 20, 400][random.random_range(0..3)];
        for _ in 0..random.random_range(0..rows_max) {
            let key_bytes_max = [9, 20, 1500][random.random_range(0..3)];
            let key_bytes = random.random_range(1..key_bytes_max);
            let key: Vec<u8> = (0..key_bytes).map(|_| random.random()).collect();
            let value = vec![7; random.random_range(0..200)];
            tables.get_mut(*name).unwrap().insert(key.into(), value.into());
        }
    }
    tables
}

#[test]
fn what_is_written_is_read_back() {
    for seed in 0..24 {
        println!("seed {seed}");
        let tables = random(seed);
        assert!(read(&write(&tables)).unwrap() == tables, "seed {seed}");
    }
}

#[test]
fn an_empty_database_has_three_pages() {
    let file = write(&empty());
    assert_eq!(file.len(), 3 * PAGE_BYTES);
    assert_eq!(read(&file).unwrap(), empty());
}

#[test]
fn what_follows_the_pages_is_left_alone() {
    let mut file = write(&random(1));
    file.extend_from_slice(&[9; 32]);
    let database = Database::open(file.clone()).unwrap();
    assert_eq!(database.bytes() + 32, file.len() as u64);
    assert_eq!(read(&file).unwrap(), random(1));
}

#[test]
fn other_rows_than_the_planned_ones_are_refused() {
    let tables = random(3);
    let mut others = tables.clone();
    others.get_mut("key").unwrap().pop_first();
    for (planned, written) in [(&tables, &others), (&others, &tables)] {
        let refused = write_planned(plan(planned), written);
        assert!(matches!(refused, Err(WriteError::Changed { bucket }) if bucket == "key"));
    }
    let mut larger = tables.clone();
    let first = larger["key"].keys().next().unwrap().clone();
    larger.get_mut("key").unwrap().insert(first, Bytes::from(vec![1; 20_000]));
    assert!(write_planned(plan(&tables), &larger).is_err());
}

#[test]
fn the_older_meta_takes_over_when_the_newer_is_torn() {
    let mut file = write(&random(2));
    file[20] ^= 1;
    assert_eq!(read(&file).unwrap(), random(2));
    file[PAGE_BYTES + 20] ^= 1;
    assert!(matches!(read(&file), Err(ReadError::NotADatabase(_))));
}

#[test]
fn a_damaged_file_never_panics_and_never_hangs() {
    let file = write(&random(2));
    for seed in 0..3000 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut damaged = file.clone();
        for _ in 0..random.random_range(1..4) {
            // Mostly where the structure is: at the start of a page.
            let page = random.random_range(0..damaged.len() / PAGE_BYTES) * PAGE_BYTES;
            let span = [16, 200, PAGE_BYTES][random.random_range(0..3)];
            let at = page + random.random_range(0..span);
            damaged[at] = random.random();
        }
        if random.random_range(0..10) == 0 {
            damaged.truncate(random.random_range(0..damaged.len()));
        }
        let _ = read(&damaged);
    }
}

#[test]
fn a_branch_that_leads_to_itself_is_refused() {
    let tables = random(3);
    let mut file = write(&tables);
    let pages = file.len() / PAGE_BYTES;
    let branch = (2..pages).find(|page| file[page * PAGE_BYTES + 8] == 1).expect("a branch");
    let child = branch * PAGE_BYTES + 16 + 8;
    file[child..child + 8].copy_from_slice(&(branch as u64).to_le_bytes());
    assert!(matches!(read(&file), Err(ReadError::Damaged { .. })));
}
