//! Nodes that their creator may not delete: they go with the session, and every effect of that is reported.

use crate::support::kinds::{ELECTION, MUTEX, PERMIT, READER, SET, SINGLE_NODE, WRITER};
use crate::support::members::{enters, leaves};
use crate::support::timing::Noise;
use crate::support::users::{ANN, BOB, Operator};
use crate::support::{GRACE, SOON, acquire, granted, held, says, settled, soon};
use ground::{Action, Direction, Gate, Kind, Trigger, not_later};
use std::time::{Duration, Instant};
use tokio::task::block_in_place;
use zklock::further::Access;
use zklock::{Client, ErrorKind, HoldState, LossReason};
use zookeeper_client::Permission;

/// Creates nodes below which Bob may do everything but delete.
async fn no_deletions(operator: &Operator, paths: &[&str]) {
    let rights = Permission::CREATE | Permission::READ | Permission::WRITE;
    for path in paths {
        operator.create(path, &[ANN.may_all(), BOB.may(rights)]).await;
    }
}

fn lacks(node: &str) -> String {
    format!("lacks the right DELETE in the access list of {node}; its session was closed")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_of_any_kind_is_told_when_the_node_is_gone_and_so_are_other_holds() {
    let (bob, operator) = (BOB.client(Access::Open).await, ANN.operator().await);
    let (ann, proxy) = ANN.proxied(Access::Open).await;
    no_deletions(&operator, &["/undeletable"]).await;
    for kind in [MUTEX, READER, WRITER, ELECTION, PERMIT, SET, SINGLE_NODE] {
        let path = format!("/undeletable/{}", kind.name);
        no_deletions(&operator, &[&path]).await;
        for place in kind.places.iter().filter(|place| !place.is_empty()) {
            // Only the nodes that stand for a hold must be undeletable, so Bob may leave the queue.
            match *place {
                "/locks" => operator.create(&format!("{path}{place}"), &[ANN.may_all(), BOB.may_all()]).await,
                place => no_deletions(&operator, &[&format!("{path}{place}")]).await,
            }
        }
        let open = bob.mutex("/undeletable-other").unwrap();
        let (other, hold) = (held(&open).await, held(&(kind.lock)(&bob, &path)).await);
        let node = hold.node().to_owned();
        let queued = proxy.on((kind.waits)(&path));
        let waits = acquire(&(kind.rival)(&ann, &path));
        assert!(block_in_place(|| queued.wait(SOON)), "{path}: it does not wait");
        let error = soon(hold.release()).await.unwrap_err();
        let above = node.rsplit_once('/').unwrap().0;
        says(&error, ErrorKind::Refused, &[&node, &lacks(above), "the lock is free"]);
        assert_eq!(hold.state(), HoldState::Released, "{path}");
        if kind.name != SINGLE_NODE.name {
            assert!(!operator.children(above).await.contains(&node), "{path}: it is gone by now");
        }
        assert_eq!(other.state(), HoldState::Lost(LossReason::SessionClosed), "{path}: told by now");
        let error = soon(other.release()).await.unwrap_err();
        let parts = ["/undeletable-other", "may not delete", &lacks(above)];
        says(&error, ErrorKind::Lost(LossReason::SessionClosed), &parts);
        soon(granted(waits).await.release()).await.unwrap();
        settled(&bob).await;
        // The client has another session, and works.
        soon(held(&open).await.release()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_who_gives_up_or_tries_leaves_nothing_and_waiters_queue_again() {
    let (ann, bob, operator) =
        (ANN.client(Access::Open).await, BOB.client(Access::Open).await, ANN.operator().await);
    let path = "/undeletable-waits";
    no_deletions(&operator, &[path]).await;
    let hold = held(&ann.mutex(path).unwrap()).await;
    // A waiter for another lock in the same session.
    let elsewhere = held(&ann.mutex("/undeletable-elsewhere").unwrap()).await;
    let patient = acquire(&bob.mutex("/undeletable-elsewhere").unwrap());
    operator.wait_for_children("/undeletable-elsewhere", 2).await;
    let first = bob.session_id();

    let waits = acquire(&bob.mutex(path).unwrap());
    operator.wait_for_children(path, 2).await;
    waits.abort();
    settled_without(&operator, &bob, path, hold.node()).await;
    assert!(soon(bob.mutex(path).unwrap().try_acquire()).await.unwrap().is_none());
    settled_without(&operator, &bob, path, hold.node()).await;

    soon(elsewhere.release()).await.unwrap();
    let granted = granted(patient).await;
    // Each of the two took a session with it. Only now is it certain that the third session exists.
    assert!(bob.session_id() != first && bob.stats().sessions == 3, "{:?}", bob.stats());
    soon(granted.release()).await.unwrap();
    soon(hold.release()).await.unwrap();
}

/// Waits until the client owes no deletion and only this node is left.
async fn settled_without(operator: &Operator, client: &Client, path: &str, node: &str) {
    operator.wait_for_children(path, 1).await;
    settled(client).await;
    assert_eq!(operator.children(path).await, [node]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_leaves_is_told_when_its_node_is_gone() {
    let (ann, bob, operator) =
        (ANN.client(Access::Open).await, BOB.client(Access::Open).await, ANN.operator().await);
    let path = "/undeletable-members";
    no_deletions(&operator, &[path]).await;
    let (first, second) = (enters(&ann, path, 2), enters(&bob, path, 2));
    let (first, second) = (soon(first).await.unwrap().unwrap(), soon(second).await.unwrap().unwrap());
    let node = second.node().to_owned();
    let (first, second) = (leaves(first), leaves(second));
    let error = soon(second).await.unwrap().unwrap_err();
    says(&error, ErrorKind::Refused, &[path, &lacks(path)]);
    assert!(!operator.children(path).await.contains(&node));
    soon(first).await.unwrap().unwrap();
    settled(&bob).await;
}

/// The session is then closed over another connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_breaks_meanwhile_keeps_no_node() {
    let ((bob, proxy), operator) = (BOB.proxied(Access::Open).await, ANN.operator().await);
    let path = "/undeletable-broken";
    no_deletions(&operator, &[path]).await;
    let hold = held(&bob.mutex(path).unwrap()).await;
    let broken = proxy.on(Trigger::request(Kind::Close).then(Action::DropAndReset));
    let error = soon(hold.release()).await.unwrap_err();
    says(&error, ErrorKind::Refused, &[&lacks(path)]);
    assert!(broken.fired() && operator.children(path).await.is_empty());
    settled(&bob).await;

    // If no server answers, the release says so in time, and is not forgotten.
    let hold = held(&bob.mutex(path).unwrap()).await;
    let frozen = proxy.on(Trigger::request(Kind::Close).then(Action::Freeze(Direction::Both)));
    let error = soon(hold.release()).await.unwrap_err();
    says(&error, ErrorKind::Timeout, &["goes on in the background"]);
    assert!(frozen.fired() && bob.stats().owed == 1);
    proxy.thaw();
    operator.wait_for_children(path, 0).await;
    settled(&bob).await;
    // Closing a client does not wait for an answer that never comes.
    let other = held(&bob.mutex("/undeletable-broken-other").unwrap()).await;
    let hold = held(&bob.mutex(path).unwrap()).await;
    let frozen = proxy.on(Trigger::request(Kind::Close).then(Action::Freeze(Direction::Both)));
    let release = tokio::spawn(async move { hold.release().await });
    assert!(block_in_place(|| frozen.wait(SOON)));
    // The hold ends before any server hears of the close and may give the lock to others.
    assert_eq!(other.state(), HoldState::Lost(LossReason::SessionClosed));
    let (noise, closing) = (Noise::measured(), Instant::now());
    soon(bob.close()).await.unwrap();
    not_later(closing.elapsed(), Duration::from_secs(1) + GRACE + noise.allowance());
    let error = soon(release).await.unwrap().unwrap_err();
    let parts = ["no server has confirmed that", &lacks(path), "the lock is free when"];
    says(&error, ErrorKind::Refused, &parts);
    proxy.thaw();
    operator.wait_for_children(path, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_that_is_under_way_when_the_session_is_closed_has_succeeded() {
    let ((bob, proxy), operator) = (BOB.proxied(Access::Open).await, ANN.operator().await);
    let (path, open) = ("/undeletable-meanwhile", "/undeletable-under-way");
    no_deletions(&operator, &[path]).await;
    let (hold, other) = (held(&bob.mutex(path).unwrap()).await, held(&bob.mutex(open).unwrap()).await);
    let gate = Gate::new();
    let refused = proxy.on(Trigger::reply(Kind::Delete).path(path).then(Action::Pause(gate.clone())));
    let unheard = proxy.on(Trigger::reply(Kind::Delete).path(open).then(Action::Swallow));
    let first = tokio::spawn(async move { hold.release().await });
    assert!(block_in_place(|| refused.wait(SOON)));
    let second = tokio::spawn(async move { other.release().await });
    operator.wait_for_children(open, 0).await;
    gate.open();
    says(&soon(first).await.unwrap().unwrap_err(), ErrorKind::Refused, &[&lacks(path)]);
    soon(second).await.unwrap().unwrap();
    assert!(unheard.fired());
}
