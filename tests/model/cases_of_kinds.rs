//! The cases of the other kinds of lock.

use super::setup::{CANCEL, DELETION, EXPIRY, Faults, LOSS, NONE, PARENT_DELETION, Setup};
use super::subject::{Sort, Want};
use super::suite::{Case, scene, walks};

const fn in_a(sort: Sort) -> Want {
    Want::new("/a", sort)
}

const MUTEX: Want = in_a(Sort::Mutex);
const READ: Want = in_a(Sort::Read);
const WRITE: Want = in_a(Sort::Write);
const LATCH: Want = in_a(Sort::Latch);
const SINGLE: Want = in_a(Sort::Single);
const LONE: Want = in_a(Sort::Lone);
const UNMARKED: Want = in_a(Sort::Unmarked);

/// This number of permits of a semaphore with this limit.
const fn permits(count: u32, limit: u32) -> Want {
    let sort = Sort::Semaphore { permits: "/s/leases", count, limit, limit_at: None };
    Want::new("/s/locks", sort)
}

/// The same if a node has the limit.
const fn counted(count: u32) -> Want {
    let sort = Sort::Semaphore { permits: "/s/leases", count, limit: 1, limit_at: Some("/s/count") };
    Want::new("/s/locks", sort)
}

/// Clients that want one thing each.
fn each(name: &'static str, wants: &[Want], faults: Faults) -> Setup {
    let wants: Vec<_> = wants.iter().map(|want| vec![*want]).collect();
    Setup::of(name, &wants, faults)
}

/// The cases of every run.
pub(crate) fn short() -> Vec<Case> {
    let mut cases = read_write();
    cases.extend(semaphores());
    cases.extend(sets());
    cases.extend(others());
    cases
}

const GHOST: Faults = Faults { ghosts: 1, ..LOSS };
const TWIN: Faults = Faults { twins: 1, cancels: 1, ..NONE };

fn read_write() -> Vec<Case> {
    let (two, writers) = ([WRITE, READ], [WRITE, WRITE]);
    vec![
        scene(each("read/write: w r r", &[WRITE, READ, READ], NONE)),
        scene(each("read/write: w w r", &[WRITE, WRITE, READ], NONE)),
        scene(each("read/write: w r r, once", &[WRITE, READ, READ], NONE).trying_once()),
        scene(each("read/write: w r, loss, cancel", &two, Faults { cancels: 1, ..LOSS })),
        scene(each("read/write: w r, expiry", &two, EXPIRY)),
        scene(each("read/write: w r, deletion", &two, Faults { steps: 1, ..DELETION })),
        scene(each("downgrade: w w", &writers, NONE).downgrading()),
        scene(each("downgrade: w r", &two, NONE).downgrading()),
        scene(each("downgrade: w w, cancel", &writers, CANCEL).downgrading()),
        scene(each("downgrade: w r, loss", &two, LOSS).downgrading()),
        scene(old(each("downgrade: w w, old server", &writers, NONE)).downgrading()),
        walks(wild(each("read/write: w w r r", &[WRITE, WRITE, READ, READ], NONE)), 1_000),
        walks(wild(each("downgrade: w w r", &[WRITE, WRITE, READ], NONE).downgrading()), 1_000),
    ]
}

fn semaphores() -> Vec<Case> {
    let (lone, one, two) = (permits(1, 1), permits(1, 2), permits(2, 2));
    vec![
        scene(each("semaphore: 1 1 of 1", &[lone; 2], NONE)),
        scene(each("semaphore: 1 2 of 2", &[one, two], NONE)),
        scene(each("semaphore: 1 2 of 2, once", &[one, two], NONE).trying_once()),
        scene(each("semaphore: 1 1 of 2, once", &[one; 2], NONE).trying_once()),
        scene(Setup { parent: None, ..each("semaphore: 1 2 of 2, no parent", &[one, two], NONE) }),
        scene(each("semaphore: 1 1 of 1, loss", &[lone; 2], LOSS)),
        scene(each("semaphore: 1 1 of 1, cancel, time", &[lone; 2], Faults { steps: 1, ..CANCEL })),
        scene(each("semaphore: 1 1 of 1, expiry", &[lone; 2], EXPIRY)),
        scene(each("semaphore: 1 1 of 1, deletion", &[lone; 2], DELETION)),
        scene(raised(each("semaphore: 1 2, raised to 2", &[counted(1), counted(2)], NONE))),
        scene(old(each("semaphore: 1 2 of 2, old server", &[one, two], NONE))),
        walks(wild(each("semaphore: 1 1 2 1 of 2", &[one, one, two, one], NONE)), 2_000),
        walks(
            raised(wild(each("semaphore: 1 2 1, raised to 2", &[counted(1), counted(2), counted(1)], NONE))),
            1_000,
        ),
    ]
}

/// The second directory, and the third.
const B: Want = Want::new("/b", Sort::Mutex);
const B_READ: Want = Want::new("/b", Sort::Read);
const B_WRITE: Want = Want::new("/b", Sort::Write);
const C: Want = Want::new("/c", Sort::Mutex);

const BOTH: [&[Want]; 2] = [&[MUTEX, B], &[B, MUTEX]];
const RING: [&[Want]; 3] = [&[MUTEX, B], &[B, C], &[C, MUTEX]];
const WITH_SEMAPHORE: [&[Want]; 2] = [&[MUTEX, permits(1, 1)], &[permits(1, 1), MUTEX]];

fn sets() -> Vec<Case> {
    let mixed: [&[Want]; 2] = [&[READ, B_WRITE], &[B_READ, WRITE]];
    let many: [&[Want]; 3] = [&[MUTEX, permits(1, 2), B], &[permits(2, 2), MUTEX], &[B, permits(1, 2)]];
    vec![
        scene(all("all: ab ba", &BOTH, NONE)),
        scene(all("all: ab ba, once", &BOTH, NONE).trying_once()),
        scene(all("all: ab ba, loss", &BOTH, LOSS)),
        scene(all("all: ab ba, expiry, cancel", &BOTH, Faults { cancels: 1, ..EXPIRY })),
        scene(all("all: ab ba, deletion", &BOTH, DELETION)),
        scene(all("all: ab ba, parent deletion", &BOTH, PARENT_DELETION)),
        scene(old(all("all: ab ba, old server", &BOTH, CANCEL))),
        scene(all("all: readers and writers", &mixed, CANCEL)),
        scene(all("all: with a semaphore", &WITH_SEMAPHORE, NONE)),
        walks(wild(all("all: ab bc ca", &RING, NONE)), 2_000),
        walks(wild(all("all: with semaphores", &many, NONE)), 1_000),
    ]
}

fn others() -> Vec<Case> {
    let lossy = Faults { losses: 1, cancels: 1, ..NONE };
    vec![
        scene(each("election: 3", &[LATCH; 3], NONE)),
        scene(each("unmarked: 3", &[UNMARKED; 3], NONE)),
        scene(each("unmarked: 2, once", &[UNMARKED; 2], NONE).trying_once()),
        scene(each("unmarked: 2, loss, cancel, twin", &[UNMARKED; 2], Faults { twins: 1, ..lossy })),
        scene(each("unmarked: 2, expiry, loss", &[UNMARKED; 2], Faults { losses: 1, ..EXPIRY })),
        scene(old(each("unmarked: 2, old server, loss", &[UNMARKED; 2], LOSS))),
        scene(each("single: 3", &[SINGLE; 3], NONE)),
        scene(each("single: 2, once", &[SINGLE; 2], NONE).trying_once()),
        scene(each("single: 2, loss, cancel, twin", &[SINGLE; 2], Faults { twins: 1, ..lossy })),
        scene(each("single: 2, expiry, loss", &[SINGLE; 2], Faults { losses: 1, ..EXPIRY })),
        scene(old(each("single: 2, old server, loss", &[SINGLE; 2], LOSS))),
        scene(hidden(each(
            "single: 2, hidden, loss, cancel, twin",
            &[SINGLE; 2],
            Faults { twins: 1, ..lossy },
        ))),
        scene(hidden(each("single: 2, hidden, expiry, loss", &[SINGLE; 2], Faults { losses: 1, ..EXPIRY }))),
        // A server shows deleted nodes, in the second case those of an earlier hold of the same session.
        scene(each("single: 2, ghost, losses", &[SINGLE; 2], Faults { losses: 2, ..GHOST })),
        scene(Setup { attempts: 2, ..each("single: 2, twice, ghost", &[SINGLE; 2], GHOST) }),
        scene(each("single, alone: 3", &[LONE; 3], NONE)),
        scene(old(each("single, alone: 2, old server, loss", &[LONE; 2], LOSS))),
        scene(each("single, alone: 2, loss, cancel, twin", &[LONE; 2], Faults { twins: 1, ..lossy })),
        scene(hidden(each("single, alone: 2, hidden, loss, cancel", &[LONE; 2], lossy))),
        scene(each("single, alone: 2, expiry, loss", &[LONE; 2], Faults { losses: 1, ..EXPIRY })),
        // If an operator deletes the node alone, between its last check and its deletion, the next holder's node is deleted. That
        // holder learns of it within a heartbeat. So here there is no next holder.
        scene(each("single: 1, deletion, loss", &[SINGLE], Faults { deletions: 1, ..LOSS })),
        scene(each("single: 2, parent deletion", &[SINGLE; 2], PARENT_DELETION)),
    ]
}

/// The additional cases of long runs.
pub(crate) fn long() -> Vec<Case> {
    let (lone, one, two) = (permits(1, 1), permits(1, 2), permits(2, 2));
    let (pair, writers) = ([WRITE, READ], [WRITE, WRITE]);
    vec![
        scene(each("read/write: w w r, cancel", &[WRITE, WRITE, READ], CANCEL)),
        scene(each("read/write: w r, twin, loss", &pair, Faults { losses: 1, ..TWIN })),
        scene(each("read/write: w r, expiry, loss", &pair, Faults { losses: 1, ..EXPIRY })),
        scene(each("downgrade: w w, loss", &writers, LOSS).downgrading()),
        scene(each("downgrade: w w, expiry", &writers, EXPIRY).downgrading()),
        scene(each("downgrade: w w, deletion", &writers, DELETION).downgrading()),
        scene(each("semaphore: 1 1 1 of 2", &[one; 3], NONE)),
        scene(each("semaphore: 1 2 of 2, loss", &[one, two], LOSS)),
        scene(each("semaphore: 1 1 of 1, loss, cancel", &[lone; 2], Faults { losses: 1, ..CANCEL })),
        scene(each("semaphore: 1 2 of 2, twin, cancel", &[one, two], TWIN)),
        scene(each("semaphore: 1 2 of 2, deletion", &[one, two], DELETION)),
        scene(each("semaphore: 1 2 of 2, parent deletion", &[one, two], PARENT_DELETION)),
        scene(all("all: ab ba, twin, loss", &BOTH, Faults { twins: 1, ..LOSS })),
        scene(all("all: ab ba, twin, deletion", &BOTH, Faults { twins: 1, ..DELETION })),
        scene(all("all: with a semaphore, loss", &WITH_SEMAPHORE, LOSS)),
        scene(all("all: ab bc ca", &RING, NONE)),
        walks(wild(each("long: w w r r", &[WRITE, WRITE, READ, READ], NONE)), 100_000),
        walks(wild(each("long: downgrade: w w r", &[WRITE, WRITE, READ], NONE).downgrading()), 100_000),
        walks(wild(each("long: semaphore: 1 1 2 1 of 2", &[one, one, two, one], NONE)), 100_000),
        walks(
            raised(wild(each("long: 1 2 1, raised to 2", &[counted(1), counted(2), counted(1)], NONE))),
            100_000,
        ),
        walks(wild(all("long: ab bc ca", &RING, NONE)), 100_000),
    ]
}

/// Clients that want several things each.
fn all(name: &'static str, wants: &[&[Want]], faults: Faults) -> Setup {
    let wants: Vec<_> = wants.iter().map(|wants| wants.to_vec()).collect();
    Setup::of(name, &wants, faults)
}

/// The same with a node that has the limit: one permit, later two.
fn raised(setup: Setup) -> Setup {
    Setup { limit: Some((1, 2)), ..setup }
}

/// The same with servers that do not report the transaction of a node that they create.
fn old(setup: Setup) -> Setup {
    Setup { tells_origin: false, ..setup }
}

/// The same with nodes that may not be read.
fn hidden(setup: Setup) -> Setup {
    Setup { hides_nodes: true, ..setup }
}

/// The same with everything that can go wrong.
fn wild(setup: Setup) -> Setup {
    let faults = Faults { deletions: 2, ..Faults::MANY };
    Setup { faults, ..setup }
}
