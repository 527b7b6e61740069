//! Promise 4: an acquire of permits with a deadline returns by then, whatever the network does.

use crate::common::{GRACE, SOON, client, operator, proxied_client, settled, soon};
use crate::permits::{has, semaphore};
use ground::{Direction, Kind, Trigger, not_later};
use std::time::{Duration, Instant};
use zklock_core::{Error, ErrorKind, Lock, LockSpec};

const A_WHILE: Duration = Duration::from_millis(300);
const DIRECTIONS: [Direction; 3] = [Direction::ToServer, Direction::ToClient, Direction::Both];

/// It times out in time. A sleep beside it tells how late the machine is.
async fn times_out(lock: &Lock) -> Error {
    let start = Instant::now();
    let sleep = tokio::spawn(async move {
        tokio::time::sleep(A_WHILE).await;
        start.elapsed()
    });
    let error = soon(lock.acquire_timeout(A_WHILE)).await.unwrap_err();
    let took = start.elapsed();
    let noise = soon(sleep).await.unwrap().saturating_sub(A_WHILE);
    assert!(took >= A_WHILE, "{took:?}");
    not_later(took, A_WHILE + GRACE + noise);
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
    error
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_network_delays_nobody_at_whatever_step() {
    let (holder, operator) = (client().await, operator());
    for direction in DIRECTIONS {
        let (client, proxy) = proxied_client().await;
        let path = format!("/semaphore/bounded-{direction:?}");
        let lock = semaphore(&client, &path, 3, 3);
        proxy.freeze(direction);
        times_out(&lock).await;
        proxy.thaw();
        settled(&client).await;
        soon(lock.acquire()).await.unwrap().release().await.unwrap();

        // As the head, with permits that are too many.
        let hold = soon(semaphore(&holder, &path, 3, 1).acquire()).await.unwrap();
        let waits = proxy.on(Trigger::reply(Kind::Exists).path(format!("{path}/locks")));
        let waiter = tokio::spawn(async move { (times_out(&lock).await, lock) });
        assert!(waits.wait(SOON));
        proxy.freeze(direction);
        let (_, lock) = soon(waiter).await.unwrap();
        proxy.thaw();
        settled(&client).await;
        has(&operator, &path, 0, 1);

        // While its permits are created.
        let taking = proxy.on(Trigger::request(Kind::Multi).then(ground::Action::Freeze(direction)));
        times_out(&lock).await;
        assert!(taking.fired());
        proxy.thaw();
        settled(&client).await;
        has(&operator, &path, 0, 1);
        soon(hold.release()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn permits_that_do_not_come_delay_nobody_and_are_said_to_be_the_reason() {
    let (holder, (waiter, proxy)) = (client().await, proxied_client().await);
    let path = "/semaphore/bounded-busy";
    let hold = soon(semaphore(&holder, path, 2, 2).acquire()).await.unwrap();
    let lock = semaphore(&waiter, path, 2, 1);
    let error = times_out(&lock).await;
    assert!(error.to_string().contains("others are before us in the queue"), "{error}");
    settled(&waiter).await;
    has(&operator(), path, 0, 2);
    // A limit that is not answered.
    let limited = LockSpec::semaphore(path, 2).unwrap().limit_at("/limits/bounded");
    let limited = waiter.lock(&limited).unwrap();
    soon(hold.release()).await.unwrap();
    let asked = Trigger::request(Kind::GetData).path("/limits/bounded");
    let frozen = proxy.on(asked.then(ground::Action::Freeze(Direction::ToClient)));
    times_out(&limited).await;
    assert!(frozen.fired());
    proxy.thaw();
    settled(&waiter).await;
    has(&operator(), path, 0, 0);
}
