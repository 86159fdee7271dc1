//! Random lives of a single voter: whatever is persisted, applied, lost and restarted, and in whatever
//! order, no entry is applied before it is durable, and the same entry stands at the same index for
//! ever once it was applied.

use bytes::Bytes;
use raft::{Config, Mark, ProposeError, Raft, Restored};
use raftpb::{ConfChange, ConfState, Entry, EntryKind, HardState};

#[test]
fn what_was_applied_stays() {
    for seed in 0..300 {
        Life::new(seed).live();
    }
}

/// What is on the disk.
#[derive(Clone, Default)]
struct Disk {
    hard_state: HardState,
    entries: Vec<Entry>,
}

struct Life {
    seed: u64,
    random: u64,
    raft: Raft,
    durable: Disk,
    written: Disk,
    /// Writes under way, oldest first, and the disk as it is when they are done.
    writes: Vec<(Mark, Disk)>,
    applying: Vec<Entry>,
    /// Everything ever applied. Survives restarts; `applied` may fall back to any earlier index.
    history: Vec<Entry>,
    applied: u64,
    conf_state: ConfState,
    accepted: u64,
}

fn config(seed: u64) -> Config {
    Config {
        id: 1,
        election_ticks: 10,
        heartbeat_ticks: 1,
        pre_vote: seed.is_multiple_of(2),
        check_quorum: true,
        seed,
        log_bytes_max: 2000,
    }
}

impl Life {
    fn new(seed: u64) -> Life {
        Life {
            seed,
            random: seed,
            raft: Raft::found(config(seed), &[(1, Bytes::from_static(b"one"))]).unwrap(),
            durable: Disk::default(),
            written: Disk::default(),
            writes: Vec::new(),
            applying: Vec::new(),
            history: Vec::new(),
            applied: 0,
            conf_state: ConfState::default(),
            accepted: 0,
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random =
            self.random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.random >> 33) % bound
    }

    fn live(mut self) {
        // The founding write is not lost here: without it there is no member to restart.
        self.ready();
        self.persist();
        for _ in 0..400 {
            match self.below(20) {
                0..5 => self.raft.tick(),
                5..9 => self.propose(),
                9..13 => self.ready(),
                13..16 => self.persist(),
                16..19 => self.apply(),
                _ if self.below(6) == 0 => self.restart(),
                _ => self.raft.compact(self.applied / 2),
            }
        }
        // Left in peace, it gets to work again.
        let before = self.accepted;
        for _ in 0..200 {
            self.raft.tick();
            self.propose();
            self.ready();
            self.persist();
            self.apply();
        }
        assert!(self.accepted > before, "seed {}: it never leads again", self.seed);
        let status = self.raft.status();
        assert_eq!(status.applied, self.history.len() as u64, "seed {}", self.seed);
        assert!(status.commit + 3 > status.last_index, "seed {}: {status:?}", self.seed);
    }

    fn propose(&mut self) {
        let data = Bytes::from(vec![b'x'; self.below(300) as usize]);
        let before = self.raft.status();
        match self.raft.propose(EntryKind::Normal, data) {
            Ok(index) => {
                self.accepted += 1;
                assert_eq!(index, before.last_index + 1);
            }
            Err(ProposeError::NotLeader { .. }) => assert_eq!(before.leader, None),
            Err(ProposeError::Full) => assert!(before.last_index > before.applied),
            Err(error) => panic!("seed {}: {error}", self.seed),
        }
    }

    fn ready(&mut self) {
        let ready = self.raft.ready();
        assert!(!self.raft.has_ready(), "seed {}: all is given at once", self.seed);
        self.written.entries.extend(ready.entries);
        self.written.hard_state = ready.hard_state.unwrap_or(self.written.hard_state);
        self.writes.push((ready.mark, self.written.clone()));
        for entry in ready.committed {
            let durable = self.durable.entries.get(entry.index as usize - 1);
            assert_eq!(durable, Some(&entry), "seed {}: applied before it is durable", self.seed);
            self.applying.push(entry);
        }
    }

    /// One or more of the writes are done; one mark stands for all before it.
    fn persist(&mut self) {
        if self.writes.is_empty() {
            return;
        }
        let done = self.below(self.writes.len() as u64) as usize;
        let (mark, disk) = self.writes.drain(..=done).next_back().unwrap();
        self.durable = disk;
        self.raft.persisted(mark);
    }

    fn apply(&mut self) {
        let count = self.below(self.applying.len() as u64 + 1) as usize;
        for entry in self.applying.drain(..count) {
            assert_eq!(entry.index, self.applied + 1, "seed {}: out of order", self.seed);
            self.applied = entry.index;
            match self.history.get(entry.index as usize - 1) {
                Some(before) => assert_eq!(*before, entry, "seed {}: changed", self.seed),
                None => self.history.push(entry.clone()),
            }
            if entry.kind == EntryKind::ConfChange {
                let change = ConfChange::decode(&entry.data).unwrap();
                self.conf_state = self.raft.apply_conf_change(&change);
            }
        }
        self.raft.applied(self.applied);
    }

    /// The machine crashes. The log keeps what was durable; the state machine, what it had committed.
    fn restart(&mut self) {
        let applied = self.applied - self.below(self.applied / 2 + 1);
        if applied == 0 {
            return;
        }
        self.applied = applied;
        self.written = self.durable.clone();
        self.writes.clear();
        self.applying.clear();
        let restored = Restored {
            hard_state: self.durable.hard_state,
            conf_state: self.conf_state.clone(),
            snapshot: (0, 0),
            entries: self.durable.entries.clone(),
            applied,
        };
        self.raft = Raft::new(config(self.below(1000)), restored).unwrap();
    }
}
