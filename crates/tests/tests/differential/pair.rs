//! A real etcd and ours, side by side.

use super::op::Op;
use api::etcdserverpb::{StatusRequest, StatusResponse};
use bytes::Bytes;
use prost::Message;
use std::time::Duration;
use testkit::{Answer, Grpc, HttpReply, Server, http};

/// How long a stream of JSON is listened to before it is taken for quiet.
const STREAM_QUIET: Duration = Duration::from_millis(1500);

pub struct Pair {
    pub etcd: Side,
    pub ours: Side,
    /// Answers compared so far.
    pub compared: usize,
    /// The last answer that `both` got from etcd.
    pub answer: Answer,
}

pub struct Side {
    pub server: Server,
    pub grpc: Grpc,
    pub member: u64,
    /// Numbers and addresses that are this server's own, and what stands for them in comparisons.
    own: Vec<(String, &'static str)>,
}

impl Pair {
    /// `None` if there is no etcd to compare with.
    pub fn start(flags: &[&str]) -> Option<Pair> {
        let etcd = testkit::etcd_or_skip("etcd")?;
        let etcd = Side::of(Server::start(&etcd, flags));
        let ours = Side::of(Server::start(&testkit::althing(), flags));
        Some(Pair { etcd, ours, compared: 0, answer: Ok(Bytes::new()) })
    }

    /// Sends the request to both and returns what both answered; differences end the test.
    pub fn same(&mut self, op: &Op) -> String {
        let (theirs, ours) = self.both(op);
        assert!(theirs == ours, "{op:#?}\n\netcd: {theirs}\n\nours: {ours}");
        ours
    }

    /// The answers of both, as text.
    pub fn both(&mut self, op: &Op) -> (String, String) {
        self.compared += 1;
        // Both work at the same time.
        let asked_etcd = self.etcd.begin(op);
        let asked_ours = self.ours.begin(op);
        self.answer = self.etcd.grpc.finish(asked_etcd);
        let ours = self.ours.grpc.finish(asked_ours);
        (self.etcd.rendered(op, &self.answer), self.ours.rendered(op, &ours))
    }

    /// kill -9, and again.
    pub fn restart(&mut self) {
        for side in [&mut self.etcd, &mut self.ours] {
            side.server.kill();
            side.server.restart();
            side.grpc = Grpc::connect(&side.server.endpoint());
        }
    }

    /// A unary call of any bytes to any path, with metadata; statuses must agree, messages need
    /// not mean anything here.
    pub fn same_status(&mut self, path: &str, metadata: &[(&str, &str)], request: &[u8]) -> String {
        self.compared += 1;
        let mut statuses = [&mut self.etcd, &mut self.ours].map(|side| {
            let answer = side.grpc.call_bytes(path, metadata, Bytes::copy_from_slice(request));
            match answer {
                Ok(_) => "ok".to_string(),
                Err(status) => {
                    format!("error {}: {}", status.code, side.anonymous(&status.message))
                }
            }
        });
        assert_eq!(statuses[0], statuses[1], "{path} {metadata:?} (etcd left, ours right)");
        std::mem::take(&mut statuses[1])
    }

    /// The same HTTP request to both. `MEMBER` in the body is the member's id.
    pub fn http(
        &mut self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> [HttpReply; 2] {
        let bodies = [&self.etcd, &self.ours].map(|side| side.addressed(body));
        self.http_each(method, target, headers, bodies)
    }

    /// The same HTTP request with a body for each.
    pub fn http_each(
        &mut self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        bodies: [String; 2],
    ) -> [HttpReply; 2] {
        self.compared += 1;
        let [theirs, ours] = bodies;
        [(&self.etcd, theirs), (&self.ours, ours)].map(|(side, body)| {
            http(&side.server.endpoint(), method, target, headers, body.as_bytes(), STREAM_QUIET)
        })
    }
}

impl Side {
    fn of(server: Server) -> Side {
        let mut grpc = Grpc::connect(&server.endpoint());
        let status = grpc.call("/etcdserverpb.Maintenance/Status", &StatusRequest {});
        let status = status.expect("a fresh server tells its status");
        let status = StatusResponse::decode(status).expect("a status is a StatusResponse");
        let header = status.header.expect("a status has a header");
        let own = vec![
            (header.member_id.to_string(), "MEMBER"),
            (header.cluster_id.to_string(), "CLUSTER"),
            (format!("127.0.0.1:{}", server.client_port), "CLIENT"),
            (format!("127.0.0.1:{}", server.peer_port), "PEER"),
        ];
        Side { server, grpc, member: header.member_id, own }
    }

    fn begin(&mut self, op: &Op) -> testkit::Stream {
        let op = op.addressed_to(self.member);
        self.grpc.begin(op.path(), &[], op.encode())
    }

    fn rendered(&self, op: &Op, answer: &Answer) -> String {
        self.anonymous(&op.render(answer))
    }

    /// The text without what is this server's own: names for its ids and addresses, and for sizes
    /// and places in the log only whether there is one.
    pub fn anonymous(&self, text: &str) -> String {
        let mut text = text.to_string();
        for (own, name) in &self.own {
            text = text.replace(own, name);
        }
        text.lines().map(without_size).collect::<Vec<_>>().join("\n")
    }

    /// The reverse, for requests that speak of the member itself.
    pub fn addressed(&self, text: &str) -> String {
        text.replace("MEMBER", &self.member.to_string())
    }
}

fn without_size(line: &str) -> String {
    const SIZES: [&str; 5] =
        ["raft_term", "raft_index", "raft_applied_index", "db_size", "db_size_in_use"];
    match line.split_once(": ") {
        Some((name, value)) if SIZES.contains(&name.trim()) && value != "0," => {
            format!("{name}: N,")
        }
        _ => line.to_string(),
    }
}
