//! From the command line to a member that may start, or to the words and the code that end it.

use crate::aliases;
use crate::draft::Draft;
use crate::entry;
use crate::environment::{self, Refusal};
use crate::file::{self, FileFault};
use crate::flags::clamp;
use crate::grammar::{self, Parsed};
use crate::help;
use crate::host;
use crate::log::{Entry, Level, LogConfig, Logger};
use crate::quote::quote;
use crate::settings::Config;
use crate::unsupported;
use crate::validate::{self, ADVERTISE_UNSET, Fault};
use crate::version;

/// What the command line came to.
#[derive(Debug)]
pub enum Outcome {
    /// Start with these settings, after logging these lines.
    Run(Box<Config>, Vec<Entry>),
    /// Print and exit: help, version, or a flag that cannot be read.
    Print { stdout: String, stderr: String, code: i32 },
    /// Log these lines, as this log is set up, and exit.
    Refused { lines: Vec<Entry>, log: LogConfig, code: i32 },
}

/// A member that may start: its settings and its open log.
#[derive(Debug)]
pub struct Started {
    pub config: Config,
    pub log: Logger,
}

/// Reads the settings of this process, opens its log, and says what there is to say about them.
/// The error is the exit code, and whatever belongs before it was printed or logged already.
pub fn start() -> Result<Started, i32> {
    let args: Vec<String> =
        std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect();
    let environment = std::env::vars_os()
        .map(|(name, value)| (name.to_string_lossy().into(), value.to_string_lossy().into()));
    match Config::from_args(&args, environment) {
        Outcome::Print { stdout, stderr, code } => {
            eprint!("{stderr}");
            print!("{stdout}");
            Err(code)
        }
        Outcome::Refused { lines, log, code } => {
            let logger = Logger::open(&log).or_else(|_| Logger::open(&LogConfig::default()));
            if let Ok(logger) = logger {
                lines.iter().for_each(|line| logger.write(line));
            }
            Err(code)
        }
        Outcome::Run(config, lines) => match Logger::open(&config.log) {
            Ok(log) => {
                lines.iter().for_each(|line| log.write(line));
                Ok(Started { config: *config, log })
            }
            Err(why) => {
                if let Ok(log) = Logger::open(&LogConfig::default()) {
                    log.write(&running(&args));
                    log.write(&failed(&why));
                }
                Err(1)
            }
        },
    }
}

impl Config {
    /// Decides what a command line means. `args` begins with the name of the program. Reads the
    /// config file if one is named, looks whether the data directory was used before, and touches
    /// nothing else.
    pub fn from_args(
        args: &[String],
        environment: impl Iterator<Item = (String, String)>,
    ) -> Outcome {
        let environment: Vec<_> = environment.collect();
        let mut lines = Vec::new();
        if let Some(refused) = refuse_architecture(&environment, &mut lines) {
            return refused;
        }
        let mut draft = Draft::default();
        let flags = args.get(1..).unwrap_or_default();
        let verdict = match grammar::parse(&mut draft, flags) {
            Parsed::Help => {
                let (stdout, stderr) = (help::full(), help::usage());
                return Outcome::Print { stdout, stderr, code: 0 };
            }
            Parsed::Wrong(complaint) => {
                let stderr = format!("{complaint}\n{}", help::usage());
                return Outcome::Print { stdout: String::new(), stderr, code: 2 };
            }
            Parsed::Leftover(word) => {
                Err(Fault::Refused(format!("{} is not a valid flag", quote(&word))))
            }
            Parsed::Fine if draft.print_version => {
                let stdout = help::version();
                return Outcome::Print { stdout, stderr: String::new(), code: 0 };
            }
            Parsed::Fine => match gather(&mut draft, &environment, &mut lines) {
                Ok(verdict) => verdict,
                Err(ended) => return ended,
            },
        };
        finish(draft, args, verdict, lines)
    }
}

/// Reads the file or the environment and validates. `Err` is an end without the usual words.
fn gather(
    draft: &mut Draft,
    environment: &[(String, String)],
    lines: &mut Vec<Entry>,
) -> Result<Result<(), Fault>, Outcome> {
    if draft.config_file.is_empty() {
        let from_env = environment.iter().find(|(name, _)| name == "ETCD_CONFIG_FILE");
        draft.config_file = from_env.map(|(_, value)| value.clone()).unwrap_or_default();
    }
    let mut verdict = if draft.config_file.is_empty() {
        match environment::apply(draft, environment, lines) {
            Err(Refusal::Shadowed(variable)) => {
                lines.push(entry!(
                    Level::Fatal,
                    "conflicting environment variable is shadowed by corresponding command-line \
                     flag (either unset environment variable or disable flag))",
                    "environment-variable" => variable
                ));
                let (lines, log) = (std::mem::take(lines), LogConfig::default());
                return Err(Outcome::Refused { lines, log, code: 1 });
            }
            Err(Refusal::Invalid(why)) => Err(Fault::Refused(why)),
            Ok(()) => settle_flags(draft, lines),
        }
    } else {
        let path = draft.config_file.clone();
        match settle_file(draft, &path, lines) {
            Err(FileFault::Exit(stderr)) => {
                return Err(Outcome::Print { stdout: String::new(), stderr, code: 1 });
            }
            Err(FileFault::Fault(fault)) => {
                // What a refused file said about the log and about names counts for nothing.
                *draft = Draft::default();
                Err(fault)
            }
            Ok(()) => {
                lines.push(entry!(
                    Level::Info,
                    "loaded server configuration, other configuration command line flags and \
                     environment variables will be ignored if provided",
                    "path" => path
                ));
                Ok(())
            }
        }
    };
    match aliases::unary_warning_nanos(draft) {
        Ok(nanos) => draft.config.warning_unary_request_duration = clamp(nanos),
        Err(why) => verdict = Err(Fault::Refused(why)),
    }
    if draft.config.v2_deprecation != "write-only-skip-check" {
        draft.config.v2_deprecation = "write-only".into();
    }
    if draft.is_log_settled {
        let told = aliases::deprecations(draft);
        lines.extend(told.into_iter().map(|told| entry!(Level::Warn, told)));
    }
    Ok(verdict)
}

fn settle_flags(draft: &mut Draft, lines: &mut Vec<Entry>) -> Result<(), Fault> {
    raise_raft_timeouts(&mut draft.config, lines);
    if draft.is_given("listen-client-urls") && !draft.is_given("advertise-client-urls") {
        draft.config.advertise_client_urls.clear();
    }
    let d = &draft.config.discovery;
    let is_discovered = ![&d.url, &d.srv, &d.srv_name].iter().all(|named| named.is_empty())
        || !d.endpoints.is_empty();
    if is_discovered && !draft.is_given("initial-cluster") {
        draft.config.initial_cluster.clear();
    }
    aliases::apply_gates(draft)?;
    if draft.discovery_fallback == "proxy" {
        return Err(Fault::Refused(
            "v2 proxy is deprecated, and --discovery-fallback can't be configured as \"proxy\""
                .into(),
        ));
    }
    validate::validate(draft, lines)
}

/// The file replaces everything that flags said, but for the timeouts between members: etcd keeps
/// those outside its settings, so they survive, and unchecked.
fn settle_file(draft: &mut Draft, path: &str, lines: &mut Vec<Entry>) -> Result<(), FileFault> {
    let (read, write) = (draft.config.raft_read_timeout, draft.config.raft_write_timeout);
    *draft = Draft::default();
    draft.config.raft_read_timeout = read;
    draft.config.raft_write_timeout = write;
    file::read(draft, path)?;
    Ok(validate::validate(draft, lines)?)
}

fn raise_raft_timeouts(config: &mut Config, lines: &mut Vec<Entry>) {
    let least = std::time::Duration::from_secs(5);
    for (name, timeout) in
        [("read", &mut config.raft_read_timeout), ("write", &mut config.raft_write_timeout)]
    {
        if *timeout < least {
            *timeout = least;
            let msg = format!("raft-{name}-timeout increased to minimum value: 5s");
            lines.push(entry!(Level::Info, msg));
        }
    }
}

fn finish(
    mut draft: Draft,
    args: &[String],
    verdict: Result<(), Fault>,
    mut lines: Vec<Entry>,
) -> Outcome {
    let supported = |draft: &Draft| {
        let mut config = draft.config.clone();
        fill_data_dir(&mut config);
        unsupported::check(&config).map_err(Fault::Refused)
    };
    let verdict = verdict.and_then(|()| supported(&draft));
    if let Err(Fault::Panic(why)) = &verdict {
        let stderr = format!("panic: {why}\n");
        return Outcome::Print { stdout: String::new(), stderr, code: 2 };
    }
    lines.push(running(args));
    if let Err(Fault::Refused(why)) = verdict {
        lines.push(failed(&why));
        if why == ADVERTISE_UNSET {
            let msg = "advertise client URLs are not set";
            lines.push(entry!(Level::Warn, msg, "error" => why));
        }
        return Outcome::Refused { lines, log: draft.config.log, code: 1 };
    }
    if !matches!(draft.config.backend_freelist_type.as_str(), "" | "map") {
        lines.push(entry!(
            Level::Warn,
            "--backend-bbolt-freelist-type has no effect; this server's store has no free list"
        ));
    }
    host::complete(&mut draft, &mut lines);
    let mut config = draft.config;
    if fill_data_dir(&mut config) {
        let msg = "'data-dir' was empty; using default";
        lines.push(entry!(Level::Warn, msg, "data-dir" => &config.data_dir));
    }
    Outcome::Run(Box::new(config), lines)
}

fn fill_data_dir(config: &mut Config) -> bool {
    let is_empty = config.data_dir.as_os_str().is_empty();
    if is_empty {
        config.data_dir = format!("{}.etcd", config.name).into();
    }
    is_empty
}

fn running(args: &[String]) -> Entry {
    entry!(Level::Info, "Running: ", "args" => args)
}

fn failed(why: &str) -> Entry {
    entry!(Level::Warn, "failed to verify flags", "error" => why)
}

/// etcd vouches for four architectures; elsewhere the operator has to say that they know.
fn refuse_architecture(
    environment: &[(String, String)],
    lines: &mut Vec<Entry>,
) -> Option<Outcome> {
    let arch = version::go_arch();
    if matches!(arch, "amd64" | "arm64" | "ppc64le" | "s390x") {
        return None;
    }
    let is_known = environment.iter().any(|(k, v)| k == "ETCD_UNSUPPORTED_ARCH" && v == arch);
    if is_known {
        let msg = "running etcd on unsupported architecture since ETCD_UNSUPPORTED_ARCH is set";
        lines.push(entry!(Level::Info, msg, "arch" => arch));
        return None;
    }
    let msg =
        "Refusing to run etcd on unsupported architecture since ETCD_UNSUPPORTED_ARCH is not set";
    let lines = vec![entry!(Level::Error, msg, "arch" => arch)];
    Some(Outcome::Refused { lines, log: LogConfig::default(), code: 1 })
}
