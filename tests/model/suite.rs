//! What is explored: small worlds whole, and large ones in random walks.

use super::explorer::{Report, explore, walk};
use super::machine::exchange::Patience;
use super::pulse::{Pulse, Stops};
use super::setup::{Faults, Setup};
use super::subject::Machine;
use super::world::Scene;

/// More states than any configuration here is meant to have.
pub(crate) const STATES_AT_MOST: usize = 20_000_000;
/// A walk that takes longer will not end.
const STEPS_AT_MOST: usize = 5_000;

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
    Pulse { period: u8, end: u8, stops: Stops },
    PulseWalks { period: u8, stops: Stops, walks: u64 },
}

impl Case {
    /// Explores at most `limit` states; `first_seed` is that of the first random walk.
    pub(crate) fn run(&self, machine: &'static Machine, limit: usize, first_seed: u64) -> Report {
        match &self.task {
            Task::Scene(setup) => explore(&Scene::new(setup, machine), limit),
            Task::Walks(setup, walks) => walk(&Scene::new(setup, machine), *walks, first_seed, STEPS_AT_MOST),
            Task::Pulse { period, end, stops } => explore(&Pulse::new(machine, *period, *end, *stops), limit),
            Task::PulseWalks { period, stops, walks } => {
                let pulse = Pulse::new(machine, *period, 60, *stops);
                walk(&pulse, *walks, first_seed, STEPS_AT_MOST)
            }
        }
    }
}

/// Looks for a violation in a machine that is to have one: in the first states of all cases, then
/// in more of them, because nobody knows in which case it shows.
#[allow(dead_code, reason = "called by the program that hunt.rs writes")]
pub(crate) fn find(machine: &'static Machine) -> Option<(String, Report)> {
    let cases = short();
    [40_000, 200_000, STATES_AT_MOST].into_iter().find_map(|limit| {
        let walks = |case: &&Case| matches!(case.task, Task::Walks(..));
        cases.iter().filter(|case| limit == STATES_AT_MOST || !walks(case)).find_map(|case| {
            let report = case.run(machine, limit, 1);
            report.failure.is_some().then(|| (case.name.clone(), report))
        })
    })
}

fn scene(setup: Setup) -> Case {
    Case { name: setup.name.to_owned(), task: Task::Scene(setup) }
}

fn walks(setup: Setup, number: u64) -> Case {
    Case { name: format!("walks: {}", setup.name), task: Task::Walks(setup, number) }
}

/// The leader pings the follower in this period, in twentieths of the timeout. One link stops: the
/// client's for a while, or the leader's for good.
fn pulses(period: u8, end: u8) -> [Case; 2] {
    let case = |name: &str, stops| Case {
        name: format!("lease, ping each {period}/20, {name}"),
        task: Task::Pulse { period, end, stops },
    };
    [
        case("client stalls", Stops { client: 1, leader: 0, resumes: false }),
        case("leader cut off", Stops { client: 0, leader: 1, resumes: false }),
    ]
}

/// Both links may stop for a while, so often, during three timeouts.
fn stalls(period: u8, client: u8, leader: u8, walks: u64) -> Case {
    Case {
        name: format!("walks: lease, ping each {period}/20, stalls {client} and {leader}"),
        task: Task::PulseWalks { period, stops: Stops { client, leader, resumes: true }, walks },
    }
}

const CALM: Faults = Faults {
    losses: 0,
    twins: 0,
    cancels: 0,
    expiries: 0,
    deletions: 0,
    parent_deletions: 0,
    changes: 0,
    refusals: 0,
    steps: 0,
    beats: 0,
};

/// What is explored in every run. The smallest come first, so that a violation has a short trace.
pub(crate) fn short() -> Vec<Case> {
    let wrapping = Some(i32::MAX - 1);
    let mut cases = vec![
        scene(Setup::new("3 clients", 3, CALM)),
        scene(Setup { parent: wrapping, ..Setup::new("3, wraparound", 3, Faults { cancels: 1, ..CALM }) }),
        scene(Setup { patience: Patience::TriesOnce, ..Setup::new("3, try once", 3, CALM) }),
        scene(Setup { parent: None, ..Setup::new("3, no parent", 3, CALM) }),
        scene(Setup::new("2, two losses", 2, Faults { losses: 2, ..CALM })),
        scene(Setup::new("2, loss, cancel", 2, Faults { losses: 1, cancels: 1, ..CALM })),
        scene(Setup::new("2, twin, loss, cancel", 2, Faults { twins: 1, losses: 1, cancels: 1, ..CALM })),
        scene(Setup::new("2, refusal, loss", 2, Faults { refusals: 1, losses: 1, cancels: 1, ..CALM })),
        scene(Setup::new("2, change, loss", 2, Faults { changes: 1, losses: 1, cancels: 1, ..CALM })),
        scene(Setup::new("2, expiry, loss", 2, Faults { expiries: 1, losses: 1, ..CALM })),
        scene(Setup::new("2, ticks", 2, Faults { expiries: 1, steps: 9, beats: 1, ..CALM }).ticking(1)),
        scene(Setup::new("2, expiry, cancel", 2, Faults { expiries: 1, cancels: 1, ..CALM })),
        scene(Setup::new("2, deletion, time", 2, Faults { deletions: 1, cancels: 1, steps: 2, ..CALM })),
        scene(Setup::new("2, deletion, loss", 2, Faults { deletions: 1, losses: 1, steps: 1, ..CALM })),
        scene(Setup::new("2, parent deletion", 2, Faults { parent_deletions: 1, steps: 2, ..CALM })),
        scene(Setup { attempts: 2, ..Setup::new("2 twice, expiry", 2, Faults { expiries: 1, ..CALM }) }),
        scene(Setup {
            tells_origin: false,
            ..Setup::new("2, old server", 2, Faults { losses: 1, expiries: 1, ..CALM })
        }),
        scene(Setup::new("3, loss", 3, Faults { losses: 1, ..CALM })),
        scene(Setup::new("3, deletion", 3, Faults { deletions: 1, ..CALM })),
    ];
    cases.extend([5, 2].into_iter().flat_map(|period| pulses(period, 12)));
    cases.extend([stalls(5, 0, 2, 40_000), stalls(4, 2, 2, 40_000), stalls(2, 3, 3, 40_000)]);
    cases.extend([
        walks(wild("4 clients, everything", 4, 2), 4_000),
        walks(Setup { parent: None, tells_origin: false, ..wild("3 clients, old server", 3, 3) }, 2_000),
        walks(ticking("3 clients, ticks", 3), 4_000),
    ]);
    cases
}

/// What takes longer.
pub(crate) fn long() -> Vec<Case> {
    let mut cases = vec![
        scene(Setup::new("3, cancel, change", 3, Faults { cancels: 1, changes: 1, ..CALM })),
        scene(Setup::new("2, expiry, loss, time", 2, Faults { expiries: 1, losses: 1, steps: 1, ..CALM })),
        scene(Setup {
            attempts: 2,
            ..Setup::new("2 twice, expiry, time", 2, Faults { expiries: 1, steps: 1, ..CALM })
        }),
        scene(Setup::new("3, loss, cancel", 3, Faults { losses: 1, cancels: 1, ..CALM })),
        scene(Setup::new("2, three losses", 2, Faults { losses: 3, cancels: 1, ..CALM })),
        scene(Setup::new("2, loss, deletion", 2, Faults { losses: 1, deletions: 1, steps: 2, ..CALM })),
        scene(Setup::new("3, deletion, time", 3, Faults { deletions: 1, steps: 1, ..CALM })),
        scene(Setup::new("3, expiry", 3, Faults { expiries: 1, ..CALM })),
        scene(Setup {
            parent: None,
            ..Setup::new("2, all but loss", 2, Faults { parent_deletions: 1, expiries: 1, steps: 1, ..CALM })
        }),
        scene(Setup::new("2, two slow", 2, Faults { expiries: 1, steps: 8, beats: 1, ..CALM }).ticking(2)),
        scene(Setup::new("2, ten ticks", 2, Faults { expiries: 1, steps: 10, beats: 2, ..CALM }).ticking(1)),
        walks(wild("5 clients, everything", 5, 3), 100_000),
        walks(ticking("4 clients, ticks", 4), 100_000),
    ];
    cases.extend([5, 3].into_iter().flat_map(|period| pulses(period, 14)));
    cases
}

fn wild(name: &'static str, clients: usize, attempts: u8) -> Setup {
    let faults = Faults {
        losses: 4,
        twins: 1,
        cancels: 2,
        expiries: 2,
        deletions: 2,
        parent_deletions: 2,
        changes: 2,
        refusals: 1,
        steps: 6,
        beats: 0,
    };
    Setup { attempts, ..Setup::new(name, clients, faults) }
}

fn ticking(name: &'static str, clients: usize) -> Setup {
    let faults = Faults { losses: 3, cancels: 1, expiries: 3, steps: 60, beats: 30, ..CALM };
    Setup { attempts: 2, ..Setup::new(name, clients, faults).ticking(clients) }
}
