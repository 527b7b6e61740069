//! The double barrier: its members begin together and end together.

use crate::support::members::{barrier, enters, is_empty, is_open, leaves, there, within};
use crate::support::{SOON, client, operator, proxied_client, says, settled, soon};
use ground::wire::Mode;
use ground::{Action, Gate, Kind, Trigger};
use std::time::Duration;
use tokio::task::JoinHandle;
use zklock_core::{ErrorKind, LossReason, Member};

/// Gives every member the time to pass, before the test says that none does.
async fn still_waits<T>(task: &JoinHandle<T>) {
    tokio::time::sleep(Duration::from_millis(150)).await;
    assert!(!task.is_finished());
}

async fn entered(task: JoinHandle<Result<Member, zklock_core::Error>>) -> Member {
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
    says(&c.leave().await.unwrap_err(), ErrorKind::NotHeld, &[path, "has left before"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_leaves_first_waits_and_ready_goes_with_the_last() {
    let (operator, path) = (operator(), "/double/order");
    // The order of their names decides which of them stays to the end.
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
        let mut members: Vec<_> = within(path, 3).await.into_iter().map(Some).collect();
        let mut leaving = Vec::new();
        let mut clients = Vec::new();
        for number in order {
            for earlier in &leaving {
                still_waits(earlier).await;
            }
            assert!(is_open(&operator, path));
            let (member, client) = members[number].take().unwrap();
            leaving.push(leaves(member));
            clients.push(client);
        }
        for left in leaving {
            soon(left).await.unwrap().unwrap();
        }
        assert_eq!(operator.children(path), [""; 0], "{order:?}: gone by the time that the first returns");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_alone_opens_a_barrier_for_one() {
    let (client, operator, path) = (client().await, operator(), "/double/one");
    for _ in 0..3 {
        let member = entered(enters(&client, path, 1)).await;
        assert!(is_open(&operator, path));
        soon(member.leave()).await.unwrap();
        assert_eq!(operator.children(path), [""; 0]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_who_is_late_goes_in_and_is_waited_for() {
    let (client, operator, path) = (client().await, operator(), "/double/late");
    let mut members = within(path, 2).await;
    let late = entered(enters(&client, path, 2)).await;
    let later = entered(enters(&client, path, 9)).await;
    let leaving: Vec<_> = members.drain(..).map(|(member, client)| (leaves(member), client)).collect();
    for (left, _) in &leaving {
        still_waits(left).await;
    }
    let late = leaves(late);
    still_waits(&late).await;
    soon(later.leave()).await.unwrap();
    soon(late).await.unwrap().unwrap();
    for (left, _) in leaving {
        soon(left).await.unwrap().unwrap();
    }
    is_empty(&operator, path);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_who_is_late_keeps_the_round_open_when_those_before_him_have_gone() {
    let (client, operator, path) = (client().await, operator(), "/double/late-last");
    let mut members = within(path, 2).await;
    let late = entered(enters(&client, path, 2)).await;
    // They do not wait for each other.
    members.clear();
    there(&operator, path, 1);
    let later = entered(enters(&client, path, 9)).await;
    let late = leaves(late);
    still_waits(&late).await;
    soon(later.leave()).await.unwrap();
    soon(late).await.unwrap().unwrap();
    is_empty(&operator, path);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ready_of_a_round_that_is_over_lets_nobody_in() {
    let (client, operator, path) = (client().await, operator(), "/double/left-behind");
    operator.create_all(&format!("{path}/ready"), "");
    let a = enters(&client, path, 3);
    there(&operator, path, 1);
    still_waits(&a).await;
    let b = enters(&client, path, 3);
    there(&operator, path, 2);
    still_waits(&b).await;
    still_waits(&a).await;
    let c = entered(enters(&client, path, 3)).await;
    let leaving = [leaves(entered(a).await), leaves(entered(b).await)];
    soon(c.leave()).await.unwrap();
    for left in leaving {
        soon(left).await.unwrap().unwrap();
    }
    is_empty(&operator, path);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leaver_does_not_wait_for_who_came_after_he_began_to_leave() {
    let (operator, path) = (operator(), "/double/next");
    // Once with the member that stays to the end and once with the other, each with a newcomer whose name is the last or the first.
    for (first, name) in [(0, "zzz"), (1, "zzz"), (0, "!"), (1, "!")] {
        let mut members = within(path, 2).await;
        let (member, _client) = members.remove(first);
        let left = leaves(member);
        there(&operator, path, if first == 0 { 2 } else { 1 });
        still_waits(&left).await;
        let next = operator.create_mode(&format!("{path}/{name}"), "", Mode::Ephemeral);
        let (member, _client) = members.remove(0);
        // Nor does it wait for a contender that is there but never went in.
        let other = leaves(member);
        soon(left).await.unwrap().unwrap();
        soon(other).await.unwrap().unwrap();
        assert!(operator.stat(&next).is_some());
        operator.delete_tree(path);
    }
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
    there(&operator, path, 1);
    let b = entered(enters(&one, path, 2)).await;
    let a = entered(a).await;
    operator.delete(b.node());
    let error = soon(b.leave()).await.unwrap_err();
    says(&error, ErrorKind::Lost(LossReason::NodeDeleted), &[path, "its node was deleted"]);
    soon(a.leave()).await.unwrap();
    is_empty(&operator, path);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_opens_only_if_all_are_there_in_that_very_transaction() {
    let (operator, path) = (operator(), "/double/atomic");
    let (client, proxy) = proxied_client().await;
    operator.create_all(path, "");
    let other = operator.create_mode(&format!("{path}/other"), "", Mode::Ephemeral);
    let gate = Gate::new();
    let opens = proxy.on(Trigger::request(Kind::Multi).path(path).then(Action::Pause(gate.clone())));
    let member = enters(&client, path, 2);
    assert!(opens.wait(SOON));
    operator.delete(&other);
    gate.open();
    still_waits(&member).await;
    assert!(!is_open(&operator, path));
    let other = entered(enters(&client, path, 2)).await;
    let member = entered(member).await;
    let left = leaves(other);
    soon(member.leave()).await.unwrap();
    soon(left).await.unwrap().unwrap();
    is_empty(&operator, path);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_makes_no_barrier_is_refused() {
    let client = client().await;
    says(
        &client.double_barrier("/double/none", 0).unwrap_err(),
        ErrorKind::InvalidInput,
        &["/double/none", "members"],
    );
    for wrong in ["", "double", "/", "/double/", "/zookeeper/a"] {
        assert_eq!(client.double_barrier(wrong, 1).unwrap_err().kind(), ErrorKind::InvalidInput, "{wrong}");
    }
    let barrier = barrier(&client, "/double/closed", 2);
    assert_eq!((barrier.path(), barrier.members()), ("/double/closed", 2));
    let waiting = enters(&client, "/double/closed", 2);
    let within = soon(client.double_barrier("/double/closed-one", 1).unwrap().enter()).await.unwrap();
    there(&operator(), "/double/closed", 1);
    soon(client.close()).await;
    assert_eq!(soon(waiting).await.unwrap().unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(soon(barrier.enter()).await.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(within.loss(), Some(LossReason::ClientClosed));
    assert_eq!(soon(within.lost()).await, LossReason::ClientClosed);
    assert_eq!(soon(within.leave()).await.unwrap_err().kind(), ErrorKind::Lost(LossReason::ClientClosed));
}
