//! Promise 7: a grant is delivered only with a live lease, checked at the moment of delivery.

use crate::support::delivery::{
    BEYOND_A_LEASE, Wait, acquiring, is_live, is_told_too_late, queues_again, slept_through,
    slept_through_a_try, slept_through_the_end_of_a_try,
};
use crate::support::kinds::MUTEX;
use crate::support::loss::Blow;
use crate::support::timing::{Noise, Observer};
use crate::support::{
    HEARTBEAT, SESSION, SOON, client, expire_session, operator, options, proxied_client, settled, soon,
};
use ground::{Action, Gate, Kind, Proxy, Trigger, not_later, shared};
use std::sync::Arc;
use std::time::{Duration, Instant};
use zklock_core::{Client, HoldState, LossReason};

/// Longer than any write proves (T/2), shorter than a session.
const BEYOND_ANY_LEASE: Duration = Duration::from_millis(SESSION.as_millis() as u64 * 9 / 16);

/// Waits until the client has just heard from its server, so that it does not reconnect in the middle of a late answer.
/// An idle client pings less often than a heartbeat.
#[track_caller]
fn just_after_a_ping(proxy: &Proxy) {
    assert!(proxy.on(Trigger::reply(Kind::Ping)).wait(SOON));
}

/// Waits without a busy network until at least `time` has passed.
async fn let_pass(time: Duration) {
    tokio::time::sleep(time).await;
}

/// Holds back the answer `kind` to an acquire that would be granted, for `delay`, then perhaps ends the session, and
/// checks the hold that is delivered.
async fn late_answer(path: &str, kind: Kind, delay: Duration, expires: bool) {
    let ((client, proxy), operator) = (proxied_client().await, operator());
    operator.create_all(path, "");
    // Opening a session proves it for a whole timeout. That proof must be over.
    let_pass(SESSION).await;
    just_after_a_ping(&proxy);
    let gate = Gate::new();
    let held = proxy.on(Trigger::reply(kind).path(path).then(Action::Pause(gate.clone())));
    let acquired = acquiring(client.mutex(path).unwrap());
    assert!(held.wait(SOON));
    let_pass(delay).await;
    if expires {
        expire_session(&proxy);
    }
    gate.open();
    let hold = soon(acquired).await.unwrap().unwrap();
    is_live(&MUTEX, &hold, &client, &operator);
    assert_eq!(client.stats().sessions, if expires { 2 } else { 1 });
    settled(&client).await;
    assert_eq!(operator.children(path).len(), 1, "one node, that of the hold");
    soon(hold.release()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_create_or_list_answered_after_the_lease_grants_no_dead_hold() {
    late_answer("/late-create", Kind::Create, BEYOND_A_LEASE, false).await;
    late_answer("/late-list", Kind::GetChildren, BEYOND_A_LEASE, false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_create_that_is_never_answered_on_its_connection_grants_no_dead_hold() {
    late_answer("/later-create", Kind::Create, BEYOND_ANY_LEASE, false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_create_or_list_answered_after_the_session_queues_again_in_the_next() {
    late_answer("/never-create", Kind::Create, BEYOND_A_LEASE, true).await;
    late_answer("/never-list", Kind::GetChildren, BEYOND_A_LEASE, true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_event_or_check_that_comes_after_the_lease_grants_no_dead_hold() {
    let wait = Wait::new(&MUTEX, "late-checks").await;
    let node = wait.node();
    let Wait { path, first, waiter, proxy, acquired, operator } = wait;
    let accepted = proxy.accepted();
    // After this the opening of the session proves nothing any more.
    let_pass(SESSION).await;
    let (event, check, again) = (Gate::new(), Gate::new(), Gate::new());
    let pause = |trigger: Trigger, gate: &Gate| proxy.on(trigger.then(Action::Pause(gate.clone())));
    let told = pause(Trigger::reply(Kind::Event).path(&path), &event);
    // The check of its own node. After a long silence it also asks about the node ahead.
    let check_of_own = || Trigger::reply(Kind::Multi).path(&node);
    let checked = pause(check_of_own(), &check);
    let checked_again = pause(check_of_own().nth(2), &again);
    just_after_a_ping(&proxy);
    soon(first.release()).await.unwrap();
    for (hook, gate) in [(told, event), (checked, check), (checked_again, again)] {
        assert!(hook.wait(SOON), "a grant after such a time needs a check of its own");
        let_pass(BEYOND_A_LEASE).await;
        assert!(!acquired.is_finished(), "nothing proves that the session is alive");
        gate.open();
    }
    let hold = soon(acquired).await.unwrap().unwrap();
    is_live(&MUTEX, &hold, &waiter, &operator);
    assert_eq!((hold.node(), waiter.stats().sessions, proxy.accepted()), (&*node, 1, accepted));
    assert!(hold.token() > first.token());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_whose_node_was_deleted_long_ago_gets_no_hold_without_a_node() {
    queues_again(&MUTEX, Blow::NodeDeleted).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_whose_node_was_deleted_just_now_is_told_within_a_heartbeat() {
    let noise = Noise::measured();
    let wait = Wait::new(&MUTEX, "deleted-hot").await;
    let node = wait.node();
    let Wait { first, waiter, proxy: _proxy, acquired, operator, .. } = wait;
    let deleted = Instant::now();
    operator.delete(&node);
    soon(first.release()).await.unwrap();
    let hold = Arc::new(soon(acquired).await.unwrap().unwrap());
    if hold.node() == node {
        let observer = Observer::of(hold.clone());
        let (told, reason) = observer.told(SOON);
        let late = told.saturating_duration_since(deleted);
        not_later(late, HEARTBEAT + noise.allowance());
        assert_eq!(reason, LossReason::NodeDeleted);
        observer.finish();
    } else {
        // The machine was so slow that the wait was not a short one.
        is_live(&MUTEX, &hold, &waiter, &operator);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_whose_node_was_deleted_queues_again_behind_those_who_wait() {
    let wait = Wait::new(&MUTEX, "deleted-behind").await;
    let node = wait.node();
    let Wait { path, first, waiter, proxy: _proxy, mut acquired, operator } = wait;
    let third = client().await;
    let behind = acquiring(third.mutex(&path).unwrap());
    operator.wait_for_children(&path, 3, SOON);
    operator.delete(&node);
    let_pass(HEARTBEAT + Duration::from_millis(50)).await;
    soon(first.release()).await.unwrap();
    let second = soon(behind).await.unwrap().unwrap();
    is_live(&MUTEX, &second, &third, &operator);
    // The waiter whose node was deleted is back in the queue, and holds nothing.
    let queue = operator.wait_for_children(&path, 2, SOON);
    assert_eq!(queue.len(), 2);
    assert!(tokio::time::timeout(HEARTBEAT, &mut acquired).await.is_err(), "two hold at once");
    assert_eq!(second.state(), HoldState::Held);
    soon(second.release()).await.unwrap();
    let hold = soon(acquired).await.unwrap().unwrap();
    is_live(&MUTEX, &hold, &waiter, &operator);
    assert!(hold.token() > second.token());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_whose_session_expires_queues_again_in_the_next() {
    queues_again(&MUTEX, Blow::Expiry).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_whose_session_expires_with_the_lock_free_meanwhile_gets_no_dead_hold() {
    is_told_too_late(&MUTEX).await;
}

#[tokio::test]
async fn a_grant_that_the_process_slept_through_is_not_delivered() {
    slept_through(&MUTEX).await;
}

#[tokio::test]
async fn a_grant_to_a_try_that_the_process_slept_through_is_not_delivered() {
    slept_through_a_try(&MUTEX).await;
}

#[tokio::test]
async fn a_try_that_slept_through_its_time_is_given_nothing() {
    slept_through_the_end_of_a_try(&MUTEX).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_longer_than_several_leases_ends_in_a_live_hold() {
    let session = Duration::from_millis(400);
    let path = "/long-wait";
    let first = soon(client().await.mutex(path).unwrap().acquire()).await.unwrap();
    let hosts = shared().connect_string();
    let waiter = Client::connect(options(&hosts).session_timeout(session).unwrap()).await.unwrap();
    let acquired = acquiring(waiter.mutex(path).unwrap());
    let_pass(session * 3).await;
    soon(first.release()).await.unwrap();
    let hold = soon(acquired).await.unwrap().unwrap();
    assert!(operator().stat(hold.node()).is_some());
    assert!(hold.token() > first.token());
}
