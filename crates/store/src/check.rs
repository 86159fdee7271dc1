//! What the receiving member checks about a request before anything is proposed, in etcd's order,
//! and which transactions need not be proposed at all.

use std::collections::HashSet;

use api::Error;
use api::etcdserverpb::range_request::{SortOrder, SortTarget};
use api::etcdserverpb::request_op::Request;
use api::etcdserverpb::{DeleteRangeRequest, PutRequest, RangeRequest, RequestOp, TxnRequest};
use bytes::Bytes;

pub fn check_range(request: &RangeRequest) -> Result<(), Error> {
    if request.key.is_empty() {
        return Err(Error::EMPTY_KEY);
    }
    let order = SortOrder::try_from(request.sort_order);
    let target = SortTarget::try_from(request.sort_target);
    if order.is_err() || target.is_err() {
        return Err(Error::INVALID_SORT_OPTION);
    }
    Ok(())
}

/// What RangeStream refuses beyond what Range does.
pub fn check_range_stream(request: &RangeRequest) -> Result<(), Error> {
    check_range(request)?;
    let key_order = request.sort_order() == SortOrder::None
        || request.sort_order() == SortOrder::Ascend && request.sort_target() == SortTarget::Key;
    if !key_order {
        return Err(Error::RANGE_STREAM_SORT);
    }
    let filters = [
        request.min_mod_revision,
        request.max_mod_revision,
        request.min_create_revision,
        request.max_create_revision,
    ];
    if filters != [0; 4] {
        return Err(Error::RANGE_STREAM_FILTER);
    }
    Ok(())
}

pub fn check_put(request: &PutRequest) -> Result<(), Error> {
    if request.key.is_empty() {
        return Err(Error::EMPTY_KEY);
    }
    if request.ignore_value && !request.value.is_empty() {
        return Err(Error::VALUE_PROVIDED);
    }
    if request.ignore_lease && request.lease != 0 {
        return Err(Error::LEASE_PROVIDED);
    }
    Ok(())
}

pub fn check_delete_range(request: &DeleteRangeRequest) -> Result<(), Error> {
    if request.key.is_empty() { Err(Error::EMPTY_KEY) } else { Ok(()) }
}

/// Deeper transactions could be received, but not read back from the log, where they lie one level
/// deeper and the decoder's limit of a hundred levels would be passed.
const TXN_DEPTH_MAX: usize = 49;

/// Both branches are checked, whichever will run.
pub fn check_txn(request: &TxnRequest, ops_max: usize) -> Result<(), Error> {
    check_ops(request, ops_max, TXN_DEPTH_MAX)?;
    touched_keys(&request.success)?;
    touched_keys(&request.failure)?;
    Ok(())
}

/// Every op of both branches is a range, so no consensus is needed. A nested transaction makes it
/// go through the log, even if that only reads.
pub fn is_read_only_txn(request: &TxnRequest) -> bool {
    all_ops(request).all(|op| matches!(op.request, Some(Request::RequestRange(_))))
}

/// Every op of both branches is a serializable range (also if there are none), so not even the
/// read barrier is needed.
pub fn is_serializable_txn(request: &TxnRequest) -> bool {
    all_ops(request)
        .all(|op| matches!(&op.request, Some(Request::RequestRange(range)) if range.serializable))
}

fn all_ops(request: &TxnRequest) -> impl Iterator<Item = &RequestOp> {
    request.success.iter().chain(&request.failure)
}

fn check_ops(request: &TxnRequest, ops_max: usize, depth_max: usize) -> Result<(), Error> {
    let ops = request.compare.len().max(request.success.len()).max(request.failure.len());
    let (Some(ops_left), Some(depth_left)) = (ops_max.checked_sub(ops), depth_max.checked_sub(1))
    else {
        return Err(Error::TOO_MANY_OPS);
    };
    if request.compare.iter().any(|compare| compare.key.is_empty()) {
        return Err(Error::EMPTY_KEY);
    }
    for op in all_ops(request) {
        match &op.request {
            Some(Request::RequestRange(request)) => check_range(request)?,
            Some(Request::RequestPut(request)) => check_put(request)?,
            Some(Request::RequestDeleteRange(request)) => check_delete_range(request)?,
            Some(Request::RequestTxn(request)) => check_ops(request, ops_left, depth_left)?,
            None => return Err(Error::KEY_NOT_FOUND),
        }
    }
    Ok(())
}

/// The keys that a list of ops may put, and the intervals that it may delete.
#[derive(Default)]
struct Touched<'a> {
    puts: HashSet<&'a Bytes>,
    deletes: Vec<&'a DeleteRangeRequest>,
}

impl Touched<'_> {
    /// etcd takes the end of a range literally here: "from key on" (`\0`) is an interval that ends
    /// before it begins, and so conflicts with nothing.
    fn deletes(&self, key: &Bytes) -> bool {
        self.deletes.iter().any(|delete| match delete.range_end.is_empty() {
            true => delete.key == key,
            false => delete.key <= key && *key < delete.range_end,
        })
    }
}

/// No key may be put twice, or put and deleted, in one list of ops. Nested transactions count with
/// both branches; only those two may put the same key, because just one of them runs. Of sibling
/// transactions a put is noticed only behind the delete, which is etcd's quirk.
fn touched_keys(ops: &[RequestOp]) -> Result<Touched<'_>, Error> {
    let mut touched = Touched::default();
    for op in ops {
        if let Some(Request::RequestDeleteRange(delete)) = &op.request {
            touched.deletes.push(delete);
        }
    }
    for op in ops {
        let Some(Request::RequestTxn(txn)) = &op.request else { continue };
        let success = touched_keys(&txn.success)?;
        let failure = touched_keys(&txn.failure)?;
        for key in &success.puts {
            if touched.puts.contains(key) || touched.deletes(key) {
                return Err(Error::DUPLICATE_KEY);
            }
        }
        for key in &failure.puts {
            if touched.puts.contains(key) || touched.deletes(key) {
                return Err(Error::DUPLICATE_KEY);
            }
        }
        touched.puts.extend(success.puts);
        touched.puts.extend(failure.puts);
        touched.deletes.extend(success.deletes);
        touched.deletes.extend(failure.deletes);
    }
    for op in ops {
        let Some(Request::RequestPut(put)) = &op.request else { continue };
        if touched.deletes(&put.key) || !touched.puts.insert(&put.key) {
            return Err(Error::DUPLICATE_KEY);
        }
    }
    Ok(touched)
}
