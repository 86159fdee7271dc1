//! What the operator asked for: flags, `ETCD_*` variables, the config file, and how we talk back.
//!
//! In:  the command line, the environment, perhaps a file.
//! Out: one plain [`Config`] with every setting typed, and the lines to log; or the text and the
//!      exit code that end the process, word for word etcd 3.6's where etcd has words for it.
//!
//! Beside it live the small things a process needs before it serves anything: the log ([`log`]),
//! the signals that end it ([`exit`]), the note to the init system ([`notify`]).
//!
//! This room opens no listener, creates no data directory and starts no thread except the log's
//! compression of old files. What it cannot honour yet it refuses by name ([`mod@unsupported`]):
//! a setting is never silently dropped.

mod aliases;
mod bootstrap;
mod command_line;
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
pub mod log;
pub mod memory;
pub mod notify;
mod quote;
mod retention;
mod settings;
mod size;
mod start_line;
pub mod unsupported;
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
