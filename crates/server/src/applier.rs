//! The thread that applies committed entries to the store, and tells everybody what came of it.

use crate::inbox::Inbox;
use crate::keeper::Errand;
use crate::mail::{DeskBox, Letter, Settled};
use crate::office::Office;
use crate::pulse::Pulse;
use config::log::Logger;
use metrics::{ApplyOp, Metrics};
use node::{Event, Fact, IdSpace};
use raftpb::{Entry, EntryKind};
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{Applied, Change, Effect, MemberChange, Store};

/// How much the applying thread may do at a time, and what it tells the log about.
#[derive(Clone, Debug)]
pub struct Pace {
    /// Keys looked at by one step of a compaction, and the pause after it in which requests go on.
    pub compaction_keys: usize,
    pub compaction_pause: Duration,
    /// After this many changes the engine's keeper is told not to wait any longer.
    pub batch_limit: usize,
    /// An entry that takes longer than this is worth a line in the log.
    pub slow_apply: Duration,
}

/// Things that happened to the whole store and that other rooms act on.
pub enum Happening {
    /// The apply gate found the quota exceeded: somebody must raise the alarm.
    QuotaExceeded,
    AlarmsChanged,
    CompactionScheduled {
        revision: i64,
    },
    CompactionFinished {
        revision: i64,
    },
    ClusterVersion(String),
    MembersChanged(MemberChange),
}

pub struct Applier {
    pub store: Store,
    pub batches: Arc<Inbox<Vec<Entry>>>,
    pub replica: Arc<Inbox<Event>>,
    pub desks: Arc<[DeskBox]>,
    pub office: Office,
    pub pulse: Arc<Pulse>,
    pub ids: IdSpace,
    /// The last compaction whose end was told.
    pub finished: i64,
    /// Changes since the keeper was last told to make haste.
    pub unsynced: usize,
    pub pace: Pace,
    pub keeper: Arc<Inbox<Errand>>,
    pub metrics: Arc<Metrics>,
    pub logger: Logger,
    pub happened: Box<dyn FnMut(Happening) + Send>,
}

impl Applier {
    /// Runs until the inbox is closed. An error is damage: this member must stop.
    pub fn run(mut self) -> Result<(), engine::Error> {
        let mut batches = Vec::new();
        let mut compacting = true;
        let mut next_step = Instant::now();
        loop {
            let patience = compacting.then(|| next_step.saturating_duration_since(Instant::now()));
            if !self.batches.receive(patience, &mut batches) {
                return Ok(());
            }
            if !batches.is_empty() {
                compacting |= self.apply(&mut batches)?;
            }
            if compacting && Instant::now() >= next_step {
                compacting = self.store.compact_step(self.pace.compaction_keys)?;
                next_step = Instant::now() + self.pace.compaction_pause;
                let finished = self.store.view().compaction_finished();
                if finished > self.finished {
                    self.finished = finished;
                    (self.happened)(Happening::CompactionFinished { revision: finished });
                }
            }
        }
    }

    /// Applies all that has gathered and tells everybody once. `true`: a compaction was asked for.
    fn apply(&mut self, batches: &mut Vec<Vec<Entry>>) -> Result<bool, engine::Error> {
        // The desks, then the office, then the replica itself, whose errands also come back here.
        let mut settled: Vec<Vec<Settled>> =
            (0..self.desks.len() + 2).map(|_| Vec::new()).collect();
        let mut changes: Vec<Arc<Change>> = Vec::new();
        let mut facts = Vec::new();
        let mut last = None;
        let mut compacting = false;
        let mut now = Instant::now();
        for entry in batches.drain(..).flatten() {
            let applied = self.store.apply(&entry)?;
            last = Some((applied.index, applied.term));
            let began = std::mem::replace(&mut now, Instant::now());
            self.measure(&entry, &applied, now - began);
            if applied.request_id != 0 {
                let result = Settled { id: applied.request_id, result: applied.result };
                settled[self.ids.desk_of(applied.request_id)].push(result);
            }
            changes.extend(applied.change);
            for effect in applied.effects {
                compacting |= matches!(effect, Effect::CompactionScheduled { .. });
                self.take_note(effect, &mut facts);
            }
        }
        let Some((index, term)) = last else { return Ok(false) };
        self.store.end_batch()?;
        self.unsynced += changes.len();
        if self.unsynced >= self.pace.batch_limit {
            self.unsynced = 0;
            self.keeper.send(Errand::Sync);
        }
        let revision = self.store.view().revision();
        let errands = settled.pop().expect("the replica's list is the last");
        let office = settled.pop().expect("the office's list is before it");
        let changes: Option<Arc<[Arc<Change>]>> = (!changes.is_empty()).then(|| changes.into());
        // All desks hear of the changes before anybody is answered: whoever has seen an answer
        // must not be able to open a watch that still considers it news.
        if let Some(changes) = changes {
            for desk in &*self.desks {
                desk.send(Letter::Changes(changes.clone()));
            }
            self.office.changed(&changes);
        }
        // The replica hears of the facts before anybody is answered: whoever has been granted a
        // lease may renew it at once, and must not be told that there is none.
        let errands = errands.into_iter().map(|s| Event::Settled {
            id: s.id,
            // Somebody else compacted first, and further: that is as good.
            done: s.result.as_ref().err().is_none_or(|error| *error == api::Error::COMPACTED),
        });
        self.replica
            .send_all([Event::Applied { index, revision, facts }].into_iter().chain(errands));
        self.pulse.set_applied(index, term);
        for (desk, settled) in self.desks.iter().zip(settled) {
            let settled = (!settled.is_empty()).then_some(Letter::Settled(settled));
            desk.send_all(settled.into_iter().chain([Letter::Applied]));
        }
        self.office.settle(office);
        Ok(compacting)
    }

    fn measure(&self, entry: &Entry, applied: &Applied, took: Duration) {
        self.metrics.server.apply.took(op_of(entry), applied.result.is_ok(), took);
        if took > self.pace.slow_apply {
            self.metrics.server.slow_apply.inc();
            let error = applied.result.as_ref().err().map(|error| error.to_string());
            config::warn!(self.logger, "apply request took too long",
                "took" => took,
                "expected-duration" => self.pace.slow_apply,
                "prefix" => "",
                "request" => format!("header:<ID:{} > {} bytes", applied.request_id, entry.data.len()),
                "response" => "",
                "error" => error.unwrap_or_default());
        }
    }

    fn take_note(&mut self, effect: Effect, facts: &mut Vec<Fact>) {
        match effect {
            Effect::LeaseGranted { id, ttl } => facts.push(Fact::LeaseGranted { lease: id, ttl }),
            Effect::LeaseRevoked { id } => facts.push(Fact::LeaseRevoked { lease: id }),
            Effect::LeaseCheckpointed { id, remaining } => {
                facts.push(Fact::LeaseCheckpointed { lease: id, remaining });
            }
            Effect::ConfChanged(changed) => {
                facts.push(Fact::ConfChange(changed.change));
                (self.happened)(Happening::MembersChanged(changed.member));
            }
            Effect::ClusterVersionSet(version) => {
                facts.push(Fact::ClusterVersion(version.clone()));
                (self.happened)(Happening::ClusterVersion(version));
            }
            Effect::QuotaExceeded => (self.happened)(Happening::QuotaExceeded),
            Effect::AlarmsChanged => (self.happened)(Happening::AlarmsChanged),
            Effect::CompactionScheduled { revision } => {
                (self.happened)(Happening::CompactionScheduled { revision });
            }
            Effect::DowngradeSet { target } => facts.push(Fact::Downgrade { target }),
            Effect::MemberAttributesSet { .. }
            | Effect::AuthChanged
            | Effect::TokenAssigned { .. } => {}
        }
    }
}

/// The kind of request that an entry carries, by the first field that can tell.
fn op_of(entry: &Entry) -> ApplyOp {
    if entry.kind != EntryKind::Normal {
        return ApplyOp::Unknown;
    }
    match entry.data.first() {
        Some(0x22) => ApplyOp::Put,
        Some(0x2a) => ApplyOp::DeleteRange,
        Some(0x32) => ApplyOp::Txn,
        Some(0x3a) => ApplyOp::Compaction,
        Some(0x42) => ApplyOp::LeaseGrant,
        Some(0x4a) => ApplyOp::LeaseRevoke,
        Some(0x52) => ApplyOp::Alarm,
        Some(0x5a) => ApplyOp::LeaseCheckpoint,
        _ => ApplyOp::Unknown,
    }
}
