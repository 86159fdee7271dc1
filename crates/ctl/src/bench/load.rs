//! A closed loop: each client has one request outstanding and sends the next when it is answered.
//!
//! A client is nothing but its turn: when an answer arrives on a connection, the next request goes
//! out on the same one, and all that arrived together is answered with one write. So a thread
//! carries hundreds of clients for a microsecond or two of CPU per request, and the server, not
//! the generator, is what limits the rate.
//!
//! Always true: when a phase ends, every request of it has been answered.

use std::net::SocketAddr;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use httpcore::h2::ClientEvent;
use mio::{Events, Poll};

use super::Error;
use super::histogram::Histogram;
use super::line::{Line, SILENCE_MAX};
use super::process::{self, Usage};
use super::requests::Source;

/// When a load is over.
#[derive(Clone, Copy, Debug)]
pub enum Stop {
    Total(u64),
    After(Duration),
}

#[derive(Clone, Debug)]
pub struct Plan {
    pub endpoints: Vec<SocketAddr>,
    pub connections: u64,
    pub clients: u64,
    pub threads: u64,
    pub warmup: Duration,
    pub stop: Stop,
    /// The server's process, if its usage is to be measured.
    pub pid: Option<u32>,
}

/// What a load has shown.
#[derive(Default)]
pub struct Outcome {
    /// Requests answered without an error.
    pub succeeded: u64,
    pub errors: u64,
    pub first_error: Option<String>,
    pub answer_bytes: u64,
    pub latency: Histogram,
    pub elapsed: Duration,
    pub generator_cpu: Duration,
    pub server: Option<ServerUsage>,
}

/// What the server used in the meantime.
#[derive(Clone, Copy, Debug)]
pub struct ServerUsage {
    pub cpu: Duration,
    pub rss_bytes: u64,
    pub rss_peak_bytes: u64,
}

impl ServerUsage {
    pub fn between(before: Usage, after: Usage) -> ServerUsage {
        ServerUsage {
            cpu: after.cpu.saturating_sub(before.cpu),
            rss_bytes: after.rss_bytes,
            rss_peak_bytes: after.rss_peak_bytes,
        }
    }
}

/// Runs a load: warm-up, measurement, and nothing left over. `source(thread)` makes the requests
/// of one thread.
pub fn run<S: Source>(plan: &Plan, source: impl Fn(u64) -> S) -> Result<Outcome, Error> {
    let threads = plan.threads.min(plan.connections).min(plan.clients);
    let mut workers = Vec::new();
    for index in 0..threads {
        workers.push(Worker::connect(plan, index, threads, source(index))?);
    }
    // The threads wait for each other before and after the measurement, so that what this thread
    // reads from the kernel in between belongs to it alone.
    let gate = Barrier::new(threads as usize + 1);
    thread::scope(|scope| {
        let handles: Vec<_> =
            workers.into_iter().map(|worker| scope.spawn(|| worker.work(plan, &gate))).collect();
        gate.wait();
        let usage_before = plan.pid.map(process::usage).transpose();
        let cpu_before = process::own_cpu();
        let start = Instant::now();
        gate.wait();
        let mut outcome = Outcome::default();
        let mut failure = None;
        for handle in handles {
            match handle.join().expect("a worker does not panic") {
                Ok(tally) => outcome.add(tally),
                Err(error) => failure = Some(error),
            }
        }
        outcome.elapsed = start.elapsed();
        outcome.generator_cpu = process::own_cpu() - cpu_before;
        if let Some(error) = failure {
            return Err(error);
        }
        if let (Some(before), Some(pid)) = (usage_before?, plan.pid) {
            outcome.server = Some(ServerUsage::between(before, process::usage(pid)?));
        }
        Ok(outcome)
    })
}

impl Outcome {
    pub fn per_second(&self) -> f64 {
        self.succeeded as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// Microseconds of server CPU per answered request.
    pub fn server_cpu_us(&self) -> Option<f64> {
        let server = self.server?;
        Some(server.cpu.as_secs_f64() * 1e6 / self.succeeded.max(1) as f64)
    }

    /// An error if any request was answered with one: a load that only prepares must not fail.
    pub fn complete(&self, endpoint: SocketAddr) -> Result<(), Error> {
        match &self.first_error {
            None => Ok(()),
            Some(first) => {
                let reason = format!("{} requests failed, the first with {first}", self.errors);
                Err(Error::Lost { endpoint, reason })
            }
        }
    }

    fn add(&mut self, tally: Outcome) {
        self.succeeded += tally.succeeded;
        self.errors += tally.errors;
        self.answer_bytes += tally.answer_bytes;
        self.latency.merge(&tally.latency);
        self.first_error = self.first_error.take().or(tally.first_error);
    }
}

struct Worker<S> {
    poll: Poll,
    lines: Vec<Line>,
    /// The connection of each client.
    clients: Vec<usize>,
    /// This thread's part of a total.
    share: u64,
    source: S,
    scratch: Vec<u8>,
}

/// How many more requests may begin.
enum Budget {
    Requests(u64),
    Until(Instant),
}

impl Budget {
    fn take(&mut self, now: Instant) -> bool {
        match self {
            Budget::Requests(0) => false,
            Budget::Requests(left) => {
                *left -= 1;
                true
            }
            Budget::Until(end) => now < *end,
        }
    }
}

impl<S: Source> Worker<S> {
    fn connect(plan: &Plan, index: u64, threads: u64, source: S) -> Result<Worker<S>, Error> {
        let poll = Poll::new().map_err(Error::io("cannot wait for sockets"))?;
        let mine = |total: u64| (index..total).step_by(threads as usize);
        let mut lines = Vec::new();
        for connection in mine(plan.connections) {
            let endpoint = plan.endpoints[connection as usize % plan.endpoints.len()];
            let mut line = Line::connect(endpoint)?;
            line.register(poll.registry(), lines.len())?;
            lines.push(line);
        }
        let clients = mine(plan.clients).enumerate().map(|(n, _)| n % lines.len()).collect();
        let share = match plan.stop {
            Stop::Total(total) => mine(total).count() as u64,
            Stop::After(_) => 0,
        };
        Ok(Worker { poll, lines, clients, share, source, scratch: vec![0; 64 << 10] })
    }

    fn work(mut self, plan: &Plan, gate: &Barrier) -> Result<Outcome, Error> {
        let warm = match plan.warmup {
            Duration::ZERO => Ok(Outcome::default()),
            warmup => self.phase(Budget::Until(Instant::now() + warmup)),
        };
        self.source.rewind();
        // A thread that failed still goes through the gate, or the others would wait for ever.
        gate.wait();
        gate.wait();
        warm?;
        let budget = match plan.stop {
            Stop::Total(_) => Budget::Requests(self.share),
            Stop::After(time) => Budget::Until(Instant::now() + time),
        };
        self.phase(budget)
    }

    fn phase(&mut self, mut budget: Budget) -> Result<Outcome, Error> {
        let mut tally = Outcome::default();
        let mut happened = Vec::new();
        let mut ready = Events::with_capacity(1024);
        let now = Instant::now();
        for client in 0..self.clients.len() {
            if budget.take(now) {
                self.lines[self.clients[client]].request(&self.source.next(), now);
            }
        }
        for line in &mut self.lines {
            line.flush()?;
        }
        let mut last_heard = now;
        while self.outstanding() > 0 {
            match self.poll.poll(&mut ready, Some(Duration::from_secs(1))) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                polled => polled.map_err(Error::io("cannot wait for sockets"))?,
            }
            if ready.is_empty() && last_heard.elapsed() > SILENCE_MAX {
                return Err(self.silent());
            }
            for event in ready.iter() {
                let line = &mut self.lines[event.token().0];
                if event.is_readable() || event.is_read_closed() {
                    line.read(&mut self.scratch, event.is_read_closed(), &mut happened)?;
                    let now = Instant::now();
                    last_heard = now;
                    for event in happened.drain(..) {
                        if tally.take(line, event, now)? && budget.take(now) {
                            line.request(&self.source.next(), now);
                        }
                    }
                }
                line.flush()?;
            }
        }
        Ok(tally)
    }

    fn outstanding(&self) -> usize {
        self.lines.iter().map(Line::outstanding).sum()
    }

    fn silent(&self) -> Error {
        let outstanding = self.outstanding();
        let waiting = self.lines.iter().find(|line| line.outstanding() > 0);
        let endpoint = waiting.map_or(self.lines[0].endpoint, |line| line.endpoint);
        Error::Silent { endpoint, outstanding, silence: SILENCE_MAX }
    }
}

impl Outcome {
    /// Counts one event; true when a client is free again.
    fn take(&mut self, line: &mut Line, event: ClientEvent, now: Instant) -> Result<bool, Error> {
        let (id, failure) = match event {
            ClientEvent::Message { data, .. } => {
                self.answer_bytes += data.len() as u64;
                return Ok(false);
            }
            ClientEvent::Trailers { id, code: 0, .. } => (id, None),
            ClientEvent::Trailers { id, code, message, .. } => {
                (id, Some(format!("code {code}: {message}")))
            }
            ClientEvent::Reset { id, code } => (id, Some(format!("stream reset with code {code}"))),
            ClientEvent::GoAway { debug, .. } => {
                return Err(line.lost(&format!("the server said goodbye ({debug:?})")));
            }
            ClientEvent::Response { .. } | ClientEvent::PingAck { .. } => return Ok(false),
        };
        let Some(start) = line.finish(id) else { return Ok(false) };
        match failure {
            None => {
                self.succeeded += 1;
                self.latency.record(now - start);
            }
            Some(text) => {
                self.errors += 1;
                self.first_error.get_or_insert(text);
            }
        }
        Ok(true)
    }
}
