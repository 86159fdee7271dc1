//! Databases for the tests.
#![allow(dead_code, reason = "each test uses its own part")]

use bolt::{BUCKETS, Layout, Planner, Source, WriteError, Writer};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::convert::Infallible;

pub type Tables = BTreeMap<String, BTreeMap<Bytes, Bytes>>;

/// All ten buckets, empty.
pub fn empty() -> Tables {
    BUCKETS.iter().map(|name| (name.to_string(), BTreeMap::new())).collect()
}

/// etcd's row key.
pub fn row_key(main: i64, sub: i64, tombstone: bool) -> Bytes {
    let mut key = main.to_be_bytes().to_vec();
    key.push(b'_');
    key.extend_from_slice(&sub.to_be_bytes());
    key.extend_from_slice(if tombstone { b"t" } else { b"" });
    key.into()
}

pub fn plan(tables: &Tables) -> Layout {
    let mut planner = Planner::new();
    for (name, rows) in tables {
        planner.bucket(name);
        rows.iter().for_each(|(key, value)| planner.row(key.len(), value.len()));
    }
    planner.finish()
}

/// Both passes, in memory.
pub fn write(tables: &Tables) -> Vec<u8> {
    let layout = plan(tables);
    let bytes = layout.bytes();
    let file = write_planned(layout, tables).expect("the rows are the planned ones");
    assert_eq!(file.len() as u64, bytes, "the length was known in advance");
    file
}

pub fn write_planned(layout: Layout, tables: &Tables) -> Result<Vec<u8>, WriteError<Infallible>> {
    let mut writer = Writer::new(layout, InMemory { tables, last: None });
    let mut file = Vec::new();
    while let Some(chunk) = writer.next_chunk()? {
        file.extend_from_slice(&chunk);
    }
    Ok(file)
}

struct InMemory<'a> {
    tables: &'a Tables,
    last: Option<(String, Bytes)>,
}

impl Source for InMemory<'_> {
    type Error = Infallible;

    fn next_row(&mut self, bucket: &str) -> Result<Option<(Bytes, Bytes)>, Infallible> {
        let last = self.last.take().filter(|(of, _)| of == bucket).map(|(_, key)| key);
        let mut rows = self.tables[bucket].iter();
        let row = match last {
            None => rows.next(),
            Some(last) => {
                use std::ops::Bound::{Excluded, Unbounded};
                self.tables[bucket].range((Excluded(last), Unbounded)).next()
            }
        };
        self.last = row.map(|(key, _)| (bucket.to_string(), key.clone()));
        Ok(row.map(|(key, value)| (key.clone(), value.clone())))
    }
}
