//! Calendar times in the local zone, by the C library, which knows the zone files.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A moment as people in one zone write it down.
pub(super) struct Calendar {
    pub year: i64,
    pub month: i32,
    pub day: i32,
    pub hour: i32,
    pub minute: i32,
    pub second: i32,
    pub micros: u32,
    /// Seconds east of Greenwich.
    pub offset: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Zone {
    Local,
    Utc,
}

/// `2006-01-02T15:04:05.000000Z`, or `+0300` in place of the `Z`.
pub(super) fn timestamp(now: SystemTime) -> String {
    write_down(&Calendar::of(now, Zone::Local))
}

fn write_down(c: &Calendar) -> String {
    let zone = match c.offset {
        0 => "Z".to_string(),
        east => {
            let sign = if east < 0 { '-' } else { '+' };
            let minutes = east.abs() / 60;
            format!("{sign}{:02}{:02}", minutes / 60, minutes % 60)
        }
    };
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}{zone}",
        c.year, c.month, c.day, c.hour, c.minute, c.second, c.micros
    )
}

impl Calendar {
    pub fn of(now: SystemTime, zone: Zone) -> Self {
        let since = now.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let seconds = libc::time_t::try_from(since.as_secs()).unwrap_or(libc::time_t::MAX);
        // SAFETY: both pointers are to live values of the right type; a `tm` of zeros is valid.
        let tm = unsafe {
            let mut tm: libc::tm = std::mem::zeroed();
            match zone {
                Zone::Local => libc::localtime_r(&seconds, &mut tm),
                Zone::Utc => libc::gmtime_r(&seconds, &mut tm),
            };
            tm
        };
        Self {
            year: i64::from(tm.tm_year) + 1900,
            month: tm.tm_mon + 1,
            day: tm.tm_mday,
            hour: tm.tm_hour,
            minute: tm.tm_min,
            second: tm.tm_sec,
            micros: since.subsec_micros(),
            offset: tm.tm_gmtoff,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_zone_is_a_letter_or_four_digits() {
        let moment = UNIX_EPOCH + Duration::from_micros(1_795_000_514_146_123);
        let mut c = Calendar::of(moment, Zone::Utc);
        assert_eq!(write_down(&c), "2026-11-18T11:15:14.146123Z");
        c.offset = 3 * 3600;
        assert_eq!(write_down(&c), "2026-11-18T11:15:14.146123+0300");
        c.offset = -(9 * 3600 + 1800);
        assert_eq!(write_down(&c), "2026-11-18T11:15:14.146123-0930");
    }
}
