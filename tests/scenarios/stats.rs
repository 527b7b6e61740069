//! A client's figures about acquires, holds and sessions.

use crate::support::loss::Blow;
use crate::support::{SOON, acquire, client, held, operator, proxied_client, settled, soon};
use ground::until;
use std::time::Duration;
use zklock::further::{AcquireOutcome, Histogram};
use zklock::{Client, ErrorKind, LockSpec};

/// How many acquires of this client ended like this, in the order of the outcomes.
fn outcomes(client: &Client) -> Vec<u64> {
    let stats = client.stats();
    AcquireOutcome::ALL.iter().map(|outcome| stats.acquires(*outcome)).collect()
}

/// The count of the first bucket.
fn first(histogram: &Histogram) -> u64 {
    histogram.buckets().next().map_or(0, |(_, count)| count)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acquires_are_counted_by_how_they_ended() {
    let (other, client) = (client().await, client().await);
    let path = "/stats/outcomes";
    let hold = held(&other.mutex(path).unwrap()).await;
    let lock = client.mutex(path).unwrap();
    assert!(soon(lock.try_acquire()).await.unwrap().is_none());
    assert_eq!(outcomes(&client), [0, 1, 0, 0, 0]);
    let in_vain = soon(lock.acquire_timeout(Duration::from_millis(300))).await.unwrap_err();
    assert_eq!(in_vain.kind(), ErrorKind::Timeout);
    assert_eq!(outcomes(&client), [0, 1, 1, 0, 0]);
    let once = soon(lock.acquire_timeout(Duration::ZERO)).await.unwrap_err();
    assert_eq!(once.kind(), ErrorKind::Timeout);
    assert_eq!(outcomes(&client), [0, 2, 1, 0, 0], "it was not to wait");
    assert!(tokio::time::timeout(Duration::from_millis(50), lock.acquire()).await.is_err());
    assert_eq!(outcomes(&client), [0, 2, 1, 0, 1]);
    assert_eq!((client.stats().acquire_wait.count(), first(&client.stats().queue_length)), (0, 0));

    soon(hold.release()).await.unwrap();
    settled(&client).await;
    soon(lock.acquire()).await.unwrap().release().await.unwrap();
    assert_eq!(outcomes(&client), [1, 2, 1, 0, 1]);
    let stats = client.stats();
    assert_eq!((stats.grants, stats.acquire_wait.count(), stats.hold_time.count()), (1, 1, 1));
    assert_eq!(first(&stats.queue_length), 1, "nobody was before the one that was granted");
    assert!(stats.queue_length.count() >= 2, "the holder was before the one that found it busy");

    client.close().await.unwrap();
    assert_eq!(soon(lock.acquire()).await.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(outcomes(&client), [1, 2, 1, 1, 1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn losses_are_counted_by_their_reason_and_once() {
    let ((client, proxy), operator) = (proxied_client().await, operator());
    let lock = client.lock(&LockSpec::mutex("/stats/losses").unwrap().metrics_name("report")).unwrap();
    for (ended, blow) in [Blow::NodeDeleted, Blow::Expiry].into_iter().enumerate() {
        let hold = held(&lock).await;
        blow.strike(&proxy, &operator, lock.path(), hold.node());
        assert_eq!(soon(hold.lost()).await, Ok(Some(blow.reason())));
        assert!(until(SOON, || client.stats().losses_by(blow.reason()) == 1), "{:?}", client.stats());
        let told = (now(&client, "report"), client.stats().hold_time.count());
        assert_eq!(told, ((0, 0, false), ended as u64), "it is not held, but somebody still has it");
        drop(hold);
        let stats = client.stats();
        let report = stats.lock("report").unwrap();
        assert_eq!((now(&client, "report"), report.losses_by(blow.reason())), ((0, 0, false), 1));
        assert_eq!((stats.losses, stats.hold_time.count()), (ended as u64 + 1, ended as u64 + 1));
        assert_eq!(report.hold_time.count(), stats.hold_time.count());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heartbeats_and_new_connections_are_counted() {
    let (client, proxy) = proxied_client().await;
    let hold = held(&client.mutex("/stats/beats").unwrap()).await;
    assert!(until(SOON, || client.stats().heartbeat_lag.count() >= 2), "{:?}", client.stats());
    assert_eq!(client.stats().reconnects, 0);
    proxy.reset();
    assert!(until(SOON, || client.stats().reconnects >= 1), "{:?}", client.stats());
    drop(hold);
}

/// What is counted under this name: held, waiting, and whether the age of a hold is known.
fn now(client: &Client, name: &str) -> (u64, u64, bool) {
    let stats = client.stats();
    let lock = stats.lock(name).unwrap();
    (lock.held, lock.waiting, lock.oldest_hold.is_some())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reentrant_hold_that_lingers_has_figures_for_each_grant() {
    let client = client().await;
    let spec = LockSpec::mutex("/stats/linger").unwrap().linger(Duration::from_secs(60)).reentrant(true);
    let lock = client.lock(&spec.metrics_name("report")).unwrap();
    let ended = || {
        let stats = client.stats();
        [stats.hold_time.count(), stats.lock("report").unwrap().hold_time.count()]
    };
    for turn in 1..=3 {
        let outer = soon(lock.acquire()).await.unwrap();
        let inner = soon(lock.acquire()).await.unwrap();
        assert_eq!(now(&client, "report"), (1, 0, true), "both are one grant");
        soon(inner.release()).await.unwrap();
        assert_eq!((now(&client, "report"), ended()), ((1, 0, true), [turn - 1; 2]), "the grant goes on");
        soon(outer.release()).await.unwrap();
        let told = (now(&client, "report"), ended());
        assert_eq!(told, ((0, 0, false), [turn; 2]), "its node is still there, but nobody holds it");
    }
    let stats = client.stats();
    assert_eq!(stats.lock("report").unwrap().acquires(AcquireOutcome::Granted), 6);
    assert_eq!((stats.grants, stats.acquires(AcquireOutcome::Granted)), (3, 6));
    assert_eq!(stats.acquire_wait.count(), 6);
    assert_eq!(stats.queue_length.count(), 1, "there was one node");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_with_a_name_has_figures_of_its_own() {
    let client = client().await;
    let spec = LockSpec::mutex("/stats/named").unwrap();
    let (named, plain) =
        (client.lock(&spec.clone().metrics_name("report")).unwrap(), client.lock(&spec.clone()).unwrap());
    assert_eq!(now(&client, "report"), (0, 0, false), "it is there before anything is acquired");

    let hold = held(&named).await;
    assert_eq!(now(&client, "report"), (1, 0, true));
    let waiter = acquire(&named);
    assert!(until(SOON, || now(&client, "report") == (1, 1, true)), "{:?}", client.stats());
    assert!(soon(named.try_acquire()).await.unwrap().is_none());
    let in_vain = soon(named.acquire_timeout(Duration::from_millis(50))).await.unwrap_err();
    assert_eq!(in_vain.kind(), ErrorKind::Timeout);
    waiter.abort();
    assert!(until(SOON, || now(&client, "report") == (1, 0, true)), "{:?}", client.stats());
    soon(hold.release()).await.unwrap();
    assert_eq!(now(&client, "report"), (0, 0, false));

    // What has no name is counted with all others only, and shares the queue of what has one.
    let unnamed = held(&plain).await;
    assert_eq!(now(&client, "report"), (0, 0, false));
    drop(unnamed);
    let stats = client.stats();
    let report = stats.lock("report").unwrap();
    let outcomes = AcquireOutcome::ALL.iter().map(|outcome| report.acquires(*outcome));
    assert_eq!(outcomes.collect::<Vec<_>>(), [1, 1, 1, 0, 1]);
    assert_eq!((report.acquire_wait.count(), report.hold_time.count()), (1, 1));
    assert_eq!((stats.acquires(AcquireOutcome::Granted), stats.locks.len()), (2, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_and_a_choice_are_counted_as_a_whole() {
    let client = client().await;
    let member = |at: &str| LockSpec::mutex(&format!("/stats/member-{at}")).unwrap().metrics_name("member");
    for (name, spec) in [
        ("set", LockSpec::all([member("a"), member("b")])),
        ("choice", LockSpec::any([member("c"), member("d")])),
    ] {
        let lock = client.lock(&spec.unwrap().metrics_name(name)).unwrap();
        let hold = held(&lock).await;
        assert_eq!(now(&client, name), (1, 0, true));
        soon(hold.release()).await.unwrap();
        let stats = client.stats();
        let counted = stats.lock(name).unwrap();
        assert_eq!((counted.acquires(AcquireOutcome::Granted), counted.hold_time.count()), (1, 1), "{name}");
        let of_members = stats.lock("member").map_or(0, |lock| lock.acquires(AcquireOutcome::Granted));
        assert_eq!(of_members, 0, "{name}");
    }
}
