//! Nodes that are passed on within a process: their holders, nodes that linger without one, and the properties of both.
//!
//! A node's time only runs out here if nobody can notice a waiter. Otherwise that would hide that a waiter was not noticed.

use super::client::{Caller, Client};
use super::ensemble::Child;
use super::explorer::Violation;
use super::machine::turns::Turns;
use super::setup::TIMEOUT;
use super::subject::Sort;
use super::world::Scene;

/// The state of a client's node within its process.
#[derive(Clone, Hash, Debug)]
pub(crate) struct Passed {
    pub(crate) turns: Turns,
    /// The number of its holders.
    holders: u8,
    /// Whether it was left to a caller that waits.
    is_awaited: bool,
    /// How many callers have taken it since the process was told that others wait.
    since_wanted: Option<u8>,
}

impl Scene {
    /// A client has just been granted its lock. If its node will be passed on, it asks who else waits.
    pub(super) fn begin_passing(&mut self, number: usize) {
        let plan = &self.setup.plans[number];
        let Some(passes) = plan.passes else { return };
        let is_shared = plan.wants.iter().all(|want| want.sort == Sort::Read);
        let turns = Turns::new(passes, is_shared);
        let client = &mut self.clients[number];
        client.passed = Some(Passed { turns, holders: 1, is_awaited: false, since_wanted: None });
        client.contender.handle_notice();
    }

    /// A holder releases. Another caller of its process may wait for the node.
    pub(super) fn give_back(&mut self, number: usize, awaits: bool) {
        let now = self.now();
        let client = &mut self.clients[number];
        let (Some(passed), Caller::Holds(nodes)) = (&mut client.passed, &client.caller) else {
            return client.end();
        };
        let is_over = passed.turns.give_back(awaits, now);
        passed.holders -= 1;
        passed.is_awaited = awaits && !is_over;
        match (is_over, passed.holders) {
            (false, 0) => client.caller = Caller::Lingers(nodes.clone()),
            (true, 0) => client.end(),
            (false, _) => {}
            (true, holders) => {
                self.violate("passed on", format!("client {number} gives up what {holders} of it hold"));
            }
        }
    }

    pub(super) fn pass(&mut self, number: usize) {
        self.faults.takes -= 1;
        self.give_back(number, true);
    }

    /// Whether another caller of this client's process would take over its node. Every new caller asks this, in any state of
    /// the node.
    pub(super) fn may_take(&self, number: usize) -> bool {
        let session = self.lines[self.line_of(number)].session.as_ref();
        let is_proven = session.is_some_and(|session| session.lease_until() > self.now());
        let passed = self.clients[number].passed.as_ref();
        is_proven && passed.is_some_and(|passed| passed.turns.may_take())
    }

    /// Whether a caller of its process is about to take over this client's node.
    pub(super) fn is_awaited(&self, number: usize) -> bool {
        self.clients[number].passed.as_ref().is_some_and(|passed| passed.is_awaited)
    }

    /// Whether this client keeps a node that nobody holds, and no caller of its process is about to take.
    pub(crate) fn is_idle(&self, number: usize) -> bool {
        let is_taken_next = self.is_awaited(number) && self.may_take(number);
        matches!(self.clients[number].caller, Caller::Lingers(_)) && !is_taken_next
    }

    /// The caller of this client gives up, or the caller to which its node was left.
    pub(super) fn cancel(&mut self, number: usize) {
        let client = &mut self.clients[number];
        match client.passed.as_mut().filter(|passed| passed.is_awaited) {
            Some(passed) => {
                passed.is_awaited = false;
                if passed.turns.handle_untaken() {
                    client.end();
                }
            }
            None => client.end(),
        }
    }

    /// Whether the time of an idle node may run out: an operator has deleted the node of a waiter, so that nobody can notice
    /// that waiter.
    pub(super) fn has_time_to_go(&self, number: usize) -> bool {
        let is_unseen = |client: &Client| client.caller == Caller::Wants && !client.removed.is_empty();
        self.is_idle(number) && self.clients.iter().any(is_unseen)
    }

    /// The time of a node without a holder is over.
    pub(super) fn time_out(&mut self, number: usize) {
        let later = self.now() + TIMEOUT;
        let client = &mut self.clients[number];
        if client.passed.as_mut().is_some_and(|passed| passed.turns.handle_timeout(later)) {
            client.end();
        } else {
            self.violate("passed on", format!("client {number} keeps what nobody has had for so long"));
        }
    }

    pub(super) fn take(&mut self, number: usize) {
        let plan = &self.setup.plans[number];
        let in_a_row = plan.passes.map_or(1, |passes| passes.turns);
        let is_shared = plan.wants.iter().all(|want| want.sort == Sort::Read);
        let client = &mut self.clients[number];
        let Some(passed) = &mut client.passed else { return };
        if !passed.is_awaited {
            self.faults.takes -= 1;
        }
        passed.is_awaited = false;
        if !passed.turns.take() {
            return;
        }
        passed.holders += 1;
        passed.since_wanted = passed.since_wanted.map(|taken| taken + 1);
        // One caller had it when the process was told.
        let are_too_many = passed.since_wanted.is_some_and(|taken| u32::from(taken) >= in_a_row);
        match client.caller.clone() {
            Caller::Lingers(nodes) => client.caller = Caller::Holds(nodes),
            Caller::Holds(_) if is_shared => {}
            Caller::Holds(nodes) => {
                self.violate("exclusive", format!("two of client {number} hold {nodes:?}"));
            }
            caller => self.violate("passed on", format!("taken over from client {number}: {caller:?}")),
        }
        if are_too_many {
            self.violate("turns", format!("client {number} has it more than {in_a_row} times in a row"));
        }
    }

    /// A client is told that others wait for its lock.
    pub(super) fn hear_wanted(&mut self, number: usize) {
        // A client that may not see whether others wait is told so, too.
        let is_refused = self.faults.refusals < self.setup.faults.refusals;
        let client = &mut self.clients[number];
        let (keeps, was_wanted) = (client.kept().is_some(), client.was_wanted);
        let Some(passed) = client.passed.as_mut().filter(|passed| keeps && passed.since_wanted.is_none())
        else {
            return self.violate("wanted", format!("client {number} is told so, and cannot use it"));
        };
        passed.since_wanted = Some(0);
        let holders = passed.holders;
        if passed.turns.handle_wanted() {
            client.end();
            if holders > 0 {
                self.violate("passed on", format!("client {number} gives up what {holders} of it hold"));
            }
        }
        if !was_wanted && !is_refused {
            self.violate("wanted", format!("client {number} is told so, and nobody waits for it"));
        }
    }

    /// A client learns that a node which it holds or keeps has been deleted.
    pub(super) fn hear_deleted(&mut self, number: usize) {
        // The end of its session may have deleted it, too.
        let is_there = |node: &String| self.own_child(number, node).is_some();
        if self.clients[number].kept().is_none_or(|nodes| nodes.iter().all(is_there)) {
            self.violate(
                "told",
                format!("client {number} is told that its node is deleted, and it is there"),
            );
        }
        self.clients[number].end();
    }

    /// Notes the clients that may be told that others wait.
    pub(super) fn note_who_is_wanted(&mut self) {
        for number in 0..self.clients.len() {
            let passes = self.setup.plans[number].passes.is_some();
            if passes && !self.clients[number].was_wanted {
                self.clients[number].was_wanted = self.has_rivals_behind(number) || self.was_asked(number);
            }
        }
    }

    /// Checks, while nobody does anything but hold, that a holder knows if others wait.
    pub(crate) fn check_told(&self) -> Result<(), Violation> {
        // A client that may not read its own node does not learn of requests in its data.
        let may_read = self.faults.refusals == self.setup.faults.refusals;
        let is_untold = |number: &usize| {
            let client = &self.clients[*number];
            let is_asked = client.passed.as_ref().is_some_and(|passed| passed.since_wanted.is_none());
            let holds = matches!(client.caller, Caller::Holds(_)) && client.removed.is_empty();
            is_asked && holds && (self.has_rivals_behind(*number) || may_read && self.is_revoked(client))
        };
        // One that asked learns of the end of its node, too, before any heartbeat.
        let keeps_nothing = |number: &usize| {
            let client = &self.clients[*number];
            // One that pauses looks again after that.
            let has_asked = client.passed.is_some() && client.contender.poll_timeout().is_none();
            has_asked && may_read && self.lost_nodes(*number).next().is_some()
        };
        self.check_that_no_client(keeps_nothing, "told", |number| {
            format!("client {number} is not told that its node is deleted")
        })?;
        self.check_that_no_client(is_untold, "wanted", |number| {
            format!("client {number} is not told that others wait")
        })
    }

    /// Whether a node of this client asks it to release.
    fn is_revoked(&self, client: &Client) -> bool {
        let head = self.ensemble.head();
        let asks = |node: &String| head.find(node).is_some_and(|child| child.is_revoked);
        client.kept().is_some_and(|nodes| nodes.iter().any(asks))
    }

    /// Whether any node of this client asks for that, even if it holds nothing yet.
    fn was_asked(&self, number: usize) -> bool {
        let mut children = self.ensemble.head().children();
        children.any(|(_, child)| child.is_revoked && child.owner.client == number)
    }

    /// Whether contenders that exclude this client queue behind it in one of its queues.
    fn has_rivals_behind(&self, number: usize) -> bool {
        self.setup.plans[number].wants.iter().any(|want| {
            let mut children = self.ensemble.head().children_of(want.queue);
            let is_before = |child: &Child| self.before(number, want.queue).any(|other| other == child);
            children.any(|child| {
                let rival = child.owner.client;
                let excludes = self.want(rival, want.queue).is_some_and(|other| want.excludes(other));
                self.line_of(rival) != self.line_of(number) && excludes && !is_before(child)
            })
        })
    }
}
