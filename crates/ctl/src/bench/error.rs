//! What can go wrong in a measurement, told to the person who started it.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    Usage(String),

    #[error(
        "cannot connect to {endpoint}: {source}; start a server there, or name another with --endpoints"
    )]
    Refused { endpoint: SocketAddr, source: io::Error },

    #[error("the connection to {endpoint} was lost: {reason}; look into the server's log")]
    Lost { endpoint: SocketAddr, reason: String },

    #[error(
        "{endpoint} has not answered for {}s, with {outstanding} requests waiting; it hangs or is \
         overloaded",
        silence.as_secs()
    )]
    Silent { endpoint: SocketAddr, outstanding: usize, silence: Duration },

    #[error("{endpoint} answered {path} with code {code}: {message}")]
    Failed { endpoint: SocketAddr, path: &'static str, code: u8, message: String },

    #[error("cannot read what process {pid} uses: {source}; give the server's process id to --pid")]
    NoProcess { pid: u32, source: io::Error },

    #[error(
        "no etcd to compare with; looked at {}; install one with scripts/install-etcd.sh, or name \
         its path with --etcd",
        list(.looked)
    )]
    NoEtcd { looked: Vec<PathBuf> },

    #[error("cannot start {binary}: {source}")]
    NotStarted { binary: PathBuf, source: io::Error },

    #[error("{name} was not ready after {}s; the end of its log says:\n{log}", waited.as_secs())]
    NotReady { name: &'static str, waited: Duration, log: String },

    #[error("{name} ended by itself ({status}); the end of its log says:\n{log}")]
    Died { name: &'static str, status: String, log: String },

    #[error("{what}: {source}")]
    Io { what: String, source: io::Error },
}

impl Error {
    pub fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let what = what.into();
        move |source| Error::Io { what, source }
    }
}

fn list(paths: &[PathBuf]) -> String {
    let shown: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    shown.join(", ")
}
