//! What a process has used so far, as the kernel counts it.

use std::fs;
use std::time::Duration;

use super::Error;

/// CPU time and memory of one process at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// User and system time of all its threads, those that have ended included. The kernel counts
    /// in ticks of mostly 10 ms, so runs should last a second or more.
    pub cpu: Duration,
    pub rss_bytes: u64,
    /// The most it ever had resident.
    pub rss_peak_bytes: u64,
}

/// Reads what the process `pid` has used.
pub fn usage(pid: u32) -> Result<Usage, Error> {
    let read = |name: &str| {
        fs::read_to_string(format!("/proc/{pid}/{name}"))
            .map_err(|source| Error::NoProcess { pid, source })
    };
    let ticks = cpu_ticks(&read("stat")?);
    let status = read("status")?;
    let parsed = ticks.zip(status_kib(&status, "VmRSS")).zip(status_kib(&status, "VmHWM"));
    let Some(((ticks, rss), peak)) = parsed else {
        // A zombie has no memory lines.
        let source = std::io::Error::other("it has ended");
        return Err(Error::NoProcess { pid, source });
    };
    Ok(Usage {
        cpu: Duration::from_secs_f64(ticks as f64 / ticks_per_second()),
        rss_bytes: rss * 1024,
        rss_peak_bytes: peak * 1024,
    })
}

/// CPU time of this process itself, to the microsecond.
pub fn own_cpu() -> Duration {
    // SAFETY: a rusage is plain numbers, for which zero is a value, and the pointer is to a local.
    let used = unsafe {
        let mut used: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut used);
        used
    };
    let time = |t: libc::timeval| {
        Duration::from_secs(t.tv_sec as u64) + Duration::from_micros(t.tv_usec as u64)
    };
    time(used.ru_utime) + time(used.ru_stime)
}

/// utime + stime of `/proc/PID/stat`. The name of the program comes second, in parentheses, and
/// may itself hold spaces and parentheses; so fields are counted from the last one.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let after_name = &stat[stat.rfind(')')? + 1..];
    let mut fields = after_name.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

/// One line of `/proc/PID/status` such as `VmRSS:  123 kB`.
fn status_kib(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

fn ticks_per_second() -> f64 {
    // SAFETY: sysconf only reads a constant of the system.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    if ticks > 0 { ticks as f64 } else { 100.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_found_behind_an_awkward_name() {
        let stat = "4242 (a (b) 1 2) S 1 4242 4242 0 -1 4194560 900 0 3 0 \
                    1234 766 0 0 20 0 9 0 100 200 300 18446744073709551615";
        assert_eq!(cpu_ticks(stat), Some(2000));
        assert_eq!(cpu_ticks("4242 (cut"), None);
        assert_eq!(cpu_ticks("4242 (cut) S 1 2"), None);
    }

    #[test]
    fn memory_lines_are_found_by_their_whole_name() {
        let status = "Name:\tx\nVmHWM:\t  2048 kB\nVmRSS:\t    1024 kB\nVmRSSx:\t 1 kB\n";
        assert_eq!(status_kib(status, "VmRSS"), Some(1024));
        assert_eq!(status_kib(status, "VmHWM"), Some(2048));
        assert_eq!(status_kib(status, "VmR"), None);
        assert_eq!(status_kib("Name:\tx\n", "VmRSS"), None);
    }

    #[test]
    fn this_process_can_be_read() {
        let usage = usage(std::process::id()).expect("this process runs");
        assert!(usage.rss_bytes > 0 && usage.rss_peak_bytes >= usage.rss_bytes);
    }

    #[test]
    fn a_process_that_does_not_exist_is_named() {
        let error = usage(u32::MAX).expect_err("no pid is that large");
        assert!(error.to_string().contains("4294967295"), "{error}");
    }
}
