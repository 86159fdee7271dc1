//! kill -9 in a loop, under load: whatever was acknowledged is there afterwards, with its revision,
//! and nothing is there by half.
//!
//! A round: writers write unique values and remember what was acknowledged, a watcher looks on, a
//! compactor compacts and defragments; at some moment the server is killed (or told to stop), and
//! started again on the same directory, often after it was killed once more while it started.
//! Then a watch reads back every revision of the round, and each must be explained: an
//! acknowledged write, or one of the few that were under way.
//!
//! `ALTHING_CRASHES` says how many rounds there are in all, `ALTHING_SEED` repeats a run.

mod history;
mod load;
mod round;

use round::Run;

/// Snapshots and the removal of old log segments happen all the time.
#[test]
fn with_frequent_snapshots() {
    Run::new("frequent", &["--snapshot-count=10", "--snapshot-catchup-entries=5"]).play();
}

/// Commits of the engine are rare, so that a restart finds much in the log.
#[test]
fn with_much_to_replay() {
    Run::new("replay", &["--backend-batch-interval=10s", "--snapshot-count=1000"]).play();
}

/// What an operator gets who sets nothing.
#[test]
fn with_the_defaults() {
    Run::new("defaults", &[]).play();
}
