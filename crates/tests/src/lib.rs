//! Tests that need whole processes. There is no code here: see `tests/`.
//!
//! - `differential`: the same requests to a real etcd and to ours, and every answer compared.
//! - `survives`: requests that a real etcd dies of.
