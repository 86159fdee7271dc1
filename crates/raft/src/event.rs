//! What an operator reads in the log about elections and configurations.

use raftpb::ConfState;

/// Something worth a line in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Campaigning {
        term: u64,
    },
    /// It would be time for an election, but changes of the configuration wait to be applied.
    CampaignPutOff {
        term: u64,
    },
    BecamePreCandidate {
        term: u64,
    },
    BecameCandidate {
        term: u64,
    },
    BecameFollower {
        term: u64,
    },
    BecameLeader {
        term: u64,
    },
    /// A leader that does not hear from a quorum gives up.
    SteppedDown {
        term: u64,
    },
    LeaderElected {
        leader: u64,
        term: u64,
    },
    LeaderLost {
        leader: u64,
        term: u64,
    },
    ConfigSwitched {
        conf_state: ConfState,
    },
}

impl Event {
    /// The line as etcd writes it about member `id`.
    pub fn line(&self, id: u64) -> String {
        match self {
            Event::Campaigning { term } => {
                format!("{id:x} is starting a new election at term {term}")
            }
            Event::CampaignPutOff { term } => format!(
                "{id:x} cannot campaign at term {term} since there are still pending configuration \
                 changes to apply"
            ),
            Event::BecamePreCandidate { term } => {
                format!("{id:x} became pre-candidate at term {term}")
            }
            Event::BecameCandidate { term } => format!("{id:x} became candidate at term {term}"),
            Event::BecameFollower { term } => format!("{id:x} became follower at term {term}"),
            Event::BecameLeader { term } => format!("{id:x} became leader at term {term}"),
            Event::SteppedDown { .. } => {
                format!("{id:x} stepped down to follower since quorum is not active")
            }
            Event::LeaderElected { leader, term } => {
                format!("raft.node: {id:x} elected leader {leader:x} at term {term}")
            }
            Event::LeaderLost { leader, term } => {
                format!("raft.node: {id:x} lost leader {leader:x} at term {term}")
            }
            Event::ConfigSwitched { conf_state } => {
                let voters = list(&conf_state.voters);
                let mut line = format!("{id:x} switched to configuration voters=({voters})");
                if !conf_state.learners.is_empty() {
                    line += &format!(" learners=({})", list(&conf_state.learners));
                }
                line
            }
        }
    }
}

fn list(ids: &[u64]) -> String {
    let ids: Vec<String> = ids.iter().map(u64::to_string).collect();
    ids.join(" ")
}
