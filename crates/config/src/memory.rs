//! `--memory-mlock`: the process stays in RAM.

use std::io;

/// Locks all pages, those of today and those to come. Needs the privilege to do so.
pub fn lock() -> io::Result<()> {
    // SAFETY: the call takes no pointers; it only changes how pages are kept.
    match unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
