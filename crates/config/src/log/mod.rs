//! The log: one line per event, in the shape of zap's JSON that etcd's users parse.
//!
//! ```
//! # let (log, lines) = config::log::Logger::capture();
//! # let took = std::time::Duration::from_micros(2830);
//! # let size_bytes = 77824u64;
//! # let error = std::io::Error::other("no space left on device");
//! config::info!(log, "opened backend db", "path" => "d/member/store", "took" => took);
//! config::warn!(log, "slow fdatasync", "size" => size_bytes, "error" => %error);
//! # assert_eq!(lines.take().len(), 2);
//! ```
//!
//! In:  a level, a message, and fields in the order in which they should be read.
//! Out: lines on stderr, stdout, files (rotated or not) or the journal.
//!
//! A line below the level costs one comparison: its fields are not even evaluated. A message that
//! repeats more than a hundred times a second is thinned to every hundredth, so that a broken peer
//! cannot drown the log. There is no stack trace, and nothing here ever ends the process: `fatal!`
//! writes a line, and exiting is the caller's decision.

mod caller;
mod clock;
mod encode;
mod journal;
mod output;
mod rotate;
mod sample;
mod value;

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::SystemTime;

use output::Outputs;
pub(crate) use output::reason as output_reason;
pub use rotate::Rotation;
use sample::Sampler;
pub use value::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    Debug,
    Info,
    Warn,
    Error,
    Dpanic,
    Panic,
    Fatal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Json,
    Console,
}

/// Where lines go and which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogConfig {
    pub level: Level,
    pub format: Format,
    /// `default`, `stderr`, `stdout`, `systemd/journal`, or the paths of files.
    pub outputs: Vec<String>,
    /// How the one file among the outputs is rotated.
    pub rotation: Option<Rotation>,
}

/// One event, ready to be written. Made by the macros, or by [`crate::entry!`] to be logged later.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub level: Level,
    pub msg: Cow<'static, str>,
    /// `file!()` of whoever speaks.
    pub file: &'static str,
    pub line: u32,
    pub fields: Vec<(Cow<'static, str>, Value)>,
}

/// A handle on the log. Clones write to the same place.
#[derive(Clone)]
pub struct Logger {
    level: Level,
    name: Option<&'static str>,
    shared: Arc<Shared>,
}

struct Shared {
    format: Format,
    clock: fn() -> SystemTime,
    sampler: Option<Mutex<Sampler>>,
    outputs: Mutex<Outputs>,
}

impl Default for LogConfig {
    fn default() -> Self {
        let outputs = vec!["default".to_string()];
        Self { level: Level::Info, format: Format::Json, outputs, rotation: None }
    }
}

impl Logger {
    /// Opens all outputs. The error is what etcd says when it cannot.
    pub fn open(config: &LogConfig) -> Result<Self, String> {
        let outputs = Outputs::open(config)?;
        // The journal thins by itself, and etcd does not sample what goes there.
        let sampler = (!outputs.is_journal()).then(|| Mutex::new(Sampler::default()));
        Ok(Self::with(config.level, config.format, SystemTime::now, sampler, outputs))
    }

    /// A logger for tests: every line from debug upwards is kept in memory, at a fixed time.
    pub fn capture() -> (Self, Captured) {
        let captured = Captured::default();
        let outputs = Outputs::captured(captured.clone());
        let clock = || SystemTime::UNIX_EPOCH;
        (Self::with(Level::Debug, Format::Json, clock, None, outputs), captured)
    }

    /// A logger that drops everything.
    pub fn discard() -> Self {
        Self::with(Level::Fatal, Format::Json, SystemTime::now, None, Outputs::nowhere())
    }

    fn with(
        level: Level,
        format: Format,
        clock: fn() -> SystemTime,
        sampler: Option<Mutex<Sampler>>,
        outputs: Outputs,
    ) -> Self {
        let shared = Shared { format, clock, sampler, outputs: Mutex::new(outputs) };
        Self { level, name: None, shared: Arc::new(shared) }
    }

    /// The same log under a name, as `raft` has one.
    pub fn named(&self, name: &'static str) -> Self {
        Self { name: Some(name), ..self.clone() }
    }

    /// Whether a line of this level would be written.
    pub fn is_on(&self, level: Level) -> bool {
        level >= self.level
    }

    /// Writes one event, if its level is on. Never fails: a log that cannot be written must not
    /// stop a server that can still serve.
    pub fn write(&self, entry: &Entry) {
        if !self.is_on(entry.level) {
            return;
        }
        let now = (self.shared.clock)();
        if let Some(sampler) = &self.shared.sampler {
            let mut sampler = sampler.lock().unwrap_or_else(PoisonError::into_inner);
            if !sampler.admits(entry.level, &entry.msg, now) {
                return;
            }
        }
        let mut line = String::with_capacity(256);
        match self.shared.format {
            Format::Json => encode::json(&mut line, self.name, entry, now),
            Format::Console => encode::console(&mut line, self.name, entry, now),
        }
        let mut outputs = self.shared.outputs.lock().unwrap_or_else(PoisonError::into_inner);
        outputs.write(entry, &line);
    }
}

impl fmt::Debug for Logger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Logger").field("level", &self.level).field("name", &self.name).finish()
    }
}

/// Lines kept in memory for a test.
#[derive(Clone, Default)]
pub struct Captured(Arc<Mutex<Vec<String>>>);

impl Captured {
    /// The lines written since the last call, without their line ends.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn push(&self, line: &str) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push(line.trim_end_matches('\n').to_string());
    }
}

static GLOBAL: OnceLock<Logger> = OnceLock::new();

/// Makes `logger` the one that [`global`] hands out. The first call wins; later ones do nothing.
pub fn set_global(logger: Logger) {
    let _ = GLOBAL.set(logger);
}

/// The log of this process; discards everything until [`set_global`] was called.
pub fn global() -> &'static Logger {
    static SILENT: OnceLock<Logger> = OnceLock::new();
    GLOBAL.get().unwrap_or_else(|| SILENT.get_or_init(Logger::discard))
}

impl Level {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
            Self::Dpanic => "dpanic",
            Self::Panic => "panic",
            Self::Fatal => "fatal",
        }
    }

    /// A level by name, in upper or lower case; empty is info.
    pub fn parse(name: &str) -> Option<Self> {
        let all = [
            Self::Debug,
            Self::Info,
            Self::Warn,
            Self::Error,
            Self::Dpanic,
            Self::Panic,
            Self::Fatal,
        ];
        if name.is_empty() {
            return Some(Self::Info);
        }
        all.into_iter().find(|level| level.as_str().eq_ignore_ascii_case(name))
    }
}

/// An [`log::Entry`](crate::log::Entry): level, message, then `"key" => value` pairs. A value is
/// anything [`log::Value`](crate::log::Value) is made from; `%value` takes whatever can be shown.
#[macro_export]
macro_rules! entry {
    ($level:expr, $msg:expr $(, $($fields:tt)*)?) => {
        $crate::log::Entry {
            level: $level,
            msg: ::std::borrow::Cow::from($msg),
            file: file!(),
            line: line!(),
            fields: $crate::__fields!([] $($($fields)*)?),
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __fields {
    ([$($done:tt)*]) => { vec![$($done)*] };
    ([$($done:tt)*] $key:literal => %$value:expr $(, $($rest:tt)*)?) => {
        $crate::__fields!(
            [$($done)* (::std::borrow::Cow::from($key), $crate::log::Value::show(&$value)),]
            $($($rest)*)?
        )
    };
    ([$($done:tt)*] $key:literal => $value:expr $(, $($rest:tt)*)?) => {
        $crate::__fields!(
            [$($done)* (::std::borrow::Cow::from($key), $crate::log::Value::from($value)),]
            $($($rest)*)?
        )
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __log {
    ($log:expr, $level:ident, $($event:tt)*) => {{
        let log: &$crate::log::Logger = &$log;
        if log.is_on($crate::log::Level::$level) {
            log.write(&$crate::entry!($crate::log::Level::$level, $($event)*));
        }
    }};
}

/// What only someone hunting a fault wants to read.
#[macro_export]
macro_rules! debug { ($log:expr, $($event:tt)*) => { $crate::__log!($log, Debug, $($event)*) }; }

/// What happened, as planned.
#[macro_export]
macro_rules! info { ($log:expr, $($event:tt)*) => { $crate::__log!($log, Info, $($event)*) }; }

/// What the operator should look at.
#[macro_export]
macro_rules! warn { ($log:expr, $($event:tt)*) => { $crate::__log!($log, Warn, $($event)*) }; }

/// What failed.
#[macro_export]
macro_rules! error { ($log:expr, $($event:tt)*) => { $crate::__log!($log, Error, $($event)*) }; }

/// The last words before the caller ends the process.
#[macro_export]
macro_rules! fatal { ($log:expr, $($event:tt)*) => { $crate::__log!($log, Fatal, $($event)*) }; }
