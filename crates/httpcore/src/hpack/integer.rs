//! The prefixed integers of RFC 7541 section 5.1.

use super::Malformed;

/// Reads an integer whose first byte holds `prefix_bits` bits of it. `at` moves past it.
#[inline]
pub fn decode(block: &[u8], at: &mut usize, prefix_bits: u32) -> Result<usize, Malformed> {
    const CUT: Malformed = Malformed("a header block ends inside an integer");
    let mask = (1usize << prefix_bits) - 1;
    let mut value = usize::from(*block.get(*at).ok_or(CUT)?) & mask;
    *at += 1;
    if value < mask {
        return Ok(value);
    }
    // Four more bytes give 28 bits, more than any length or index we would accept.
    for shift in [0, 7, 14, 21] {
        let byte = *block.get(*at).ok_or(CUT)?;
        *at += 1;
        value += usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(Malformed("an integer in a header block is too large"))
}

/// Appends `value`; `flags` are the bits above the prefix in the first byte.
pub fn encode(mut value: usize, prefix_bits: u32, flags: u8, out: &mut Vec<u8>) {
    let mask = (1usize << prefix_bits) - 1;
    if value < mask {
        out.push(flags | value as u8);
        return;
    }
    out.push(flags | mask as u8);
    value -= mask;
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_survive() {
        for prefix_bits in 4..=7 {
            for value in (0..300).chain([1337, 16383, 16384, 1 << 20, (1 << 28) - 1]) {
                let mut out = Vec::new();
                encode(value, prefix_bits, 0, &mut out);
                let mut at = 0;
                assert_eq!(decode(&out, &mut at, prefix_bits), Ok(value));
                assert_eq!(at, out.len());
            }
        }
    }

    #[test]
    fn endless_integers_are_refused() {
        assert!(decode(&[0xff; 20], &mut 0, 7).is_err());
        assert!(decode(&[0xff, 0x80], &mut 0, 7).is_err());
        assert!(decode(&[], &mut 0, 7).is_err());
    }
}
