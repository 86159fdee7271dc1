//! Feature gates: switches for what is not settled yet, `--feature-gates=A=true,B=false`.

use std::collections::BTreeMap;
use std::fmt;

use crate::grammar::parse_bool;
use crate::quote::quote;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gate {
    AllAlpha,
    AllBeta,
    CompactHashCheck,
    InitialCorruptCheck,
    LeaseCheckpoint,
    LeaseCheckpointPersist,
    SetMemberLocalAddr,
    StopGRPCServiceOnDefrag,
    TxnModeWriteWithSharedBuffer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Alpha,
    Beta,
}

/// What was asked for, directly or through `AllAlpha` and `AllBeta`. Prints as etcd's start line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gates(BTreeMap<Gate, bool>);

impl Gate {
    /// In the order of their names.
    pub const ALL: [Self; 9] = [
        Self::AllAlpha,
        Self::AllBeta,
        Self::CompactHashCheck,
        Self::InitialCorruptCheck,
        Self::LeaseCheckpoint,
        Self::LeaseCheckpointPersist,
        Self::SetMemberLocalAddr,
        Self::StopGRPCServiceOnDefrag,
        Self::TxnModeWriteWithSharedBuffer,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::AllAlpha => "AllAlpha",
            Self::AllBeta => "AllBeta",
            Self::CompactHashCheck => "CompactHashCheck",
            Self::InitialCorruptCheck => "InitialCorruptCheck",
            Self::LeaseCheckpoint => "LeaseCheckpoint",
            Self::LeaseCheckpointPersist => "LeaseCheckpointPersist",
            Self::SetMemberLocalAddr => "SetMemberLocalAddr",
            Self::StopGRPCServiceOnDefrag => "StopGRPCServiceOnDefrag",
            Self::TxnModeWriteWithSharedBuffer => "TxnModeWriteWithSharedBuffer",
        }
    }

    pub fn stage(self) -> Stage {
        match self {
            Self::AllBeta | Self::TxnModeWriteWithSharedBuffer => Stage::Beta,
            _ => Stage::Alpha,
        }
    }

    pub fn default_value(self) -> bool {
        self == Self::TxnModeWriteWithSharedBuffer
    }

    /// `Name=true|false (STAGE - default=bool)`, the line of the help.
    pub fn describe(self) -> String {
        let (name, stage) = (self.name(), self.stage().as_str());
        format!("{name}=true|false ({stage} - default={})", self.default_value())
    }
}

impl Stage {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Alpha => "ALPHA",
            Self::Beta => "BETA",
        }
    }
}

impl Gates {
    pub fn is_enabled(&self, gate: Gate) -> bool {
        self.0.get(&gate).copied().unwrap_or(gate.default_value())
    }

    /// Adds what one `--feature-gates` value says. Nothing changes when any part of it is wrong.
    pub fn parse(&mut self, text: &str) -> Result<(), String> {
        let mut named = BTreeMap::new();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').map_or((part, None), |(k, v)| (k, Some(v)));
            let name = name.trim();
            let value = value.ok_or_else(|| format!("missing bool value for {name}"))?.trim();
            let value_parsed = parse_bool(value).ok_or_else(|| {
                format!(
                    "invalid value of {name}={value}, err: strconv.ParseBool: parsing {}: invalid syntax",
                    quote(value)
                )
            })?;
            named.insert(name, value_parsed);
        }
        let mut known = Vec::new();
        for (name, value) in named {
            let gate = Gate::ALL.into_iter().find(|gate| gate.name() == name);
            known.push((gate.ok_or_else(|| format!("unrecognized feature gate: {name}"))?, value));
        }
        self.set_all(&known);
        Ok(())
    }

    pub fn set(&mut self, gate: Gate, value: bool) {
        self.set_all(&[(gate, value)]);
    }

    /// Named gates first: `AllAlpha` and `AllBeta` only fill in what nobody named. (etcd leaves the
    /// order to chance here.)
    fn set_all(&mut self, given: &[(Gate, bool)]) {
        self.0.extend(given.iter().copied());
        for &(group, value) in given {
            let stage = match group {
                Gate::AllAlpha => Stage::Alpha,
                Gate::AllBeta => Stage::Beta,
                _ => continue,
            };
            for gate in Gate::ALL.into_iter().filter(|gate| gate.stage() == stage) {
                self.0.entry(gate).or_insert(value);
            }
        }
    }
}

impl fmt::Display for Gates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (gate, value)) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{}={value}", gate.name())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<String, String> {
        let mut gates = Gates::default();
        gates.parse(text).map(|()| gates.to_string())
    }

    #[test]
    fn gates_print_what_was_set_and_what_follows_from_it() {
        assert_eq!(parsed("").unwrap(), "");
        assert_eq!(
            parsed("AllBeta=false").unwrap(),
            "AllBeta=false,TxnModeWriteWithSharedBuffer=false"
        );
        assert_eq!(
            parsed(" LeaseCheckpoint = false ,AllAlpha=T").unwrap(),
            "AllAlpha=true,CompactHashCheck=true,InitialCorruptCheck=true,LeaseCheckpoint=false,\
             LeaseCheckpointPersist=true,SetMemberLocalAddr=true,StopGRPCServiceOnDefrag=true"
        );
    }

    #[test]
    fn wrong_gates_are_named() {
        for (text, error) in [
            ("Foo=true", "unrecognized feature gate: Foo"),
            ("AllAlpha", "missing bool value for AllAlpha"),
            (
                "AllAlpha=x",
                "invalid value of AllAlpha=x, err: strconv.ParseBool: parsing \"x\": invalid syntax",
            ),
        ] {
            assert_eq!(parsed(text), Err(error.into()));
        }
    }

    #[test]
    fn an_untouched_gate_has_its_default() {
        let gates = Gates::default();
        assert!(gates.is_enabled(Gate::TxnModeWriteWithSharedBuffer));
        assert!(!gates.is_enabled(Gate::LeaseCheckpoint));
    }
}
