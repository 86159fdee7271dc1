//! Transactions written as text:
//!
//! ```text
//! if ver(a)=0 value(b)>x  then [put a 1] [get b] [txn if .. then ..]  else [del a z prev]
//! ```

use api::etcdserverpb::compare::{CompareResult, CompareTarget, TargetUnion};
use api::etcdserverpb::request_op::Request;
use api::etcdserverpb::{
    Compare, DeleteRangeRequest, PutRequest, RangeRequest, RequestOp, TxnRequest,
};
use bytes::Bytes;

pub fn txn(text: &str) -> TxnRequest {
    let spaced = text.replace('[', " [ ").replace(']', " ] ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut words = &words[..];
    let txn = parse_txn(&mut words);
    assert!(words.is_empty(), "behind the transaction: {words:?}");
    txn
}

fn parse_txn(words: &mut &[&str]) -> TxnRequest {
    let mut txn = TxnRequest::default();
    if take(words, "if") {
        while let Some(word) = words.first().filter(|word| !["then", "else", "]"].contains(word)) {
            txn.compare.push(compare(word));
            *words = &words[1..];
        }
    }
    if take(words, "then") {
        parse_ops(words, &mut txn.success);
    }
    if take(words, "else") {
        parse_ops(words, &mut txn.failure);
    }
    txn
}

fn parse_ops(words: &mut &[&str], ops: &mut Vec<RequestOp>) {
    while take(words, "[") {
        let request = if take(words, "txn") {
            Some(Request::RequestTxn(parse_txn(words)))
        } else {
            let end = words.iter().position(|word| *word == "]").expect("an op ends with ]");
            let (op, rest) = words.split_at(end);
            *words = rest;
            parse_op(op)
        };
        assert!(take(words, "]"), "an op ends with ], found {words:?}");
        ops.push(RequestOp { request });
    }
}

fn parse_op(words: &[&str]) -> Option<Request> {
    match words {
        [] => None,
        ["get", args @ ..] => Some(Request::RequestRange(range(args))),
        ["put", args @ ..] => Some(Request::RequestPut(put(args))),
        ["del", args @ ..] => Some(Request::RequestDeleteRange(delete(args))),
        _ => panic!("no such op: {words:?}"),
    }
}

/// `\0` stands for a zero byte, and `''` for nothing.
pub fn bytes(word: &str) -> Bytes {
    match word {
        "''" => Bytes::new(),
        _ => Bytes::from(word.replace("\\0", "\0")),
    }
}

pub fn range(args: &[&str]) -> RangeRequest {
    let mut request = RangeRequest::default();
    let mut place = 0;
    for arg in args {
        let number = |text: &str| text.parse::<i64>().expect("a number");
        match arg.split_once('=') {
            Some(("rev", value)) => request.revision = number(value),
            Some(("limit", value)) => request.limit = number(value),
            Some(("order", value)) => request.sort_order = number(value) as i32,
            Some(("target", value)) => request.sort_target = number(value) as i32,
            Some(("min_mod", value)) => request.min_mod_revision = number(value),
            Some(("max_mod", value)) => request.max_mod_revision = number(value),
            Some(("min_create", value)) => request.min_create_revision = number(value),
            Some(("max_create", value)) => request.max_create_revision = number(value),
            Some(_) => panic!("no such option: {arg}"),
            None if *arg == "keys_only" => request.keys_only = true,
            None if *arg == "count_only" => request.count_only = true,
            None if *arg == "serializable" => request.serializable = true,
            None if place == 0 => (request.key, place) = (bytes(arg), 1),
            None => request.range_end = bytes(arg),
        }
    }
    request
}

pub fn put(args: &[&str]) -> PutRequest {
    let mut request = PutRequest::default();
    let mut place = 0;
    for arg in args {
        match *arg {
            "prev" => request.prev_kv = true,
            "ignore_value" => request.ignore_value = true,
            "ignore_lease" => request.ignore_lease = true,
            _ if arg.starts_with("lease=") => {
                request.lease = arg["lease=".len()..].parse().expect("a number");
            }
            _ if place == 0 => (request.key, place) = (bytes(arg), 1),
            _ => request.value = bytes(arg),
        }
    }
    request
}

pub fn delete(args: &[&str]) -> DeleteRangeRequest {
    let mut request = DeleteRangeRequest::default();
    let mut place = 0;
    for arg in args {
        match *arg {
            "prev" => request.prev_kv = true,
            _ if place == 0 => (request.key, place) = (bytes(arg), 1),
            _ => request.range_end = bytes(arg),
        }
    }
    request
}

/// `target(key)=operand` or `target(key,end)=operand`, with `=`, `!=`, `<` or `>`.
fn compare(word: &str) -> Compare {
    let (target, rest) = word.split_once('(').expect("a target");
    let (keys, rest) = rest.split_once(')').expect("a key");
    let (key, range_end) = keys.split_once(',').unwrap_or((keys, ""));
    let at = rest.find(|c: char| !"!=<>".contains(c)).unwrap_or(rest.len());
    let (result, operand) = rest.split_at(at);
    let result = match result {
        "=" => CompareResult::Equal,
        "!=" => CompareResult::NotEqual,
        ">" => CompareResult::Greater,
        "<" => CompareResult::Less,
        _ => panic!("no such comparison: {result}"),
    };
    let number = || operand.parse().expect("a number");
    let (target, union) = match target {
        "ver" => (CompareTarget::Version, TargetUnion::Version(number())),
        "create" => (CompareTarget::Create, TargetUnion::CreateRevision(number())),
        "mod" => (CompareTarget::Mod, TargetUnion::ModRevision(number())),
        "value" => (CompareTarget::Value, TargetUnion::Value(bytes(operand))),
        "lease" => (CompareTarget::Lease, TargetUnion::Lease(number())),
        _ => panic!("no such target: {target}"),
    };
    Compare {
        result: result as i32,
        target: target as i32,
        key: bytes(key),
        range_end: bytes(range_end),
        target_union: Some(union),
    }
}

fn take(words: &mut &[&str], word: &str) -> bool {
    let taken = words.first() == Some(&word);
    if taken {
        *words = &words[1..];
    }
    taken
}
