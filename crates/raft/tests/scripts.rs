//! Scripts of one member's life: what comes in, and what Raft asks for.
//!
//! The member's disk is played by the script: `ready` takes what is to be done, `persist` says that
//! all of it is durable, `apply N` that entries up to N are applied, `crash` forgets all that was not
//! persisted, and `restart` continues from what was.

use bytes::Bytes;
use goldenscript::{ArgumentConsumer, Command, Context, Runner};
use raft::{Config, Mark, ProposeError, Raft, Ready, Restored, Role};
use raftpb::{ConfChange, ConfChangeKind, ConfState, Entry, EntryKind, HardState};
use std::error::Error;
use std::fmt::Write;
use std::str::FromStr;

#[test]
fn scripts() {
    for script in std::fs::read_dir("tests/scripts").expect("the scripts are there") {
        let path = script.expect("a file").path();
        goldenscript::run(&mut Member::default(), &path)
            .expect("the script's output is as recorded");
    }
}

#[derive(Default)]
struct Member {
    raft: Option<Raft>,
    /// What was handed out to be written, and what of it is durable.
    written: Disk,
    durable: Disk,
    marks: Vec<(Mark, Disk)>,
}

#[derive(Clone, Default)]
struct Disk {
    hard_state: HardState,
    entries: Vec<Entry>,
    conf_state: ConfState,
    applied: u64,
}

impl Runner for Member {
    type Command = Command;

    fn run(&mut self, command: &Command, _: &Context) -> Result<String, Box<dyn Error>> {
        let mut args = command.consume_args();
        let mut out = String::new();
        let config = Config {
            id: parse_or(&mut args, "id", 1)?,
            election_ticks: parse_or(&mut args, "election", 10)?,
            heartbeat_ticks: 1,
            pre_vote: parse_or(&mut args, "pre_vote", true)?,
            check_quorum: true,
            seed: parse_or(&mut args, "seed", 7)?,
            log_bytes_max: parse_or(&mut args, "log_bytes_max", 1 << 20)?,
        };
        match command.name.as_str() {
            "found" => {
                let mut members = Vec::new();
                while let Some(id) = args.next_pos() {
                    members.push((id.parse()?, Bytes::from(format!("member {id}"))));
                }
                self.raft = Some(Raft::found(config, &members)?);
            }
            "restart" => {
                let Disk { mut hard_state, entries, conf_state, applied } = self.durable.clone();
                hard_state.commit = parse_or(&mut args, "commit", hard_state.commit)?;
                let applied = parse_or(&mut args, "applied", applied)?;
                let snapshot = (0, 0);
                let restored = Restored { hard_state, conf_state, snapshot, entries, applied };
                self.written = self.durable.clone();
                self.marks.clear();
                self.raft = Some(Raft::new(config, restored)?);
            }
            "crash" => self.raft = None,
            "tick" => {
                let ticks = args.next_pos().map_or(Ok(1), str::parse)?;
                self.raft()?.advance_ticks(ticks);
            }
            "tick-until-ready" => {
                let mut ticks = 0;
                while !self.raft()?.has_ready() {
                    self.raft()?.tick();
                    ticks += 1;
                }
                writeln!(out, "{ticks} ticks")?;
            }
            "campaign" => self.raft()?.campaign(),
            "propose" => {
                while let Some(data) = args.next_pos() {
                    let data = Bytes::copy_from_slice(data.as_bytes());
                    let proposed = self.raft()?.propose(EntryKind::Normal, data);
                    write_proposed(&mut out, proposed)?;
                }
            }
            "propose-conf" => {
                let change = parse_change(&mut args)?;
                let mut data = Vec::new();
                change.encode(&mut data);
                let proposed = self.raft()?.propose(EntryKind::ConfChange, data.into());
                write_proposed(&mut out, proposed)?;
            }
            "ready" => {
                let ready = self.raft()?.ready();
                self.written.write(&ready);
                self.marks.push((ready.mark, self.written.clone()));
                write_ready(&mut out, &ready, self.raft()?.status().id)?;
            }
            "persist" => {
                // All readies but the newest few.
                let but: usize = parse_or(&mut args, "but", 0)?;
                let (mark, disk) = self.marks[self.marks.len() - 1 - but].clone();
                let (conf_state, applied) = (self.durable.conf_state.clone(), self.durable.applied);
                self.durable = Disk { conf_state, applied, ..disk };
                self.raft()?.persisted(mark);
            }
            "apply" => {
                let index: u64 = args.next_pos().ok_or("apply what?")?.parse()?;
                for at in self.durable.applied + 1..=index {
                    let entry = self.durable.entries.iter().find(|entry| entry.index == at);
                    let entry = entry.ok_or("applied what is not durable")?;
                    if entry.kind == EntryKind::ConfChange {
                        let change = ConfChange::decode(&entry.data)?;
                        self.durable.conf_state = self.raft()?.apply_conf_change(&change);
                    }
                }
                self.durable.applied = index;
                self.raft()?.applied(index);
            }
            "compact" => {
                let index = args.next_pos().ok_or("compact what?")?.parse()?;
                self.raft()?.compact(index);
            }
            "status" => {
                let raft = self.raft()?;
                writeln!(out, "{:?}", raft.status())?;
                writeln!(
                    out,
                    "sole voter: {}, committed in its term: {}, in memory from: {}",
                    raft.is_sole_voter(),
                    raft.committed_in_term(),
                    raft.first_index()
                )?;
            }
            other => return Err(format!("unknown command {other}").into()),
        }
        args.reject_next()?;
        Ok(out)
    }
}

impl Member {
    fn raft(&mut self) -> Result<&mut Raft, Box<dyn Error>> {
        self.raft.as_mut().ok_or_else(|| "the member is not running".into())
    }
}

impl Disk {
    fn write(&mut self, ready: &Ready) {
        self.entries.extend(ready.entries.iter().cloned());
        self.hard_state = ready.hard_state.unwrap_or(self.hard_state);
    }
}

fn parse_or<T: FromStr>(
    args: &mut ArgumentConsumer<'_>,
    key: &str,
    default: T,
) -> Result<T, <T as FromStr>::Err> {
    args.take_key(key).map_or(Ok(default), str::parse)
}

fn parse_change(args: &mut ArgumentConsumer<'_>) -> Result<ConfChange, Box<dyn Error>> {
    let kind = match args.next_pos().ok_or("change what?")? {
        "add" => ConfChangeKind::AddNode,
        "learn" => ConfChangeKind::AddLearnerNode,
        "remove" => ConfChangeKind::RemoveNode,
        other => return Err(format!("unknown change {other}").into()),
    };
    let node_id = args.next_pos().ok_or("change whom?")?.parse()?;
    Ok(ConfChange { kind, node_id, ..ConfChange::default() })
}

fn write_proposed(out: &mut String, proposed: Result<u64, ProposeError>) -> std::fmt::Result {
    match proposed {
        Ok(index) => writeln!(out, "entry {index}"),
        Err(error) => writeln!(out, "refused: {error:?}"),
    }
}

fn write_ready(out: &mut String, ready: &Ready, id: u64) -> std::fmt::Result {
    for event in &ready.events {
        writeln!(out, "log: {}", event.line(id))?;
    }
    for entry in &ready.entries {
        writeln!(out, "persist {}", describe(entry))?;
    }
    if let Some(HardState { term, vote, commit }) = ready.hard_state {
        writeln!(out, "persist state: term {term}, vote {vote}, commit {commit}")?;
    }
    if ready.hard_state.is_some() || !ready.entries.is_empty() {
        writeln!(out, "{}", if ready.must_sync { "and sync" } else { "no sync needed" })?;
    }
    for entry in &ready.committed {
        writeln!(out, "apply {}", describe(entry))?;
    }
    if let Some((role, leader)) = ready.soft_state {
        let role = match role {
            Role::Follower => "follower",
            Role::PreCandidate => "pre-candidate",
            Role::Candidate => "candidate",
            Role::Leader => "leader",
        };
        writeln!(out, "now a {role}, leader {leader:?}")?;
    }
    if ready.is_empty() {
        writeln!(out, "nothing")?;
    }
    Ok(())
}

fn describe(entry: &Entry) -> String {
    let what = match entry.kind {
        EntryKind::Normal if entry.data.is_empty() => "empty".to_string(),
        EntryKind::Normal => String::from_utf8_lossy(&entry.data).into_owned(),
        _ => match ConfChange::decode(&entry.data) {
            Ok(change) => format!("{:?} {}", change.kind, change.node_id),
            Err(error) => error.to_string(),
        },
    };
    format!("{}@{} {what}", entry.index, entry.term)
}
