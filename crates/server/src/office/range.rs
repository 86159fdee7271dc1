//! Ranges too long for a desk: read on a thread of their own, sent as a whole or in pieces.

use super::recipe::refusal;
use super::{Caller, Office};
use crate::desk::{CallId, put_message_tag};
use api::Error;
use api::etcdserverpb::RangeRequest;
use bytes::Bytes;
use std::sync::Arc;
use store::Piece;
use tokio::sync::{Semaphore, oneshot};

/// Pieces on their way to a caller at once.
const PIECES_MAX: usize = 4;

impl Office {
    /// Reads a range whose barrier has been passed.
    pub fn take_range(
        &self,
        desk: usize,
        call: CallId,
        request: RangeRequest,
        in_pieces: bool,
        cancelled: oneshot::Receiver<()>,
    ) {
        let caller = Caller { office: self.clone(), desk, call };
        let office = self.clone();
        self.spawn(async move {
            if in_pieces {
                tokio::select! {
                    biased;
                    _ = cancelled => {}
                    result = office.send_pieces(&caller, request) => caller.end(result),
                }
            } else {
                caller.answer(office.read_whole(request).await);
            }
        });
    }

    async fn read_whole(&self, request: RangeRequest) -> Result<Bytes, Error> {
        // Answers of this size are built a few at a time, whoever asks for how many.
        let _turn = self.0.long_reads.acquire().await.map_err(|_| Error::STOPPED)?;
        let view = self.config().view.clone();
        let reply = self.on_own_thread(move || view.range(&request)).await?.map_err(refusal)?;
        Ok(self.with_header(reply.revision, &reply.body))
    }

    async fn send_pieces(&self, caller: &Caller, request: RangeRequest) -> Result<(), Error> {
        let permits = Arc::new(Semaphore::new(PIECES_MAX));
        let bytes_max = self.config().request_bytes_max;
        let mut stream = self.config().view.range_stream(&request, bytes_max).map_err(refusal)?;
        loop {
            let (back, piece) = self
                .on_own_thread(move || {
                    let piece = stream.next_piece();
                    (stream, piece)
                })
                .await?;
            stream = back;
            match piece.map_err(refusal)? {
                Some(Piece::More(body)) => caller.piece(&permits, wrap(&[&body])).await,
                Some(Piece::Last(reply)) => {
                    let header = self.header(reply.revision);
                    caller.piece(&permits, wrap(&[&header, &reply.body])).await;
                }
                None => return Ok(()),
            }
        }
    }
}

/// A `RangeStreamResponse` around the fields of a `RangeResponse`.
fn wrap(fields: &[&[u8]]) -> Bytes {
    let mut message = Vec::new();
    put_message_tag(&mut message, 1, fields.iter().map(|field| field.len()).sum());
    fields.iter().for_each(|field| message.extend_from_slice(field));
    message.into()
}
