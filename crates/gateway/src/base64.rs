//! Bytes in JSON: base64, read in any of its four forms and written in one.

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Appends the standard form with padding.
pub(crate) fn write(bytes: &[u8], out: &mut Vec<u8>) {
    out.reserve(bytes.len().div_ceil(3) * 4);
    let digit = |bits: u32| STANDARD[(bits & 63) as usize];
    let mut chunks = bytes.chunks_exact(3);
    for chunk in &mut chunks {
        let bits = u32::from_be_bytes([0, chunk[0], chunk[1], chunk[2]]);
        out.extend_from_slice(&[
            digit(bits >> 18),
            digit(bits >> 12),
            digit(bits >> 6),
            digit(bits),
        ]);
    }
    match *chunks.remainder() {
        [a] => {
            out.extend_from_slice(&[digit(u32::from(a) >> 2), digit(u32::from(a) << 4), b'=', b'='])
        }
        [a, b] => {
            let bits = u32::from_be_bytes([0, 0, a, b]);
            out.extend_from_slice(&[digit(bits >> 10), digit(bits >> 4), digit(bits << 2), b'=']);
        }
        _ => {}
    }
}

/// Reads the standard or the URL-safe alphabet, with padding or without, line breaks anywhere.
/// `None` if it is none of the four forms. As in Go's gateway, a single `-` or `_` makes it
/// URL-safe and a length that is no multiple of four makes it unpadded; spare bits are ignored.
pub(crate) fn read(text: &str) -> Option<Vec<u8>> {
    let has = |a: u8, b: u8| text.bytes().any(|byte| byte == a || byte == b);
    let table = if has(b'-', b'_') { &URL_SAFE_VALUES } else { &STANDARD_VALUES };
    let joined: String;
    let mut digits = text.as_bytes();
    if has(b'\r', b'\n') {
        joined = text.replace(['\r', '\n'], "");
        digits = joined.as_bytes();
    }
    if text.len().is_multiple_of(4) {
        if !digits.len().is_multiple_of(4) {
            return None;
        }
        for _ in 0..2 {
            digits = digits.strip_suffix(b"=").unwrap_or(digits);
        }
    }

    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    let mut wrong = 0;
    let mut bits = |chunk: &[u8]| {
        chunk.iter().fold(0, |bits, digit| {
            let value = table[usize::from(*digit)];
            wrong |= value;
            bits << 6 | u32::from(value)
        })
    };
    let mut chunks = digits.chunks_exact(4);
    for chunk in &mut chunks {
        bytes.extend_from_slice(&bits(chunk).to_be_bytes()[1..]);
    }
    let last = chunks.remainder();
    match last.len() {
        0 => {}
        2 => bytes.push((bits(last) >> 4) as u8),
        3 => bytes.extend_from_slice(&((bits(last) >> 2) as u16).to_be_bytes()),
        _ => return None,
    }
    (wrong & NO_DIGIT == 0).then_some(bytes)
}

/// A bit that no digit's value has.
const NO_DIGIT: u8 = 0x40;
const STANDARD_VALUES: [u8; 256] = values(*b"+/");
const URL_SAFE_VALUES: [u8; 256] = values(*b"-_");

/// The value of each byte as a digit, given the last two digits of the alphabet.
const fn values(last: [u8; 2]) -> [u8; 256] {
    let mut values = [NO_DIGIT; 256];
    let mut value = 0;
    while value < 62 {
        values[STANDARD[value] as usize] = value as u8;
        value += 1;
    }
    values[last[0] as usize] = 62;
    values[last[1] as usize] = 63;
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What etcd's gateway takes and refuses, found by asking it.
    #[test]
    fn the_four_forms_are_read() {
        for text in ["Zg", "Zg==", "Zh", "Zh=="] {
            assert_eq!(read(text).as_deref(), Some(&b"f"[..]), "{text}");
        }
        for text in ["Zm9v", "Zm9v\n", "Zm\n9v"] {
            assert_eq!(read(text).as_deref(), Some(&b"foo"[..]), "{text:?}");
        }
        for text in ["-_8", "-_8=", "+/8", "+/8="] {
            assert_eq!(read(text).as_deref(), Some(&[0xfb, 0xff][..]), "{text}");
        }
        for text in ["Z", "Zg=", "!!", "-_+/", "====", "Zm9vZg==Zm9v", "Zg==\n", "Zg=\r\n=", "Z==="]
        {
            assert_eq!(read(text), None, "{text:?}");
        }
        assert_eq!(read("").as_deref(), Some(&b""[..]));
    }

    #[test]
    fn what_is_written_is_read_back() {
        for length in 0..70u8 {
            let bytes: Vec<u8> = (0..length).map(|n| n.wrapping_mul(37) ^ 0xa5).collect();
            let mut text = Vec::new();
            write(&bytes, &mut text);
            let text = String::from_utf8(text).expect("base64 is text");
            assert_eq!(text.len() % 4, 0);
            assert_eq!(read(&text), Some(bytes.clone()), "{text}");
            assert_eq!(read(text.trim_end_matches('=')), Some(bytes), "{text} unpadded");
        }
    }
}
