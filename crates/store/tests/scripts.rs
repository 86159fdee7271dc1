//! The store's behaviour, told in the scripts beside this file.
//!
//! Entries are applied one by one; what they changed and what else follows from them is shown
//! below the answer, indented.

mod support;

use std::error::Error;
use std::fmt::Write;

use api::authpb::{Permission, UserAddOptions};
use api::etcdserverpb::*;
use api::membershippb;
use goldenscript::{Argument, Command, Context};
use prost::Message;
use raftpb::{ConfChange, ConfChangeKind, EntryKind};
use store::{Config, Piece, ReadError, Reply};
use support::Machine;
use support::show::*;
use support::txn_text::{bytes, delete, put, range, txn};

#[test]
fn scripts() -> std::io::Result<()> {
    let mut scripts: Vec<_> = std::fs::read_dir("tests/scripts")?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    scripts.sort();
    for script in scripts {
        let mut runner = Runner { machine: Machine::new(Config::default()) };
        goldenscript::run(&mut runner, script)?;
    }
    Ok(())
}

struct Runner {
    machine: Machine,
}

impl goldenscript::Runner for Runner {
    type Command = Command;

    fn run(&mut self, command: &Command, _context: &Context) -> Result<String, Box<dyn Error>> {
        let args: Vec<String> = command
            .args
            .iter()
            .map(|arg| match arg {
                Argument::KeyValue(key, value) => format!("{key}={value}"),
                Argument::Positional(value) => value.clone(),
                _ => panic!("an unknown kind of argument"),
            })
            .collect();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        Ok(match command.name.as_str() {
            "put" => {
                let request = put(&args);
                let checked = store::check_put(&request);
                self.checked(checked, entry!(put, request), show_put)
            }
            "del" => {
                let request = delete(&args);
                let checked = store::check_delete_range(&request);
                self.checked(checked, entry!(delete_range, request), show_delete)
            }
            "get" => self.answer(self.machine.store.view().range(&range(&args)), show_range),
            "stream" => self.stream(&args),
            "txn" => {
                let request = txn(args[0]);
                match store::check_txn(&request, 128) {
                    Err(error) => format!("refused: {}\n", show_error(&error)),
                    Ok(()) if store::is_read_only_txn(&request) => {
                        let mut shown = match store::is_serializable_txn(&request) {
                            true => "local, serializable\n".to_owned(),
                            false => "local\n".to_owned(),
                        };
                        let answer = self.machine.store.view().txn_read_only(&request);
                        shown += &self.answer(answer, show_txn);
                        shown
                    }
                    Ok(()) => self.entry(entry!(txn, request), show_txn),
                }
            }
            // A transaction that comes from the log without having been checked.
            "apply-txn" => self.entry(entry!(txn, txn(args[0])), show_txn),
            "compact" => {
                let request = CompactionRequest { revision: number(&args, 0), physical: false };
                self.entry(entry!(compaction, request), show_nothing)
            }
            "compact-step" => {
                let more = self.machine.store.compact_step(number(&args, 0) as usize)?;
                if more { "more to do\n".to_owned() } else { "done\n".to_owned() }
            }
            "finish" => {
                self.machine.finish_compactions();
                let rows = self.machine.engine_rows();
                format!("rows: {rows}\n")
            }
            "reopen" => {
                self.machine.reopen();
                let view = self.machine.store.view();
                format!("revision {}, compacted {}\n", view.revision(), view.compacted())
            }
            "hashkv" => match self.machine.store.view().hash_kv(number(&args, 0)) {
                Ok(hash) => format!(
                    "hash {} at {}, compacted {}\n",
                    hash.hash, hash.hash_revision, hash.compact_revision
                ),
                Err(error) => show_read_error(&error),
            },
            "grant" => {
                let request = LeaseGrantRequest { id: number(&args, 0), ttl: number(&args, 1) };
                self.entry(entry!(lease_grant, request), show_grant)
            }
            "revoke" => {
                let request = LeaseRevokeRequest { id: number(&args, 0) };
                self.entry(entry!(lease_revoke, request), show_nothing)
            }
            "checkpoint" => {
                let checkpoints = args.chunks(2).map(|pair| LeaseCheckpoint {
                    id: pair[0].parse().expect("a number"),
                    remaining_ttl: pair[1].parse().expect("a number"),
                });
                let request = LeaseCheckpointRequest { checkpoints: checkpoints.collect() };
                self.entry(entry!(lease_checkpoint, request), show_nothing)
            }
            "leases" => self.leases(),
            "alarm" => {
                let request = AlarmRequest {
                    action: number(&args, 0) as i32,
                    member_id: number(&args, 1) as u64,
                    alarm: number(&args, 2) as i32,
                };
                self.entry(entry!(alarm, request), show_alarms)
            }
            "quota" => {
                self.machine.config.quota_bytes = number(&args, 0);
                self.machine.reopen();
                String::new()
            }
            "member" => self.member(&args),
            "members" => self.members(),
            "attributes" => {
                let attributes = membershippb::Attributes {
                    name: args[1].to_owned(),
                    client_urls: vec![args[2].to_owned()],
                };
                let request = membershippb::ClusterMemberAttrSetRequest {
                    member_id: number(&args, 0) as u64,
                    member_attributes: Some(attributes),
                };
                self.entry(entry!(cluster_member_attr_set, request), show_nothing)
            }
            "version" => {
                let request = membershippb::ClusterVersionSetRequest { ver: args[0].to_owned() };
                let mut shown = self.entry(entry!(cluster_version_set, request), show_nothing);
                let view = self.machine.store.view();
                let (cluster, storage) = (view.cluster_version(), view.storage_version());
                writeln!(shown, "cluster {cluster:?}, storage {storage:?}")?;
                shown
            }
            "downgrade" => {
                let (enabled, ver) = (args[0] == "enable", args[1].to_owned());
                let request = membershippb::DowngradeInfoSetRequest { enabled, ver };
                let mut shown = self.entry(entry!(downgrade_info_set, request), show_nothing);
                writeln!(shown, "{:?}", self.machine.store.view().downgrade())?;
                shown
            }
            "history" => self.history(number(&args, 0), number(&args, 1) as usize),
            "garbage" => {
                let applied = self.machine.apply_entry(EntryKind::Normal, args[0].into());
                show_applied(applied, show_nothing)
            }
            name => self.auth(name, &args),
        })
    }
}

impl Runner {
    fn entry(&mut self, request: InternalRaftRequest, show: Show) -> String {
        show_applied(self.machine.apply(request), show)
    }

    fn checked(
        &mut self,
        checked: Result<(), api::Error>,
        request: InternalRaftRequest,
        show: Show,
    ) -> String {
        match checked {
            Ok(()) => self.entry(request, show),
            Err(error) => format!("refused: {}\n", show_error(&error)),
        }
    }

    fn answer(&self, answer: Result<Reply, ReadError>, show: Show) -> String {
        match answer {
            Ok(reply) => format!("revision {}\n{}", reply.revision, show(reply.body)),
            Err(error) => show_read_error(&error),
        }
    }

    fn stream(&self, args: &[&str]) -> String {
        let mut shown = String::new();
        let mut stream = match self.machine.store.view().range_stream(&range(args), 200) {
            Ok(stream) => stream,
            Err(error) => return show_read_error(&error),
        };
        loop {
            match stream.next_piece() {
                Ok(Some(Piece::More(body))) => {
                    let response = RangeResponse::decode(body).expect("a piece");
                    writeln!(shown, "{} pairs", response.kvs.len()).expect("a text grows");
                }
                Ok(Some(Piece::Last(reply))) => {
                    let response = RangeResponse::decode(reply.body).expect("a piece");
                    let (pairs, more, count) = (response.kvs.len(), response.more, response.count);
                    let revision = reply.revision;
                    writeln!(
                        shown,
                        "{pairs} pairs, last: revision {revision} count {count} more {more}"
                    )
                    .expect("a text grows");
                }
                Ok(None) => return shown,
                Err(error) => return shown + &show_read_error(&error),
            }
        }
    }

    fn leases(&self) -> String {
        let mut shown = String::new();
        for lease in self.machine.store.view().leases() {
            let keys: Vec<_> = lease.keys.iter().map(|key| String::from_utf8_lossy(key)).collect();
            writeln!(
                shown,
                "lease {} ttl {} remaining {} keys [{}]",
                lease.id,
                lease.ttl,
                lease.remaining,
                keys.join(" ")
            )
            .expect("a text grows");
        }
        shown
    }

    /// `member add 2 http://b:1 [learner]`, `member remove 2`, `member update 2 URL..`,
    /// `member promote 2`.
    fn member(&mut self, args: &[&str]) -> String {
        let node_id = number(args, 1) as u64;
        let urls = serde_json::to_string(&args[2..]).expect("JSON");
        let (kind, context) = match args[0] {
            "add" => (ConfChangeKind::AddNode, format!(r#"{{"id":{node_id},"peerURLs":{urls}}}"#)),
            "add-learner" => (
                ConfChangeKind::AddLearnerNode,
                format!(r#"{{"id":{node_id},"peerURLs":{urls},"isLearner":true}}"#),
            ),
            "promote" => (
                ConfChangeKind::AddNode,
                format!(r#"{{"id":{node_id},"peerURLs":null,"isPromote":true}}"#),
            ),
            "update" => {
                (ConfChangeKind::UpdateNode, format!(r#"{{"id":{node_id},"peerURLs":{urls}}}"#))
            }
            "remove" => (ConfChangeKind::RemoveNode, String::new()),
            "bad-context" => (ConfChangeKind::AddNode, "{".to_owned()),
            _ => panic!("no such change: {args:?}"),
        };
        let change = ConfChange { id: 77, kind, node_id, context: context.into() };
        let show = if args[0].starts_with("add") { show_member_add } else { show_member_list };
        show_applied(self.machine.apply_conf_change(&change), show)
    }

    fn members(&self) -> String {
        let view = self.machine.store.view();
        let mut shown = String::new();
        for (_, json) in engine::Engine::bucket(&*self.machine.engine, engine::Bucket::Members) {
            writeln!(shown, "{}", String::from_utf8_lossy(&json)).expect("a text grows");
        }
        let conf_state =
            engine::Engine::get(&*self.machine.engine, engine::Bucket::Meta, b"confState");
        let conf_state = conf_state.unwrap_or_default();
        writeln!(shown, "removed {:x?}", view.removed_members()).expect("a text grows");
        writeln!(shown, "{}", String::from_utf8_lossy(&conf_state)).expect("a text grows");
        shown
    }

    fn history(&self, from: i64, bytes_max: usize) -> String {
        let view = self.machine.store.view();
        match view.history(from, bytes_max) {
            Ok(history) => {
                let mut shown = String::new();
                for change in history.changes {
                    for event in &change.events {
                        let previous = event.previous.map(|previous| {
                            let kv = view.previous_kv(change.revision, previous);
                            kv.expect("nothing is damaged").map(|kv| show_kv(&kv))
                        });
                        let previous = match previous {
                            None => "nothing".to_owned(),
                            Some(None) => "something compacted".to_owned(),
                            Some(Some(kv)) => kv,
                        };
                        writeln!(
                            shown,
                            "{}, before: {previous}",
                            show_event(change.revision, event)
                        )
                        .expect("a text grows");
                    }
                }
                writeln!(shown, "next {}", history.next).expect("a text grows");
                shown
            }
            Err(error) => show_read_error(&error),
        }
    }

    fn auth(&mut self, name: &str, args: &[&str]) -> String {
        let text = |at: usize| args.get(at).map_or(String::new(), |text| bytes_text(text));
        let request = match name {
            "auth-enable" => entry!(auth_enable, AuthEnableRequest {}),
            "auth-disable" => entry!(auth_disable, AuthDisableRequest {}),
            "auth-status" => entry!(auth_status, AuthStatusRequest {}),
            "user-add" => {
                let hashed_password = text(1);
                let no_password = hashed_password == "none";
                let options = Some(UserAddOptions { no_password });
                let password = String::new();
                entry!(
                    auth_user_add,
                    AuthUserAddRequest { name: text(0), password, options, hashed_password }
                )
            }
            "user-delete" => entry!(auth_user_delete, AuthUserDeleteRequest { name: text(0) }),
            "user-password" => entry!(
                auth_user_change_password,
                AuthUserChangePasswordRequest {
                    name: text(0),
                    password: String::new(),
                    hashed_password: text(1)
                }
            ),
            "user-get" => entry!(auth_user_get, AuthUserGetRequest { name: text(0) }),
            "user-list" => entry!(auth_user_list, AuthUserListRequest {}),
            "user-grant" => entry!(
                auth_user_grant_role,
                AuthUserGrantRoleRequest { user: text(0), role: text(1) }
            ),
            "user-revoke" => entry!(
                auth_user_revoke_role,
                AuthUserRevokeRoleRequest { name: text(0), role: text(1) }
            ),
            "role-add" => entry!(auth_role_add, AuthRoleAddRequest { name: text(0) }),
            "role-delete" => entry!(auth_role_delete, AuthRoleDeleteRequest { role: text(0) }),
            "role-get" => entry!(auth_role_get, AuthRoleGetRequest { role: text(0) }),
            "role-list" => entry!(auth_role_list, AuthRoleListRequest {}),
            "role-grant" => entry!(
                auth_role_grant_permission,
                AuthRoleGrantPermissionRequest {
                    name: text(0),
                    perm: (args.len() > 1).then(|| Permission {
                        perm_type: number(args, 1) as i32,
                        key: text(2).into(),
                        range_end: text(3).into(),
                    }),
                }
            ),
            "role-revoke" => entry!(
                auth_role_revoke_permission,
                AuthRoleRevokePermissionRequest {
                    role: text(0),
                    key: text(1).into(),
                    range_end: text(2).into(),
                }
            ),
            _ => panic!("no such command: {name}"),
        };
        let show = match name {
            "auth-status" => show_auth_status,
            "user-get" | "user-list" | "role-list" => show_names,
            "role-get" => show_role,
            _ => show_nothing,
        };
        self.entry(request, show)
    }
}

impl Machine {
    /// The revisions of all rows that are left.
    fn engine_rows(&self) -> String {
        let sums = engine::Engine::sums(&*self.engine, engine::Revision::default(), 1000);
        let rows = sums.iter().map(|row| {
            let mark = if row.tombstone { "t" } else { "" };
            format!("{}.{}{mark}", row.revision.main, row.revision.sub)
        });
        rows.collect::<Vec<_>>().join(" ")
    }
}

fn number(args: &[&str], at: usize) -> i64 {
    args[at].parse().expect("a number")
}

fn bytes_text(word: &str) -> String {
    String::from_utf8(bytes(word).to_vec()).expect("text")
}
