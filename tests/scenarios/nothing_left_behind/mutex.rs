//! Promise 5: an attempt that fails, and a release whose reply is lost, leave no node. `cancel_sweep` goes through the
//! steps of an acquire; this file has the other ways in which a node could be left behind.

use crate::support::sweep::acquire;
use crate::support::{
    SOON, client, client_of, on_a_thread, operator, options, proxied_client, settled, soon,
};
use ground::wire::expire;
use ground::{Action, Direction, Gate, Kind, Trigger, shared, until};
use std::time::Duration;
use zklock_core::blocking::{self, Interrupt};
use zklock_core::{Client, ErrorKind, Hold, HoldState, LossReason};

const NONE: [&str; 0] = [];

/// A hold of another client.
async fn held_by_another(path: &str) -> Hold {
    soon(client().await.mutex(path).unwrap().acquire()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_reply_was_lost_is_adopted() {
    let ((client, proxy), admin, path) = (proxied_client().await, operator(), "/left-adopted");
    admin.create_all(path, "");
    let lost = proxy.on(Trigger::reply(Kind::Create).path(path).then(Action::DropAndReset));
    let hold = soon(client.mutex(path).unwrap().acquire()).await.unwrap();
    assert!(lost.fired());
    let nodes = admin.children(path);
    assert!(nodes.len() == 1 && hold.node().ends_with(&nodes[0]), "{nodes:?}");
    // The hold has the node whose reply was lost: it was the first, and nothing was created since.
    assert!(nodes[0].ends_with("0000000000"), "{nodes:?}");
    assert_eq!(hold.token().value(), admin.stat(hold.node()).unwrap().czxid as u64);
    soon(hold.release()).await.unwrap();
    assert_eq!(admin.children(path), NONE);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_was_lost_is_sent_again_and_no_second_node_comes_of_it() {
    let ((client, proxy), admin, path) = (proxied_client().await, operator(), "/left-again");
    admin.create_all(path, "");
    let lost = proxy.on(Trigger::request(Kind::Create).path(path).then(Action::DropAndReset));
    let hold = soon(client.mutex(path).unwrap().acquire()).await.unwrap();
    assert!(lost.fired());
    assert_eq!(admin.children(path).len(), 1);
    soon(hold.release()).await.unwrap();
    assert_eq!(admin.children(path), NONE);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_lost_with_its_session_is_followed_by_one_of_the_next_session() {
    let ((client, proxy), admin, path) = (proxied_client().await, operator(), "/left-next-session");
    admin.create_all(path, "");
    let first = client.session_id().unwrap();
    proxy.refuse(true);
    let lost = proxy.on(Trigger::reply(Kind::Create).path(path).then(Action::DropAndReset));
    let call = acquire(client.mutex(path).unwrap());
    assert!(lost.wait(SOON));
    assert_eq!(admin.children(path).len(), 1);
    let (session, password, _) = proxy.session().pop().unwrap();
    assert_eq!(session, first);
    assert!(expire(shared().server(0).address(), session, &password));
    assert_eq!(admin.children(path), NONE);
    proxy.refuse(false);
    let hold = soon(call).await.unwrap().unwrap();
    let nodes = admin.children(path);
    assert!(nodes.len() == 1 && hold.node().ends_with(&nodes[0]), "{nodes:?}");
    let stat = admin.stat(hold.node()).unwrap();
    assert_eq!(Some(stat.ephemeral_owner), client.session_id());
    assert!(stat.ephemeral_owner != first && hold.token().value() == stat.czxid as u64);
    assert_eq!(client.stats().sessions, 2);
    soon(hold.release()).await.unwrap();
    assert_eq!(admin.children(path), NONE);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_whose_request_or_reply_is_lost_is_done_all_the_same() {
    let ((client, proxy), admin, path) = (proxied_client().await, operator(), "/left-release");
    for trigger in [Trigger::request(Kind::Delete), Trigger::reply(Kind::Delete)] {
        let side = trigger.side;
        let hold = soon(client.mutex(path).unwrap().acquire()).await.unwrap();
        let lost = proxy.on(trigger.path(path).then(Action::DropAndReset));
        soon(hold.release()).await.unwrap_or_else(|error| panic!("{side:?}: {error}"));
        assert!(lost.fired() && hold.state() == HoldState::Released);
        assert_eq!(admin.children(path), NONE, "{side:?}");
        assert_eq!(client.stats().owed, 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acquire_that_timed_out_or_was_not_to_wait_leaves_no_node() {
    let (client, admin, path) = (client().await, operator(), "/left-timeout");
    let hold = held_by_another(path).await;
    let lock = client.mutex(path).unwrap();
    let error = soon(lock.acquire_timeout(Duration::from_millis(100))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    admin.wait_for_children(path, 1, SOON);
    assert!(soon(lock.try_acquire()).await.unwrap().is_none());
    admin.wait_for_children(path, 1, SOON);
    settled(&client).await;
    assert!(hold.node().ends_with(&admin.children(path)[0]), "the holder's is what is left");
    soon(hold.release()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_owed_is_counted_until_it_is_paid() {
    let ((client, proxy), admin, path) = (proxied_client().await, operator(), "/left-owed");
    let hold = held_by_another(path).await;
    let call = acquire(client.mutex(path).unwrap());
    admin.wait_for_children(path, 2, SOON);
    assert_eq!(client.stats().owed, 0, "the caller is still there");
    proxy.freeze(Direction::Both);
    call.abort();
    assert!(until(SOON, || client.stats().owed == 1));
    assert_eq!(admin.children(path).len(), 2);
    assert_eq!(client.stats().owed, 1);
    proxy.thaw();
    settled(&client).await;
    assert_eq!(admin.children(path).len(), 1, "paid means gone");
    soon(hold.release()).await.unwrap();
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
async fn a_hold_that_is_dropped_is_released_and_so_is_one_on_a_sick_network() {
    let ((client, proxy), admin, path) = (proxied_client().await, operator(), "/left-dropped");
    let lock = client.mutex(path).unwrap();
    drop(soon(lock.acquire()).await.unwrap());
    admin.wait_for_children(path, 0, SOON);
    let hold = soon(lock.acquire()).await.unwrap();
    proxy.reset();
    drop(hold);
    admin.wait_for_children(path, 0, SOON);
    settled(&client).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_is_dropped_without_close_takes_its_nodes_and_its_session_along() {
    let ((client, proxy), admin, path) = (proxied_client().await, operator(), "/left-client");
    let closed = proxy.on(Trigger::request(Kind::Close));
    let lock = client.mutex(path).unwrap();
    let hold = soon(lock.acquire()).await.unwrap();
    let waiter = acquire(client.mutex(path).unwrap());
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
    let wait = acquire(client.mutex("/left-close-wait").unwrap());
    let local = acquire(client.mutex("/left-close-hold").unwrap());
    admin.wait_for_children("/left-close-wait", 2, SOON);
    admin.wait_for_children("/left-close-hold", 2, SOON);
    soon(client.close()).await;
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
    soon(first).await.unwrap();
    soon(second).await.unwrap();
    assert_eq!(operator().children(path), NONE);
    drop(hold);
}

#[test]
fn a_runtime_that_is_shut_down_leaves_its_nodes_for_no_longer_than_the_session() {
    let (admin, path, session) = (operator(), "/left-runtime", Duration::from_secs(1));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let options = options(&shared().connect_string()).session_timeout(session).unwrap();
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
async fn an_interrupted_wait_leaves_no_node() {
    let (admin, path) = (operator(), "/left-interrupt");
    let hold = held_by_another(path).await;
    let options = options(&shared().connect_string());
    let waiter = soon(on_a_thread(|| blocking::Client::connect(options).unwrap())).await;
    let interrupt = Interrupt::new();
    for timeout in [None, Some(Duration::from_secs(60))] {
        let (lock, ended) = (waiter.mutex(path).unwrap(), interrupt.clone());
        let wait = tokio::spawn(on_a_thread(move || lock.acquire_within(timeout, Some(&ended)).map(drop)));
        admin.wait_for_children(path, 2, SOON);
        interrupt.trigger();
        assert_eq!(soon(wait).await.unwrap().unwrap_err().kind(), ErrorKind::Interrupted);
        admin.wait_for_children(path, 1, SOON);
        interrupt.reset();
    }
    assert!(until(SOON, || waiter.stats().owed == 0));
    soon(hold.release()).await.unwrap();
    assert_eq!(admin.children(path), NONE);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_asked_for_in_vain_while_disconnected_is_never_sent() {
    let ((client, proxy), path) = (proxied_client().await, "/left-offline");
    let (lock, other) = (client.mutex(path).unwrap(), client.mutex("/left-online").unwrap());
    proxy.refuse(true);
    proxy.reset();
    let short = Duration::from_millis(30);
    let told = || async { soon(other.acquire_timeout(short)).await.unwrap_err().to_string() };
    soon(async { while !told().await.contains("no server answers") {} }).await;
    proxy.record();
    let error = soon(lock.acquire_timeout(Duration::from_millis(100))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    proxy.refuse(false);
    soon(soon(other.acquire()).await.unwrap().release()).await.unwrap();
    let sent: Vec<_> =
        proxy.take_record().into_iter().filter(|message| message.path.contains(path)).collect();
    assert!(sent.is_empty(), "nobody wants it any more: {sent:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_predecessor_that_goes_between_the_list_and_the_watch_is_not_waited_for() {
    let ((client, proxy), admin, path) = (proxied_client().await, operator(), "/left-between");
    for ahead in [1, 2] {
        let holder = client_of(&shared().connect_string()).await;
        let hold = soon(holder.mutex(path).unwrap().acquire()).await.unwrap();
        let second = (ahead == 2).then(|| acquire(holder.mutex(path).unwrap()));
        admin.wait_for_children(path, ahead, SOON);
        let gate = Gate::new();
        let watching = proxy.on(Trigger::request(Kind::GetData).path(path).then(Action::Pause(gate.clone())));
        let call = acquire(client.mutex(path).unwrap());
        assert!(watching.wait(SOON));
        match second {
            // The watched waiter goes, the holder stays.
            Some(second) => {
                second.abort();
                admin.wait_for_children(path, 2, SOON);
                let again = proxy.on(Trigger::reply(Kind::GetData).path(hold.node()));
                gate.open();
                assert!(again.wait(SOON), "now it watches the holder");
                assert!(!call.is_finished());
                soon(hold.release()).await.unwrap();
            }
            None => {
                soon(hold.release()).await.unwrap();
                gate.open();
            }
        }
        soon(soon(call).await.unwrap().unwrap().release()).await.unwrap();
        assert_eq!(admin.children(path), NONE);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reset_while_waiting_loses_neither_the_watch_nor_the_place() {
    let ((second, proxy), admin, path) = (proxied_client().await, operator(), "/left-order");
    let hold = held_by_another(path).await;
    let two = acquire(second.mutex(path).unwrap());
    let nodes = admin.wait_for_children(path, 2, SOON);
    let third = client().await;
    let three = acquire(third.mutex(path).unwrap());
    admin.wait_for_children(path, 3, SOON);
    let connections = proxy.accepted();
    proxy.reset();
    assert!(until(SOON, || proxy.accepted() > connections && proxy.connections() == 1));
    soon(hold.release()).await.unwrap();
    let hold = soon(two).await.unwrap().unwrap();
    assert!(nodes.iter().any(|node| hold.node().ends_with(node)), "in its old place");
    assert!(!three.is_finished());
    soon(hold.release()).await.unwrap();
    soon(soon(three).await.unwrap().unwrap().release()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_that_happens_while_the_waiter_is_away_is_seen_when_it_is_back() {
    let ((client, proxy), admin, path) = (proxied_client().await, operator(), "/left-away");
    let hold = held_by_another(path).await;
    let call = acquire(client.mutex(path).unwrap());
    admin.wait_for_children(path, 2, SOON);
    proxy.refuse(true);
    proxy.reset();
    soon(hold.release()).await.unwrap();
    proxy.refuse(false);
    soon(soon(call).await.unwrap().unwrap().release()).await.unwrap();
    assert_eq!(admin.children(path), NONE);
}
