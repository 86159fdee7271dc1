//! Random requests, one after the other, to both servers, with watches beside them.

use super::generate::Generator;
use super::op::Op;
use super::pair::Pair;
use super::watching::Watches;
use api::etcdserverpb::CompactionRequest;
use api::v3electionpb::CampaignResponse;
use prost::Message;
use rand::Rng;
use std::collections::VecDeque;
use testkit::Answer;

#[test]
fn random_requests_are_answered_alike() {
    // Whether a server syncs is not what is compared here.
    let Some(mut pair) = Pair::start(&["--unsafe-no-fsync"]) else { return };
    let seed = number("ALTHING_SEED").unwrap_or_else(rand::random);
    let count = number("ALTHING_DIFF_OPS").unwrap_or(6000);
    println!("differential: ALTHING_SEED={seed} ALTHING_DIFF_OPS={count}");
    let mut generator = Generator::new(seed);
    let mut watches = Watches::open(&pair);
    let mut before = VecDeque::new();
    for step in 0..count {
        let op = match generator.rng.random_range(0..100) {
            0 => {
                // What a compaction takes from a watcher that lags is chance, so none may lag.
                watches.settle(&pair, generator.revision);
                compaction(&mut generator)
            }
            1..3 => {
                watches.act(&pair, &mut generator);
                continue;
            }
            _ => generator.op(),
        };
        let (theirs, ours) = pair.both(&op);
        assert!(
            theirs == ours,
            "{}ALTHING_SEED={seed}, step {step}: {op:#?}\n\netcd: {theirs}\n\nours: {ours}",
            before.iter().map(|step| format!("before: {step}\n")).collect::<String>()
        );
        before.push_back(format!("{op:?}"));
        if before.len() > 4 {
            before.pop_front();
        }
        learn(&mut generator, &op, &theirs, &pair.answer);
        if let Op::Compact(request) = &op {
            // Asked again, both answer when all the work is done, and can be asked for hashes.
            pair.same(&Op::Compact(CompactionRequest { physical: true, ..*request }));
        }
    }
    watches.settle(&pair, generator.revision);
    println!("differential: {} answers compared, {} watches", pair.compared, watches.created);
}

pub fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|e| panic!("{variable}={text} is no number: {e}")))
}

fn compaction(generator: &mut Generator) -> Op {
    let revision = generator.any_revision();
    Op::Compact(CompactionRequest { revision, physical: generator.chance(50) })
}

/// What the next requests should know.
pub fn learn(generator: &mut Generator, op: &Op, text: &str, answer: &Answer) {
    let Ok(answer) = answer else { return };
    let revision = text.lines().find_map(|line| line.trim().strip_prefix("revision: "));
    if let Some(Ok(revision)) = revision.map(|text| text.trim_end_matches(',').parse::<i64>()) {
        generator.revision = generator.revision.max(revision);
    }
    match op {
        Op::Compact(request) => generator.compacted = request.revision,
        Op::Campaign(_) => {
            let won = CampaignResponse::decode(answer.clone()).expect("it was rendered before");
            generator.leader = won.leader;
        }
        _ => {}
    }
}
