//! The checks before anything is opened, in etcd's order and words.

use crate::aliases;
use crate::draft::{Draft, DraftLog};
use crate::entry;
use crate::flags::clamp;
use crate::gates::Gate;
use crate::log::{Entry, Format, Level, LogConfig, Rotation};
use crate::quote::{quote, quote_list};
use crate::retention::CompactionMode;
use crate::settings::{ClusterState, DEFAULT_NAME};
use crate::urls::{Url, split_host_port, texts};

/// Why the settings are refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Logged as `failed to verify flags`, exit 1.
    Refused(String),
    /// etcd panics here, exit 2.
    Panic(String),
}

impl From<String> for Fault {
    fn from(why: String) -> Self {
        Self::Refused(why)
    }
}

pub(crate) const ADVERTISE_UNSET: &str =
    "--advertise-client-urls is required when --listen-client-urls is set explicitly";
const ELECTION_MS_MAX: u64 = 50_000;

pub(crate) fn validate(draft: &mut Draft, lines: &mut Vec<Entry>) -> Result<(), Fault> {
    aliases::check_flags(draft)?;
    draft.config.log = log(&draft.log)?;
    draft.is_log_settled = true;
    check_urls(draft, lines)?;
    check_cluster_sources(draft)?;
    check_timers(draft)?;
    if draft.config.advertise_client_urls.is_empty() {
        return Err(Fault::Refused(ADVERTISE_UNSET.into()));
    }
    match draft.config.auto_compaction_mode.as_str() {
        "" => return Err(Fault::Refused("undefined auto-compaction-mode".into())),
        mode if CompactionMode::parse(mode).is_none() => {
            return Err(Fault::Refused(format!("unknown auto-compaction-mode {}", quote(mode))));
        }
        _ => {}
    }
    check_tracing(draft)?;
    check_gates(draft, lines)?;
    check_hash_times(draft)?;
    if draft.config.name == DEFAULT_NAME {
        lines.push(entry!(
            Level::Warn,
            "it isn't recommended to use default name, please set a value for --name. \
             Note that etcd might run into issue when multiple members have the same default name",
            "name" => &draft.config.name
        ));
    }
    check_tls_versions(draft)?;
    Ok(())
}

fn log(asked: &DraftLog) -> Result<LogConfig, Fault> {
    let refuse = |why: String| Err(Fault::Refused(why));
    match asked.logger.as_str() {
        "zap" => {}
        "capnslog" => return refuse("--logger=capnslog is removed in v3.5".into()),
        other => return refuse(format!("unknown logger option {}", quote(other))),
    }
    let outputs = match asked.outputs.as_slice() {
        [] => vec!["default".to_string()],
        outputs => outputs.to_vec(),
    };
    if outputs.len() > 1 && outputs.iter().any(|output| output == "default") {
        return refuse("multi logoutput for \"default\" is not supported yet".into());
    }
    let rotation =
        if asked.rotates { Some(log_rotation(&outputs, &asked.rotation_json)?) } else { None };
    if outputs.len() > 1 && outputs.iter().any(|output| output == "systemd/journal") {
        return refuse(format!(
            "running with systemd/journal but other '--log-outputs' values ({}) are configured \
             with 'default'; override 'default' value with something else",
            quote_list(&outputs)
        ));
    }
    let Some(level) = Level::parse(&asked.level) else {
        return Err(Fault::Panic(format!("unrecognized level: {}", quote(&asked.level))));
    };
    let format = match asked.format.as_str() {
        "json" | "" => Format::Json,
        "console" => Format::Console,
        other => {
            return refuse(format!("unknown log format: {other}, supported values json, console"));
        }
    };
    Ok(LogConfig { level, format, outputs, rotation })
}

fn log_rotation(outputs: &[String], json: &str) -> Result<Rotation, Fault> {
    let files = outputs
        .iter()
        .filter(|output| !matches!(output.as_str(), "default" | "stderr" | "stdout"))
        .count();
    if files > 1 || (files == 0 && outputs.len() == 1) {
        return Err(Fault::Refused(
            "--log-outputs requires a single file path when --log-rotate-config-json is defined"
                .into(),
        ));
    }
    let parsed: serde_json::Value = serde_json::from_str(json).map_err(|error| {
        let why =
            if error.is_eof() { "unexpected end of JSON input".into() } else { error.to_string() };
        format!("improperly formatted log rotation config: {why}")
    })?;
    let refuse = |why: String| {
        Fault::Refused(format!("invalid log rotation config: json: cannot unmarshal {why}"))
    };
    let object = match &parsed {
        serde_json::Value::Null => &serde_json::Map::new(),
        serde_json::Value::Object(object) => object,
        other => {
            let found = json_kind(other);
            return Err(refuse(format!("{found} into Go value of type embed.logRotationConfig")));
        }
    };
    let mut rotation = Rotation {
        size_max_megabytes: 0,
        age_max_days: 0,
        backups_max: 0,
        local_time: false,
        compress: false,
    };
    for (key, value) in object {
        let field = |kind: &str| {
            let found = match value {
                serde_json::Value::Number(number) if kind == "int" => format!("number {number}"),
                other => json_kind(other).to_string(),
            };
            refuse(format!(
                "{found} into Go struct field logRotationConfig.Logger.{key} of type {kind}"
            ))
        };
        let number = || {
            let number = value.as_i64().ok_or_else(|| field("int"))?;
            // Below zero is as good as zero: the limit is off, or the default.
            Ok::<u64, Fault>(u64::try_from(number).unwrap_or(0))
        };
        let boolean = || value.as_bool().ok_or_else(|| field("bool"));
        match key.to_ascii_lowercase().as_str() {
            _ if value.is_null() => {}
            "maxsize" => rotation.size_max_megabytes = number()?,
            "maxage" => rotation.age_max_days = number()?,
            "maxbackups" => rotation.backups_max = number()?,
            "localtime" => rotation.local_time = boolean()?,
            "compress" => rotation.compress = boolean()?,
            _ => {}
        }
    }
    Ok(rotation)
}

fn json_kind(value: &serde_json::Value) -> &'static str {
    match value {
        serde_json::Value::Null => "null",
        serde_json::Value::Bool(_) => "bool",
        serde_json::Value::Number(_) => "number",
        serde_json::Value::String(_) => "string",
        serde_json::Value::Array(_) => "array",
        serde_json::Value::Object(_) => "object",
    }
}

fn check_urls(draft: &Draft, lines: &mut Vec<Entry>) -> Result<(), String> {
    let config = &draft.config;
    check_bind(&config.listen_peer_urls)?;
    check_bind(&config.listen_client_urls)?;
    check_bind(&config.listen_client_http_urls)?;
    if config.listen_client_http_urls.is_empty() {
        lines.push(entry!(
            Level::Warn,
            "Running http and grpc server on single port. This is not recommended for production."
        ));
    }
    check_bind(&config.listen_metrics_urls)?;
    check_advertised("--initial-advertise-peer-urls", &config.initial_advertise_peer_urls)?;
    check_advertised("--advertise-client-urls", &config.advertise_client_urls)
}

/// Listening on a name would listen on whatever it resolves to today.
fn check_bind(urls: &[Url]) -> Result<(), String> {
    for url in urls.iter().filter(|url| !url.is_socket()) {
        let (host, _) = split_host_port(url.address())?;
        // Go's address may carry a zone behind %; the check looks at the address alone.
        let is_ip = host.parse::<std::net::IpAddr>().is_ok();
        if host != "localhost" && !is_ip {
            return Err(format!("expected IP in URL for binding ({url})"));
        }
    }
    Ok(())
}

fn check_advertised(flag: &str, urls: &[Url]) -> Result<(), String> {
    for url in urls {
        let why = match split_host_port(url.address()) {
            Ok(("", _)) => format!("unexpected empty host ({url})"),
            Ok(_) => continue,
            Err(why) => why,
        };
        return Err(format!(
            "{flag} {} must be \"host:port\" ({why})",
            quote(&texts(urls).join(","))
        ));
    }
    Ok(())
}

fn check_cluster_sources(draft: &mut Draft) -> Result<(), String> {
    let d = &draft.config.discovery;
    draft.config.initial_cluster_state = match draft.cluster_state.as_str() {
        "new" => ClusterState::New,
        "existing" => ClusterState::Existing,
        other => return Err(format!("unexpected clusterState {}", quote(other))),
    };
    let sources = [
        !d.url.is_empty(),
        !draft.config.initial_cluster.is_empty(),
        !d.srv.is_empty(),
        !d.endpoints.is_empty(),
    ];
    if sources.into_iter().filter(|&is_set| is_set).count() > 1 {
        return Err("multiple discovery or bootstrap flags are set. Choose one of \
                    \"initial-cluster\", \"discovery\", \"discovery-endpoints\" or \"discovery-srv\""
            .into());
    }
    let has_v3 = !d.endpoints.is_empty()
        || [&d.token, &d.cert, &d.key, &d.cacert, &d.user, &d.password]
            .iter()
            .any(|setting| !setting.is_empty());
    if !d.proxy.is_empty() && has_v3 {
        return Err("both v2 discovery settings (discovery, discovery-proxy) and v3 discovery \
                    settings (discovery-token, discovery-endpoints, discovery-cert, \
                    discovery-key, discovery-cacert, discovery-user, discovery-password) are set"
            .into());
    }
    if d.token.is_empty() != d.endpoints.is_empty() {
        return Err("both --discovery-token and --discovery-endpoints must be set".into());
    }
    if d.endpoints.iter().any(|endpoint| endpoint.trim().is_empty()) {
        return Err("--discovery-endpoints must not contain empty endpoints".into());
    }
    Ok(())
}

fn check_timers(draft: &Draft) -> Result<(), String> {
    let (beat, election) = (draft.config.heartbeat_ms, draft.config.election_ms);
    if beat == 0 {
        return Err(format!("--heartbeat-interval must be >0 (set to {beat}ms)"));
    }
    if election == 0 {
        return Err(format!("--election-timeout must be >0 (set to {election}ms)"));
    }
    if beat.saturating_mul(5) > election {
        return Err(format!(
            "--election-timeout[{election}ms] should be at least as 5 times as \
             --heartbeat-interval[{beat}ms]"
        ));
    }
    if election > ELECTION_MS_MAX {
        return Err(format!(
            "--election-timeout[{election}ms] is too long, and should be set less than \
             {ELECTION_MS_MAX}ms"
        ));
    }
    Ok(())
}

fn check_tracing(draft: &Draft) -> Result<(), String> {
    let rate = draft.config.distributed_tracing_sampling_rate;
    let why = match rate {
        _ if !draft.config.enable_distributed_tracing => return Ok(()),
        ..0 => "tracing sampling rate must be positive",
        1_000_001.. => "tracing sampling rate must be less than 1000000",
        _ => return Ok(()),
    };
    Err(format!("distributed tracing configurition is not valid: ({why})"))
}

fn check_gates(draft: &Draft, lines: &mut Vec<Entry>) -> Result<(), String> {
    let gates = &draft.config.feature_gates;
    let persists = gates.is_enabled(Gate::LeaseCheckpointPersist);
    match (gates.is_enabled(Gate::LeaseCheckpoint), persists) {
        (true, false) => lines.push(entry!(
            Level::Warn,
            "Detected that checkpointing is enabled without persistence. \
             Consider enabling feature gate LeaseCheckpointPersist"
        )),
        (false, true) => {
            return Err("enabling feature gate LeaseCheckpointPersist requires enabling feature \
                        gate LeaseCheckpoint"
                .into());
        }
        _ => {}
    }
    Ok(())
}

fn check_hash_times(draft: &mut Draft) -> Result<(), String> {
    let (old, proper) =
        (draft.experimental_compact_hash_check_nanos, draft.compact_hash_check_nanos);
    let refuse = |flag: &str, nanos: i64| {
        let set_to = crate::duration::format_go_duration(nanos);
        Err(format!("--{flag} must be >0 (set to {set_to})"))
    };
    if old <= 0 {
        return refuse("experimental-compact-hash-check-time", old);
    }
    if proper <= 0 {
        return refuse("compact-hash-check-time", proper);
    }
    let is_old = draft.is_given("experimental-compact-hash-check-time");
    draft.config.compact_hash_check_time = clamp(if is_old { old } else { proper });
    Ok(())
}

fn check_tls_versions(draft: &Draft) -> Result<(), String> {
    let config = &draft.config;
    let rank = |version: &str| match version {
        "" => Ok(0),
        "TLS1.2" => Ok(2),
        "TLS1.3" => Ok(3),
        other => {
            Err(format!("unexpected TLS version {} (must be one of: TLS1.2, TLS1.3)", quote(other)))
        }
    };
    let (least, most) = (rank(&config.tls_min_version)?, rank(&config.tls_max_version)?);
    if most != 0 && least > most {
        return Err(format!(
            "min version ({}) is greater than max version ({})",
            config.tls_min_version, config.tls_max_version
        ));
    }
    if least == 3 && !config.cipher_suites.is_empty() {
        return Err("cipher suites cannot be configured when only TLS1.3 is enabled".into());
    }
    Ok(())
}
