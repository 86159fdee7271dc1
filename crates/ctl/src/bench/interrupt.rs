//! What a comparison leaves behind when it is interrupted: nothing.
//!
//! SIGINT and SIGTERM are blocked, and one thread waits for them; it removes the data directories
//! and ends the process. The servers end with it, because they asked the kernel for that when they
//! were started.

use std::path::PathBuf;
use std::thread;

/// From now on an interruption removes `dir`. Call it before other threads are started, so that
/// they leave the signals to the one that waits.
pub fn clean_up_on_interrupt(dir: PathBuf) {
    let set = awaited();
    // SAFETY: the set is a live local.
    unsafe {
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
    }
    thread::spawn(move || {
        let set = awaited();
        let mut number = 0;
        // SAFETY: both pointers are to live locals.
        while unsafe { libc::sigwait(&set, &mut number) } != 0 {}
        eprintln!("althing bench: interrupted");
        // The servers still write there; what appears meanwhile is caught by the next attempt.
        for _ in 0..10 {
            if std::fs::remove_dir_all(&dir).is_ok() {
                break;
            }
        }
        std::process::exit(128 + number);
    });
}

/// Undoes the blocking, for a program that is about to be started. Async-signal-safe.
pub fn unblock() {
    let set = awaited();
    // SAFETY: the set is a live local.
    unsafe {
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut());
    }
}

fn awaited() -> libc::sigset_t {
    // SAFETY: a signal set is plain bits, and sigemptyset makes it a valid one.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGINT);
        libc::sigaddset(&mut set, libc::SIGTERM);
        set
    }
}
