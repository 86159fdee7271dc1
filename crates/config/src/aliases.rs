//! The `--experimental-*` names that 3.6 still takes for settings that have a proper name.
//!
//! Some stand for a flag (`--experimental-X` is `--X`), some for a feature gate. They work, they
//! are told off in the log, and they may not be combined with the proper name.

use crate::draft::Draft;
use crate::flags::{FLAGS, Kind, Setter, boolean, nanos, put};
use crate::gates::Gate;

pub(crate) struct Alias {
    pub name: &'static str,
    pub kind: Kind,
    pub set: Setter,
}

/// How an alias is told off; etcd is not consistent, and people match on the words.
#[derive(Clone, Copy, PartialEq)]
enum Telling {
    /// `v3.6`, `v3.7`, the proper name in quotes.
    Usual,
    /// `3.6` and `3.7` without the letter.
    Plain,
    /// The same, and no quotes.
    Bare,
    /// The proper name without its dashes.
    Dashless,
    /// Not at all, or in words of its own.
    Silent,
}

const OF_FLAGS: &[(&str, Telling)] = &[
    ("experimental-bootstrap-defrag-threshold-megabytes", Telling::Usual),
    ("experimental-compact-hash-check-time", Telling::Plain),
    ("experimental-compaction-batch-limit", Telling::Usual),
    ("experimental-compaction-sleep-interval", Telling::Dashless),
    ("experimental-corrupt-check-time", Telling::Usual),
    ("experimental-distributed-tracing-address", Telling::Bare),
    ("experimental-distributed-tracing-instance-id", Telling::Bare),
    ("experimental-distributed-tracing-sampling-rate", Telling::Bare),
    ("experimental-distributed-tracing-service-name", Telling::Bare),
    ("experimental-downgrade-check-time", Telling::Usual),
    ("experimental-enable-distributed-tracing", Telling::Bare),
    ("experimental-memory-mlock", Telling::Usual),
    ("experimental-peer-skip-client-san-verification", Telling::Silent),
    ("experimental-snapshot-catchup-entries", Telling::Usual),
    ("experimental-warning-apply-duration", Telling::Usual),
    (WARNING_UNARY, Telling::Silent),
    ("experimental-watch-progress-notify-interval", Telling::Usual),
];

const WARNING_UNARY: &str = "experimental-warning-unary-request-duration";

struct OfGate {
    name: &'static str,
    gate: Gate,
    telling: Telling,
    set: Setter,
}

#[rustfmt::skip]
const OF_GATES: &[OfGate] = &[
    OfGate { name: "experimental-compact-hash-check-enabled", gate: Gate::CompactHashCheck, telling: Telling::Plain,
        set: |d, v| put_gate(d, 0, v) },
    OfGate { name: "experimental-enable-lease-checkpoint", gate: Gate::LeaseCheckpoint, telling: Telling::Silent,
        set: |d, v| put_gate(d, 1, v) },
    OfGate { name: "experimental-enable-lease-checkpoint-persist", gate: Gate::LeaseCheckpointPersist, telling: Telling::Silent,
        set: |d, v| put_gate(d, 2, v) },
    OfGate { name: "experimental-initial-corrupt-check", gate: Gate::InitialCorruptCheck, telling: Telling::Silent,
        set: |d, v| put_gate(d, 3, v) },
    OfGate { name: "experimental-stop-grpc-service-on-defrag", gate: Gate::StopGRPCServiceOnDefrag, telling: Telling::Silent,
        set: |d, v| put_gate(d, 4, v) },
    OfGate { name: "experimental-txn-mode-write-with-shared-buffer", gate: Gate::TxnModeWriteWithSharedBuffer, telling: Telling::Usual,
        set: |d, v| put_gate(d, 5, v) },
];

fn put_gate(draft: &mut Draft, at: usize, value: &str) -> Result<(), String> {
    let OfGate { name, gate, .. } = OF_GATES[at];
    draft.gate_aliases.insert(gate, (name, boolean(value)?));
    Ok(())
}

pub(crate) fn find(name: &str) -> Option<Alias> {
    if let Some(of_gate) = OF_GATES.iter().find(|alias| alias.name == name) {
        return Some(Alias { name: of_gate.name, kind: Kind::Bool, set: of_gate.set });
    }
    let &(name, _) = OF_FLAGS.iter().find(|(alias, _)| *alias == name)?;
    let proper = FLAGS.iter().find(|flag| flag.name == proper_name(name));
    let proper = proper.expect("every alias in the table stands for a flag in the table");
    let set: Setter = match name {
        // These two are checked by the name that was used, so they keep their own values.
        "experimental-compact-hash-check-time" => {
            |d, v| put(&mut d.experimental_compact_hash_check_nanos, nanos(v))
        }
        WARNING_UNARY => |d, v| put(&mut d.experimental_warning_unary_nanos, nanos(v)),
        _ => proper.set,
    };
    Some(Alias { name, kind: proper.kind, set })
}

pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    OF_FLAGS.iter().map(|(name, _)| *name).chain(OF_GATES.iter().map(|alias| alias.name))
}

fn proper_name(alias: &'static str) -> &'static str {
    alias.strip_prefix("experimental-").expect("every alias begins with this word")
}

/// A flag and its alias were both set.
pub(crate) fn check_flags(draft: &Draft) -> Result<(), String> {
    for &(alias, _) in OF_FLAGS.iter().filter(|(alias, _)| *alias != WARNING_UNARY) {
        let proper = proper_name(alias);
        if draft.is_given(alias) && draft.is_given(proper) {
            return Err(format!(
                "cannot set --{alias} and --{proper} at the same time, please use --{proper} only"
            ));
        }
    }
    Ok(())
}

/// Lets the aliases of gates take effect, unless the gate itself was named too.
pub(crate) fn apply_gates(draft: &mut Draft) -> Result<(), String> {
    for (&gate, &(alias, value)) in &draft.gate_aliases {
        let name = gate.name();
        if draft.gates_text.contains(name) {
            let in_force = draft.config.feature_gates.is_enabled(gate);
            return Err(format!(
                "cannot specify both flags: --{alias}={value} and --feature-gates={name}={in_force} \
                 at the same time, please just use --feature-gates={name}={in_force}"
            ));
        }
    }
    let aliases: Vec<_> =
        draft.gate_aliases.iter().map(|(&gate, &(_, value))| (gate, value)).collect();
    for (gate, value) in aliases {
        draft.config.feature_gates.set(gate, value);
    }
    Ok(())
}

/// The two names of the unary warning, of which one at most may say something.
pub(crate) fn unary_warning_nanos(draft: &Draft) -> Result<i64, String> {
    match (draft.warning_unary_nanos, draft.experimental_warning_unary_nanos) {
        (0, 0) => Ok(300_000_000),
        (0, old) => Ok(old),
        (proper, 0) => Ok(proper),
        _ => Err("both --experimental-warning-unary-request-duration and \
                  --warning-unary-request-duration flags are set. Use only \
                  --warning-unary-request-duration"
            .into()),
    }
}

/// What is said about deprecated names that were used, one line each.
pub(crate) fn deprecations(draft: &Draft) -> Vec<String> {
    let mut said = Vec::new();
    if draft.experimental_warning_unary_nanos != 0 && draft.warning_unary_nanos == 0 {
        said.push(
            "--experimental-warning-unary-request-duration is deprecated, and will be \
             decommissioned in v3.7. Use --warning-unary-request-duration instead."
                .into(),
        );
    }
    for &name in &draft.given {
        said.extend(deprecation(name));
    }
    said
}

fn deprecation(name: &'static str) -> Option<String> {
    match name {
        "max-snapshots" => {
            return Some(
                "--max-snapshots is deprecated in 3.6 and will be decommissioned in 3.8.".into(),
            );
        }
        "v2-deprecation" => {
            return Some(
                "--v2-deprecation is deprecated and scheduled for removal in v3.8. \
                 The default value is enforced, ignoring user input."
                    .into(),
            );
        }
        _ => {}
    }
    let of_flag = OF_FLAGS.iter().find(|(alias, _)| *alias == name).map(|(_, telling)| *telling);
    let of_gate = OF_GATES.iter().find(|alias| alias.name == name).map(|alias| alias.telling);
    let telling = of_flag.or(of_gate)?;
    let proper = successor(name);
    let (v, proper) = match telling {
        Telling::Silent => return None,
        Telling::Usual => ("v", format!("'{proper}'")),
        Telling::Dashless => ("v", format!("'{}'", proper_name(name))),
        Telling::Plain => ("", format!("'{proper}'")),
        Telling::Bare => ("", proper),
    };
    Some(format!(
        "--{name} is deprecated in {v}3.6 and will be decommissioned in {v}3.7. Use {proper} instead."
    ))
}

/// What to write instead of an alias.
pub(crate) fn successor(name: &'static str) -> String {
    match OF_GATES.iter().find(|alias| alias.name == name) {
        Some(alias) => format!("--feature-gates={}=true", alias.gate.name()),
        None => format!("--{}", proper_name(name)),
    }
}
