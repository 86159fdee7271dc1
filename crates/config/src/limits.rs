//! What the system allows this process: memory that stays, and files at once.

use std::io;

use crate::entry;
use crate::log::{Entry, Level};

/// Descriptors that the server keeps for itself; the rest is for clients.
pub const FILES_RESERVED: u64 = 150;

/// `--memory-mlock`: locks all pages in RAM, those of today and those to come. Needs the privilege.
pub fn lock_memory() -> io::Result<()> {
    // SAFETY: the call takes no pointers; it only changes how pages are kept.
    match unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// How many files this process may have open, after asking for all that it may ask for.
///
/// The soft limit of 1024 that most systems give is for programs that use `select`. etcd has more
/// without asking, because every program in Go raises it.
pub fn open_files_max() -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a live local.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let raised = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
    // SAFETY: the pointer is to a live local.
    match unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raised) } {
        0 => Ok(raised.rlim_cur),
        // Some systems allow less than they say. What there is will have to do.
        _ => Ok(limit.rlim_cur),
    }
}

/// How many connections one client listener may accept under a limit of open files; the error is
/// the last line before exit 1.
pub fn connections_max(open_files_max: u64) -> Result<u64, Entry> {
    if open_files_max > FILES_RESERVED {
        return Ok(open_files_max - FILES_RESERVED);
    }
    Err(entry!(
        Level::Fatal,
        "file descriptor limit of etcd process is too low; please set higher",
        "limit" => open_files_max,
        "recommended-limit" => FILES_RESERVED
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_get_what_the_server_does_not_need() {
        assert_eq!(connections_max(1024).ok(), Some(874));
        assert_eq!(connections_max(151).ok(), Some(1));
        assert_eq!(connections_max(150).unwrap_err().level, Level::Fatal);
    }

    #[test]
    fn the_soft_limit_of_open_files_is_raised() {
        let low = libc::rlimit { rlim_cur: 256, rlim_max: libc::RLIM_INFINITY };
        let mut limit = low;
        // SAFETY: the pointers are to live locals.
        unsafe {
            libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
            limit.rlim_cur = low.rlim_cur.min(limit.rlim_max);
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
        assert_eq!(open_files_max().unwrap(), limit.rlim_max);
    }
}
