//! Alarms: what is wrong in the cluster, and what is therefore refused.

use std::collections::BTreeSet;

use api::etcdserverpb::alarm_request::AlarmAction;
use api::etcdserverpb::{AlarmMember, AlarmRequest, AlarmType};
use engine::{Bucket, Engine};
use prost::Message;

#[derive(Debug, Default)]
pub(crate) struct Alarms {
    /// By type, then by member. Unknown types are kept and listed, and block nothing.
    raised: BTreeSet<(i32, u64)>,
}

impl Alarms {
    pub fn restore(engine: &dyn Engine) -> Alarms {
        let records = engine.bucket(Bucket::Alarm).into_iter();
        let raised = records
            .filter_map(|(key, _)| AlarmMember::decode(key).ok())
            .map(|alarm| (alarm.alarm, alarm.member_id))
            .collect();
        Alarms { raised }
    }

    /// Carries out a request. Returns the alarms to answer with, and whether any was raised or
    /// cleared. An unknown action does nothing: it crashes etcd, and must not crash us.
    pub fn apply(
        &mut self,
        engine: &dyn Engine,
        request: &AlarmRequest,
    ) -> engine::Result<(Vec<AlarmMember>, bool)> {
        let alarm = AlarmMember { member_id: request.member_id, alarm: request.alarm };
        let entry = (request.alarm, request.member_id);
        match AlarmAction::try_from(request.action) {
            Ok(AlarmAction::Get) => Ok((self.list(request.alarm), false)),
            Ok(AlarmAction::Activate) if request.alarm == AlarmType::None as i32 => {
                Ok((Vec::new(), false))
            }
            Ok(AlarmAction::Activate) => {
                let raised = self.raised.insert(entry);
                if raised {
                    engine.put(Bucket::Alarm, &alarm.encode_to_vec(), b"")?;
                }
                Ok((vec![alarm], raised))
            }
            Ok(AlarmAction::Deactivate) if self.raised.remove(&entry) => {
                engine.delete(Bucket::Alarm, &alarm.encode_to_vec())?;
                Ok((vec![alarm], true))
            }
            Ok(AlarmAction::Deactivate) | Err(_) => Ok((Vec::new(), false)),
        }
    }

    /// The alarms of one type, or all of them for type NONE.
    pub fn list(&self, alarm: i32) -> Vec<AlarmMember> {
        let all = alarm == AlarmType::None as i32;
        let wanted = self.raised.iter().filter(|(raised, _)| all || *raised == alarm);
        wanted.map(|&(alarm, member_id)| AlarmMember { member_id, alarm }).collect()
    }

    pub fn no_space(&self) -> bool {
        self.has(AlarmType::Nospace)
    }

    pub fn corrupt(&self) -> bool {
        self.has(AlarmType::Corrupt)
    }

    fn has(&self, alarm: AlarmType) -> bool {
        self.raised.range((alarm as i32, 0)..=(alarm as i32, u64::MAX)).next().is_some()
    }
}
