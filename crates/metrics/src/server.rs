//! Consensus, requests and health.

use crate::page::{Collect, Page, Samples};
use crate::rooms::room;
use crate::value::{Counter, Family, Gauge, Histogram};
use std::time::Duration;

room! {
    /// Consensus, requests and health. What is read off at a scrape is in `Live`.
    ServerMetrics {
        leader_changes: Counter = Counter::default(), "etcd_server_leader_changes_seen_total", "Leader changes this member has seen.";
        learner_promote_successes: Counter = Counter::default(), "etcd_server_learner_promote_successes", "Learners promoted while this member led.";
        learner_promote_failures: Family<Counter> = Family::new(&["Reason"], Counter::default), "etcd_server_learner_promote_failures", "Learners that could not be promoted while this member led, by reason.";
        heartbeat_send_failures: Counter = Counter::default(), "etcd_server_heartbeat_send_failures_total", "Heartbeats the leader sent late; it is overloaded or its disk is slow.";
        slow_apply: Counter = Counter::default(), "etcd_server_slow_apply_total", "Requests that took long to apply; the disk may be slow.";
        slow_read_indexes: Counter = Counter::default(), "etcd_server_slow_read_indexes_total", "Linearizable reads the leader was slow to confirm.";
        read_indexes_failed: Counter = Counter::default(), "etcd_server_read_indexes_failed_total", "Linearizable reads the leader did not confirm.";
        proposals_failed: Counter = Counter::default(), "etcd_server_proposals_failed_total", "Proposals that failed.";
        snapshot_apply_in_progress: Gauge = Gauge::default(), "etcd_server_snapshot_apply_in_progress_total", "1 while a snapshot from the leader is being applied, else 0.";
        client_requests: ClientRequests = ClientRequests::new(), "etcd_server_client_requests_total", "Requests of clients, by kind and by the API version the client names.";
        health_success: Counter = Counter::default(), "etcd_server_health_success", "Answers of /health that were good.";
        health_failures: Counter = Counter::default(), "etcd_server_health_failures", "Answers of /health that were bad.";
        healthcheck: Family<Gauge> = Family::new(&["name", "type"], Gauge::default), "etcd_server_healthcheck", "Each check's last result: 1 good, 0 bad.";
        healthchecks: Family<Counter> = Family::new(&["name", "status", "type"], Counter::default), "etcd_server_healthchecks_total", "How often each check ran, by result (success, error).";
        apply: ApplyDurations = ApplyDurations::new(), "etcd_server_apply_duration_seconds", "How long applying a request took.";
        range: RangeDurations = RangeDurations::new(), "etcd_server_range_duration_seconds", "How long a range took.";
        alarms: Family<Gauge> = Family::new(&["alarm_type", "server_id"], Gauge::default), "etcd_debugging_server_alarms", "1 for each alarm that is raised, 0 once it has been disarmed.";
    }
}

impl ServerMetrics {
    /// Records the outcome of one check of `/livez` or `/readyz` (`endpoint` is `livez` or
    /// `readyz`).
    pub fn checked(&self, endpoint: &str, check: &str, good: bool) {
        self.healthcheck.with(&[check, endpoint]).set(i64::from(good));
        let status = if good { "success" } else { "error" };
        self.healthchecks.with(&[check, status, endpoint]).inc();
    }

    /// Records that an alarm (`NOSPACE`, `CORRUPT`) of a member was raised or disarmed.
    pub fn alarmed(&self, alarm: &str, member_id: u64, raised: bool) {
        self.alarms.with(&[alarm, &format!("{member_id:x}")]).set(i64::from(raised));
    }
}

macro_rules! apply_ops {
    ($($op:ident = $name:literal),* $(,)?) => {
        /// What is applied: the kinds of a raft request.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum ApplyOp {
            $($op,)*
        }

        impl ApplyOp {
            pub const ALL: &'static [ApplyOp] = &[$(ApplyOp::$op,)*];

            pub fn name(self) -> &'static str {
                match self {
                    $(ApplyOp::$op => $name,)*
                }
            }
        }
    };
}

apply_ops! {
    Range = "Range",
    Put = "Put",
    DeleteRange = "DeleteRange",
    Txn = "Txn",
    Compaction = "Compaction",
    LeaseGrant = "LeaseGrant",
    LeaseRevoke = "LeaseRevoke",
    LeaseCheckpoint = "LeaseCheckpoint",
    Alarm = "Alarm",
    Authenticate = "Authenticate",
    AuthEnable = "AuthEnable",
    AuthDisable = "AuthDisable",
    AuthUserAdd = "AuthUserAdd",
    AuthUserDelete = "AuthUserDelete",
    AuthUserChangePassword = "AuthUserChangePassword",
    AuthUserGrantRole = "AuthUserGrantRole",
    AuthUserGet = "AuthUserGet",
    AuthUserRevokeRole = "AuthUserRevokeRole",
    AuthUserList = "AuthUserList",
    AuthRoleAdd = "AuthRoleAdd",
    AuthRoleGrantPermission = "AuthRoleGrantPermission",
    AuthRoleGet = "AuthRoleGet",
    AuthRoleRevokePermission = "AuthRoleRevokePermission",
    AuthRoleDelete = "AuthRoleDelete",
    AuthRoleList = "AuthRoleList",
    ClusterVersionSet = "ClusterVersionSet",
    ClusterMemberAttrSet = "ClusterMemberAttrSet",
    DowngradeInfoSet = "DowngradeInfoSet",
    Unknown = "unknown",
}

const SUCCESS: [(bool, &str); 2] = [(false, "false"), (true, "true")];

/// Times of an operation, from a tenth of a millisecond to a minute.
fn apply_seconds() -> Histogram {
    Histogram::exponential(0.0001, 2.0, 20)
}

/// One histogram for each operation and outcome.
pub struct ApplyDurations(Vec<[Histogram; 2]>);

impl ApplyDurations {
    fn new() -> ApplyDurations {
        ApplyDurations(ApplyOp::ALL.iter().map(|_| [apply_seconds(), apply_seconds()]).collect())
    }

    pub fn took(&self, op: ApplyOp, success: bool, time: Duration) {
        self.0[op as usize][usize::from(success)].took(time);
    }
}

impl Collect for ApplyDurations {
    const KIND: &'static str = "histogram";

    fn collect(&self, samples: &mut Samples) {
        let mut ops = ApplyOp::ALL.to_vec();
        ops.sort_by_key(|op| op.name());
        for op in ops {
            for (success, text) in SUCCESS {
                let histogram = &self.0[op as usize][usize::from(success)];
                if histogram.count() > 0 {
                    let labels = [("op", op.name()), ("success", text), ("version", "v3")];
                    samples.histogram(&labels, histogram);
                }
            }
        }
    }
}

/// One histogram for each outcome.
pub struct RangeDurations([Histogram; 2]);

impl RangeDurations {
    fn new() -> RangeDurations {
        RangeDurations([apply_seconds(), apply_seconds()])
    }

    pub fn took(&self, success: bool, time: Duration) {
        self.0[usize::from(success)].took(time);
    }
}

impl Collect for RangeDurations {
    const KIND: &'static str = "histogram";

    fn collect(&self, samples: &mut Samples) {
        for (success, text) in SUCCESS {
            let histogram = &self.0[usize::from(success)];
            if histogram.count() > 0 {
                samples.histogram(&[("success", text)], histogram);
            }
        }
    }
}

/// Versions that real clients name. They are counted without a lock.
const USUAL_VERSIONS: [&str; 5] = ["unknown", "3.4", "3.5", "3.6", "3.7"];
/// A client may name any version at all. After this many unusual ones the rest are `unknown`, or
/// one client could fill the memory with names.
const UNUSUAL_VERSIONS_MAX: usize = 50;
const KINDS: [&str; 2] = ["unary", "stream"];

/// Requests by kind and by what the client's `client-api-version` says.
pub struct ClientRequests {
    usual: [[Counter; KINDS.len()]; USUAL_VERSIONS.len()],
    unusual: Family<Counter>,
}

impl ClientRequests {
    fn new() -> ClientRequests {
        let unusual = Family::new(&["client_api_version", "type"], Counter::default);
        ClientRequests { usual: Default::default(), unusual }
    }

    /// Counts a request; `version` is the metadata as sent, if it was sent.
    pub fn count(&self, version: Option<&str>, stream: bool) {
        let version = version.filter(|version| !version.is_empty()).unwrap_or("unknown");
        let kind = usize::from(stream);
        if let Some(usual) = USUAL_VERSIONS.iter().position(|usual| *usual == version) {
            self.usual[usual][kind].inc();
        } else if !self.unusual.inc_within(&[version, KINDS[kind]], UNUSUAL_VERSIONS_MAX) {
            self.usual[0][kind].inc();
        }
    }
}

impl Collect for ClientRequests {
    const KIND: &'static str = "counter";

    fn collect(&self, samples: &mut Samples) {
        for (version, counters) in USUAL_VERSIONS.iter().zip(&self.usual) {
            for (kind, counter) in KINDS.iter().zip(counters).filter(|(_, held)| held.get() > 0) {
                samples.add(&[("client_api_version", version), ("type", kind)], counter.get());
            }
        }
        self.unusual.collect(samples);
    }
}
