//! The holds of all clients. They are checked at one moment, in which nothing else happens.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use zklock::Hold;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    Alone,
    Shared,
    /// With this number of holders at once, including this one.
    Counted(usize),
}

struct Claim {
    path: &'static str,
    mode: Mode,
    client: usize,
    /// The session of its client when it began.
    session: Option<i64>,
    hold: Rc<Hold>,
    /// The last moment that an answer has named. Somebody may have asked once, and rely on that to its end.
    named: Duration,
    /// Whether an operator has deleted its node or session: it learns of that soon, and until then others may have the lock.
    is_forgiven: bool,
}

/// The claims of all clients, and their contradictions.
#[derive(Default)]
pub(crate) struct Claims {
    claims: BTreeMap<u64, Claim>,
    last: u64,
    /// The greatest token of each path: of holders that were alone, and of any.
    alone: BTreeMap<&'static str, u64>,
    any: BTreeMap<&'static str, u64>,
    /// Sessions and nodes that operators have deleted.
    ended: BTreeSet<i64>,
    deleted: BTreeSet<String>,
    pub(crate) grants: u64,
    pub(crate) violations: Vec<String>,
}

impl Claims {
    /// Notes that somebody holds. The result ends the claim.
    pub(crate) fn begin(
        &mut self,
        path: &'static str,
        mode: Mode,
        (client, session): (usize, Option<i64>),
        hold: Rc<Hold>,
        now: Duration,
    ) -> u64 {
        let token = hold.token().value();
        // The grant may be from before an operator's deletion, but be delivered after it.
        let is_forgiven = session.is_some_and(|session| self.ended.contains(&session))
            || hold.nodes().any(|node| self.deleted.contains(node));
        // A late grant may be over already. Then it counts as if it had not been granted.
        if !hold.valid_for().is_zero() && !is_forgiven {
            let before = if mode == Mode::Alone { self.any.get(path) } else { self.alone.get(path) };
            let is_counted = matches!(mode, Mode::Counted(_));
            if let Some(before) = before.filter(|before| **before > token && !is_counted) {
                self.violations.push(format!("at {now:?} {path}: token {token} after {before}"));
            }
            for (greatest, counts) in [(&mut self.any, true), (&mut self.alone, mode == Mode::Alone)] {
                let greatest = greatest.entry(path).or_default();
                *greatest = if counts { token.max(*greatest) } else { *greatest };
            }
        }
        self.grants += 1;
        self.last += 1;
        let named = now + hold.valid_for();
        self.claims.insert(self.last, Claim { path, mode, client, session, hold, named, is_forgiven });
        self.last
    }

    /// Returns the last moment up to which somebody may rely on this claim.
    pub(crate) fn named(&self, claim: u64) -> Duration {
        self.claims.get(&claim).filter(|claim| !claim.is_forgiven).map_or(Duration::ZERO, |claim| claim.named)
    }

    pub(crate) fn end(&mut self, claim: u64) {
        self.claims.remove(&claim);
    }

    /// Forgets a client that was killed.
    pub(crate) fn forget(&mut self, client: usize) {
        self.claims.retain(|_, claim| claim.client != client);
    }

    /// Notes that an operator ends a session.
    pub(crate) fn forgive_session(&mut self, session: i64) {
        self.ended.insert(session);
        for claim in self.claims.values_mut() {
            claim.is_forgiven |= claim.session == Some(session);
        }
    }

    pub(crate) fn is_deleted(&self, node: &str) -> bool {
        self.deleted.contains(node)
    }

    /// Notes that an operator deletes a node.
    pub(crate) fn forgive_node(&mut self, node: &str) {
        self.deleted.insert(node.to_owned());
        for claim in self.claims.values_mut() {
            claim.is_forgiven |= claim.hold.nodes().any(|held| held == node);
        }
    }

    /// Asks all holds how long they last, and looks for some that exclude each other, all at this moment.
    pub(crate) fn look(&mut self, now: Duration) {
        for claim in self.claims.values_mut() {
            claim.named = claim.named.max(now + claim.hold.valid_for());
        }
        let is_valid = |claim: &&Claim| !claim.is_forgiven && now < claim.named;
        let valid: Vec<_> = self.claims.values().filter(is_valid).collect();
        for (index, claim) in valid.iter().enumerate() {
            let beside: Vec<_> = valid[..index].iter().filter(|other| other.path == claim.path).collect();
            let is_wrong = match claim.mode {
                Mode::Counted(limit) => beside.len() + 1 > limit,
                Mode::Alone => !beside.is_empty(),
                Mode::Shared => beside.iter().any(|other| other.mode == Mode::Alone),
            };
            if is_wrong {
                let all: Vec<_> = beside.iter().chain([&claim]).map(|claim| text(claim, now)).collect();
                self.violations.push(format!("at {now:?} {}: {}", claim.path, all.join(" and ")));
                return;
            }
        }
    }
}

fn text(claim: &Claim, now: Duration) -> String {
    let Claim { client, mode, hold, named, .. } = claim;
    let (node, state) = (hold.node(), hold.state());
    format!(
        "client {client} was told to hold it ({mode:?}, {node}) for {:?} more, and is {state:?}",
        *named - now
    )
}
