//! The servers of a comparison: started with default flags, on free ports and in directories that
//! go away; stopped and started again; and never outliving the comparison.

use std::fs::{self, File};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use api::etcdserverpb::{RangeRequest, RangeResponse};

use super::Error;
use super::call;
use super::interrupt;
use super::requests::RANGE;

/// How long a server may take to start or to stop.
const PATIENCE: Duration = Duration::from_secs(300);
const LOG_TAIL_BYTES: usize = 2000;

/// One server that runs.
pub struct Server {
    pub name: &'static str,
    pub endpoint: SocketAddr,
    peer: SocketAddr,
    binary: PathBuf,
    dir: PathBuf,
    child: Child,
}

impl Server {
    /// Starts `binary` with its data and its log below `dir`, and waits until it answers.
    pub fn start(name: &'static str, binary: &Path, dir: PathBuf) -> Result<Server, Error> {
        fs::create_dir_all(&dir).map_err(Error::io(format!("cannot create {}", dir.display())))?;
        let [endpoint, peer] = free_addresses().map_err(Error::io("cannot find a free port"))?;
        let child = spawn(binary, &dir, endpoint, peer)?;
        let binary = binary.to_path_buf();
        let mut server = Server { name, endpoint, peer, binary, dir, child };
        server.until_ready()?;
        Ok(server)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Stops the server in good order and starts it again on its data. Returns how long it took to
    /// end, and how long from its start to its first answer to a serializable get.
    pub fn restart(&mut self) -> Result<(Duration, Duration), Error> {
        let begin = Instant::now();
        self.signal(libc::SIGTERM);
        loop {
            match self.child.try_wait().map_err(Error::io("cannot wait for a server"))? {
                Some(_) => break,
                None if begin.elapsed() > PATIENCE => {
                    return Err(Error::NotReady {
                        name: self.name,
                        waited: PATIENCE,
                        log: self.log_tail(),
                    });
                }
                None => thread::sleep(Duration::from_millis(2)),
            }
        }
        let stopped = begin.elapsed();
        let begin = Instant::now();
        self.child = spawn(&self.binary, &self.dir, self.endpoint, self.peer)?;
        self.until_ready()?;
        Ok((stopped, begin.elapsed()))
    }

    fn until_ready(&mut self) -> Result<(), Error> {
        let get =
            RangeRequest { key: b"0".as_slice().into(), serializable: true, ..Default::default() };
        let begin = Instant::now();
        loop {
            let patience = Duration::from_secs(10);
            let got: Result<RangeResponse, Error> =
                call::unary(self.endpoint, RANGE, &get, patience);
            if got.is_ok() {
                return Ok(());
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                let (name, status) = (self.name, status.to_string());
                return Err(Error::Died { name, status, log: self.log_tail() });
            }
            if begin.elapsed() > PATIENCE {
                let (name, waited) = (self.name, PATIENCE);
                return Err(Error::NotReady { name, waited, log: self.log_tail() });
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    fn signal(&self, signal: libc::c_int) {
        // SAFETY: the child has not been waited for yet, so its number is still its own.
        unsafe {
            libc::kill(self.child.id() as libc::pid_t, signal);
        }
    }

    fn log_tail(&self) -> String {
        let log = fs::read(log_path(&self.dir)).unwrap_or_default();
        let tail = &log[log.len().saturating_sub(LOG_TAIL_BYTES)..];
        String::from_utf8_lossy(tail).into_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // An error says that it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The etcd to compare with: where it was said to be, or where the installer puts it.
pub fn find_etcd(named: Option<&str>) -> Result<PathBuf, Error> {
    let looked: Vec<PathBuf> = match named {
        Some(path) => vec![path.into()],
        None => {
            let dir = std::env::var_os("ALTHING_ETCD_DIR");
            let said = dir.map(|dir| Path::new(&dir).join("etcd"));
            let installed = Path::new("target").join(format!("etcd-{}", api::ETCD_VERSION));
            said.into_iter().chain([installed.join("etcd")]).collect()
        }
    };
    match looked.iter().find(|path| path.is_file()) {
        Some(found) => Ok(found.clone()),
        None => Err(Error::NoEtcd { looked }),
    }
}

fn spawn(
    binary: &Path,
    dir: &Path,
    endpoint: SocketAddr,
    peer: SocketAddr,
) -> Result<Child, Error> {
    let not_started = |source| Error::NotStarted { binary: binary.to_path_buf(), source };
    let log = File::options().create(true).append(true).open(log_path(dir)).map_err(not_started)?;
    let log_too = log.try_clone().map_err(not_started)?;
    let mut command = Command::new(binary);
    command
        .arg(format!("--data-dir={}", dir.join("data").display()))
        .arg(format!("--listen-client-urls=http://{endpoint}"))
        .arg(format!("--advertise-client-urls=http://{endpoint}"))
        .arg(format!("--listen-peer-urls=http://{peer}"))
        .arg(format!("--initial-advertise-peer-urls=http://{peer}"))
        .arg(format!("--initial-cluster=default=http://{peer}"))
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(log_too);
    // Whatever the caller's environment sets, both servers run with their defaults.
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("ETCD_") {
            command.env_remove(name);
        }
    }
    // SAFETY: only async-signal-safe calls between fork and exec.
    unsafe {
        command.pre_exec(|| {
            // A server must not outlive a comparison that is killed.
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            interrupt::unblock();
            Ok(())
        });
    }
    command.spawn().map_err(not_started)
}

fn log_path(dir: &Path) -> PathBuf {
    dir.join("log")
}

/// Two loopback addresses nobody listens on. Their ports are below those that the system gives to
/// outgoing connections (from 32768 on), or the generator itself might take them.
fn free_addresses() -> io::Result<[SocketAddr; 2]> {
    let begin = 10_000 + (std::process::id().wrapping_mul(101) % 20_000) as u16;
    let mut free = (begin..32_768).filter_map(|port| TcpListener::bind(("127.0.0.1", port)).ok());
    // Both are held until both are known.
    match (free.next(), free.next()) {
        (Some(a), Some(b)) => Ok([a.local_addr()?, b.local_addr()?]),
        _ => Err(io::Error::other("the loopback has no two free ports")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_etcd_is_an_error_that_says_where_and_how() {
        let error = find_etcd(Some("/nowhere/etcd")).expect_err("there is none");
        let text = error.to_string();
        assert!(text.contains("/nowhere/etcd"), "{text}");
        assert!(text.contains("scripts/install-etcd.sh"), "{text}");
    }

    #[test]
    fn a_server_that_ends_at_once_is_reported_with_its_log() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let started = Server::start("false", Path::new("/bin/false"), dir.path().join("x"));
        let error = started.err().expect("false is no server");
        assert!(error.to_string().contains("ended by itself"), "{error}");
    }
}
