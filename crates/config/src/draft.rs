//! The settings while they are being gathered: what a flag or a file key writes into.
//!
//! Most go straight into [`Config`]. What is kept apart here is what must be remembered as it was
//! written, because a check or a message needs it: a negative duration, a level that may be wrong,
//! which of two names for one setting was used.

use std::collections::{BTreeMap, BTreeSet};

use crate::gates::Gate;
use crate::settings::Config;

pub(crate) struct Draft {
    pub config: Config,
    /// The flags or file keys that somebody set.
    pub given: BTreeSet<&'static str>,
    pub config_file: String,
    pub print_version: bool,
    pub discovery_fallback: String,
    /// A file may hold any word here; a flag may not.
    pub cluster_state: String,
    pub compact_hash_check_nanos: i64,
    pub experimental_compact_hash_check_nanos: i64,
    /// 0 is "not said".
    pub warning_unary_nanos: i64,
    pub experimental_warning_unary_nanos: i64,
    pub gates_text: String,
    pub gate_aliases: BTreeMap<Gate, (&'static str, bool)>,
    pub log: DraftLog,
    /// The log settings were found right, so that lines can be written as they say.
    pub is_log_settled: bool,
}

pub(crate) struct DraftLog {
    pub logger: String,
    pub level: String,
    pub format: String,
    pub outputs: Vec<String>,
    pub rotates: bool,
    pub rotation_json: String,
}

pub(crate) const MINUTE_NANOS: i64 = 60_000_000_000;
pub(crate) const ROTATION_JSON: &str =
    r#"{"maxsize": 100, "maxage": 0, "maxbackups": 0, "localtime": false, "compress": false}"#;

impl Default for Draft {
    fn default() -> Self {
        Self {
            config: Config::default(),
            given: BTreeSet::new(),
            config_file: String::new(),
            print_version: false,
            discovery_fallback: "exit".into(),
            cluster_state: "new".into(),
            compact_hash_check_nanos: MINUTE_NANOS,
            experimental_compact_hash_check_nanos: MINUTE_NANOS,
            warning_unary_nanos: 0,
            experimental_warning_unary_nanos: 0,
            gates_text: String::new(),
            gate_aliases: BTreeMap::new(),
            log: DraftLog {
                logger: "zap".into(),
                level: "info".into(),
                format: "json".into(),
                outputs: vec!["default".into()],
                rotates: false,
                rotation_json: ROTATION_JSON.into(),
            },
            is_log_settled: false,
        }
    }
}

impl Draft {
    pub fn is_given(&self, flag: &str) -> bool {
        self.given.contains(flag)
    }
}
