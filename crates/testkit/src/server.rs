//! One server process.

use crate::ports::free_port;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// What both servers log once clients can be served.
const READY: &str = "ready to serve client requests";
/// A busy machine starts a server slowly; only a stuck one takes this long.
const START_MAX: Duration = Duration::from_secs(60);

/// A running server with its own data directory, killed when dropped.
pub struct Server {
    binary: PathBuf,
    flags: Vec<String>,
    dir: TempDir,
    child: Child,
    starts: u32,
    pub client_port: u16,
    pub peer_port: u16,
}

impl Server {
    /// Starts `binary` as a cluster of one member and waits until it serves.
    pub fn start(binary: &Path, flags: &[&str]) -> Server {
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        let (client_port, peer_port) = (free_port(), free_port());
        let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_string()).collect();
        let child = spawn(binary, &flags, dir.path(), client_port, peer_port, 1);
        let binary = binary.to_path_buf();
        let mut server = Server { binary, flags, dir, child, starts: 1, client_port, peer_port };
        server.wait_until_ready();
        server
    }

    /// The address that clients connect to.
    pub fn endpoint(&self) -> String {
        format!("127.0.0.1:{}", self.client_port)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn data_dir(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// What the server has logged since its last start.
    pub fn log(&self) -> String {
        let path = log_path(self.dir.path(), self.starts);
        String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned()
    }

    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// kill -9.
    pub fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        self.child.wait().expect("our child can be waited for");
    }

    /// Asks politely and waits for the end.
    pub fn terminate(&mut self) -> ExitStatus {
        let pid = libc::pid_t::try_from(self.child.id()).expect("process ids are small");
        // SAFETY: the process is our child and has not been waited for, so the id is still its.
        unsafe { libc::kill(pid, libc::SIGTERM) };
        self.child.wait().expect("our child can be waited for")
    }

    /// Starts it again on the same data and the same ports, after `kill` or `terminate`.
    pub fn restart(&mut self) {
        assert!(!self.is_running(), "the server still runs");
        self.starts += 1;
        self.child = spawn(
            &self.binary,
            &self.flags,
            self.dir.path(),
            self.client_port,
            self.peer_port,
            self.starts,
        );
        self.wait_until_ready();
    }

    fn wait_until_ready(&mut self) {
        let began = Instant::now();
        while !self.log().contains(READY) {
            if !self.is_running() || began.elapsed() > START_MAX {
                panic!("{} does not serve; its log:\n{}", self.binary.display(), self.log());
            }
            sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            let log = self.log();
            let tail: Vec<&str> = log.lines().rev().take(20).collect();
            eprintln!("the last lines of {}:", self.binary.display());
            tail.iter().rev().for_each(|line| eprintln!("  {line}"));
        }
    }
}

fn spawn(
    binary: &Path,
    flags: &[String],
    dir: &Path,
    client_port: u16,
    peer_port: u16,
    start: u32,
) -> Child {
    let client = format!("http://127.0.0.1:{client_port}");
    let peer = format!("http://127.0.0.1:{peer_port}");
    let log = File::create(log_path(dir, start)).expect("the temporary directory is writable");
    Command::new(binary)
        .arg("--name=member")
        .arg(format!("--data-dir={}", dir.join("data").display()))
        .arg(format!("--listen-client-urls={client}"))
        .arg(format!("--advertise-client-urls={client}"))
        .arg(format!("--listen-peer-urls={peer}"))
        .arg(format!("--initial-advertise-peer-urls={peer}"))
        .arg(format!("--initial-cluster=member={peer}"))
        .args(flags)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap_or_else(|e| panic!("{} cannot be started: {e}", binary.display()))
}

fn log_path(dir: &Path, start: u32) -> PathBuf {
    dir.join(format!("log.{start}"))
}
