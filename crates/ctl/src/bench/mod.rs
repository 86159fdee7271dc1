//! The load generator: how fast, how cheap and how steady an etcd-compatible server is.
//!
//! In:  the address of any server that speaks etcd's API. Out: throughput, latencies, and what the
//! server's process spent.
//!
//! ```text
//!   load      closed loop of puts and ranges        line       one connection
//!   fan_out   writers and watchers                  requests   keys, values, encoding
//!   stall     slowest request under maintenance     histogram, process, report   figures
//!   compare   all of it, on etcd and on Althing     servers    starting and stopping them
//! ```
//!
//! A stock gRPC client costs as much CPU as the server it asks, and on the same machine the figures
//! then say little about the server. So this one is `httpcore`'s client on one thread, with requests
//! encoded beforehand and answers counted but not decoded.

mod call;
mod compare;
mod error;
mod fan_out;
mod flags;
mod histogram;
mod interrupt;
mod line;
mod load;
mod process;
mod report;
mod requests;
mod servers;
mod stall;
mod table;

pub use error::Error;

use std::ffi::OsString;
use std::time::Duration;

use flags::{Flag, Flags, flag};
use load::Stop;
use report::{Report, time_text};
use requests::{KeySpace, Mixed, Puts, Random, Ranges};

const SERVER: &[Flag] = &[
    flag("endpoints", "LIST", "host:port of the servers, with commas [127.0.0.1:2379]"),
    flag("pid", "PID", "the server's process: measures its CPU time and memory"),
    flag("output", "FORMAT", "text or json [text]"),
];
const CLIENTS: &[Flag] = &[
    flag("connections", "N", "connections to open [1]"),
    flag("clients", "N", "clients, each with one request outstanding [1]"),
    flag("total", "N", "requests to make [10000]"),
    flag("seconds", "S", "run for so long instead of a total"),
    flag("warmup", "S", "seconds of the same load before measuring [0]"),
    flag("threads", "N", "threads of the generator; one drives most servers [1]"),
];
const KEYS: &[Flag] = &[
    flag("key-size", "BYTES", "size of a key [16]"),
    flag("key-space", "N", "different keys [10000]"),
    flag("sequential", "", "keys in order [random]"),
    flag("random", "", "keys at random, the default"),
    flag("seed", "N", "of what is random [1]"),
];
const VALUES: &[Flag] = &[flag("val-size", "BYTES", "size of a value [256]")];
const RANGES: &[Flag] = &[
    flag("consistency", "C", "l (linearizable) or s (serializable) [l]"),
    flag("limit", "N", "read up to N keys from a key on, not a single key"),
];
const MIX: &[Flag] = &[flag("reads", "PERCENT", "share of reads [50]")];
const WATCHES: &[Flag] = &[
    flag("connections", "N", "connections of the watchers; writers have one more [16]"),
    flag("clients", "N", "writers, each with one put outstanding [1]"),
    flag("watchers", "N", "watchers, spread over the connections [500]"),
    flag("streams", "N", "watch streams, spread likewise [one for each watcher]"),
    flag("prefix", "", "watch the keys with a prefix, not the one key"),
    flag("total", "N", "puts to make [1000]"),
    flag("seconds", "S", "put for so long instead of a total"),
    flag("warmup", "N", "puts before measuring [20]"),
];
const STALLS: &[Flag] = &[
    flag("keys", "N", "keys to load first [100000]"),
    flag("revisions", "R", "revisions of each [5]"),
    flag("rate", "N", "puts per second, and gets per second, meanwhile [100]"),
    flag("settle", "S", "seconds to go on after each call [2]"),
];

struct Command {
    name: &'static str,
    about: &'static str,
    flags: &'static [&'static [Flag]],
    run: fn(&Flags) -> Result<bool, Error>,
}

const COMMANDS: &[Command] = &[
    Command {
        name: "put",
        about: "writes keys",
        flags: &[SERVER, CLIENTS, KEYS, VALUES],
        run: put,
    },
    Command {
        name: "range",
        about: "reads keys, one at a time or several in order",
        flags: &[SERVER, CLIENTS, KEYS, RANGES],
        run: range,
    },
    Command {
        name: "mixed",
        about: "writes and reads at random",
        flags: &[SERVER, CLIENTS, KEYS, VALUES, RANGES, MIX],
        run: mixed,
    },
    Command {
        name: "watch",
        about: "writes one key that many watch, until all have seen every put",
        flags: &[SERVER, WATCHES, VALUES],
        run: watch,
    },
    Command {
        name: "stall",
        about: "finds the slowest request while the server compacts and defragments",
        flags: &[SERVER, STALLS, KEYS, VALUES],
        run: stall,
    },
    Command {
        name: "compare",
        about: "starts etcd and Althing side by side and prints the ratios",
        flags: &[compare::FLAGS],
        run: compare::run,
    },
];

/// Runs one command and says what went wrong, if anything did.
pub fn main(mut args: impl Iterator<Item = OsString>) -> i32 {
    let name = args.next().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if ["", "help", "--help", "-h"].contains(&name.as_str()) {
        print!("{}", overview());
        return if name.is_empty() { 2 } else { 0 };
    }
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        eprintln!("althing bench: unknown command {name:?}\n\n{}", overview());
        return 2;
    };
    let args: Vec<OsString> = args.collect();
    if args.iter().any(|arg| arg == "--help" || arg == "-h") {
        print!("{}", command.help());
        return 0;
    }
    let flags = Flags::parse(args.into_iter(), command.flags);
    match flags.and_then(|flags| (command.run)(&flags)) {
        Ok(true) => 0,
        Ok(false) => 1,
        Err(Error::Usage(what)) => {
            eprintln!("althing bench {name}: {what}; see althing bench {name} --help");
            2
        }
        Err(error) => {
            eprintln!("althing bench {name}: {error}");
            1
        }
    }
}

impl Command {
    fn help(&self) -> String {
        let (name, about) = (self.name, self.about);
        let flags = flags::help(self.flags);
        format!("althing bench {name} {about}.\n\nUsage: althing bench {name} [FLAGS]\n\n{flags}")
    }
}

fn overview() -> String {
    let mut text = "althing bench measures any server that speaks etcd's API.\n\n\
                    Usage: althing bench COMMAND [FLAGS]\n\n"
        .to_string();
    for command in COMMANDS {
        text.push_str(&format!("  {:<9} {}\n", command.name, command.about));
    }
    text.push_str("\nalthing bench COMMAND --help lists the flags of a command.\n");
    text
}

fn put(flags: &Flags) -> Result<bool, Error> {
    let (plan, keys) = (plan(flags)?, key_space(flags)?);
    let value_bytes = value_bytes(flags)?;
    let puts = |thread| Puts::new(keys.keys(thread, plan.threads), value_bytes);
    let outcome = load::run(&plan, puts)?;
    print_load(flags, format!("put, values of {value_bytes} bytes"), "put", &plan, &outcome)
}

fn range(flags: &Flags) -> Result<bool, Error> {
    let (plan, keys) = (plan(flags)?, key_space(flags)?);
    let (serializable, limit) = range_options(flags)?;
    let ranges = |thread| Ranges::new(keys.keys(thread, plan.threads), serializable, limit);
    let outcome = load::run(&plan, ranges)?;
    let kind = if serializable { "serializable" } else { "linearizable" };
    print_load(flags, format!("range, {kind}"), "range", &plan, &outcome)
}

fn mixed(flags: &Flags) -> Result<bool, Error> {
    let (plan, keys) = (plan(flags)?, key_space(flags)?);
    let (value_bytes, (serializable, limit)) = (value_bytes(flags)?, range_options(flags)?);
    let read_percent = flags.number("reads")?.unwrap_or(50);
    if read_percent > 100 {
        return Err(Error::Usage(format!("--reads={read_percent}: a percentage is at most 100")));
    }
    let source = |thread| Mixed {
        puts: Puts::new(keys.keys(thread, plan.threads), value_bytes),
        ranges: Ranges::new(keys.keys(thread, plan.threads), serializable, limit),
        read_percent,
        random: Random(keys.seed ^ thread),
    };
    let outcome = load::run(&plan, source)?;
    print_load(flags, format!("mixed, {read_percent} % reads"), "request", &plan, &outcome)
}

fn watch(flags: &Flags) -> Result<bool, Error> {
    let watchers = flags.count("watchers", 500)?;
    let streams = flags.count("streams", watchers)?.min(watchers);
    let plan = fan_out::Plan {
        endpoints: flags.endpoints()?,
        connections: flags.count("connections", 16)?.min(streams),
        writers: flags.count("clients", 1)?,
        watchers,
        streams,
        prefix: flags.is_set("prefix")?,
        value_bytes: value_bytes(flags)?,
        warmup_puts: flags.number("warmup")?.unwrap_or(20),
        stop: stop(flags, 1000)?,
        pid: flags.number("pid")?,
    };
    let as_json = as_json(flags)?;
    let outcome = fan_out::run(&plan)?;
    let mut report = Report::new(format!(
        "watch: {} watchers on {} streams and {} connections, {} writers",
        plan.watchers, plan.streams, plan.connections, plan.writers
    ));
    report.figure("puts", outcome.puts.to_string(), outcome.puts);
    let events = format!("{} in {} answers", outcome.events, outcome.messages);
    report.figure("events", events, outcome.events);
    let rate = outcome.events_per_second();
    report.figure("throughput", format!("{rate:.0} events/s"), rate);
    if let Some(rate) = outcome.events_per_cpu_second() {
        report.figure("events per cpu s", format!("{rate:.0}"), rate);
    }
    report.latency("delivery", &outcome.delivery);
    report.latency("put latency", &outcome.put_latency);
    report.usage(outcome.server, outcome.generator_cpu, outcome.events, "event");
    report.print(as_json);
    Ok(true)
}

fn stall(flags: &Flags) -> Result<bool, Error> {
    let loaded = flags.count("keys", 100_000)?;
    let revisions = flags.count("revisions", 5)?;
    let endpoints = flags.endpoints()?;
    let (value_bytes, as_json) = (value_bytes(flags)?, as_json(flags)?);
    let mut keys = key_space(flags)?;
    keys.space = loaded;
    keys.check()?;
    let fill = load::Plan {
        endpoints: endpoints.clone(),
        connections: 16,
        clients: 256,
        threads: 1,
        warmup: Duration::ZERO,
        stop: Stop::Total(loaded * revisions),
        pid: None,
    };
    let in_order = KeySpace { random: false, ..keys.clone() };
    load::run(&fill, |_| Puts::new(in_order.keys(0, 1), value_bytes))?.complete(endpoints[0])?;
    let plan = stall::Plan {
        endpoint: endpoints[0],
        keys: KeySpace { random: true, ..keys },
        value_bytes,
        rate: flags.count("rate", 100)?,
        quiet: Duration::from_secs(2),
        settle: flags.seconds("settle")?.unwrap_or(Duration::from_secs(2)),
    };
    let phases = stall::run(&plan)?;
    let title = format!("stall: {loaded} keys with {revisions} revisions each");
    let mut report = Report::new(title);
    for phase in &phases {
        let text = format!(
            "took {}; slowest put {}, slowest get {}, of {} requests",
            time_text(phase.took),
            time_text(phase.slowest_put),
            time_text(phase.slowest_get),
            phase.requests
        );
        let value = serde_json::json!({
            "took_s": phase.took.as_secs_f64(),
            "slowest_put_s": phase.slowest_put.as_secs_f64(),
            "slowest_get_s": phase.slowest_get.as_secs_f64(),
            "requests": phase.requests,
        });
        report.figure(phase.name, text, value);
    }
    report.print(as_json);
    Ok(true)
}

fn print_load(
    flags: &Flags,
    title: String,
    unit: &str,
    plan: &load::Plan,
    outcome: &load::Outcome,
) -> Result<bool, Error> {
    let mut report = Report::new(format!(
        "{title}: {} clients on {} connections",
        plan.clients, plan.connections
    ));
    let answered = outcome.succeeded;
    let seconds = outcome.elapsed.as_secs_f64();
    report.figure("answered", format!("{answered} in {seconds:.2} s"), answered);
    let rate = outcome.per_second();
    report.figure("throughput", format!("{rate:.0} {unit}s/s"), rate);
    report.latency("latency", &outcome.latency);
    let bytes = outcome.answer_bytes as f64 / answered.max(1) as f64;
    report.figure("answer size", format!("{bytes:.0} bytes on average"), bytes);
    let first = outcome.first_error.as_deref();
    let errors = match first {
        None => "0".to_string(),
        Some(first) => format!("{}, the first one: {first}", outcome.errors),
    };
    report.figure("errors", errors, outcome.errors);
    report.usage(outcome.server, outcome.generator_cpu, answered, unit);
    report.print(as_json(flags)?);
    Ok(outcome.errors == 0)
}

fn plan(flags: &Flags) -> Result<load::Plan, Error> {
    as_json(flags)?;
    let clients = flags.count("clients", 1)?;
    let connections = flags.count("connections", 1)?.min(clients);
    Ok(load::Plan {
        endpoints: flags.endpoints()?,
        connections,
        clients,
        threads: flags.count("threads", 1)?.min(connections),
        warmup: flags.seconds("warmup")?.unwrap_or_default(),
        stop: stop(flags, 10_000)?,
        pid: flags.number("pid")?,
    })
}

fn stop(flags: &Flags, total: u64) -> Result<Stop, Error> {
    match (flags.seconds("seconds")?, flags.text("total")) {
        (Some(_), Some(_)) => Err(Error::Usage("--total or --seconds, not both".to_string())),
        (Some(time), None) => Ok(Stop::After(time)),
        (None, _) => Ok(Stop::Total(flags.count("total", total)?)),
    }
}

fn key_space(flags: &Flags) -> Result<KeySpace, Error> {
    let (sequential, random) = (flags.is_set("sequential")?, flags.is_set("random")?);
    if sequential && random {
        return Err(Error::Usage("--sequential or --random, not both".to_string()));
    }
    let keys = KeySpace {
        size: flags.count("key-size", 16)? as usize,
        space: flags.count("key-space", 10_000)?,
        random: !sequential,
        seed: flags.number("seed")?.unwrap_or(1),
    };
    keys.check()?;
    Ok(keys)
}

fn value_bytes(flags: &Flags) -> Result<usize, Error> {
    Ok(flags.number("val-size")?.unwrap_or(256))
}

fn range_options(flags: &Flags) -> Result<(bool, u64), Error> {
    let consistency = flags.choice("consistency", &[("l", false), ("s", true)], false)?;
    Ok((consistency, flags.number("limit")?.unwrap_or(0)))
}

fn as_json(flags: &Flags) -> Result<bool, Error> {
    flags.choice("output", &[("text", false), ("json", true)], false)
}
