//! The cases of nodes that are passed on within a process.

use super::machine::turns::Passing;
use super::setup::{DELETION, Faults, LOSS, NONE, Setup};
use super::subject::{Sort, Want};
use super::suite::{Case, scene, walks};
use std::time::Duration;

const MUTEX: Want = Want::new("/a", Sort::Mutex);
const READ: Want = Want::new("/a", Sort::Read);
const WRITE: Want = Want::new("/a", Sort::Write);
const PERMIT: Want =
    Want::new("/s/locks", Sort::Semaphore { permits: "/s/leases", count: 1, limit: 1, limit_at: None });
const B: Want = Want::new("/b", Sort::Mutex);

const LINGERS: Passing = Passing { linger: Duration::from_secs(5), turns: 1 };
const TWO_TURNS: Passing = Passing { linger: Duration::ZERO, turns: 2 };
const BOTH: Passing = Passing { linger: Duration::from_secs(5), turns: 2 };

/// A holder that asks who waits, but always releases.
const ASKS: Passing = Passing { linger: Duration::ZERO, turns: 1 };

/// Somebody asks in the node, and an operator writes to it.
const ASKED: Faults = Faults { revokes: 1, changes: 1, losses: 1, ..NONE };
const TAKE: Faults = Faults { takes: 1, ..NONE };

/// Clients that want one thing each. The first of them pass their nodes on.
fn each(name: &'static str, wants: &[Want], passing: usize, passes: Passing, faults: Faults) -> Setup {
    let wants: Vec<_> = wants.iter().map(|want| vec![*want]).collect();
    Setup::of(name, &wants, faults).passing(passing, passes)
}

/// The cases of every run.
pub(crate) fn short() -> Vec<Case> {
    let (two, sides, readers) = ([MUTEX; 2], [READ, WRITE], [READ, READ]);
    let ticks = Faults { losses: 1, expiries: 2, steps: 40, beats: 20, takes: 4, ..NONE };
    vec![
        scene(each("lingers: 2, one does", &two, 1, LINGERS, TAKE)),
        scene(each("lingers: 2, both do", &two, 2, LINGERS, TAKE)),
        scene(each("lingers: 2, both do, loss", &two, 2, LINGERS, LOSS)),
        scene(each("lingers: 2, one does, cancel", &two, 1, LINGERS, Faults { cancels: 1, ..TAKE })),
        scene(each("lingers: 2, one does, refusal", &two, 1, LINGERS, Faults { refusals: 1, ..NONE })),
        scene(each("lingers: 2, one does, expiry", &two, 1, LINGERS, Faults { expiries: 1, ..TAKE })),
        scene(each(
            "lingers: 2, one does, deletion",
            &two,
            1,
            LINGERS,
            Faults { deletions: 1, steps: 1, ..TAKE },
        )),
        scene(each("lingers: 2, one does, twin", &two, 1, LINGERS, Faults { twins: 1, ..NONE })),
        scene(each("lingers: 2, two turns", &two, 1, TWO_TURNS, Faults { takes: 3, ..NONE })),
        scene(each("lingers: 2, lingers and two turns", &two, 1, BOTH, Faults { takes: 2, ..NONE })),
        scene(each("lingers: r w", &sides, 1, LINGERS, Faults { takes: 2, ..NONE })),
        scene(each("lingers: w r", &[WRITE, READ], 1, LINGERS, TAKE)),
        scene(each("lingers: r r", &readers, 2, LINGERS, TAKE)),
        scene(each("lingers: 2, one who does not come", &two, 1, BOTH, Faults { cancels: 1, ..TAKE })),
        scene(each("told: 2", &two, 2, ASKS, NONE)),
        scene(each("told: 2, loss", &two, 1, ASKS, LOSS)),
        scene(each("told: semaphore, 1 1 of 1", &[PERMIT; 2], 2, ASKS, NONE)),
        scene(each("told: 2, deletion", &two, 1, ASKS, Faults { deletions: 1, ..LOSS })),
        scene(each(
            "told: single, deletion",
            &[Want::new("/a", Sort::Single)],
            1,
            ASKS,
            Faults { deletions: 1, parent_deletions: 1, ..NONE },
        )),
        scene(each("told: semaphore, deletion", &[PERMIT], 1, ASKS, DELETION)),
        scene(each("told: 1, asked", &[MUTEX], 1, ASKS, ASKED)),
        scene(each("told: semaphore, asked", &[PERMIT], 1, ASKS, ASKED)),
        scene(each("told: single, asked", &[Want::new("/a", Sort::Single)], 1, ASKS, ASKED)),
        scene(Setup::of("told: ab, asked", &[vec![MUTEX, B]], ASKED).passing(1, ASKS)),
        scene(each("lingers: 1, asked", &[MUTEX], 1, LINGERS, Faults { takes: 1, ..ASKED })),
        scene(each("told: downgrade, w w", &[WRITE; 2], 1, ASKS, NONE).downgrading()),
        scene(Setup { parent: None, ..each("lingers: 2, no parent", &two, 1, LINGERS, NONE) }),
        scene(Setup::of("lingers: ab b", &[vec![MUTEX, B], vec![B]], NONE).passing(1, LINGERS)),
        scene(Setup { attempts: 2, ..each("lingers: 2 twice", &two, 2, LINGERS, NONE) }),
        walks(each("lingers: 3, ticks", &[MUTEX; 3], 2, LINGERS, ticks).ticking(3), 1_500),
        walks(wild(each("lingers: 4, everything", &[MUTEX; 4], 3, LINGERS, NONE)), 1_500),
        walks(wild(each("lingers: r r w w, everything", &[READ, READ, WRITE, WRITE], 3, BOTH, NONE)), 1_500),
    ]
}

/// The additional cases of long runs.
pub(crate) fn long() -> Vec<Case> {
    let two = [MUTEX; 2];
    let ticks = Faults { expiries: 1, steps: 9, beats: 1, ..TAKE };
    vec![
        scene(each("lingers: 3, all do", &[MUTEX; 3], 3, LINGERS, TAKE)),
        scene(each("lingers: r r w", &[READ, READ, WRITE], 2, LINGERS, TAKE)),
        scene(each("lingers: 2, both do, two losses", &two, 2, LINGERS, Faults { losses: 2, ..TAKE })),
        scene(each(
            "lingers: 2, both do, expiry, loss",
            &two,
            2,
            LINGERS,
            Faults { expiries: 1, losses: 1, ..TAKE },
        )),
        scene(each("lingers: 2, ticks", &two, 1, LINGERS, ticks).ticking(1)),
        walks(wild(each("long: lingers: 4", &[MUTEX; 4], 3, LINGERS, NONE)), 50_000),
        walks(wild(each("long: lingers: r r w w", &[READ, READ, WRITE, WRITE], 4, BOTH, NONE)), 50_000),
    ]
}

/// The same with everything that can go wrong, twice each.
fn wild(setup: Setup) -> Setup {
    let faults = Faults { revokes: 1, takes: 6, ..Faults::MANY };
    Setup { faults, attempts: 2, ..setup }
}
