//! How much history auto-compaction leaves.

use std::time::Duration;

use crate::duration::parse_go_duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactionMode {
    Periodic,
    Revision,
}

/// What `--auto-compaction-mode` and `--auto-compaction-retention` ask for together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retention {
    Off,
    /// Keep what was written within this time.
    Periodic(Duration),
    /// Keep this many revisions.
    Revision(i64),
}

impl CompactionMode {
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "periodic" => Some(Self::Periodic),
            "revision" => Some(Self::Revision),
            _ => None,
        }
    }
}

impl Retention {
    /// A plain number is hours or revisions, by mode. A duration is accepted in both: etcd keeps
    /// one number for either, so `1h` of revisions is as many as an hour has nanoseconds.
    pub fn parse(mode: CompactionMode, text: &str) -> Result<Self, String> {
        let text = if text.is_empty() { "0" } else { text };
        let nanos = nanos(mode, text)?;
        Ok(match (mode, nanos) {
            (_, ..=0) => Self::Off,
            (CompactionMode::Revision, count) => Self::Revision(count),
            (CompactionMode::Periodic, nanos) => {
                Self::Periodic(Duration::from_nanos(nanos.unsigned_abs()))
            }
        })
    }

    /// The one number etcd keeps, for its start line.
    pub(crate) fn nanos(self) -> i64 {
        match self {
            Self::Off => 0,
            Self::Periodic(period) => i64::try_from(period.as_nanos()).unwrap_or(i64::MAX),
            Self::Revision(count) => count,
        }
    }
}

fn nanos(mode: CompactionMode, text: &str) -> Result<i64, String> {
    const HOUR: i64 = 3_600_000_000_000;
    let refuse = |why: String| format!("error parsing CompactionRetention: {why}");
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse::<i64>() {
        Ok(count) if is_number && mode == CompactionMode::Revision => Ok(count),
        Ok(hours) if is_number => hours
            .checked_mul(HOUR)
            .ok_or_else(|| refuse(format!("{hours} hours are more than can be counted"))),
        _ => parse_go_duration(text).map_err(refuse),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use CompactionMode::{Periodic, Revision};

    #[test]
    fn a_number_is_hours_or_revisions_and_a_duration_goes_for_both() {
        for (mode, text, wanted) in [
            (Periodic, "", Retention::Off),
            (Periodic, "0", Retention::Off),
            (Periodic, "1", Retention::Periodic(Duration::from_secs(3600))),
            (Periodic, "5m", Retention::Periodic(Duration::from_secs(300))),
            (Periodic, "-5m", Retention::Off),
            (Revision, "1000", Retention::Revision(1000)),
            (Revision, "1h", Retention::Revision(3_600_000_000_000)),
        ] {
            assert_eq!(Retention::parse(mode, text), Ok(wanted), "{mode:?} {text}");
        }
        assert_eq!(
            Retention::parse(Revision, "x"),
            Err("error parsing CompactionRetention: time: invalid duration \"x\"".into())
        );
        assert_eq!(
            Retention::parse(Periodic, "-1"),
            Err("error parsing CompactionRetention: time: missing unit in duration \"-1\"".into())
        );
    }
}
