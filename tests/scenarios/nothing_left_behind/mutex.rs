//! Promise 5: an attempt that comes to nothing, and a client that ends, leave no node.

use crate::support::{
    SOON, acquire, client, comes_to_fail, operator, options, proxied_client, settled, soon,
};
use ground::{Action, Direction, Gate, Kind, Trigger, shared, until};
use std::time::{Duration, Instant};
use zklock::{Client, ErrorKind, Hold, HoldState, LossReason};

const NONE: [&str; 0] = [];

/// A hold of another client.
async fn held_by_another(path: &str) -> Hold {
    soon(client().await.mutex(path).unwrap().acquire()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acquire_of_a_free_lock_dropped_at_any_moment_leaves_no_node() {
    const ROUNDS: u32 = 300;
    let (client, admin, path) = (client().await, operator(), "/race-at-the-grant");
    let lock = client.mutex(path).unwrap();
    let one = Instant::now();
    for _ in 0..10 {
        soon(lock.acquire()).await.unwrap().release().await.unwrap();
    }
    // The grants come in the first quarter of this span, the drops at any time in it.
    let (span, mut dropped) = (one.elapsed() / 5, 0);
    for round in 0..ROUNDS {
        let call = acquire(&lock);
        let (pause, start) = (span * (round * 37 % 100) / 100, Instant::now());
        // A timer would be too coarse by a factor of ten.
        while start.elapsed() < pause {
            std::thread::yield_now();
        }
        call.abort();
        match soon(call).await {
            Ok(hold) => drop(hold.unwrap()),
            Err(_) => dropped += 1,
        }
    }
    assert!((1..ROUNDS).contains(&dropped), "no race: {dropped} of {ROUNDS} were dropped");
    admin.wait_for_children(path, 0, SOON);
    settled(&client).await;
    // Whatever the drops met, the lock is free.
    soon(lock.acquire()).await.unwrap().release().await.unwrap();
    assert_eq!(admin.children(path), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_owed_is_counted_from_the_moment_that_the_caller_has_its_answer() {
    let ((client, proxy), admin, path) = (proxied_client().await, operator(), "/left-owed-at-once");
    let hold = held_by_another(path).await;
    let lock = client.mutex(path).unwrap();
    for round in 0..20 {
        proxy.thaw();
        settled(&client).await;
        admin.wait_for_children(path, 1, SOON);
        let held =
            proxy.on(Trigger::request(Kind::Delete).path(path).then(Action::Freeze(Direction::ToServer)));
        let error = soon(lock.acquire_timeout(Duration::from_millis(10))).await.unwrap_err();
        // A program that ends its process when nothing is owed relies on this.
        assert!(client.stats().owed == 1 || held.fired(), "round {round}: {error}, and nothing is owed");
        assert!(held.wait(SOON));
    }
    proxy.thaw();
    soon(hold.release()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_is_dropped_without_close_takes_its_nodes_and_its_session_along() {
    let ((client, proxy), admin, path) = (proxied_client().await, operator(), "/left-client");
    let closed = proxy.on(Trigger::request(Kind::Close));
    let lock = client.mutex(path).unwrap();
    let hold = soon(lock.acquire()).await.unwrap();
    let waiter = acquire(&client.mutex(path).unwrap());
    admin.wait_for_children(path, 2, SOON);
    drop((client, lock));
    assert!(!hold.valid_for().is_zero(), "a hold keeps what it needs");
    waiter.abort();
    admin.wait_for_children(path, 1, SOON);
    drop(hold);
    admin.wait_for_children(path, 0, SOON);
    assert!(closed.wait(SOON), "the session is closed, not left to time out");
    assert!(until(SOON, || proxy.connections() == 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_close_frees_what_is_held_and_ends_what_waits() {
    let ((client, _proxy), admin) = (proxied_client().await, operator());
    let busy = held_by_another("/left-close-wait").await;
    let hold = soon(client.mutex("/left-close-hold").unwrap().acquire()).await.unwrap();
    let wait = acquire(&client.mutex("/left-close-wait").unwrap());
    let local = acquire(&client.mutex("/left-close-hold").unwrap());
    admin.wait_for_children("/left-close-wait", 2, SOON);
    admin.wait_for_children("/left-close-hold", 2, SOON);
    soon(client.close()).await.unwrap();
    assert_eq!(admin.children("/left-close-hold"), NONE);
    assert_eq!(admin.children("/left-close-wait").len(), 1);
    for call in [wait, local] {
        assert_eq!(soon(call).await.unwrap().unwrap_err().kind(), ErrorKind::Closed);
    }
    assert_eq!(hold.state(), HoldState::Lost(LossReason::ClientClosed));
    assert_eq!(soon(hold.release()).await.unwrap_err().kind(), ErrorKind::Lost(LossReason::ClientClosed));
    settled(&client).await;
    soon(busy.release()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_close_waits_as_the_first_does() {
    let ((client, proxy), path) = (proxied_client().await, "/left-close-twice");
    let hold = soon(client.mutex(path).unwrap().acquire()).await.unwrap();
    let gate = Gate::new();
    let closing = proxy.on(Trigger::request(Kind::Close).then(Action::Pause(gate.clone())));
    let first = client.clone();
    let first = tokio::spawn(async move { first.close().await });
    assert!(closing.wait(SOON));
    let second = tokio::spawn(async move { client.close().await });
    // Both have up to a second before they give up, so this is well within their time.
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!first.is_finished() && !second.is_finished(), "the node is still there");
    gate.open();
    soon(first).await.unwrap().unwrap();
    soon(second).await.unwrap().unwrap();
    assert_eq!(operator().children(path), NONE);
    drop(hold);
}

#[test]
fn a_runtime_that_is_shut_down_leaves_its_nodes_for_no_longer_than_the_session() {
    let (admin, path, session) = (operator(), "/left-runtime", Duration::from_secs(1));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let options = options(&shared().connect_string()).session_timeout(session);
    let (client, hold) = runtime.block_on(async {
        let client = Client::connect(options).await.unwrap();
        let hold = soon(client.mutex(path).unwrap().acquire()).await.unwrap();
        (client, hold)
    });
    assert_eq!(admin.children(path).len(), 1);
    runtime.shutdown_timeout(SOON);
    // Up to two ticks later, because the server does not check more often.
    admin.wait_for_children(path, 0, session + Duration::from_millis(400));
    assert!(hold.valid_for().is_zero() && matches!(hold.state(), HoldState::Lost(_)), "{hold:?}");
    // Outside of any runtime, after the client's own is gone: an error, not a panic.
    let lock = client.mutex(path).unwrap();
    let mut call = std::pin::pin!(lock.acquire());
    let polled = call.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
    let std::task::Poll::Ready(Err(error)) = polled else { panic!("it waits for ever") };
    assert_eq!(error.kind(), ErrorKind::Closed);
    drop((hold, client));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_asked_for_in_vain_while_disconnected_is_never_sent() {
    let ((client, proxy), path) = (proxied_client().await, "/left-offline");
    let (lock, other) = (client.mutex(path).unwrap(), client.mutex("/left-online").unwrap());
    proxy.refuse(true);
    proxy.reset();
    comes_to_fail(&other, "no server answers").await;
    proxy.record();
    let error = soon(lock.acquire_timeout(Duration::from_millis(100))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    proxy.refuse(false);
    soon(soon(other.acquire()).await.unwrap().release()).await.unwrap();
    let sent: Vec<_> =
        proxy.take_record().into_iter().filter(|message| message.path.contains(path)).collect();
    assert!(sent.is_empty(), "nobody wants it any more: {sent:?}");
}
