//! What a fuzzer feeds: arbitrary bytes into everything that reads what others wrote. Nothing may
//! panic, and what was read must mean the same when it is written and read again.

mod files;
mod json;
mod requests;
mod settings;

pub use files::{bolt_database, engine_files, snap_file, wal_records, wal_segment};
pub use json::{json_request, json_response, json_splitter};
pub use requests::{api_requests, raft_messages, store_apply};
pub use settings::settings;

/// Says whether there was anything to read in the bytes, so that a corpus that is refused at the
/// door is noticed.
pub type Entry = fn(&[u8]) -> bool;

pub const ENTRIES: [(&str, Entry); 12] = [
    ("api_requests", api_requests),
    ("store_apply", store_apply),
    ("json_request", json_request),
    ("json_response", json_response),
    ("json_splitter", json_splitter),
    ("raft_messages", raft_messages),
    ("wal_segment", wal_segment),
    ("wal_records", wal_records),
    ("snap_file", snap_file),
    ("engine_files", engine_files),
    ("bolt_database", bolt_database),
    ("settings", settings),
];
