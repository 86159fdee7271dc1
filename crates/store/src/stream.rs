//! A large range, read piece by piece and sent as it is read: what RangeStream (3.7) sends.
//!
//! All pieces together are the answer that Range would have given at the revision of the first.
//! Between pieces nothing is held, so a client may take its time; if compaction overtakes it, the
//! stream ends with an error.

use std::sync::Arc;

use api::KeyRange;
use api::etcdserverpb::RangeRequest;
use bytes::Bytes;

use crate::applied::{ReadError, Reply};
use crate::check::check_range_stream;
use crate::index::Rev;
use crate::range::{CHUNK_KEYS, not_compacted, put_row, readable_revision};
use crate::shared::Shared;
use crate::view::View;
use crate::wire;

pub struct RangeStream {
    shared: Arc<Shared>,
    request: RangeRequest,
    range: KeyRange,
    /// The revision that is read.
    at: i64,
    after: Option<Box<[u8]>>,
    /// How many keys the next piece holds at most.
    piece_keys: usize,
    /// The size that pieces should have, roughly.
    piece_bytes: usize,
    sent: usize,
    ended: bool,
}

/// A part of the answer: the fields of a `RangeResponse`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Pairs alone; no header belongs to it.
    More(Bytes),
    /// The last pairs, `more` and `count`; it gets the header.
    Last(Reply),
}

impl View {
    /// Checks the request, and begins to read. `request_bytes_max` is the largest request that is
    /// taken; pieces are about that large.
    pub fn range_stream(
        &self,
        request: &RangeRequest,
        request_bytes_max: usize,
    ) -> Result<RangeStream, ReadError> {
        check_range_stream(request)?;
        Ok(RangeStream {
            at: readable_revision(&self.shared, request.revision, self.revision())?,
            range: KeyRange::new(request.key.clone(), request.range_end.clone()),
            request: request.clone(),
            shared: self.shared.clone(),
            after: None,
            piece_keys: 10,
            piece_bytes: request_bytes_max,
            sent: 0,
            ended: false,
        })
    }
}

impl RangeStream {
    /// The next piece; `None` behind the last.
    pub fn next_piece(&mut self) -> Result<Option<Piece>, ReadError> {
        if self.ended {
            return Ok(None);
        }
        let limit = match usize::try_from(self.request.limit) {
            _ if self.request.count_only => 0,
            Err(_) | Ok(0) => usize::MAX,
            Ok(limit) => limit,
        };
        let (revs, more) = self.next_keys(self.piece_keys.min(limit - self.sent))?;
        let mut body = Vec::new();
        for rev in &revs {
            put_row(&mut body, &self.shared.row(*rev, self.at)?, self.request.keys_only);
        }
        self.sent += revs.len();
        if more && self.sent < limit {
            if body.len() < self.piece_bytes / 2 {
                self.piece_keys = self.piece_keys.saturating_mul(2);
            } else if body.len() > self.piece_bytes * 2 {
                self.piece_keys = (self.piece_keys / 2).max(1);
            }
            return Ok(Some(Piece::More(body.into())));
        }
        self.ended = true;
        let rest = if more { self.count_rest()? } else { 0 };
        let count = self.sent + rest;
        wire::put_bool_field(&mut body, 3, more && !self.request.count_only);
        wire::put_int_field(&mut body, 4, count as i64);
        Ok(Some(Piece::Last(Reply { revision: self.shared.revision(), body: body.into() })))
    }

    /// The rows of the next keys, and whether there are more behind them.
    fn next_keys(&mut self, keys_max: usize) -> Result<(Vec<Rev>, bool), api::Error> {
        let mut revs = Vec::new();
        let mut more = false;
        let mut looked_upto = self.after.clone();
        loop {
            let index = self.shared.index.read();
            let last = &mut self.after;
            looked_upto = index.walk(
                &self.range,
                looked_upto.as_deref(),
                self.at,
                CHUNK_KEYS,
                |key, found| {
                    if revs.len() == keys_max {
                        more = true;
                    } else {
                        revs.push(found.modified);
                        if revs.len() == keys_max {
                            *last = Some(key.into());
                        }
                    }
                    !more
                },
            );
            not_compacted(&self.shared, self.at)?;
            if more || looked_upto.is_none() {
                return Ok((revs, more));
            }
        }
    }

    /// How many keys are behind the last one sent.
    fn count_rest(&self) -> Result<usize, api::Error> {
        let mut count = 0;
        let mut after = self.after.clone();
        loop {
            let index = self.shared.index.read();
            after = index.walk(&self.range, after.as_deref(), self.at, CHUNK_KEYS, |_, _| {
                count += 1;
                true
            });
            not_compacted(&self.shared, self.at)?;
            if after.is_none() {
                return Ok(count);
            }
        }
    }
}
