//! The cases of the double barrier.

use super::setup::{CANCEL, DELETION, EXPIRY, Faults, LOSS, NONE, Setup};
use super::subject::{Sort, Want};
use super::suite::{Case, scene, walks};

/// This number of clients at a barrier that opens for this number of members.
fn at(name: &'static str, clients: usize, members: u32, faults: Faults) -> Setup {
    Setup::of(name, &vec![vec![Want::new("/b", Sort::Member { members })]; clients], faults)
}

/// The cases of every run.
pub(crate) fn short() -> Vec<Case> {
    vec![
        scene(at("barrier: 1 of 1", 1, 1, NONE)),
        scene(at("barrier: 2 of 2", 2, 2, NONE)),
        scene(at("barrier: 2 of 1", 2, 1, NONE)),
        scene(Setup { parent: None, ..at("barrier: 2 of 2, no parent", 2, 2, NONE) }),
        scene(at("barrier: 2 of 2, once", 2, 2, NONE).trying_once()),
        scene(Setup { attempts: 2, ..at("barrier: 2 of 2, twice", 2, 2, NONE) }),
        scene(at("barrier: 2 of 2, cancel", 2, 2, CANCEL)),
        scene(at("barrier: 2 of 2, loss", 2, 2, LOSS)),
        walks(at("barrier: 2 of 2, twin, cancel", 2, 2, Faults { twins: 1, ..CANCEL }), 1_000),
        walks(at("barrier: 2 of 2, expiry", 2, 2, EXPIRY), 2_000),
        walks(at("barrier: 2 of 2, deletion", 2, 2, DELETION), 2_000),
        walks(at("barrier: 3 of 2", 3, 2, NONE), 1_000),
        walks(wild(Setup { attempts: 2, ..at("barrier: 3 of 2, everything", 3, 2, NONE) }), 2_000),
        walks(wild(Setup { attempts: 2, ..at("barrier: 4 of 3, everything", 4, 3, NONE) }), 2_000),
    ]
}

/// The additional cases of long runs.
pub(crate) fn long() -> Vec<Case> {
    vec![
        scene(at("barrier: 2 of 2, twin and cancel", 2, 2, Faults { twins: 1, ..CANCEL })),
        scene(at("barrier: 2 of 2, an expiry", 2, 2, EXPIRY)),
        scene(at("barrier: 2 of 2, a deletion", 2, 2, DELETION)),
        scene(at("barrier: 2 of 2, loss, cancel", 2, 2, Faults { losses: 1, ..CANCEL })),
        scene(at("barrier: 3 of 3", 3, 3, NONE)),
        walks(wild(Setup { attempts: 3, ..at("long: barrier: 4 of 3", 4, 3, NONE) }), 100_000),
    ]
}

/// The same with everything that can go wrong.
fn wild(setup: Setup) -> Setup {
    let faults =
        Faults { losses: 3, twins: 1, cancels: 1, expiries: 1, deletions: 1, changes: 1, ..Faults::NONE };
    Setup { faults, ..setup }
}
