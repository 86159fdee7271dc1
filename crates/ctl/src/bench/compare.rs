//! etcd and Althing side by side: the same loads on both, in turns, and the ratios.
//!
//! The machine is never quiet. So both servers run at once with default flags on the same disk,
//! only one of them is under load at a time, and each round measures both, in the order etcd,
//! Althing, Althing, etcd, and so on. A ratio is taken within a round; the table gives the median
//! of the rounds and the extremes.
//!
//! ```text
//!   speed     put, get, watch, on small stores                  every round
//!   size      memory after many keys; restart on them           once; every round
//!   stall     500 k more revisions, compacted, defragmented     every round
//! ```

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::Error;
use super::fan_out;
use super::flags::{Flag, Flags, flag};
use super::interrupt::clean_up_on_interrupt;
use super::load::{self, Outcome, Stop};
use super::process;
use super::report::megabytes;
use super::requests::{KeySpace, Puts, Ranges};
use super::servers::{Server, find_etcd};
use super::stall;
use super::table::Table;

pub const FLAGS: &[Flag] = &[
    flag("etcd", "PATH", "etcd's binary [$ALTHING_ETCD_DIR/etcd, target/etcd-3.6.14/etcd]"),
    flag("althing", "PATH", "Althing's binary [this one]"),
    flag("rounds", "N", "rounds [5; with --quick 2]"),
    flag("seconds", "S", "length of each put and get run [5; with --quick 2]"),
    flag("connections", "N", "connections that the clients share [16]"),
    flag("keys", "N", "keys for memory and restart [1000000; with --quick 100000]"),
    flag("revisions", "N", "revisions that are compacted [500000; with --quick 50000]"),
    flag("only", "PART", "speed, size or stall instead of all three"),
    flag("dir", "DIR", "where the data directories go for the time being [the system's]"),
    flag("quick", "", "a first impression in about two minutes"),
    flag("output", "FORMAT", "text or json [text]"),
];

const KEY_BYTES: usize = 16;
const VALUE_BYTES: usize = 256;
/// Keys of the stores that the speed runs use.
const SMALL_STORE: u64 = 10_000;

struct Comparison {
    binaries: [PathBuf; 2],
    rounds: u64,
    run: Duration,
    connections: u64,
    keys: u64,
    revisions: u64,
    watch_puts: u64,
    table: Table,
    begin: Instant,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Speed,
    Size,
    Stall,
}

pub fn run(flags: &Flags) -> Result<bool, Error> {
    let quick = flags.is_set("quick")?;
    let pick = |usual: u64, when_quick: u64| if quick { when_quick } else { usual };
    let as_json = flags.choice("output", &[("text", false), ("json", true)], false)?;
    let parts = [("speed", Part::Speed), ("size", Part::Size), ("stall", Part::Stall)];
    let only = flags.choice("only", &parts.map(|(name, part)| (name, Some(part))), None)?;
    let wanted = |part: Part| only.is_none_or(|only| only == part);
    let own = std::env::current_exe().map_err(Error::io("cannot find this program's own file"))?;
    let althing = flags.text("althing").map_or(own, PathBuf::from);
    let mut comparison = Comparison {
        binaries: [find_etcd(flags.text("etcd"))?, althing],
        rounds: flags.count("rounds", pick(5, 2))?,
        run: flags.seconds("seconds")?.unwrap_or(Duration::from_secs(pick(5, 2))),
        connections: flags.count("connections", 16)?,
        keys: flags.count("keys", pick(1_000_000, 100_000))?,
        revisions: flags.count("revisions", pick(500_000, 50_000))?,
        watch_puts: pick(1000, 300),
        table: Table::default(),
        begin: Instant::now(),
    };
    if cfg!(debug_assertions) {
        eprintln!("this is a debug build, and its figures say nothing; use cargo run --release");
    }
    let scratch = scratch_dir(flags.text("dir"))?;
    clean_up_on_interrupt(scratch.path().to_path_buf());
    if wanted(Part::Speed) {
        let mut servers = comparison.start(&scratch.path().join("speed"))?;
        comparison.speed(&mut servers)?;
    }
    if wanted(Part::Size) || wanted(Part::Stall) {
        let mut servers = comparison.start(&scratch.path().join("size"))?;
        comparison.fill(&mut servers)?;
        if wanted(Part::Size) {
            comparison.size(&mut servers)?;
        }
        if wanted(Part::Stall) {
            comparison.stall(&mut servers)?;
        }
    }
    if as_json {
        println!("{}", comparison.table.json());
    } else {
        print!("{}", comparison.table.markdown());
    }
    Ok(true)
}

impl Comparison {
    fn start(&self, dir: &std::path::Path) -> Result<[Server; 2], Error> {
        Ok([
            Server::start("etcd", &self.binaries[0], dir.join("etcd"))?,
            Server::start("althing", &self.binaries[1], dir.join("althing"))?,
        ])
    }

    fn speed(&mut self, servers: &mut [Server; 2]) -> Result<(), Error> {
        let small = self.key_space(SMALL_STORE);
        for server in servers.iter() {
            self.put_in_order(server, &small, SMALL_STORE)?;
        }
        for round in 0..self.rounds {
            for clients in [64, 512] {
                for which in order(round) {
                    self.say(round, servers[which].name, &format!("put, {clients} clients"));
                    let plan = self.plan(&servers[which], clients);
                    let puts = |_| Puts::new(small.keys(0, 1), VALUE_BYTES);
                    let outcome = load::run(&plan, puts)?;
                    self.record(&format!("put 256 B, {clients} clients"), which, &plan, outcome)?;
                }
            }
            for (serializable, kind) in [(false, "linearizable"), (true, "serializable")] {
                for which in order(round) {
                    self.say(round, servers[which].name, &format!("{kind} get"));
                    let plan = self.plan(&servers[which], 64);
                    let gets = |_| Ranges::new(small.keys(0, 1), serializable, 0);
                    let outcome = load::run(&plan, gets)?;
                    self.record(&format!("{kind} get, 64 clients"), which, &plan, outcome)?;
                }
            }
            for which in order(round) {
                self.say(round, servers[which].name, "watch fan-out");
                self.fan_out(&servers[which], which)?;
            }
        }
        Ok(())
    }

    fn fan_out(&mut self, server: &Server, which: usize) -> Result<(), Error> {
        let outcome = fan_out::run(&fan_out::Plan {
            endpoints: vec![server.endpoint],
            connections: self.connections,
            writers: 1,
            watchers: 500,
            streams: 500,
            prefix: false,
            value_bytes: VALUE_BYTES,
            warmup_puts: 20,
            stop: Stop::Total(self.watch_puts),
            pid: Some(server.pid()),
        })?;
        let name = "watch fan-out, 1 writer, 500 watchers";
        self.add(name, "events/s", "", which, outcome.events_per_second());
        let rate = outcome.events_per_cpu_second().unwrap_or_default();
        let name = "watch fan-out, per server CPU";
        self.add(name, "events/CPU s", ">= 3", which, rate);
        let p99 = outcome.delivery.percentile(99.0).as_secs_f64() * 1e3;
        self.add("watch fan-out, delivery p99", "ms", "", which, p99);
        Ok(())
    }

    fn fill(&mut self, servers: &mut [Server; 2]) -> Result<(), Error> {
        let large = self.key_space(self.keys);
        for (which, server) in servers.iter().enumerate() {
            self.say(0, server.name, &format!("loading {} keys", self.keys));
            self.put_in_order(server, &large, self.keys)?;
            let rss = megabytes(process::usage(server.pid())?.rss_bytes);
            let name = format!("memory (RSS) after {} keys", self.keys);
            self.add(&name, "MB", "<= 0.5", which, rss);
        }
        Ok(())
    }

    fn size(&mut self, servers: &mut [Server; 2]) -> Result<(), Error> {
        for round in 0..self.rounds {
            for which in order(round) {
                self.say(round, servers[which].name, "restart");
                let (stopped, started) = servers[which].restart()?;
                let rss = megabytes(process::usage(servers[which].pid())?.rss_bytes);
                self.add("restart on them", "s", "<= 0.5", which, started.as_secs_f64());
                self.add("orderly stop", "s", "", which, stopped.as_secs_f64());
                self.add("memory (RSS) after a restart", "MB", "", which, rss);
            }
        }
        Ok(())
    }

    fn stall(&mut self, servers: &mut [Server; 2]) -> Result<(), Error> {
        let keys = self.key_space(self.keys);
        for round in 0..self.rounds {
            for which in order(round) {
                self.say(round, servers[which].name, "stalls of compaction and defragmentation");
                self.put_in_order(&servers[which], &keys, self.revisions)?;
                let phases = stall::run(&stall::Plan {
                    endpoint: servers[which].endpoint,
                    keys: KeySpace { random: true, ..keys.clone() },
                    value_bytes: VALUE_BYTES,
                    rate: 100,
                    quiet: Duration::from_secs(2),
                    settle: Duration::from_secs(2),
                })?;
                for phase in phases {
                    let goal = if phase.name == "quiet" { "" } else { "< 50 ms" };
                    let name = format!("slowest request, {}", phase.name);
                    let slowest = phase.slowest().as_secs_f64() * 1e3;
                    self.add(&name, "ms", goal, which, slowest);
                }
            }
        }
        Ok(())
    }

    fn plan(&self, server: &Server, clients: u64) -> load::Plan {
        load::Plan {
            endpoints: vec![server.endpoint],
            connections: self.connections.min(clients),
            clients,
            threads: 1,
            warmup: self.run / 10,
            stop: Stop::After(self.run),
            pid: Some(server.pid()),
        }
    }

    /// Writes the first `count` keys of the space, round and round.
    fn put_in_order(&self, server: &Server, keys: &KeySpace, count: u64) -> Result<(), Error> {
        let plan = load::Plan {
            stop: Stop::Total(count),
            warmup: Duration::ZERO,
            ..self.plan(server, 512)
        };
        let in_order = KeySpace { random: false, ..keys.clone() };
        let puts = |_| Puts::new(in_order.keys(0, 1), VALUE_BYTES);
        load::run(&plan, puts)?.complete(server.endpoint)
    }

    fn record(
        &mut self,
        name: &str,
        which: usize,
        plan: &load::Plan,
        outcome: Outcome,
    ) -> Result<(), Error> {
        self.add(name, "1/s", ">= 2", which, outcome.per_second());
        let cpu = outcome.server_cpu_us().unwrap_or_default();
        self.add(&format!("{name}: server CPU"), "µs", "<= 0.5", which, cpu);
        let generator = outcome.generator_cpu.as_secs_f64() * 1e6;
        let generator = generator / outcome.succeeded.max(1) as f64;
        self.add(&format!("{name}: generator CPU"), "µs", "", which, generator);
        let p99 = outcome.latency.percentile(99.0).as_secs_f64() * 1e3;
        self.add(&format!("{name}: p99"), "ms", "", which, p99);
        outcome.complete(plan.endpoints[0])
    }

    /// Shows each figure as it comes, so that a run that is interrupted has not been for nothing.
    fn add(
        &mut self,
        name: &str,
        unit: &'static str,
        goal: &'static str,
        which: usize,
        value: f64,
    ) {
        eprintln!("         {name}: {value:.2} {unit}");
        self.table.add(name, unit, goal, which, value);
    }

    fn key_space(&self, space: u64) -> KeySpace {
        KeySpace {
            size: KEY_BYTES,
            space,
            random: true,
            seed: self.begin.elapsed().as_nanos() as u64,
        }
    }

    fn say(&self, round: u64, server: &str, what: &str) {
        let (round, rounds) = (round + 1, self.rounds);
        let seconds = self.begin.elapsed().as_secs();
        eprintln!("{seconds:5} s  round {round}/{rounds}  {server:<8} {what}");
    }
}

/// etcd first in even rounds, Althing first in odd ones.
fn order(round: u64) -> [usize; 2] {
    if round.is_multiple_of(2) { [0, 1] } else { [1, 0] }
}

fn scratch_dir(named: Option<&str>) -> Result<tempfile::TempDir, Error> {
    let parent = named.map_or_else(std::env::temp_dir, PathBuf::from);
    let made = tempfile::Builder::new().prefix("althing-bench-").tempdir_in(&parent);
    made.map_err(Error::io(format!("cannot create a directory in {}", parent.display())))
}
