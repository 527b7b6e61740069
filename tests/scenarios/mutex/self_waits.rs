//! An owner that acquires a lock which it already holds waits if anybody may release that hold, and the log has a warning.

use crate::support::deadline::A_WHILE;
use crate::support::warnings::{about, collect};
use crate::support::{SOON, acquire, client, join, operator, proxied_client, reentrant, says, soon};
use ground::{Kind, until};
use std::time::Duration;
use zklock::{ErrorKind, HoldState};

/// How often a warning was logged that a caller waits for what it holds itself at this path.
fn told(path: &str) -> usize {
    let lines = about(path, "waits for it again");
    for line in &lines {
        assert!(line.starts_with("WARN ") && line.contains("release it first"), "{line}");
        assert!(!line.contains("reentrant"), "{line}");
    }
    lines.len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_waits_until_its_time_is_over_or_another_releases_it() {
    collect();
    let ((client, proxy), operator, path) = (proxied_client().await, operator(), "/self-waits/waits");
    let lock = client.mutex(path).unwrap();
    let hold = soon(lock.acquire()).await.unwrap();
    // Tries do not wait.
    proxy.record();
    assert!(soon(lock.try_acquire()).await.unwrap().is_none());
    let busy = soon(lock.acquire_timeout(Duration::ZERO)).await.unwrap_err();
    says(&busy, ErrorKind::Timeout, &[path, "is held by this thread or task itself"]);
    assert_eq!((proxy.counts().requests(Kind::Create), told(path)), (0, 0));
    // Another handle is the same lock.
    for (number, lock) in [lock.clone(), client.mutex(path).unwrap()].into_iter().enumerate() {
        let late = soon(lock.acquire_timeout(A_WHILE)).await.unwrap_err();
        says(&late, ErrorKind::Timeout, &[path, "this thread or task holds it itself"]);
        assert_eq!(told(path), number + 1, "once for each wait");
    }
    assert_eq!(hold.state(), HoldState::Held, "nothing has changed");
    // It is a waiter like any other: two nodes, and another task comes after it.
    let again = join(&lock).await;
    operator.wait_for_children(path, 2, SOON);
    let next = acquire(&lock);
    assert_eq!(told(path), 3);
    let token = hold.token();
    drop(tokio::spawn(async move { hold.release().await.unwrap() }));
    let again = soon(again).await.unwrap();
    assert!(again.token() > token && !next.is_finished());
    again.release().await.unwrap();
    soon(next).await.unwrap().unwrap().release().await.unwrap();
    assert_eq!(told(path), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ordinary_wait_is_not_told_of() {
    collect();
    let (client, path) = (client().await, "/self-waits/ordinary");
    let lock = client.mutex(path).unwrap();
    let hold = soon(lock.acquire()).await.unwrap();
    let other = acquire(&lock);
    operator().wait_for_children(path, 2, SOON);
    hold.release().await.unwrap();
    soon(other).await.unwrap().unwrap().release().await.unwrap();
    assert_eq!(told(path), 0);
}

/// Two readers of one owner are granted at once. They wait for each other only if a writer waits in between.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_behind_a_writer_behind_itself_is_told_of() {
    collect();
    let (client, other, path) = (client().await, client().await, "/self-waits/readers");
    let read = client.read_lock(path).unwrap();
    let (one, two) = (soon(read.acquire()).await.unwrap(), soon(read.acquire()).await.unwrap());
    assert_eq!(told(path), 0);
    let writer = acquire(&other.write_lock(path).unwrap());
    operator().wait_for_children(path, 3, SOON);
    let again = join(&read).await;
    assert!(until(SOON, || told(path) == 1));
    drop(again);
    for hold in [one, two] {
        hold.release().await.unwrap();
    }
    soon(writer).await.unwrap().unwrap().release().await.unwrap();
}

/// If only the owner can release its hold, a wait would never end, whichever lock of the path it wants.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_only_it_can_release_it_does_not_wait_for() {
    collect();
    let ((client, proxy), path) = (proxied_client().await, "/self-waits/bound");
    let reentrant = reentrant(&client, path);
    let lock = client.mutex(path).unwrap();
    let hold = soon(reentrant.acquire()).await.unwrap();
    proxy.record();
    for timeout in [SOON, Duration::MAX] {
        let error = soon(lock.acquire_timeout(timeout)).await.unwrap_err();
        says(&error, ErrorKind::Deadlock, &[path, "through a reentrant lock", "release that first"]);
        assert!(!error.to_string().contains("make"), "{error}");
    }
    assert!(soon(lock.try_acquire()).await.unwrap().is_none());
    assert_eq!((proxy.counts().requests(Kind::Create), told(path)), (0, 0));
    hold.release().await.unwrap();
    soon(lock.acquire()).await.unwrap().release().await.unwrap();
}
