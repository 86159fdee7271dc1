//! Answers, events and effects as text, for scripts.

use std::fmt::Write;

use api::authpb::Permission;
use api::etcdserverpb::*;
use api::mvccpb::KeyValue;
use bytes::Bytes;
use prost::Message;
use store::{Applied, Effect, ReadError};

pub type Show = fn(Bytes) -> String;

pub fn show_applied(applied: Applied, show: Show) -> String {
    let mut shown = match applied.result {
        Ok(reply) => format!("revision {}\n{}", reply.revision, show(reply.body)),
        Err(error) => format!("{}\n", show_error(&error)),
    };
    for event in applied.change.iter().flat_map(|change| &change.events) {
        let revision = applied.change.as_ref().map_or(0, |change| change.revision);
        let event = show_event(revision, event);
        writeln!(shown, "    {event}").expect("a text grows");
    }
    for effect in applied.effects {
        match effect {
            Effect::ConfChanged(changed) => {
                let (node, state) = (changed.change.node_id, &changed.conf_state);
                let (voters, learners) = (&state.voters, &state.learners);
                writeln!(
                    shown,
                    "    ConfChanged node {node} voters {voters:?} learners {learners:?}"
                )
            }
            effect => writeln!(shown, "    {effect:?}"),
        }
        .expect("a text grows");
    }
    shown
}

pub fn show_event(revision: i64, event: &store::Event) -> String {
    let decoded = api::mvccpb::Event::decode(event.encoded.clone()).expect("an event");
    let kv = decoded.kv.expect("an event has a pair");
    assert_eq!(kv.key, event.key);
    assert_eq!(kv.mod_revision, revision);
    assert_eq!(decoded.r#type == 1, event.delete);
    assert_eq!(!event.delete && kv.create_revision == kv.mod_revision, event.create);
    let what = match (event.delete, event.create) {
        (true, _) => "delete",
        (false, true) => "create",
        (false, false) => "put",
    };
    format!("{revision}: {what} {}", String::from_utf8_lossy(&event.key))
}

pub fn show_error(error: &api::Error) -> String {
    format!("{:?}: {error}", error.code)
}

pub fn show_read_error(error: &ReadError) -> String {
    match error {
        ReadError::Refused(error) => format!("{}\n", show_error(error)),
        ReadError::Damaged(error) => format!("damaged: {error}\n"),
    }
}

pub fn show_kv(kv: &[u8]) -> String {
    show_pair(&KeyValue::decode(kv).expect("a pair"))
}

fn show_pair(kv: &KeyValue) -> String {
    let (key, value) = (String::from_utf8_lossy(&kv.key), String::from_utf8_lossy(&kv.value));
    let lease = if kv.lease == 0 { String::new() } else { format!(" lease {}", kv.lease) };
    let (create, modified, version) = (kv.create_revision, kv.mod_revision, kv.version);
    format!("{key}={value} create {create} mod {modified} version {version}{lease}")
}

fn show_pairs(what: &str, kvs: &[KeyValue]) -> String {
    kvs.iter().map(|kv| format!("  {what}{}\n", show_pair(kv))).collect()
}

pub fn show_nothing(body: Bytes) -> String {
    assert!(body.is_empty(), "nothing was expected behind the header: {body:?}");
    String::new()
}

pub fn show_put(body: Bytes) -> String {
    put_text(&PutResponse::decode(body).expect("a response"))
}

fn put_text(response: &PutResponse) -> String {
    response.prev_kv.iter().map(|kv| format!("  before: {}\n", show_pair(kv))).collect()
}

pub fn show_delete(body: Bytes) -> String {
    delete_text(&DeleteRangeResponse::decode(body).expect("a response"))
}

fn delete_text(response: &DeleteRangeResponse) -> String {
    format!("  deleted {}\n{}", response.deleted, show_pairs("before: ", &response.prev_kvs))
}

pub fn show_range(body: Bytes) -> String {
    range_text(&RangeResponse::decode(body).expect("a response"))
}

fn range_text(response: &RangeResponse) -> String {
    let more = if response.more { ", more" } else { "" };
    format!("{}  count {}{more}\n", show_pairs("", &response.kvs), response.count)
}

pub fn show_txn(body: Bytes) -> String {
    txn_text(&TxnResponse::decode(body).expect("a response"))
}

fn txn_text(response: &TxnResponse) -> String {
    use response_op::Response;
    let mut shown = format!("  succeeded {}\n", response.succeeded);
    for response in &response.responses {
        let (name, header, text) = match &response.response {
            None => ("nothing", None, String::new()),
            Some(Response::ResponseRange(response)) => {
                ("get", response.header, range_text(response))
            }
            Some(Response::ResponsePut(response)) => ("put", response.header, put_text(response)),
            Some(Response::ResponseDeleteRange(response)) => {
                ("del", response.header, delete_text(response))
            }
            Some(Response::ResponseTxn(response)) => ("txn", response.header, txn_text(response)),
        };
        let revision = header.map_or(-1, |header: ResponseHeader| header.revision);
        writeln!(shown, "  {name} revision {revision}").expect("a text grows");
        text.lines().for_each(|line| writeln!(shown, "  {line}").expect("a text grows"));
    }
    shown
}

pub fn show_grant(body: Bytes) -> String {
    let response = LeaseGrantResponse::decode(body).expect("a response");
    format!("  lease {} ttl {}\n", response.id, response.ttl)
}

pub fn show_alarms(body: Bytes) -> String {
    let response = AlarmResponse::decode(body).expect("a response");
    let alarms = response.alarms.iter();
    alarms.map(|alarm| format!("  member {} alarm {}\n", alarm.member_id, alarm.alarm)).collect()
}

pub fn show_member_add(body: Bytes) -> String {
    let response = MemberAddResponse::decode(body).expect("a response");
    let member = response.member.expect("the new member");
    format!("  added {}\n{}", member_text(&member), members_text(&response.members))
}

pub fn show_member_list(body: Bytes) -> String {
    members_text(&MemberListResponse::decode(body).expect("a response").members)
}

fn members_text(members: &[Member]) -> String {
    members.iter().map(|member| format!("  member {}\n", member_text(member))).collect()
}

fn member_text(member: &Member) -> String {
    let Member { id, name, peer_ur_ls, client_ur_ls, is_learner } = member;
    format!("{id} name {name:?} peer {peer_ur_ls:?} client {client_ur_ls:?} learner {is_learner}")
}

pub fn show_auth_status(body: Bytes) -> String {
    let status = AuthStatusResponse::decode(body).expect("a response");
    format!("  enabled {} auth revision {}\n", status.enabled, status.auth_revision)
}

pub fn show_names(body: Bytes) -> String {
    format!("  {:?}\n", AuthUserListResponse::decode(body).expect("a response").users)
}

pub fn show_role(body: Bytes) -> String {
    let role = AuthRoleGetResponse::decode(body).expect("a response");
    let permissions = role.perm.iter();
    permissions
        .map(|permission| {
            let Permission { perm_type, key, range_end } = permission;
            format!("  type {perm_type} key {key:?} end {range_end:?}\n")
        })
        .collect()
}
