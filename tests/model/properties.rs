//! What must hold: the promises of a lock, as far as the machine keeps them.

use super::client::{Caller, Client};
use super::explorer::Violation;
use super::setup::TIMEOUT;
use super::world::Scene;

impl Scene {
    /// What holds at the moment of a grant.
    pub(crate) fn judge_grant(&mut self, number: usize, name: &str, czxid: i64) {
        let now = self.now();
        let client = &self.clients[number];
        let session = client.session.as_ref();
        if session.is_none_or(|session| session.lease_until() <= now) {
            self.violate("live lease", format!("{name} is granted without a live lease"));
        }
        let head = self.ensemble.head();
        let own = head.find(name).filter(|child| child.czxid == czxid && child.client == number);
        let client = &self.clients[number];
        if own.is_some() {
            if let Some(other) = head.children.iter().find(|other| other.czxid < czxid) {
                let detail = format!("{name} is granted before {}", other.name);
                self.violate("fair", detail);
            }
            if czxid <= self.last_token {
                self.violate("fenced", format!("token {czxid} after {}", self.last_token));
            }
            self.last_token = czxid;
        } else if let (Some(removed), Some((proof, is_latest))) = (client.removed, client.proof) {
            // A proof that was long on its way will do, but not one that has been kept.
            if removed < proof || now.since(proof) > TIMEOUT / 10 && !is_latest {
                self.violate("own node", format!("{name} is granted and was deleted at {removed:?}"));
            }
            // The holder is told by its first heartbeat.
            self.clients[number].removed = Some(now);
        } else {
            self.violate("own node", format!("{name} is granted and is not there"));
        }
    }

    /// No node is watched by two: its end would wake both, and one of them for nothing. Whoever does
    /// not know yet that its own node is gone may still watch.
    fn check_herd(&self) -> Result<(), Violation> {
        let waits = |client: &&Client| {
            client.caller == Caller::Wants
                && client.removed.is_none()
                && client.session.as_ref().is_some_and(|session| session.expired.is_none())
        };
        let watched = || self.clients.iter().filter(waits).filter_map(|client| client.watch.as_ref());
        for (number, watch) in watched().enumerate() {
            if watched().skip(number + 1).any(|other| other.name == watch.name) {
                return Err(Violation { property: "no herd", detail: format!("two watch {}", watch.name) });
            }
        }
        Ok(())
    }

    /// Whether this client's caller relies on its hold, and may. A holder whose node an operator
    /// deleted is told within a heartbeat and does not count until then.
    fn holds(&self, client: &Client) -> bool {
        let Caller::Holds(czxid) = client.caller else { return false };
        let now = self.now();
        let live = client.session.as_ref().is_some_and(|session| session.lease_until() > now);
        let is_there = || self.ensemble.head().children.iter().any(|child| child.czxid == czxid);
        let excused = client.removed.is_some_and(|at| now.since(at) <= TIMEOUT / 10) && !is_there();
        live && !excused
    }

    /// What holds in every state.
    pub(crate) fn check_properties(&self) -> Result<(), Violation> {
        if let Some(violation) = &self.violation {
            return Err(violation.clone());
        }
        let holders = self.clients.iter().filter(|client| self.holds(client)).count();
        if holders > 1 {
            return Err(Violation { property: "exclusive", detail: format!("{holders} live holds") });
        }
        self.check_herd()?;
        for (number, client) in self.clients.iter().enumerate() {
            let mut nodes = self.ensemble.head().children.iter().filter(|child| child.client == number);
            let ownerless = nodes.find(|child| child.attempt != client.attempt || client.contender.is_gone());
            if let Some(child) = ownerless {
                let detail = format!("{} is there and its contender is gone", child.name);
                return Err(Violation { property: "nothing left behind", detail });
            }
            if client.contender.is_gone() && client.will_create() {
                let detail = format!("a node of client {number} will come, and its contender is gone");
                return Err(Violation { property: "nothing left behind", detail });
            }
        }
        Ok(())
    }

    /// What holds when nobody does anything any more: every attempt has come to its end.
    pub(crate) fn check_end(&self) -> Result<(), Violation> {
        for (number, client) in self.clients.iter().enumerate() {
            if !client.is_through(self.setup.attempts) {
                let detail = format!("client {number} waits for ever: {:?}", client.caller);
                return Err(Violation { property: "end", detail });
            }
        }
        Ok(())
    }
}
