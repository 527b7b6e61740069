//! Promise 1: holds never have more permits than there are.

use crate::support::contest::Contest;
use crate::support::permits::{has, semaphore, take};
use crate::support::{SOON, client, operator, soon};
use std::time::Duration;
use zklock_core::Hold;

const LIMIT: u32 = 5;

/// Contenders that want one to three permits each.
const fn contest(path: &'static str) -> Contest {
    Contest {
        path,
        places: &["/locks", "/leases"],
        limit: LIMIT,
        clients: 8,
        contenders: 32,
        lock: |client, path, number| {
            let permits = 1 + number as u32 / 8 % 3;
            (semaphore(client, path, LIMIT, permits), permits)
        },
        lasts: Duration::from_millis(30),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thirty_two_contenders_never_have_more_permits_than_there_are() {
    let register = contest("/semaphore/32").in_peace(Duration::from_secs(2)).await;
    assert!(register.most() > 2, "never more than {} at once", register.most());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_that_end_and_connections_that_break_give_away_no_permit_twice() {
    let (register, expired) = contest("/semaphore/faults").under_faults(Duration::from_secs(5)).await;
    assert!(expired > 3 && register.most() > 2, "{expired} sessions ended, {} at once", register.most());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_permits_are_held_together_and_returned_together() {
    let (client, operator, path) = (client().await, operator(), "/semaphore/several");
    let three = soon(semaphore(&client, path, 5, 3).acquire()).await.unwrap();
    assert_eq!(three.nodes().count(), 3);
    assert!(three.nodes().all(|node| operator.stat(node).is_some()));
    has(&operator, path, 0, 3);
    // One task may have several holds, and any task may release them.
    let more = take(&client, path, 5, 2).await;
    let tokens: Vec<_> = std::iter::once(&three).chain(&more).map(Hold::token).collect();
    assert!(tokens.is_sorted_by(|one, next| one < next), "{tokens:?}");
    let lock = semaphore(&client, path, 5, 4);
    let waiter = tokio::spawn(async move { lock.acquire().await.unwrap() });
    has(&operator, path, 1, 9);
    for hold in more {
        tokio::spawn(async move { hold.release().await }).await.unwrap().unwrap();
    }
    // Two permits are free, but the waiter wants four.
    has(&operator, path, 1, 7);
    assert!(!waiter.is_finished());
    soon(three.release()).await.unwrap();
    let four = soon(waiter).await.unwrap();
    has(&operator, path, 0, 4);
    assert!(four.token() > tokens[2]);
    soon(four.release()).await.unwrap();
    has(&operator, path, 0, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_a_stranger_has_in_the_directory_of_permits_counts() {
    use ground::wire::Mode;
    let (client, operator, path) = (client().await, operator(), "/semaphore/strangers");
    operator.create_all(&format!("{path}/leases"), "");
    let names =
        ["_c_01234567-89ab-4cde-8f01-23456789abcd-lease-", "_c_0123456789abcdef0123456789abcdef-lease-"];
    let strangers = names
        .map(|name| operator.create_mode(&format!("{path}/leases/{name}"), "", Mode::EphemeralSequential));
    let lock = semaphore(&client, path, 2, 1);
    assert!(soon(lock.try_acquire()).await.unwrap().is_none());
    let waiter = tokio::spawn(async move { lock.acquire().await.unwrap() });
    operator.wait_for_children(&format!("{path}/leases"), 3, SOON);
    assert!(!waiter.is_finished());
    operator.delete(&strangers[1]);
    soon(soon(waiter).await.unwrap().release()).await.unwrap();
    operator.delete(&strangers[0]);
}
