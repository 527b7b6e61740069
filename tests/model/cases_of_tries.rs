//! The cases of tries that are answered from memory.

use super::setup::{DELETION, EXPIRY, Faults, LOSS, NONE, PARENT_DELETION, Setup};
use super::subject::{Sort, Want};
use super::suite::{Case, scene, walks};

const MUTEX: Want = Want::new("/a", Sort::Mutex);
const READ: Want = Want::new("/a", Sort::Read);
const WRITE: Want = Want::new("/a", Sort::Write);

/// Clients that want one thing each. The first of them wait, and the others try this many times.
fn each(name: &'static str, wants: &[Want], waits: usize, attempts: u8, faults: Faults) -> Setup {
    let wants: Vec<_> = wants.iter().map(|want| vec![*want]).collect();
    Setup { attempts, ..Setup::of(name, &wants, faults).trying_again(waits) }
}

/// The cases of every run.
pub(crate) fn short() -> Vec<Case> {
    let two = [MUTEX; 2];
    let timely = Faults { steps: 1, ..NONE };
    vec![
        scene(each("tries: 2", &two, 1, 2, NONE)),
        scene(each("tries: 2, time", &two, 1, 2, timely)),
        scene(each("tries: 2, loss", &two, 1, 2, LOSS)),
        scene(each("tries: 2, deletion", &two, 1, 2, DELETION)),
        scene(each("tries: 2, expiry", &two, 1, 2, EXPIRY)),
        scene(each("tries: 2, parent deletion", &two, 1, 2, PARENT_DELETION)),
        scene(each("tries: 2, refusal, cancel", &two, 1, 2, Faults { refusals: 1, cancels: 1, ..NONE })),
        scene(each("tries: w r", &[WRITE, READ], 1, 2, timely)),
        scene(each("tries: r w", &[READ, WRITE], 1, 2, NONE)),
        walks(wild(each("tries: 4, everything", &[MUTEX; 4], 2, 4, NONE)), 1_500),
        walks(wild(each("tries: w r r w, everything", &[WRITE, READ, READ, WRITE], 2, 4, NONE)), 1_500),
    ]
}

/// The additional cases of long runs.
pub(crate) fn long() -> Vec<Case> {
    let two = [MUTEX; 2];
    vec![
        scene(each("tries: w r r", &[WRITE, READ, READ], 2, 2, NONE)),
        scene(each("tries: 2, deletion, time", &two, 1, 2, Faults { deletions: 1, steps: 1, ..NONE })),
        scene(each("tries: 3, two try", &[MUTEX; 3], 1, 2, NONE)),
        scene(each("tries: 2, loss, time", &two, 1, 2, Faults { losses: 1, steps: 1, ..NONE })),
        scene(each("tries: 2 thrice, time", &two, 1, 3, Faults { steps: 2, ..NONE })),
        walks(wild(each("long: tries: 4", &[MUTEX; 4], 2, 4, NONE)), 50_000),
        walks(wild(each("long: tries: w r r w", &[WRITE, READ, READ, WRITE], 2, 4, NONE)), 50_000),
    ]
}

/// The same with everything that can go wrong, twice each.
fn wild(setup: Setup) -> Setup {
    let faults = Faults { steps: 6, ..Faults::MANY };
    Setup { faults, ..setup }
}
