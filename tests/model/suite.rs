//! The cases that are explored: small worlds completely, and large ones in random walks.

use super::cases_of_callers as callers;
use super::cases_of_holds as holds;
use super::cases_of_kinds as kinds;
use super::cases_of_mutex as mutex;
use super::cases_of_tries as tries;
use super::cases_of_turns as turns;
use super::crowd::{Crowd, Gathering};
use super::explorer::{Report, World, explore, walk};
use super::keep::{Holds, Keep};
use super::pulse::{Pulse, Server, Stops};
use super::setup::Setup;
use super::trouble::Trouble;
use super::world::Scene;
use std::time::Duration;

/// More states than any configuration here should have.
pub(crate) const STATES_AT_MOST: usize = 20_000_000;
/// A walk that takes longer will not end.
const STEPS_AT_MOST: usize = 5_000;

/// So much that in a walk only chance limits it.
const MUCH_TROUBLE: Trouble = Trouble {
    steps: 60,
    stalls: 12,
    breaks: 12,
    refusals: 12,
    nights: 4,
    writes: 20,
    deletions: 2,
    expiries: 1,
    grants: 4,
    lags: 12,
    ..Trouble::NONE
};

/// A check names all holds.
pub(crate) const NAMED: Holds =
    Holds { name: "holds", at_first: 1, named_at_most: 8, loss_timeout: Duration::from_millis(2_400) };
/// A check names one hold, and the others are watched.
pub(crate) const WATCHED: Holds = Holds { name: "watched holds", at_first: 2, named_at_most: 1, ..NAMED };
/// Holders may learn of a loss as late as can be: after a third of the session timeout. All are watched.
pub(crate) const RARE: Holds = Holds { name: "rare holds", loss_timeout: Duration::from_secs(8), ..NAMED };

/// One exploration to make.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) name: String,
    task: Task,
    /// How many random walks to take, if not to go through all states.
    walks: Option<u64>,
}

#[derive(Clone, Debug)]
enum Task {
    Scene(Setup),
    Pulse { period: u8, end: u8, stops: Stops, servers: &'static [Server] },
    Keep(u8, Trouble, Holds),
    Crowd(Gathering),
}

impl Case {
    fn new(name: String, task: Task) -> Self {
        Self { name, task, walks: None }
    }

    /// The same in this number of random walks.
    pub(crate) fn walks(self, number: u64) -> Self {
        Self { name: format!("walks: {}", self.name), walks: Some(number), ..self }
    }

    /// Explores at most `limit` states; `first_seed` is the seed of the first random walk.
    pub(crate) fn run(&self, limit: usize, first_seed: u64) -> Report {
        match &self.task {
            Task::Scene(setup) => self.go(&Scene::new(setup), limit, first_seed),
            Task::Pulse { period, end, stops, servers } => {
                self.go(&Pulse::new(*period, *end, *stops, servers), limit, first_seed)
            }
            Task::Keep(end, trouble, holds) => self.go(&Keep::new(*end, *trouble, *holds), limit, first_seed),
            Task::Crowd(gathering) => self.go(&Crowd::new(gathering), limit, first_seed),
        }
    }

    fn go<W: World>(&self, world: &W, limit: usize, first_seed: u64) -> Report {
        match self.walks {
            Some(number) => walk(world, number, first_seed, STEPS_AT_MOST),
            None => explore(world, limit),
        }
    }
}

/// Looks for a violation in a machine that must have one, first among the cases with this text in their names; "" for those
/// of the mutex.
pub(crate) fn find(kind: &str) -> Option<(String, Report)> {
    let is_first =
        |case: &Case| if kind.is_empty() { !case.name.contains(':') } else { case.name.contains(kind) };
    let (first, rest): (Vec<Case>, Vec<Case>) = short().into_iter().partition(is_first);
    find_among(&first, &DEEPER).or_else(|| find_among(&rest, &DEEPER))
}

/// The same for a mistake that may have no effect at all.
pub(crate) fn find_quickly(kind: &str) -> Option<(String, Report)> {
    let mut cases = short();
    // Those of its kind first, the others in their order.
    cases.sort_by_key(|case| kind.is_empty() || !case.name.contains(kind));
    find_among(&cases, &[1_000, 10_000, 80_000])
}

/// The same in a little of each case, for a machine that should have no mistake.
pub(crate) fn find_in_a_little() -> Option<(String, Report)> {
    find_among(&short(), &[1_000])
}

/// First in the first states of all cases, then in more of them, because nobody knows which case shows the mistake.
const DEEPER: [usize; 3] = [8_000, 80_000, 400_000];

fn find_among(cases: &[Case], limits: &[usize]) -> Option<(String, Report)> {
    limits.iter().enumerate().find_map(|(round, limit)| {
        let walks =
            |case: &&Case| case.walks.is_some() && matches!(case.task, Task::Scene(_) | Task::Crowd(_));
        cases.iter().filter(|case| round == 1 || !walks(case)).find_map(|case| {
            let report = case.run(*limit, 1);
            report.failure.is_some().then(|| (case.name.clone(), report))
        })
    })
}

pub(crate) fn scene(setup: Setup) -> Case {
    Case::new(setup.name.to_owned(), Task::Scene(setup))
}

pub(crate) fn walks(setup: Setup, number: u64) -> Case {
    scene(setup).walks(number)
}

pub(crate) fn crowd(gathering: Gathering) -> Case {
    Case::new(format!("callers: {}", gathering.name), Task::Crowd(gathering))
}

/// The lease of a client that may go from each of the servers to the next. The leader pings its followers in this period, in
/// twentieths of the timeout.
pub(crate) fn lease(name: &str, period: u8, end: u8, stops: Stops, servers: &'static [Server]) -> Case {
    let name = format!("lease, ping each {period}/20, {name}");
    Case::new(name, Task::Pulse { period, end, stops, servers })
}

/// Some holds under their keeper, for this number of units of time.
pub(crate) fn kept(holds: Holds, name: &str, end: u8, trouble: Trouble) -> Case {
    Case::new(format!("{}: {name}", holds.name), Task::Keep(end, trouble, holds))
}

/// The same at random, for ten session timeouts.
pub(crate) fn kept_in_walks(holds: Holds, name: &str, number: u64) -> Case {
    kept(holds, name, 240, MUCH_TROUBLE).walks(number)
}

/// The cases of every run. The smallest of each kind come first, so that a violation has a short trace.
pub(crate) fn short() -> Vec<Case> {
    let of_locks = mutex::short().into_iter().chain(holds::short()).chain(kinds::short());
    of_locks.chain(turns::short()).chain(tries::short()).chain(callers::short()).collect()
}

/// The additional cases of long runs.
pub(crate) fn long() -> Vec<Case> {
    let of_locks = mutex::long().into_iter().chain(holds::long()).chain(kinds::long());
    of_locks.chain(turns::long()).chain(tries::long()).chain(callers::long()).collect()
}
