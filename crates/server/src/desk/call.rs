//! Calls: who asked, what for, and what they are waiting for.

use crate::method::{Method, Shape};
use httpcore::h2::StreamId;
use std::collections::VecDeque;
use tokio::sync::oneshot;
use watch::StreamKey;

/// One call of one connection of one desk. Never means another call later: connections have a
/// generation, and streams are not reused on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallId {
    pub connection: usize,
    pub generation: u32,
    pub lane: Lane,
}

/// Where in a connection a call lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lane {
    Grpc(StreamId),
    /// HTTP/1 has one call at a time; the number tells them apart.
    Http(u32),
}

/// A call that has begun and not ended.
#[derive(Debug)]
pub struct Call {
    pub method: Method,
    /// When the caller stops waiting, in milliseconds of the desk's clock.
    pub deadline: Option<u64>,
    /// The caller asked to be refused when nobody leads.
    pub needs_leader: bool,
    pub began: std::time::Instant,
    pub state: State,
}

impl Call {
    pub fn is_stream(&self) -> bool {
        self.method.info().shape != Shape::Unary
    }

    /// Calls that wait for something to happen are not slow.
    pub fn may_wait(&self) -> bool {
        matches!(self.method, Method::Lock | Method::Campaign)
    }
}

#[derive(Debug)]
pub enum State {
    /// The request message has not come yet.
    Expecting,
    /// The answer is under way: in the log, behind a read, at the node.
    Working,
    Watching(StreamKey),
    KeepingAlive(KeepAlive),
    /// The office works on it; dropping this tells it that the caller is gone.
    AtOffice(#[expect(dead_code, reason = "it speaks by being dropped")] oneshot::Sender<()>),
}

/// One renewal is asked at a time, so that answers keep the order of the requests.
#[derive(Debug, Default)]
pub struct KeepAlive {
    pub asked: bool,
    pub waiting: VecDeque<i64>,
    /// The caller has sent its last request.
    pub half_closed: bool,
}
