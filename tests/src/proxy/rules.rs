//! Decides how a proxy treats the data that passes: the active faults and the triggers.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::hook::{Action, Armed, Direction, Gate, Outcome, Trigger};
use super::message::{Greeting, Kind, Message, Recorder, Side};
use super::shared::Shared;

/// The active faults, for all connections of a proxy.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) recorder: Recorder,
    pub(super) greetings: Vec<Greeting>,
    frozen: [bool; 2],
    pub(super) delay: Duration,
    armed: Vec<Armed>,
    doomed: Vec<Doomed>,
    last_hook: u64,
    pub(super) last_seen: u64,
    proxy: Weak<Shared>,
}

/// A request whose reply is to be dropped.
#[derive(Debug)]
struct Doomed {
    connection: u64,
    kind: Kind,
    xid: i32,
    outcome: Outcome,
}

/// The decision about a message.
#[derive(Debug)]
pub(super) enum Verdict {
    Pass,
    /// Put it back into the queue, until the direction is thawed or the gate is open.
    Hold(Option<Gate>),
    Swallow,
    /// Drop it and reset the client.
    HangUp,
}

impl Rules {
    pub(super) fn new(proxy: Weak<Shared>) -> Self {
        Self {
            recorder: Recorder::default(),
            greetings: Vec::new(),
            frozen: [false; 2],
            delay: Duration::ZERO,
            armed: Vec::new(),
            doomed: Vec::new(),
            last_hook: 0,
            last_seen: 0,
            proxy,
        }
    }

    pub(super) fn is_frozen(&self, side: Side) -> bool {
        self.frozen[side as usize]
    }

    pub(super) fn freeze(&mut self, direction: Direction) {
        for side in Side::BOTH {
            self.frozen[side as usize] |= direction.covers(side);
        }
    }

    pub(super) fn thaw(&mut self) {
        self.frozen = [false; 2];
    }

    pub(super) fn arm(&mut self, trigger: Trigger) -> (u64, Outcome) {
        self.last_hook += 1;
        let outcome = Outcome::default();
        assert!(trigger.nth > 0, "the next message is number 1");
        self.armed.push(Armed { id: self.last_hook, trigger, outcome: Arc::clone(&outcome) });
        (self.last_hook, outcome)
    }

    pub(super) fn disarm(&mut self, hook: u64) {
        self.armed.retain(|armed| armed.id != hook);
    }

    pub(super) fn greet(&mut self, greeting: Greeting) {
        self.greetings.retain(|(session, ..)| *session != greeting.0);
        self.greetings.push(greeting);
    }

    /// Decides on a message that is about to pass: once for each message, not counting those that a freeze holds. The
    /// second value is the hook to notify when the decision has been carried out.
    pub(super) fn judge(&mut self, message: &Message, body: &mut Vec<u8>) -> (Verdict, Vec<Outcome>) {
        let mut verdict = Verdict::Pass;
        let mut told = Vec::new();
        let answered = |doomed: &Doomed| {
            message.side == Side::Reply
                && (doomed.connection, doomed.kind, doomed.xid)
                    == (message.connection, message.kind, message.xid)
        };
        while let Some(at) = self.doomed.iter().position(answered) {
            verdict = Verdict::HangUp;
            told.push(self.doomed.swap_remove(at).outcome);
        }
        let due = |armed: &mut Armed| {
            let matches = armed.trigger.matches(message);
            armed.trigger.nth -= usize::from(matches);
            matches && armed.trigger.nth == 0
        };
        let mut fired = Vec::new();
        for mut armed in std::mem::take(&mut self.armed) {
            if due(&mut armed) { fired.push(armed) } else { self.armed.push(armed) }
        }
        for armed in fired {
            let of_request = matches!(armed.trigger.action, Action::DropReplyAndReset);
            if of_request && message.side == Side::Request {
                self.doomed.push(Doomed {
                    connection: message.connection,
                    kind: message.kind,
                    xid: message.xid,
                    outcome: armed.outcome,
                });
                continue;
            }
            // If several hooks strike at one message, the first that stops it decides.
            match (self.act(armed.trigger.action, message, body), &verdict) {
                (Verdict::Pass, _) => {}
                (stopped, Verdict::Pass) => verdict = stopped,
                _ => {}
            }
            told.push(armed.outcome);
        }
        (verdict, told)
    }

    fn act(&mut self, action: Action, message: &Message, body: &mut Vec<u8>) -> Verdict {
        match action {
            Action::Pass => Verdict::Pass,
            Action::DropReplyAndReset | Action::DropAndReset => Verdict::HangUp,
            Action::Swallow => Verdict::Swallow,
            Action::Freeze(direction) => {
                self.freeze(direction);
                if direction.covers(message.side) { Verdict::Hold(None) } else { Verdict::Pass }
            }
            Action::Pause(gate) => {
                gate.wakes(&self.proxy);
                Verdict::Hold(Some(gate))
            }
            Action::Rewrite(mut rewriter) => {
                rewriter(body);
                Verdict::Pass
            }
        }
    }
}
