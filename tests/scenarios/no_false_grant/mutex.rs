//! Promise 7: a grant is delivered only with a live lease, checked at the moment of delivery.

use crate::support::delivery::{BEYOND_A_LEASE, is_live, queues_again};
use crate::support::kinds::MUTEX;
use crate::support::loss::Blow;
use crate::support::queue::acquire;
use crate::support::{SESSION, SOON, operator, proxied_client, settled, soon};
use ground::{Action, Gate, Kind, Trigger};

/// Holds back the answer `kind` to an acquire that would be granted, for longer than a lease, and checks the hold that is
/// delivered.
async fn late_answer(path: &str, kind: Kind) {
    let ((client, proxy), operator) = (proxied_client().await, operator());
    operator.create_all(path, "");
    // Opening a session proves it for a whole timeout. That proof must be over.
    tokio::time::sleep(SESSION).await;
    // The client has just heard from its server, so that it does not reconnect in the middle of a late answer. An idle client
    // pings less often than a heartbeat.
    assert!(proxy.on(Trigger::reply(Kind::Ping)).wait(SOON));
    let gate = Gate::new();
    let held = proxy.on(Trigger::reply(kind).path(path).then(Action::Pause(gate.clone())));
    let acquired = acquire(&client.mutex(path).unwrap());
    assert!(held.wait(SOON));
    tokio::time::sleep(BEYOND_A_LEASE).await;
    gate.open();
    let hold = soon(acquired).await.unwrap().unwrap();
    is_live(&MUTEX, &hold, &client, &operator);
    assert_eq!(client.stats().sessions, 1);
    settled(&client).await;
    assert_eq!(operator.children(path).len(), 1, "one node, that of the hold");
    soon(hold.release()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_create_or_list_answered_after_the_lease_grants_no_dead_hold() {
    late_answer("/late-create", Kind::Create).await;
    late_answer("/late-list", Kind::GetChildren).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_whose_node_was_deleted_long_ago_gets_no_hold_without_a_node() {
    queues_again(&MUTEX, Blow::NodeDeleted).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_whose_session_expires_queues_again_in_the_next() {
    queues_again(&MUTEX, Blow::Expiry).await;
}
