//! Who is in the cluster, what it agreed to be, and how that changes.
//!
//! In:  membership changes, attributes that members publish, versions. Out: the members, and the
//! Raft configuration that follows from the changes.
//!
//! The rules that need a view of who is healthy are the leader's and live elsewhere; here are only
//! those that every member decides alike from what it has applied.

mod conf_change;
mod member;

pub use member::{Member, parse_peer_urls};

use std::collections::{BTreeMap, BTreeSet};

use api::membershippb::{ClusterMemberAttrSetRequest, DowngradeInfoSetRequest};
use engine::{Bucket, Engine};
use raftpb::ConfState;
use serde::{Deserialize, Serialize};

const CLUSTER_VERSION: &[u8] = b"clusterVersion";
const DOWNGRADE: &[u8] = b"downgrade";
const CONF_STATE: &[u8] = b"confState";
pub(crate) const STORAGE_VERSION: &[u8] = b"storageVersion";

#[derive(Clone, Debug, Default)]
pub(crate) struct Cluster {
    pub members: BTreeMap<u64, Member>,
    /// Ids that were members once and may never be again.
    pub removed: BTreeSet<u64>,
    /// `None`: not decided yet.
    pub version: Option<String>,
    pub storage_version: Option<String>,
    pub downgrade: Downgrade,
    pub conf_state: ConfState,
}

/// Whether the cluster is on its way to an older version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Downgrade {
    #[serde(rename = "target-version", default)]
    pub target_version: String,
    #[serde(default)]
    pub enabled: bool,
}

impl Cluster {
    pub fn restore(engine: &dyn Engine) -> Cluster {
        let text = |bucket, key| {
            let value = engine.get(bucket, key)?;
            String::from_utf8(value.into()).ok()
        };
        let members = engine.bucket(Bucket::Members).into_iter();
        let members = members.filter_map(|(_, json)| serde_json::from_slice::<Member>(&json).ok());
        let removed = engine.bucket(Bucket::MembersRemoved).into_iter();
        let removed = removed
            .filter_map(|(name, _)| u64::from_str_radix(std::str::from_utf8(&name).ok()?, 16).ok());
        let downgrade = engine.get(Bucket::Cluster, DOWNGRADE);
        Cluster {
            members: members.map(|member| (member.id, member)).collect(),
            removed: removed.collect(),
            version: text(Bucket::Cluster, CLUSTER_VERSION),
            storage_version: text(Bucket::Meta, STORAGE_VERSION),
            downgrade: downgrade
                .and_then(|json| serde_json::from_slice(&json).ok())
                .unwrap_or_default(),
            conf_state: restore_conf_state(engine),
        }
    }

    /// The cluster agrees on a version. From 3.6 on the storage is marked with its own; before, there
    /// was no such mark.
    pub fn set_version(&mut self, engine: &dyn Engine, version: &str) -> engine::Result<bool> {
        let Some(parsed) = parse_version(version) else { return Ok(false) };
        engine.put(Bucket::Cluster, CLUSTER_VERSION, version.as_bytes())?;
        self.version = Some(version.to_owned());
        if parsed >= (3, 6) && self.storage_version.is_none() {
            engine.put(Bucket::Meta, STORAGE_VERSION, api::CLUSTER_VERSION.as_bytes())?;
            self.storage_version = Some(api::CLUSTER_VERSION.to_owned());
        } else if parsed < (3, 6) && self.storage_version.is_some() {
            engine.delete(Bucket::Meta, STORAGE_VERSION)?;
            self.storage_version = None;
        }
        Ok(true)
    }

    pub fn set_downgrade(
        &mut self,
        engine: &dyn Engine,
        request: &DowngradeInfoSetRequest,
    ) -> engine::Result<()> {
        let target_version = if request.enabled { request.ver.clone() } else { String::new() };
        self.downgrade = Downgrade { target_version, enabled: request.enabled };
        let json = serde_json::to_vec(&self.downgrade).expect("a text and a flag are always JSON");
        engine.put(Bucket::Cluster, DOWNGRADE, &json)
    }

    /// A started member says who it is. `false`: it is no member (any more).
    pub fn set_attributes(
        &mut self,
        engine: &dyn Engine,
        request: &ClusterMemberAttrSetRequest,
    ) -> engine::Result<bool> {
        let Some(member) = self.members.get_mut(&request.member_id) else { return Ok(false) };
        let attributes = request.member_attributes.clone().unwrap_or_default();
        member.name = attributes.name;
        member.client_urls = attributes.client_urls;
        save_member(engine, member)?;
        Ok(true)
    }

    /// At least this version was agreed on.
    pub fn version_is_at_least(&self, major: u64, minor: u64) -> bool {
        self.version.as_deref().and_then(parse_version).is_some_and(|has| has >= (major, minor))
    }
}

fn save_member(engine: &dyn Engine, member: &Member) -> engine::Result<()> {
    engine.put(Bucket::Members, member::row_name(member.id).as_bytes(), &member.to_json())
}

/// Major and minor of `X.Y.Z`.
fn parse_version(version: &str) -> Option<(u64, u64)> {
    let mut parts = version.splitn(3, '.');
    let mut number = || parts.next()?.parse().ok();
    let parsed = (number()?, number()?);
    parts.next().is_some().then_some(parsed)
}

/// etcd's JSON form of a configuration.
#[derive(Default, Serialize, Deserialize)]
struct ConfStateJson {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    voters: Vec<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    learners: Vec<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    voters_outgoing: Vec<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    learners_next: Vec<u64>,
    #[serde(default)]
    auto_leave: bool,
}

/// The commit knows best; the table speaks where a database of etcd's was taken over.
fn restore_conf_state(engine: &dyn Engine) -> ConfState {
    let committed = engine.last_commit().conf_state;
    if !committed.is_empty()
        && let Ok(state) = ConfState::decode(&committed)
    {
        return state;
    }
    let json = engine.get(Bucket::Meta, CONF_STATE);
    let parsed: Option<ConfStateJson> = json.and_then(|json| serde_json::from_slice(&json).ok());
    let ConfStateJson { voters, learners, voters_outgoing, learners_next, auto_leave } =
        parsed.unwrap_or_default();
    ConfState { voters, learners, voters_outgoing, learners_next, auto_leave }
}

fn save_conf_state(engine: &dyn Engine, state: &ConfState) -> engine::Result<()> {
    let ConfState { voters, learners, voters_outgoing, learners_next, auto_leave } = state.clone();
    let json = ConfStateJson { voters, learners, voters_outgoing, learners_next, auto_leave };
    let json = serde_json::to_vec(&json).expect("numbers and lists are always JSON");
    engine.put(Bucket::Meta, CONF_STATE, &json)
}
