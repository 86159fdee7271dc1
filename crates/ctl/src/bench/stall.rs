//! How long a request can wait because of a compaction or a defragmentation.
//!
//! Puts and gets go out at a fixed low rate, whether or not the earlier ones were answered: a
//! closed loop would stop asking just when the server stops answering, and miss the stall. While
//! they run, another thread compacts everything and then defragments.
//!
//! ```text
//!   quiet ─────┬─ compact ──── settle ────┬─ defragment ── settle ───┐
//!              │<-    "compaction"      ->│<-  "defragmentation"   ->│
//! ```
//!
//! A request belongs to every phase it overlaps: one sent just before a stall begins is its victim
//! too. The settling after each is included, because a server may answer first and work later.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use api::etcdserverpb::{
    CompactionRequest, CompactionResponse, DefragmentRequest, DefragmentResponse, RangeRequest,
    RangeResponse,
};
use httpcore::h2::ClientEvent;
use mio::{Events, Poll};

use super::Error;
use super::call;
use super::line::{Line, SILENCE_MAX};
use super::requests::{KeySpace, Puts, RANGE, Ranges, Source};

/// Compaction and defragmentation are waited for this long.
const LONG_PATIENCE: Duration = Duration::from_secs(600);

#[derive(Clone, Debug)]
pub struct Plan {
    pub endpoint: SocketAddr,
    pub keys: KeySpace,
    pub value_bytes: usize,
    /// Puts per second, and gets per second.
    pub rate: u64,
    pub quiet: Duration,
    pub settle: Duration,
}

/// One phase as the load saw it.
pub struct Phase {
    pub name: &'static str,
    /// How long the call took that the phase is about.
    pub took: Duration,
    pub slowest_put: Duration,
    pub slowest_get: Duration,
    pub requests: u64,
}

impl Phase {
    pub fn slowest(&self) -> Duration {
        self.slowest_put.max(self.slowest_get)
    }
}

/// Runs the load over a server that has been filled already, and returns the three phases: quiet,
/// compaction, defragmentation.
pub fn run(plan: &Plan) -> Result<[Phase; 3], Error> {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let load = scope.spawn(|| paced_load(plan, &done));
        let marks = maintain(plan);
        done.store(true, Ordering::Release);
        let requests = load.join().expect("the load does not panic")?;
        let marks = marks?;
        Ok([
            phase("quiet", &requests, marks.begin, marks.compact, plan.quiet),
            phase("compaction", &requests, marks.compact, marks.defragment, marks.compact_took),
            phase("defragmentation", &requests, marks.defragment, marks.end, marks.defragment_took),
        ])
    })
}

struct Marks {
    begin: Instant,
    compact: Instant,
    compact_took: Duration,
    defragment: Instant,
    defragment_took: Duration,
    end: Instant,
}

fn maintain(plan: &Plan) -> Result<Marks, Error> {
    let begin = Instant::now();
    thread::sleep(plan.quiet);
    let header_of = RangeRequest { key: b"x".as_slice().into(), ..Default::default() };
    let now: RangeResponse = call::unary(plan.endpoint, RANGE, &header_of, LONG_PATIENCE)?;
    let revision = now.header.map_or(0, |header| header.revision);

    let compact = Instant::now();
    let request = CompactionRequest { revision, physical: true };
    let path = "/etcdserverpb.KV/Compact";
    let _: CompactionResponse = call::unary(plan.endpoint, path, &request, LONG_PATIENCE)?;
    let compact_took = compact.elapsed();
    thread::sleep(plan.settle);

    let defragment = Instant::now();
    let path = "/etcdserverpb.Maintenance/Defragment";
    let request = DefragmentRequest::default();
    let _: DefragmentResponse = call::unary(plan.endpoint, path, &request, LONG_PATIENCE)?;
    let defragment_took = defragment.elapsed();
    thread::sleep(plan.settle);
    Ok(Marks { begin, compact, compact_took, defragment, defragment_took, end: Instant::now() })
}

/// One request of the paced load.
struct Paced {
    put: bool,
    start: Instant,
    end: Instant,
}

fn phase(
    name: &'static str,
    requests: &[Paced],
    begin: Instant,
    end: Instant,
    took: Duration,
) -> Phase {
    let within = || requests.iter().filter(|request| request.start < end && request.end > begin);
    let slowest = |put: bool| {
        let latencies = within().filter(|request| request.put == put);
        latencies.map(|request| request.end - request.start).max().unwrap_or_default()
    };
    let (slowest_put, slowest_get) = (slowest(true), slowest(false));
    Phase { name, took, slowest_put, slowest_get, requests: within().count() as u64 }
}

/// Sends until `done`, then waits for what is outstanding. Puts go on one connection and gets on
/// another, so that neither waits behind the other in the generator.
fn paced_load(plan: &Plan, done: &AtomicBool) -> Result<Vec<Paced>, Error> {
    let mut poll = Poll::new().map_err(Error::io("cannot wait for sockets"))?;
    let mut lines = [Line::connect(plan.endpoint)?, Line::connect(plan.endpoint)?];
    for (number, line) in lines.iter_mut().enumerate() {
        line.register(poll.registry(), number)?;
    }
    let mut puts = Puts::new(plan.keys.keys(0, 1), plan.value_bytes);
    let mut gets = Ranges::new(plan.keys.keys(1, 2), false, 0);
    let interval = Duration::from_secs(1) / plan.rate.max(1) as u32;
    let mut next = Instant::now();
    let mut last_heard = next;
    let mut ready = Events::with_capacity(16);
    let (mut scratch, mut happened) = (vec![0; 64 << 10], Vec::new());
    let mut requests = Vec::new();
    loop {
        let finishing = done.load(Ordering::Acquire);
        let outstanding: usize = lines.iter().map(Line::outstanding).sum();
        if finishing && outstanding == 0 {
            return Ok(requests);
        }
        let now = Instant::now();
        while !finishing && next <= now {
            // Counted from when it should have gone out, so that a delay of ours would show.
            lines[0].request(&puts.next(), next);
            lines[1].request(&gets.next(), next);
            next += interval;
        }
        lines.iter_mut().try_for_each(Line::flush)?;
        let patience = if finishing { interval } else { next.saturating_duration_since(now) };
        match poll.poll(&mut ready, Some(patience)) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            polled => polled.map_err(Error::io("cannot wait for sockets"))?,
        }
        for event in ready.iter() {
            let line = &mut lines[event.token().0];
            if !event.is_readable() && !event.is_read_closed() {
                continue;
            }
            line.read(&mut scratch, event.is_read_closed(), &mut happened)?;
            let end = Instant::now();
            last_heard = end;
            for happening in happened.drain(..) {
                let id = match happening {
                    ClientEvent::Trailers { id, code: 0, .. } => id,
                    ClientEvent::Trailers { code, message, .. } => {
                        return Err(line.lost(&format!("code {code}: {message}")));
                    }
                    ClientEvent::Reset { code, .. } => {
                        return Err(line.lost(&format!("stream reset with code {code}")));
                    }
                    _ => continue,
                };
                if let Some(start) = line.finish(id) {
                    requests.push(Paced { put: event.token().0 == 0, start, end });
                }
            }
        }
        if outstanding > 0 && last_heard.elapsed() > SILENCE_MAX {
            let endpoint = plan.endpoint;
            return Err(Error::Silent { endpoint, outstanding, silence: SILENCE_MAX });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_belongs_to_every_phase_it_overlaps() {
        let base = Instant::now();
        let at = |ms: u64| base + Duration::from_millis(ms);
        let requests = [
            Paced { put: true, start: at(1), end: at(3) },
            // Sent before the compaction began, answered long after.
            Paced { put: true, start: at(90), end: at(290) },
            Paced { put: false, start: at(150), end: at(155) },
            Paced { put: false, start: at(310), end: at(340) },
        ];
        let quiet = phase("quiet", &requests, at(0), at(100), Duration::ZERO);
        let compaction = phase("compaction", &requests, at(100), at(300), Duration::ZERO);
        let defragment = phase("defragmentation", &requests, at(300), at(400), Duration::ZERO);
        assert_eq!((quiet.requests, compaction.requests, defragment.requests), (2, 2, 1));
        assert_eq!(quiet.slowest_put, Duration::from_millis(200));
        assert_eq!(compaction.slowest_put, Duration::from_millis(200));
        assert_eq!(compaction.slowest_get, Duration::from_millis(5));
        assert_eq!(defragment.slowest(), Duration::from_millis(30));
    }
}
