//! Integers as JSON may spell them: `7`, `7.0`, `70e-1`.

/// The integer that `text` begins with, spelled as a JSON number. `None` if it is no integer or a
/// huge one. A quoted number may be followed by what cannot belong to a number, white space
/// excepted, as in etcd.
pub(crate) fn integer(text: &str) -> Option<i128> {
    if text.trim_end() != text {
        return None;
    }
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (whole, rest) = digits(text);
    if whole.is_empty() || whole.len() > 1 && whole.starts_with('0') {
        return None;
    }
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => Some(digits(rest)).filter(|(fraction, _)| !fraction.is_empty())?,
        None => ("", rest),
    };
    let (exponent, rest) = match rest.strip_prefix(['e', 'E']) {
        Some(rest) => exponent(rest)?,
        None => (0, rest),
    };
    if rest.starts_with(|next: char| next.is_ascii_alphanumeric() || "+-._".contains(next)) {
        return None;
    }
    let value = shifted(whole, fraction, exponent)?;
    Some(if negative { -value } else { value })
}

fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

fn exponent(text: &str) -> Option<(i64, &str)> {
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (exponent, rest) = digits(text);
    Some((sign * exponent.parse::<i64>().ok()?, rest))
}

/// The digits of both sides of the point with the point moved; `None` if any stay behind it.
fn shifted(whole: &str, fraction: &str, exponent: i64) -> Option<i128> {
    let all = format!("{whole}{fraction}");
    let significant = all.trim_start_matches('0').trim_end_matches('0');
    if significant.is_empty() {
        return Some(0);
    }
    let trailing = all.len() - all.trim_end_matches('0').len();
    let zeros = exponent.checked_sub(fraction.len() as i64)?.checked_add(trailing as i64)?;
    // No field has room for more than 20 digits, so nobody may ask for a billion zeros.
    let zeros = usize::try_from(zeros).ok().filter(|zeros| *zeros <= 20)?;
    format!("{significant}{}", "0".repeat(zeros)).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::integer;

    /// What etcd's gateway takes and refuses, found by asking it.
    #[test]
    fn integers_have_many_spellings() {
        let cases: [(&str, i128); 13] = [
            ("0", 0),
            ("-0", 0),
            ("7", 7),
            ("-7", -7),
            ("1.0", 1),
            ("1e0", 1),
            ("10e-1", 1),
            ("1.50E+1", 15),
            ("100000000000000000000e-19", 10),
            ("0e99999999999", 0),
            ("0.0000", 0),
            ("18446744073709551615", u64::MAX as i128),
            ("1,", 1),
        ];
        for (text, value) in cases {
            assert_eq!(integer(text), Some(value), "{text}");
        }
        let refused = [
            "",
            "-",
            "+1",
            " 1",
            "00",
            "01",
            "1.",
            ".5",
            "1.5",
            "1e",
            "1e-1",
            "1e400",
            "0x1",
            "1a",
            "null",
            "1e18446744073709551616",
            "1e9223372036854775807",
        ];
        for text in refused {
            assert_eq!(integer(text), None, "{text}");
        }
    }
}
