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
    let url_safe = text.contains(['-', '_']);
    let padded = text.len().is_multiple_of(4);
    let mut digits: Vec<u8> = text.bytes().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
    if padded {
        if !digits.len().is_multiple_of(4) {
            return None;
        }
        for _ in 0..2 {
            digits.pop_if(|last| *last == b'=');
        }
    }
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    for chunk in digits.chunks(4) {
        let mut bits = 0u32;
        for place in 0..4 {
            bits = bits << 6 | chunk.get(place).map_or(Some(0), |byte| digit(*byte, url_safe))?;
        }
        let [_, decoded @ ..] = bits.to_be_bytes();
        match chunk.len() {
            1 => return None,
            length => bytes.extend_from_slice(&decoded[..length - 1]),
        }
    }
    Some(bytes)
}

fn digit(byte: u8, url_safe: bool) -> Option<u32> {
    let value = match (byte, url_safe) {
        (b'A'..=b'Z', _) => byte - b'A',
        (b'a'..=b'z', _) => byte - b'a' + 26,
        (b'0'..=b'9', _) => byte - b'0' + 52,
        (b'+', false) | (b'-', true) => 62,
        (b'/', false) | (b'_', true) => 63,
        _ => return None,
    };
    Some(u32::from(value))
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
