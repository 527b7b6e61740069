//! Promise 5: a cancelled or failed acquire, and one whose replies are lost, leave no permit and no place in the queue.

use crate::support::permits::semaphore;
use crate::support::sweep::{Step, Subject, cancels, resets};
use ground::Kind::{Create, CreateContainer, Delete, Event, Exists, GetChildren, GetData, Multi};
use ground::Side::{Reply, Request};

const LOCKS: &str = "/locks";
const LEASES: &str = "/leases";

/// A client that finds a stranger ahead in the queue, and takes its permit when that is gone.
const ONE: Subject = Subject {
    name: "one",
    lock: |client, path| semaphore(client, path, 3, 1),
    places: &[(LOCKS, 0), (LEASES, 1)],
    blockers: &["/locks/_c_01234567-89ab-4cde-8f01-23456789abcd-lock-"],
    waits: (GetData, 1, LOCKS),
    before: &[
        (Create, Request, 1, LOCKS),
        (Create, Reply, 1, LOCKS),
        (GetChildren, Request, 1, LOCKS),
        (GetChildren, Reply, 1, LOCKS),
        (GetData, Request, 1, LOCKS),
        (GetData, Reply, 1, LOCKS),
    ],
    after: &[
        (Event, Reply, 1, LOCKS),
        (Create, Request, 1, LEASES),
        (Create, Reply, 1, LEASES),
        (GetChildren, Request, 1, LEASES),
        (GetChildren, Reply, 1, LEASES),
        (Exists, Request, 1, LOCKS),
        (Exists, Reply, 1, LOCKS),
    ],
    granted: &[(Delete, Request, 1, LOCKS), (Delete, Reply, 1, LOCKS)],
    recoveries: &[
        (
            (Create, Request, 1, LOCKS),
            &[
                (Multi, Reply, 1, LOCKS),
                (GetChildren, Reply, 1, LOCKS),
                (Exists, Reply, 1, LOCKS),
                (GetChildren, Reply, 2, LOCKS),
            ],
        ),
        (
            (Create, Request, 1, LEASES),
            &[
                (Multi, Request, 1, LEASES),
                (Multi, Reply, 1, LEASES),
                (GetChildren, Reply, 1, LEASES),
                (Exists, Request, 1, LEASES),
                (Exists, Reply, 1, LEASES),
                (GetChildren, Reply, 2, LEASES),
            ],
        ),
    ],
    fresh: &[
        (CreateContainer, Request, 1, LOCKS),
        (CreateContainer, Reply, 1, LOCKS),
        (CreateContainer, Request, 1, LEASES),
        (CreateContainer, Reply, 1, LEASES),
        (Create, Request, 2, LEASES),
        (Create, Reply, 2, LEASES),
    ],
};

const TAKEN: &str = "/leases/_c_01234567-89ab-4cde-8f01-23456789abcd-lease-";

/// A client at the head that finds all permits taken, creates its own, and waits.
const HEAD: Subject = Subject {
    name: "head",
    blockers: &[TAKEN, TAKEN, TAKEN],
    waits: (Exists, 1, LOCKS),
    before: &[],
    after: &[
        (Event, Reply, 1, LEASES),
        (GetChildren, Request, 2, LEASES),
        (Exists, Reply, 2, LOCKS),
        (Multi, Request, 1, LEASES),
        (Multi, Reply, 1, LEASES),
    ],
    granted: &[],
    recoveries: &[],
    fresh: &[],
    ..ONE
};

const LOST: Step = (Multi, Request, 1, LEASES);

/// Like [`ONE`], but with three permits, created in one transaction.
const THREE: Subject = Subject {
    name: "three",
    lock: |client, path| semaphore(client, path, 3, 3),
    places: &[(LOCKS, 0), (LEASES, 3)],
    before: &[],
    after: &[
        (Multi, Request, 1, LEASES),
        (Multi, Reply, 1, LEASES),
        (GetChildren, Request, 1, LEASES),
        (GetChildren, Reply, 1, LEASES),
        (Exists, Request, 1, LOCKS),
        (Exists, Reply, 1, LOCKS),
    ],
    granted: &[(Delete, Request, 1, LOCKS), (Delete, Reply, 1, LOCKS)],
    recoveries: &[(
        LOST,
        &[
            (Multi, Reply, 1, LEASES),
            (GetChildren, Reply, 1, LEASES),
            (Exists, Request, 1, LEASES),
            (Exists, Reply, 3, LEASES),
            (GetChildren, Reply, 2, LEASES),
        ],
    )],
    fresh: &[(CreateContainer, Reply, 1, LEASES), (Multi, Request, 2, LEASES), (Multi, Reply, 2, LEASES)],
    ..ONE
};

/// Like [`HEAD`], with three permits. The first transaction about them creates them. (If the server does not report what
/// that created, the second counting comes before the wait.)
const HEAD_OF_THREE: Subject = Subject {
    name: "head-of-three",
    lock: THREE.lock,
    places: THREE.places,
    after: &[
        (Event, Reply, 1, LEASES),
        (GetChildren, Reply, 2, LEASES),
        (Exists, Request, 2, LOCKS),
        (Multi, Request, 2, LEASES),
        (Multi, Reply, 2, LEASES),
    ],
    ..HEAD
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_wants_a_permit_and_gives_up_at_any_step_leaves_no_node() {
    cancels(&ONE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_wants_a_permit_and_loses_any_message_has_exactly_its_node() {
    resets(&ONE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_wants_three_permits_and_gives_up_at_any_step_leaves_no_node() {
    cancels(&THREE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_wants_three_permits_and_loses_any_message_has_exactly_its_nodes() {
    resets(&THREE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_head_that_gives_up_at_any_step_leaves_no_node() {
    cancels(&HEAD).await;
    cancels(&HEAD_OF_THREE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_head_that_loses_any_message_has_exactly_its_nodes() {
    resets(&HEAD).await;
    resets(&HEAD_OF_THREE).await;
}
