//! The command line as Go's `flag` package reads it.
//!
//! `-name` and `--name` are the same; a value follows `=` or is the next word; a bool takes its
//! value only with `=`; the first word that is no flag ends it all; a flag said twice counts last.

use crate::draft::Draft;
use crate::flags;
use crate::quote::quote;

/// What reading a command line came to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Parsed {
    Fine,
    /// The first word that is no flag.
    Leftover(String),
    Help,
    /// A complaint, to be printed before the short usage.
    Wrong(String),
}

pub(crate) fn parse(draft: &mut Draft, args: &[String]) -> Parsed {
    let mut words = args.iter();
    while let Some(word) = words.next() {
        let Some(after_dash) = word.strip_prefix('-').filter(|rest| !rest.is_empty()) else {
            return Parsed::Leftover(word.clone());
        };
        let body = after_dash.strip_prefix('-').unwrap_or(after_dash);
        if body.is_empty() {
            return words.next().map_or(Parsed::Fine, |next| Parsed::Leftover(next.clone()));
        }
        if body.starts_with(['-', '=']) {
            return Parsed::Wrong(format!("bad flag syntax: {word}"));
        }
        let (name, value) = body.split_once('=').map_or((body, None), |(n, v)| (n, Some(v)));
        let Some(flag) = flags::find(name) else {
            if matches!(name, "help" | "h") {
                return Parsed::Help;
            }
            return Parsed::Wrong(format!("flag provided but not defined: -{name}"));
        };
        let is_bool = flag.kind.is_bool();
        let value = match value {
            Some(value) => value,
            None if is_bool => "true",
            None => match words.next() {
                Some(next) => next,
                None => return Parsed::Wrong(format!("flag needs an argument: -{name}")),
            },
        };
        if let Err(why) = flag.apply(draft, value) {
            let quoted = quote(value);
            return Parsed::Wrong(if is_bool {
                format!("invalid boolean value {quoted} for -{name}: {why}")
            } else {
                format!("invalid value {quoted} for flag -{name}: {why}")
            });
        }
    }
    Parsed::Fine
}

/// A bool in any of Go's spellings.
pub(crate) fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberError {
    Syntax,
    Range,
}

/// A whole number as Go reads it: decimal, or with a prefix of another base, and with `_` between
/// digits when there is a prefix.
pub(crate) fn parse_uint(text: &str) -> Result<u64, NumberError> {
    let lower = text.to_ascii_lowercase();
    let (radix, digits) = match lower.as_bytes() {
        [b'0', b'x', ..] => (16, &lower[2..]),
        [b'0', b'b', ..] => (2, &lower[2..]),
        [b'0', b'o', ..] => (8, &lower[2..]),
        [b'0', _, ..] => (8, &lower[1..]),
        _ => (10, lower.as_str()),
    };
    let is_well_split = !digits.ends_with('_') && !digits.contains("__") && {
        // Only a prefix earns the underscores, but it may stand right before one.
        radix != 10 || !digits.starts_with('_')
    };
    let bare: String = digits.chars().filter(|&c| c != '_').collect();
    let is_number = !bare.is_empty() && bare.chars().all(|c| c.is_digit(radix));
    if !is_well_split || !is_number {
        return Err(NumberError::Syntax);
    }
    u64::from_str_radix(&bare, radix).map_err(|_| NumberError::Range)
}

pub(crate) fn parse_int(text: &str) -> Result<i64, NumberError> {
    let (is_negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let size = i128::from(parse_uint(digits)?);
    i64::try_from(if is_negative { -size } else { size }).map_err(|_| NumberError::Range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_in_go() {
        use NumberError::{Range, Syntax};
        for (text, wanted) in [
            ("0", Ok(0)),
            ("10", Ok(10)),
            ("0x1F", Ok(31)),
            ("0b101", Ok(5)),
            ("017", Ok(15)),
            ("0o17", Ok(15)),
            ("1_000", Ok(1000)),
            ("0x_ff", Ok(255)),
            ("18446744073709551615", Ok(u64::MAX)),
            ("18446744073709551616", Err(Range)),
            ("", Err(Syntax)),
            ("-1", Err(Syntax)),
            ("+1", Err(Syntax)),
            ("08", Err(Syntax)),
            ("1__0", Err(Syntax)),
            ("_1", Err(Syntax)),
            ("1.5", Err(Syntax)),
            ("0x", Err(Syntax)),
        ] {
            assert_eq!(parse_uint(text), wanted, "{text}");
        }
        assert_eq!(parse_int("-9223372036854775808"), Ok(i64::MIN));
        assert_eq!(parse_int("9223372036854775808"), Err(Range));
        assert_eq!(parse_int("+5"), Ok(5));
        assert_eq!(parse_int("--5"), Err(Syntax));
    }
}
