//! The thread that applies committed entries to the store, and tells everybody what came of it.

use crate::inbox::Inbox;
use crate::mail::{DeskBox, Letter, Settled};
use crate::office::Office;
use crate::pulse::Pulse;
use node::{Event, Fact, IdSpace};
use raftpb::Entry;
use std::sync::Arc;
use std::time::Duration;
use store::{Change, Effect, MemberChange, Store};

/// Keys looked at by one step of a compaction: about a tenth of a millisecond of work, so that no
/// request notices.
const COMPACTION_STEP_KEYS: usize = 256;
/// After a step, requests go first for this long at most.
const COMPACTION_PAUSE: Duration = Duration::from_micros(200);

/// Things that happened to the whole store and that other rooms act on.
pub enum Happening {
    /// The apply gate found the quota exceeded: somebody must raise the alarm.
    QuotaExceeded,
    AlarmsChanged,
    CompactionScheduled { revision: i64 },
    CompactionFinished { revision: i64 },
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
    pub happened: Box<dyn FnMut(Happening) + Send>,
}

impl Applier {
    /// Runs until the inbox is closed. An error is damage: this member must stop.
    pub fn run(mut self) -> Result<(), engine::Error> {
        let mut batches = Vec::new();
        let mut compacting = true;
        loop {
            let patience = compacting.then_some(COMPACTION_PAUSE);
            if !self.batches.receive(patience, &mut batches) {
                return Ok(());
            }
            if !batches.is_empty() {
                compacting |= self.apply(&mut batches)?;
            }
            if compacting {
                compacting = self.store.compact_step(COMPACTION_STEP_KEYS)?;
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
        let mut settled: Vec<Vec<Settled>> = (0..self.desks.len() + 2).map(|_| Vec::new()).collect();
        let mut changes: Vec<Arc<Change>> = Vec::new();
        let mut facts = Vec::new();
        let mut last = None;
        let mut compacting = false;
        for entry in batches.drain(..).flatten() {
            let applied = self.store.apply(&entry)?;
            last = Some((applied.index, applied.term));
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
        self.pulse.set_applied(index, term);
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
        for (desk, settled) in self.desks.iter().zip(settled) {
            let settled = (!settled.is_empty()).then_some(Letter::Settled(settled));
            desk.send_all(settled.into_iter().chain([Letter::Applied]));
        }
        self.office.settle(office);
        let errands =
            errands.into_iter().map(|s| Event::Settled { id: s.id, done: s.result.is_ok() });
        self.replica
            .send_all([Event::Applied { index, revision, facts }].into_iter().chain(errands));
        Ok(compacting)
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
            Effect::DowngradeSet
            | Effect::MemberAttributesSet { .. }
            | Effect::AuthChanged
            | Effect::TokenAssigned { .. } => {}
        }
    }
}
