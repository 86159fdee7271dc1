//! Random requests over a space so small that they meet.

use super::op::{Op, SELF};
use api::authpb;
use api::etcdserverpb::*;
use api::health::HealthCheckRequest;
use api::v3electionpb::*;
use api::v3lockpb::*;
use bytes::Bytes;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

/// No lease ends while a run lasts.
const TTL_MIN: i64 = 5000;

pub struct Generator {
    pub rng: StdRng,
    /// The newest revision that an answer has shown.
    pub revision: i64,
    pub compacted: i64,
    /// Who won the last election, for what only a leader may do.
    pub leader: Option<LeaderKey>,
    /// Alarms that were raised: they stop writes, so they end soon.
    alarms: Vec<AlarmRequest>,
}

impl Generator {
    pub fn new(seed: u64) -> Generator {
        let rng = StdRng::seed_from_u64(seed);
        Generator { rng, revision: 1, compacted: -1, leader: None, alarms: Vec::new() }
    }

    pub fn op(&mut self) -> Op {
        if self.chance(8)
            && let Some(raised) = self.alarms.pop()
        {
            return Op::Alarm(AlarmRequest { action: 2, ..raised });
        }
        match self.rng.random_range(0..100) {
            0..25 => Op::Put(self.put()),
            25..33 => Op::DeleteRange(self.delete_range()),
            33..57 => Op::Range(self.range()),
            57..81 => Op::Txn(self.txn(0)),
            81..90 => self.lease_op(),
            90..92 => Op::HashKv(HashKvRequest { revision: self.any_revision() }),
            92..94 => self.election_op(),
            94..97 => self.auth_op(),
            _ => self.maintenance_op(),
        }
    }

    pub fn chance(&mut self, percent: u32) -> bool {
        self.rng.random_ratio(percent, 100)
    }

    pub fn key(&mut self) -> Bytes {
        const ODD: [&[u8]; 8] = [b"\0", b"\xff", b"a", b"a\0", b"a\xff", b"b", b"\xff\xff", b""];
        match self.rng.random_range(0..40) {
            0..4 => Bytes::from_static(ODD[self.rng.random_range(0..ODD.len() - 1)]),
            // An empty key is refused, so it should be rare.
            4 => Bytes::from_static(if self.chance(20) { b"" } else { b"k" }),
            _ => format!("k{:02}", self.rng.random_range(0..24)).into(),
        }
    }

    pub fn range_end(&mut self, key: &Bytes) -> Bytes {
        match self.rng.random_range(0..10) {
            0..3 => Bytes::new(),
            3 => Bytes::from_static(b"\0"),
            4 => api::prefix_end(key),
            5 => key.clone(),
            6 => Bytes::from_static(b"l"),
            _ => self.key(),
        }
    }

    fn value(&mut self) -> Bytes {
        match self.rng.random_range(0..6) {
            0 => Bytes::new(),
            1..4 => format!("v{}", self.rng.random_range(0..5)).into(),
            4 => {
                let length = self.rng.random_range(0..300);
                (0..length).map(|_| self.rng.random::<u8>()).collect()
            }
            _ => vec![b'x'; self.rng.random_range(0..5000)].into(),
        }
    }

    fn lease(&mut self) -> i64 {
        match self.rng.random_range(0..12) {
            0..7 => 0,
            7 => -5,
            8 => 777,
            _ => self.rng.random_range(1..5),
        }
    }

    /// Around now, long ago, not yet, never.
    pub fn any_revision(&mut self) -> i64 {
        match self.rng.random_range(0..12) {
            0..3 => 0,
            3 => self.revision,
            4 => self.revision + self.rng.random_range(1..4),
            5 => self.compacted + self.rng.random_range(-2..3),
            6 => *[-1, -7, i64::MIN, i64::MAX].choose(&mut self.rng).expect("there are some"),
            _ => self.rng.random_range(self.compacted.max(0)..=self.revision.max(1)),
        }
    }

    fn filter(&mut self) -> i64 {
        if self.chance(85) { 0 } else { self.any_revision() }
    }

    fn range(&mut self) -> RangeRequest {
        let key = self.key();
        let sorted = self.chance(40);
        let odd = self.chance(3);
        RangeRequest {
            range_end: self.range_end(&key),
            key,
            limit: if self.chance(40) { self.rng.random_range(-1..6) } else { 0 },
            revision: if self.chance(60) { 0 } else { self.any_revision() },
            sort_order: if odd {
                3
            } else if sorted {
                self.rng.random_range(0..3)
            } else {
                0
            },
            sort_target: match (odd, sorted) {
                (true, _) => *[-1, 5, 9].choose(&mut self.rng).expect("there are some"),
                (_, true) => self.rng.random_range(0..5),
                _ => 0,
            },
            serializable: self.chance(30),
            keys_only: self.chance(15),
            count_only: self.chance(10),
            min_mod_revision: self.filter(),
            max_mod_revision: self.filter(),
            min_create_revision: self.filter(),
            max_create_revision: self.filter(),
        }
    }

    pub fn put(&mut self) -> PutRequest {
        let ignore_value = self.chance(8);
        let ignore_lease = self.chance(8);
        let wrong = self.chance(10);
        PutRequest {
            key: self.key(),
            value: if ignore_value && !wrong { Bytes::new() } else { self.value() },
            lease: if ignore_lease && !wrong { 0 } else { self.lease() },
            prev_kv: self.chance(30),
            ignore_value,
            ignore_lease,
        }
    }

    fn delete_range(&mut self) -> DeleteRangeRequest {
        let key = self.key();
        let range_end = if self.chance(70) { Bytes::new() } else { self.range_end(&key) };
        DeleteRangeRequest { key, range_end, prev_kv: self.chance(40) }
    }

    fn compare(&mut self) -> Compare {
        use compare::TargetUnion;
        let key = self.key();
        let range_end = if self.chance(75) { Bytes::new() } else { self.range_end(&key) };
        let target = if self.chance(2) { 9 } else { self.rng.random_range(0..5) };
        // Mostly the operand that belongs to the target.
        let union = if self.chance(95) { target } else { self.rng.random_range(0..6) };
        let number =
            if self.chance(50) { self.rng.random_range(0..4) } else { self.any_revision() };
        let target_union = match union {
            0 => Some(TargetUnion::Version(number)),
            1 => Some(TargetUnion::CreateRevision(number)),
            2 => Some(TargetUnion::ModRevision(number)),
            3 => Some(TargetUnion::Value(self.value())),
            4 => Some(TargetUnion::Lease(self.lease())),
            _ => None,
        };
        let result = if self.chance(2) { 7 } else { self.rng.random_range(0..4) };
        Compare { result, target, key, range_end, target_union }
    }

    fn txn(&mut self, depth: u32) -> TxnRequest {
        if depth == 0 && self.chance(1) {
            return self.huge_txn();
        }
        let many = |g: &mut Generator, most: u32| g.rng.random_range(0..=most);
        TxnRequest {
            compare: (0..many(self, 2)).map(|_| self.compare()).collect(),
            success: (0..many(self, 4)).map(|_| self.txn_op(depth)).collect(),
            failure: (0..many(self, 3)).map(|_| self.txn_op(depth)).collect(),
        }
    }

    /// About as many operations as are allowed.
    fn huge_txn(&mut self) -> TxnRequest {
        let count = self.rng.random_range(126..131);
        let range = || RangeRequest { key: "k01".into(), ..RangeRequest::default() };
        let op = RequestOp { request: Some(request_op::Request::RequestRange(range())) };
        TxnRequest { success: vec![op; count], ..TxnRequest::default() }
    }

    fn txn_op(&mut self, depth: u32) -> RequestOp {
        use request_op::Request;
        let request = match self.rng.random_range(0..100) {
            0..35 => Some(Request::RequestPut(self.put())),
            35..65 => Some(Request::RequestRange(self.range())),
            65..84 => Some(Request::RequestDeleteRange(self.delete_range_in_txn())),
            84..99 if depth < 3 => Some(Request::RequestTxn(self.txn(depth + 1))),
            99 if self.chance(30) => None,
            _ => Some(Request::RequestRange(self.range())),
        };
        RequestOp { request }
    }

    /// Deletes from a key on, together with a put that keeps the old value or lease, stop a real
    /// etcd for good, so they are left out here and tried on ours alone.
    fn delete_range_in_txn(&mut self) -> DeleteRangeRequest {
        let mut delete = self.delete_range();
        if delete.range_end == b"\0"[..] {
            delete.range_end = Bytes::new();
        }
        delete
    }

    fn lease_op(&mut self) -> Op {
        match self.rng.random_range(0..10) {
            0..4 => Op::LeaseGrant(LeaseGrantRequest {
                ttl: match self.rng.random_range(0..20) {
                    0 => 9_000_000_000,
                    1 => 9_000_000_001,
                    _ => TTL_MIN + self.rng.random_range(0..5),
                },
                id: if self.chance(15) { -5 } else { self.rng.random_range(1..5) },
            }),
            4..6 => Op::LeaseRevoke(LeaseRevokeRequest { id: self.lease() }),
            6..9 => Op::LeaseTimeToLive(LeaseTimeToLiveRequest {
                id: self.lease(),
                keys: self.chance(70),
            }),
            _ => Op::LeaseLeases(LeaseLeasesRequest {}),
        }
    }

    /// One lease for each name, so that nobody ever waits.
    fn election_op(&mut self) -> Op {
        let lease = self.rng.random_range(1..5);
        let name: Bytes = format!("election{lease}").into();
        let leader = if self.chance(90) { self.leader.clone() } else { None };
        match self.rng.random_range(0..7) {
            0 => Op::Lock(LockRequest { name: format!("lock{lease}").into(), lease }),
            1 => Op::Unlock(UnlockRequest { key: format!("lock{lease}/{lease:x}").into() }),
            2 => Op::Campaign(CampaignRequest { name, lease, value: self.value() }),
            3 => Op::Leader(LeaderRequest { name }),
            4 => Op::Proclaim(ProclaimRequest { leader, value: self.value() }),
            5 => Op::Resign(ResignRequest { leader }),
            _ => Op::Campaign(CampaignRequest { name, lease, value: "v".into() }),
        }
    }

    fn auth_op(&mut self) -> Op {
        let name = ["", "ann", "ben"].choose(&mut self.rng).expect("there are some").to_string();
        let role = ["", "r1", "r2", "root"].choose(&mut self.rng).expect("there are some");
        let role = role.to_string();
        let key = self.key();
        let range_end = self.range_end(&key);
        match self.rng.random_range(0..16) {
            0 => Op::AuthStatus(AuthStatusRequest {}),
            1 => Op::AuthEnable(AuthEnableRequest {}),
            2 => Op::AuthDisable(AuthDisableRequest {}),
            3 => Op::Authenticate(AuthenticateRequest { name, password: "p".into() }),
            4 => {
                // Hashing is slow, so most have no password.
                let no_password = self.chance(80);
                let options = Some(authpb::UserAddOptions { no_password });
                let password = if no_password { "" } else { "secret" }.to_string();
                Op::UserAdd(AuthUserAddRequest { name, password, options, ..Default::default() })
            }
            5 => Op::UserGet(AuthUserGetRequest { name }),
            6 => Op::UserList(AuthUserListRequest {}),
            7 => Op::UserDelete(AuthUserDeleteRequest { name }),
            8 => Op::UserGrantRole(AuthUserGrantRoleRequest { user: name, role }),
            9 => Op::UserRevokeRole(AuthUserRevokeRoleRequest { name, role }),
            10 => Op::RoleAdd(AuthRoleAddRequest { name: role }),
            11 => Op::RoleGet(AuthRoleGetRequest { role }),
            12 => Op::RoleList(AuthRoleListRequest {}),
            13 => Op::RoleDelete(AuthRoleDeleteRequest { role }),
            14 => {
                Op::RoleRevokePermission(AuthRoleRevokePermissionRequest { role, key, range_end })
            }
            _ => {
                let perm_type = self.rng.random_range(0..3);
                let perm = authpb::Permission { perm_type, key, range_end };
                let perm = self.chance(95).then_some(perm);
                Op::RoleGrantPermission(AuthRoleGrantPermissionRequest { name: role, perm })
            }
        }
    }

    fn maintenance_op(&mut self) -> Op {
        match self.rng.random_range(0..14) {
            0 => Op::Status(StatusRequest {}),
            1 => Op::MemberList(MemberListRequest { linearizable: self.chance(50) }),
            2 => Op::MoveLeader(MoveLeaderRequest {
                target_id: if self.chance(50) { SELF } else { 7 },
            }),
            3 => {
                const VERSIONS: [&str; 10] =
                    ["", "3.5", "3.5.0", "3.6.0", "3.4", "3.5.0-rc.1", "x", "3.5.x", "4.0.0", "3"];
                let version = VERSIONS.choose(&mut self.rng).expect("there are some").to_string();
                Op::Downgrade(DowngradeRequest { action: 0, version })
            }
            4 if self.chance(20) => Op::Defragment(DefragmentRequest {}),
            5 => Op::Hash(HashRequest {}),
            6 => {
                let service = if self.chance(50) { "" } else { "etcdserverpb.KV" }.to_string();
                Op::HealthCheck(HealthCheckRequest { service })
            }
            7 => Op::MemberPromote(MemberPromoteRequest {
                id: if self.chance(50) { SELF } else { 9 },
            }),
            8 => {
                Op::MemberRemove(MemberRemoveRequest { id: if self.chance(50) { SELF } else { 9 } })
            }
            9 => Op::MemberAdd(MemberAddRequest {
                peer_ur_ls: vec!["nonsense".into()],
                is_learner: false,
            }),
            10 => {
                let member_id = if self.chance(80) { SELF } else { 3 };
                let alarm = if self.chance(85) { self.rng.random_range(0..3) } else { 9 };
                let request = AlarmRequest { action: 1, member_id, alarm };
                self.alarms.push(request);
                Op::Alarm(request)
            }
            _ => Op::Alarm(AlarmRequest {
                action: *[0, 2].choose(&mut self.rng).expect("there are some"),
                member_id: if self.chance(80) { SELF } else { 3 },
                alarm: if self.chance(85) { self.rng.random_range(0..3) } else { 9 },
            }),
        }
    }
}
