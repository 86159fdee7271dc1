//! The one table of what clients are told when something is refused.
//!
//! Go clients recognise an error by its exact text and Java clients by its code, so both are a
//! contract, odd spellings and surprising codes included.

use std::borrow::Cow;
use std::fmt;

/// gRPC's status codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Code {
    Ok = 0,
    Canceled = 1,
    Unknown = 2,
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    NotFound = 5,
    AlreadyExists = 6,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    Aborted = 10,
    OutOfRange = 11,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
    DataLoss = 15,
    Unauthenticated = 16,
}

/// What a client is told: a code and a text, both known to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub code: Code,
    pub message: Cow<'static, str>,
}

impl Error {
    pub const fn new(code: Code, message: &'static str) -> Error {
        Error { code, message: Cow::Borrowed(message) }
    }

    pub fn with_text(code: Code, message: String) -> Error {
        Error { code, message: Cow::Owned(message) }
    }

    /// The same text with code Unknown: how errors of inner operations leave Lock and Election.
    pub fn as_unknown(self) -> Error {
        Error { code: Code::Unknown, message: self.message }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

macro_rules! table {
    ($($name:ident = $code:ident $text:literal;)*) => {
        impl Error {
            $(pub const $name: Error = Error::new(Code::$code, $text);)*

            /// All of the table, by name.
            pub const TABLE: &'static [(&'static str, Error)] = &[$((stringify!($name), Error::$name)),*];
        }
    };
}

table! {
    EMPTY_KEY = InvalidArgument "etcdserver: key is not provided";
    KEY_NOT_FOUND = InvalidArgument "etcdserver: key not found";
    VALUE_PROVIDED = InvalidArgument "etcdserver: value is provided";
    LEASE_PROVIDED = InvalidArgument "etcdserver: lease is provided";
    TOO_MANY_OPS = InvalidArgument "etcdserver: too many operations in txn request";
    DUPLICATE_KEY = InvalidArgument "etcdserver: duplicate key given in txn request";
    INVALID_CLIENT_API_VERSION = InvalidArgument "etcdserver: invalid client api version";
    INVALID_SORT_OPTION = InvalidArgument "etcdserver: invalid sort option";
    COMPACTED = OutOfRange "etcdserver: mvcc: required revision has been compacted";
    FUTURE_REVISION = OutOfRange "etcdserver: mvcc: required revision is a future revision";
    NO_SPACE = ResourceExhausted "etcdserver: mvcc: database space exceeded";

    LEASE_NOT_FOUND = NotFound "etcdserver: requested lease not found";
    LEASE_EXISTS = FailedPrecondition "etcdserver: lease already exists";
    LEASE_TTL_TOO_LARGE = OutOfRange "etcdserver: too large lease TTL";

    WATCH_CANCELED = Canceled "etcdserver: watch canceled";

    MEMBER_EXISTS = FailedPrecondition "etcdserver: member ID already exist";
    PEER_URL_EXISTS = FailedPrecondition "etcdserver: Peer URLs already exists";
    NOT_ENOUGH_STARTED_MEMBERS = Unknown "etcdserver: re-configuration failed due to not enough started members";
    BAD_MEMBER_URLS = InvalidArgument "etcdserver: given member URLs are invalid";
    MEMBER_NOT_FOUND = NotFound "etcdserver: member not found";
    MEMBER_NOT_LEARNER = FailedPrecondition "etcdserver: can only promote a learner member";
    LEARNER_NOT_READY = FailedPrecondition "etcdserver: can only promote a learner member which is in sync with leader";
    TOO_MANY_LEARNERS = FailedPrecondition "etcdserver: too many learner members in cluster";
    CLUSTER_ID_MISMATCH = FailedPrecondition "etcdserver: cluster ID mismatch";

    REQUEST_TOO_LARGE = InvalidArgument "etcdserver: request is too large";
    TOO_MANY_REQUESTS = Unknown "etcdserver: too many requests";

    ROOT_USER_NOT_EXIST = FailedPrecondition "etcdserver: root user does not exist";
    ROOT_ROLE_NOT_GRANTED = FailedPrecondition "etcdserver: root user does not have root role";
    USER_EXISTS = FailedPrecondition "etcdserver: user name already exists";
    USER_EMPTY = InvalidArgument "etcdserver: user name is empty";
    USER_NOT_FOUND = FailedPrecondition "etcdserver: user name not found";
    ROLE_EXISTS = FailedPrecondition "etcdserver: role name already exists";
    ROLE_NOT_FOUND = FailedPrecondition "etcdserver: role name not found";
    ROLE_EMPTY = InvalidArgument "etcdserver: role name is empty";
    AUTH_FAILED = InvalidArgument "etcdserver: authentication failed, invalid user ID or password";
    PERMISSION_NOT_GIVEN = InvalidArgument "etcdserver: permission not given";
    PERMISSION_DENIED = PermissionDenied "etcdserver: permission denied";
    ROLE_NOT_GRANTED = FailedPrecondition "etcdserver: role is not granted to the user";
    PERMISSION_NOT_GRANTED = FailedPrecondition "etcdserver: permission is not granted to the role";
    AUTH_NOT_ENABLED = FailedPrecondition "etcdserver: authentication is not enabled";
    INVALID_AUTH_TOKEN = Unauthenticated "etcdserver: invalid auth token";
    INVALID_AUTH_MANAGEMENT = InvalidArgument "etcdserver: invalid auth management";
    AUTH_OLD_REVISION = InvalidArgument "etcdserver: revision of auth store is old";

    NO_LEADER = Unavailable "etcdserver: no leader";
    NOT_LEADER = FailedPrecondition "etcdserver: not leader";
    LEADER_CHANGED = Unavailable "etcdserver: leader changed";
    NOT_CAPABLE = FailedPrecondition "etcdserver: not capable";
    STOPPED = Unavailable "etcdserver: server stopped";
    TIMEOUT = Unavailable "etcdserver: request timed out";
    TIMEOUT_LEADER_FAILED = Unavailable "etcdserver: request timed out, possibly due to previous leader failure";
    TIMEOUT_CONNECTION_LOST = Unavailable "etcdserver: request timed out, possibly due to connection lost";
    TIMEOUT_WAIT_APPLIED = Unavailable "etcdserver: request timed out, waiting for the applied index took too long";
    UNHEALTHY = Unavailable "etcdserver: unhealthy cluster";
    CORRUPT = DataLoss "etcdserver: corrupt cluster";
    NOT_SUPPORTED_FOR_LEARNER = FailedPrecondition "etcdserver: rpc not supported for learner";
    BAD_LEADER_TRANSFEREE = FailedPrecondition "etcdserver: bad leader transferee";

    WRONG_DOWNGRADE_VERSION = InvalidArgument "etcdserver: wrong downgrade target version format";
    INVALID_DOWNGRADE_TARGET = InvalidArgument "etcdserver: invalid downgrade target version";
    CLUSTER_VERSION_UNAVAILABLE = FailedPrecondition "etcdserver: cluster version not found during downgrade";
    DOWNGRADE_IN_PROGRESS = FailedPrecondition "etcdserver: cluster has a downgrade job in progress";
    NO_INFLIGHT_DOWNGRADE = FailedPrecondition "etcdserver: no inflight downgrade job";

    REQUEST_CANCELLED = Unknown "etcdserver: request cancelled";
    UNKNOWN_METHOD = Unknown "etcdserver: unknown method";
    TIMEOUT_LEADER_TRANSFER = Unknown "etcdserver: request timed out, leader transfer took too long";
    NOT_PRIMARY_LESSOR = Unknown "not a primary lessor";
    NO_PASSWORD_USER = Unknown "auth: authentication failed, password was given for no password user";
    PASSWORD_TOO_LONG = Unknown "bcrypt: password length exceeds 72 bytes";
    PROPOSAL_DROPPED = Unknown "raft proposal dropped";
    RAFT_STOPPED = Unknown "raft: stopped";
    ELECTION_LEADER_MISSING = Unknown "\"leader\" field must be provided";
    ELECTION_NOT_LEADER = Unknown "election: not leader";
    ELECTION_NO_LEADER = Unknown "election: no leader";
    MUTEX_SESSION_EXPIRED = Unknown "mutex: session is expired";
    LOST_WATCHER = Unknown "lost watcher waiting for delete";

    CONTEXT_CANCELED = Canceled "context canceled";
    CONTEXT_DEADLINE_EXCEEDED = DeadlineExceeded "context deadline exceeded";
    RANGE_STREAM_SORT = Unimplemented "RangeStream does not support custom sort orders";
    RANGE_STREAM_FILTER = Unimplemented "RangeStream does not support revision filters";
    HEALTH_UNKNOWN_SERVICE = NotFound "unknown service";
}
