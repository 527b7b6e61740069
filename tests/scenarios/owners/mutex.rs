//! A reentrant lock belongs to the task or thread that acquired it, which may acquire it again. Others may not release it.

use crate::support::{SESSION, SOON, client, operator, proxied_client, reentrant, settled, soon};
use ground::{Kind, Proxy, until};
use std::sync::Arc;
use std::time::Duration;
use zklock::{ErrorKind, HoldState, LockSpec, LossReason};

/// How many requests were made since the record began, except those that keep the session and its lease, and the listing
/// that a holder sends after a heartbeat, as it may on a slow machine.
fn asked(proxy: &Proxy) -> usize {
    proxy.counts().asked.iter().filter(|kind| !matches!(kind, Kind::Multi | Kind::GetChildren)).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_inner_acquire_asks_nobody_and_only_the_last_release_frees() {
    let ((client, proxy), operator, path) = (proxied_client().await, operator(), "/owners/inner");
    for (kind, spec) in [
        ("mutex", LockSpec::mutex(path)),
        ("reader", LockSpec::read_lock(path)),
        ("writer", LockSpec::write_lock(path)),
    ] {
        let lock = client.lock(&spec.unwrap().reentrant(true)).unwrap();
        let outer = lock.acquire().await.unwrap();
        proxy.record();
        let mut inner = Vec::new();
        for timeout in [1, 0] {
            inner.push(lock.acquire().await.unwrap());
            inner.push(lock.acquire_timeout(Duration::from_millis(timeout)).await.unwrap());
            inner.push(lock.try_acquire().await.unwrap().expect(kind));
        }
        for hold in &inner {
            assert_eq!((hold.token(), hold.node()), (outer.token(), outer.node()), "{kind}");
            assert_eq!(hold.state(), HoldState::Held, "{kind}");
        }
        // Any order is allowed, here the outer hold first.
        outer.release().await.unwrap();
        assert_eq!(outer.state(), HoldState::Released, "{kind}");
        assert!(outer.valid_for().is_zero(), "{kind}");
        let last = inner.pop().unwrap();
        for hold in inner {
            hold.release().await.unwrap();
            assert!(!last.valid_for().is_zero(), "{kind}");
        }
        assert_eq!(asked(&proxy), 0, "{kind}: {:?}", proxy.counts().asked);
        assert_eq!(operator.children(path).len(), 1, "{kind}");
        last.release().await.unwrap();
        assert_eq!(asked(&proxy), 1, "{kind}: the one delete");
        assert!(operator.children(path).is_empty(), "{kind}");

        let again = lock.acquire().await.unwrap();
        assert!(again.token() > last.token(), "{kind}: it is free, so this is a new grant");
        again.release().await.unwrap();
        settled(&client).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_by_another_task_is_refused_and_changes_nothing() {
    let ((client, proxy), operator) = (proxied_client().await, operator());
    let lock = reentrant(&client, "/owners/not-owner");
    let hold = Arc::new(lock.acquire().await.unwrap());
    proxy.record();
    for _ in 0..2 {
        let elsewhere = hold.clone();
        let refused = tokio::spawn(async move { elsewhere.release().await }).await.unwrap().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::NotOwner);
        assert_eq!(hold.state(), HoldState::Held);
        assert!(!hold.valid_for().is_zero());
    }
    assert_eq!(asked(&proxy), 0);
    assert_eq!(operator.children("/owners/not-owner").len(), 1);
    hold.release().await.expect("it is still ours");
    assert!(operator.children("/owners/not-owner").is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_that_is_not_reentrant_is_released_from_anywhere_but_once() {
    let (client, operator) = (client().await, operator());
    let lock = client.mutex("/owners/anywhere").unwrap();
    let hold = Arc::new(lock.acquire().await.unwrap());
    let elsewhere = hold.clone();
    tokio::spawn(async move { elsewhere.release().await }).await.unwrap().unwrap();
    assert!(operator.children("/owners/anywhere").is_empty());
    let next = soon(lock.acquire()).await.expect("it is free");
    assert_eq!(hold.release().await.unwrap_err().kind(), ErrorKind::NotHeld);
    assert_eq!(next.state(), HoldState::Held, "the next hold is not touched");
    assert_eq!(operator.children("/owners/anywhere").len(), 1);
    next.release().await.unwrap();
    assert_eq!(next.release().await.unwrap_err().kind(), ErrorKind::NotHeld);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_inner_section_is_not_entered_when_the_outer_hold_is_lost() {
    let (client, operator) = (client().await, operator());
    let lock = reentrant(&client, "/owners/lost");
    let (outer, inner) = (lock.acquire().await.unwrap(), lock.acquire().await.unwrap());
    operator.delete(outer.node());
    let lost = ErrorKind::Lost(LossReason::NodeDeleted);
    assert_eq!(soon(outer.lost()).await, Ok(Some(LossReason::NodeDeleted)));
    assert_eq!(soon(lock.acquire()).await.unwrap_err().kind(), lost);
    assert_eq!(soon(lock.acquire_timeout(SESSION)).await.unwrap_err().kind(), lost);
    assert_eq!(soon(lock.try_acquire()).await.unwrap_err().kind(), lost);
    assert_eq!(inner.state(), HoldState::Lost(LossReason::NodeDeleted), "both are lost");
    // The same when its node has been cleaned up.
    settled(&client).await;
    assert!(until(SOON, || client.stats().losses == 1));
    assert_eq!(soon(lock.acquire()).await.unwrap_err().kind(), lost);
    assert_eq!(inner.release().await.unwrap_err().kind(), lost);
    assert_eq!(soon(lock.acquire()).await.unwrap_err().kind(), lost);
    assert_eq!(outer.release().await.unwrap_err().kind(), lost);
    let next = soon(lock.acquire()).await.unwrap();
    assert!(next.token() > outer.token());
    next.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropping_the_last_hold_releases() {
    let (client, operator) = (client().await, operator());
    let lock = client.mutex("/owners/drop").unwrap();
    drop(lock.acquire().await.unwrap());
    operator.wait_for_children("/owners/drop", 0, SOON);
    soon(lock.acquire()).await.unwrap().release().await.unwrap();

    let lock = reentrant(&client, "/owners/drop");
    let (outer, inner) = (lock.acquire().await.unwrap(), lock.acquire().await.unwrap());
    drop(outer);
    assert_eq!(inner.state(), HoldState::Held);
    assert!(!inner.valid_for().is_zero());
    assert_eq!(operator.children("/owners/drop").len(), 1);
    // Even another task may drop it, although it could not release it.
    tokio::spawn(async move { drop(inner) }).await.unwrap();
    operator.wait_for_children("/owners/drop", 0, SOON);
}
