//! What `/metrics` shows: every number the server keeps about itself.
//!
//! In:  observations, from all threads. Out: one text in Prometheus' format per scrape.
//!
//! [`Metrics`] is a struct of structs, one for each room of the server; who observes something
//! holds an `Arc<Metrics>` and names the field. There is no registry to look names up in, no
//! global, no clock, and no lock on the way of an update except where a label's values cannot be
//! known before (see [`Family`]). Numbers that someone else already keeps (revisions, sizes,
//! watchers) are not mirrored here: they come with each scrape as [`Live`].
//!
//! Always true: names, kinds, labels and buckets are etcd's; a dashboard made for etcd works.

mod grpc;
mod page;
mod process;
mod rooms;
mod server;
mod value;

pub use grpc::{GrpcMetrics, GrpcType, Method, MethodMetrics};
pub use process::Process;
pub use rooms::{
    DiskMetrics, LeaseMetrics, MvccMetrics, NetworkMetrics, PeerMetrics, ProxyMetrics, SnapMetrics,
};
pub use server::{ApplyDurations, ApplyOp, ClientRequests, RangeDurations, ServerMetrics};
pub use value::{Counter, Family, Gauge, Histogram};

use page::{Page, Samples};

/// Stands where etcd names its Go version.
pub(crate) const RUNTIME: &str = "rust";

/// Every number the server keeps about itself.
pub struct Metrics {
    pub server: ServerMetrics,
    pub disk: DiskMetrics,
    pub snap: SnapMetrics,
    pub mvcc: MvccMetrics,
    pub lease: LeaseMetrics,
    pub network: NetworkMetrics,
    pub grpc: GrpcMetrics,
    pub proxy: ProxyMetrics,
    identity: Identity,
    scrapes: Counter,
    scrapes_running: Gauge,
}

/// What does not change while the server runs.
#[derive(Clone, Debug, Default)]
pub struct Identity {
    pub server_id: u64,
    /// `3.6.14`
    pub version: String,
    pub features: Vec<Feature>,
}

/// A feature gate, `AllAlpha` and `AllBeta` included.
#[derive(Clone, Debug)]
pub struct Feature {
    pub name: String,
    /// `ALPHA`, `BETA` or empty.
    pub stage: String,
    pub enabled: bool,
}

/// What the caller reads off its rooms when a scrape comes.
#[derive(Clone, Debug, Default)]
pub struct Live {
    pub has_leader: bool,
    pub is_leader: bool,
    pub is_learner: bool,
    pub proposals_committed: u64,
    pub proposals_applied: u64,
    pub proposals_pending: u64,
    pub quota_backend_bytes: u64,
    /// Two parts (`3.6`); none while the cluster has not decided.
    pub cluster_version: Option<String>,
    pub db_total_bytes: u64,
    pub db_in_use_bytes: u64,
    pub db_open_read_transactions: u64,
    pub keys: u64,
    pub watch_streams: u64,
    pub watchers: u64,
    pub slow_watchers: u64,
    pub pending_events: u64,
    pub current_revision: i64,
    /// -1 before the first compaction.
    pub compact_revision: i64,
    pub auth_revision: u64,
    /// Tasks of the async runtime.
    pub tasks: u64,
    /// Usually `Process::read()`.
    pub process: Process,
}

impl Metrics {
    /// `methods` are the server's gRPC methods; [`GrpcMetrics::method`] takes places in it.
    /// `extensive` (`--metrics extensive`) adds a histogram for each method.
    pub fn new(identity: Identity, methods: &[Method], extensive: bool) -> Metrics {
        Metrics {
            server: ServerMetrics::new(),
            disk: DiskMetrics::new(),
            snap: SnapMetrics::new(),
            mvcc: MvccMetrics::new(),
            lease: LeaseMetrics::new(),
            network: NetworkMetrics::new(),
            grpc: GrpcMetrics::new(methods, extensive),
            proxy: ProxyMetrics::new(),
            identity,
            scrapes: Counter::default(),
            scrapes_running: Gauge::default(),
        }
    }

    /// The answer to one scrape (`text/plain; version=0.0.4; charset=utf-8`).
    pub fn render(&self, live: &Live) -> String {
        self.scrapes_running.inc();
        let mut page = Page::default();
        self.server.render(&mut page);
        self.disk.render(&mut page);
        self.snap.render(&mut page);
        self.mvcc.render(&mut page);
        self.lease.render(&mut page);
        self.network.render(&mut page);
        self.grpc.render(&mut page);
        self.proxy.render(&mut page);
        self.identity.render(&mut page);
        live.render(&mut page);
        self.render_scrapes(&mut page);
        render_legacy_store(&mut page);
        let text = page.text();
        self.scrapes_running.dec();
        self.scrapes.inc();
        text
    }

    fn render_scrapes(&self, page: &mut Page) {
        page.family(
            "promhttp_metric_handler_requests_in_flight",
            "Scrapes being answered now, this one included.",
            &self.scrapes_running,
        );
        page.family(
            "promhttp_metric_handler_requests_total",
            "Scrapes answered, by HTTP status.",
            &Scrapes(self.scrapes.get()),
        );
    }
}

impl Identity {
    fn render(&self, page: &mut Page) {
        let one = |page: &mut Page, name, help: &str, label, value: &str| {
            page.labelled_gauge(name, help, &[(&[(label, value)], 1.0)]);
        };
        let id = format!("{:x}", self.server_id);
        one(page, "etcd_server_id", "This member's ID.", "server_id", &id);
        let version = &self.version;
        one(page, "etcd_server_version", "The version served.", "server_version", version);
        let help = "The language the server is written in, where etcd names its Go version.";
        one(page, "etcd_server_go_version", help, "server_go_version", RUNTIME);

        let mut features: Vec<&Feature> = self.features.iter().collect();
        features.sort_by_key(|feature| &feature.name);
        let labels: Vec<_> = features
            .iter()
            .map(|feature| [("name", feature.name.as_str()), ("stage", feature.stage.as_str())])
            .collect();
        let series: Vec<(&[(&str, &str)], f64)> = labels
            .iter()
            .zip(&features)
            .map(|(labels, feature)| (&labels[..], f64::from(u8::from(feature.enabled))))
            .collect();
        let help = "Feature gates: 1 on, 0 off.";
        page.labelled_gauge("etcd_server_feature_enabled", help, &series);
    }
}

impl Live {
    fn render(&self, page: &mut Page) {
        page.gauge("etcd_server_has_leader", "1 if this member knows a leader.", self.has_leader);
        page.gauge("etcd_server_is_leader", "1 if this member leads.", self.is_leader);
        page.gauge("etcd_server_is_learner", "1 if this member is a learner.", self.is_learner);
        page.gauge(
            "etcd_server_proposals_committed_total",
            "The log index up to which entries are committed.",
            self.proposals_committed,
        );
        page.gauge(
            "etcd_server_proposals_applied_total",
            "The log index up to which entries are applied.",
            self.proposals_applied,
        );
        page.gauge(
            "etcd_server_proposals_pending",
            "Proposals waiting for an outcome.",
            self.proposals_pending,
        );
        page.gauge(
            "etcd_server_quota_backend_bytes",
            "The size the backend may grow to.",
            self.quota_backend_bytes,
        );
        if let Some(version) = &self.cluster_version {
            page.labelled_gauge(
                "etcd_cluster_version",
                "The version the cluster has agreed on.",
                &[(&[("cluster_version", version)], 1.0)],
            );
        }
        page.gauge(
            "etcd_mvcc_db_total_size_in_bytes",
            "Bytes the backend occupies on disk.",
            self.db_total_bytes,
        );
        page.gauge(
            "etcd_mvcc_db_total_size_in_use_in_bytes",
            "Bytes of the backend that hold data.",
            self.db_in_use_bytes,
        );
        page.gauge(
            "etcd_mvcc_db_open_read_transactions",
            "Reads of the backend that are open now.",
            self.db_open_read_transactions,
        );
        self.render_debugging(page);
        self.process.render(self.tasks, page);
    }

    fn render_debugging(&self, page: &mut Page) {
        page.gauge("etcd_debugging_mvcc_keys_total", "Keys that exist.", self.keys);
        page.gauge(
            "etcd_debugging_mvcc_watch_stream_total",
            "Watch streams that are open.",
            self.watch_streams,
        );
        page.gauge("etcd_debugging_mvcc_watcher_total", "Watchers that exist.", self.watchers);
        page.gauge(
            "etcd_debugging_mvcc_slow_watcher_total",
            "Watchers that have not caught up.",
            self.slow_watchers,
        );
        page.gauge(
            "etcd_debugging_mvcc_pending_events_total",
            "Events waiting to be sent to watchers.",
            self.pending_events,
        );
        page.gauge(
            "etcd_debugging_mvcc_current_revision",
            "The store's revision.",
            self.current_revision,
        );
        page.gauge(
            "etcd_debugging_mvcc_compact_revision",
            "The revision of the last compaction; -1 for none.",
            self.compact_revision,
        );
        page.gauge(
            "etcd_debugging_auth_revision",
            "The revision of users and roles.",
            self.auth_revision,
        );
    }
}

/// etcd 3.6 still carries the store of its version 2 and shows that store's few operations at
/// start. There is none here: the series exist, at zero.
fn render_legacy_store(page: &mut Page) {
    const HELP: &str = "The store of version 2, which does not exist here: always 0.";
    page.counter("etcd_debugging_store_expires_total", HELP, 0u64);
    page.counter("etcd_debugging_store_watch_requests_total", HELP, 0u64);
    page.gauge("etcd_debugging_store_watchers", HELP, 0u64);
    page.family("etcd_debugging_store_reads_total", HELP, &LegacyActions(&["getRecursive"]));
    page.family("etcd_debugging_store_writes_total", HELP, &LegacyActions(&["create", "set"]));
}

struct LegacyActions(&'static [&'static str]);

impl page::Collect for LegacyActions {
    const KIND: &'static str = "counter";

    fn collect(&self, samples: &mut Samples) {
        for action in self.0 {
            samples.add(&[("action", action)], 0u64);
        }
    }
}

/// A scrape here cannot fail, so only one of the three statuses ever counts.
struct Scrapes(u64);

impl page::Collect for Scrapes {
    const KIND: &'static str = "counter";

    fn collect(&self, samples: &mut Samples) {
        for (code, count) in [("200", self.0), ("500", 0), ("503", 0)] {
            samples.add(&[("code", code)], count);
        }
    }
}
