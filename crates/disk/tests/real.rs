//! The real disk keeps the promises that the trait makes.

use disk::{Disk, Open, RealDisk};

#[test]
fn a_lock_is_held_until_its_file_is_closed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    let disk = RealDisk::default();
    let first = disk.open(&path, Open::CreateNew).unwrap();
    let second = disk.open(&path, Open::Write).unwrap();
    assert!(first.try_lock().unwrap());
    assert!(!second.try_lock().unwrap(), "two holders of one lock");
    drop(first);
    assert!(second.try_lock().unwrap(), "the lock went with its file");
}

#[test]
fn allocated_space_reads_as_zeros_and_counts_as_length() {
    let dir = tempfile::tempdir().unwrap();
    let file = RealDisk::default().open(&dir.path().join("a"), Open::Create).unwrap();
    file.write_at(b"abc", 0).unwrap();
    file.allocate(4096).unwrap();
    assert_eq!(file.len().unwrap(), 4096);
    let mut content = [1; 8];
    file.read_exact_at(&mut content, 0).unwrap();
    assert_eq!(&content, b"abc\0\0\0\0\0");
}
