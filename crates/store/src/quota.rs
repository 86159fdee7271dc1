//! What a request costs of the space quota, counted as etcd counts it.

use api::etcdserverpb::request_op::Request;
use api::etcdserverpb::{PutRequest, RequestOp, TxnRequest};

/// A configured quota of 0 means this one; a negative one means none.
pub const DEFAULT_QUOTA_BYTES: i64 = 2 * 1024 * 1024 * 1024;

const PUT_OVERHEAD: usize = 256;
pub const LEASE_GRANT_COST: usize = 64;

pub fn put_cost(request: &PutRequest) -> usize {
    PUT_OVERHEAD + request.key.len() + request.value.len()
}

/// The dearer branch. Zero: no put in either.
pub fn txn_cost(request: &TxnRequest) -> usize {
    let sum = |ops: &[RequestOp]| ops.iter().map(op_cost).sum::<usize>();
    sum(&request.success).max(sum(&request.failure))
}

fn op_cost(op: &RequestOp) -> usize {
    match &op.request {
        Some(Request::RequestPut(put)) => put_cost(put),
        Some(Request::RequestTxn(txn)) => txn_cost(txn),
        _ => 0,
    }
}

/// Whether a store of this size may take so much more.
pub(crate) fn allows(quota_bytes: i64, size: u64, cost: usize) -> bool {
    match quota_bytes {
        _ if cost == 0 => true,
        ..0 => true,
        0 => size + (cost as u64) < DEFAULT_QUOTA_BYTES as u64,
        quota => size + (cost as u64) < quota as u64,
    }
}
