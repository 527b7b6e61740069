//! A client's figures about acquires, holds and sessions.

use crate::support::queue::held;
use crate::support::{SOON, client, expire_session, operator, proxied_client, settled, soon};
use ground::until;
use std::time::Duration;
use zklock_core::{AcquireOutcome, Client, ErrorKind, Histogram, LockSpec, LossReason};

/// How many acquires of this client ended like this, in the order of the outcomes.
fn outcomes(client: &Client) -> Vec<u64> {
    let stats = client.stats();
    let all = [
        AcquireOutcome::Granted,
        AcquireOutcome::Busy,
        AcquireOutcome::TimedOut,
        AcquireOutcome::Failed,
        AcquireOutcome::Cancelled,
    ];
    all.iter().map(|outcome| stats.acquires(*outcome)).collect()
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

    client.close().await;
    assert_eq!(soon(lock.acquire()).await.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(outcomes(&client), [1, 2, 1, 1, 1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn losses_are_counted_by_their_reason() {
    let ((client, proxy), operator) = (proxied_client().await, operator());
    let lock = client.mutex("/stats/losses").unwrap();
    let lost = |reason: LossReason| client.stats().losses_by(reason);

    let hold = held(&lock).await;
    operator.delete(hold.node());
    assert_eq!(soon(hold.lost()).await, Some(LossReason::NodeDeleted));
    assert!(until(SOON, || lost(LossReason::NodeDeleted) == 1), "{:?}", client.stats());
    assert_eq!(client.stats().hold_time.count(), 0, "somebody still has it");
    drop(hold);
    assert_eq!(client.stats().hold_time.count(), 1);

    let hold = held(&lock).await;
    expire_session(&proxy);
    let reason = soon(hold.lost()).await.unwrap();
    assert!(until(SOON, || lost(reason) == 1), "{:?}", client.stats());
    assert_ne!(reason, LossReason::NodeDeleted);
    assert_eq!((client.stats().losses, client.stats().hold_time.count()), (2, 1));
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_without_a_request_is_counted_too() {
    let client = client().await;
    let lingering = LockSpec::mutex("/stats/linger").unwrap().linger(Duration::from_secs(60)).reentrant(true);
    let lock = client.lock(&lingering).unwrap();
    for turn in 1..=3 {
        let outer = soon(lock.acquire()).await.unwrap();
        let inner = soon(lock.acquire()).await.unwrap();
        soon(inner.release()).await.unwrap();
        assert_eq!(client.stats().hold_time.count(), turn - 1, "the grant goes on");
        soon(outer.release()).await.unwrap();
        assert_eq!(client.stats().hold_time.count(), turn);
    }
    let stats = client.stats();
    assert_eq!(
        (stats.grants, stats.acquires(AcquireOutcome::Granted), stats.acquire_wait.count()),
        (3, 6, 6)
    );
    assert_eq!(stats.queue_length.count(), 1, "there was one node");
}
