//! The properties of a double barrier: its members begin together and end together, and leave nothing behind.

use super::client::Caller;
use super::ensemble::Child;
use super::explorer::Violation;
use super::setup::Faults;
use super::subject::Told;
use super::world::Scene;

impl Scene {
    /// The nodes of the members of the barrier at which this client is.
    fn members(&self, number: usize) -> impl Iterator<Item = &Child> {
        let directory = self.ensemble.head().directory(self.setup.plans[number].wants[0].queue);
        let children = directory.into_iter().flat_map(|directory| &directory.children);
        children.filter(|child| child.owner.client < self.clients.len())
    }

    /// Whether the barrier was opened for the owner of this node while the node was there.
    fn is_within(&self, member: &Child) -> bool {
        let owner = &self.clients[member.owner.client];
        owner.attempt == member.owner.attempt && owner.opened.is_some_and(|opened| opened > member.czxid)
    }

    fn is_there(&self, number: usize, client: usize, czxid: i64) -> bool {
        self.members(number).any(|child| child.owner.client == client && child.czxid == czxid)
    }

    /// This client has just opened the barrier: for enough members, or for a round that goes on.
    pub(crate) fn judge_opening(&mut self, number: usize) {
        let members = self.setup.plans[number].wants[0].members().unwrap_or(0);
        let there = self.members(number).count();
        let goes_on = self.members(number).any(|child| self.is_within(child));
        if there < members as usize && !goes_on {
            self.violate("begin together", format!("client {number} opens for {there} of {members}"));
        }
        let zxid = self.ensemble.zxid();
        let begins =
            self.members(number).filter(|child| !self.is_within(child)).map(|child| child.owner.client);
        for client in begins.collect::<Vec<_>>() {
            self.clients[client].opened = Some(zxid);
        }
    }

    pub(crate) fn hear_of_barrier(&mut self, number: usize, told: &Told) {
        let client = &mut self.clients[number];
        let awaited =
            if *told == Told::Entered || *told == Told::NotOpen { Caller::Wants } else { Caller::Leaves };
        if client.caller != awaited && *told != Told::Failed {
            let detail = format!("{told:?} to a caller that is {:?}", client.caller);
            return self.violate("one answer", detail);
        }
        let (is_open, is_removed) = (client.opened.is_some(), !client.removed.is_empty());
        client.caller = if *told == Told::Entered { Caller::Within } else { Caller::Ended };
        client.is_untidy |= !matches!(told, Told::Entered | Told::Left);
        match told {
            Told::Entered if !is_open => {
                self.violate("begin together", format!("client {number} is within before it was opened"));
            }
            Told::Left => self.judge_leave(number),
            Told::Lost if !is_removed && self.lines[number].is_live() => {
                self.violate("lost", format!("client {number} is told so, and nobody deleted its node"));
            }
            _ => {}
        }
    }

    /// A member has just left, and has deleted `ready`. It was the last of its round when it looked, but another may have joined
    /// since then: ZooKeeper has no transaction that rules this out. From then on nothing shows who is within, and nothing is
    /// certain until the next round.
    pub(crate) fn judge_end_of_round(&mut self, number: usize) {
        let goes_on = self.members(number).any(|child| self.is_within(child));
        self.is_cut_short |= goes_on;
    }

    /// The caller releases its hold, or leaves.
    pub(crate) fn release(&mut self, number: usize) {
        if self.clients[number].caller != Caller::Within {
            return self.give_back(number, false);
        }
        // It does not wait for members of which its server may not know yet.
        let seen = self.lines[number].floor;
        let counts = |child: &&Child| {
            let opened = self.clients[child.owner.client].opened;
            let is_known = opened.is_some_and(|opened| opened <= seen);
            child.owner.client != number && self.is_within(child) && is_known
        };
        let company = self.members(number).filter(counts).map(|child| (child.owner.client, child.czxid));
        self.clients[number].company = company.collect();
        self.clients[number].leave();
    }

    /// Checks that nobody has left while a member that was within is there.
    fn judge_leave(&mut self, number: usize) {
        let mut company = self.clients[number].company.iter().filter(|_| !self.is_cut_short);
        if let Some((other, _)) = company.find(|(client, czxid)| self.is_there(number, *client, *czxid)) {
            self.violate("end together", format!("client {number} has left, and client {other} has not"));
        }
    }

    /// Checks the properties when nobody does anything but stay within, or nobody does anything at all.
    pub(crate) fn check_members(&self, is_end: bool) -> Result<(), Violation> {
        if self.is_cut_short {
            return Ok(());
        }
        for (number, client) in self.clients.iter().enumerate().filter(|(number, _)| !self.is_done(*number)) {
            let members = self.setup.plans[number].wants[0].members().unwrap_or(0);
            let is_own = |child: &&Child| child.owner.client == number;
            let is_open = self.members(number).any(|child| self.is_within(child));
            let may_wait = match client.caller {
                Caller::Wants => {
                    let there = self.members(number).count();
                    self.members(number).any(|child| is_own(&child)) && there < members as usize && !is_open
                }
                Caller::Leaves => {
                    !is_end && self.members(number).any(|child| !is_own(&child) && self.is_within(child))
                }
                Caller::Within => !is_end,
                _ => false,
            };
            if !may_wait {
                let detail = format!("client {number} waits for ever: {:?}", client.caller);
                return Err(Violation { property: "end", detail });
            }
        }
        let are_done = (0..self.clients.len()).all(|number| self.is_done(number));
        if is_end && are_done && self.is_undisturbed() {
            if let Some((_, child)) = self.ensemble.head().children().next() {
                let detail = format!("{} is there, and all have left", child.name);
                return Err(Violation { property: "nothing left behind", detail });
            }
        }
        Ok(())
    }

    /// Whether nothing but connections has failed. `ready` is left behind if members die or leave without waiting for each
    /// other, or if one comes late and a server that is behind does not know yet that it has left.
    fn is_undisturbed(&self) -> bool {
        let members = self.setup.plans[0].wants[0].members().unwrap_or(0);
        if self.clients.len() != members as usize || self.clients.iter().any(|client| client.is_untidy) {
            return false;
        }
        let but_connections = |faults: Faults| Faults { losses: 0, twins: 0, changes: 0, steps: 0, ..faults };
        but_connections(self.faults) == but_connections(self.setup.faults)
    }
}
