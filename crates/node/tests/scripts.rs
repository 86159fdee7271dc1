//! Scripts of one replica's life: what happens to it, and what it asks of the world.
//!
//! The script plays the shell. Left alone, the disk and the store of the test do at once what they
//! are asked, and only what is new is told: entries written, answers, notices. `hold disk` and
//! `hold store` make them wait for `persist` and `apply`, `fail` makes the store refuse a kind of
//! request, `lose` makes it apply one without a word to whoever proposed it.

mod shell;

use goldenscript::{Command, Context, Runner};
use node::{CompactionMode, Event, MILLISECOND, Question, SECOND};
use raftpb::ConfChange;
use shell::{Member, Options, grant, put, revoke};
use std::error::Error;

#[test]
fn scripts() {
    for script in std::fs::read_dir("tests/scripts").expect("the scripts are there") {
        let path = script.expect("a file").path();
        println!("{}", path.display());
        goldenscript::run(&mut Scripted::default(), &path)
            .expect("the script's output is as recorded");
    }
}

#[derive(Default)]
struct Scripted {
    member: Option<Member>,
}

impl Runner for Scripted {
    type Command = Command;

    fn run(&mut self, command: &Command, _: &Context) -> Result<String, Box<dyn Error>> {
        let mut args = command.consume_args();
        if matches!(command.name.as_str(), "found" | "restart") {
            let mut options = Options::default();
            if let Some(time) = args.take_key("keep_time") {
                options.compaction = CompactionMode::Periodic(parse_time(time)?);
            }
            if let Some(revisions) = args.take_key("keep_revisions") {
                options.compaction = CompactionMode::Revision(revisions.parse()?);
            }
            if let Some(checkpoint) = args.take_key("checkpoint") {
                options.lease_checkpoint = checkpoint.parse()?;
            }
            if let Some(others) = args.take_key("others") {
                options.others = others.parse()?;
            }
            if let Some(at_once) = args.take_key("campaign_at_once") {
                options.campaign_at_once = at_once.parse()?;
            }
            let held = args.take_key("hold").unwrap_or("").to_string();
            let after = args.take_key("after").map_or(Ok(0), parse_time)?;
            args.reject_next()?;
            let mut member = match (command.name.as_str(), self.member.take()) {
                ("restart", Some(before)) => before.restart(options, after)?,
                _ => Member::found(options)?,
            };
            member.hold(&held)?;
            member.carry_on();
            let out = member.take_transcript();
            self.member = Some(member);
            return Ok(out);
        }
        let member = self.member.as_mut().ok_or("nobody is running")?;
        match command.name.as_str() {
            "hold" => member.hold(args.next_pos().ok_or("hold what?")?)?,
            "release" => member.release(),
            "persist" => member.persist(),
            "apply" => member.apply(args.next_pos().map_or(Ok(usize::MAX), str::parse)?),
            "fail" => member.fail = args.next_pos().unwrap_or("").to_string(),
            "lose" => member.lose = args.next_pos().unwrap_or("").to_string(),
            "wait" => member.wait(parse_time(args.next_pos().ok_or("wait how long?")?)?),
            "grant" => {
                let lease = args.next_pos().ok_or("grant what?")?.parse()?;
                let ttl = args.take_key("ttl").ok_or("for how long?")?.parse()?;
                let count = args.take_key("count").map_or(Ok(1), str::parse)?;
                member.propose((lease..lease + count).map(|lease| grant(lease, ttl)));
            }
            "revoke" => {
                let lease = args.next_pos().ok_or("revoke what?")?.parse()?;
                member.propose([revoke(lease)]);
            }
            "put" => {
                let count = args.next_pos().map_or(Ok(1), str::parse)?;
                member.propose((0..count).map(|_| put()));
            }
            "add-member" => {
                let node_id = args.next_pos().ok_or("add whom?")?.parse()?;
                let change = ConfChange { id: 99, node_id, ..ConfChange::default() };
                member.step(Event::ProposeConfChange { change });
            }
            "read" => member.ask(Question::Read),
            "renew" => {
                let lease = args.next_pos().ok_or("renew what?")?.parse()?;
                member.ask(Question::Renew { lease });
            }
            "ttl" => {
                let lease = args.next_pos().ok_or("of what?")?.parse()?;
                member.ask(Question::TimeToLive { lease });
            }
            "leases" => member.ask(Question::Leases),
            "ends" => member.write_ends(),
            "status" => member.write_status(),
            other => return Err(format!("unknown command {other}").into()),
        }
        args.reject_next()?;
        Ok(member.take_transcript())
    }
}

/// Microseconds from `3us`, `3ms`, `3s` or `3m`.
fn parse_time(text: &str) -> Result<u64, Box<dyn Error>> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "us" => 1,
        "ms" => MILLISECOND,
        "s" => SECOND,
        "m" => 60 * SECOND,
        _ => return Err(format!("what time is {text}?").into()),
    };
    Ok(digits.parse::<u64>()? * unit)
}
