//! A run: load, crash, restart, judge, again.

use crate::history::{self, Attempt, Changes};
use crate::load;
use api::etcdserverpb::*;
use prost::Message;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::thread::{scope, sleep};
use std::time::Duration;
use testkit::{Grpc, Server};

const WRITERS: u32 = 4;
/// The runs share the crashes that are asked for.
const RUNS: u32 = 3;
const CRASHES: u32 = 51;
/// Long enough for the slowest machine to deliver what is there already.
const EVENTS_MAX: Duration = Duration::from_secs(30);

pub struct Run {
    name: &'static str,
    flags: Vec<&'static str>,
    server: Server,
    random: StdRng,
    /// The last revision that was judged: all before it is known to be right.
    revision: i64,
    compacted: i64,
    /// The store's hash at that revision, and what it was compacted to.
    hash: (u32, i64),
    leases: BTreeSet<i64>,
    writes: usize,
}

impl Run {
    pub fn new(name: &'static str, flags: &[&'static str]) -> Run {
        let seed = std::env::var("ALTHING_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed: u64 = seed.unwrap_or_else(|| rand::rng().random_range(0..1_000_000));
        eprintln!("{name}: repeat with ALTHING_SEED={seed}");
        Run {
            name,
            flags: flags.to_vec(),
            server: Server::start(&testkit::althing(), flags),
            random: StdRng::seed_from_u64(seed),
            revision: 1,
            compacted: 0,
            hash: (0, 0),
            leases: BTreeSet::new(),
            writes: 0,
        }
    }

    pub fn play(mut self) {
        let crashes = std::env::var("ALTHING_CRASHES").ok().and_then(|n| n.parse().ok());
        let rounds = crashes.unwrap_or(CRASHES).div_ceil(RUNS);
        for round in 1..=rounds {
            self.round(round);
        }
        eprintln!("{}: {rounds} crashes, {} acknowledged writes", self.name, self.writes);
        assert!(self.writes > rounds as usize * 10, "a run without load shows nothing");
    }

    fn round(&mut self, round: u32) {
        let first = self.revision + 1;
        let connect = || Grpc::connect(&self.server.endpoint());
        let seeds: Vec<u64> = (0..=WRITERS).map(|_| self.random.random()).collect();
        let load_for = Duration::from_millis(self.random.random_range(20..300));
        let politely = self.random.random_bool(0.2);
        // Compaction stays behind what is judged at the end of the round.
        let (from, to) = (self.compacted, self.revision - 1);
        let writers: Vec<Grpc> = (0..WRITERS).map(|_| connect()).collect();
        let (compactor, grantor, watcher) = (connect(), connect(), connect());
        let server = &mut self.server;
        let (attempts, granted, seen) = scope(|threads| {
            let compactor =
                threads.spawn(|| load::compact_until_broken(compactor, from, to, seeds[0]));
            let watcher = threads.spawn(|| load::watch_until_broken(watcher, first));
            let grantor = threads.spawn(|| load::grant_until_broken(grantor, round));
            let mut writing = Vec::new();
            for (grpc, writer) in writers.into_iter().zip(1..) {
                let seed = seeds[writer as usize];
                writing.push(
                    threads.spawn(move || load::write_until_broken(grpc, writer, round, seed)),
                );
            }
            sleep(load_for);
            if politely {
                let status = server.terminate();
                assert_eq!(status.signal(), Some(libc::SIGTERM), "{status}");
            } else {
                server.kill();
            }
            compactor.join().expect("the compactor saw nothing wrong");
            let mut attempts: Vec<Attempt> = Vec::new();
            for writer in writing {
                attempts.extend(writer.join().expect("the writer saw nothing wrong"));
            }
            let granted = grantor.join().expect("the grantor saw nothing wrong");
            (attempts, granted, watcher.join().expect("the watcher saw nothing wrong"))
        });
        self.writes += attempts.iter().filter(|attempt| attempt.revision.is_some()).count();
        for _ in 0..self.random.random_range(0..3) {
            self.crash_while_starting();
        }
        self.server.restart();
        self.judge(&attempts, &seen, first);
        self.judge_leases(&granted.0, granted.1);
        if self.random.random_bool(0.3) {
            // Nobody wrote, so nothing changes.
            self.server.kill();
            self.server.restart();
            let hash = self.hash();
            assert_eq!(hash, self.hash, "the hash changed over a restart");
        }
    }

    fn judge(&mut self, attempts: &[Attempt], seen: &BTreeMap<i64, Changes>, first: i64) {
        let mut grpc = Grpc::connect(&self.server.endpoint());
        let request = RangeRequest { key: "?".into(), ..Default::default() };
        let data = grpc.call("/etcdserverpb.KV/Range", &request).expect("reads are served");
        let header = RangeResponse::decode(data).expect("it is a range's answer").header;
        let last = header.expect("answers have headers").revision;
        assert!(last >= self.revision, "revision {} went back to {last}", self.revision);
        let log = self.read_history(&mut grpc, first, last);
        history::check(&log, attempts, first, last);
        history::check_seen(seen, &log);
        self.revision = last;
        let (hash, compacted) = self.hash();
        assert!(compacted >= self.compacted, "compaction went back to {compacted}");
        self.compacted = compacted;
        self.hash = (hash, compacted);
    }

    /// Every revision of the round, by a watch that begins in the past.
    fn read_history(&self, grpc: &mut Grpc, first: i64, last: i64) -> BTreeMap<i64, Changes> {
        let mut log = BTreeMap::new();
        if first > last {
            return log;
        }
        let stream = load::open_watch(grpc, first);
        while log.last_key_value().is_none_or(|(revision, _)| *revision < last) {
            let next = grpc.next(stream, EVENTS_MAX).expect("the watch delivers what happened");
            let data = next.expect("the watch goes on");
            load::take_events(&data, &mut log);
        }
        log
    }

    /// Whatever lease was granted is there; of the others, only the one under way may be.
    fn judge_leases(&mut self, granted: &[i64], unknown: i64) {
        let mut grpc = Grpc::connect(&self.server.endpoint());
        let data = grpc.call("/etcdserverpb.Lease/LeaseLeases", &LeaseLeasesRequest {});
        let data = data.expect("leases are listed");
        let response = LeaseLeasesResponse::decode(data).expect("it is a list of leases");
        let mut listed: BTreeSet<i64> = response.leases.iter().map(|lease| lease.id).collect();
        self.leases.extend(granted);
        if listed.remove(&unknown) {
            self.leases.insert(unknown);
            listed.insert(unknown);
        }
        assert_eq!(listed, self.leases, "leases came or went");
    }

    fn hash(&self) -> (u32, i64) {
        let mut grpc = Grpc::connect(&self.server.endpoint());
        let request = HashKvRequest { revision: self.revision };
        let data = grpc.call("/etcdserverpb.Maintenance/HashKV", &request);
        let response = HashKvResponse::decode(data.expect("the store has a hash"));
        let response = response.expect("it is a hash's answer");
        (response.hash, response.compact_revision.max(0))
    }

    /// Starts the server on its data and kills it before long, wherever it may be by then.
    fn crash_while_starting(&mut self) {
        let (client, peer) = (self.server.client_port, self.server.peer_port);
        let mut child = Command::new(testkit::althing())
            .arg("--name=member")
            .arg(format!("--data-dir={}", self.server.data_dir().display()))
            .arg(format!("--listen-client-urls=http://127.0.0.1:{client}"))
            .arg(format!("--advertise-client-urls=http://127.0.0.1:{client}"))
            .arg(format!("--listen-peer-urls=http://127.0.0.1:{peer}"))
            .args(&self.flags)
            .stderr(Stdio::null())
            .spawn()
            .expect("the server can be started");
        sleep(Duration::from_millis(self.random.random_range(1..200)));
        child.kill().expect("our child can be killed");
        let status = child.wait().expect("our child can be waited for");
        assert_eq!(status.signal(), Some(libc::SIGKILL), "it ended by itself: {status}");
    }
}
