//! The config file: YAML or JSON, with its own ideas about some keys.
//!
//! It is read as etcd reads it: first every value is checked for its type, in the order of the
//! keys; then gates, then URLs. Unknown keys are let through, because etcd lets them through and
//! one file may serve several versions.

use crate::aliases;
use crate::draft::Draft;
use crate::file_keys::{self, Key, Target};
use crate::flags;
use crate::log::output_reason;
use crate::quote::quote;
use crate::settings::{Config, Tls};
use crate::urls::{self, Url};
use crate::validate::Fault;
use crate::yaml::{self, Yaml};

pub(crate) enum FileFault {
    /// The usual end of wrong settings.
    Fault(Fault),
    /// Printed to stderr, exit 1, and nothing is logged.
    Exit(String),
}

impl From<Fault> for FileFault {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<String> for FileFault {
    fn from(why: String) -> Self {
        Self::Fault(Fault::Refused(why))
    }
}

/// Reads the file into a fresh draft.
pub(crate) fn read(draft: &mut Draft, path: &str) -> Result<(), FileFault> {
    let text =
        std::fs::read(path).map_err(|error| format!("open {path}: {}", output_reason(&error)))?;
    let text = String::from_utf8(text).map_err(|_| {
        "error converting YAML to JSON: yaml: invalid leading UTF-8 octet".to_string()
    })?;
    apply(draft, &text)
}

fn apply(draft: &mut Draft, text: &str) -> Result<(), FileFault> {
    let root =
        yaml::parse(text).map_err(|why| format!("error converting YAML to JSON: yaml: {why}"))?;
    let mut pairs = match root {
        Yaml::Null => return Ok(()),
        Yaml::Map(pairs) => pairs,
        other => {
            let kind = other.kind();
            return Err(unmarshal(&format!("{kind} into Go value of type embed.configYAML")).into());
        }
    };
    pairs.sort_by(|(one, _), (other, _)| one.cmp(other));
    let mut gathered = Gathered::default();
    for (key, value) in &pairs {
        gathered.take(draft, key, value)?;
    }
    if !gathered.gates.is_empty() {
        draft.config.feature_gates.parse(&gathered.gates)?;
        draft.gates_text = gathered.gates.clone();
    }
    if let Some((_, peer)) = pairs.iter().find(|(key, _)| key == "peer-transport-security")
        && !matches!(peer, Yaml::Map(_))
    {
        return Err("invalid peer-transport-security".to_string().into());
    }
    aliases::apply_gates(draft)?;
    gathered.set_urls(&mut draft.config)?;
    let d = &draft.config.discovery;
    let is_discovered = !d.url.is_empty() || !d.srv.is_empty() || !d.endpoints.is_empty();
    if is_discovered && draft.config.initial_cluster == Config::default().initial_cluster {
        draft.config.initial_cluster.clear();
    }
    if draft.cluster_state.is_empty() {
        draft.cluster_state = "new".into();
    }
    if draft.config.self_signed_cert_validity_years == 0 {
        draft.config.self_signed_cert_validity_years = 1;
    }
    Ok(())
}

fn unmarshal(what: &str) -> String {
    format!("error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {what}")
}

/// What is looked at only after all types were found right.
#[derive(Default)]
struct Gathered {
    gates: String,
    urls: Vec<(&'static str, String)>,
}

impl Gathered {
    fn take(&mut self, draft: &mut Draft, key: &str, value: &Yaml) -> Result<(), String> {
        let Some(found) = file_keys::find(key) else { return Ok(()) };
        let is_exact = key == found.name;
        match found.target {
            Target::Tls => {
                let tls = if found.name.starts_with("peer") {
                    &mut draft.config.peer_tls
                } else {
                    &mut draft.config.client_tls
                };
                take_tls(tls, &found, value)?;
            }
            Target::Sockets => take_sockets(&mut draft.config, &found, value)?,
            Target::Discovery => take_discovery(&mut draft.config, &found, value)?,
            Target::Gates => self.gates = found.text(value)?.unwrap_or_default(),
            Target::Urls => {
                if let Some(text) = found.text(value)?.filter(|text| !text.is_empty()) {
                    self.urls.push((found.name, text));
                }
            }
            Target::ClusterState => {
                if let Some(word) = found.text(value)? {
                    draft.cluster_state = word;
                }
            }
            Target::V2Deprecation => {
                if let Some(word) = found.text(value)? {
                    draft.config.v2_deprecation = word;
                }
            }
            Target::LogOutputs => {
                if let Some(list) = found.list(value)? {
                    draft.log.outputs = list;
                }
            }
            Target::CipherSuites => {
                if let Some(list) = found.list(value)? {
                    draft.config.cipher_suites = list;
                }
            }
            Target::Flag(kind) => {
                if let Some(text) = found.flag_text(kind, value)? {
                    let flag = flags::find(found.name).expect("a file key of this kind is a flag");
                    flag.apply(draft, &text).map_err(|why| {
                        format!("invalid value {} for {}: {why}", quote(&text), found.name)
                    })?;
                }
            }
        }
        if is_exact {
            draft.given.insert(found.name);
        }
        Ok(())
    }

    /// In etcd's order, which decides what is complained about first.
    fn set_urls(&self, config: &mut Config) -> Result<(), FileFault> {
        let text_of = |name| self.urls.iter().find(|(key, _)| *key == name).map(|(_, text)| text);
        let slots: [(&str, &str, &mut Vec<Url>); 6] = [
            ("listen-peer-urls", "listen-peer-urls", &mut config.listen_peer_urls),
            ("listen-client-urls", "listen-client-urls", &mut config.listen_client_urls),
            (
                "listen-client-http-urls",
                "listen-client-http-urls",
                &mut config.listen_client_http_urls,
            ),
            (
                "initial-advertise-peer-urls",
                "initial-advertise-peer-urls",
                &mut config.initial_advertise_peer_urls,
            ),
            // etcd names the wrong key here, and people may search for it.
            ("advertise-client-urls", "advertise-peer-urls", &mut config.advertise_client_urls),
            ("listen-metrics-urls", "listen-metrics-urls", &mut config.listen_metrics_urls),
        ];
        for (key, named, slot) in slots {
            let Some(text) = text_of(key) else { continue };
            *slot = urls::parse_list(text).map_err(|why| {
                FileFault::Exit(format!("unexpected error setting up {named}: {why}\n"))
            })?;
        }
        if let Some(origins) = text_of("cors") {
            config.cors.clear();
            flags::put_origins(&mut config.cors, origins).map_err(|why| {
                FileFault::Fault(Fault::Panic(format!("new UniqueURLs should never fail: {why}")))
            })?;
        }
        if let Some(hosts) = text_of("host-whitelist") {
            config.host_whitelist = flags::sorted_list(hosts)?;
        }
        Ok(())
    }
}

fn take_tls(tls: &mut Tls, section: &Key, value: &Yaml) -> Result<(), String> {
    for (key, value) in section.section(value, "embed.securityConfig")? {
        let key = section.inner(key, "securityConfig");
        match key.leaf() {
            "cert-file" => key.set_text(value, &mut tls.cert_file)?,
            "key-file" => key.set_text(value, &mut tls.key_file)?,
            "client-cert-file" => key.set_text(value, &mut tls.client_cert_file)?,
            "client-key-file" => key.set_text(value, &mut tls.client_key_file)?,
            "client-cert-auth" => key.set_bool(value, &mut tls.client_cert_auth)?,
            "trusted-ca-file" => key.set_text(value, &mut tls.trusted_ca_file)?,
            "auto-tls" => key.set_bool(value, &mut tls.auto)?,
            "allowed-cn" => key.set_list(value, &mut tls.allowed_cns)?,
            "allowed-hostname" => key.set_list(value, &mut tls.allowed_hostnames)?,
            "skip-client-san-verification" => {
                key.set_bool(value, &mut tls.skip_client_san_verification)?
            }
            _ => {}
        }
    }
    Ok(())
}

fn take_sockets(config: &mut Config, section: &Key, value: &Yaml) -> Result<(), String> {
    for (key, value) in section.section(value, "transport.SocketOpts")? {
        let key = section.inner(key, "SocketOpts");
        match key.leaf() {
            "reuse-port" => key.set_bool(value, &mut config.socket_reuse_port)?,
            "reuse-address" => key.set_bool(value, &mut config.socket_reuse_address)?,
            _ => {}
        }
    }
    Ok(())
}

fn take_discovery(config: &mut Config, section: &Key, value: &Yaml) -> Result<(), String> {
    let d = &mut config.discovery;
    for (key, value) in section.section(value, "v3discovery.DiscoveryConfig")? {
        let key = section.inner(key, "DiscoveryConfig");
        match key.leaf() {
            "token" => key.set_text(value, &mut d.token)?,
            "client" => {
                for (name, value) in key.section(value, "clientv3.ConfigSpec")? {
                    let key = key.inner(name, "ConfigSpec");
                    match key.leaf() {
                        "endpoints" => key.set_list(value, &mut d.endpoints)?,
                        "dial-timeout" => key.set_duration(value, &mut d.dial_timeout)?,
                        "request-timeout" => key.set_duration(value, &mut d.request_timeout)?,
                        "keepalive-time" => key.set_duration(value, &mut d.keepalive_time)?,
                        "keepalive-timeout" => key.set_duration(value, &mut d.keepalive_timeout)?,
                        "secure" | "auth" => {
                            let kind =
                                if key.leaf() == "auth" { "AuthConfig" } else { "SecureConfig" };
                            for (name, value) in key.section(value, &format!("clientv3.{kind}"))? {
                                let key = key.inner(name, kind);
                                match key.leaf() {
                                    "cert" => key.set_text(value, &mut d.cert)?,
                                    "key" => key.set_text(value, &mut d.key)?,
                                    "cacert" => key.set_text(value, &mut d.cacert)?,
                                    "insecure-transport" => {
                                        key.set_bool(value, &mut d.insecure_transport)?
                                    }
                                    "insecure-skip-tls-verify" => {
                                        key.set_bool(value, &mut d.insecure_skip_tls_verify)?
                                    }
                                    "username" => key.set_text(value, &mut d.user)?,
                                    "password" => key.set_text(value, &mut d.password)?,
                                    _ => {}
                                }
                            }
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}
