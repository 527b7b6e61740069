//! Promise 7, as every kind of lock keeps it: a client waits through a proxy, and its hold is checked on delivery.

use crate::support::kinds::LockKind;
use crate::support::loss::Blow;
use crate::support::{
    HEARTBEAT, SESSION, SOON, Waiting, client, expire_session, held, nodes, operator, options, settled, soon,
};
use ground::wire::Admin;
use ground::{Action, Gate, Trigger, shared};
use std::task::Poll;
use std::time::Duration;
use zklock::{Client, ErrorKind, Hold, HoldState};

/// Longer than the lease that a write proves if only one write went before it (T/4), and shorter than the time for which
/// the client library waits for a sign of life (2/5 T).
const BEYOND_A_LEASE: Duration = Duration::from_millis(SESSION.as_millis() as u64 / 3);

/// Asserts that a hold that was just delivered is valid and has its nodes.
#[track_caller]
pub(crate) fn is_live(kind: &LockKind, hold: &Hold, client: &Client, operator: &Admin) {
    // On a busy machine it may be at risk by now.
    assert!(matches!(hold.state(), HoldState::Held | HoldState::AtRisk), "{:?}", hold.state());
    for node in hold.nodes() {
        let stat = operator.stat(node).expect("a hold without a node was delivered");
        assert_eq!(Some(stat.ephemeral_owner), client.session_id(), "the node of another session");
        // The token of permits is that of the node that queued for them.
        if kind.places.len() == 1 {
            assert_eq!(hold.token().value(), stat.czxid.unsigned_abs());
        }
    }
}

/// The hold of a rival, and a client that waits for it.
async fn waits(kind: &LockKind, path: &str) -> (Hold, Waiting) {
    let first = held(&(kind.rival)(&client().await, path)).await;
    (first, Waiting::new(|client| (kind.lock)(client, path), (kind.waits)(path)).await)
}

/// Asserts that a waiter that is hit queues again, and is not granted the lock beside its holder.
pub(crate) async fn queues_again(kind: &LockKind) {
    queues_again_after(kind, Blow::NodeDeleted).await;
    queues_again_after(kind, Blow::Expiry).await;
}

async fn queues_again_after(kind: &LockKind, blow: Blow) {
    let (operator, path) = (operator(), &format!("/again-{blow:?}-{}", kind.name));
    let (first, mut wait) = waits(kind, path).await;
    let node = nodes(&operator, path).pop().expect("the waiter's node");
    blow.strike(&wait.proxy, &operator, path, &node);
    if blow == Blow::Expiry {
        operator.wait_for_node(&node, false, SOON);
        (kind.has_queued)(&operator, path, 1);
    }
    // Long enough that the grant needs a check.
    let early = tokio::time::timeout(HEARTBEAT * 3 / 2, &mut wait.task).await;
    assert!(early.is_err(), "{path}: beside the holder");
    soon(first.release()).await.unwrap();
    let (hold, (waiter, _proxy)) = wait.granted().await;
    is_live(kind, &hold, &waiter, &operator);
    assert!(hold.node() != node && hold.token() > first.token(), "queued again, with a node of its own");
    let sessions = 1 + u64::from(blow == Blow::Expiry);
    let stats = waiter.stats();
    assert_eq!((stats.sessions, stats.losses), (sessions, 0), "no hold was given without a node");
    settled(&waiter).await;
    assert_eq!(operator.children(path).len(), 1, "{path}");
    soon(hold.release()).await.unwrap();
}

/// The event that makes it the next to hold reaches the client after the end of its session.
pub(crate) async fn is_told_too_late(kind: &LockKind) {
    let (operator, path) = (operator(), &format!("/late-event-{}", kind.name));
    let (first, wait) = waits(kind, path).await;
    let gate = Gate::new();
    let event = Trigger::reply(ground::Kind::Event).path(format!("{path}{}", kind.told_at));
    let told = wait.proxy.on(event.then(Action::Pause(gate.clone())));
    soon(first.release()).await.unwrap();
    assert!(told.wait(SOON));
    expire_session(&wait.proxy);
    let second = held(&(kind.rival)(&client().await, path)).await;
    tokio::time::sleep(BEYOND_A_LEASE).await;
    gate.open();
    (kind.has_queued)(&operator, path, 1);
    assert!(!wait.task.is_finished(), "{path}: beside {second:?}");
    soon(second.release()).await.unwrap();
    let (hold, (waiter, _proxy)) = wait.granted().await;
    is_live(kind, &hold, &waiter, &operator);
    assert!(!first.nodes().any(|node| node == hold.node()) && hold.token() > second.token());
    assert_eq!((waiter.stats().sessions, waiter.stats().losses), (2, 0));
    soon(hold.release()).await.unwrap();
}

/// So short that a process can be paused for longer.
const SHORT: Duration = Duration::from_secs(1);
/// Past the lease, and past the session.
const STALLS: [Duration; 2] = [SHORT.checked_mul(11).unwrap().checked_div(16).unwrap(), PAST_THE_SESSION];
const PAST_THE_SESSION: Duration = SHORT.checked_mul(7).unwrap().checked_div(4).unwrap();

/// The process sleeps between the grant and its delivery. Call it on a runtime with one thread.
pub(crate) async fn slept_through(kind: &LockKind) {
    for stall in STALLS {
        let hold = delivered_after(kind, stall, None).await;
        assert!(hold, "it waits for as long as it takes");
    }
}

/// The same for a try that has time left to try again.
pub(crate) async fn slept_through_a_try(kind: &LockKind) {
    for stall in STALLS {
        delivered_after(kind, stall, Some(SOON)).await;
    }
}

/// The same for a try that has no time left.
pub(crate) async fn slept_through_the_end_of_a_try(kind: &LockKind) {
    delivered_after(kind, PAST_THE_SESSION, Some(SHORT)).await;
}

/// Whether a hold was delivered. A try with `patience` has one deadline: after a longer stall there is no time to try
/// again.
async fn delivered_after(kind: &LockKind, stall: Duration, patience: Option<Duration>) -> bool {
    let path = format!("/slept-{}-{stall:?}-{patience:?}", kind.name);
    let options = options(&shared().connect_string()).session_timeout(SHORT);
    let options = options.try_timeout(patience.unwrap_or(SOON));
    let client = Client::connect(options).await.unwrap();
    let (lock, counted) = ((kind.lock)(&client, &path), client.clone());
    let stalled = tokio::spawn(async move {
        // This task is always in the run queue, so it runs between the task that counts the grant and the one that receives it.
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
    assert_ne!(valid_for, Some(Duration::ZERO), "{path}: a dead hold was delivered");
    let is_delivered = hold.is_some();
    if let Some(hold) = hold {
        is_live(kind, &hold, &client, &operator());
        soon(hold.release()).await.unwrap();
    }
    assert!(client.stats().grants <= 2);
    client.close().await.unwrap();
    kind.is_gone(&operator(), &path);
    is_delivered
}
