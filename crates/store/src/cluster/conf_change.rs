//! Applying a change of membership: judged once more against what has been applied by now, since
//! other changes may have come between, and then carried out everywhere alike.

use engine::{Bucket, Engine};
use raftpb::{ConfChange, ConfChangeKind, ConfState};

use super::member::{ChangeContext, row_name};
use super::{Cluster, Member, parse_peer_urls, save_conf_state, save_member};
use crate::applied::{ConfChanged, MemberChange};

impl Cluster {
    /// Applies one change. What Raft must take is returned in either case: a refused change keeps
    /// its place in the log, with node id 0, and changes nothing.
    pub fn apply_conf_change(
        &mut self,
        engine: &dyn Engine,
        change: &ConfChange,
        learners_max: usize,
    ) -> engine::Result<(ConfChanged, Result<(), api::Error>)> {
        let member = match self.judge(change, learners_max) {
            Ok(member) => member,
            Err(error) => {
                let refused = ConfChanged {
                    change: ConfChange { node_id: 0, ..change.clone() },
                    conf_state: self.conf_state.clone(),
                    member: MemberChange::None,
                };
                return Ok((refused, Err(error)));
            }
        };
        match &member {
            MemberChange::Added(member)
            | MemberChange::Promoted(member)
            | MemberChange::Updated(member) => {
                save_member(engine, member)?;
                self.members.insert(member.id, member.clone());
            }
            MemberChange::Removed(id) => {
                engine.delete(Bucket::Members, row_name(*id).as_bytes())?;
                engine.put(Bucket::MembersRemoved, row_name(*id).as_bytes(), b"removed")?;
                self.members.remove(id);
                self.removed.insert(*id);
            }
            MemberChange::None => {}
        }
        reconfigure(&mut self.conf_state, change);
        save_conf_state(engine, &self.conf_state)?;
        let conf_state = self.conf_state.clone();
        Ok((ConfChanged { change: change.clone(), conf_state, member }, Ok(())))
    }

    /// What the change would do, or why not.
    fn judge(&self, change: &ConfChange, learners_max: usize) -> Result<MemberChange, api::Error> {
        let id = change.node_id;
        if self.removed.contains(&id) {
            return Err(api::Error::MEMBER_NOT_FOUND);
        }
        let known = self.members.get(&id);
        match change.kind {
            ConfChangeKind::AddNode | ConfChangeKind::AddLearnerNode => {
                let context: ChangeContext = serde_json::from_slice(&change.context)
                    .map_err(|_| api::Error::BAD_MEMBER_URLS)?;
                if context.is_promote {
                    let mut member = known.ok_or(api::Error::MEMBER_NOT_FOUND)?.clone();
                    if !member.is_learner {
                        return Err(api::Error::MEMBER_NOT_LEARNER);
                    }
                    member.is_learner = false;
                    return Ok(MemberChange::Promoted(member));
                }
                if known.is_some() {
                    return Err(api::Error::MEMBER_EXISTS);
                }
                self.urls_are_free(id, &context.member)?;
                let learners = self.members.values().filter(|member| member.is_learner).count();
                let learner = change.kind == ConfChangeKind::AddLearnerNode;
                if learner && context.member.is_learner && learners >= learners_max {
                    return Err(api::Error::TOO_MANY_LEARNERS);
                }
                Ok(MemberChange::Added(Member { id, ..context.member }))
            }
            ConfChangeKind::RemoveNode => {
                known.ok_or(api::Error::MEMBER_NOT_FOUND)?;
                Ok(MemberChange::Removed(id))
            }
            ConfChangeKind::UpdateNode => {
                let known = known.ok_or(api::Error::MEMBER_NOT_FOUND)?;
                let given: Member = serde_json::from_slice(&change.context)
                    .map_err(|_| api::Error::BAD_MEMBER_URLS)?;
                // etcd 3.6 lets such a request into its log and then dies of it on every member.
                parse_peer_urls(&given.peer_urls)?;
                self.urls_are_free(id, &given)?;
                // Nothing but the URLs: an update must not make a voter of a learner.
                Ok(MemberChange::Updated(Member { peer_urls: given.peer_urls, ..known.clone() }))
            }
        }
    }

    fn urls_are_free(&self, id: u64, given: &Member) -> Result<(), api::Error> {
        let others = self.members.values().filter(|member| member.id != id);
        let taken =
            others.flat_map(|member| &member.peer_urls).any(|url| given.peer_urls.contains(url));
        if taken { Err(api::Error::PEER_URL_EXISTS) } else { Ok(()) }
    }
}

/// What Raft makes of a change of one member.
fn reconfigure(state: &mut ConfState, change: &ConfChange) {
    let id = change.node_id;
    match change.kind {
        ConfChangeKind::AddNode => {
            state.learners.retain(|&learner| learner != id);
            insert(&mut state.voters, id);
        }
        ConfChangeKind::AddLearnerNode => {
            state.voters.retain(|&voter| voter != id);
            insert(&mut state.learners, id);
        }
        ConfChangeKind::RemoveNode => {
            state.voters.retain(|&voter| voter != id);
            state.learners.retain(|&learner| learner != id);
        }
        ConfChangeKind::UpdateNode => {}
    }
}

fn insert(ids: &mut Vec<u64>, id: u64) {
    if !ids.contains(&id) {
        ids.push(id);
        ids.sort_unstable();
    }
}
