//! Durations as Go writes and reads them: `1h30m`, `2.83ms`, `0s`.
//!
//! Both directions work on signed nanoseconds, because Go's do and `-1s` must be told from `0s`.

use std::time::Duration;

use crate::quote::quote;

/// A duration in Go's spelling.
pub fn format_duration(duration: Duration) -> String {
    format_go_duration(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX))
}

/// Nanoseconds in Go's spelling: the largest fitting unit under a second, else hours, minutes and
/// seconds, without trailing zeros.
pub fn format_go_duration(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let size = nanos.unsigned_abs();
    let text = match size {
        0 => "0s".into(),
        1..1_000 => format!("{size}ns"),
        1_000..1_000_000 => format!("{}µs", decimal(size, 1_000)),
        1_000_000..1_000_000_000 => format!("{}ms", decimal(size, 1_000_000)),
        _ => {
            let (minutes, rest) = (size / 60_000_000_000, size % 60_000_000_000);
            let seconds = decimal(rest, 1_000_000_000);
            match (minutes / 60, minutes % 60) {
                (0, 0) => format!("{seconds}s"),
                (0, minutes) => format!("{minutes}m{seconds}s"),
                (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
            }
        }
    };
    format!("{sign}{text}")
}

/// `value / unit` without trailing zeros, exactly.
fn decimal(value: u64, unit: u64) -> String {
    let digits = unit.ilog10() as usize;
    let fraction = format!("{:0digits$}", value % unit);
    match fraction.trim_end_matches('0') {
        "" => format!("{}", value / unit),
        fraction => format!("{}.{fraction}", value / unit),
    }
}

/// Reads a Go duration; the error is Go's text.
pub fn parse_go_duration(input: &str) -> Result<i64, String> {
    let invalid = || format!("time: invalid duration {}", quote(input));
    let (is_negative, mut rest) = match input.as_bytes().first() {
        Some(b'-') => (true, &input[1..]),
        Some(b'+') => (false, &input[1..]),
        _ => (false, input),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(number_end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return Err(invalid());
        }
        let unit_end = after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        if unit.is_empty() {
            return Err(format!("time: missing unit in duration {}", quote(input)));
        }
        let unit_nanos = unit_nanos(unit).ok_or_else(|| {
            format!("time: unknown unit {} in duration {}", quote(unit), quote(input))
        })?;
        let part = part_nanos(whole, fraction, unit_nanos).ok_or_else(invalid)?;
        total = total.checked_add(part).filter(|&sum| sum <= 1 << 63).ok_or_else(invalid)?;
        rest = after;
    }
    match i64::try_from(total) {
        Ok(nanos) => Ok(if is_negative { -nanos } else { nanos }),
        Err(_) if is_negative => Ok(i64::MIN),
        Err(_) => Err(invalid()),
    }
}

fn unit_nanos(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        // The micro sign and the Greek letter look alike; Go takes both.
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

fn part_nanos(whole: &str, fraction: &str, unit: u64) -> Option<u64> {
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut nanos = whole.checked_mul(unit)?;
    // Eighteen digits are more than any unit can show, and keep the product within 128 bits.
    let digits = &fraction[..fraction.len().min(18)];
    if !digits.is_empty() {
        let value: u128 = digits.parse().ok()?;
        let part = value * u128::from(unit) / 10u128.pow(digits.len() as u32);
        nanos = nanos.checked_add(u64::try_from(part).ok()?)?;
    }
    Some(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_print_as_in_go() {
        for (nanos, text) in [
            (0, "0s"),
            (1, "1ns"),
            (1_000, "1µs"),
            (1_500, "1.5µs"),
            (2_830_000, "2.83ms"),
            (100_000_000, "100ms"),
            (7_000_000_000, "7s"),
            (60_000_000_000, "1m0s"),
            (90_500_000_000, "1m30.5s"),
            (7_200_000_000_000, "2h0m0s"),
            (-1_000_000_000, "-1s"),
            (i64::MIN, "-2562047h47m16.854775808s"),
            (i64::MAX, "2562047h47m16.854775807s"),
        ] {
            assert_eq!(format_go_duration(nanos), text);
        }
    }

    #[test]
    fn durations_are_read_as_in_go() {
        for (text, nanos) in [
            ("0", 0),
            ("5s", 5_000_000_000),
            ("1m30s", 90_000_000_000),
            ("1.5h", 5_400_000_000_000),
            (".5s", 500_000_000),
            ("1.s", 1_000_000_000),
            ("-1s", -1_000_000_000),
            ("+300ms", 300_000_000),
            ("1us1µs1μs", 3_000),
            ("-9223372036854775808ns", i64::MIN),
        ] {
            assert_eq!(parse_go_duration(text), Ok(nanos), "{text}");
        }
        for (text, error) in [
            ("", "time: invalid duration \"\""),
            ("-", "time: invalid duration \"-\""),
            ("x", "time: invalid duration \"x\""),
            (".s", "time: invalid duration \".s\""),
            ("-1", "time: missing unit in duration \"-1\""),
            ("5", "time: missing unit in duration \"5\""),
            ("5x", "time: unknown unit \"x\" in duration \"5x\""),
            ("1d", "time: unknown unit \"d\" in duration \"1d\""),
            ("9223372036854775808ns", "time: invalid duration \"9223372036854775808ns\""),
            ("3000000h", "time: invalid duration \"3000000h\""),
        ] {
            assert_eq!(parse_go_duration(text).as_ref().map_err(String::as_str), Err(error));
        }
    }
}
