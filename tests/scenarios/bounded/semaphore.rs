//! Promise 4: an acquire of permits with a deadline returns by then, whatever the network does.

use crate::support::deadline::{DIRECTIONS, frozen_from_the_start, times_out};
use crate::support::kinds::PERMITS;
use crate::support::permits::{has, semaphore};
use crate::support::{SOON, client, operator, proxied_client, settled, soon};
use ground::{Direction, Kind, Trigger};
use zklock_core::LockSpec;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_network_delays_nobody_who_wants_permits() {
    frozen_from_the_start(&PERMITS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_network_that_freezes_at_a_later_step_delays_nobody() {
    let (holder, operator) = (client().await, operator());
    for direction in DIRECTIONS {
        let (client, proxy) = proxied_client().await;
        let path = format!("/semaphore/bounded-{direction:?}");
        let lock = semaphore(&client, &path, 3, 3);
        // As the head of the queue, with more permits than are free.
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
    // A read of the limit that is never answered.
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
