//! Promise 5: a cancelled or failed acquire, and one whose replies are lost, leave no node of either side.

use crate::support::sweep::{Step, Subject, cancels, resets};
use crate::support::{SOON, client, operator, settled, soon};
use ground::{Kind, Side};
use std::time::Duration;
use zklock_core::ErrorKind;

const BEFORE: &[Step] = &[
    (Kind::Create, Side::Request, 1, ""),
    (Kind::Create, Side::Reply, 1, ""),
    (Kind::GetChildren, Side::Request, 1, ""),
    (Kind::GetChildren, Side::Reply, 1, ""),
    (Kind::GetData, Side::Request, 1, ""),
    (Kind::GetData, Side::Reply, 1, ""),
];

const AFTER: &[Step] = &[
    (Kind::Event, Side::Reply, 1, ""),
    (Kind::Multi, Side::Request, 1, ""),
    (Kind::Multi, Side::Reply, 1, ""),
];

const FRESH: &[Step] = &[
    (Kind::CreateContainer, Side::Request, 1, ""),
    (Kind::CreateContainer, Side::Reply, 1, ""),
    (Kind::Create, Side::Request, 2, ""),
    (Kind::Create, Side::Reply, 2, ""),
];

const LOST: Step = (Kind::Create, Side::Request, 1, "");
const RECOVERY: &[Step] = &[
    (Kind::Multi, Side::Request, 1, ""),
    (Kind::Multi, Side::Reply, 1, ""),
    (Kind::GetChildren, Side::Reply, 1, ""),
    (Kind::Exists, Side::Request, 1, ""),
    (Kind::Exists, Side::Reply, 1, ""),
    (Kind::GetChildren, Side::Reply, 2, ""),
];

const READ: Subject = Subject {
    name: "read",
    lock: |client, path| client.read(path).unwrap(),
    places: &[("", 1)],
    blockers: &["/_c_01234567-89ab-4cde-8f01-23456789abcd-__WRIT__"],
    waits: (Kind::GetData, 1, ""),
    before: BEFORE,
    after: AFTER,
    granted: &[],
    recoveries: &[(LOST, RECOVERY)],
    fresh: FRESH,
};

const WRITE: Subject = Subject {
    name: "write",
    lock: |client, path| client.write(path).unwrap(),
    // A reader is in its way. A writer would be the same case as in a mutex.
    blockers: &["/_c_01234567-89ab-4cde-8f01-23456789abcd-__READ__"],
    ..READ
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_gives_up_at_any_step_leaves_no_node() {
    cancels(&READ).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_that_gives_up_at_any_step_leaves_no_node() {
    cancels(&WRITE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_loses_any_message_has_exactly_one_node() {
    resets(&READ).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_that_loses_any_message_has_exactly_one_node() {
    resets(&WRITE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_try_and_a_wait_in_vain_leave_no_node_on_either_side() {
    let (holder, other, admin) = (client().await, client().await, operator());
    let path = "/rwlock/in-vain";
    let write = soon(holder.write(path).unwrap().acquire()).await.unwrap();
    for lock in [other.read(path).unwrap(), other.write(path).unwrap()] {
        assert!(soon(lock.try_acquire()).await.unwrap().is_none());
        let error = soon(lock.acquire_timeout(Duration::from_millis(50))).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
        assert!(error.to_string().contains("others are before us"), "{error}");
    }
    settled(&other).await;
    assert_eq!(admin.children(path).len(), 1);
    soon(write.release()).await.unwrap();

    let read = soon(holder.read(path).unwrap().acquire()).await.unwrap();
    assert!(soon(other.write(path).unwrap().try_acquire()).await.unwrap().is_none());
    settled(&other).await;
    let second = soon(other.read(path).unwrap().try_acquire()).await.unwrap().expect("readers are together");
    drop((read, second));
    admin.wait_for_children(path, 0, SOON);
    settled(&other).await;
}
