//! The cases that are explored: small worlds completely, and large ones in random walks.

use super::cases_of_callers as callers;
use super::cases_of_holds as holds;
use super::cases_of_kinds as kinds;
use super::cases_of_mutex as mutex;
use super::cases_of_tries as tries;
use super::cases_of_turns as turns;
use super::crowd::{Crowd, Gathering};
use super::explorer::{Report, explore, walk};
use super::keep::{Holds, Keep};
use super::pulse::{Pulse, Server, Stops};
use super::setup::Setup;
use super::subject::Machine;
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
const NAMED: Holds = Holds { at_first: 1, named_at_most: 8, loss_timeout: Duration::from_millis(2_400) };
/// A check names one hold, and the others are watched.
const WATCHED: Holds = Holds { at_first: 2, named_at_most: 1, ..NAMED };
/// Holders may learn of a loss as late as can be: after a third of the session timeout. All are watched.
const RARE: Holds = Holds { loss_timeout: Duration::from_secs(8), ..NAMED };

/// One exploration to make.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) name: String,
    task: Task,
}

#[derive(Clone, Debug)]
enum Task {
    Scene(Setup),
    Walks(Setup, u64),
    Pulse { period: u8, end: u8, stops: Stops, servers: &'static [Server] },
    PulseWalks { period: u8, stops: Stops, walks: u64, servers: &'static [Server] },
    Keep(u8, Trouble, Holds),
    KeepWalks(u64, Holds),
    Crowd(Gathering),
    CrowdWalks(Gathering, u64),
}

impl Case {
    /// Explores at most `limit` states; `first_seed` is the seed of the first random walk.
    pub(crate) fn run(&self, machine: &'static Machine, limit: usize, first_seed: u64) -> Report {
        match &self.task {
            Task::Scene(setup) => explore(&Scene::new(setup, machine), limit),
            Task::Walks(setup, walks) => walk(&Scene::new(setup, machine), *walks, first_seed, STEPS_AT_MOST),
            Task::Pulse { period, end, stops, servers } => {
                explore(&Pulse::new(machine, *period, *end, *stops, servers), limit)
            }
            Task::PulseWalks { period, stops, walks, servers } => {
                let pulse = Pulse::new(machine, *period, 60, *stops, servers);
                walk(&pulse, *walks, first_seed, STEPS_AT_MOST)
            }
            Task::Keep(end, trouble, holds) => explore(&Keep::new(machine, *end, *trouble, *holds), limit),
            Task::Crowd(gathering) => explore(&Crowd::new(gathering, machine), limit),
            Task::CrowdWalks(gathering, walks) => {
                walk(&Crowd::new(gathering, machine), *walks, first_seed, STEPS_AT_MOST)
            }
            Task::KeepWalks(walks, holds) => {
                walk(&Keep::new(machine, 240, MUCH_TROUBLE, *holds), *walks, first_seed, STEPS_AT_MOST)
            }
        }
    }
}

/// Looks for a violation in a machine that must have one, first among the cases with this text in their names; "" for those
/// of the mutex.
#[allow(dead_code, reason = "called by the program that hunt.rs writes")]
pub(crate) fn find(machine: &'static Machine, kind: &str) -> Option<(String, Report)> {
    let is_first =
        |case: &Case| if kind.is_empty() { !case.name.contains(':') } else { case.name.contains(kind) };
    let (first, rest): (Vec<Case>, Vec<Case>) = short().into_iter().partition(is_first);
    find_among(&first, machine, &DEEPER).or_else(|| find_among(&rest, machine, &DEEPER))
}

/// The same for a mistake that may have no effect at all.
#[allow(dead_code, reason = "called by the program that hunt.rs writes")]
pub(crate) fn find_quickly(machine: &'static Machine, kind: &str) -> Option<(String, Report)> {
    let mut cases = short();
    // Those of its kind first, the others in their order.
    cases.sort_by_key(|case| kind.is_empty() || !case.name.contains(kind));
    find_among(&cases, machine, &[1_000, 10_000, 80_000])
}

/// The same in a little of each case, for a machine that should have no mistake.
#[allow(dead_code, reason = "called by the program that hunt.rs writes")]
pub(crate) fn find_in_a_little(machine: &'static Machine) -> Option<(String, Report)> {
    find_among(&short(), machine, &[1_000])
}

/// First in the first states of all cases, then in more of them, because nobody knows which case shows the mistake.
const DEEPER: [usize; 3] = [8_000, 80_000, 400_000];

fn find_among(cases: &[Case], machine: &'static Machine, limits: &[usize]) -> Option<(String, Report)> {
    limits.iter().enumerate().find_map(|(round, limit)| {
        let walks = |case: &&Case| matches!(case.task, Task::Walks(..) | Task::CrowdWalks(..));
        cases.iter().filter(|case| round == 1 || !walks(case)).find_map(|case| {
            let report = case.run(machine, *limit, 1);
            report.failure.is_some().then(|| (case.name.clone(), report))
        })
    })
}

pub(crate) fn scene(setup: Setup) -> Case {
    Case { name: setup.name.to_owned(), task: Task::Scene(setup) }
}

pub(crate) fn crowd(gathering: Gathering) -> Case {
    Case { name: format!("callers: {}", gathering.name), task: Task::Crowd(gathering) }
}

pub(crate) fn crowd_walks(gathering: Gathering, number: u64) -> Case {
    Case { name: format!("walks: callers: {}", gathering.name), task: Task::CrowdWalks(gathering, number) }
}

pub(crate) fn walks(setup: Setup, number: u64) -> Case {
    Case { name: format!("walks: {}", setup.name), task: Task::Walks(setup, number) }
}

/// The leader pings the follower in this period, in twentieths of the timeout. One link stops: the
/// client's for a while, or the leader's for good.
pub(crate) fn pulses(period: u8, end: u8) -> [Case; 2] {
    let case = |name: &str, stops| Case {
        name: format!("lease, ping each {period}/20, {name}"),
        task: Task::Pulse { period, end, stops, servers: &[Server::Granting(20)] },
    };
    [
        case("client stalls", Stops { client: 1, leader: 0, resumes: false }),
        case("leader cut off", Stops { client: 0, leader: 1, resumes: false }),
    ]
}

/// Both links may stop for a while, so often, during three timeouts.
pub(crate) fn stalls(period: u8, client: u8, leader: u8, walks: u64) -> Case {
    Case {
        name: format!("walks: lease, ping each {period}/20, stalls {client} and {leader}"),
        task: Task::PulseWalks {
            period,
            stops: Stops { client, leader, resumes: true },
            walks,
            servers: &[Server::Granting(20)],
        },
    }
}

/// The client may go from each of the servers to the next.
pub(crate) fn moves(name: &str, period: u8, end: u8, stops: Stops, servers: &'static [Server]) -> Case {
    let name = format!("lease, ping each {period}/20, {name}");
    Case { name, task: Task::Pulse { period, end, stops, servers } }
}

/// The same at random, during three timeouts.
pub(crate) fn wanders(period: u8, walks: u64, servers: &'static [Server]) -> Case {
    let stops = Stops { client: 3, leader: 3, resumes: true };
    Case {
        name: format!("walks: lease, ping each {period}/20, {} servers", servers.len()),
        task: Task::PulseWalks { period, stops, walks, servers },
    }
}

/// One hold or several under their keeper, for this number of units of time.
pub(crate) fn kept(name: &str, end: u8, trouble: Trouble) -> Case {
    Case { name: format!("holds: {name}"), task: Task::Keep(end, trouble, NAMED) }
}

/// The same at random, for ten session timeouts.
pub(crate) fn kept_in_walks(name: &str, walks: u64) -> Case {
    Case { name: format!("walks: holds: {name}"), task: Task::KeepWalks(walks, NAMED) }
}

/// Holds whose client sends as few beats as can be.
pub(crate) fn rare(name: &str, end: u8, trouble: Trouble) -> Case {
    Case { name: format!("rare holds: {name}"), task: Task::Keep(end, trouble, RARE) }
}

/// The same at random, for ten session timeouts.
pub(crate) fn rare_in_walks(name: &str, walks: u64) -> Case {
    Case { name: format!("walks: rare holds: {name}"), task: Task::KeepWalks(walks, RARE) }
}

/// More holds than a check names.
pub(crate) fn watched(name: &str, end: u8, trouble: Trouble) -> Case {
    Case { name: format!("watched holds: {name}"), task: Task::Keep(end, trouble, WATCHED) }
}

/// The same at random, for ten session timeouts.
pub(crate) fn watched_in_walks(name: &str, walks: u64) -> Case {
    Case { name: format!("walks: watched holds: {name}"), task: Task::KeepWalks(walks, WATCHED) }
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
