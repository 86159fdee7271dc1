#![no_main]

#[path = "../../crates/tests/tests/decoders/entries/mod.rs"]
#[allow(dead_code, reason = "each target uses one entry")]
mod entries;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    entries::wal_records(data);
});
