//! What operators run beside the server: commands that are clients of any etcd-compatible endpoint.
//!
//! In:  command-line arguments. Out: text or JSON on stdout, an exit code.
//!
//! The load generator `bench` is here. Nothing in this room reads a data directory or knows how the
//! server works inside: what it learns, it learns over the wire or from `/proc`.

mod bench;

use std::ffi::OsString;

/// Runs `althing bench ARGS` and returns the exit code: 0, 1 when something failed or was answered
/// with errors, 2 when the arguments were wrong.
pub fn bench(args: impl Iterator<Item = OsString>) -> i32 {
    bench::main(args)
}
