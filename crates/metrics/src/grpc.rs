//! gRPC calls, by method.

use crate::page::{Collect, Page, Samples};
use crate::value::{Counter, Histogram};
use api::Code;
use std::time::Duration;

/// Which sides of a call are streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrpcType {
    Unary,
    ClientStream,
    ServerStream,
    BidiStream,
}

/// One method of the server's table: `etcdserverpb.KV`, `Range`, unary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method {
    pub service: &'static str,
    pub name: &'static str,
    pub grpc_type: GrpcType,
}

/// The calls of every method, in the order of the table given at start.
pub struct GrpcMetrics {
    methods: Vec<MethodMetrics>,
}

/// The calls of one method.
pub struct MethodMetrics {
    method: Method,
    shown_at_zero: bool,
    started: Counter,
    received: Counter,
    sent: Counter,
    handled: [Counter; CODES.len()],
    /// Only with `--metrics extensive`.
    handling: Option<Histogram>,
}

impl GrpcMetrics {
    pub(crate) fn new(methods: &[Method], extensive: bool) -> GrpcMetrics {
        let methods = methods.iter().map(|method| MethodMetrics::new(*method, extensive));
        GrpcMetrics { methods: methods.collect() }
    }

    /// The metrics of the method at this place of the table.
    pub fn method(&self, index: usize) -> &MethodMetrics {
        &self.methods[index]
    }

    pub(crate) fn render(&self, page: &mut Page) {
        // Methods are sorted by name first because the labels are: method before service.
        let mut methods: Vec<_> = self.methods.iter().collect();
        methods.sort_by_key(|held| (held.method.name, held.method.service));
        let count = |pick: fn(&MethodMetrics) -> &Counter| Counts { methods: &methods, pick };
        page.family("grpc_server_started_total", "Calls begun.", &count(|held| &held.started));
        page.family(
            "grpc_server_msg_received_total",
            "Messages received from clients.",
            &count(|held| &held.received),
        );
        page.family(
            "grpc_server_msg_sent_total",
            "Messages sent to clients.",
            &count(|held| &held.sent),
        );
        page.family("grpc_server_handled_total", "Calls ended, by code.", &Handled(&methods));
        page.family("grpc_server_handling_seconds", "How long calls took.", &Handling(&methods));
    }
}

impl MethodMetrics {
    fn new(method: Method, extensive: bool) -> MethodMetrics {
        const SECONDS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
        // etcd shows its core services from the start, Lock and Election once they are used;
        // RangeStream is younger than the version we show.
        let core = ["etcdserverpb.", "grpc.health."];
        let shown_at_zero = core.iter().any(|core| method.service.starts_with(core))
            && method.name != "RangeStream";
        MethodMetrics {
            method,
            shown_at_zero,
            started: Counter::default(),
            received: Counter::default(),
            sent: Counter::default(),
            handled: Default::default(),
            handling: extensive.then(|| Histogram::with_bounds(&SECONDS)),
        }
    }

    /// A call has begun.
    pub fn started(&self) {
        self.started.inc();
    }

    /// A message came from the client.
    pub fn received(&self) {
        self.received.inc();
    }

    /// A message went to the client.
    pub fn sent(&self) {
        self.sent.inc();
    }

    /// The call has ended.
    pub fn handled(&self, code: Code, time: Duration) {
        self.handled[code as usize].inc();
        if let Some(handling) = &self.handling {
            handling.took(time);
        }
    }

    fn labels(&self) -> [(&'static str, &'static str); 3] {
        let grpc_type = match self.method.grpc_type {
            GrpcType::Unary => "unary",
            GrpcType::ClientStream => "client_stream",
            GrpcType::ServerStream => "server_stream",
            GrpcType::BidiStream => "bidi_stream",
        };
        [
            ("grpc_method", self.method.name),
            ("grpc_service", self.method.service),
            ("grpc_type", grpc_type),
        ]
    }
}

/// In the order of their numbers, as gRPC spells them.
const CODES: [&str; 17] = [
    "OK",
    "Canceled",
    "Unknown",
    "InvalidArgument",
    "DeadlineExceeded",
    "NotFound",
    "AlreadyExists",
    "PermissionDenied",
    "ResourceExhausted",
    "FailedPrecondition",
    "Aborted",
    "OutOfRange",
    "Unimplemented",
    "Internal",
    "Unavailable",
    "DataLoss",
    "Unauthenticated",
];

struct Counts<'a> {
    methods: &'a [&'a MethodMetrics],
    pick: fn(&MethodMetrics) -> &Counter,
}

impl Collect for Counts<'_> {
    const KIND: &'static str = "counter";

    fn collect(&self, samples: &mut Samples) {
        for held in self.methods {
            let count = (self.pick)(held).get();
            if held.shown_at_zero || count > 0 {
                samples.add(&held.labels(), count);
            }
        }
    }
}

struct Handled<'a>(&'a [&'a MethodMetrics]);

impl Collect for Handled<'_> {
    const KIND: &'static str = "counter";

    fn collect(&self, samples: &mut Samples) {
        let mut codes: Vec<(usize, &str)> = CODES.into_iter().enumerate().collect();
        codes.sort_by_key(|(_, name)| *name);
        for (code, name) in codes {
            for held in self.0 {
                let count = held.handled[code].get();
                if held.shown_at_zero || count > 0 {
                    let [method, service, grpc_type] = held.labels();
                    samples.add(&[("grpc_code", name), method, service, grpc_type], count);
                }
            }
        }
    }
}

struct Handling<'a>(&'a [&'a MethodMetrics]);

impl Collect for Handling<'_> {
    const KIND: &'static str = "histogram";

    fn collect(&self, samples: &mut Samples) {
        for held in self.0 {
            if let Some(handling) = &held.handling
                && (held.shown_at_zero || handling.count() > 0)
            {
                samples.histogram(&held.labels(), handling);
            }
        }
    }
}
