//! Promise 7: a grant is delivered only with a live lease, checked at the moment of delivery.

use crate::support::timing::{Noise, Observer};
use crate::support::{
    SESSION, SOON, client, expire_session, operator, options, proxied_client, settled, soon,
};
use ground::wire::Admin;
use ground::{Action, Gate, Kind, Proxy, Trigger, not_later, shared};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use zklock_core::{Client, Error, ErrorKind, Hold, HoldState, LossReason};

/// Longer than a write proves where only one went before it (T/4), shorter than the client library waits for a sign of life (2/5 T).
const BEYOND_A_LEASE: Duration = Duration::from_millis(SESSION.as_millis() as u64 / 3);
/// Longer than any write proves (T/2), shorter than a session.
const BEYOND_ANY_LEASE: Duration = Duration::from_millis(SESSION.as_millis() as u64 * 9 / 16);
const HEARTBEAT: Duration = Duration::from_millis(SESSION.as_millis() as u64 / 10);

type Acquiring = JoinHandle<Result<Hold, Error>>;

fn acquiring(client: &Client, path: &str) -> Acquiring {
    let lock = client.mutex(path).unwrap();
    tokio::spawn(async move {
        let hold = lock.acquire_timeout(SOON).await?;
        // Here, before anything else can come between.
        assert!(!hold.valid_for().is_zero(), "a dead hold was delivered: {hold:?}");
        Ok(hold)
    })
}

/// What must be so of a hold that was just delivered.
#[track_caller]
fn is_live(hold: &Hold, client: &Client, operator: &Admin) {
    assert_eq!(hold.state(), HoldState::Held);
    let stat = operator.stat(hold.node()).expect("a hold without a node was delivered");
    assert_eq!(Some(stat.ephemeral_owner), client.session_id(), "the node of another session");
    assert_eq!(hold.token().value(), stat.czxid.unsigned_abs());
}

/// The client has just heard from its server, so that it does not connect again in the middle of a late answer.
/// A client that has nothing to say sends a ping later than a heartbeat.
#[track_caller]
fn just_after_a_ping(proxy: &Proxy) {
    assert!(proxy.on(Trigger::reply(Kind::Ping)).wait(SOON));
}

/// Waits without a busy network until at least `time` has passed.
async fn let_pass(time: Duration) {
    tokio::time::sleep(time).await;
}

/// Holds the answer `kind` to an acquire that would be granted, for `delay`, then perhaps ends the session, and
/// looks at what is delivered.
async fn late_answer(path: &str, kind: Kind, delay: Duration, expires: bool) {
    let ((client, proxy), operator) = (proxied_client().await, operator());
    operator.create_all(path, "");
    // What the opening of the session proved, for a whole timeout, is not to help.
    let_pass(SESSION).await;
    just_after_a_ping(&proxy);
    let gate = Gate::new();
    let held = proxy.on(Trigger::reply(kind).path(path).then(Action::Pause(gate.clone())));
    let acquired = acquiring(&client, path);
    assert!(held.wait(SOON));
    let_pass(delay).await;
    if expires {
        expire_session(&proxy);
    }
    gate.open();
    let hold = soon(acquired).await.unwrap().unwrap();
    is_live(&hold, &client, &operator);
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

/// A holder, and one that waits for it through a proxy, with its node.
async fn one_waits(path: &str) -> (Hold, Client, Proxy, Acquiring, Admin, String) {
    let ((waiter, proxy), operator) = (proxied_client().await, operator());
    let first = soon(client().await.mutex(path).unwrap().acquire()).await.unwrap();
    let watching = proxy.on(Trigger::reply(Kind::GetData).path(path));
    let acquired = acquiring(&waiter, path);
    assert!(watching.wait(SOON));
    let children = operator.children(path);
    let name = children.iter().find(|name| !first.node().ends_with(*name)).expect("the waiter's node");
    (first, waiter, proxy, acquired, operator, format!("{path}/{name}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_event_or_check_that_comes_after_the_lease_grants_no_dead_hold() {
    let path = "/late-event";
    let (first, waiter, proxy, acquired, operator, node) = one_waits(path).await;
    let accepted = proxy.accepted();
    // By then the opening of the session proves nothing any more.
    let_pass(SESSION).await;
    let (event, check, again) = (Gate::new(), Gate::new(), Gate::new());
    let pause =
        |trigger: Trigger, gate: &Gate| proxy.on(trigger.path(path).then(Action::Pause(gate.clone())));
    let told = pause(Trigger::reply(Kind::Event), &event);
    let checked = pause(Trigger::reply(Kind::Multi), &check);
    let checked_again = pause(Trigger::reply(Kind::Multi).nth(2), &again);
    just_after_a_ping(&proxy);
    soon(first.release()).await.unwrap();
    for (hook, gate) in [(told, event), (checked, check), (checked_again, again)] {
        assert!(hook.wait(SOON), "a grant after such a time needs a check of its own");
        let_pass(BEYOND_A_LEASE).await;
        assert!(!acquired.is_finished(), "nothing proves that the session is alive");
        gate.open();
    }
    let hold = soon(acquired).await.unwrap().unwrap();
    is_live(&hold, &waiter, &operator);
    assert_eq!((hold.node(), waiter.stats().sessions, proxy.accepted()), (&*node, 1, accepted));
    assert!(hold.token() > first.token());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_whose_node_was_deleted_long_ago_gets_no_hold_without_a_node() {
    let path = "/deleted-cold";
    let (first, waiter, _proxy, acquired, operator, node) = one_waits(path).await;
    operator.delete(&node);
    let_pass(HEARTBEAT + Duration::from_millis(50)).await;
    soon(first.release()).await.unwrap();
    let hold = soon(acquired).await.unwrap().unwrap();
    is_live(&hold, &waiter, &operator);
    assert!(hold.node() != node && hold.token() > first.token(), "queued again, with a node of its own");
    assert_eq!(waiter.stats().losses, 0, "no hold was given without one");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_whose_node_was_deleted_just_now_is_told_within_a_heartbeat() {
    let noise = Noise::measured();
    let (first, waiter, _proxy, acquired, operator, node) = one_waits("/deleted-hot").await;
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
        is_live(&hold, &waiter, &operator);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_whose_node_was_deleted_queues_again_behind_those_who_wait() {
    let path = "/deleted-behind";
    let (first, waiter, _proxy, mut acquired, operator, node) = one_waits(path).await;
    let third = client().await;
    let behind = acquiring(&third, path);
    operator.wait_for_children(path, 3, SOON);
    operator.delete(&node);
    let_pass(HEARTBEAT + Duration::from_millis(50)).await;
    soon(first.release()).await.unwrap();
    let second = soon(behind).await.unwrap().unwrap();
    is_live(&second, &third, &operator);
    // The one without a node is back in the queue, and no more than that.
    let queue = operator.wait_for_children(path, 2, SOON);
    assert_eq!(queue.len(), 2);
    assert!(tokio::time::timeout(HEARTBEAT, &mut acquired).await.is_err(), "two hold at once");
    assert_eq!(second.state(), HoldState::Held);
    soon(second.release()).await.unwrap();
    let hold = soon(acquired).await.unwrap().unwrap();
    is_live(&hold, &waiter, &operator);
    assert!(hold.token() > second.token());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_whose_session_expires_queues_again_in_the_next() {
    let path = "/expired-waiter";
    let (first, waiter, proxy, mut acquired, operator, node) = one_waits(path).await;
    expire_session(&proxy);
    operator.wait_for_node(&node, false, SOON);
    assert_eq!(operator.wait_for_children(path, 2, SOON).len(), 2, "back in the queue");
    assert!(tokio::time::timeout(HEARTBEAT, &mut acquired).await.is_err(), "not before its turn");
    soon(first.release()).await.unwrap();
    let hold = soon(acquired).await.unwrap().unwrap();
    is_live(&hold, &waiter, &operator);
    assert!(hold.node() != node && hold.token() > first.token());
    assert_eq!((waiter.stats().sessions, waiter.stats().losses), (2, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_whose_session_expires_with_the_lock_free_meanwhile_gets_no_dead_hold() {
    // The event that makes it the next to hold reaches the client after the end of its session.
    let path = "/expired-event";
    let (first, waiter, proxy, acquired, operator, node) = one_waits(path).await;
    let gate = Gate::new();
    let told = proxy.on(Trigger::reply(Kind::Event).path(path).then(Action::Pause(gate.clone())));
    soon(first.release()).await.unwrap();
    assert!(told.wait(SOON));
    expire_session(&proxy);
    let other = client().await;
    let second = soon(other.mutex(path).unwrap().acquire()).await.unwrap();
    let_pass(BEYOND_A_LEASE).await;
    gate.open();
    assert_eq!(operator.wait_for_children(path, 2, SOON).len(), 2);
    assert!(!acquired.is_finished(), "two hold at once");
    soon(second.release()).await.unwrap();
    let hold = soon(acquired).await.unwrap().unwrap();
    is_live(&hold, &waiter, &operator);
    assert!(hold.node() != node && hold.token() > second.token());
}

/// All on one thread, so that the process can be made to stand still between the grant and its delivery.
/// A try with `patience` has one deadline: after a longer stall there is no time to try again.
async fn delivered_after(path: &str, session: Duration, stall: Duration, patience: Option<Duration>) {
    let options = options(&shared().connect_string()).session_timeout(session).unwrap();
    let options = options.try_timeout(patience.unwrap_or(SOON)).unwrap();
    let client = Client::connect(options).await.unwrap();
    let lock = client.mutex(path).unwrap();
    let counted = client.clone();
    let stalled = tokio::spawn(async move {
        // It is always in the run queue, so it comes between the task that counts the grant and the one that gets it.
        std::future::poll_fn(|context| {
            context.waker().wake_by_ref();
            if counted.stats().grants == 0 { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
        std::thread::sleep(stall);
    });
    let acquired = tokio::spawn(async move {
        let hold = match patience {
            Some(patience) if patience < stall => {
                let refused = lock.try_acquire().await.map(drop).unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::Unreachable, "{refused}");
                None
            }
            Some(_) => lock.try_acquire().await.unwrap(),
            None => Some(lock.acquire().await.unwrap()),
        };
        let valid_for = hold.as_ref().map(Hold::valid_for);
        (hold, valid_for)
    });
    let (hold, valid_for) = soon(acquired).await.unwrap();
    assert!(stalled.is_finished(), "the grant was delivered before the stall: this tests nothing");
    assert_ne!(valid_for, Some(Duration::ZERO), "a dead hold was delivered");
    if let Some(hold) = hold {
        is_live(&hold, &client, &operator());
        soon(hold.release()).await.unwrap();
    }
    assert!(client.stats().grants <= 2);
    client.close().await;
}

#[tokio::test]
async fn a_grant_that_the_process_slept_through_is_not_delivered() {
    let session = Duration::from_secs(1);
    // Past the lease, and past the session.
    for (number, stall) in [session * 11 / 16, session * 7 / 4].into_iter().enumerate() {
        delivered_after(&format!("/slept-{number}"), session, stall, None).await;
        delivered_after(&format!("/slept-trying-{number}"), session, stall, Some(SOON)).await;
    }
    delivered_after("/slept-too-long", session, session * 7 / 4, Some(session)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_longer_than_several_leases_ends_in_a_live_hold() {
    let session = Duration::from_millis(400);
    let path = "/long-wait";
    let first = soon(client().await.mutex(path).unwrap().acquire()).await.unwrap();
    let hosts = shared().connect_string();
    let waiter = Client::connect(options(&hosts).session_timeout(session).unwrap()).await.unwrap();
    let acquired = acquiring(&waiter, path);
    let_pass(session * 3).await;
    soon(first.release()).await.unwrap();
    let hold = soon(acquired).await.unwrap().unwrap();
    assert!(operator().stat(hold.node()).is_some());
    assert!(hold.token() > first.token());
}
