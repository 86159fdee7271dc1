//! The thread that steps the node: gather events, step, carry out the effects.

use crate::inbox::Inbox;
use crate::log_writer::Task;
use crate::mail::{DeskBox, Letter, Settled};
use crate::office::Office;
use crate::pulse::Pulse;
use api::Error;
use metrics::Metrics;
use node::{Effects, Event, IdSpace, Node, Notice, Now};
use raftpb::{Entry, HardState};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub struct Replica {
    pub node: Node,
    pub started: Instant,
    pub tick: Duration,
    pub events: Arc<Inbox<Event>>,
    pub log: Arc<Inbox<Task>>,
    pub applier: Arc<Inbox<Vec<Entry>>>,
    pub desks: Arc<[DeskBox]>,
    pub office: Office,
    pub pulse: Arc<Pulse>,
    pub ids: IdSpace,
    pub metrics: Arc<Metrics>,
    /// Called for what an operator may want to read.
    pub notice: Box<dyn FnMut(&Notice) + Send>,
}

impl Replica {
    /// Runs until the inbox is closed.
    pub fn run(mut self) {
        let mut events = Vec::new();
        // At once: a member that is alone stands for election with its first tick.
        let mut next_tick = Duration::ZERO;
        let mut unwritten: Option<HardState> = None;
        loop {
            let elapsed = self.started.elapsed();
            let patience = next_tick.saturating_sub(elapsed);
            if !self.events.receive(Some(patience), &mut events) {
                return;
            }
            let elapsed = self.started.elapsed();
            let now = Now(elapsed.as_micros() as u64);
            let mut effects = Effects::default();
            for event in events.drain(..) {
                self.node.step(now, event, &mut effects);
            }
            if elapsed >= next_tick {
                // After a pause of the process one tick is enough: time itself comes with `now`.
                next_tick = elapsed + self.tick;
                self.node.step(now, Event::Tick, &mut effects);
            }
            self.node.finish(now, &mut effects);
            self.carry_out(effects, &mut unwritten);
        }
    }

    fn carry_out(&mut self, effects: Effects, unwritten: &mut Option<HardState>) {
        // Published before anything is applied or answered, so that whoever has seen an answer
        // also sees its commit index.
        self.pulse.set_raft(&self.node.status(), self.node.sole_read_index());
        let mut persist = effects.persist;
        persist.hard_state = persist.hard_state.or(unwritten.take());
        if persist.must_sync {
            self.log.send(Task::Persist(persist));
        } else {
            // A commit index alone goes with whatever is written next: after a crash it is found
            // out again, so nobody is woken for it.
            *unwritten = persist.hard_state;
        }
        if !effects.apply.is_empty() {
            self.applier.send(effects.apply);
        }
        if !effects.answers.is_empty() {
            let mut by_desk: Vec<Vec<_>> = self.desks.iter().map(|_| Vec::new()).collect();
            for (asker, answer) in effects.answers {
                by_desk[asker.desk].push((asker.token, answer));
            }
            for (desk, answers) in self.desks.iter().zip(by_desk) {
                if !answers.is_empty() {
                    desk.send(Letter::Answers(answers));
                }
            }
        }
        for refused in effects.refused {
            self.refuse(refused);
        }
        for notice in &effects.notices {
            (self.notice)(notice);
        }
    }

    /// Nobody leads, so the proposal was dropped before it was anywhere: say so at once.
    fn refuse(&self, id: u64) {
        self.metrics.server.proposals_failed.inc();
        let desk = self.ids.desk_of(id);
        let settled = vec![Settled { id, result: Err(Error::PROPOSAL_DROPPED) }];
        match self.desks.get(desk) {
            Some(desk) => desk.send(Letter::Settled(settled)),
            None => self.office.settle(settled),
        }
    }
}
