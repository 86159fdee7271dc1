//! `ETCD_*` variables: each flag has one, and it counts only where the flag was not given.
//!
//! A variable beside its flag is an error, even when it is empty: two sources that may disagree
//! are a trap, and etcd refuses to guess.

use std::collections::BTreeSet;

use crate::draft::Draft;
use crate::entry;
use crate::flags;
use crate::log::{Entry, Level};
use crate::quote::quote;

/// Why the environment ends the process.
pub(crate) enum Refusal {
    /// A variable stands beside its flag.
    Shadowed(String),
    /// A value that its flag does not take.
    Invalid(String),
}

pub(crate) fn variable_of(flag: &str) -> String {
    format!("ETCD_{}", flag.to_ascii_uppercase().replace('-', "_"))
}

pub(crate) fn apply(
    draft: &mut Draft,
    environment: &[(String, String)],
    lines: &mut Vec<Entry>,
) -> Result<(), Refusal> {
    let value_of = |variable: &str| {
        environment.iter().find(|(name, value)| name == variable && !value.is_empty())
    };
    // Once meant for the flag --version; taken literally it would end every server.
    let version = value_of("ETCD_VERSION");
    if let Some((key, value)) = version {
        lines.push(entry!(
            Level::Warn,
            "cannot set special environment variable",
            "key" => key,
            "value" => value
        ));
    }
    let flagged: BTreeSet<String> = draft.given.iter().map(|flag| variable_of(flag)).collect();
    let mut used = BTreeSet::new();
    let mut invalid = None;
    for name in flags::names() {
        let variable = variable_of(name);
        if name == "version" || flagged.contains(&variable) {
            continue;
        }
        let Some((_, value)) = value_of(&variable) else { continue };
        let flag = flags::find(name).expect("every listed name is found");
        used.insert(variable.clone());
        match flag.apply(draft, value) {
            Err(why) => {
                invalid = Some(format!("invalid value {} for {variable}: {why}", quote(value)))
            }
            Ok(()) => lines.push(entry!(
                Level::Info,
                "recognized and used environment variable",
                "variable-name" => &variable,
                "variable-value" => value
            )),
        }
    }
    for (name, value) in environment {
        if used.contains(name) || (version.is_some() && name == "ETCD_VERSION") {
            continue;
        }
        if flagged.contains(name) {
            return Err(Refusal::Shadowed(name.clone()));
        }
        if name.starts_with("ETCD_") {
            lines.push(entry!(
                Level::Warn,
                "unrecognized environment variable",
                "environment-variable" => format!("{name}={value}")
            ));
        }
    }
    invalid.map_or(Ok(()), |why| Err(Refusal::Invalid(why)))
}
