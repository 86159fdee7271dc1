//! The wire: every message of etcd v3, the table of its errors, and ranges of keys.
//!
//! In:  bytes from clients and from the log. Out: the same, typed.
//!
//! The messages are generated from our own `.proto` files (see `tests/generated.rs`); keys and
//! values are [`bytes::Bytes`], so decoding copies nothing. This room decides nothing: which
//! requests are valid is `store`'s business.

mod error;
mod range;

pub use error::{Code, Error};
pub use range::{KeyRange, prefix_end};

/// The version of etcd whose behaviour this server has.
pub const ETCD_VERSION: &str = "3.6.14";
/// What the cluster agrees on, and what the storage is marked with.
pub const CLUSTER_VERSION: &str = "3.6.0";

/// A `FileDescriptorSet` of all the `.proto` files, for the JSON gateway.
pub const DESCRIPTORS: &[u8] = include_bytes!("generated/descriptors.bin");

/// Generated code is taken as it comes.
#[allow(clippy::all)]
mod generated {
    pub mod authpb {
        include!("generated/authpb.rs");
    }
    pub mod etcdserverpb {
        include!("generated/etcdserverpb.rs");
    }
    pub mod grpc {
        pub mod health {
            pub mod v1 {
                include!("generated/grpc.health.v1.rs");
            }
        }
    }
    pub mod leasepb {
        include!("generated/leasepb.rs");
    }
    pub mod membershippb {
        include!("generated/membershippb.rs");
    }
    pub mod mvccpb {
        include!("generated/mvccpb.rs");
    }
    pub mod v3electionpb {
        include!("generated/v3electionpb.rs");
    }
    pub mod v3lockpb {
        include!("generated/v3lockpb.rs");
    }
}

pub use generated::grpc::health::v1 as health;
pub use generated::{authpb, etcdserverpb, leasepb, membershippb, mvccpb, v3electionpb, v3lockpb};
