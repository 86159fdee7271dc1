//! What the replica and the store have to say, as lines of the log.

use crate::applier::Happening;
use config::Config;
use config::log::Logger;
use node::Notice;
use store::MemberChange;

/// Writes the replica's notices. The member and cluster ids appear as etcd prints them.
pub fn write(logger: &Logger, config: &Config, member_id: u64, cluster_id: u64, notice: &Notice) {
    match notice {
        Notice::Raft(event) => {
            config::info!(logger.named("raft"), event.line(member_id));
        }
        Notice::Published(_) => {
            let urls = config::urls::texts(&config.advertise_client_urls);
            config::info!(logger, "published local member to cluster through raft",
                "local-member-id" => format!("{member_id:x}"),
                "local-member-attributes" =>
                    format!("{{Name:{} ClientURLs:[{}]}}", config.name, urls.join(" ")),
                "cluster-id" => format!("{cluster_id:x}"),
                "publish-timeout" => config.request_timeout());
        }
        Notice::SettingClusterVersion => {
            config::info!(logger, "setting up initial cluster version using v3 API",
                "cluster-version" => api::CLUSTER_VERSION);
        }
        Notice::Compacting { revision } => {
            config::info!(logger, compaction_line(config, "starting"), "revision" => *revision);
        }
        Notice::Compacted { revision } => {
            config::info!(logger, compaction_line(config, "completed"), "revision" => *revision);
        }
        Notice::CompactionFailed { revision } => {
            config::warn!(logger, compaction_line(config, "failed"), "revision" => *revision);
        }
    }
}

fn compaction_line(config: &Config, what: &str) -> String {
    format!("{what} auto {} compaction", config.auto_compaction_mode)
}

/// Writes what happened to the store.
pub fn write_happening(logger: &Logger, member_id: u64, cluster_id: u64, happening: &Happening) {
    match happening {
        Happening::QuotaExceeded => config::warn!(
            logger,
            "the store is larger than its quota; writes are refused until space is freed and the alarm disarmed"
        ),
        Happening::AlarmsChanged => {
            config::warn!(logger, "the alarms have changed; see `etcdctl alarm list`")
        }
        Happening::CompactionScheduled { revision } => {
            config::info!(logger, "compact tree index", "revision" => *revision);
        }
        Happening::CompactionFinished { revision } => {
            config::info!(logger, "finished scheduled compaction", "compact-revision" => *revision);
        }
        Happening::ClusterVersion(version) => {
            config::info!(logger, "cluster version is updated", "cluster-version" => version.as_str());
        }
        Happening::MembersChanged(MemberChange::Added(member)) => {
            config::info!(logger, "added member",
                "cluster-id" => format!("{cluster_id:x}"),
                "local-member-id" => format!("{member_id:x}"),
                "added-peer-id" => format!("{:x}", member.id),
                "added-peer-peer-urls" => member.peer_urls.clone(),
                "added-peer-is-learner" => member.is_learner);
        }
        Happening::MembersChanged(MemberChange::Updated(member)) => {
            config::info!(logger, "updated member",
                "cluster-id" => format!("{cluster_id:x}"),
                "local-member-id" => format!("{member_id:x}"),
                "updated-remote-peer-id" => format!("{:x}", member.id),
                "updated-remote-peer-urls" => member.peer_urls.clone());
        }
        Happening::MembersChanged(_) => {}
    }
}
