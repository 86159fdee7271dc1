//! The real etcdctl 3.6.14, command by command, against Althing and against the real etcd.
//!
//! Each scene is a list of commands. It is played twice, once per server, and what the user would
//! see (exit code, standard output, standard error) must be the same line by line; only ids,
//! addresses and durations are replaced by names before. Without the reference etcd the scenes
//! are skipped (`scripts/install-etcd.sh` installs it).

mod auth;
mod concurrency;
mod kv;
mod lease;
mod maintenance;
mod member;
mod mirror;
mod snapshot;
mod stage;
mod watch;
