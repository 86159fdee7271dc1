//! What the operator asked for: flags, `ETCD_*` variables, the config file, and how we talk back.
//!
//! In:  the command line, the environment, perhaps a file.
//! Out: one plain [`Config`] with every setting typed, and the lines to log; or the text and the
//!      exit code that end the process, word for word etcd 3.6's where etcd has words for it.
//!
//! Beside it live the small things a process needs before it serves anything: the log ([`log`]),
//! the signals that end it ([`exit`]), the note to the init system ([`notify`]).
//!
//! How a server starts with it:
//!
//! ```no_run
//! use config::exit;
//!
//! let signals = exit::Signals::block().expect("signals can be blocked"); // before any thread
//! let config::Started { config, log } = match config::start() {
//!     Ok(started) => started,
//!     Err(code) => std::process::exit(code), // the operator has been told
//! };
//! config::info!(log, "ready to serve client requests");
//! let signal = signals.wait();
//! config::info!(log, "received signal; shutting down", "signal" => signal.as_str());
//! exit::end_by(signal);
//! ```
//!
//! This room opens no listener and no store, and starts no thread but the one that compresses old
//! log files. What it cannot honour yet it refuses by name (`unsupported`): a setting is never
//! silently dropped.

mod aliases;
mod bootstrap;
mod command_line;
pub mod data_dir;
mod draft;
mod duration;
mod environment;
pub mod exit;
mod file;
mod file_keys;
mod flags;
mod gates;
mod grammar;
mod help;
mod host;
mod ids;
pub mod limits;
pub mod log;
pub mod notify;
mod quote;
mod remarks;
mod retention;
mod settings;
mod size;
mod start_line;
mod unsupported;
pub mod urls;
mod validate;
mod version;
mod yaml;

pub use bootstrap::InitialCluster;
pub use command_line::{Outcome, Started, start};
pub use duration::{format_duration, format_go_duration, parse_go_duration};
pub use gates::{Gate, Gates, Stage};
pub use ids::{cluster_id, member_id};
pub use retention::{CompactionMode, Retention};
pub use settings::{ClusterState, Config, Discovery, Tls};
pub use size::humanise;
pub use start_line::start_line;
pub use urls::{Scheme, Url};
pub use version::{ALTHING_VERSION, ETCD_VERSION, go_version};
