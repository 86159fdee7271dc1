//! What etcd can do and this version cannot yet: refused by name, never silently dropped.
//!
//! A setting that changes nothing in etcd either, such as a TLS version without TLS, is let
//! through. When something here learns to work, its row goes.

use crate::settings::{ClusterState, Config};

const TLS: &str = "serve without TLS, or put a TLS-terminating proxy in front";
const DISCOVERY: &str = "name the members with --initial-cluster instead";

/// The first setting that cannot be honoured, as a message for the operator.
pub(crate) fn check(config: &Config) -> Result<(), String> {
    for (flag, is_set, advice) in rows(config) {
        if is_set {
            return Err(format!("--{flag} is not supported by this version of Althing; {advice}"));
        }
    }
    check_first_boot(config)
}

fn rows(config: &Config) -> Vec<(&'static str, bool, &'static str)> {
    let (c, p, d) = (&config.client_tls, &config.peer_tls, &config.discovery);
    let defaults = crate::settings::Discovery::default();
    vec![
        ("cert-file", !c.cert_file.is_empty(), TLS),
        ("key-file", !c.key_file.is_empty(), TLS),
        ("client-cert-auth", c.client_cert_auth, TLS),
        ("client-cert-file", !c.client_cert_file.is_empty(), TLS),
        ("client-key-file", !c.client_key_file.is_empty(), TLS),
        ("client-crl-file", !c.crl_file.is_empty(), TLS),
        ("client-cert-allowed-hostname", !c.allowed_hostnames.is_empty(), TLS),
        ("trusted-ca-file", !c.trusted_ca_file.is_empty(), TLS),
        ("auto-tls", c.auto, TLS),
        ("peer-cert-file", !p.cert_file.is_empty(), TLS),
        ("peer-key-file", !p.key_file.is_empty(), TLS),
        ("peer-client-cert-auth", p.client_cert_auth, TLS),
        ("peer-client-cert-file", !p.client_cert_file.is_empty(), TLS),
        ("peer-client-key-file", !p.client_key_file.is_empty(), TLS),
        ("peer-trusted-ca-file", !p.trusted_ca_file.is_empty(), TLS),
        ("peer-cert-allowed-cn", !p.allowed_cns.is_empty(), TLS),
        ("peer-cert-allowed-hostname", !p.allowed_hostnames.is_empty(), TLS),
        ("peer-auto-tls", p.auto, TLS),
        ("peer-crl-file", !p.crl_file.is_empty(), TLS),
        ("peer-skip-client-san-verification", p.skip_client_san_verification, TLS),
        ("discovery", !d.url.is_empty(), DISCOVERY),
        ("discovery-proxy", !d.proxy.is_empty(), DISCOVERY),
        ("discovery-srv", !d.srv.is_empty(), DISCOVERY),
        ("discovery-srv-name", !d.srv_name.is_empty(), DISCOVERY),
        ("discovery-endpoints", !d.endpoints.is_empty(), DISCOVERY),
        ("discovery-token", !d.token.is_empty(), DISCOVERY),
        ("discovery-dial-timeout", d.dial_timeout != defaults.dial_timeout, DISCOVERY),
        ("discovery-request-timeout", d.request_timeout != defaults.request_timeout, DISCOVERY),
        ("discovery-keepalive-time", d.keepalive_time != defaults.keepalive_time, DISCOVERY),
        (
            "discovery-keepalive-timeout",
            d.keepalive_timeout != defaults.keepalive_timeout,
            DISCOVERY,
        ),
        ("discovery-insecure-transport", !d.insecure_transport, DISCOVERY),
        ("discovery-insecure-skip-tls-verify", d.insecure_skip_tls_verify, DISCOVERY),
        ("discovery-cert", !d.cert.is_empty(), DISCOVERY),
        ("discovery-key", !d.key.is_empty(), DISCOVERY),
        ("discovery-cacert", !d.cacert.is_empty(), DISCOVERY),
        ("discovery-user", !d.user.is_empty(), DISCOVERY),
        ("discovery-password", !d.password.is_empty(), DISCOVERY),
        (
            "auth-token=jwt",
            config.auth_token == "jwt" || config.auth_token.starts_with("jwt,"),
            "leave it at 'simple'",
        ),
        (
            "enable-distributed-tracing",
            config.enable_distributed_tracing,
            "leave it out; slow requests are in the log and in /metrics",
        ),
        (
            "force-new-cluster",
            config.force_new_cluster,
            "a member that is alone in its cluster restarts without it",
        ),
        (
            "enable-pprof",
            config.enable_pprof,
            "leave it out and profile the running process with perf",
        ),
    ]
}

/// Only the first boot reads these; a member with data ignores them, as etcd does.
fn check_first_boot(config: &Config) -> Result<(), String> {
    if config.is_initialized() {
        return Ok(());
    }
    if config.initial_cluster_state == ClusterState::Existing {
        return Err(
            "--initial-cluster-state=existing on an empty data directory is not supported \
                    by this version of Althing; a member cannot join a running cluster yet. Found \
                    a cluster of one with --initial-cluster-state=new, or check --data-dir if this \
                    member has run before"
                .into(),
        );
    }
    let mut names: Vec<&str> = config
        .initial_cluster
        .split(',')
        .filter_map(|pair| pair.split_once('=').map(|(name, _)| name))
        .collect();
    names.sort_unstable();
    names.dedup();
    if names.len() > 1 {
        return Err(format!(
            "--initial-cluster with {} members ({}) is not supported by this version of Althing; \
             name only this member",
            names.len(),
            names.join(", ")
        ));
    }
    Ok(())
}
