//! Collects the workers' claims to locks, and finds claims that cannot all be true.
//!
//! It knows nothing of ZooKeeper. A claim is the time between two moments at which a worker had verified that it holds a lock.
//! A claim that was never confirmed does not count, because the worker may have been stopped right after it.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// Claims that ended this long before the latest one are not compared any more. No worker is stopped for as long.
const KEPT: u64 = 20_000_000_000;

/// The timeout of all sessions, and the length of a server's tick.
pub(crate) const SESSION: Duration = Duration::from_secs(2);
pub(crate) const TICK: Duration = Duration::from_millis(500);
/// How late a holder may learn that an operator has deleted its node, on a busy machine: a quarter of a session timeout.
/// The promise is a tenth.
const LOSS_TIMEOUT: u64 = nanoseconds(SESSION) / 4;
/// A client that no server reaches learns nothing. Its lease ends half a session timeout after the server last heard from it.
const LEASE: u64 = nanoseconds(SESSION) / 2;

pub(crate) const fn nanoseconds(time: Duration) -> u64 {
    time.as_secs() * 1_000_000_000 + time.subsec_nanos() as u64
}

/// The way in which a lock is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// With nobody beside it.
    Alone,
    /// With others that share it.
    Shared,
    /// With this number of holders at once, including this one.
    Counted(usize),
}

impl Mode {
    fn excludes(self, other: Self) -> bool {
        self == Self::Alone || other == Self::Alone
    }
}

/// One hold of one worker. Times are nanoseconds of the machine's monotonic clock.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    pub(crate) worker: String,
    pub(crate) turn: u64,
    pub(crate) mode: Mode,
    /// 0 if its library has none.
    pub(crate) token: i64,
    pub(crate) node: String,
    pub(crate) begin: u64,
    /// Later than `begin` once it is confirmed.
    pub(crate) end: u64,
}

impl Claim {
    fn is_confirmed(&self) -> bool {
        self.end > self.begin
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.begin < other.end && other.begin < self.end
    }

    /// Whether both are turns on one node, which holders of one process pass on.
    fn shares_node(&self, other: &Self) -> bool {
        self.worker == other.worker && self.node == other.node
    }

    /// Its number in the queue, which its node's name ends with.
    fn number(&self) -> Option<i64> {
        self.node.get(self.node.len().checked_sub(10)?..)?.parse().ok()
    }

    fn text(&self) -> String {
        let [begin, end] = [self.begin, self.end].map(|time| time / 1_000);
        format!(
            "{} turn {} ({:?}, token {}, {}) from {begin} to {end} µs",
            self.worker, self.turn, self.mode, self.token, self.node
        )
    }
}

/// The problem with some claims.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum What {
    /// They overlap in time.
    Overlap,
    /// The later one does not have a greater token.
    Order,
}

/// Two claims, or more, that cannot all be true.
#[derive(Clone, Debug)]
pub(crate) struct Violation {
    pub(crate) what: What,
    /// The workers concerned.
    pub(crate) workers: Vec<String>,
    /// The claim among them with the lowest token. If not all have tokens, the one with the lowest number in the queue, or
    /// else the one that began first.
    pub(crate) stale: String,
    /// Whether an operator had deleted the node of the stale claim.
    pub(crate) is_by_operator: bool,
    /// When this lasted, as far as is known.
    pub(crate) from: u64,
    pub(crate) until: u64,
    pub(crate) text: String,
}

/// The claims of all paths.
#[derive(Debug, Default)]
pub(crate) struct Judge {
    claims: HashMap<String, Vec<Claim>>,
    /// The index of the violation, by path and claims.
    reported: HashMap<(String, String), usize>,
    /// Nodes that an operator deleted, at some time between these two. Their holders learn of that within a heartbeat; until then
    /// the next client may have the lock as well.
    deleted: HashMap<String, (u64, u64)>,
    /// The times when a fault was between the servers and this worker, or all workers.
    cut_off: Vec<(Option<String>, u64, u64)>,
    /// The longest time after a deletion at which its holder still claimed a lock that another had.
    pub(crate) told_after: u64,
    pub(crate) violations: Vec<Violation>,
    /// The number of confirmed claims, by worker.
    pub(crate) confirmed: BTreeMap<String, u64>,
}

impl Judge {
    /// Notes that a worker has verified that it holds.
    pub(crate) fn begins(&mut self, path: &str, claim: Claim) {
        let claims = self.claims.entry(path.to_owned()).or_default();
        // Not on every call, because there are thousands.
        if claims.first().is_some_and(|first| first.end + 2 * KEPT < claim.begin) {
            claims.retain(|old| old.end + KEPT > claim.begin);
        }
        claims.push(claim);
    }

    /// Notes that an operator has deleted this node, at some time between these two.
    pub(crate) fn deletes(&mut self, node: String, begin: u64, end: u64) {
        self.deleted.insert(node, (begin, end));
    }

    /// Notes a fault between the servers and this worker, or all workers.
    pub(crate) fn cuts_off(&mut self, worker: Option<&str>, from: u64, until: u64) {
        self.cut_off.push((worker.map(str::to_owned), from, until));
    }

    /// Ends the faults that had no end yet.
    pub(crate) fn are_mended(&mut self, at: u64) {
        self.cut_off.iter_mut().filter(|(.., until)| *until == u64::MAX).for_each(|(.., until)| *until = at);
    }

    /// How long this worker may go on claiming a node that was deleted at this time.
    fn allowed(&self, worker: &str, deleted: u64) -> u64 {
        let is_its = |who: &Option<String>| who.as_deref().is_none_or(|name| name == worker);
        let is_then = |from, until: u64| {
            from <= deleted + LOSS_TIMEOUT && deleted <= until.saturating_add(LOSS_TIMEOUT)
        };
        let is_cut_off = self.cut_off.iter().any(|(who, from, until)| is_its(who) && is_then(*from, *until));
        if is_cut_off { LEASE } else { LOSS_TIMEOUT }
    }

    /// Whether one of them has a node that an operator has deleted, and may not know that yet.
    fn may_not_know(&mut self, claims: [&Claim; 2]) -> bool {
        let shared = claims[0].end.min(claims[1].end);
        // The later holder's node may have been deleted as well, afterwards.
        claims.into_iter().any(|claim| {
            // Peers promise nothing, and do not count for what the report says of it.
            let deleted = self.deleted.get(&claim.node).copied().filter(|_| claim.token != 0);
            let Some((begin, end)) = deleted else { return false };
            if shared < begin {
                return false;
            }
            let late = shared.saturating_sub(end);
            self.told_after = self.told_after.max(late);
            late < self.allowed(&claim.worker, end)
        })
    }

    /// Notes that the worker has verified again that it holds.
    pub(crate) fn goes_on(&mut self, path: &str, worker: &str, turn: u64, until: u64) {
        let Some(claims) = self.claims.get_mut(path) else { return };
        let Some(at) = claims.iter().rposition(|claim| claim.worker == worker && claim.turn == turn) else {
            return;
        };
        let was_confirmed = claims[at].is_confirmed();
        claims[at].end = claims[at].end.max(until);
        if !claims[at].is_confirmed() {
            return;
        }
        if !was_confirmed {
            *self.confirmed.entry(worker.to_owned()).or_default() += 1;
        }
        // There is almost never an overlap, so only overlapping claims are copied.
        let claim = &claims[at];
        let others =
            || claims.iter().enumerate().filter(|(other, claim)| *other != at && claim.is_confirmed());
        let excluded = others().map(|(_, other)| other).filter(|other| other.mode.excludes(claim.mode));
        let at_odds =
            excluded.filter(|other| claim.overlaps(other) || !was_confirmed && is_stale(claim, other));
        let at_odds: Vec<_> = at_odds.cloned().collect();
        let mut crowded = Vec::new();
        if let Mode::Counted(limit) = claim.mode {
            let beside: Vec<_> =
                others().map(|(_, other)| other).filter(|other| claim.overlaps(other)).collect();
            crowded = crowd(claim, &beside, limit).unwrap_or_default().into_iter().cloned().collect();
        }
        let claim = claim.clone();
        for other in &at_odds {
            if !claim.overlaps(other) {
                self.report(path, What::Order, &[&claim, other], "have tokens in the wrong order");
            } else if !self.may_not_know([&claim, other]) {
                self.report(path, What::Overlap, &[&claim, other], "hold at the same time");
            }
        }
        if !crowded.is_empty() && crowded.iter().all(|other| !self.may_not_know([&claim, other])) {
            self.report(
                path,
                What::Overlap,
                &crowded.iter().collect::<Vec<_>>(),
                "hold more permits than there are",
            );
        }
    }

    fn report(&mut self, path: &str, what: What, claims: &[&Claim], text: &str) {
        let mut names: Vec<_> =
            claims.iter().map(|claim| format!("{}/{}", claim.worker, claim.turn)).collect();
        names.sort();
        let from = claims.iter().map(|claim| claim.begin).max().unwrap_or_default();
        let until = claims.iter().map(|claim| claim.end).min().unwrap_or_default();
        let known = *self.reported.entry((path.to_owned(), names.join(" "))).or_insert(self.violations.len());
        if let Some(violation) = self.violations.get_mut(known) {
            violation.until = until;
            return;
        }
        let all_have = claims.iter().all(|claim| claim.token != 0);
        let are_numbered = claims.iter().all(|claim| claim.number().is_some());
        let order = |claim: &&&Claim| match claim.number().filter(|_| are_numbered) {
            _ if all_have => (claim.token, claim.begin),
            number => (number.unwrap_or_default(), claim.begin),
        };
        let Some(stale) = claims.iter().min_by_key(order) else { return };
        let is_by_operator =
            self.deleted.get(&stale.node).is_some_and(|(begin, end)| stale.begin <= *end && *begin <= until);
        let texts: Vec<_> = claims.iter().map(|claim| claim.text()).collect();
        self.violations.push(Violation {
            what,
            workers: claims.iter().map(|claim| claim.worker.clone()).collect(),
            stale: stale.worker.clone(),
            is_by_operator,
            from,
            until,
            text: format!("{path}: {} {text}", texts.join(" and ")),
        });
    }
}

/// Whether the later claim does not have a greater token. Turns on one node have the same token.
fn is_stale(one: &Claim, other: &Claim) -> bool {
    let (first, second) = if one.begin < other.begin { (one, other) } else { (other, one) };
    let both_have = first.token != 0 && second.token != 0;
    both_have && (second.token < first.token || second.token == first.token && !first.shares_node(second))
}

/// The claims that overlap with this one at one moment, including it, if they exceed the limit.
fn crowd<'a>(claim: &'a Claim, beside: &[&'a Claim], limit: usize) -> Option<Vec<&'a Claim>> {
    let moments = std::iter::once(claim.begin).chain(beside.iter().map(|other| other.begin.max(claim.begin)));
    moments
        .map(|moment| {
            let at = |other: &&&Claim| other.begin <= moment && moment < other.end;
            beside.iter().filter(at).copied().chain([claim]).collect::<Vec<_>>()
        })
        .find(|crowd| crowd.len() > limit)
}
