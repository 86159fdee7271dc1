//! Scripts of a log's life on a simulated disk.
//!
//! Entries are written `INDEX@TERM=DATA`, hard states `TERM/VOTE/COMMIT`. A range of entries, as
//! `fill` writes it and as the answers show it, is `FIRST..LAST@TERM`.

use bytes::Bytes;
use disk::{Disk, Open, SimDisk};
use goldenscript::{Command, Context, Runner};
use raftpb::{ConfState, Entry, HardState};
use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wal::{Metadata, Options, Recovered, SnapshotMark, Wal};

const DIR: &str = "/member/wal";

#[test]
fn scripts() {
    for script in std::fs::read_dir("tests/scripts").expect("the scripts are there") {
        let path = script.expect("a file").path();
        goldenscript::run(&mut Log::default(), &path).expect("the script's output is as recorded");
    }
}

struct Log {
    disk: SimDisk,
    wal: Option<Wal>,
    options: Options,
}

impl Default for Log {
    fn default() -> Self {
        let disk = SimDisk::new(1);
        disk.create_dir_all(Path::new("/member")).expect("an empty disk");
        disk.sync_dir(Path::new("/")).expect("a good disk");
        Log { disk, wal: None, options: Options { segment_bytes: 4096 } }
    }
}

impl Runner for Log {
    type Command = Command;

    fn run(&mut self, command: &Command, _: &Context) -> Result<String, Box<dyn Error>> {
        let mut args = command.consume_args();
        let mut out = String::new();
        match command.name.as_str() {
            "create" => {
                if let Some(bytes) = args.take_key("segment_bytes") {
                    self.options.segment_bytes = bytes.parse()?;
                }
                let metadata = Metadata { node_id: 1, cluster_id: 2, extra: Bytes::new() };
                let disk = Arc::new(self.disk.clone());
                self.wal = Some(Wal::create(disk, Path::new(DIR), &metadata, self.options)?);
            }
            "append" => {
                let state = args.take_key("state").map(parse_state).transpose()?;
                let mut entries = Vec::new();
                while let Some((place, data)) = args.next_key() {
                    entries.push(parse_entry(place, data)?);
                }
                self.wal()?.append(state, &entries)?;
            }
            "fill" => {
                let bytes = args.take_key("bytes").map_or(Ok(100), str::parse)?;
                let (range, term) =
                    args.next_pos().and_then(|arg| arg.split_once('@')).ok_or("fill what?")?;
                let (first, last) = range.split_once("..").ok_or("from where to where?")?;
                for index in first.parse()?..=last.parse()? {
                    let data = Bytes::from(vec![b'x'; bytes]);
                    let entry = Entry { term: term.parse()?, index, data, ..Entry::default() };
                    self.wal()?.append(None, &[entry])?;
                }
            }
            "states" => {
                let count: u64 = args.next_pos().ok_or("how many?")?.parse()?;
                for commit in 0..count {
                    self.wal()?.append(Some(HardState { term: 9, vote: 1, commit }), &[])?;
                }
            }
            "sync" => self.wal()?.sync()?,
            "snapshot" => {
                let mark = parse_mark(args.next_pos().ok_or("which snapshot?")?)?;
                let conf_state = Some(ConfState { voters: vec![1], ..ConfState::default() });
                self.wal()?.save_snapshot(&SnapshotMark { conf_state, ..mark })?;
            }
            "snapshots" => {
                for mark in Wal::snapshots(&self.disk, Path::new(DIR))? {
                    writeln!(
                        out,
                        "{}@{} voters {:?}",
                        mark.index,
                        mark.term,
                        mark.conf_state.map(|state| state.voters)
                    )?;
                }
            }
            "release" => {
                let index = args.next_pos().ok_or("release what?")?.parse()?;
                self.wal()?.release_to(index)?;
            }
            "purge" => {
                let keep = args.take_key("keep").ok_or("keep how many?")?.parse()?;
                writeln!(out, "{} removed", self.wal()?.purge(keep)?)?;
            }
            "read" => {
                let bytes_max = args.take_key("bytes_max").map_or(Ok(usize::MAX), str::parse)?;
                let mut number =
                    || args.next_pos().ok_or("read what?")?.parse().map_err(Box::<dyn Error>::from);
                let (from, to) = (number()?, number()?);
                let entries = self.wal()?.read_entries(from, to, bytes_max)?;
                writeln!(out, "entries {}", describe(&entries))?;
            }
            "reserve" => {
                let wal = self.wal()?;
                writeln!(out, "{}, then {}", wal.reserve_ok(), wal.refill_reserve()?)?;
            }
            "open" => {
                let from = args.take_key("from").map_or(Ok(SnapshotMark::default()), parse_mark)?;
                let disk = Arc::new(self.disk.clone());
                let (wal, recovered) = Wal::open(disk, Path::new(DIR), &from, self.options)?;
                self.wal = Some(wal);
                write_recovered(&mut out, &recovered)?;
            }
            "close" => self.wal = None,
            "kill" => {
                self.disk.kill();
                self.wal = None;
            }
            "crash" => {
                self.disk.crash_losing_all();
                self.wal = None;
            }
            "capacity" => {
                let spare: u64 = args.next_pos().ok_or("how much is to be spare?")?.parse()?;
                self.disk.set_capacity(Some(self.disk.used() + spare));
            }
            "fail-sync" => self.disk.fail_sync_in(0),
            "rot" => {
                let (path, offset) = self.place(&mut args)?;
                self.disk.rot(&path, offset, 1)?;
            }
            "zero-sector" => {
                let (path, offset) = self.place(&mut args)?;
                self.disk.zero_sector(&path, offset)?;
            }
            "truncate" => {
                let (path, len) = self.place(&mut args)?;
                let file = self.disk.open(&path, Open::Write)?;
                file.set_len(len)?;
                file.sync()?;
            }
            "touch" => {
                let path = Path::new(DIR).join(args.next_pos().ok_or("touch what?")?);
                self.disk.open(&path, Open::CreateNew)?.write_at(b"x", 0)?;
            }
            "remove" => {
                let path = Path::new(DIR).join(args.next_pos().ok_or("remove what?")?);
                self.disk.remove(&path)?;
            }
            "ls" => {
                for name in self.disk.list(Path::new(DIR))? {
                    let content = self.disk.content(&Path::new(DIR).join(&name))?;
                    let used = content.iter().rposition(|&byte| byte != 0).map_or(0, |at| at + 1);
                    writeln!(
                        out,
                        "{name} {} bytes, {used} up to the last that is not 0",
                        content.len()
                    )?;
                }
            }
            "cut-off-every-byte" => {
                let tear = |content: &mut Vec<u8>, at: usize| content.truncate(at);
                self.tear_last_record(&mut out, tear)?;
            }
            "zero-from-every-byte" => {
                let tear = |content: &mut Vec<u8>, at: usize| content[at..].fill(0);
                self.tear_last_record(&mut out, tear)?;
            }
            other => return Err(format!("unknown command {other}").into()),
        }
        args.reject_next()?;
        Ok(out)
    }
}

impl Log {
    fn wal(&mut self) -> Result<&mut Wal, Box<dyn Error>> {
        self.wal.as_mut().ok_or_else(|| "the log is not open".into())
    }

    fn place(
        &self,
        args: &mut goldenscript::ArgumentConsumer<'_>,
    ) -> Result<(PathBuf, u64), Box<dyn Error>> {
        let path = Path::new(DIR).join(args.next_pos().ok_or("which file?")?);
        Ok((path, args.next_pos().ok_or("where?")?.parse()?))
    }

    /// Opens the log as it would be if the last record had been torn at each of its bytes, and tells
    /// what comes of it. The last record begins where all before it end.
    fn tear_last_record(
        &mut self,
        out: &mut String,
        tear: impl Fn(&mut Vec<u8>, usize),
    ) -> Result<(), Box<dyn Error>> {
        let name = self.disk.list(Path::new(DIR))?.pop().ok_or("no segment")?;
        let path = Path::new(DIR).join(name);
        let whole = self.disk.content(&path)?;
        let (start, end) = last_record(&whole);
        let mut told = String::new();
        let mut first = start;
        for at in start..=end {
            let mut content = whole.clone();
            tear(&mut content, at);
            let disk = SimDisk::new(0);
            disk.create_dir_all(Path::new(DIR))?;
            disk.open(&path, Open::CreateNew)?.write_at(&content, 0)?;
            let from = SnapshotMark::default();
            let outcome = match Wal::open(Arc::new(disk), Path::new(DIR), &from, self.options) {
                Ok((_, recovered)) => {
                    let cut = recovered.cut.map_or("clean end".into(), |cut| {
                        format!("{} cut off at {}", cut.what, cut.offset)
                    });
                    format!("entries {}, {cut}", describe(&recovered.entries))
                }
                Err(error) => format!("refused: {error}"),
            };
            if outcome != told && at > start {
                writeln!(out, "torn at {first} to {}: {told}", at - 1)?;
                first = at;
            }
            told = outcome;
        }
        writeln!(out, "torn at {first} to {end}: {told}")?;
        Ok(())
    }
}

/// Where the last record of a segment begins and where its frame ends.
fn last_record(segment: &[u8]) -> (usize, usize) {
    let (mut last, mut end) = (0, 0);
    loop {
        let field = segment.get(end..end + 8).map(|field| field.try_into().expect("eight bytes"));
        let field = field.map_or(0, u64::from_le_bytes);
        if field == 0 {
            return (last, end);
        }
        last = end;
        end += 8 + (field as u32 as usize).next_multiple_of(8);
    }
}

fn parse_entry(place: &str, data: &str) -> Result<Entry, Box<dyn Error>> {
    let mark = parse_mark(place)?;
    let data = Bytes::copy_from_slice(data.as_bytes());
    Ok(Entry { term: mark.term, index: mark.index, data, ..Entry::default() })
}

fn parse_mark(text: &str) -> Result<SnapshotMark, Box<dyn Error>> {
    let (index, term) = text.split_once('@').ok_or("no term")?;
    Ok(SnapshotMark { index: index.parse()?, term: term.parse()?, conf_state: None })
}

fn parse_state(text: &str) -> Result<HardState, Box<dyn Error>> {
    let numbers: Vec<u64> = text.split('/').map(str::parse).collect::<Result<_, _>>()?;
    let [term, vote, commit] = numbers[..] else { return Err("not three numbers".into()) };
    Ok(HardState { term, vote, commit })
}

fn write_recovered(out: &mut String, recovered: &Recovered) -> Result<(), Box<dyn Error>> {
    let HardState { term, vote, commit } = recovered.hard_state;
    writeln!(out, "state: term {term}, vote {vote}, commit {commit}")?;
    writeln!(out, "entries {}", describe(&recovered.entries))?;
    let marks: Vec<String> =
        recovered.snapshots.iter().map(|mark| format!("{}@{}", mark.index, mark.term)).collect();
    writeln!(out, "snapshots {}", marks.join(" "))?;
    if let Some(cut) = &recovered.cut {
        writeln!(out, "{} was cut off at {}", cut.what, cut.offset)?;
    }
    Ok(())
}

/// Short data in full; runs of longer ones as a range.
fn describe(entries: &[Entry]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut rest = entries;
    while let Some(first) = rest.first() {
        if first.data.len() < 20 {
            parts.push(format!(
                "{}@{}={}",
                first.index,
                first.term,
                String::from_utf8_lossy(&first.data)
            ));
            rest = &rest[1..];
            continue;
        }
        let alike = |(entry, index): (&Entry, u64)| {
            entry.index == index && entry.term == first.term && entry.data.len() == first.data.len()
        };
        let run = rest.iter().zip(first.index..).take_while(|&pair| alike(pair)).count();
        parts.push(format!("{}..{}@{}", first.index, rest[run - 1].index, first.term));
        rest = &rest[run..];
    }
    if parts.is_empty() { "none".into() } else { parts.join(" ") }
}
