//! The half of the state machine that changes: owned by the one thread that applies the log.

use std::sync::Arc;

use engine::{Commit, Engine};
use raftpb::Entry;

use crate::alarm::Alarms;
use crate::applied::Applied;
use crate::auth::Auth;
use crate::cluster::Cluster;
use crate::compact::{Compactions, Marks, compact_restored};
use crate::index::Restorer;
use crate::lease::Leases;
use crate::shared::{Restored, Shared};
use crate::view::View;

/// What the store must know. All but the quota must be the same on every member, or they would
/// judge the same entry differently.
#[derive(Clone, Debug)]
pub struct Config {
    /// Bytes the engine may take up; 0: 2 GiB; negative: no limit.
    pub quota_bytes: i64,
    /// Leases live at least so many seconds.
    pub min_lease_ttl: i64,
    /// Checkpoints of leases are stored even before the cluster is at 3.6.
    pub lease_checkpoint_persist: bool,
    pub max_learners: usize,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            quota_bytes: 0,
            min_lease_ttl: 2,
            lease_checkpoint_persist: false,
            max_learners: 1,
        }
    }
}

pub struct Store {
    pub(crate) shared: Arc<Shared>,
    pub(crate) config: Config,
    pub(crate) compactions: Compactions,
    /// Index and term of the last entry.
    last: (u64, u64),
}

impl Store {
    /// Reads everything back from the engine. The log goes on behind `engine.last_commit()`.
    pub fn open(engine: Arc<dyn Engine>, config: Config) -> Result<Store, engine::Error> {
        let marks = Marks::restore(&*engine);
        let mut leases = Leases::restore(&*engine);
        let mut restorer = Restorer::default();
        // An empty store is at revision 1.
        let mut revision = marks.compacted.max(1);
        engine.restore(&mut |row| {
            revision = revision.max(row.revision.main);
            restorer.add(&row);
            // Rows come in order, so the newest one decides.
            leases.attach(&row.key, row.lease);
        })?;
        let mut index = restorer.finish();
        compact_restored(&*engine, &mut index, &marks)?;
        let restored = Restored {
            index,
            revision,
            compacted: marks.compacted,
            leases,
            alarms: Alarms::restore(&*engine),
            cluster: Cluster::restore(&*engine),
            auth: Auth::restore(&*engine)?,
        };
        let shared = Arc::new(Shared::new(engine, config.quota_bytes, restored));
        let last = shared.applied();
        Ok(Store { shared, config, compactions: Compactions::default(), last })
    }

    /// For reading, from any thread.
    pub fn view(&self) -> View {
        View::new(self.shared.clone())
    }

    /// Applies one committed entry. Its effects are visible to readers at once; they are part of
    /// the engine's next commit. An error means damage: the member must stop.
    pub fn apply(&mut self, entry: &Entry) -> Result<Applied, engine::Error> {
        assert!(
            entry.index > self.last.0,
            "entry {} was already applied: the last one was {}",
            entry.index,
            self.last.0
        );
        let applied = self.apply_entry(entry)?;
        self.last = (entry.index, entry.term);
        self.shared.set_applied(entry.index, entry.term);
        Ok(applied)
    }

    /// Ends a batch of entries: what they changed survives a crash together, or not at all.
    pub fn end_batch(&mut self) -> Result<(), engine::Error> {
        let (index, term) = self.last;
        let mut conf_state = Vec::new();
        self.shared.cluster.read().conf_state.encode(&mut conf_state);
        self.shared.engine.commit(Commit {
            index,
            term,
            revision: self.shared.revision(),
            compacted: self.shared.compacted(),
            conf_state: conf_state.into(),
        })?;
        self.shared.set_size(self.shared.engine.sizes().total);
        Ok(())
    }

    /// A small step of the work that compactions left behind, about `keys_max` keys' worth. Called
    /// between batches. `true`: there is more to do.
    pub fn compact_step(&mut self, keys_max: usize) -> Result<bool, engine::Error> {
        if self.compactions.step(&self.shared, keys_max.max(1))?.is_some() {
            self.end_batch()?;
        }
        Ok(!self.compactions.is_empty())
    }
}
