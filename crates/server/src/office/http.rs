//! The plain HTTP endpoints: health, version, metrics, and what peers ask.

use super::{Caller, Office};
use crate::desk::{CallId, Serves};
use crate::mail::Word;
use api::Error;
use api::etcdserverpb::{AlarmType, RangeRequest};
use bytes::Bytes;
use metrics::Live;

/// A request that is no call.
#[derive(Debug)]
pub struct HttpRequest {
    pub method: String,
    pub path: String,
    pub query: String,
    pub serves: Serves,
}

#[derive(Debug)]
pub struct HttpResponse {
    pub status: u16,
    pub content_type: &'static str,
    pub fields: Vec<(&'static str, String)>,
    pub body: Bytes,
}

const TEXT: &str = "text/plain; charset=utf-8";
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";
const JSON: &str = "application/json";

impl HttpResponse {
    fn new(status: u16, content_type: &'static str, body: impl Into<Bytes>) -> HttpResponse {
        HttpResponse { status, content_type, fields: Vec::new(), body: body.into() }
    }

    fn with(mut self, name: &'static str, value: &str) -> HttpResponse {
        self.fields.push((name, value.into()));
        self
    }

    fn not_found() -> HttpResponse {
        HttpResponse::new(404, TEXT, "404 page not found\n")
            .with("X-Content-Type-Options", "nosniff")
    }

    fn get_only() -> HttpResponse {
        HttpResponse::new(405, TEXT, "Method Not Allowed\n")
            .with("Allow", "GET")
            .with("X-Content-Type-Options", "nosniff")
    }
}

impl Office {
    pub fn take_http(&self, desk: usize, call: CallId, request: HttpRequest) {
        let office = self.clone();
        let caller = Caller { office: self.clone(), desk, call };
        self.spawn(async move {
            let response = office.http(&request).await;
            caller.say(Word::Http(response));
        });
    }

    async fn http(&self, request: &HttpRequest) -> HttpResponse {
        let path = request.path.as_str();
        let on_clients = matches!(request.serves, Serves::Everything | Serves::Http);
        let on_metrics = on_clients || request.serves == Serves::Metrics;
        let on_peers = request.serves == Serves::Peers;
        let is_get = request.method == "GET";
        match path {
            "/metrics" if on_metrics => HttpResponse::new(200, METRICS, self.metrics_page()),
            "/health" if on_metrics && !is_get => HttpResponse::get_only(),
            "/health" if on_metrics => self.health(&request.query).await,
            "/version" if (on_clients || on_peers) && !is_get => HttpResponse::get_only(),
            "/version" if on_clients || on_peers => {
                HttpResponse::new(200, JSON, self.version_page())
            }
            "/debug/vars" if on_clients && !is_get => HttpResponse::get_only(),
            "/debug/vars" if on_clients => {
                HttpResponse::new(200, "application/json; charset=utf-8", self.debug_vars())
            }
            "/members" if on_peers => HttpResponse::new(200, JSON, self.members_page())
                .with("X-Etcd-Cluster-ID", &format!("{:x}", self.config().cluster_id)),
            "/downgrade/enabled" if on_peers => {
                HttpResponse::new(200, TEXT, self.config().view.downgrade().enabled.to_string())
            }
            _ if on_metrics => match probe(path) {
                Some(_) if !is_get => HttpResponse::get_only(),
                Some((endpoint, checks)) => {
                    self.probe(endpoint, checks, path, &request.query).await
                }
                None => HttpResponse::not_found(),
            },
            _ => HttpResponse::not_found(),
        }
    }

    /// Alarms, then the leader, then a read.
    async fn health(&self, query: &str) -> HttpResponse {
        let serializable = query_values(query, "serializable").any(|value| value == "true");
        let excluded: Vec<String> = query_values(query, "exclude").collect();
        let reason = self.health_reason(serializable, &excluded).await;
        let metrics = &self.config().metrics.server;
        match reason {
            None => {
                metrics.health_success.inc();
                HttpResponse::new(200, TEXT, r#"{"health":"true","reason":""}"#)
            }
            Some(reason) => {
                metrics.health_failures.inc();
                let body = serde_json::json!({ "health": "false", "reason": reason });
                config::warn!(self.config().logger, "/health error",
                    "output" => body.to_string(), "status-code" => 503);
                HttpResponse::new(503, TEXT, format!("{body}\n"))
                    .with("X-Content-Type-Options", "nosniff")
            }
        }
    }

    async fn health_reason(&self, serializable: bool, excluded: &[String]) -> Option<String> {
        let config = self.config();
        for alarm in config.view.alarms() {
            let (name, shown) = match AlarmType::try_from(alarm.alarm) {
                Ok(kind) => (kind.as_str_name().to_owned(), kind.as_str_name().to_owned()),
                Err(_) => (alarm.alarm.to_string(), "UNKNOWN".to_owned()),
            };
            if !excluded.contains(&name) {
                config::warn!(config.logger, "serving /health false due to an alarm",
                    "alarm" => format!("memberID:{} alarm:{name} ", alarm.member_id));
                return Some(format!("ALARM {shown}"));
            }
        }
        if !serializable && config.pulse.leader() == 0 {
            return Some("RAFT NO LEADER".into());
        }
        let read = self.probe_read(serializable).await;
        read.err().map(|error| format!("RANGE ERROR:{error}"))
    }

    async fn probe_read(&self, serializable: bool) -> Result<(), Error> {
        let request = RangeRequest {
            key: Bytes::from_static(b"a"),
            limit: 1,
            keys_only: true,
            serializable,
            ..RangeRequest::default()
        };
        self.range(&request).await.map(drop)
    }

    /// `/livez` and `/readyz`: each check by name.
    async fn probe(
        &self,
        endpoint: &'static str,
        checks: &[&'static str],
        path: &str,
        query: &str,
    ) -> HttpResponse {
        let verbose = query_values(query, "verbose").next().is_some();
        let excluded: Vec<String> = query_values(query, "exclude").collect();
        let single = path.trim_start_matches('/').contains('/');
        let unknown: Vec<&String> =
            excluded.iter().filter(|name| !checks.contains(&name.as_str())).collect();
        if !single && !unknown.is_empty() {
            config::warn!(self.config().logger, "some health checks cannot be excluded",
                "missing-health-checks" => format!("{unknown:?}"));
        }
        let (mut lines, mut failed) = (String::new(), None);
        for &check in checks {
            if !single && excluded.iter().any(|name| name == check) {
                continue;
            }
            let result = self.run_check(check).await;
            self.config().metrics.server.checked(endpoint, check, result.is_ok());
            match result {
                Ok(()) => lines += &format!("[+]{check} ok\n"),
                Err(error) => {
                    lines += &format!("[-]{check} failed: {error}\n");
                    failed = Some(format!("[-]{check} failed: {error}"));
                }
            }
        }
        let response = match failed {
            Some(reason) => {
                config::error!(self.config().logger, "Health check error",
                    "path" => path, "reason" => reason, "status-code" => 503);
                HttpResponse::new(503, TEXT, format!("{lines}\n"))
            }
            None if verbose => HttpResponse::new(200, TEXT, format!("{lines}ok\n")),
            None => HttpResponse::new(200, TEXT, "ok\n"),
        };
        response.with("X-Content-Type-Options", "nosniff")
    }

    async fn run_check(&self, check: &str) -> Result<(), String> {
        let config = self.config();
        match check {
            "serializable_read" => self.probe_read(true).await.map_err(|error| error.to_string()),
            "linearizable_read" => self.probe_read(false).await.map_err(|error| error.to_string()),
            "data_corruption" if config.view.has_alarm(AlarmType::Corrupt) => {
                Err("alarm activated: CORRUPT".into())
            }
            "non_learner" if self.is_learner() => Err("not supported for learner".into()),
            _ => Ok(()),
        }
    }

    fn is_learner(&self) -> bool {
        let config = self.config();
        config.view.member(config.member_id).is_some_and(|member| member.is_learner)
    }

    fn version_page(&self) -> String {
        let view = &self.config().view;
        let cluster = view.cluster_version().unwrap_or_else(|| "not_decided".into());
        let storage = view.storage_version().unwrap_or_else(|| "unknown".into());
        // Versions need no escaping, and etcd's order is not the alphabet's.
        format!(
            r#"{{"etcdserver":"{}","etcdcluster":"{cluster}","storage":"{storage}"}}"#,
            api::ETCD_VERSION
        )
    }

    fn members_page(&self) -> String {
        let members: Vec<_> = self.config().view.members().iter().map(member_json).collect();
        format!("{}\n", serde_json::Value::from(members))
    }

    fn debug_vars(&self) -> String {
        let process = metrics::Process::read();
        let config = self.config();
        let status = serde_json::json!({
            "id": format!("{:x}", config.member_id),
            "term": config.pulse.term(),
            "commit": config.pulse.commit(),
            "applied": config.pulse.applied(),
            "lead": format!("{:x}", config.pulse.leader()),
        });
        let memory = serde_json::json!({ "Sys": process.resident_bytes, "HeapAlloc": process.anonymous_bytes });
        serde_json::json!({
            "cmdline": std::env::args().collect::<Vec<_>>(),
            "file_descriptor_limit": process.fds_max,
            "memstats": memory,
            "raft.status": status,
        })
        .to_string()
    }

    pub fn metrics_page(&self) -> String {
        let config = self.config();
        let sizes = config.view.sizes();
        let watching =
            config.desks.iter().map(|desk| desk.watch_counts()).fold((0, 0, 0), |sum, counts| {
                (sum.0 + counts.0, sum.1 + counts.1, sum.2 + counts.2)
            });
        let live = Live {
            has_leader: config.pulse.leader() != 0,
            is_leader: config.pulse.leader() == config.member_id,
            is_learner: self.is_learner(),
            proposals_committed: config.pulse.commit(),
            proposals_applied: config.pulse.applied(),
            proposals_pending: config.desks.iter().map(|desk| desk.pending()).sum(),
            quota_backend_bytes: u64::try_from(config.view.quota_bytes()).unwrap_or(0),
            cluster_version: config.view.cluster_version(),
            db_total_bytes: sizes.total,
            db_in_use_bytes: sizes.in_use,
            db_open_read_transactions: 0,
            keys: config.view.keys(),
            watch_streams: watching.0,
            watchers: watching.1,
            slow_watchers: watching.2,
            pending_events: 0,
            current_revision: config.view.revision(),
            compact_revision: config.view.compacted(),
            auth_revision: config.view.auth_status().revision,
            tasks: 0,
            process: metrics::Process::read(),
        };
        config.metrics.render(&live)
    }
}

/// The checks that a path asks for.
fn probe(path: &str) -> Option<(&'static str, &'static [&'static str])> {
    const LIVE: &[&str] = &["serializable_read"];
    const READY: &[&str] =
        &["data_corruption", "serializable_read", "linearizable_read", "non_learner"];
    let (endpoint, all): (_, &'static [&'static str]) = match path.split('/').nth(1)? {
        "livez" => ("livez", LIVE),
        "readyz" => ("readyz", READY),
        _ => return None,
    };
    match path[1 + endpoint.len()..].strip_prefix('/') {
        None => Some((endpoint, all)),
        Some(name) => {
            let at = all.iter().position(|check| *check == name)?;
            Some((endpoint, &all[at..=at]))
        }
    }
}

/// The values of a query's key, unescaped as forms are.
fn query_values<'a>(query: &'a str, key: &'a str) -> impl Iterator<Item = String> + 'a {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs.filter_map(move |pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (unescape(name) == key).then(|| unescape(value))
    })
}

fn unescape(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let hex = tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match (byte, hex.and_then(|hex| u8::from_str_radix(hex, 16).ok())) {
            (b'%', Some(value)) => {
                bytes.push(value);
                rest = &tail[2..];
            }
            (b'+', _) => {
                bytes.push(b' ');
                rest = tail;
            }
            _ => {
                bytes.push(byte);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A member as peers tell each other about it.
fn member_json(member: &store::Member) -> serde_json::Value {
    let mut json = serde_json::json!({ "id": member.id, "peerURLs": member.peer_urls });
    if member.is_learner {
        json["isLearner"] = true.into();
    }
    if !member.name.is_empty() {
        json["name"] = member.name.clone().into();
    }
    if !member.client_urls.is_empty() {
        json["clientURLs"] = member.client_urls.clone().into();
    }
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_are_found_by_path() {
        assert_eq!(probe("/livez"), Some(("livez", &["serializable_read"][..])));
        assert_eq!(probe("/readyz").map(|(_, checks)| checks.len()), Some(4));
        assert_eq!(probe("/readyz/non_learner"), Some(("readyz", &["non_learner"][..])));
        for unknown in ["/livez/", "/livez/non_learner", "/readyz/nope", "/live", "/"] {
            assert_eq!(probe(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn queries_are_unescaped() {
        let values = |query, key| query_values(query, key).collect::<Vec<_>>();
        assert_eq!(values("exclude=A&exclude=B%20C&x=1", "exclude"), ["A", "B C"]);
        assert_eq!(values("verbose", "verbose"), [""]);
        assert_eq!(values("", "verbose"), [""; 0]);
    }
}
