//! The node with the number of permits: waiters notice when it changes.

use crate::support::permits::has;
use crate::support::{Waiting, client, comes, operator, proxied, says, settled, soon};
use ground::{Direction, Kind, Trigger};
use std::time::Duration;
use zklock::{Client, ErrorKind, Lock, LockSpec};

/// A semaphore with 1 permit in all as long as the node does not exist.
fn told(client: &Client, name: &str, permits: u32) -> Lock {
    let spec = LockSpec::semaphore(&format!("/semaphore/limit-{name}"), 1).unwrap();
    client.lock(&spec.permits(permits).limit_at(&format!("/limits/{name}"))).unwrap()
}

/// A waiter at the head, until the permits or their limit change.
async fn waits(name: &str, permits: u32) -> Waiting {
    let waits = Trigger::reply(Kind::Exists).path(format!("/limit-{name}/locks"));
    Waiting::new(|client| told(client, name, permits), waits).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_that_is_lowered_takes_nothing_away_and_holds_back_the_next() {
    let (client, operator) = (client().await, operator());
    soon(client.set_limit("/limits/lowered", 3)).await.unwrap();
    let mut holds = Vec::new();
    for _ in 0..3 {
        holds.push(soon(told(&client, "lowered", 1).acquire()).await.unwrap());
    }
    let next = waits("lowered", 1).await;
    soon(client.set_limit("/limits/lowered", 1)).await.unwrap();
    for left in [2, 1] {
        assert!(holds.iter().all(|hold| !hold.valid_for().is_zero()));
        soon(holds.pop().unwrap().release()).await.unwrap();
        has(&operator, "/semaphore/limit-lowered", 1, left + 1);
        let early = comes(async || next.task.is_finished());
        let early = tokio::time::timeout(Duration::from_millis(100), early).await;
        assert!(early.is_err(), "beside {left} others, where there is one permit");
    }
    soon(holds.pop().unwrap().release()).await.unwrap();
    drop(next.granted().await);
    // With a limit of zero nobody gets a permit.
    soon(client.set_limit("/limits/lowered", 0)).await.unwrap();
    has(&operator, "/semaphore/limit-lowered", 0, 0);
    assert!(soon(told(&client, "lowered", 1).try_acquire()).await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_comes_later_or_goes_is_noticed() {
    let (client, operator) = (client().await, operator());
    let hold = soon(told(&client, "later", 1).acquire()).await.unwrap();
    // It may wait for more permits than the lock's own limit, because the node may raise that.
    let two = waits("later", 2).await;
    soon(client.set_limit("/limits/later", 3)).await.unwrap();
    let two = two.granted().await;
    let next = waits("later", 1).await;
    // Without the node the lock's own limit of 1 counts again.
    operator.delete("/limits/later");
    soon(hold.release()).await.unwrap();
    has(&operator, "/semaphore/limit-later", 1, 3);
    assert!(!next.task.is_finished());
    soon(two.0.release()).await.unwrap();
    drop(next.granted().await);
    has(&operator, "/semaphore/limit-later", 0, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_says_something_else_is_refused_and_named() {
    let (client, operator) = (client().await, operator());
    operator.create_all("/limits/bad", "three");
    let lock = told(&client, "bad", 1);
    says(&soon(lock.acquire()).await.unwrap_err(), ErrorKind::Refused, &["/limits/bad", "shared count"]);
    // The client leaves the queue in the background. Until then a try would find its node there.
    settled(&client).await;
    says(&soon(lock.try_acquire()).await.unwrap_err(), ErrorKind::Refused, &["/limits/bad"]);
    has(&operator, "/semaphore/limit-bad", 0, 0);
    // A waiter also gets the error if the limit becomes invalid while it waits.
    soon(client.set_limit("/limits/bad", 1)).await.unwrap();
    let hold = soon(lock.acquire()).await.unwrap();
    let waiter = waits("bad", 1).await;
    operator.set("/limits/bad", "");
    says(&soon(waiter.task).await.unwrap().unwrap_err(), ErrorKind::Refused, &["/limits/bad"]);
    has(&operator, "/semaphore/limit-bad", 0, 1);
    soon(hold.release()).await.unwrap();
    // A negative number counts as zero.
    operator.set("/limits/bad", (-1_i32).to_be_bytes());
    assert!(soon(lock.try_acquire()).await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_is_written_whole_or_not_at_all_and_its_node_is_made() {
    let (client, operator) = (client().await, operator());
    soon(client.set_limit("/limits/a/b/c", 7)).await.unwrap();
    soon(client.set_limit("/limits/a/b/c", 2_147_483_647)).await.unwrap();
    assert_eq!(operator.data("/limits/a/b/c"), i32::MAX.to_be_bytes());
    let error = soon(client.set_limit("/limits/a/b/c", 2_147_483_648)).await.unwrap_err();
    says(&error, ErrorKind::InvalidInput, &["2147483648", "/limits/a/b/c"]);
    for bad in ["limits", "/limits/", "/a//b", ""] {
        let error = soon(client.set_limit(bad, 1)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{bad:?}: {error}");
    }
    // The call fails while no server answers, and does not wait for ever.
    let (hasty, proxy) = proxied(|options| options.connect_timeout(Duration::from_millis(300))).await;
    proxy.freeze(Direction::Both);
    let error = soon(hasty.set_limit("/limits/a/b/c", 1)).await.unwrap_err();
    says(&error, ErrorKind::Unreachable, &["/limits/a/b/c"]);
    proxy.thaw();
    hasty.close().await.unwrap();
    let error = soon(hasty.set_limit("/limits/a/b/c", 1)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
}
