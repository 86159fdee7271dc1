//! Work that reads or rewrites much: hashes, physical compaction, defragmentation.

use super::Office;
use super::recipe::{decode, refusal};
use api::Error;
use api::etcdserverpb::{
    CompactionRequest, DefragmentResponse, HashKvRequest, HashKvResponse, HashResponse,
};
use api::health::health_check_response::ServingStatus;
use bytes::Bytes;
use prost::Message;

const COMPACTION_FIELD: u32 = 7;

/// What the office asks of whoever keeps the engine.
pub trait Housekeeping: Send + Sync {
    /// Gives back everything that compaction has freed. Blocks until that is done; requests go on
    /// meanwhile.
    fn defragment(&self) -> Result<(), engine::Error>;
}

impl Office {
    /// Compacts, and answers when the rows are gone.
    pub(super) async fn compact_physically(&self, data: Bytes) -> Result<Bytes, Error> {
        let request: CompactionRequest = decode(data.clone())?;
        let compacted = self.propose(COMPACTION_FIELD, &data).await;
        let wanted = match &compacted {
            Ok(_) => request.revision,
            // Somebody compacted to here before, perhaps just now.
            Err(error) if *error == Error::COMPACTED => self.config().view.compacted(),
            Err(_) => i64::MIN,
        };
        let mut finished = self.0.finished_compaction.subscribe();
        while self.config().view.compaction_finished() < wanted {
            finished.changed().await.map_err(|_| Error::STOPPED)?;
        }
        let reply = compacted?;
        Ok(self.with_header(reply.revision, &reply.body))
    }

    /// Called when rows up to this revision are gone.
    pub fn compaction_finished(&self, revision: i64) {
        self.0.finished_compaction.send_replace(revision);
    }

    pub(super) async fn defragment(&self) -> Result<Bytes, Error> {
        if self.config().stop_serving_on_defrag {
            self.0.serving.send_replace(ServingStatus::NotServing);
        }
        let housekeeping = self.config().housekeeping.clone();
        let done = self.on_own_thread(move || housekeeping.defragment()).await;
        self.0.serving.send_replace(ServingStatus::Serving);
        done?.map_err(|error| Error::with_text(api::Code::Unknown, error.to_string()))?;
        Ok(DefragmentResponse::default().encode_to_vec().into())
    }

    pub(super) async fn hash(&self) -> Result<Bytes, Error> {
        let view = self.config().view.clone();
        let hash = self.on_own_thread(move || view.hash()).await?.map_err(refusal)?;
        let body = HashResponse { header: None, hash }.encode_to_vec();
        Ok(self.with_header(self.config().view.revision(), &body))
    }

    pub(super) async fn hash_kv(&self, data: Bytes) -> Result<Bytes, Error> {
        let request: HashKvRequest = decode(data)?;
        let view = self.config().view.clone();
        let hashed = self.on_own_thread(move || view.hash_kv(request.revision)).await?;
        let hashed = hashed.map_err(refusal)?;
        let body = HashKvResponse {
            header: None,
            hash: hashed.hash,
            compact_revision: hashed.compact_revision,
            hash_revision: hashed.hash_revision,
        };
        Ok(self.with_header(self.config().view.revision(), &body.encode_to_vec()))
    }
}
