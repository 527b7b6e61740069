//! The cases of the mutex and of the lease.

use super::pulse::{Server, Stops};
use super::setup::{CANCEL, DELETION, EXPIRY, Faults, LOSS, NONE, Setup};
use super::suite::{Case, lease, scene, walks};

const LOSS_AND_CANCEL: Faults = Faults { losses: 1, ..CANCEL };
const EXPIRY_AND_LOSS: Faults = Faults { expiries: 1, ..LOSS };

/// The last number that may be used.
const LAST: i32 = i32::MAX - (1 << 20);

/// The cases of every run. The smallest come first, so that a violation has a short trace.
pub(crate) fn short() -> Vec<Case> {
    let ticks = Faults { steps: 9, beats: 1, ..EXPIRY };
    let mut cases = vec![
        scene(Setup::new("3 clients", 3, NONE)),
        scene(numbered(LAST, Setup::new("numbers: 2, one is left", 2, NONE))),
        scene(numbered(LAST - 1, Setup::new("numbers: 3, two are left", 3, NONE))),
        scene(numbered(i32::MAX, Setup::new("numbers: 2, none is left", 2, CANCEL))),
        scene(numbered(LAST, Setup::new("numbers: 2, loss, cancel", 2, LOSS_AND_CANCEL))),
        scene(numbered(LAST, Setup::new("numbers: 2, try once", 2, NONE)).trying_once()),
        scene(Setup::new("3, try once", 3, NONE).trying_once()),
        scene(Setup { parent: None, ..Setup::new("2, no parent", 2, NONE) }),
        scene(Setup::new("2, two losses", 2, Faults { losses: 2, ..NONE })),
        scene(Setup::new("2, loss, cancel", 2, LOSS_AND_CANCEL)),
        scene(Setup::new("2, twin, loss, cancel", 2, Faults { twins: 1, ..LOSS_AND_CANCEL })),
        scene(Setup::new("2, refusal, loss", 2, Faults { refusals: 1, ..LOSS_AND_CANCEL })),
        scene(Setup::new("2, change, loss", 2, Faults { changes: 1, ..LOSS_AND_CANCEL })),
        scene(Setup::new("2, expiry, loss", 2, EXPIRY_AND_LOSS)),
        scene(Setup::new("2, ticks", 2, ticks).ticking(1)),
        scene(Setup::new("2, expiry, cancel", 2, Faults { expiries: 1, ..CANCEL })),
        scene(Setup::new("2, deletion, time", 2, Faults { deletions: 1, steps: 2, ..CANCEL })),
        scene(Setup::new("2, parent deletion", 2, Faults { parent_deletions: 1, steps: 2, ..NONE })),
        scene(Setup { attempts: 2, ..Setup::new("2 twice, expiry", 2, EXPIRY) }),
        scene(Setup { tells_origin: false, ..Setup::new("2, old server", 2, EXPIRY_AND_LOSS) }),
        scene(Setup::new("3, deletion", 3, DELETION)),
    ];
    cases.extend([5, 2].into_iter().flat_map(|period| cut(period, 12)));
    cases.extend(moving(10));
    cases.extend([stalls(5, 0, 2), stalls(4, 2, 2), stalls(2, 3, 3)]);
    cases.extend(wandering());
    cases.extend([
        walks(Setup::new("4 clients, two cancels", 4, Faults { cancels: 2, ..NONE }), 4_000),
        walks(wild("4 clients, everything", 4, 2), 4_000),
        walks(Setup { parent: None, tells_origin: false, ..wild("3 clients, old server", 3, 3) }, 2_000),
        walks(ticking("3 clients, ticks", 3), 4_000),
    ]);
    cases
}

/// The same in a directory whose next sequence number is this.
fn numbered(next: i32, setup: Setup) -> Setup {
    Setup { parent: Some(next), ..setup }
}

const ONE: &[Server] = &[Server::Granting(20)];

/// One link stops: the client's for a while, or the leader's for good.
fn cut(period: u8, end: u8) -> [Case; 2] {
    let stops = |client, leader| Stops { client, leader, resumes: false };
    [
        lease("client stalls", period, end, stops(1, 0), ONE),
        lease("leader cut off", period, end, stops(0, 1), ONE),
    ]
}

/// Both links may stop for a while, so often, during three timeouts.
fn stalls(period: u8, client: u8, leader: u8) -> Case {
    let name = format!("stalls {client} and {leader}");
    lease(&name, period, 60, Stops { client, leader, resumes: true }, ONE).walks(40_000)
}

/// Sessions that move to another server.
fn moving(end: u8) -> Vec<Case> {
    use Server::{Deposed, Granting};
    let one = |client, leader| Stops { client, leader, resumes: true };
    vec![
        lease("another server", 5, end, one(0, 1), &[Granting(20), Granting(20)]),
        // The least that another server may grant.
        lease("half of T", 2, end, one(0, 1), &[Granting(20), Granting(10)]),
        lease("twice T", 2, end, one(1, 0), &[Granting(10), Granting(20)]),
        lease("a deposed leader", 5, end, one(0, 1), &[Granting(20), Deposed]),
        lease("half, and back", 2, end - 2, one(1, 1), &[Granting(20), Granting(10), Granting(20)]),
        lease("deposed, and back", 5, end - 2, one(1, 1), &[Granting(20), Deposed, Granting(20)]),
    ]
}

/// The same at random.
fn wandering() -> Vec<Case> {
    use Server::{Deposed, Granting};
    let stops = Stops { client: 3, leader: 3, resumes: true };
    let wanders = |period, servers: &'static [Server]| {
        lease(&format!("{} servers", servers.len()), period, 60, stops, servers).walks(40_000)
    };
    vec![
        wanders(2, &[Granting(20), Granting(10), Deposed, Granting(20), Granting(10)]),
        wanders(5, &[Granting(20), Granting(20), Deposed, Granting(20)]),
    ]
}

/// The additional cases of long runs.
pub(crate) fn long() -> Vec<Case> {
    let (slow, slower) = (Faults { steps: 8, beats: 1, ..EXPIRY }, Faults { steps: 10, beats: 2, ..EXPIRY });
    let but_loss = Faults { parent_deletions: 1, steps: 1, ..EXPIRY };
    let mut cases = vec![
        scene(Setup { parent: None, ..Setup::new("3, no parent", 3, NONE) }),
        scene(Setup::new("2, deletion, loss", 2, Faults { deletions: 1, steps: 1, ..LOSS })),
        scene(Setup::new("3, loss", 3, LOSS)),
        scene(Setup::new("3, cancel, change", 3, Faults { changes: 1, ..CANCEL })),
        scene(Setup::new("2, expiry, loss, time", 2, Faults { steps: 1, ..EXPIRY_AND_LOSS })),
        scene(Setup { attempts: 2, ..Setup::new("2 twice, expiry, time", 2, Faults { steps: 1, ..EXPIRY }) }),
        scene(Setup::new("3, loss, cancel", 3, LOSS_AND_CANCEL)),
        scene(Setup::new("2, three losses", 2, Faults { losses: 3, ..CANCEL })),
        scene(Setup::new("2, loss, deletion", 2, Faults { deletions: 1, steps: 2, ..LOSS })),
        scene(Setup::new("3, deletion, time", 3, Faults { steps: 1, ..DELETION })),
        scene(Setup::new("3, expiry", 3, EXPIRY)),
        scene(Setup { parent: None, ..Setup::new("2, all but loss", 2, but_loss) }),
        scene(Setup::new("2, two slow", 2, slow).ticking(2)),
        scene(Setup::new("2, ten ticks", 2, slower).ticking(1)),
        walks(wild("5 clients, everything", 5, 3), 100_000),
        walks(ticking("4 clients, ticks", 4), 100_000),
    ];
    cases.extend([5, 3].into_iter().flat_map(|period| cut(period, 14)));
    cases.extend(moving(12));
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
        ..Faults::NONE
    };
    Setup { attempts, ..Setup::new(name, clients, faults) }
}

fn ticking(name: &'static str, clients: usize) -> Setup {
    let faults = Faults { losses: 3, cancels: 1, expiries: 3, steps: 60, beats: 30, ..Faults::NONE };
    Setup { attempts: 2, ..Setup::new(name, clients, faults).ticking(clients) }
}
