//! etcd's database file (bbolt's format): read it, and write it in one stream.
//!
//! In:  rows, bucket by bucket, in key order; for reading, the bytes of a file.
//! Out: the pages of a database that etcd and its tools accept; for reading, the rows.
//!
//! Writing takes two passes over the rows and no more memory than a few pages. The first needs only
//! their sizes and yields the [`Layout`]: how many pages there are, and so how long the file will be,
//! which a snapshot stream has to say in advance. The second fills the pages, front to back.
//!
//! This room knows pages and buckets, and nothing of what etcd keeps in them. It does not change a
//! database in place: there is no free list, no transaction and no lock here.
//!
//! Always true: a damaged file is an error, never a panic, and costs no more memory than its length.

mod page;
mod plan;
mod read;
mod write;

pub use page::PAGE_BYTES;
pub use plan::{Layout, Planner};
pub use read::{Database, ReadAt, ReadError, Rows};
pub use write::{Source, WriteError, Writer};

/// The buckets of an etcd database, in the order in which they are written. All must exist.
pub const BUCKETS: [&str; 10] = [
    "alarm",
    "auth",
    "authRoles",
    "authUsers",
    "cluster",
    "key",
    "lease",
    "members",
    "members_removed",
    "meta",
];
