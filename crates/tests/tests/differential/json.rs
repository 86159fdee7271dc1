//! The JSON gateway and the plain HTTP endpoints of both servers.

use super::generate::Generator;
use super::op::Op;
use super::pair::{Pair, Side};
use super::random::{learn, number};
use gateway::Transcoder;
use serde_json::Value;
use testkit::HttpReply;

/// Random requests as JSON.
#[test]
fn random_requests_are_answered_alike_as_json() {
    let Some(mut pair) = Pair::start(&["--unsafe-no-fsync"]) else { return };
    let seed = number("ALTHING_SEED").unwrap_or_else(rand::random);
    let count = number("ALTHING_DIFF_OPS").unwrap_or(3000) / 2;
    println!("differential JSON: ALTHING_SEED={seed} ALTHING_DIFF_OPS={}", count * 2);
    let mut generator = Generator::new(seed);
    let transcoder = Transcoder::new();
    for step in 0..count {
        let op = without_ties(generator.op());
        // Every other request goes the usual way, so that there is something to learn from.
        if step % 2 == 0 || op.gateway_path().is_empty() {
            let text = pair.same(&op);
            learn(&mut generator, &op, &text, &pair.answer);
            continue;
        }
        let name = op.message_name();
        let bodies = [&pair.etcd, &pair.ours].map(|side| {
            let mut json = Vec::new();
            let request = op.addressed_to(side.member).encode();
            transcoder.response(&name, &request, &mut json).expect("requests are messages too");
            String::from_utf8(json).expect("JSON is text")
        });
        let replies = pair.http_each("POST", op.gateway_path(), &[], bodies);
        assert_same(&pair, &format!("seed {seed}, step {step}: {op:?}"), &replies);
    }
    println!("differential JSON: {} answers compared", pair.compared);
}

/// As JSON the order of equals cannot be tidied as easily.
fn without_ties(mut op: Op) -> Op {
    fn tidy(txn: &mut api::etcdserverpb::TxnRequest) {
        use api::etcdserverpb::request_op::Request;
        for op in txn.success.iter_mut().chain(&mut txn.failure) {
            match &mut op.request {
                Some(Request::RequestRange(range)) => range.sort_target = 0,
                Some(Request::RequestTxn(nested)) => tidy(nested),
                _ => {}
            }
        }
    }
    match &mut op {
        Op::Range(range) => range.sort_target = 0,
        Op::Txn(txn) => tidy(txn),
        _ => {}
    }
    op
}

/// Requests written by hand: `method target [header: value] [body]`.
#[test]
fn odd_http_requests_are_answered_alike() {
    let Some(mut pair) = Pair::start(&["--unsafe-no-fsync"]) else { return };
    let mut differences = Vec::new();
    for line in include_str!("requests.http").lines() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut parts = line.splitn(3, ' ');
        let (method, target) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
        let mut rest = parts.next().unwrap_or("");
        let mut headers = Vec::new();
        while let Some((header, more)) = rest.strip_prefix('[').and_then(|r| r.split_once("] ")) {
            headers.extend(header.split_once(": "));
            rest = more;
        }
        let replies = pair.http(method, target, &headers, rest);
        if let Some(difference) = difference(&pair, line, &replies) {
            differences.push(difference);
        }
    }
    println!("differential HTTP: {} answers compared", pair.compared);
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

fn assert_same(pair: &Pair, what: &str, replies: &[HttpReply; 2]) {
    if let Some(difference) = difference(pair, what, replies) {
        panic!("{difference}");
    }
}

fn difference(pair: &Pair, what: &str, replies: &[HttpReply; 2]) -> Option<String> {
    let [theirs, ours] = [comparable(&pair.etcd, &replies[0]), comparable(&pair.ours, &replies[1])];
    (theirs != ours).then(|| format!("{what}\n  etcd: {theirs}\n  ours: {ours}\n"))
}

/// Status, headers that clients may look at, and the body: as JSON if it is that, line by line.
fn comparable(side: &Side, reply: &HttpReply) -> String {
    const OTHERWISE: [&str; 4] = ["date", "content-length", "connection", "transfer-encoding"];
    let mut headers: Vec<String> = reply
        .headers
        .iter()
        .filter(|(name, _)| !OTHERWISE.contains(&name.as_str()))
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    headers.sort();
    let text = side.anonymous(&reply.text());
    let mut lines: Vec<String> = text
        .split_inclusive('\n')
        .map(|line| match serde_json::from_str::<Value>(line) {
            Ok(mut value) => {
                tidy(&mut value);
                value.to_string()
            }
            Err(_) => format!("{line:?}"),
        })
        .collect();
    // The checks of a probe come in any order, and so do events and answers of a watch.
    lines.sort();
    format!("{} {headers:?}\n        {}", reply.status, lines.join("\n        "))
}

/// Removes what differs for good reasons: sizes, and the order of lists that have none. What the
/// parser of JSON has to say is free text.
fn tidy(value: &mut Value) {
    const SIZES: [&str; 7] =
        ["raft_term", "raftTerm", "raftIndex", "raftAppliedIndex", "dbSize", "dbSizeInUse", "hash"];
    const UNORDERED: [&str; 4] = ["leases", "keys", "alarms", "errors"];
    match value {
        Value::Object(fields) => {
            if fields.get("code") == Some(&Value::from(3))
                && let Some(Value::String(message)) = fields.get_mut("message")
                && !message.starts_with("etcdserver:")
            {
                *message = "free text".into();
            }
            for (name, field) in fields {
                match field {
                    Value::Array(list) if UNORDERED.contains(&name.as_str()) => {
                        list.sort_by_key(|item| (item.to_string().len(), item.to_string()));
                    }
                    Value::String(ttl) if name == "TTL" && ttl.len() == 4 => ttl.truncate(1),
                    _ if SIZES.contains(&name.as_str()) => *field = "N".into(),
                    _ => tidy(field),
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(tidy),
        _ => {}
    }
}
