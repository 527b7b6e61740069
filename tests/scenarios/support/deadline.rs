//! Calls that must end by their deadline.

use crate::support::kinds::LockKind;
use crate::support::{GRACE, SOON, client, operator, proxied_client, settled, soon};
use ground::{Direction, not_later};
use std::time::{Duration, Instant};
use zklock::{Error, ErrorKind, Lock};

/// A deadline, and how long to wait to see that nothing happens.
pub(crate) const A_WHILE: Duration = Duration::from_millis(300);
pub(crate) const DIRECTIONS: [Direction; 3] = [Direction::ToServer, Direction::ToClient, Direction::Both];

/// An acquire that should time out: its error, how long it took, and how long it may have taken.
struct TimedOut {
    error: Error,
    took: Duration,
    bound: Duration,
}

impl TimedOut {
    /// Acquires the lock. A sleep beside it measures how late the machine is.
    async fn of(lock: &Lock) -> Self {
        let start = Instant::now();
        let sleep = tokio::spawn(async move {
            tokio::time::sleep(A_WHILE).await;
            start.elapsed()
        });
        let error = soon(lock.acquire_timeout(A_WHILE)).await.unwrap_err();
        let took = start.elapsed();
        let noise = soon(sleep).await.unwrap().saturating_sub(A_WHILE);
        Self { error, took, bound: A_WHILE + GRACE + noise }
    }

    /// Asserts that it was in time. Call it on the thread of the test.
    fn in_time(self) -> Error {
        let Self { error, took, bound } = self;
        assert!(took >= A_WHILE, "{took:?}");
        not_later(took, bound);
        assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
        error
    }
}

/// Asserts that an acquire times out in time. Call it on the thread of the test.
pub(crate) async fn times_out(lock: &Lock) -> Error {
    TimedOut::of(lock).await.in_time()
}

/// Whichever way the network is frozen, an acquire ends in time, and nothing is left of it.
pub(crate) async fn frozen_from_the_start(kind: &LockKind) {
    for direction in DIRECTIONS {
        let (client, proxy) = proxied_client().await;
        let path = format!("/bounded-frozen-{}-{direction:?}", kind.name);
        let lock = (kind.lock)(&client, &path);
        proxy.freeze(direction);
        times_out(&lock).await;
        proxy.thaw();
        soon(lock.acquire()).await.unwrap().release().await.unwrap();
        settled(&client).await;
        kind.is_gone(&operator(), &path);
    }
}

/// A wait for a rival ends in time, with and without the network.
pub(crate) async fn frozen_in_the_queue(kind: &LockKind) {
    let (operator, (waiter, proxy)) = (operator(), proxied_client().await);
    let path = format!("/bounded-queue-{}", kind.name);
    let hold = soon((kind.rival)(&client().await, &path).acquire()).await.unwrap();
    let lock = (kind.lock)(&waiter, &path);
    let error = times_out(&lock).await;
    assert!(error.to_string().contains("others are before us in the queue"), "{error}");
    settled(&waiter).await;
    let waits = proxy.on((kind.waits)(&path));
    let wait = tokio::spawn(async move { TimedOut::of(&lock).await });
    assert!(waits.wait(SOON));
    proxy.freeze(Direction::Both);
    soon(wait).await.unwrap().in_time();
    proxy.thaw();
    settled(&waiter).await;
    (kind.has_queued)(&operator, &path, 0);
    soon(hold.release()).await.unwrap();
}
