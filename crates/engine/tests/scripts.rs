//! Scripts of an engine's life: what was done, and what is on the disk.
//!
//! `row MAIN [bytes=N]`, `put KEY VALUE` and `commit INDEX` write; `sync UPTO` makes durable; `crash`
//! loses what was not synced, and opens again; `forget FROM TO`; `collect [all]` runs to the end;
//! `snapshot` takes one and `look` reads it; `state` and `files` show what there is.

mod common;

use common::kv;
use disk::{Disk, SimDisk};
use engine::{Bucket, Commit, Engine, LogEngine, Options, Revision, Snapshot};
use goldenscript::{Command, Context, Runner};
use std::error::Error;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

const DIR: &str = "/store";

#[test]
fn scripts() {
    for script in std::fs::read_dir("tests/scripts").expect("the scripts are there") {
        let path = script.expect("a file").path();
        goldenscript::run(&mut Life::new(), &path).expect("the script's output is as recorded");
    }
}

struct Life {
    disk: SimDisk,
    engine: Option<LogEngine>,
    snapshot: Option<Box<dyn Snapshot>>,
}

impl Life {
    fn new() -> Life {
        let mut life = Life { disk: SimDisk::new(1), engine: None, snapshot: None };
        life.open().expect("an empty directory opens");
        life
    }

    fn open(&mut self) -> engine::Result<()> {
        self.engine = None;
        let options = Options { segment_bytes: 1000, cache_bytes: 0, reserve_bytes: 0 };
        let disk = Arc::new(self.disk.clone());
        self.engine = Some(LogEngine::open(disk, Path::new(DIR), options)?);
        Ok(())
    }

    fn state(&self) -> Result<String, Box<dyn Error>> {
        let engine = self.engine.as_ref().ok_or("not open")?;
        let rows = engine.rows(Revision::default(), usize::MAX, usize::MAX)?;
        let revisions: Vec<_> = rows.iter().map(|row| row.revision.main.to_string()).collect();
        let mut out = format!("commit {} rows {}", engine.last_commit().index, revisions.join(","));
        for (key, value) in engine.bucket(Bucket::Meta) {
            write!(out, " {}={}", String::from_utf8_lossy(&key), String::from_utf8_lossy(&value))?;
        }
        Ok(out)
    }
}

impl Runner for Life {
    type Command = Command;

    fn run(&mut self, command: &Command, _: &Context) -> Result<String, Box<dyn Error>> {
        let mut args = command.consume_args();
        // What happens to the disk needs no engine.
        match command.name.as_str() {
            "crash" => {
                self.snapshot = None;
                self.disk.crash_losing_all();
                self.open()?;
                return self.state();
            }
            "remove" => {
                let name = args.next_pos().ok_or("which?")?;
                self.disk.remove(&Path::new(DIR).join(name))?;
                self.disk.sync_dir(Path::new(DIR))?;
                return Ok(String::new());
            }
            "rot" => {
                let name = args.next_pos().ok_or("which?")?;
                let offset = args.next_pos().ok_or("where?")?.parse()?;
                self.disk.rot(&Path::new(DIR).join(name), offset, 1)?;
                return Ok(String::new());
            }
            _ => {}
        }
        let engine = self.engine.as_ref().ok_or("not open")?;
        let mut out = String::new();
        match command.name.as_str() {
            "row" => {
                let main: i64 = args.next_pos().ok_or("which?")?.parse()?;
                let bytes: usize = args.take_key("bytes").unwrap_or("100").parse()?;
                let row = kv(b"key", main, &vec![b'v'; bytes]);
                engine.append(Revision::new(main, 0), false, row)?;
            }
            "put" => {
                let key = args.next_pos().ok_or("which?")?;
                let value = args.next_pos().ok_or("what?")?;
                engine.put(Bucket::Meta, key.as_bytes(), value.as_bytes())?;
            }
            "commit" => {
                let index = args.next_pos().ok_or("which?")?.parse()?;
                engine.commit(Commit { index, compacted: -1, ..Commit::default() })?;
            }
            "sync" => {
                let upto = args.next_pos().ok_or("how far?")?.parse()?;
                write!(out, "durable: commit {}", engine.sync(upto)?.index)?;
            }
            "forget" => {
                let from: i64 = args.next_pos().ok_or("from?")?.parse()?;
                let to: i64 = args.next_pos().ok_or("to?")?.parse()?;
                let gone: Vec<_> = (from..=to).map(|main| Revision::new(main, 0)).collect();
                engine.forget(&gone)?;
            }
            "collect" => {
                let all = args.next_pos().is_some();
                while engine.collect(500, all)? {
                    engine.sync(engine.last_commit().index)?;
                }
                let sizes = engine.sizes();
                write!(out, "total {} in use {}", sizes.total, sizes.in_use)?;
            }
            "snapshot" => self.snapshot = Some(engine.snapshot()?),
            "look" => {
                let snapshot = self.snapshot.as_ref().ok_or("no snapshot")?;
                let rows = snapshot.rows(Revision::default(), usize::MAX, usize::MAX)?;
                let revisions: Vec<_> = rows.iter().map(|r| r.revision.main.to_string()).collect();
                write!(out, "commit {} rows {}", snapshot.commit().index, revisions.join(","))?;
            }
            "read" => {
                let main = args.next_pos().ok_or("which?")?.parse()?;
                let read = engine.read(Revision::new(main, 0))?;
                write!(out, "{:?} bytes", read.map(|kv| kv.len()))?;
            }
            "state" => out = self.state()?,
            "files" => {
                for name in self.disk.list(Path::new(DIR))? {
                    let content = self.disk.content(&Path::new(DIR).join(&name))?;
                    writeln!(out, "{name} {}", content.len())?;
                }
            }
            name => return Err(format!("no such command: {name}").into()),
        }
        args.reject_next()?;
        Ok(out)
    }
}
