//! Byte counts for people, in powers of a thousand: `78 kB`, `2.1 GB`.

/// The SI form that etcd logs beside every size.
pub fn humanise(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
    if bytes < 10 {
        return format!("{bytes} B");
    }
    let power = bytes.ilog(1000) as usize;
    let scaled = bytes as f64 / 1000f64.powi(power as i32);
    let rounded = (scaled * 10.0 + 0.5).floor() / 10.0;
    if rounded < 10.0 {
        format!("{rounded:.1} {}", UNITS[power])
    } else {
        format!("{rounded:.0} {}", UNITS[power])
    }
}

#[cfg(test)]
mod tests {
    use super::humanise;

    #[test]
    fn sizes_read_as_in_etcd() {
        for (bytes, text) in [
            (0, "0 B"),
            (9, "9 B"),
            (10, "10 B"),
            (999, "999 B"),
            (1000, "1.0 kB"),
            (24_576, "25 kB"),
            (77_824, "78 kB"),
            (2_147_483_648, "2.1 GB"),
            (8_589_934_592, "8.6 GB"),
            (u64::MAX, "18 EB"),
        ] {
            assert_eq!(humanise(bytes), text);
        }
    }
}
