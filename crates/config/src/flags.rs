//! Every flag: its name, its type, its default, where its value goes, and what it means.
//!
//! The one table behind the command line, the environment, the config file and the help.

use std::path::PathBuf;
use std::time::Duration;

use crate::aliases;
use crate::draft::Draft;
use crate::duration::parse_go_duration;
use crate::grammar::{NumberError, parse_bool, parse_int, parse_uint};
use crate::quote::quote;
use crate::urls::{self, Url};

mod table;

pub(crate) use table::{FLAGS, IGNORED};

pub(crate) struct Flag {
    pub name: &'static str,
    pub group: Group,
    pub kind: Kind,
    /// As the help shows it.
    pub default: &'static str,
    pub help: &'static str,
    pub set: Setter,
}

pub(crate) type Setter = fn(&mut Draft, &str) -> Result<(), String>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    Member,
    Clustering,
    Security,
    Auth,
    Monitoring,
    Logging,
    Tracing,
    Checks,
    Unsafe,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    Text,
    Int,
    Int64,
    Uint,
    Uint32,
    Uint64,
    Duration,
    /// One comma-separated text of URLs.
    Urls,
    /// One comma-separated text, on the command line; a list in the file.
    List,
    /// A name that is accepted and forgotten. It takes no value.
    Ignored,
}

/// A flag under the name by which it was found.
pub(crate) struct Found {
    pub name: &'static str,
    pub kind: Kind,
    set: Setter,
}

/// The flag of this name: a proper one, a deprecated alias, or one that means nothing any more.
pub(crate) fn find(name: &str) -> Option<Found> {
    if let Some(flag) = FLAGS.iter().find(|flag| flag.name == name) {
        return Some(Found { name: flag.name, kind: flag.kind, set: flag.set });
    }
    if let Some(alias) = aliases::find(name) {
        return Some(Found { name: alias.name, kind: alias.kind, set: alias.set });
    }
    let name = IGNORED.iter().find(|&&ignored| ignored == name)?;
    Some(Found { name, kind: Kind::Ignored, set: |_, _| Ok(()) })
}

/// All names that [`find`] finds, sorted: the order in which the environment is read.
pub(crate) fn names() -> Vec<&'static str> {
    let proper = FLAGS.iter().map(|flag| flag.name);
    let mut names: Vec<_> = proper.chain(aliases::names()).chain(IGNORED.iter().copied()).collect();
    names.sort_unstable();
    names
}

impl Found {
    pub fn apply(&self, draft: &mut Draft, value: &str) -> Result<(), String> {
        (self.set)(draft, value)?;
        draft.given.insert(self.name);
        Ok(())
    }
}

impl Kind {
    /// Whether the flag stands without a value.
    pub fn is_bool(self) -> bool {
        matches!(self, Self::Bool | Self::Ignored)
    }
}

/// Stores a parsed value, or passes the complaint on.
pub(crate) fn put<T>(slot: &mut T, parsed: Result<T, String>) -> Result<(), String> {
    *slot = parsed?;
    Ok(())
}

pub(crate) fn text(value: &str) -> Result<String, String> {
    Ok(value.to_string())
}

pub(crate) fn path(value: &str) -> Result<PathBuf, String> {
    Ok(PathBuf::from(value))
}

pub(crate) fn boolean(value: &str) -> Result<bool, String> {
    parse_bool(value).ok_or_else(|| "parse error".into())
}

pub(crate) fn uint(value: &str) -> Result<u64, String> {
    parse_uint(value).map_err(complaint)
}

pub(crate) fn int(value: &str) -> Result<i64, String> {
    parse_int(value).map_err(complaint)
}

/// etcd passes Go's longer words through for this one type.
pub(crate) fn uint32(value: &str) -> Result<u32, String> {
    let complain = |why| format!("strconv.ParseUint: parsing {}: {why}", quote(value));
    match parse_uint(value) {
        Ok(number) => u32::try_from(number).map_err(|_| complain("value out of range")),
        Err(NumberError::Range) => Err(complain("value out of range")),
        Err(NumberError::Syntax) => Err(complain("invalid syntax")),
    }
}

fn complaint(error: NumberError) -> String {
    match error {
        NumberError::Syntax => "parse error".into(),
        NumberError::Range => "value out of range".into(),
    }
}

pub(crate) fn nanos(value: &str) -> Result<i64, String> {
    parse_go_duration(value).map_err(|_| "parse error".into())
}

/// A negative duration is none: that is what etcd makes of it wherever it does not refuse it.
pub(crate) fn duration(value: &str) -> Result<Duration, String> {
    nanos(value).map(clamp)
}

pub(crate) fn clamp(nanos: i64) -> Duration {
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(0))
}

/// URLs; an empty value leaves what was there.
pub(crate) fn put_urls(slot: &mut Vec<Url>, value: &str) -> Result<(), String> {
    if value.is_empty() { Ok(()) } else { put(slot, urls::parse_unique(value)) }
}

/// Origins; `*` joins what is there, a list replaces it.
pub(crate) fn put_origins(slot: &mut Vec<String>, value: &str) -> Result<(), String> {
    if value == "*" {
        slot.push(value.into());
        slot.sort();
        slot.dedup();
        return Ok(());
    }
    let urls = urls::parse_unique(value)?;
    *slot = urls::texts(&urls);
    Ok(())
}

pub(crate) fn list(value: &str) -> Result<Vec<String>, String> {
    Ok(value.split(',').map(str::to_string).collect())
}

pub(crate) fn sorted_list(value: &str) -> Result<Vec<String>, String> {
    let mut list = list(value)?;
    list.sort();
    list.dedup();
    Ok(list)
}

pub(crate) fn one_of(value: &str, choices: &[&str]) -> Result<String, String> {
    if choices.contains(&value) { text(value) } else { Err("invalid value".into()) }
}
