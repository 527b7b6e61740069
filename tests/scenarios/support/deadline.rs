//! Calls that must end by their deadline.

use crate::support::kinds::LockKind;
use crate::support::{GRACE, SOON, client, on_a_thread, operator, proxied_client, settled, soon};
use ground::{Direction, not_later, or_once_more};
use std::time::{Duration, Instant};
use zklock::{Error, ErrorKind, Lock};

/// A deadline, and how long to wait to see that nothing happens.
pub(crate) const A_WHILE: Duration = Duration::from_millis(300);
pub(crate) const DIRECTIONS: [Direction; 3] = [Direction::ToServer, Direction::ToClient, Direction::Both];

/// Runs a call that must be over within `timeout`, beside plain sleeps of that length in a task and in a thread. If the
/// sleeps are late, the machine is late, so the call may be as late as they are. Call it in the task of the test, because a test
/// that is late is known by its thread.
pub(crate) async fn in_time<T>(timeout: Duration, call: impl Future<Output = T>) -> T {
    let start = Instant::now();
    let task = tokio::spawn(async move {
        tokio::time::sleep(timeout).await;
        start.elapsed()
    });
    let thread = tokio::spawn(async move {
        on_a_thread(move || std::thread::sleep(timeout)).await;
        start.elapsed()
    });
    let result = soon(call).await;
    let took = start.elapsed();
    let slept = soon(task).await.unwrap().max(soon(thread).await.unwrap());
    not_later(took, timeout + GRACE + slept.saturating_sub(timeout));
    result
}

/// Asserts that an acquire times out in time, and not before. Call it in the task of the test. There is no error if the test was
/// judged again, because a busy machine had taken all of that time for the first reply.
pub(crate) async fn times_out(lock: &Lock) -> Option<Error> {
    let start = Instant::now();
    let error = in_time(A_WHILE, lock.acquire_timeout(A_WHILE)).await.unwrap_err();
    assert!(start.elapsed() >= A_WHILE, "{:?}", start.elapsed());
    let is_timeout = error.kind() == ErrorKind::Timeout;
    or_once_more(is_timeout, &error.to_string());
    is_timeout.then_some(error)
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
    if let Some(error) = times_out(&lock).await {
        assert!(error.to_string().contains("others are before us in the queue"), "{error}");
    }
    settled(&waiter).await;
    let waits = proxy.on((kind.waits)(&path));
    let freezes = async {
        assert!(on_a_thread(move || waits.wait(SOON)).await);
        proxy.freeze(Direction::Both);
    };
    tokio::join!(times_out(&lock), freezes);
    proxy.thaw();
    settled(&waiter).await;
    (kind.has_queued)(&operator, &path, 0);
    soon(hold.release()).await.unwrap();
}
