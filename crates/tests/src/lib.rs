//! Tests that need whole processes, or many rooms. There is no code here: see `tests/`.
//!
//! - `differential`: the same requests to a real etcd and to ours, and every answer compared.
//! - `etcdctl`: every command group of the real etcdctl, against both, and what it shows compared.
//! - `crash`: kill -9 in a loop under load; whatever was acknowledged is there afterwards.
//! - `faults`: what the world can do to a server: damaged files, full disks, hostile connections.
//! - `survives`: requests that a real etcd dies of.
//! - `decoders`: the entries of the fuzzer, on its corpus and on damaged copies of it.
