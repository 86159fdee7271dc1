//! How fast is an append with its sync, and what does it cost? Usage: append_speed [DIR] [fsync]

use bytes::Bytes;
use disk::RealDisk;
use raftpb::{Entry, HardState};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use wal::{Metadata, Options, Wal};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let dir = args.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let fsync = args.next().as_deref() == Some("fsync");
    let dir = dir.join(format!("append-speed-{}", std::process::id()));
    let wal_dir = dir.join("wal");
    std::fs::create_dir_all(&dir)?;
    let disk = Arc::new(RealDisk { fsync });
    let mut wal = Wal::create(disk, &wal_dir, &Metadata::default(), Options::default())?;
    let data = Bytes::from(vec![7; 300]);
    let mut index = 0;
    for batch in [1, 10, 100, 500] {
        let rounds = if fsync { 500 } else { 200_000 / batch };
        let began = Instant::now();
        let mut slowest = std::time::Duration::ZERO;
        for _ in 0..rounds {
            let entry = |index| Entry { term: 1, index, data: data.clone(), ..Entry::default() };
            let entries: Vec<Entry> = (index + 1..=index + batch).map(entry).collect();
            let state = HardState { term: 1, vote: 1, commit: index };
            index += batch;
            let one = Instant::now();
            wal.append(Some(state), &entries)?;
            wal.sync()?;
            slowest = slowest.max(one.elapsed());
        }
        let each = began.elapsed() / rounds as u32;
        println!(
            "{batch} entries: {each:?} per append, {:?} per entry, slowest {slowest:?}",
            each / batch as u32
        );
    }
    let last = wal.read_entries(index, index + 1, 0)?;
    assert_eq!(last[0].index, index);
    drop(wal);
    std::fs::remove_dir_all(&dir)?;
    Ok(())
}
