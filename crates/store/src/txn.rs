//! Transactions: compare first, then check, then act.
//!
//! All compares of the transaction, and of the nested ones that will run, see the state before it.
//! Then every op that will run is checked against that same state. Only then is anything written,
//! so a transaction that is refused has changed nothing; and the same entry is refused everywhere.

use api::KeyRange;
use api::etcdserverpb::compare::{CompareResult, CompareTarget, TargetUnion};
use api::etcdserverpb::request_op::Request;
use api::etcdserverpb::{Compare, PutRequest, RequestOp, TxnRequest};
use std::cmp::Ordering;

use crate::applied::{ReadError, Reply};
use crate::index::Found;
use crate::range;
use crate::shared::Shared;
use crate::wire;
use crate::write::Write;

/// Which branch each transaction takes: the outer one first, nested ones in the order they run.
type Path = Vec<bool>;

/// Carries a transaction out. The caller ends the write.
pub(crate) fn apply(
    shared: &Shared,
    write: &mut Write<'_>,
    request: &TxnRequest,
) -> Result<Vec<u8>, ReadError> {
    let mut path = Path::new();
    decide(shared, request, shared.revision(), &mut path)?;
    check(shared, request, &path)?;
    let mut body = Vec::new();
    execute(shared, write, request, &mut path.iter().copied(), &mut body)?;
    Ok(body)
}

/// Answers a transaction of ranges from one revision, without the log.
pub(crate) fn read_only(shared: &Shared, request: &TxnRequest) -> Result<Reply, ReadError> {
    loop {
        let current = shared.revision();
        match read_only_at(shared, request, current) {
            // Compacted away while we read; the answer is that of a newer revision then.
            Err(ReadError::Refused(error))
                if error == api::Error::COMPACTED
                    && current < shared.compacted()
                    && current < shared.revision() => {}
            other => return other,
        }
    }
}

fn read_only_at(shared: &Shared, request: &TxnRequest, current: i64) -> Result<Reply, ReadError> {
    let mut path = Path::new();
    decide(shared, request, current, &mut path)?;
    let succeeded = path[0];
    let ops = if succeeded { &request.success } else { &request.failure };
    for op in ops {
        if let Some(Request::RequestRange(range)) = &op.request {
            check_revision(shared, range.revision, current)?;
        }
    }
    let mut body = Vec::new();
    wire::put_bool_field(&mut body, 2, succeeded);
    for op in ops {
        let Some(Request::RequestRange(range)) = &op.request else { continue };
        let mut response = nested_header(current);
        range::read(shared, range, current, &mut response)?;
        put_response(&mut body, 1, &response);
    }
    Ok(Reply { revision: current, body: body.into() })
}

fn branch(request: &TxnRequest, succeeded: bool) -> &[RequestOp] {
    if succeeded { &request.success } else { &request.failure }
}

/// Evaluates the compares, outer before inner, against the state at `at`.
fn decide(
    shared: &Shared,
    request: &TxnRequest,
    at: i64,
    path: &mut Path,
) -> Result<(), ReadError> {
    let mut succeeded = true;
    for compare in &request.compare {
        if !holds(shared, compare, at)? {
            succeeded = false;
            break;
        }
    }
    path.push(succeeded);
    for op in branch(request, succeeded) {
        if let Some(Request::RequestTxn(nested)) = &op.request {
            decide(shared, nested, at, path)?;
        }
    }
    Ok(())
}

/// A compare over a range must hold for every key in it, and for a missing key if there is none.
fn holds(shared: &Shared, compare: &Compare, at: i64) -> Result<bool, ReadError> {
    let range = KeyRange::new(compare.key.clone(), compare.range_end.clone());
    let by_row = matches!(
        CompareTarget::try_from(compare.target),
        Ok(CompareTarget::Value | CompareTarget::Lease)
    );
    let mut keys = 0;
    let mut after: Option<Box<[u8]>> = None;
    let mut chunk = Vec::new();
    loop {
        {
            let index = shared.index.read();
            after = index.walk(&range, after.as_deref(), at, range::CHUNK_KEYS, |_, found| {
                keys += 1;
                chunk.push(found);
                true
            });
            range::not_compacted(shared, at)?;
        }
        for found in chunk.drain(..) {
            let row = if by_row { Some(shared.row(found.modified, at)?) } else { None };
            if !holds_for(compare, Some((found, row.as_deref().unwrap_or_default()))) {
                return Ok(false);
            }
        }
        if after.is_none() {
            return Ok(keys > 0 || holds_for(compare, None));
        }
    }
}

/// Reads "actual OP given". A given value of another kind than the target counts as zero or empty;
/// unknown targets are equal, and unknown operators are satisfied.
fn holds_for(compare: &Compare, actual: Option<(Found, &[u8])>) -> bool {
    let given = compare.target_union.as_ref();
    let (found, row) = actual.unzip();
    let kv = row.map(wire::Kv::read).unwrap_or_default();
    let order = match CompareTarget::try_from(compare.target) {
        Ok(CompareTarget::Value) => {
            // A missing key has no value, so nothing can be said about it, not even "differs".
            if actual.is_none() {
                return false;
            }
            match given {
                Some(TargetUnion::Value(given)) => kv.value.cmp(given),
                _ => kv.value.cmp(b""),
            }
        }
        Ok(CompareTarget::Version) => {
            let version = found.map_or(0, |found| found.version);
            version.cmp(&match given {
                Some(TargetUnion::Version(given)) => *given,
                _ => 0,
            })
        }
        Ok(CompareTarget::Create) => {
            let created = found.map_or(0, |found| found.created);
            created.cmp(&match given {
                Some(TargetUnion::CreateRevision(given)) => *given,
                _ => 0,
            })
        }
        Ok(CompareTarget::Mod) => {
            let modified = found.map_or(0, |found| found.modified.main);
            modified.cmp(&match given {
                Some(TargetUnion::ModRevision(given)) => *given,
                _ => 0,
            })
        }
        Ok(CompareTarget::Lease) => kv.lease.cmp(&match given {
            Some(TargetUnion::Lease(given)) => *given,
            _ => 0,
        }),
        Err(_) => Ordering::Equal,
    };
    match CompareResult::try_from(compare.result) {
        Ok(CompareResult::Equal) => order.is_eq(),
        Ok(CompareResult::NotEqual) => order.is_ne(),
        Ok(CompareResult::Greater) => order.is_gt(),
        Ok(CompareResult::Less) => order.is_lt(),
        Err(_) => true,
    }
}

/// Checks every op that will run before the first one does.
fn check(shared: &Shared, request: &TxnRequest, path: &Path) -> Result<(), ReadError> {
    let mut ops = Vec::new();
    flatten(request, &mut path.iter().copied(), &mut ops);
    for op in &ops {
        match op {
            Request::RequestRange(range) => {
                check_revision(shared, range.revision, shared.revision())?;
            }
            Request::RequestPut(put) => {
                // The other way round than a plain put, and callers see which.
                must_exist(shared, put)?;
                must_have_lease(shared, put)?;
            }
            Request::RequestDeleteRange(_) | Request::RequestTxn(_) => {}
        }
    }
    for (at, op) in ops.iter().enumerate() {
        if let Request::RequestPut(put) = op {
            must_survive(put, &ops[..at])?;
        }
    }
    Ok(())
}

/// Unlike a plain range, a negative revision is one that was compacted, once anything was.
fn check_revision(shared: &Shared, revision: i64, current: i64) -> Result<(), api::Error> {
    match revision {
        0 => Ok(()),
        _ if revision > current => Err(api::Error::FUTURE_REVISION),
        _ => range::not_compacted(shared, revision),
    }
}

/// "Delete from key on" escapes the check for overlaps, so a put that keeps the value of what was
/// just deleted comes through to here. etcd dies of it; we refuse the whole transaction.
fn must_survive(put: &PutRequest, earlier: &[&Request]) -> Result<(), api::Error> {
    if !put.ignore_value && !put.ignore_lease {
        return Ok(());
    }
    let exists = earlier.iter().rev().find_map(|op| match op {
        Request::RequestPut(earlier) if earlier.key == put.key => Some(true),
        Request::RequestDeleteRange(delete) => {
            let range = KeyRange::new(delete.key.clone(), delete.range_end.clone());
            range.contains(&put.key).then_some(false)
        }
        _ => None,
    });
    if exists == Some(false) { Err(api::Error::KEY_NOT_FOUND) } else { Ok(()) }
}

/// A put with a lease needs the lease.
pub(crate) fn must_have_lease(shared: &Shared, put: &PutRequest) -> Result<(), api::Error> {
    if put.lease != 0 && !shared.leases.read().contains(put.lease) {
        return Err(api::Error::LEASE_NOT_FOUND);
    }
    Ok(())
}

/// A put that keeps something needs the key.
pub(crate) fn must_exist(shared: &Shared, put: &PutRequest) -> Result<(), api::Error> {
    let keeps = put.ignore_value || put.ignore_lease;
    if keeps && shared.index.read().newest(&put.key).is_none() {
        return Err(api::Error::KEY_NOT_FOUND);
    }
    Ok(())
}

/// The ops that will run, in order.
fn flatten<'a>(
    request: &'a TxnRequest,
    path: &mut impl Iterator<Item = bool>,
    ops: &mut Vec<&'a Request>,
) {
    let succeeded = path.next().expect("the path has a step for each transaction on it");
    for op in branch(request, succeeded) {
        match &op.request {
            Some(Request::RequestTxn(nested)) => flatten(nested, path, ops),
            Some(request) => ops.push(request),
            None => {}
        }
    }
}

/// Runs the ops and writes the fields of a `TxnResponse` behind its header.
fn execute(
    shared: &Shared,
    write: &mut Write<'_>,
    request: &TxnRequest,
    path: &mut impl Iterator<Item = bool>,
    body: &mut Vec<u8>,
) -> Result<(), ReadError> {
    let succeeded = path.next().expect("the path has a step for each transaction on it");
    wire::put_bool_field(body, 2, succeeded);
    for op in branch(request, succeeded) {
        match &op.request {
            Some(Request::RequestRange(range)) => {
                let mut response = nested_header(write.revision());
                range::read(shared, range, write.revision(), &mut response)?;
                put_response(body, 1, &response);
            }
            Some(Request::RequestPut(put)) => {
                let before = write.put(put)?;
                let mut response = nested_header(write.main());
                if let Some(row) = before {
                    wire::put_message(&mut response, 2, &row);
                }
                put_response(body, 2, &response);
            }
            Some(Request::RequestDeleteRange(delete)) => {
                let (deleted, rows) = write.delete_range(delete)?;
                let mut response = nested_header(write.revision());
                put_deleted(&mut response, deleted, &rows);
                put_response(body, 3, &response);
            }
            Some(Request::RequestTxn(nested)) => {
                let mut response = Vec::new();
                wire::put_message(&mut response, 1, b"");
                execute(shared, write, nested, path, &mut response)?;
                put_response(body, 4, &response);
            }
            None => wire::put_message(body, 3, b""),
        }
    }
    Ok(())
}

pub(crate) fn put_deleted(body: &mut Vec<u8>, deleted: i64, rows: &[bytes::Bytes]) {
    wire::put_int_field(body, 2, deleted);
    for row in rows {
        wire::put_message(body, 3, row);
    }
}

/// Ops within a transaction know only their revision.
fn nested_header(revision: i64) -> Vec<u8> {
    let mut header = Vec::with_capacity(12);
    wire::put_int_field(&mut header, 3, revision);
    let mut response = Vec::with_capacity(16);
    wire::put_message(&mut response, 1, &header);
    response
}

/// One `ResponseOp` of a `TxnResponse`.
fn put_response(body: &mut Vec<u8>, kind: u32, response: &[u8]) {
    let length = wire::message_len(kind, response.len());
    wire::put_varint(body, 3 << 3 | 2);
    wire::put_varint(body, length as u64);
    wire::put_message(body, kind, response);
}
