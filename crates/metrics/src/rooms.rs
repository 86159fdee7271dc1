//! The metrics of the server's rooms, by name.
//!
//! Names, kinds, labels and buckets are etcd's, odd ones included (totals that are gauges), since
//! dashboards and alerts ask for them by name.

use crate::page::Page;
use crate::value::{Counter, Family, Gauge, Histogram};
use std::sync::Arc;

/// Declares a struct of metrics and how it is written: field, type, value at start, name, help.
macro_rules! room {
    (
        $(#[$attribute:meta])*
        $room:ident { $($field:ident: $type:ty = $make:expr, $name:literal, $help:literal;)* }
    ) => {
        $(#[$attribute])*
        pub struct $room {
            $(#[doc = $help] pub $field: $type,)*
        }

        impl $room {
            pub(crate) fn new() -> $room {
                $room { $($field: $make,)* }
            }

            pub(crate) fn render(&self, page: &mut Page) {
                $(page.family($name, $help, &self.$field);)*
            }
        }
    };
}
pub(crate) use room;

fn counter() -> Counter {
    Counter::default()
}

fn gauge() -> Gauge {
    Gauge::default()
}

/// From a millisecond to eight seconds: what a disk may take.
fn disk_seconds() -> Histogram {
    Histogram::exponential(0.001, 2.0, 14)
}

/// From a tenth of a second to a minute: what sending or saving a database may take.
fn snapshot_seconds() -> Histogram {
    Histogram::exponential(0.1, 2.0, 10)
}

room! {
    /// The log and the backend on disk.
    DiskMetrics {
        wal_fsync: Histogram = disk_seconds(), "etcd_disk_wal_fsync_duration_seconds", "How long syncing the write-ahead log to disk took.";
        wal_write: Histogram = disk_seconds(), "etcd_disk_wal_write_duration_seconds", "How long writing to the write-ahead log took, without the sync.";
        wal_write_bytes: Gauge = gauge(), "etcd_disk_wal_write_bytes_total", "Bytes written to the write-ahead log.";
        backend_commit: Histogram = disk_seconds(), "etcd_disk_backend_commit_duration_seconds", "How long the backend took to make a batch of changes durable.";
        backend_defrag: Histogram = Histogram::exponential(0.1, 2.0, 13), "etcd_disk_backend_defrag_duration_seconds", "How long defragmenting the backend took.";
        backend_snapshot: Histogram = Histogram::exponential(0.01, 2.0, 17), "etcd_disk_backend_snapshot_duration_seconds", "How long taking a snapshot of the backend took.";
        defrag_inflight: Gauge = gauge(), "etcd_disk_defrag_inflight", "1 while a defragmentation is running, else 0.";
        // The three phases of a commit to a B+tree file. A backend without such a phase leaves its
        // histogram empty.
        commit_rebalance: Histogram = disk_seconds(), "etcd_debugging_disk_backend_commit_rebalance_duration_seconds", "The part of a backend commit spent rebalancing pages.";
        commit_spill: Histogram = disk_seconds(), "etcd_debugging_disk_backend_commit_spill_duration_seconds", "The part of a backend commit spent laying out changed pages.";
        commit_write: Histogram = disk_seconds(), "etcd_debugging_disk_backend_commit_write_duration_seconds", "The part of a backend commit spent writing to the disk.";
    }
}

room! {
    /// Snapshots that are saved to disk.
    SnapMetrics {
        fsync: Histogram = disk_seconds(), "etcd_snap_fsync_duration_seconds", "How long syncing a snapshot file to disk took.";
        db_fsync: Histogram = disk_seconds(), "etcd_snap_db_fsync_duration_seconds", "How long syncing a received database to disk took.";
        db_save: Histogram = snapshot_seconds(), "etcd_snap_db_save_total_duration_seconds", "How long saving a received database took in all.";
        save_marshalling: Histogram = disk_seconds(), "etcd_debugging_snap_save_marshalling_duration_seconds", "How long encoding a snapshot file took.";
        save: Histogram = disk_seconds(), "etcd_debugging_snap_save_total_duration_seconds", "How long saving a snapshot file took in all.";
    }
}

room! {
    /// Keys, revisions, watches and compaction. What the store knows at any time is in `Live`.
    MvccMetrics {
        range: Counter = counter(), "etcd_mvcc_range_total", "Ranges this member has read.";
        put: Counter = counter(), "etcd_mvcc_put_total", "Puts this member has applied.";
        delete: Counter = counter(), "etcd_mvcc_delete_total", "Deletes this member has applied.";
        txn: Counter = counter(), "etcd_mvcc_txn_total", "Transactions with several operations this member has applied.";
        hash: Histogram = Histogram::exponential(0.01, 2.0, 15), "etcd_mvcc_hash_duration_seconds", "How long hashing the whole backend took.";
        hash_rev: Histogram = Histogram::exponential(0.01, 2.0, 15), "etcd_mvcc_hash_rev_duration_seconds", "How long hashing the keys at a revision took.";
        events: Counter = counter(), "etcd_debugging_mvcc_events_total", "Events sent to watchers.";
        put_bytes: Gauge = gauge(), "etcd_debugging_mvcc_total_put_size_in_bytes", "Bytes of keys and values put since the start.";
        compaction_keys: Counter = counter(), "etcd_debugging_mvcc_db_compaction_keys_total", "Key versions that compaction has removed.";
        compaction_last: Gauge = gauge(), "etcd_debugging_mvcc_db_compaction_last", "When the last compaction ended, in seconds since 1970; 0 for never.";
        compaction_pause: Histogram = Histogram::exponential_millis(1.0, 2.0, 13), "etcd_debugging_mvcc_db_compaction_pause_duration_milliseconds", "How long each batch of a compaction held up other work.";
        compaction: Histogram = Histogram::exponential_millis(100.0, 2.0, 14), "etcd_debugging_mvcc_db_compaction_total_duration_milliseconds", "How long a compaction took in all.";
        index_compaction_pause: Histogram = Histogram::exponential_millis(0.5, 2.0, 14), "etcd_debugging_mvcc_index_compaction_pause_duration_milliseconds", "How long compacting the index held up other work.";
    }
}

room! {
    /// Leases.
    LeaseMetrics {
        granted: Counter = counter(), "etcd_debugging_lease_granted_total", "Leases granted.";
        revoked: Counter = counter(), "etcd_debugging_lease_revoked_total", "Leases revoked, expired ones included.";
        renewed: Counter = counter(), "etcd_debugging_lease_renewed_total", "Renewals this member has answered as leader.";
        ttl: Histogram = Histogram::exponential(1.0, 2.0, 24), "etcd_debugging_lease_ttl_total", "The seconds leases were granted for.";
        expired: Counter = counter(), "etcd_debugging_server_lease_expired_total", "Leases found expired.";
    }
}

room! {
    /// Bytes and failures between members and towards clients. IDs in labels are lower-case hex.
    NetworkMetrics {
        client_sent_bytes: Counter = counter(), "etcd_network_client_grpc_sent_bytes_total", "Bytes of messages sent to gRPC clients.";
        client_received_bytes: Counter = counter(), "etcd_network_client_grpc_received_bytes_total", "Bytes of messages received from gRPC clients.";
        stream_failures: Family<Counter> = Family::new(&["API", "Type"], counter), "etcd_network_server_stream_failures_total", "Streams to clients that broke, by API (watch, lease-keepalive) and direction (send, receive).";
        active_peers: Family<Gauge> = Family::new(&["Local", "Remote"], gauge), "etcd_network_active_peers", "1 for each other member that is reachable now.";
        known_peers: Family<Gauge> = Family::new(&["Local", "Remote"], gauge), "etcd_network_known_peers", "1 for each member of the cluster, this one included.";
        disconnected_peers: Family<Counter> = Family::new(&["Local", "Remote"], counter), "etcd_network_disconnected_peers_total", "How often the connection to a member was lost.";
        peer_sent_bytes: Family<Counter> = Family::new(&["To"], counter), "etcd_network_peer_sent_bytes_total", "Bytes sent to a member.";
        peer_received_bytes: Family<Counter> = Family::new(&["From"], counter), "etcd_network_peer_received_bytes_total", "Bytes received from a member; 0 stands for messages without a sender.";
        peer_sent_failures: Family<Counter> = Family::new(&["To"], counter), "etcd_network_peer_sent_failures_total", "Messages that could not be sent to a member.";
        peer_received_failures: Family<Counter> = Family::new(&["From"], counter), "etcd_network_peer_received_failures_total", "Messages from a member that could not be received.";
        peer_round_trip: Family<Histogram> = Family::new(&["To"], || Histogram::exponential(0.0001, 2.0, 16)), "etcd_network_peer_round_trip_time_seconds", "Round-trip times to a member.";
        snapshot_send_success: Family<Counter> = Family::new(&["To"], counter), "etcd_network_snapshot_send_success", "Database snapshots sent to a member.";
        snapshot_send_failures: Family<Counter> = Family::new(&["To"], counter), "etcd_network_snapshot_send_failures", "Database snapshots that could not be sent to a member.";
        snapshot_send_inflights: Family<Gauge> = Family::new(&["To"], gauge), "etcd_network_snapshot_send_inflights_total", "Database snapshots being sent to a member now.";
        snapshot_send: Family<Histogram> = Family::new(&["To"], snapshot_seconds), "etcd_network_snapshot_send_total_duration_seconds", "How long sending a database snapshot took.";
        snapshot_receive_success: Family<Counter> = Family::new(&["From"], counter), "etcd_network_snapshot_receive_success", "Database snapshots received from a member.";
        snapshot_receive_failures: Family<Counter> = Family::new(&["From"], counter), "etcd_network_snapshot_receive_failures", "Database snapshots from a member that could not be received.";
        snapshot_receive_inflights: Family<Gauge> = Family::new(&["From"], gauge), "etcd_network_snapshot_receive_inflights_total", "Database snapshots being received from a member now.";
        snapshot_receive: Family<Histogram> = Family::new(&["From"], snapshot_seconds), "etcd_network_snapshot_receive_total_duration_seconds", "How long receiving a database snapshot took.";
    }
}

/// One peer's numbers, ready to be updated without a lock.
#[derive(Clone)]
pub struct PeerMetrics {
    pub sent_bytes: Arc<Counter>,
    pub received_bytes: Arc<Counter>,
    pub sent_failures: Arc<Counter>,
    pub received_failures: Arc<Counter>,
    pub round_trip: Arc<Histogram>,
}

impl NetworkMetrics {
    /// The numbers of the peer with this member ID.
    pub fn peer(&self, id: u64) -> PeerMetrics {
        let id = format!("{id:x}");
        PeerMetrics {
            sent_bytes: self.peer_sent_bytes.with(&[&id]),
            received_bytes: self.peer_received_bytes.with(&[&id]),
            sent_failures: self.peer_sent_failures.with(&[&id]),
            received_failures: self.peer_received_failures.with(&[&id]),
            round_trip: self.peer_round_trip.with(&[&id]),
        }
    }
}

room! {
    /// The gRPC proxy. A server that is no proxy shows them at zero.
    ProxyMetrics {
        watchers_coalescing: Gauge = gauge(), "etcd_grpc_proxy_watchers_coalescing_total", "Watchers that share an upstream watch.";
        events_coalescing: Counter = counter(), "etcd_grpc_proxy_events_coalescing_total", "Events saved by sharing upstream watches.";
        cache_keys: Gauge = gauge(), "etcd_grpc_proxy_cache_keys_total", "Keys and ranges in the proxy's cache.";
        cache_hits: Gauge = gauge(), "etcd_grpc_proxy_cache_hits_total", "Reads the proxy's cache answered.";
        cache_misses: Gauge = gauge(), "etcd_grpc_proxy_cache_misses_total", "Reads the proxy's cache could not answer.";
    }
}
