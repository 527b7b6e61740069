//! Who holds what, within one process: reentrancy, and the waits that could never end.

use crate::common::{SOON, client, operator, proxied_client, says, soon};
use ground::{Kind, shared};
use std::time::Duration;
use zklock_core::{Client, ErrorKind, Lock, LockOptions, blocking};

fn sides(client: &Client, path: &str, reentrant: bool) -> [Lock; 2] {
    let options = || LockOptions::new().reentrant(reentrant);
    [client.read_with(path, options()).unwrap(), client.write_with(path, options()).unwrap()]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_wants_to_write_is_told_at_once_that_it_waits_for_itself() {
    for reentrant in [false, true] {
        let (client, proxy) = proxied_client().await;
        let path = format!("/rwlock/upgrade-{reentrant}");
        let [read, write] = sides(&client, &path, reentrant);
        let hold = soon(read.acquire()).await.unwrap();
        proxy.record();
        for timeout in [SOON, Duration::MAX] {
            let error = soon(write.acquire_timeout(timeout)).await.unwrap_err();
            says(&error, ErrorKind::Deadlock, &[&path, "read side", "release"]);
        }
        let created = proxy.counts().requests(Kind::Create);
        assert_eq!(created, 0, "that costs no request");
        // Whoever only tries is told that it is busy.
        assert!(soon(write.try_acquire()).await.unwrap().is_none());
        // Another task only waits.
        let other = write.clone();
        let waiter = tokio::spawn(async move { other.acquire().await?.release().await });
        operator().wait_for_children(&path, 2, SOON);
        soon(hold.release()).await.unwrap();
        soon(waiter).await.unwrap().unwrap();
        soon(write.acquire()).await.unwrap().release().await.unwrap();
    }
}

#[test]
fn a_thread_that_reads_and_wants_to_write_is_told_so_too() {
    let options = crate::common::options(&shared().connect_string());
    let client = blocking::Client::connect(options).unwrap();
    let hold = client.read("/rwlock/upgrade-thread").unwrap().acquire_timeout(SOON).unwrap();
    let error = client.write("/rwlock/upgrade-thread").unwrap().acquire_timeout(SOON).unwrap_err();
    says(&error, ErrorKind::Deadlock, &["/rwlock/upgrade-thread"]);
    hold.release().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn either_side_is_taken_again_by_its_owner_without_a_request() {
    let (client, proxy) = proxied_client().await;
    let (path, operator) = ("/rwlock/reentrant", operator());
    for lock in sides(&client, path, true) {
        let outer = soon(lock.acquire()).await.unwrap();
        proxy.record();
        let inner = [
            soon(lock.acquire()).await.unwrap(),
            soon(lock.try_acquire()).await.unwrap().unwrap(),
            soon(lock.acquire_timeout(Duration::ZERO)).await.unwrap(),
        ];
        assert_eq!(proxy.counts().requests(Kind::Create) + proxy.counts().requests(Kind::GetChildren), 0);
        for hold in &inner {
            assert_eq!((hold.token(), hold.node()), (outer.token(), outer.node()));
        }
        soon(outer.release()).await.unwrap();
        // Only the last release counts, and it is another's only if it is its owner's.
        let last = inner.into_iter().next_back().unwrap();
        assert_eq!(operator.children(path).len(), 1);
        let last = std::sync::Arc::new(last);
        let theirs = last.clone();
        let error = tokio::spawn(async move { theirs.release().await }).await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotOwner, "{error}");
        assert_eq!(operator.children(path).len(), 1);
        soon(last.release()).await.unwrap();
        assert_eq!(operator.children(path), [""; 0]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_side_that_is_not_reentrant_is_not_taken_twice_by_its_owner() {
    let (client, path) = (client().await, "/rwlock/twice");
    for lock in sides(&client, path, false) {
        let hold = soon(lock.acquire()).await.unwrap();
        says(&soon(lock.acquire()).await.unwrap_err(), ErrorKind::Deadlock, &[path]);
        soon(hold.release()).await.unwrap();
        soon(lock.acquire()).await.unwrap().release().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nor_is_the_read_side_within_the_write_side() {
    let (client, path) = (client().await, "/rwlock/twice-within");
    let [read, write] = sides(&client, path, false);
    let outer = soon(write.acquire()).await.unwrap();
    let inner = soon(read.acquire()).await.unwrap();
    for lock in [&read, &write] {
        says(&soon(lock.acquire()).await.unwrap_err(), ErrorKind::Deadlock, &[path]);
    }
    soon(outer.release()).await.unwrap();
    says(&soon(read.acquire()).await.unwrap_err(), ErrorKind::Deadlock, &[path]);
    soon(inner.release()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writer_and_reader_within_are_each_taken_again_and_end_each_by_itself() {
    let (client, path, operator) = (client().await, "/rwlock/nested", operator());
    let [read, write] = sides(&client, path, true);
    let writes = [soon(write.acquire()).await.unwrap(), soon(write.acquire()).await.unwrap()];
    let reads = [soon(read.acquire()).await.unwrap(), soon(read.acquire()).await.unwrap()];
    assert_eq!(operator.children(path).len(), 2);
    assert_eq!((writes[0].node(), reads[0].node()), (writes[1].node(), reads[1].node()));
    // The write side it has already: that is no upgrade.
    let third = soon(write.acquire()).await.unwrap();
    soon(third.release()).await.unwrap();
    for hold in &writes {
        soon(hold.release()).await.unwrap();
    }
    assert_eq!(operator.children(path).len(), 1);
    // Now it reads alone.
    assert_eq!(soon(write.acquire()).await.unwrap_err().kind(), ErrorKind::Deadlock);
    for hold in &reads {
        soon(hold.release()).await.unwrap();
    }
    assert_eq!(operator.children(path), [""; 0]);
}
