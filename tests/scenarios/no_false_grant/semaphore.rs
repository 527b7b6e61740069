//! Promise 7: permits are granted only to a client that has their nodes, in a session that is alive.

use crate::support::delivery::{is_told_too_late, slept_through, slept_through_a_try};
use crate::support::kinds::{PERMIT, PERMITS};
use crate::support::permits::{Waiter, has, semaphore};
use crate::support::{HEARTBEAT, SOON, client, operator, soon};
use ground::{Action, Gate, Kind, Trigger};
use std::time::Duration;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_head_that_is_told_of_its_permits_after_its_session_gets_no_dead_hold() {
    is_told_too_late(&PERMIT).await;
    is_told_too_late(&PERMITS).await;
}

/// The operator deletes a permit between the count and the grant, where only a check can tell.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_permit_that_was_deleted_long_ago_is_not_granted() {
    let (holder, operator, path) = (client().await, operator(), "/semaphore/deleted");
    let hold = soon(semaphore(&holder, path, 3, 3).acquire()).await.unwrap();
    let waiter = Waiter::new(path, true, 3, 3).await;
    tokio::time::sleep(HEARTBEAT + Duration::from_millis(50)).await;
    let own: Vec<_> = crate::support::queue::nodes(&operator, &format!("{path}/leases"));
    let checked = Trigger::request(Kind::Multi).path(&own[4]);
    let gate = Gate::new();
    let checked = waiter.proxy.on(checked.then(Action::Pause(gate.clone())));
    soon(hold.release()).await.unwrap();
    assert!(checked.wait(SOON), "a grant after such a time needs a check");
    operator.delete(&own[4]);
    gate.open();
    let (hold, _client) = waiter.granted().await;
    assert!(hold.nodes().all(|node| operator.stat(node).is_some() && node != own[4]));
    has(&operator, path, 0, 3);
    soon(hold.release()).await.unwrap();
}

#[tokio::test]
async fn a_grant_that_the_process_slept_through_is_not_delivered() {
    slept_through(&PERMITS).await;
    slept_through_a_try(&PERMITS).await;
}
