//! How long a lock was free while somebody waited for it, and how much of that the faults explain.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::judge::{SESSION, TICK, nanoseconds};

/// How long the next client may take without a fault.
const AT_ONCE: u64 = 1_000_000_000;

/// A fault, or a time in which this machine stood still.
#[derive(Clone, Debug)]
pub(crate) struct Struck {
    pub(crate) name: &'static str,
    pub(crate) whom: Whom,
    pub(crate) begin: u64,
    pub(crate) end: u64,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Whom {
    /// The clients with these names, on the same connection. They may be ahead of others, who then wait for the end of
    /// their sessions.
    Clients(Vec<String>),
    /// No client is served meanwhile, and after it all session timeouts start again.
    Servers,
    /// Nothing ran.
    Machine,
}

/// The time for which a lock was free while somebody waited.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gap {
    pub(crate) begin: u64,
    pub(crate) end: u64,
}

impl Gap {
    pub(crate) fn took(self) -> u64 {
        self.end - self.begin
    }
}

/// The consequences of a fault end with the session that it ended.
///
/// How long a session can outlive its last sign of life: servers look for expired sessions once in a tick.
pub(crate) const OUTLIVED: u64 = nanoseconds(SESSION) + 2 * nanoseconds(TICK);

/// The gaps of all paths.
#[derive(Debug, Default)]
pub(crate) struct HandOvers {
    /// Until when each path was claimed.
    claimed: HashMap<String, u64>,
    /// The paths at which peers queue as well, and may take as long as they like.
    with_peers: HashSet<String>,
    pub(crate) gaps: Vec<Gap>,
    /// The gaps that a fault has to explain.
    long: Vec<(String, Gap)>,
}

impl HandOvers {
    pub(crate) fn is_wanted(&mut self, path: &str, by_peer: bool) {
        if by_peer && !self.with_peers.contains(path) {
            self.with_peers.insert(path.to_owned());
        }
    }

    /// Notes that somebody holds the path at this time.
    pub(crate) fn is_claimed(&mut self, path: &str, at: u64) {
        match self.claimed.get_mut(path) {
            Some(until) => *until = at.max(*until),
            None => drop(self.claimed.insert(path.to_owned(), at)),
        }
    }

    /// Notes that a client that has waited since `wanted` has the lock now.
    pub(crate) fn is_got(&mut self, path: &str, wanted: u64, at: u64) {
        let Some(begin) = self.claimed.get(path).copied().filter(|until| (wanted..=at).contains(until))
        else {
            return;
        };
        self.gaps.push(Gap { begin, end: at });
        self.keep(path, begin, at);
    }

    /// Notes that a client that has waited since `wanted` has given up.
    pub(crate) fn is_given_up(&mut self, path: &str, wanted: u64, at: u64) {
        let begin = self.claimed.get(path).map_or(wanted, |until| wanted.max(*until));
        self.keep(path, begin, at);
    }

    fn keep(&mut self, path: &str, begin: u64, end: u64) {
        if end.saturating_sub(begin) > AT_ONCE {
            self.long.push((path.to_owned(), Gap { begin, end }));
        }
    }

    /// The gaps that no fault explains.
    pub(crate) fn unexplained(&self, faults: &Faults) -> Vec<String> {
        let alone = self.long.iter().filter(|(path, _)| !self.with_peers.contains(path));
        alone
            .filter(|(_, gap)| gap.took() > faults.explain(*gap))
            .map(|(path, gap)| {
                let (took, explained) = (gap.took() / 1_000_000, faults.explain(*gap) / 1_000_000);
                let since = gap.begin / 1_000;
                format!("{path} was free for {took} ms from {since} µs on while one waited for it; at most {explained} ms are explained")
            })
            .collect()
    }

    /// The length of each gap, by the nearest fault.
    pub(crate) fn by_fault(&self, faults: &Faults) -> BTreeMap<&'static str, Vec<u64>> {
        let mut times = BTreeMap::<_, Vec<u64>>::new();
        for gap in &self.gaps {
            times.entry(faults.nearest(*gap)).or_default().push(gap.took());
        }
        times
    }
}

/// All faults of a run, in the order in which they began.
pub(crate) struct Faults(Vec<Struck>);

/// No fault lasts longer.
const LONGEST: u64 = 120_000_000_000;

impl Faults {
    pub(crate) fn new(struck: impl IntoIterator<Item = Struck>) -> Self {
        let mut all: Vec<_> = struck.into_iter().collect();
        all.sort_by_key(|struck| struck.begin);
        Self(all)
    }

    /// The faults that lasted during the gap, or whose consequences did.
    fn near(&self, gap: Gap) -> impl Iterator<Item = &Struck> {
        let before = self.0.partition_point(|struck| struck.begin < gap.end);
        let is_recent = move |struck: &&Struck| gap.begin < struck.begin.saturating_add(LONGEST);
        let recent = self.0[..before].iter().rev().take_while(is_recent);
        recent.filter(move |struck| gap.begin < struck.end.saturating_add(OUTLIVED))
    }

    /// The fault that most likely caused the gap: server faults first, which affect all clients, then the latest, because the
    /// consequences of a fault end with the session that it ended.
    fn nearest(&self, gap: Gap) -> &'static str {
        let faults = self.near(gap).filter(|struck| struck.whom != Whom::Machine);
        faults
            .max_by_key(|struck| (struck.whom == Whom::Servers, struck.begin))
            .map_or("none", |struck| struck.name)
    }

    /// How long the gap may be: each client fault may have struck a client that was ahead, whose session has to end first.
    fn explain(&self, gap: Gap) -> u64 {
        let explained = self.near(gap).map(|struck| {
            let lasted = struck.end.min(gap.end).saturating_sub(struck.begin.max(gap.begin));
            match &struck.whom {
                Whom::Clients(_) => OUTLIVED,
                Whom::Servers => lasted + OUTLIVED,
                Whom::Machine => lasted,
            }
        });
        explained.sum::<u64>() + AT_ONCE
    }
}
