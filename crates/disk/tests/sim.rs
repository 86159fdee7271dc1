//! The simulated disk is as unkind as it says, and no unkinder.

use disk::{Disk, Open, SimDisk};
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;

const DIR: &str = "/d";
const FILE: &str = "/d/f";

/// A disk with an empty file whose name is durable.
fn disk(seed: u64) -> SimDisk {
    let disk = SimDisk::new(seed);
    disk.create_dir_all(Path::new(DIR)).unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    disk.open(Path::new(FILE), Open::CreateNew).unwrap();
    disk.sync_dir(Path::new(DIR)).unwrap();
    disk
}

fn content(disk: &SimDisk) -> Vec<u8> {
    disk.content(Path::new(FILE)).unwrap()
}

#[test]
fn what_was_synced_survives_every_crash() {
    for seed in 0..100 {
        let disk = disk(seed);
        let file = disk.open(Path::new(FILE), Open::Write).unwrap();
        file.write_at(&[1; 5000], 0).unwrap();
        file.sync().unwrap();
        disk.crash();
        assert_eq!(content(&disk), [1; 5000], "seed {seed}");
        assert!(file.read_at(&mut [0], 0).is_err(), "a file from before the crash");
    }
}

#[test]
fn unsynced_sectors_survive_in_any_combination_but_never_in_halves() {
    let mut seen = BTreeSet::new();
    for seed in 0..200 {
        let disk = disk(seed);
        let file = disk.open(Path::new(FILE), Open::Write).unwrap();
        file.allocate(1536).unwrap();
        file.sync().unwrap();
        file.write_at(&[1; 1536], 0).unwrap();
        // Two versions of the second sector: none has the second write without the first.
        file.write_at(&[2; 10], 520).unwrap();
        disk.crash();
        let content = content(&disk);
        let sectors: Vec<&[u8]> = content.chunks(512).collect();
        assert!(sectors[0] == [0; 512] || sectors[0] == [1; 512], "seed {seed}");
        let second = [sectors[1][0], sectors[1][8], sectors[1][20]];
        assert!([[0, 0, 0], [1, 1, 1], [1, 2, 1]].contains(&second), "seed {seed}: {second:?}");
        seen.insert((sectors[0][0], second, sectors[2][0]));
    }
    assert_eq!(seen.len(), 2 * 3 * 2, "every combination comes up");
}

#[test]
fn lengths_and_names_that_were_not_synced_may_go() {
    let mut lengths = BTreeSet::new();
    let mut names = BTreeSet::new();
    for seed in 0..100 {
        let disk = disk(seed);
        disk.open(Path::new(FILE), Open::Write).unwrap().write_at(&[1; 700], 0).unwrap();
        disk.open(Path::new("/d/new"), Open::CreateNew).unwrap().sync().unwrap();
        disk.rename(Path::new("/d/new"), Path::new("/d/renamed")).unwrap();
        disk.crash();
        lengths.insert(content(&disk).len());
        names.insert(disk.list(Path::new(DIR)).unwrap().join(" "));
    }
    assert_eq!(lengths, BTreeSet::from([0, 700]));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(names, ["f", "f new", "f renamed"], "a rename is one change");
}

#[test]
fn a_directory_moves_with_all_that_is_in_it() {
    let disk = SimDisk::new(0);
    disk.create_dir_all(Path::new("/a.tmp")).unwrap();
    let file = disk.open(Path::new("/a.tmp/f"), Open::CreateNew).unwrap();
    file.write_at(b"x", 0).unwrap();
    file.sync().unwrap();
    disk.sync_dir(Path::new("/a.tmp")).unwrap();
    disk.rename(Path::new("/a.tmp"), Path::new("/a")).unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    disk.crash_losing_all();
    assert_eq!(disk.list(Path::new("/")).unwrap(), ["a"]);
    assert_eq!(disk.content(Path::new("/a/f")).unwrap(), b"x");
}

#[test]
fn a_removed_file_comes_back_unless_its_directory_was_synced() {
    let disk = disk(0);
    disk.remove(Path::new(FILE)).unwrap();
    disk.crash_losing_all();
    assert!(disk.exists(Path::new(FILE)).unwrap());
    disk.remove(Path::new(FILE)).unwrap();
    disk.sync_dir(Path::new(DIR)).unwrap();
    disk.crash();
    assert!(!disk.exists(Path::new(FILE)).unwrap());
}

#[test]
fn a_kill_loses_nothing_but_the_locks() {
    let disk = disk(0);
    let file = disk.open(Path::new(FILE), Open::Write).unwrap();
    file.write_at(b"abc", 0).unwrap();
    assert!(file.try_lock().unwrap());
    let second = disk.open(Path::new(FILE), Open::Write).unwrap();
    assert!(!second.try_lock().unwrap());
    disk.kill();
    assert_eq!(content(&disk), b"abc");
    assert!(disk.open(Path::new(FILE), Open::Write).unwrap().try_lock().unwrap());
    // It was only written, and still is no more than that.
    disk.crash_losing_all();
    assert_eq!(content(&disk), b"");
}

#[test]
fn a_lock_goes_with_its_handle() {
    let disk = disk(0);
    let first = disk.open(Path::new(FILE), Open::Write).unwrap();
    let second = disk.open(Path::new(FILE), Open::Write).unwrap();
    assert!(first.try_lock().unwrap());
    assert!(first.try_lock().unwrap(), "its own lock is no obstacle");
    drop(second);
    let second = disk.open(Path::new(FILE), Open::Write).unwrap();
    assert!(!second.try_lock().unwrap());
    drop(first);
    assert!(second.try_lock().unwrap());
}

#[test]
fn a_full_disk_takes_what_was_reserved_and_no_more() {
    let disk = disk(0);
    disk.set_capacity(Some(8192));
    let file = disk.open(Path::new(FILE), Open::Write).unwrap();
    file.allocate(4096).unwrap();
    let other = disk.open(Path::new("/d/other"), Open::CreateNew).unwrap();
    other.write_at(&[1; 4096], 0).unwrap();
    assert_eq!(other.write_at(&[1], 4096).unwrap_err().kind(), ErrorKind::StorageFull);
    other.write_at(&[2; 4096], 0).expect("overwriting takes no space");
    file.write_at(&[1; 4096], 0).expect("the space was reserved");
    assert_eq!(file.allocate(4097).unwrap_err().kind(), ErrorKind::StorageFull);
    drop(other);
    disk.remove(Path::new("/d/other")).unwrap();
    file.allocate(8192).expect("the other's space is free");
}

#[test]
fn after_a_failed_sync_the_next_one_is_worth_nothing() {
    let mut lost = 0;
    for seed in 0..50 {
        let disk = disk(seed);
        let file = disk.open(Path::new(FILE), Open::Write).unwrap();
        file.write_at(&[1; 512], 0).unwrap();
        disk.fail_sync_in(0);
        assert_eq!(file.sync().unwrap_err().raw_os_error(), Some(5));
        file.sync().unwrap();
        let mut read = [0; 512];
        file.read_exact_at(&mut read, 0).unwrap();
        assert_eq!(read, [1; 512], "the cache still has it");
        disk.crash();
        lost += usize::from(content(&disk) != [1; 512]);
    }
    assert!(lost > 0 && lost < 50, "lost {lost} of 50");
}

#[test]
fn the_power_fails_at_any_change() {
    let disk = disk(0);
    let file = disk.open(Path::new(FILE), Open::Write).unwrap();
    disk.power_off_in(1);
    file.write_at(b"abc", 0).unwrap();
    assert!(file.sync().is_err());
    assert!(file.write_at(b"abc", 0).is_err());
    assert!(disk.sync_dir(Path::new(DIR)).is_err());
    disk.crash_losing_all();
    assert_eq!(content(&disk), b"");
    let file = disk.open(Path::new(FILE), Open::Write).unwrap();
    file.write_at(b"abc", 0).expect("the power is back");
}

#[test]
fn rot_and_lies_outlive_a_sync() {
    let disk = disk(0);
    let file = disk.open(Path::new(FILE), Open::Write).unwrap();
    file.write_at(&[1; 1024], 0).unwrap();
    file.sync().unwrap();
    disk.rot(Path::new(FILE), 3, 0x80).unwrap();
    disk.zero_sector(Path::new(FILE), 600).unwrap();
    disk.lie(true);
    file.write_at(b"!", 0).unwrap();
    file.sync().unwrap();
    disk.crash_losing_all();
    let content = content(&disk);
    assert_eq!(content[..5], [1, 1, 1, 0x81, 1]);
    assert_eq!(content[512..], [0; 512]);
}

#[test]
fn the_same_seed_gives_the_same_crash() {
    let run = |seed| {
        let disk = disk(seed);
        let file = disk.open(Path::new(FILE), Open::Write).unwrap();
        file.write_at(&[7; 20_000], 0).unwrap();
        disk.crash();
        content(&disk)
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
}
