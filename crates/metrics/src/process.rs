//! The process as Linux sees it, read from `/proc` at each scrape, and what dashboards made for
//! Go programs ask for.

use crate::page::{Collect, Page, Samples};
use std::fs;

/// What `/proc` says about this process. What cannot be read is zero: a scrape never fails.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Process {
    pub cpu_seconds: f64,
    pub start_seconds: f64,
    pub threads: u64,
    pub cores: u64,
    pub resident_bytes: u64,
    /// The resident memory that is not of a file: heap and stacks.
    pub anonymous_bytes: u64,
    pub stack_bytes: u64,
    pub virtual_bytes: u64,
    /// `u64::MAX` for no limit.
    pub virtual_bytes_max: u64,
    pub open_fds: u64,
    pub fds_max: u64,
    pub network_received_bytes: u64,
    pub network_sent_bytes: u64,
}

/// The kernel tells times to programs in this unit on every architecture Linux has today.
const TICKS_PER_SECOND: f64 = 100.0;

impl Process {
    /// This process, now.
    pub fn read() -> Process {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let mut process = Process::parse(
            &read("/proc/self/stat"),
            &read("/proc/self/status"),
            &read("/proc/self/limits"),
            &read("/proc/self/net/netstat"),
            &read("/proc/stat"),
        );
        process.open_fds = fs::read_dir("/proc/self/fd").map_or(0, |fds| fds.count() as u64);
        process.cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
        process
    }

    fn parse(stat: &str, status: &str, limits: &str, netstat: &str, system: &str) -> Process {
        // The second field is the program's name in parentheses, which may hold anything.
        let fields: Vec<&str> =
            stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
        let ticks = |field: usize| number(fields.get(field - 3).copied()) as f64;
        let booted = number(line(system, "btime")) as f64;
        let kilobytes = |name: &str| number(line(status, name)) * 1024;
        let (received, sent) = octets(netstat);
        Process {
            cpu_seconds: (ticks(14) + ticks(15)) / TICKS_PER_SECOND,
            start_seconds: booted + ticks(22) / TICKS_PER_SECOND,
            threads: number(line(status, "Threads:")),
            resident_bytes: kilobytes("VmRSS:"),
            anonymous_bytes: kilobytes("RssAnon:"),
            stack_bytes: kilobytes("VmStk:"),
            virtual_bytes: kilobytes("VmSize:"),
            virtual_bytes_max: limit(limits, "Max address space"),
            fds_max: limit(limits, "Max open files"),
            network_received_bytes: received,
            network_sent_bytes: sent,
            ..Process::default()
        }
    }

    pub(crate) fn render(&self, tasks: u64, page: &mut Page) {
        page.counter("process_cpu_seconds_total", "Processor time used.", self.cpu_seconds);
        page.gauge("process_max_fds", "File descriptors allowed.", self.fds_max);
        page.gauge("process_open_fds", "File descriptors in use.", self.open_fds);
        page.gauge("os_fd_limit", "File descriptors allowed.", self.fds_max);
        page.gauge("os_fd_used", "File descriptors in use.", self.open_fds);
        page.gauge("process_resident_memory_bytes", "Memory that is in RAM.", self.resident_bytes);
        page.gauge("process_virtual_memory_bytes", "Address space in use.", self.virtual_bytes);
        page.gauge(
            "process_virtual_memory_max_bytes",
            "Address space allowed.",
            self.virtual_bytes_max,
        );
        page.gauge(
            "process_start_time_seconds",
            "When the process began, in seconds since 1970.",
            self.start_seconds,
        );
        page.counter(
            "process_network_receive_bytes_total",
            "Bytes received by the network namespace of the process.",
            self.network_received_bytes,
        );
        page.counter(
            "process_network_transmit_bytes_total",
            "Bytes sent by the network namespace of the process.",
            self.network_sent_bytes,
        );
        self.render_as_go(tasks, page);
    }

    /// There is no Go runtime here. Panels that show threads, tasks and memory get the nearest
    /// thing that is true; what only a garbage collector has is zero.
    fn render_as_go(&self, tasks: u64, page: &mut Page) {
        let runtime = [("version", crate::RUNTIME)];
        page.labelled_gauge(
            "go_info",
            "The language the server is written in.",
            &[(&runtime, 1.0)],
        );
        page.gauge("go_goroutines", "Tasks of the async runtime.", tasks.max(self.threads));
        page.gauge("go_threads", "Threads of the process.", self.threads);
        page.gauge("go_sched_gomaxprocs_threads", "Processors the server may use.", self.cores);
        page.gauge("go_gc_gogc_percent", "No garbage collector: always 0.", 0u64);
        page.gauge(
            "go_gc_gomemlimit_bytes",
            "No limit of the heap: the largest integer.",
            i64::MAX,
        );
        page.family("go_gc_duration_seconds", "No garbage collector: always 0.", &NoPauses);
        let heap = self.anonymous_bytes.saturating_sub(self.stack_bytes);
        let memory: [(&'static str, u64); 9] = [
            ("go_memstats_alloc_bytes", heap),
            ("go_memstats_heap_alloc_bytes", heap),
            ("go_memstats_heap_inuse_bytes", heap),
            ("go_memstats_heap_sys_bytes", heap),
            ("go_memstats_next_gc_bytes", heap),
            ("go_memstats_stack_inuse_bytes", self.stack_bytes),
            ("go_memstats_stack_sys_bytes", self.stack_bytes),
            ("go_memstats_sys_bytes", self.resident_bytes),
            (
                "go_memstats_other_sys_bytes",
                self.resident_bytes.saturating_sub(self.anonymous_bytes),
            ),
        ];
        for (name, bytes) in memory {
            page.gauge(name, "Resident memory, by the nearest name Go has for it.", bytes);
        }
        for name in [
            "go_memstats_buck_hash_sys_bytes",
            "go_memstats_gc_sys_bytes",
            "go_memstats_heap_idle_bytes",
            "go_memstats_heap_objects",
            "go_memstats_heap_released_bytes",
            "go_memstats_last_gc_time_seconds",
            "go_memstats_mcache_inuse_bytes",
            "go_memstats_mcache_sys_bytes",
            "go_memstats_mspan_inuse_bytes",
            "go_memstats_mspan_sys_bytes",
        ] {
            page.gauge(name, "Nothing here corresponds to it: always 0.", 0u64);
        }
        for name in [
            "go_memstats_alloc_bytes_total",
            "go_memstats_frees_total",
            "go_memstats_mallocs_total",
        ] {
            page.counter(name, "Allocations are not counted: always 0.", 0u64);
        }
    }
}

/// What follows `name` on the line that begins with it.
fn line<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name))
}

/// The first word as a number.
fn number(text: Option<&str>) -> u64 {
    let word = text.and_then(|text| text.split_whitespace().next());
    word.and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// The soft limit of that name.
fn limit(limits: &str, name: &str) -> u64 {
    let value = line(limits, name).unwrap_or("");
    if value.trim_start().starts_with("unlimited") { u64::MAX } else { number(Some(value)) }
}

/// Bytes in and out: a line of names and a line of numbers.
fn octets(netstat: &str) -> (u64, u64) {
    let mut lines = netstat.lines().filter_map(|line| line.strip_prefix("IpExt:"));
    let names = lines.next().unwrap_or("").split_whitespace();
    let numbers = lines.next().unwrap_or("").split_whitespace();
    let mut octets = (0, 0);
    for (name, value) in names.zip(numbers) {
        match name {
            "InOctets" => octets.0 = number(Some(value)),
            "OutOctets" => octets.1 = number(Some(value)),
            _ => {}
        }
    }
    octets
}

struct NoPauses;

impl Collect for NoPauses {
    const KIND: &'static str = "summary";

    fn collect(&self, samples: &mut Samples) {
        for quantile in ["0", "0.25", "0.5", "0.75", "1"] {
            samples.line("", &[], Some(("quantile", quantile)), 0.0);
        }
        samples.line("_sum", &[], None, 0.0);
        samples.line("_count", &[], None, 0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_is_read_field_by_field() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194560 9 0 0 0 150 50 0 0 20 0 3 0 1000 1 2";
        let status = "Name:\ta\nVmSize:\t  20 kB\nVmRSS:\t   10 kB\nRssAnon:\t  6 kB\n\
             VmStk:\t 1 kB\nThreads:\t3\n";
        let limits = "Limit  Soft Limit  Hard Limit  Units\n\
             Max open files            1024                 4096                 files\n\
             Max address space         unlimited            unlimited            bytes\n";
        let netstat = "IpExt: InNoRoutes InOctets OutOctets\nIpExt: 1 22 33\n";
        let process = Process::parse(stat, status, limits, netstat, "cpu 1\nbtime 5000\n");
        let expected = Process {
            cpu_seconds: 2.0,
            start_seconds: 5010.0,
            threads: 3,
            resident_bytes: 10240,
            anonymous_bytes: 6144,
            stack_bytes: 1024,
            virtual_bytes: 20480,
            virtual_bytes_max: u64::MAX,
            fds_max: 1024,
            network_received_bytes: 22,
            network_sent_bytes: 33,
            ..Process::default()
        };
        assert_eq!(process, expected);
    }

    #[test]
    fn an_unreadable_proc_is_all_zeros() {
        assert_eq!(Process::parse("", "", "", "", ""), Process::default());
    }

    #[test]
    fn this_process_exists() {
        let process = Process::read();
        assert!(process.threads > 0 && process.resident_bytes > 0 && process.open_fds > 0);
    }
}
