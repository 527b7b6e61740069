//! Promise 5 for sets of locks, at every step: all of its nodes, or none.

use crate::support::sweep::{Step, Subject, cancels, resets};
use ground::{Kind, Side};
use zklock_core::{Client, Lock, LockSpec};

fn mixed(client: &Client, path: &str) -> Lock {
    let locks = [
        client.mutex(&format!("{path}/a")),
        client.read(&format!("{path}/b")),
        client.lock(&LockSpec::semaphore(&format!("{path}/c"), 3).unwrap().permits(2)),
    ];
    client.all(&locks.map(Result::unwrap)).unwrap()
}

const fn step(kind: Kind, side: Side, nth: usize, place: &'static str) -> Step {
    (kind, side, nth, place)
}

use Kind::{CreateContainer, Delete, Event, Exists, GetChildren, GetData, Multi};
use Side::{Reply, Request};

/// A set with a writer ahead of it in its second queue.
const MIXED: Subject = Subject {
    name: "all",
    lock: mixed,
    places: &[("/a", 1), ("/b", 1), ("/c/locks", 0), ("/c/leases", 2)],
    blockers: &["/b/_c_stranger-__WRIT__"],
    waits: (GetData, 1, "/b"),
    before: &[
        step(Multi, Request, 1, "/a"),
        step(Multi, Reply, 1, "/a"),
        step(GetChildren, Request, 1, "/a"),
        step(GetChildren, Reply, 1, "/a"),
        step(GetChildren, Request, 1, "/b"),
        step(GetChildren, Reply, 1, "/c/locks"),
        // Only on servers that do not report what a transaction has created.
        step(Exists, Request, 1, "/a/"),
        step(Exists, Reply, 1, "/b/"),
        step(Exists, Reply, 1, "/c/locks/"),
        step(GetChildren, Request, 2, "/a"),
        step(GetChildren, Reply, 2, "/c/locks"),
        step(GetData, Request, 1, "/b"),
        step(GetData, Reply, 1, "/b"),
    ],
    after: &[
        step(Event, Reply, 1, "/b"),
        step(Multi, Request, 1, "/c/leases"),
        step(Multi, Reply, 1, "/c/leases"),
        step(GetChildren, Request, 1, "/c/leases"),
        step(GetChildren, Reply, 1, "/c/leases"),
        step(Exists, Request, 1, "/c/leases/"),
        step(Exists, Reply, 2, "/c/leases/"),
    ],
    granted: &[step(Delete, Request, 1, "/c/locks"), step(Delete, Reply, 1, "/c/locks")],
    recoveries: &[
        (
            step(Multi, Request, 1, "/a"),
            &[
                step(Multi, Request, 1, "/a"),
                step(Multi, Reply, 1, "/a"),
                step(GetChildren, Request, 1, "/a"),
                step(GetChildren, Reply, 1, "/b"),
                step(GetChildren, Reply, 1, "/c/locks"),
                step(Exists, Request, 1, "/a/"),
                step(Exists, Reply, 1, "/c/locks/"),
                step(GetChildren, Request, 2, "/b"),
            ],
        ),
        (
            step(Multi, Request, 1, "/c/leases"),
            &[
                step(Multi, Request, 1, "/c/leases"),
                step(Multi, Reply, 1, "/c/leases"),
                step(GetChildren, Reply, 1, "/c/leases"),
                step(Exists, Reply, 1, "/c/leases/"),
            ],
        ),
    ],
    fresh: &[
        step(CreateContainer, Request, 1, "/a"),
        step(CreateContainer, Reply, 2, "/a"),
        step(CreateContainer, Request, 1, "/b"),
        step(CreateContainer, Reply, 1, "/c/locks"),
        step(Multi, Request, 2, "/a"),
        step(Multi, Reply, 2, "/a"),
        step(CreateContainer, Request, 1, "/c/leases"),
        step(CreateContainer, Reply, 1, "/c/leases"),
    ],
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_at_every_step_leaves_no_node_in_any_queue() {
    cancels(&MIXED).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reset_at_every_step_leaves_exactly_one_set() {
    resets(&MIXED).await;
}
