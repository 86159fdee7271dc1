//! The `.snap` file's content: the members and the cluster's version, in the JSON tree that etcd's
//! tools expect there. The keys are not in it; they are in the engine.

use engine::Commit;
use raftpb::{ConfState, Snapshot};
use serde_json::{Map, Value, json};
use store::View;

/// Describes the cluster at a durable commit.
pub fn describe(view: &View, durable: &Commit) -> Snapshot {
    let conf_state = ConfState::decode(&durable.conf_state).unwrap_or_else(|_| view.conf_state());
    let mut members = Map::new();
    for member in view.members() {
        let id = format!("{:x}", member.id);
        let path = format!("/0/members/{id}");
        let mut raft = json!({ "peerURLs": member.peer_urls });
        if member.is_learner {
            raft["isLearner"] = true.into();
        }
        let mut children = Map::new();
        children.insert("raftAttributes".into(), leaf(&format!("{path}/raftAttributes"), &raft));
        if !member.client_urls.is_empty() {
            let attributes = json!({ "name": member.name, "clientURLs": member.client_urls });
            children.insert("attributes".into(), leaf(&format!("{path}/attributes"), &attributes));
        }
        members.insert(id, directory(&path, children));
    }
    let mut removed = Map::new();
    for id in view.removed_members() {
        let id = format!("{id:x}");
        let path = format!("/0/removed_members/{id}");
        removed.insert(id, node(&path, Value::String(String::new()), Value::Null));
    }
    let mut cluster = Map::new();
    cluster.insert("members".into(), directory("/0/members", members));
    cluster.insert("removed_members".into(), directory("/0/removed_members", removed));
    if let Some(version) = view.cluster_version() {
        cluster.insert("version".into(), node("/0/version", version.into(), Value::Null));
    }
    let mut root = Map::new();
    root.insert("0".into(), directory("/0", cluster));
    root.insert("1".into(), directory("/1", Map::new()));
    let tree = json!({
        "Root": directory("/", root),
        "CurrentIndex": durable.index,
        "CurrentVersion": 2,
    });
    let data = tree.to_string().into();
    Snapshot { data, conf_state, index: durable.index, term: durable.term }
}

fn leaf(path: &str, value: &Value) -> Value {
    node(path, Value::String(value.to_string()), Value::Null)
}

fn directory(path: &str, children: Map<String, Value>) -> Value {
    node(path, Value::String(String::new()), Value::Object(children))
}

fn node(path: &str, value: Value, children: Value) -> Value {
    json!({
        "Path": path,
        "CreatedIndex": 0,
        "ModifiedIndex": 0,
        "ExpireTime": "0001-01-01T00:00:00Z",
        "Value": value,
        "Children": children,
    })
}
