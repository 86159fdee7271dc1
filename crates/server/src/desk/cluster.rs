//! Members. A member of a cluster of one can be listed and renamed; a second one cannot be added
//! to it yet.

use super::call::CallId;
use super::dispatch::malformed;
use super::kv::Deferred;
use super::run::Desk;
use api::etcdserverpb::{
    MemberAddRequest, MemberListRequest, MemberListResponse, MemberPromoteRequest,
    MemberRemoveRequest, MemberUpdateRequest,
};
use api::{Code, Error};
use bytes::Bytes;
use prost::Message;
use raftpb::{ConfChange, ConfChangeKind};
use store::{Member, Reply};

impl Desk {
    pub(super) fn member_list(&mut self, id: CallId, data: Bytes) -> Result<(), Error> {
        let request = MemberListRequest::decode(data).map_err(malformed)?;
        if request.linearizable {
            self.after_barrier(id, Deferred::MemberList);
        } else {
            self.answer_member_list(id);
        }
        Ok(())
    }

    pub(super) fn answer_member_list(&mut self, id: CallId) {
        let members = self.shared.view.members().iter().map(Member::to_wire).collect();
        let response = MemberListResponse { header: None, members };
        // Answers about members carry no revision.
        self.reply(id, Reply { revision: 0, body: response.encode_to_vec().into() });
    }

    pub(super) fn member_add(&mut self, _id: CallId, data: Bytes) -> Result<(), Error> {
        let request = MemberAddRequest::decode(data).map_err(malformed)?;
        let urls = store::parse_peer_urls(&request.peer_ur_ls)?;
        if self.shared.view.members().iter().any(|m| m.peer_urls.iter().any(|u| urls.contains(u))) {
            return Err(Error::PEER_URL_EXISTS);
        }
        Err(Error::new(
            Code::FailedPrecondition,
            "althing: this version serves clusters of one member; a second one cannot be added yet",
        ))
    }

    pub(super) fn member_remove(&mut self, _id: CallId, data: Bytes) -> Result<(), Error> {
        let request = MemberRemoveRequest::decode(data).map_err(malformed)?;
        self.known_member(request.id)?;
        // Nobody would be left to vote.
        Err(Error::NOT_ENOUGH_STARTED_MEMBERS)
    }

    pub(super) fn member_promote(&mut self, _id: CallId, data: Bytes) -> Result<(), Error> {
        let request = MemberPromoteRequest::decode(data).map_err(malformed)?;
        self.known_member(request.id)?;
        Err(Error::MEMBER_NOT_LEARNER)
    }

    pub(super) fn member_update(&mut self, id: CallId, data: Bytes) -> Result<(), Error> {
        let request = MemberUpdateRequest::decode(data).map_err(malformed)?;
        // etcd lets any text through here and then stops on it; ours is what MemberAdd says.
        let urls = store::parse_peer_urls(&request.peer_ur_ls)?;
        let context = serde_json::json!({ "id": request.id, "peerURLs": urls });
        let change = ConfChange {
            id: self.ids.draw(),
            kind: ConfChangeKind::UpdateNode,
            node_id: request.id,
            context: context.to_string().into(),
        };
        self.propose_conf_change(id, change);
        Ok(())
    }

    fn known_member(&self, id: u64) -> Result<(), Error> {
        let known = self.shared.view.members().iter().any(|member| member.id == id);
        if known { Ok(()) } else { Err(Error::MEMBER_NOT_FOUND) }
    }
}
