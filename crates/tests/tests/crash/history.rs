//! What was written, what was acknowledged, and whether the server's history explains it.

use std::collections::{BTreeMap, BTreeSet};

/// One write as its writer knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    Put {
        key: String,
        value: String,
    },
    /// Two keys in one transaction.
    Pair {
        keys: [String; 2],
        value: String,
    },
    Delete {
        key: String,
    },
}

/// A write and the revision that the server acknowledged, if it did.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub write: Write,
    pub revision: Option<i64>,
}

/// All that one revision changed: each key with its new value, or `None` where it was deleted.
pub type Changes = BTreeMap<String, Option<String>>;

impl Write {
    pub fn changes(&self) -> Changes {
        match self {
            Write::Put { key, value } => [(key.clone(), Some(value.clone()))].into(),
            Write::Pair { keys, value } => {
                keys.iter().map(|key| (key.clone(), Some(value.clone()))).collect()
            }
            Write::Delete { key } => [(key.clone(), None)].into(),
        }
    }
}

/// Every acknowledged write is in the log at its revision, complete, and every revision of the log
/// is a write that somebody made.
pub fn check(log: &BTreeMap<i64, Changes>, attempts: &[Attempt], first: i64, last: i64) {
    let revisions: Vec<i64> = log.keys().copied().collect();
    let expected: Vec<i64> = (first..=last).collect();
    assert_eq!(revisions, expected, "the history has holes");
    let mut explained = BTreeSet::new();
    for attempt in attempts {
        let Some(revision) = attempt.revision else { continue };
        let found = log.get(&revision);
        assert_eq!(
            found,
            Some(&attempt.write.changes()),
            "{:?} was acknowledged with revision {revision}",
            attempt.write
        );
        assert!(explained.insert(revision), "revision {revision} was acknowledged twice");
    }
    let mut open: Vec<Changes> =
        attempts.iter().filter(|a| a.revision.is_none()).map(|a| a.write.changes()).collect();
    for (revision, changes) in log {
        if !explained.contains(revision) {
            let by = open.iter().position(|write| write == changes);
            let by = by.unwrap_or_else(|| panic!("nobody wrote revision {revision}: {changes:?}"));
            open.remove(by);
        }
    }
}

/// What was shown to a watcher before the crash is what the history says after it.
pub fn check_seen(seen: &BTreeMap<i64, Changes>, log: &BTreeMap<i64, Changes>) {
    for (revision, changes) in seen {
        assert_eq!(Some(changes), log.get(revision), "shown before the crash, then gone");
    }
}
