//! The double barrier: its members begin together and end together.

use crate::support::members::{barrier, enters, is_empty, is_open, leaves, still_waits, there, within};
use crate::support::{client, operator, says, settled, soon};
use tokio::task::JoinHandle;
use zklock::further::Member;
use zklock::{ErrorKind, LossReason};

async fn entered(task: JoinHandle<Result<Member, zklock::Error>>) -> Member {
    soon(task).await.unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_begins_before_all_are_there_and_nobody_ends_before_all_are_done() {
    let (one, two, operator, path) = (client().await, client().await, operator(), "/double/plain/a");
    let (a, b) = (enters(&one, path, 3), enters(&two, path, 3));
    there(&operator, path, 2);
    still_waits(&a).await;
    still_waits(&b).await;
    assert!(!is_open(&operator, path));
    // Two members count as two, even in one session.
    let c = entered(enters(&two, path, 3)).await;
    let (a, b) = (entered(a).await, entered(b).await);
    assert!(is_open(&operator, path));
    let names = there(&operator, path, 3);
    for member in [&a, &b, &c] {
        let name = member.node().strip_prefix("/double/plain/a/").unwrap();
        assert!(names.contains(&name.to_owned()));
        let lengths: Vec<_> = name.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12], "{name}");
        assert_eq!((member.path(), member.loss()), (path, None));
    }
    assert_eq!(operator.stat(a.node()).unwrap().ephemeral_owner, one.session_id().unwrap());
    assert_eq!(operator.stat(&format!("{path}/ready")).unwrap().ephemeral_owner, 0);

    let (a, b) = (leaves(a), leaves(b));
    still_waits(&a).await;
    still_waits(&b).await;
    soon(c.leave()).await.unwrap();
    soon(a).await.unwrap().unwrap();
    soon(b).await.unwrap().unwrap();
    is_empty(&operator, path);
    says(&c.leave().await.unwrap_err(), ErrorKind::NotHeld, &[path, "has already left"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_is_dropped_has_left() {
    let (operator, path) = (operator(), "/double/dropped");
    let mut members = within(path, 3).await;
    let (stays, _client) = members.remove(1);
    let left = leaves(stays);
    still_waits(&left).await;
    let (first, first_client) = members.remove(0);
    drop(first);
    still_waits(&left).await;
    drop(members.remove(0).0);
    soon(left).await.unwrap().unwrap();
    settled(&first_client).await;
    is_empty(&operator, path);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_outlives_the_client_and_the_barrier_that_made_it() {
    let (operator, path) = (operator(), "/double/outlives");
    let member = {
        let client = client().await;
        soon(barrier(&client, path, 1).enter()).await.unwrap()
    };
    assert!(operator.stat(member.node()).is_some() && member.loss().is_none());
    soon(member.leave()).await.unwrap();
    is_empty(&operator, path);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_an_operator_deletes_is_created_again_by_who_waits_and_lost_to_who_is_within() {
    let (one, operator, path) = (client().await, operator(), "/double/deleted");
    let a = enters(&one, path, 2);
    let first = there(&operator, path, 1);
    operator.delete(&format!("{path}/{}", first[0]));
    // The waiter looks again when something changes, or after a session timeout.
    operator.create(&format!("{path}/ready"), "");
    operator.delete(&format!("{path}/ready"));
    // Others may wait for the end of the old one, so its name is not used again.
    assert_ne!(there(&operator, path, 1), first);
    let b = entered(enters(&one, path, 2)).await;
    let a = entered(a).await;
    operator.delete(b.node());
    let error = soon(b.leave()).await.unwrap_err();
    says(&error, ErrorKind::Lost(LossReason::NodeDeleted), &[path, "its node was deleted"]);
    soon(a.leave()).await.unwrap();
    is_empty(&operator, path);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_barrier_whose_ready_cannot_be_deleted_opens_again_all_the_same() {
    let (client, operator, path) = (client().await, operator(), "/double/undeletable");
    operator.create_all(&format!("{path}/ready/child"), "");
    for _ in 0..2 {
        soon(soon(barrier(&client, path, 1).enter()).await.unwrap().leave()).await.unwrap();
        there(&operator, path, 0);
    }
    assert!(is_open(&operator, path), "somebody's child is below it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_makes_no_barrier_is_refused() {
    let client = client().await;
    let error = client.double_barrier("/double/none", 0).unwrap_err();
    says(&error, ErrorKind::InvalidInput, &["/double/none", "members"]);
    for wrong in ["", "double", "/", "/double/", "/zookeeper/a"] {
        assert_eq!(client.double_barrier(wrong, 1).unwrap_err().kind(), ErrorKind::InvalidInput, "{wrong}");
    }
    let barrier = barrier(&client, "/double/closed", 2);
    assert_eq!((barrier.path(), barrier.members()), ("/double/closed", 2));
    let waiting = enters(&client, "/double/closed", 2);
    let within = soon(client.double_barrier("/double/closed-one", 1).unwrap().enter()).await.unwrap();
    there(&operator(), "/double/closed", 1);
    soon(client.close()).await.unwrap();
    assert_eq!(soon(waiting).await.unwrap().unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(soon(barrier.enter()).await.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(within.loss(), Some(LossReason::ClientClosed));
    assert_eq!(soon(within.lost()).await, Ok(LossReason::ClientClosed));
    assert_eq!(soon(within.leave()).await.unwrap_err().kind(), ErrorKind::Lost(LossReason::ClientClosed));
}
