//! Keys: reads run here, writes go to the log.

use super::call::{CallId, State};
use super::dispatch::malformed;
use super::run::Desk;
use api::Error;
use api::etcdserverpb::{
    AlarmType, CompactionRequest, DeleteRangeRequest, LeaseTimeToLiveRequest, PutRequest,
    RangeRequest, TxnRequest,
};
use bytes::Bytes;
use node::Question;
use prost::Message;
use std::sync::atomic::Ordering;
use store::{ReadError, Reply};

const PUT_FIELD: u32 = 4;
const DELETE_RANGE_FIELD: u32 = 5;
const TXN_FIELD: u32 = 6;
const COMPACTION_FIELD: u32 = 7;

/// What is to be done once it is known that nothing older than the request can be seen.
#[derive(Debug)]
pub enum Deferred {
    Range(RangeRequest),
    RangeStream(RangeRequest),
    Txn(TxnRequest),
    MemberList,
    KeepAlive { lease: i64, revision: i64 },
    TimeToLive(LeaseTimeToLiveRequest),
    Leases,
}

/// Ranges over more keys than this are read by the office, so that nobody at this desk waits.
const SHORT_RANGE_KEYS: usize = 2000;

impl Desk {
    pub(super) fn range(&mut self, id: CallId, data: Bytes) -> Result<(), Error> {
        let request = RangeRequest::decode(data).map_err(malformed)?;
        store::check_range(&request)?;
        if request.serializable {
            self.run_now(id, Deferred::Range(request));
        } else {
            self.after_barrier(id, Deferred::Range(request));
        }
        Ok(())
    }

    pub(super) fn range_stream(&mut self, id: CallId, data: Bytes) -> Result<(), Error> {
        let request = RangeRequest::decode(data).map_err(malformed)?;
        store::check_range_stream(&request)?;
        if request.serializable {
            self.run_now(id, Deferred::RangeStream(request));
        } else {
            self.after_barrier(id, Deferred::RangeStream(request));
        }
        Ok(())
    }

    pub(super) fn put(&mut self, id: CallId, data: Bytes) -> Result<(), Error> {
        let request = PutRequest::decode(data.clone()).map_err(malformed)?;
        self.check_quota(store::put_cost(&request))?;
        store::check_put(&request)?;
        self.propose_field(id, PUT_FIELD, &data)
    }

    pub(super) fn delete_range(&mut self, id: CallId, data: Bytes) -> Result<(), Error> {
        let request = DeleteRangeRequest::decode(data.clone()).map_err(malformed)?;
        store::check_delete_range(&request)?;
        self.propose_field(id, DELETE_RANGE_FIELD, &data)
    }

    pub(super) fn txn(&mut self, id: CallId, data: Bytes) -> Result<(), Error> {
        let request = TxnRequest::decode(data.clone()).map_err(malformed)?;
        self.check_quota(store::txn_cost(&request))?;
        store::check_txn(&request, self.shared.limits.txn_ops_max)?;
        if !store::is_read_only_txn(&request) {
            return self.propose_field(id, TXN_FIELD, &data);
        }
        if store::is_serializable_txn(&request) {
            self.run_now(id, Deferred::Txn(request));
        } else {
            self.after_barrier(id, Deferred::Txn(request));
        }
        Ok(())
    }

    pub(super) fn compact(&mut self, id: CallId, data: Bytes) -> Result<(), Error> {
        let request = CompactionRequest::decode(data.clone()).map_err(malformed)?;
        if request.physical {
            // It is answered when the rows are gone, which may take a while.
            self.send_to_office(id, crate::method::Method::Compact, data);
            return Ok(());
        }
        self.propose_field(id, COMPACTION_FIELD, &data)
    }

    /// Refuses what would not fit. The first to notice raises the alarm, so that all members
    /// refuse from then on.
    pub(super) fn check_quota(&mut self, cost: usize) -> Result<(), Error> {
        let shared = &self.shared;
        if cost == 0 || (!shared.pulse.disk_full() && shared.view.quota_allows(cost)) {
            return Ok(());
        }
        if !shared.view.has_alarm(AlarmType::Nospace) {
            shared.office.raise_no_space();
        }
        Err(Error::NO_SPACE)
    }

    /// Runs a read when all that was answered before it came can be seen.
    pub(super) fn after_barrier(&mut self, id: CallId, deferred: Deferred) {
        match self.shared.pulse.sole_read_index() {
            Some(index) => self.run_when_applied(index, id, deferred),
            None => self.ask(id, Question::Read, deferred),
        }
    }

    pub(super) fn run_when_applied(&mut self, index: u64, id: CallId, deferred: Deferred) {
        if self.shared.pulse.applied() >= index {
            return self.run_now(id, deferred);
        }
        self.reads.push_back((index, id, deferred));
        // Set before looking again, so that whoever applies either sees it or has been seen.
        self.shared.desks[self.number].reading.store(true, Ordering::SeqCst);
        self.run_ready_reads();
    }

    pub(super) fn run_ready_reads(&mut self) {
        if self.reads.is_empty() {
            return;
        }
        let applied = self.shared.pulse.applied();
        while self.reads.front().is_some_and(|(index, ..)| *index <= applied) {
            let (_, id, deferred) = self.reads.pop_front().expect("there is a first read");
            self.run_now(id, deferred);
        }
        if self.reads.is_empty() {
            self.shared.desks[self.number].reading.store(false, Ordering::SeqCst);
        }
    }

    /// Reads whose index never came, or whose question was never answered.
    pub(super) fn expire_reads(&mut self) {
        let timeout = self.shared.limits.request_timeout;
        let late = |desk: &mut Desk, id: CallId| {
            desk.call_mut(id).is_none_or(|call| call.began.elapsed() > timeout)
        };
        let waiting: Vec<(u64, CallId)> = self.asked.iter().map(|(&t, (id, _))| (t, *id)).collect();
        for (token, id) in waiting {
            if late(self, id) {
                self.asked.remove(&token);
                self.fail(id, Error::TIMEOUT);
            }
        }
        let waiting: Vec<CallId> = self.reads.iter().map(|(_, id, _)| *id).collect();
        for id in waiting {
            if late(self, id) {
                self.reads.retain(|(_, read, _)| *read != id);
                self.fail(id, Error::TIMEOUT);
            }
        }
    }

    /// Reads that were put off because their callers do not take what they asked for. They are
    /// looked at again whenever something happened; a caller that went away is forgotten.
    pub(super) fn run_parked_reads(&mut self) {
        for (id, deferred) in std::mem::take(&mut self.parked) {
            if self.call_mut(id).is_some() {
                self.run_now(id, deferred);
            }
        }
    }

    /// Whether a socket has meanwhile taken so much that a parked read may run.
    pub(super) fn can_run_parked(&mut self) -> bool {
        let connections = &mut self.connections;
        let mut parked = self.parked.iter();
        parked.any(|(id, _)| connections.get_mut(id.connection).is_none_or(|c| !c.is_behind()))
    }

    /// Does what was put off.
    pub(super) fn run_now(&mut self, id: CallId, deferred: Deferred) {
        let may_be_large = matches!(deferred, Deferred::Range(_) | Deferred::Txn(_));
        if may_be_large && self.connections.get_mut(id.connection).is_some_and(|c| c.is_behind()) {
            return self.parked.push((id, deferred));
        }
        let view = &self.shared.view;
        let result = match deferred {
            Deferred::Range(request) if view.holds_more_than(SHORT_RANGE_KEYS, &request) => {
                return self.read_at_office(id, request, false);
            }
            Deferred::Range(request) => view.range(&request),
            Deferred::RangeStream(request) => return self.read_at_office(id, request, true),
            Deferred::Txn(request) => view.txn_read_only(&request),
            Deferred::MemberList => return self.answer_member_list(id),
            Deferred::KeepAlive { lease, revision } => {
                let deferred = Deferred::KeepAlive { lease, revision };
                return self.ask(id, Question::Renew { lease }, deferred);
            }
            Deferred::TimeToLive(request) => {
                let question = Question::TimeToLive { lease: request.id };
                return self.ask(id, question, Deferred::TimeToLive(request));
            }
            Deferred::Leases => return self.ask(id, Question::Leases, Deferred::Leases),
        };
        self.finish_read(id, result);
    }

    fn finish_read(&mut self, id: CallId, result: Result<Reply, ReadError>) {
        match result {
            Ok(reply) => self.reply(id, reply),
            Err(ReadError::Refused(error)) => self.fail(id, error),
            Err(ReadError::Damaged(damage)) => {
                // Never served: the caller learns that it failed, the operator learns where.
                config::error!(self.shared.logger, "cannot read the store", "error" => damage.to_string());
                self.fail(id, Error::with_text(api::Code::DataLoss, damage.to_string()));
            }
        }
    }

    fn read_at_office(&mut self, id: CallId, request: RangeRequest, in_pieces: bool) {
        let (cancel, cancelled) = tokio::sync::oneshot::channel();
        self.set_state(id, State::AtOffice(cancel));
        self.shared.office.take_range(self.number, id, request, in_pieces, cancelled);
    }
}
