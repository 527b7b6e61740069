//! Promise 1, as every kind keeps it: holds that exclude each other are never valid at once, though sessions end and
//! connections break.

use crate::support::kinds::{SET, of_each};
use crate::support::permits::semaphore;
use crate::support::register::{Faults, Register};
use crate::support::{SOON, operator, settled};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use zklock::{Client, Lock, LockSpec};

/// More holds than there ever are.
const ALL: u32 = 1000;
const BRIEF: Duration = Duration::from_millis(2);
/// Long enough for a node to be used again, and so short that the end of the test need not wait for it.
const LINGER: Duration = Duration::from_millis(300);

/// How long faults strike.
const TROUBLED: Duration = Duration::from_secs(5);

/// The resource of a contest, and its contenders.
struct Contest {
    path: &'static str,
    /// The directories of its nodes, below the path.
    places: &'static [&'static str],
    /// How much may be held at once.
    limit: u32,
    clients: usize,
    contenders: usize,
    /// The lock of the contender with this number, and how much it holds.
    lock: fn(&Client, &str, usize) -> (Lock, u32),
    /// How long a hold lasts.
    lasts: Duration,
    /// How many holds are there at once, at least once before the end.
    meet: usize,
    /// Whether several holders of one process may share a token.
    shares_tokens: bool,
}

const MUTEX: Contest = Contest {
    path: "/exclusive/mutex",
    places: &[""],
    limit: 1,
    clients: 8,
    contenders: 16,
    lock: |client, path, _| (client.mutex(path).unwrap(), 1),
    lasts: BRIEF,
    meet: 1,
    shares_tokens: false,
};

/// Every third of them writes.
const SIDES: Contest = Contest {
    path: "/exclusive/sides",
    limit: ALL,
    contenders: 32,
    lock: |client, path, number| {
        let (spec, weight) = side(path, number);
        (client.lock(&spec).unwrap(), weight)
    },
    meet: 2,
    ..MUTEX
};

fn side(path: &str, number: usize) -> (LockSpec, u32) {
    match number % 3 {
        0 => (LockSpec::write_lock(path).unwrap(), ALL),
        _ => (LockSpec::read_lock(path).unwrap(), 1),
    }
}

/// Some nodes linger, some are passed on, some are neither.
const KEPT: Contest = Contest {
    path: "/exclusive/kept",
    contenders: 24,
    lock: |client, path, number| {
        let (spec, weight) = side(path, number);
        let spec = match number % 4 {
            0 => spec,
            1 => spec.linger(LINGER),
            2 => spec.max_local_handoffs(4),
            _ => spec.linger(LINGER).max_local_handoffs(2),
        };
        (client.lock(&spec).unwrap(), weight)
    },
    shares_tokens: true,
    ..SIDES
};

/// One to three permits each.
const PERMITS: Contest = Contest {
    path: "/exclusive/permits",
    places: &["/locks", "/leases"],
    limit: 5,
    contenders: 32,
    lock: |client, path, number| {
        let permits = 1 + number as u32 / 8 % 3;
        (semaphore(client, path, 5, permits), permits)
    },
    lasts: Duration::from_millis(30),
    meet: 3,
    ..MUTEX
};

/// Sets of two locks, against each of the two.
const SETS: Contest = Contest {
    path: "/exclusive/sets",
    places: SET.places,
    lock: |client, path, number| match number % 3 {
        0 => ((SET.rival)(client, path), 1),
        _ => {
            let [b, a] = [client.write_lock(&format!("{path}/b")), client.mutex(&format!("{path}/a"))];
            (client.all(&[b.unwrap(), a.unwrap()]).unwrap(), 1)
        }
    },
    ..MUTEX
};

const SINGLE_NODE: Contest = Contest {
    path: "/exclusive/single-node",
    clients: 6,
    contenders: 6,
    lock: |client, path, _| (client.single_node(path).unwrap(), 1),
    ..MUTEX
};

/// Runs while connections break and sessions end, and then until everybody can have had another turn.
async fn under_faults(contest: &Contest) {
    let (clients, mut faults) = Faults::beset(contest.clients).await;
    let (register, ended) = (Register::of(contest.limit), Arc::new(AtomicBool::new(false)));
    let (mut contenders, lasts) = (JoinSet::new(), contest.lasts);
    for (number, client) in clients.iter().cycle().take(contest.contenders).enumerate() {
        let (lock, weight) = (contest.lock)(client, contest.path, number);
        let (register, ended) = (register.clone(), ended.clone());
        contenders.spawn(async move {
            while !ended.load(Ordering::Relaxed) {
                register.turn(&lock, weight, lasts).await;
            }
        });
    }
    tokio::time::sleep(TROUBLED).await;
    faults.end();
    // Grants must go on after the last fault.
    let enough = register.count() + contest.contenders;
    let more = async {
        while register.count() < enough || register.most() < contest.meet {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(SOON * 2, more).await.expect("others get in, and as many at once as can be");
    ended.store(true, Ordering::Relaxed);
    tokio::time::timeout(SOON * 2, contenders.join_all()).await.expect("everybody has a turn");
    println!("{} grants, {} holds at once", register.count(), register.most());
    let expired: u64 = clients.iter().map(|client| client.stats().sessions - 1).sum();
    assert!(expired > 3, "{expired} sessions ended");
    for client in &clients {
        settled(client).await;
    }
    for place in contest.places {
        operator().wait_for_children(&format!("{}{place}", contest.path), 0, SOON);
    }
    register.assert_ordered(if contest.shares_tokens { u64::le } else { u64::lt });
}

of_each! {
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    sessions_that_end_and_connections_that_break_let_nobody_in_beside_the_holder:
        under_faults(MUTEX, SIDES, KEPT, PERMITS, SETS, SINGLE_NODE);
}
