//! CRC-32C of a concatenation, from the checksums of its parts.
//!
//! The checksum of `a` followed by `b` is that of `a`, moved past as many zero bytes as `b` has,
//! xor that of `b`. Moving is linear, so it is done by table: one table per power of two of the
//! length, four lookups each. HashKV does this once per row instead of reading the row.

use std::sync::OnceLock;

/// The CRC-32C of two byte strings, one after the other.
pub(crate) fn combine(first: u32, second: u32, second_bytes: usize) -> u32 {
    move_past_zeros(first, second_bytes) ^ second
}

type Table = [[u32; 256]; 4];

fn move_past_zeros(mut crc: u32, mut bytes: usize) -> u32 {
    let tables = tables();
    let mut power = 0;
    while bytes != 0 {
        if bytes & 1 == 1 {
            crc = look_up(&tables[power], crc);
        }
        bytes >>= 1;
        power += 1;
    }
    crc
}

fn look_up(table: &Table, crc: u32) -> u32 {
    let [a, b, c, d] = crc.to_le_bytes();
    table[0][a as usize] ^ table[1][b as usize] ^ table[2][c as usize] ^ table[3][d as usize]
}

/// Table `n` moves past 2^n zero bytes. Rows are shorter than 4 GiB.
fn tables() -> &'static [Table; 32] {
    static TABLES: OnceLock<Box<[Table; 32]>> = OnceLock::new();
    TABLES.get_or_init(|| {
        let mut tables = Box::new([[[0; 256]; 4]; 32]);
        let mut image = one_zero_byte();
        for table in tables.iter_mut() {
            for (byte, row) in table.iter_mut().enumerate() {
                for (value, entry) in row.iter_mut().enumerate() {
                    *entry = apply(&image, (value as u32) << (8 * byte));
                }
            }
            image = image.map(|bit| apply(&image, bit));
        }
        tables
    })
}

/// Where each bit of a checksum goes when one zero byte follows.
fn one_zero_byte() -> [u32; 32] {
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    std::array::from_fn(|bit| {
        (0..8).fold(1 << bit, |crc: u32, _| (crc >> 1) ^ ((crc & 1) * POLYNOMIAL))
    })
}

fn apply(image: &[u32; 32], crc: u32) -> u32 {
    (0..32).filter(|bit| crc >> bit & 1 == 1).fold(0, |sum, bit| sum ^ image[bit])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crc32c::crc32c;

    #[test]
    fn the_whole_follows_from_its_parts() {
        let bytes: Vec<u8> = (0..70_000u32).map(|n| ((n * 31) >> 3) as u8).collect();
        for cut in [0, 1, 2, 3, 17, 255, 256, 4096, 65_537, 70_000] {
            let (first, second) = bytes.split_at(cut);
            let combined = combine(crc32c(first), crc32c(second), second.len());
            assert_eq!(combined, crc32c(&bytes), "cut at {cut}");
        }
    }
}
