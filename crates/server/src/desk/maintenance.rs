//! What an operator asks of one member: its status, its alarms, its health.

use super::call::{CallId, State};
use super::dispatch::malformed;
use super::run::Desk;
use api::Error;
use api::etcdserverpb::{
    AlarmMember, AlarmRequest, AlarmType, DowngradeInfo, MoveLeaderRequest, MoveLeaderResponse,
    StatusResponse,
};
use api::health::health_check_response::ServingStatus;
use api::health::{HealthCheckRequest, HealthCheckResponse, HealthListResponse};
use bytes::Bytes;
use prost::Message;
use store::Reply;

const ALARM_FIELD: u32 = 10;

impl Desk {
    pub(super) fn alarm(&mut self, id: CallId, data: Bytes) -> Result<(), Error> {
        AlarmRequest::decode(data.clone()).map_err(malformed)?;
        self.propose_field(id, ALARM_FIELD, &data)
    }

    pub(super) fn status(&mut self, id: CallId) -> Result<(), Error> {
        let shared = &self.shared;
        let (view, pulse) = (&shared.view, &shared.pulse);
        let sizes = view.sizes();
        let downgrade = view.downgrade();
        let mut errors = Vec::new();
        if pulse.leader() == 0 {
            errors.push(Error::NO_LEADER.message.into_owned());
        }
        errors.extend(view.alarms().iter().map(describe_alarm));
        let response = StatusResponse {
            header: None,
            version: api::ETCD_VERSION.to_owned(),
            db_size: sizes.total as i64,
            leader: pulse.leader(),
            raft_index: pulse.commit(),
            raft_term: pulse.applied_term(),
            raft_applied_index: pulse.applied(),
            errors,
            db_size_in_use: sizes.in_use as i64,
            is_learner: view.member(shared.member_id).is_some_and(|member| member.is_learner),
            storage_version: view.storage_version().unwrap_or_default(),
            db_size_quota: view.quota_bytes(),
            downgrade_info: Some(DowngradeInfo {
                enabled: downgrade.enabled,
                target_version: downgrade.target_version,
            }),
        };
        let revision = view.revision();
        self.reply(id, Reply { revision, body: response.encode_to_vec().into() });
        Ok(())
    }

    pub(super) fn move_leader(&mut self, id: CallId, data: Bytes) -> Result<(), Error> {
        let request = MoveLeaderRequest::decode(data).map_err(malformed)?;
        let shared = &self.shared;
        if shared.pulse.leader() != shared.member_id {
            return Err(Error::NOT_LEADER);
        }
        let members = shared.view.members();
        if !members.iter().any(|member| member.id == request.target_id && !member.is_learner) {
            return Err(Error::BAD_LEADER_TRANSFEREE);
        }
        // The only voter leads already.
        self.answer(id, &[MoveLeaderResponse::default().encode_to_vec().into()]);
        Ok(())
    }

    pub(super) fn health_check(&mut self, id: CallId, data: Bytes) -> Result<(), Error> {
        let request = HealthCheckRequest::decode(data).map_err(malformed)?;
        if !request.service.is_empty() {
            return Err(Error::HEALTH_UNKNOWN_SERVICE);
        }
        self.answer(id, &[serving(self.shared.office.serving_status())]);
        Ok(())
    }

    pub(super) fn health_list(&mut self, id: CallId) -> Result<(), Error> {
        let status = self.shared.office.serving_status() as i32;
        let statuses = [(String::new(), HealthCheckResponse { status })].into();
        self.answer(id, &[HealthListResponse { statuses }.encode_to_vec().into()]);
        Ok(())
    }

    /// The first word at once; changes follow by letter from the office.
    pub(super) fn health_watch(&mut self, id: CallId, data: Bytes) -> Result<(), Error> {
        let request = HealthCheckRequest::decode(data).map_err(malformed)?;
        if request.service.is_empty() {
            let (cancel, cancelled) = tokio::sync::oneshot::channel();
            self.set_state(id, State::AtOffice(cancel));
            self.shared.office.watch_health(self.number, id, cancelled);
        } else {
            self.send_message(id, &[serving(ServingStatus::ServiceUnknown)]);
        }
        Ok(())
    }
}

pub fn serving(status: ServingStatus) -> Bytes {
    HealthCheckResponse { status: status as i32 }.encode_to_vec().into()
}

/// As Go prints the message, the trailing space included.
fn describe_alarm(alarm: &AlarmMember) -> String {
    let mut text = String::new();
    if alarm.member_id != 0 {
        text += &format!("memberID:{} ", alarm.member_id);
    }
    if alarm.alarm != 0 {
        let name = AlarmType::try_from(alarm.alarm)
            .map_or_else(|_| alarm.alarm.to_string(), |kind| kind.as_str_name().to_owned());
        text += &format!("alarm:{name} ");
    }
    text
}
