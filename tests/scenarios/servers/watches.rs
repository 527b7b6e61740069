//! A server of 3.4 cannot remove a watch. So watches that nobody needs any more stay, and the connection is kept.

use super::{old_client, old_operator, old_proxied};
use crate::support::{SOON, acquire, settled, soon};
use ground::{Action, Gate, Kind, Proxy, Trigger, until};
use std::time::Duration;
use zklock::{Client, ErrorKind, Lock};

const A_WHILE: Duration = Duration::from_millis(100);

async fn gives_up(lock: &Lock) {
    let error = soon(lock.acquire_timeout(A_WHILE)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
}

/// Asserts that the client sent no request that the server does not know, and still has its first connection.
fn is_undisturbed(client: &Client, proxy: &Proxy, accepted: u64) {
    assert!(!proxy.requests().iter().any(|request| matches!(request.kind, Kind::Other(_))));
    assert_eq!((client.stats().sessions, proxy.accepted()), (1, accepted));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_is_given_up_costs_no_connection_and_the_next_is_told_all_the_same() {
    let ((client, proxy, accepted), path) = (old_proxied().await, "/old/given-up");
    let hold = soon(old_client().await.mutex(path).unwrap().acquire()).await.unwrap();
    let lock = client.mutex(path).unwrap();
    for _ in 0..4 {
        gives_up(&lock).await;
    }
    settled(&client).await;
    let waiter = acquire(&lock);
    old_operator().wait_for_children(path, 2, SOON);
    soon(hold.release()).await.unwrap();
    let hold = soon(waiter).await.unwrap().unwrap();
    // The same path can be watched again after the watch that was kept for it has fired.
    soon(hold.release()).await.unwrap();
    is_undisturbed(&client, &proxy, accepted);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_watches_of_one_node_are_given_up_again_after_they_have_fired() {
    let ((client, proxy, accepted), other, path) = (old_proxied().await, old_client().await, "/old/again");
    // All its waiters watch the same directory, or the same name.
    let (lock, theirs) = (client.single_node(path).unwrap(), other.single_node(path).unwrap());
    for _ in 0..4 {
        let hold = soon(theirs.acquire()).await.unwrap();
        gives_up(&lock).await;
        gives_up(&lock).await;
        soon(hold.release()).await.unwrap();
        soon(lock.acquire()).await.unwrap().release().await.unwrap();
    }
    settled(&client).await;
    is_undisturbed(&client, &proxy, accepted);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_whose_reply_comes_when_nobody_waits_any_more_is_kept() {
    let ((client, proxy, accepted), path) = (old_proxied().await, "/old/late-watch");
    let hold = soon(old_client().await.mutex(path).unwrap().acquire()).await.unwrap();
    let observer = client.mutex(path).unwrap();
    let gate = Gate::new();
    let held = proxy.on(Trigger::reply(Kind::GetData).path(path).then(Action::Pause(gate.clone())));
    let call = tokio::spawn(async move { observer.observe().unwrap().next().await.map(drop) });
    assert!(held.wait(SOON));
    call.abort();
    assert!(soon(call).await.unwrap_err().is_cancelled());
    gate.open();
    // By then the client would have sent every request that follows from that.
    let is_answered = proxy.on(Trigger::reply(Kind::Ping).nth(2));
    assert!(is_answered.wait(SOON));
    soon(hold.release()).await.unwrap();
    soon(client.mutex(path).unwrap().acquire()).await.unwrap().release().await.unwrap();
    assert!(until(SOON, || client.stats().owed == 0));
    is_undisturbed(&client, &proxy, accepted);
}
