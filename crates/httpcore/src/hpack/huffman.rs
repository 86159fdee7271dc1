//! Huffman decoding, four bits at a time.
//!
//! A state is an inner node of the code tree. No code is shorter than five bits, so four bits
//! complete at most one byte, and one small table lookup per half byte does the work.

use super::Malformed;
use super::tables::HUFFMAN_CODES;

/// Appends the decoded form of `input` to `out`.
pub fn decode(input: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
    let mut at = Step { next: 0, byte: 0, flags: MAY_END };
    for &byte in input {
        for half in [byte >> 4, byte & 15] {
            at = STEPS[at.next as usize][half as usize];
            if at.flags & FAILS != 0 {
                return Err(Malformed("a Huffman string contains the end-of-string code"));
            }
            if at.flags & EMITS != 0 {
                out.push(at.byte);
            }
        }
    }
    if at.flags & MAY_END == 0 {
        return Err(Malformed("a Huffman string ends inside a code or with wrong padding"));
    }
    Ok(())
}

#[derive(Clone, Copy)]
struct Step {
    next: u8,
    byte: u8,
    flags: u8,
}

const EMITS: u8 = 1;
/// What follows the last whole code is at most seven one-bits, which is legal padding.
const MAY_END: u8 = 2;
const FAILS: u8 = 4;

static STEPS: [[Step; 16]; 256] = build();

/// Child of an inner node: 0 = none (inside the end-of-string code), 1..=256 = inner node + 1,
/// 257.. = byte + 257.
const LEAF: u16 = 257;

const fn build() -> [[Step; 16]; 256] {
    // The tree has 257 leaves, hence 256 inner nodes; the end-of-string code (thirty one-bits) is
    // left out, and so are the nodes that lead to nothing else.
    let mut tree = [[0u16; 2]; 256];
    let mut nodes = 1;
    let mut byte = 0;
    while byte < 256 {
        let (code, bits) = HUFFMAN_CODES[byte];
        let mut node = 0;
        let mut bit = bits;
        while bit > 1 {
            bit -= 1;
            let side = (code >> bit & 1) as usize;
            if tree[node][side] == 0 {
                tree[node][side] = nodes as u16 + 1;
                nodes += 1;
            }
            node = tree[node][side] as usize - 1;
        }
        tree[node][(code & 1) as usize] = byte as u16 + LEAF;
        byte += 1;
    }

    // A node is a legal end if only one-bits, and at most seven, lead to it.
    let mut legal_end = [false; 256];
    let mut node = 0;
    let mut depth = 0;
    while depth < 8 {
        legal_end[node] = true;
        node = tree[node][1] as usize - 1;
        depth += 1;
    }

    let mut steps = [[Step { next: 0, byte: 0, flags: FAILS }; 16]; 256];
    let mut from = 0;
    while from < nodes {
        let mut half = 0;
        while half < 16 {
            steps[from][half] = walk(&tree, &legal_end, from, half);
            half += 1;
        }
        from += 1;
    }
    steps
}

const fn walk(tree: &[[u16; 2]; 256], legal_end: &[bool; 256], from: usize, half: usize) -> Step {
    let mut step = Step { next: 0, byte: 0, flags: 0 };
    let mut node = from;
    let mut bit = 4;
    while bit > 0 {
        bit -= 1;
        let child = tree[node][half >> bit & 1];
        if child == 0 {
            return Step { next: 0, byte: 0, flags: FAILS };
        }
        if child >= LEAF {
            step.byte = (child - LEAF) as u8;
            step.flags |= EMITS;
            node = 0;
        } else {
            node = child as usize - 1;
        }
    }
    step.next = node as u8;
    if legal_end[node] {
        step.flags |= MAY_END;
    }
    step
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(text: &[u8]) -> Vec<u8> {
        let (mut bits, mut count, mut out) = (0u64, 0, Vec::new());
        for &byte in text {
            let (code, length) = HUFFMAN_CODES[byte as usize];
            bits = bits << length | u64::from(code);
            count += length;
            while count >= 8 {
                count -= 8;
                out.push((bits >> count) as u8);
            }
        }
        if count > 0 {
            out.push((bits << (8 - count)) as u8 | (0xff >> count));
        }
        out
    }

    #[test]
    fn every_byte_survives_in_every_position() {
        for a in 0..=255u8 {
            for b in [0, b'a', b'\\', 255, a] {
                let text = [b, a, b, a, a];
                let mut out = Vec::new();
                decode(&encode(&text), &mut out).expect("our own encoding is legal");
                assert_eq!(out, text);
            }
        }
    }

    #[test]
    fn padding_must_be_short_and_of_ones() {
        let fails = |input: &[u8]| decode(input, &mut Vec::new()).is_err();
        assert!(!fails(&[0x1f]), "'a' (00011) and three ones");
        assert!(fails(&[0x18]), "'a' and three zeros");
        assert!(fails(&[0x1f, 0xff]), "eight and more bits of padding");
        assert!(fails(&[0xff]), "eight bits of padding");
        assert!(fails(&[0xff, 0xff, 0xff, 0xff]), "the end-of-string code itself");
    }
}
