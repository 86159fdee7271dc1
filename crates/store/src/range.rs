//! Reading ranges of keys: which rows, in which order, how many, and what of them.
//!
//! Everything but sorting by value is decided in the index; rows are read only if they are part of
//! the answer. The index is looked at in chunks, and no lock is held while rows are read, so a
//! range over everything delays nobody. The answer is still that of one revision: later revisions
//! are skipped, and if compaction overtakes the reader it is told so.

use api::KeyRange;
use api::etcdserverpb::RangeRequest;
use api::etcdserverpb::range_request::{SortOrder, SortTarget};
use bytes::Bytes;

use crate::applied::{ReadError, Reply};
use crate::index::{Found, Rev};
use crate::shared::Shared;
use crate::wire;

/// How many keys of the index are looked at without letting go of it.
pub(crate) const CHUNK_KEYS: usize = 1000;

/// Reads a range as it is now. The request was checked before.
pub(crate) fn read_now(shared: &Shared, request: &RangeRequest) -> Result<Reply, ReadError> {
    loop {
        let current = shared.revision();
        let mut body = Vec::new();
        match read(shared, request, current, &mut body) {
            // "Now" has moved on and was compacted away while we read. Read what is now.
            Err(ReadError::Refused(error))
                if request.revision <= 0
                    && error == api::Error::COMPACTED
                    && current < shared.revision() => {}
            Err(error) => return Err(error),
            Ok(()) => return Ok(Reply { revision: current, body: body.into() }),
        }
    }
}

/// Reads a range into the fields of a `RangeResponse` behind its header. `current` is the newest
/// revision that the reader may see.
pub(crate) fn read(
    shared: &Shared,
    request: &RangeRequest,
    current: i64,
    body: &mut Vec<u8>,
) -> Result<(), ReadError> {
    let at = readable_revision(shared, request.revision, current)?;
    let range = KeyRange::new(request.key.clone(), request.range_end.clone());
    let plan = Plan::of(request);
    let mut count = 0;
    let mut taken = 0;
    let mut sorted = Vec::new();
    let mut chunk = Vec::new();
    let mut after: Option<Box<[u8]>> = None;
    loop {
        {
            let index = shared.index.read();
            after = index.walk(&range, after.as_deref(), at, CHUNK_KEYS, |_, found| {
                count += 1;
                if taken < plan.candidates_max && plan.lets_pass(found) {
                    taken += 1;
                    match plan.sort {
                        None if taken > plan.rows_max => {}
                        None => chunk.push(found.modified),
                        Some(_) => sorted.push(found),
                    }
                }
                true
            });
            not_compacted(shared, at)?;
        }
        for rev in chunk.drain(..) {
            put_row(body, &shared.row(rev, at)?, request.keys_only);
        }
        if after.is_none() {
            break;
        }
    }
    if let Some((target, descend)) = plan.sort {
        sorted_rows(shared, sorted, target, descend, at, plan.rows_max, |row| {
            put_row(body, row, request.keys_only);
        })?;
    }
    wire::put_bool_field(body, 3, taken > plan.rows_max && !request.count_only);
    wire::put_int_field(body, 4, count);
    Ok(())
}

/// The revision that is meant, if it can be read.
pub(crate) fn readable_revision(
    shared: &Shared,
    revision: i64,
    current: i64,
) -> Result<i64, api::Error> {
    if revision > current {
        return Err(api::Error::FUTURE_REVISION);
    }
    let at = if revision <= 0 { current } else { revision };
    not_compacted(shared, at)?;
    Ok(at)
}

pub(crate) fn not_compacted(shared: &Shared, at: i64) -> Result<(), api::Error> {
    if at < shared.compacted() { Err(api::Error::COMPACTED) } else { Ok(()) }
}

pub(crate) fn put_row(body: &mut Vec<u8>, row: &[u8], keys_only: bool) {
    if keys_only {
        let mut stripped = Vec::with_capacity(64);
        wire::Kv::read(row).put_without_value(&mut stripped);
        wire::put_message(body, 2, &stripped);
    } else {
        wire::put_message(body, 2, row);
    }
}

/// What a request asks for, read the way etcd reads it.
struct Plan {
    /// Stop taking keys after so many: one more than the limit, to know whether there are more.
    candidates_max: usize,
    /// So many rows are answered.
    rows_max: usize,
    /// `None`: key order, which is how keys come. The flag means descending.
    sort: Option<(SortTarget, bool)>,
    filter: Filter,
}

/// Zero: not asked for.
struct Filter {
    min_mod: i64,
    max_mod: i64,
    min_create: i64,
    max_create: i64,
}

impl Plan {
    fn of(request: &RangeRequest) -> Plan {
        let filter = Filter {
            min_mod: request.min_mod_revision,
            max_mod: request.max_mod_revision,
            min_create: request.min_create_revision,
            max_create: request.max_create_revision,
        };
        let sort = match (request.sort_order(), request.sort_target()) {
            (SortOrder::None | SortOrder::Ascend, SortTarget::Key) => None,
            (order, target) => Some((target, order == SortOrder::Descend)),
        };
        let limit = match usize::try_from(request.limit) {
            _ if request.count_only => 0,
            Err(_) | Ok(0) => usize::MAX,
            Ok(limit) => limit,
        };
        // An order that was named ranges over all keys; the ascending order that etcd gives to a
        // target without an order ranges over the first keys only, unless a filter is set.
        let cut_first =
            sort.is_none() || request.sort_order() == SortOrder::None && !filter.is_set();
        let candidates_max = match cut_first {
            _ if request.count_only => 0,
            true => limit.saturating_add(1),
            false => usize::MAX,
        };
        Plan { candidates_max, rows_max: limit, sort, filter }
    }

    fn lets_pass(&self, found: Found) -> bool {
        let Filter { min_mod, max_mod, min_create, max_create } = self.filter;
        let modified = found.modified.main;
        (max_mod == 0 || modified <= max_mod)
            && (min_mod == 0 || modified >= min_mod)
            && (max_create == 0 || found.created <= max_create)
            && (min_create == 0 || found.created >= min_create)
    }
}

impl Filter {
    fn is_set(&self) -> bool {
        [self.min_mod, self.max_mod, self.min_create, self.max_create] != [0; 4]
    }
}

/// Ties keep key order.
fn sorted_rows(
    shared: &Shared,
    mut found: Vec<Found>,
    target: SortTarget,
    descend: bool,
    at: i64,
    rows_max: usize,
    mut visit: impl FnMut(&[u8]),
) -> Result<(), ReadError> {
    if target == SortTarget::Value {
        let rows = found.iter().map(|found| shared.row(found.modified, at));
        let mut rows = rows.collect::<Result<Vec<Bytes>, ReadError>>()?;
        rows.sort_by(|a, b| {
            let order = wire::Kv::read(a).value.cmp(wire::Kv::read(b).value);
            if descend { order.reverse() } else { order }
        });
        rows.iter().take(rows_max).for_each(|row| visit(row));
        return Ok(());
    }
    let by = |found: &Found| match target {
        SortTarget::Version => found.version,
        SortTarget::Create => found.created,
        SortTarget::Mod => found.modified.main,
        SortTarget::Key | SortTarget::Value => 0,
    };
    match (target, descend) {
        (SortTarget::Key, true) => found.reverse(),
        (_, true) => found.sort_by_key(|found| std::cmp::Reverse(by(found))),
        (_, false) => found.sort_by_key(by),
    }
    for found in found.into_iter().take(rows_max) {
        visit(&shared.row(found.modified, at)?);
    }
    Ok(())
}

/// The row of one key as it was at a revision.
pub(crate) fn row_at(shared: &Shared, key: &[u8], at: i64) -> Result<Option<Bytes>, ReadError> {
    let found: Option<Rev> = {
        let index = shared.index.read();
        not_compacted(shared, at)?;
        index.at(key, at).map(|found| found.modified)
    };
    found.map(|rev| shared.row(rev, at)).transpose()
}
