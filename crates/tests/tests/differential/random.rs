//! Random requests, one after the other, to both servers.

use super::generate::Generator;
use super::op::Op;
use super::pair::Pair;
use api::etcdserverpb::CompactionRequest;

#[test]
fn random_requests_are_answered_alike() {
    // Neither server's sync is what is compared here.
    let Some(mut pair) = Pair::start(&["--unsafe-no-fsync"]) else { return };
    let seed = number("ALTHING_SEED").unwrap_or_else(rand::random);
    let count = number("ALTHING_DIFF_OPS").unwrap_or(5000);
    println!("differential: ALTHING_SEED={seed} ALTHING_DIFF_OPS={count}");
    let mut generator = Generator::new(seed);
    let mut differences = Vec::new();
    for step in 0..count {
        let op = if generator.chance(1) { compaction(&mut generator) } else { generator.op() };
        let (theirs, ours) = pair.both(&op);
        if theirs != ours {
            differences.push(format!("step {step}: {op:#?}\netcd: {theirs}\nours: {ours}\n"));
            if differences.len() >= 1 { break; }
        }
        learn(&mut generator, &op, &theirs);
    }
    println!("differential: {} answers compared, {} differ", pair.compared, differences.len());
    assert!(differences.is_empty(), "seed {seed}:\n{}", differences.join("\n"));
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|e| panic!("{variable}={text} is no number: {e}")))
}

fn compaction(generator: &mut Generator) -> Op {
    let revision = generator.any_revision();
    Op::Compact(CompactionRequest { revision, physical: generator.chance(50) })
}

/// What the next requests should know.
fn learn(generator: &mut Generator, op: &Op, answer: &str) {
    if answer.starts_with("error") {
        return;
    }
    let revision = answer.lines().find_map(|line| line.trim().strip_prefix("revision: "));
    if let Some(Ok(revision)) = revision.map(|text| text.trim_end_matches(',').parse::<i64>()) {
        generator.revision = generator.revision.max(revision);
    }
    if let Op::Compact(request) = op {
        generator.compacted = request.revision;
    }
}
