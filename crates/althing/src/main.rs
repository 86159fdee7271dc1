//! One binary: the server, and beside it what operators run.

use config::exit::{self, Signals};
use std::process::exit;

fn main() {
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|command| command == "bench") {
        exit(ctl::bench(args));
    }
    tame_malloc();
    serve();
}

fn serve() {
    // Before any thread is started, so that all of them leave the signals to this one.
    let signals = match Signals::block() {
        Ok(signals) => signals,
        Err(error) => {
            eprintln!("althing: cannot take over the signals: {error}");
            exit(1);
        }
    };
    let started = match config::start() {
        Ok(started) => started,
        Err(code) => exit(code),
    };
    match server::run(started.config, started.log, signals) {
        Ok(signal) => exit::end_by(signal),
        Err(code) => exit(code),
    }
}

/// glibc keeps small freed blocks apart and merges them all at once at some later moment; after a
/// compaction of a million keys that moment takes a third of a second. Without those lists each
/// block is merged when it is freed.
fn tame_malloc() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it only sets an option of the allocator, before any thread is started.
    unsafe {
        libc::mallopt(libc::M_MXFAST, 0);
    }
}
