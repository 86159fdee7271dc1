//! The same requests to a real etcd 3.6.14 and to ours; every answer, error and event compared.
//!
//! `random` draws them from a seed: `ALTHING_SEED` replays a run, `ALTHING_DIFF_OPS` sets its
//! length. The other modules hold requests written by hand: what is refused and how, and the JSON
//! gateway with its neighbours. Without an installed etcd all of this is skipped with a note
//! (`scripts/install-etcd.sh` installs one), unless `ALTHING_REQUIRE_ETCD=1` forbids that.

mod generate;
mod json;
mod op;
mod pair;
mod random;
mod refusals;
mod restart;
mod stories;
mod watching;
