//! The keys of the config file: mostly the flags' names, with the types Go expects behind them.

use std::time::Duration;

use crate::flags::{self, Kind, clamp};
use crate::yaml::Yaml;

/// Where a key's value goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// To the flag of the same name.
    Flag(Kind),
    Urls,
    Gates,
    ClusterState,
    V2Deprecation,
    LogOutputs,
    CipherSuites,
    Tls,
    Sockets,
    Discovery,
}

/// A key that means something, and the words for it in an error.
pub(crate) struct Key {
    pub name: &'static str,
    pub target: Target,
    /// `configYAML.Config.name`, as Go's decoder would put it.
    path: String,
    leaf: String,
}

/// Flags that have no key of their own.
const KEYLESS: &[&str] = &[
    "cert-file",
    "key-file",
    "client-cert-auth",
    "client-cert-file",
    "client-key-file",
    "client-crl-file",
    "client-cert-allowed-hostname",
    "trusted-ca-file",
    "auto-tls",
    "peer-cert-file",
    "peer-key-file",
    "peer-client-cert-auth",
    "peer-client-cert-file",
    "peer-client-key-file",
    "peer-trusted-ca-file",
    "peer-cert-allowed-cn",
    "peer-cert-allowed-hostname",
    "peer-auto-tls",
    "peer-crl-file",
    "peer-skip-client-san-verification",
    "discovery-token",
    "discovery-endpoints",
    "discovery-dial-timeout",
    "discovery-request-timeout",
    "discovery-keepalive-time",
    "discovery-keepalive-timeout",
    "discovery-insecure-transport",
    "discovery-insecure-skip-tls-verify",
    "discovery-cert",
    "discovery-key",
    "discovery-cacert",
    "discovery-user",
    "discovery-password",
    "discovery-fallback",
    "socket-reuse-port",
    "socket-reuse-address",
    "raft-read-timeout",
    "raft-write-timeout",
    "config-file",
    "version",
];

/// The key of this name, in whatever case.
pub(crate) fn find(key: &str) -> Option<Key> {
    let lower = key.to_ascii_lowercase();
    let (name, target) = match lower.as_str() {
        "client-transport-security" => ("client-transport-security", Target::Tls),
        "peer-transport-security" => ("peer-transport-security", Target::Tls),
        "socket-options" => ("socket-options", Target::Sockets),
        "discovery-config" => ("discovery-config", Target::Discovery),
        "log-outputs" => ("log-outputs", Target::LogOutputs),
        "cipher-suites" => ("cipher-suites", Target::CipherSuites),
        "initial-cluster-state" => ("initial-cluster-state", Target::ClusterState),
        "v2-deprecation" => ("v2-deprecation", Target::V2Deprecation),
        "feature-gates" => ("feature-gates", Target::Gates),
        "cors" => ("cors", Target::Urls),
        "host-whitelist" => ("host-whitelist", Target::Urls),
        // Both spellings were in use for a while.
        "experimental-snapshot-catch-up-entries" => {
            ("experimental-snapshot-catchup-entries", Target::Flag(Kind::Uint64))
        }
        other if KEYLESS.contains(&other) => return None,
        other => {
            let flag = flags::find(other).filter(|flag| flag.kind != Kind::Ignored)?;
            let is_urls = flag.kind == Kind::Urls;
            (flag.name, if is_urls { Target::Urls } else { Target::Flag(flag.kind) })
        }
    };
    let is_json = matches!(target, Target::Urls | Target::Gates | Target::Tls);
    let holder = if is_json && name != "listen-metrics-urls" { "configJSON" } else { "Config" };
    let shown = if lower == "experimental-snapshot-catch-up-entries" { &lower } else { name };
    let path = format!("configYAML.{holder}.{shown}");
    Some(Key { name, target, path, leaf: lower })
}

impl Key {
    /// The last part of the key, in lower case.
    pub fn leaf(&self) -> &str {
        &self.leaf
    }

    /// The key `name` within the mapping under this key; Go then names the inner type first.
    pub fn inner(&self, name: &str, holder: &str) -> Self {
        let within = self.path.split_once('.').map_or("", |(_, rest)| rest);
        let leaf = name.to_ascii_lowercase();
        let path = format!("{holder}.{within}.{leaf}");
        Self { name: self.name, target: self.target, path, leaf }
    }

    /// The pairs of a mapping; null is an empty one.
    pub fn section<'a>(&self, value: &'a Yaml, kind: &str) -> Result<&'a [(String, Yaml)], String> {
        match value {
            Yaml::Null => Ok(&[]),
            Yaml::Map(pairs) => Ok(pairs),
            other => Err(self.mismatch(other, kind)),
        }
    }

    /// A text; null says nothing.
    pub fn text(&self, value: &Yaml) -> Result<Option<String>, String> {
        match value {
            Yaml::Null => Ok(None),
            Yaml::Text(text) => Ok(Some(text.clone())),
            other => Err(self.mismatch(other, self.go_type(Kind::Text))),
        }
    }

    pub fn list(&self, value: &Yaml) -> Result<Option<Vec<String>>, String> {
        let items = match value {
            Yaml::Null => return Ok(None),
            Yaml::List(items) => items,
            other => return Err(self.mismatch(other, "[]string")),
        };
        let item = |item: &Yaml| match item {
            Yaml::Text(text) => Ok(text.clone()),
            Yaml::Null => Ok(String::new()),
            other => Err(self.mismatch(other, "string")),
        };
        items.iter().map(item).collect::<Result<Vec<_>, _>>().map(Some)
    }

    /// What the flag's own parser should be given, once the type is right.
    pub fn flag_text(&self, kind: Kind, value: &Yaml) -> Result<Option<String>, String> {
        if *value == Yaml::Null {
            return Ok(None);
        }
        match kind {
            Kind::Text | Kind::Urls | Kind::List | Kind::Ignored => self.text(value),
            Kind::Bool => match value {
                Yaml::Bool(yes) => Ok(Some(yes.to_string())),
                other => Err(self.mismatch(other, "bool")),
            },
            Kind::Duration => Ok(Some(format!("{}ns", self.number(value, kind)?))),
            _ => Ok(Some(self.number(value, kind)?.to_string())),
        }
    }

    pub fn set_text(&self, value: &Yaml, slot: &mut String) -> Result<(), String> {
        *slot = self.text(value)?.unwrap_or_else(|| std::mem::take(slot));
        Ok(())
    }

    pub fn set_bool(&self, value: &Yaml, slot: &mut bool) -> Result<(), String> {
        match value {
            Yaml::Null => Ok(()),
            Yaml::Bool(yes) => {
                *slot = *yes;
                Ok(())
            }
            other => Err(self.mismatch(other, "bool")),
        }
    }

    pub fn set_list(&self, value: &Yaml, slot: &mut Vec<String>) -> Result<(), String> {
        *slot = self.list(value)?.unwrap_or_else(|| std::mem::take(slot));
        Ok(())
    }

    pub fn set_duration(&self, value: &Yaml, slot: &mut Duration) -> Result<(), String> {
        if *value != Yaml::Null {
            let nanos = self.number(value, Kind::Duration)?;
            *slot = clamp(i64::try_from(nanos).unwrap_or(i64::MAX));
        }
        Ok(())
    }

    /// A whole number within the bounds of its type.
    fn number(&self, value: &Yaml, kind: Kind) -> Result<i128, String> {
        let Yaml::Number(text) = value else {
            return Err(self.mismatch(value, self.go_type(kind)));
        };
        let bounds = match kind {
            Kind::Uint | Kind::Uint64 => 0..=i128::from(u64::MAX),
            Kind::Uint32 => 0..=i128::from(u32::MAX),
            _ => i128::from(i64::MIN)..=i128::from(i64::MAX),
        };
        let number = text.parse::<i128>().ok().filter(|number| bounds.contains(number));
        number.ok_or_else(|| self.refuse(&format!("number {text}"), self.go_type(kind)))
    }

    fn go_type(&self, kind: Kind) -> &'static str {
        match kind {
            _ if self.target == Target::V2Deprecation => "config.V2DeprecationEnum",
            Kind::Bool => "bool",
            Kind::Int => "int",
            Kind::Int64 => "int64",
            Kind::Uint => "uint",
            Kind::Uint32 => "uint32",
            Kind::Uint64 => "uint64",
            Kind::Duration => "time.Duration",
            Kind::Text | Kind::Urls | Kind::List | Kind::Ignored => "string",
        }
    }

    fn mismatch(&self, found: &Yaml, wanted: &str) -> String {
        self.refuse(found.kind(), wanted)
    }

    fn refuse(&self, found: &str, wanted: &str) -> String {
        format!(
            "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {found} into \
             Go struct field {} of type {wanted}",
            self.path
        )
    }
}
