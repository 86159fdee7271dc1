//! A server process with any flags, and the log that it leaves.

use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Nothing that is waited for takes this long unless it never comes.
const WAIT_MAX: Duration = Duration::from_secs(60);

pub struct Process {
    child: Child,
    log: PathBuf,
    pub endpoint: String,
}

impl Process {
    /// Starts it so that it may have only so many files open, and waits until it serves.
    pub fn start_with_files(data: &Path, files: u32, flags: &[&str]) -> Process {
        let limited = data.with_extension("sh");
        let althing = testkit::althing();
        let script = format!("#!/bin/sh\nulimit -n {files}\nexec {} \"$@\"\n", althing.display());
        std::fs::write(&limited, script).expect("the temporary directory is writable");
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&limited, executable).expect("the file is ours");
        let mut process = Process::spawn_binary(&limited, data, flags);
        process.wait_for_log("ready to serve client requests");
        process
    }

    /// Starts Althing on a data directory and on ports that nobody uses.
    pub fn spawn(data: &Path, flags: &[&str]) -> Process {
        Process::spawn_binary(&testkit::althing(), data, flags)
    }

    fn spawn_binary(binary: &Path, data: &Path, flags: &[&str]) -> Process {
        let client = free_address();
        let mut all = vec![
            format!("--listen-client-urls=http://{client}"),
            format!("--advertise-client-urls=http://{client}"),
            format!("--listen-peer-urls=http://{}", free_address()),
        ];
        // Later flags win.
        all.extend(flags.iter().map(|flag| (*flag).to_string()));
        let mut process = Process::spawn_with(binary, data, &all);
        process.endpoint = client;
        process
    }

    /// Starts any program with just these flags and a data directory.
    pub fn spawn_with(binary: &Path, data: &Path, flags: &[String]) -> Process {
        let log = data.with_extension("log");
        let stderr = File::create(&log).expect("the temporary directory is writable");
        let child = Command::new(binary)
            .arg(format!("--data-dir={}", data.display()))
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()
            .expect("the server can be started");
        Process { child, log, endpoint: String::new() }
    }

    /// Starts it and waits until it serves.
    pub fn start(data: &Path, flags: &[&str]) -> Process {
        let mut process = Process::spawn(data, flags);
        process.wait_for_log("ready to serve client requests");
        process
    }

    /// Starts it and expects that it does not want to. Returns why.
    pub fn refuses(data: &Path, flags: &[&str]) -> String {
        let mut process = Process::spawn(data, flags);
        let status = process.wait();
        let log = process.log();
        assert_eq!(status.code(), Some(1), "{status}: {log}");
        let last = log.lines().last().expect("it says why");
        let line: serde_json::Value = serde_json::from_str(last).expect("the log is JSON");
        assert_eq!(line["level"], "fatal", "{line}");
        line["error"].as_str().expect("the error is text").to_string()
    }

    pub fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    pub fn wait_for_log(&mut self, text: &str) {
        let began = Instant::now();
        while !self.log().contains(text) {
            let ended = self.child.try_wait().expect("our child can be waited for");
            let late = began.elapsed() > WAIT_MAX;
            assert!(ended.is_none() && !late, "no {text:?} in its log:\n{}", self.log());
            sleep(Duration::from_millis(10));
        }
    }

    pub fn signal(&self, signal: libc::c_int) {
        let pid = libc::pid_t::try_from(self.child.id()).expect("process ids are small");
        // SAFETY: the process is our child and has not been waited for, so the id is still its.
        let sent = unsafe { libc::kill(pid, signal) };
        assert_eq!(sent, 0, "a child can be signalled");
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("our child can be waited for") {
                return status;
            }
            assert!(began.elapsed() < WAIT_MAX, "it does not end; its log:\n{}", self.log());
            sleep(Duration::from_millis(10));
        }
    }

    pub fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        self.child.wait().expect("our child can be waited for");
    }

    /// Its memory in bytes, as far as it is really there.
    pub fn resident_bytes(&self) -> u64 {
        let statm = std::fs::read_to_string(format!("/proc/{}/statm", self.child.id()));
        let statm = statm.expect("the process runs");
        let pages: u64 = statm.split(' ').nth(1).and_then(|n| n.parse().ok()).expect("a number");
        pages * 4096
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().collect();
            eprintln!("the end of its log:");
            lines[lines.len().saturating_sub(15)..].iter().for_each(|line| eprintln!("  {line}"));
        }
    }
}

pub use testkit::free_address;
