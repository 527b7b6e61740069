//! The cases of processes with several callers each.

use super::crowd::{Gathering, Mishaps, Plan};
use super::machine::protocol::Patience;
use super::machine::turns::Passing;
use super::subject::Sort;
use super::suite::{Case, crowd};
use std::time::Duration;

/// Longer than anything else takes.
const LONG: Duration = Duration::from_secs(1_000);

const NEVER: Passing = Passing { linger: Duration::ZERO, turns: 1 };
const LINGERS: Passing = Passing { linger: LONG, turns: 1 };
const TWO_TURNS: Passing = Passing { linger: Duration::ZERO, turns: 2 };
const BOTH: Passing = Passing { linger: LONG, turns: 2 };

const NONE: Mishaps = Mishaps::NONE;
const CANCEL: Mishaps = Mishaps { cancels: 1, ..NONE };

/// A caller of its own that waits, in the process's only lock.
const WAITS: Plan =
    Plan { lock: 0, owner: 0, is_reentrant: false, patience: Patience::Waits, times: 1, writes: false };
const TRIES: Plan = Plan { patience: Patience::TriesOnce, ..WAITS };
/// In the process's second lock.
const READS: Plan = Plan { lock: 1, ..WAITS };
const AGAIN: Plan = Plan { is_reentrant: true, ..WAITS };

/// Processes with these callers of one lock. Each caller is an owner of its own, unless it says whose it is.
fn of(name: &'static str, sort: Sort, passes: Passing, processes: &[&[Plan]], mishaps: Mishaps) -> Gathering {
    let own = |(number, plan): (usize, &Plan)| Plan {
        owner: if plan.owner == 0 { 100 + number as u8 } else { plan.owner },
        ..*plan
    };
    let process = |plans: &&[Plan]| plans.iter().enumerate().map(own).collect();
    Gathering {
        name,
        locks: vec![(sort, passes)],
        processes: processes.iter().map(process).collect(),
        is_sequential: false,
        keeps_all: false,
        is_apart: false,
        mishaps,
    }
}

/// The cases of every run.
pub(crate) fn short() -> Vec<Case> {
    use Sort::{Mutex, Read, Single, Write};
    let (one, two, three): (&[Plan], &[Plan], &[Plan]) = (&[WAITS], &[WAITS; 2], &[WAITS; 3]);
    let mixed: &[Plan] = &[WAITS, TRIES];
    let tries: &[Plan] = &[Plan { times: 3, ..TRIES }];
    let task = |owner, plan: Plan| Plan { owner, ..plan };
    let calls = [task(1, AGAIN), task(1, AGAIN), WAITS];
    let within = [task(1, AGAIN), task(1, Plan { lock: 1, ..AGAIN }), task(2, AGAIN)];
    let itself = [task(1, AGAIN), task(1, Plan { lock: 1, ..WAITS }), task(2, WAITS)];
    let writes: &[Plan] = &[Plan { writes: true, ..WAITS }, WAITS];
    vec![
        crowd(of("3 1, cancel", Mutex, NEVER, &[three, one], CANCEL)),
        crowd(of("3, cancel twice", Mutex, NEVER, &[three], Mishaps { cancels: 2, ..NONE })),
        crowd(of("brief, 3", Mutex, NEVER, &[three], Mishaps { steps: 1, ..CANCEL })),
        crowd(of("2 1, loss", Mutex, NEVER, &[two, one], Mishaps { losses: 1, ..NONE })),
        crowd(of("2 1, lapse", Mutex, NEVER, &[two, one], Mishaps { lapses: 1, ..NONE })),
        crowd(of("2 1, expiry", Mutex, NEVER, &[two, one], Mishaps { expiries: 1, ..NONE })),
        crowd(of("lingers, 2 1, cancel", Mutex, LINGERS, &[two, one], Mishaps { timeouts: 1, ..CANCEL })),
        crowd(of("lingers, 2 2", Mutex, LINGERS, &[two, two], NONE)),
        crowd(of("lingers, 2 1, lapse", Mutex, LINGERS, &[two, one], Mishaps { lapses: 1, ..NONE })),
        crowd(of("lingers, 2 1, doubts", Mutex, LINGERS, &[two, one], Mishaps { doubts: 2, ..NONE })),
        crowd(of("lingers, 2 1, expiry", Mutex, LINGERS, &[two, one], Mishaps { expiries: 1, ..NONE })),
        crowd(of(
            "lingers, 3, expiry, doubts",
            Mutex,
            LINGERS,
            &[three],
            Mishaps { doubts: 2, expiries: 1, ..NONE },
        )),
        crowd(of("lingers, 2 1, deserted", Mutex, LINGERS, &[two, one], Mishaps { deserts: 1, ..NONE })),
        crowd(of("lingers, 2 1, closed", Mutex, LINGERS, &[two, one], Mishaps { closes: 1, ..NONE })),
        crowd(of("lingers, writes", Mutex, LINGERS, &[writes], CANCEL)),
        crowd(of("turns, 3 1", Mutex, TWO_TURNS, &[three, one], NONE)),
        crowd(of("turns, 2 1, cancel", Mutex, TWO_TURNS, &[two, one], CANCEL)),
        crowd(of("turns, 2, doubts", Mutex, TWO_TURNS, &[two], Mishaps { doubts: 3, ..CANCEL })),
        crowd(of("lingers and turns, 3 1", Mutex, BOTH, &[three, one], NONE)),
        crowd(of("readers, 2 1, cancel", Read, NEVER, &[two, one], CANCEL)),
        crowd(rivals("lingers, readers 3, writer", LINGERS, &[WAITS; 3], CANCEL)),
        crowd(rivals("lingers, readers 2, writer, lapse", LINGERS, two, Mishaps { lapses: 1, ..NONE })),
        crowd(of("tries, w t, w", Mutex, NEVER, &[mixed, one], CANCEL)),
        crowd(of("tries, lingers, w t, w", Mutex, LINGERS, &[mixed, one], CANCEL)),
        crowd(of("tries again, 1 1", Mutex, NEVER, &[tries, one], Mishaps { steps: 1, ..NONE })),
        crowd(of("tries again, expiry", Mutex, NEVER, &[tries, one], Mishaps { expiries: 1, ..NONE })),
        crowd(of("single, 2 t, 1", Single, NEVER, &[&[WAITS, WAITS, TRIES], one], CANCEL)),
        crowd(Gathering { keeps_all: true, ..of("reentrant, two calls", Mutex, NEVER, &[&calls], CANCEL) }),
        crowd(Gathering {
            is_apart: true,
            keeps_all: true,
            ..of("reentrant, two calls apart", Mutex, NEVER, &[&calls], CANCEL)
        }),
        crowd(of(
            "reentrant, two calls, lingers, lapse",
            Mutex,
            LINGERS,
            &[&calls],
            Mishaps { lapses: 1, ..CANCEL },
        )),
        crowd(Gathering {
            locks: vec![(Write, LINGERS), (Read, LINGERS)],
            is_sequential: true,
            keeps_all: true,
            ..of("reader within its writer, writer", Write, LINGERS, &[&within], CANCEL)
        }),
        crowd(Gathering {
            locks: vec![(Write, LINGERS), (Read, LINGERS)],
            is_sequential: true,
            keeps_all: true,
            ..of("reader within its writer, reader", Write, LINGERS, &[&within[..2], &[READS]], NONE)
        }),
        crowd(Gathering {
            locks: vec![(Mutex, NEVER), (Mutex, NEVER)],
            is_sequential: true,
            keeps_all: true,
            ..of("waits for itself", Mutex, NEVER, &[&itself], NONE)
        }),
        crowd(of("3 3, everything", Mutex, BOTH, &[&[WAITS, WAITS, TRIES], &[WAITS, AGAIN, TRIES]], wild()))
            .walks(1_500),
    ]
}

/// The additional cases of long runs.
pub(crate) fn long() -> Vec<Case> {
    let (two, three): (&[Plan], &[Plan]) = (&[WAITS; 2], &[WAITS; 3]);
    let lapse = Mishaps { lapses: 1, ..CANCEL };
    vec![
        crowd(of("2 2, cancel", Sort::Mutex, NEVER, &[two, two], CANCEL)),
        crowd(of("2 1, lapse, cancel", Sort::Mutex, NEVER, &[two, &[WAITS]], lapse)),
        crowd(of("turns, 3 1, cancel", Sort::Mutex, TWO_TURNS, &[three, &[WAITS]], CANCEL)),
        crowd(rivals("lingers, readers 3, writer, lapse", LINGERS, three, Mishaps { lapses: 1, ..NONE })),
        crowd(of("long: 3 3", Sort::Mutex, BOTH, &[three, &[WAITS, AGAIN, TRIES]], wild())).walks(50_000),
        crowd(of("long: readers", Sort::Read, BOTH, &[three, &[WAITS, AGAIN, TRIES]], wild())).walks(50_000),
    ]
}

/// Readers of one process, and a writer of another.
fn rivals(name: &'static str, passes: Passing, readers: &[Plan], mishaps: Mishaps) -> Gathering {
    let writer = Plan { lock: 1, owner: 9, ..WAITS };
    Gathering {
        locks: vec![(Sort::Read, passes), (Sort::Write, NEVER)],
        ..of(name, Sort::Read, passes, &[readers, &[writer]], mishaps)
    }
}

fn wild() -> Mishaps {
    Mishaps {
        cancels: 2,
        losses: 2,
        lapses: 1,
        expiries: 1,
        doubts: 3,
        steps: 3,
        timeouts: 2,
        deserts: 1,
        ..Mishaps::NONE
    }
}
