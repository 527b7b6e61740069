//! Promise 1: never more permits are held than there are.

use crate::support::permits::{has, semaphore, take};
use crate::support::register::{Faults, Register, clients, expired};
use crate::support::{SOON, client, operator, settled, soon};
use ground::shared;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use zklock_core::{Client, Hold};

const LIMIT: u32 = 5;

/// Contenders of these clients for one to three permits, while this works and a little longer.
async fn contend(clients: &[Client], path: &str, register: &Arc<Register>, work: impl Future<Output = ()>) {
    let ended = Arc::new(AtomicBool::new(false));
    let mut contenders = JoinSet::new();
    for number in 0..32_usize {
        let permits = 1 + number as u32 / 8 % 3;
        let lock = semaphore(&clients[number % clients.len()], path, LIMIT, permits);
        let (register, ended) = (register.clone(), ended.clone());
        contenders.spawn(async move {
            while !ended.load(Ordering::Relaxed) {
                register.turn(&lock, permits, Duration::from_millis(30)).await;
            }
        });
    }
    work.await;
    // Also after the last of the faults.
    let before = register.count();
    let more = async {
        while register.count() < before + 32 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(SOON * 2, more).await.expect("the permits go round");
    ended.store(true, Ordering::Relaxed);
    tokio::time::timeout(SOON * 2, contenders.join_all()).await.expect("everybody has a turn");
    println!("{} grants, {} holds at once", register.count(), register.most());
    assert!(register.most() > 2, "never more than {} at once", register.most());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thirty_two_contenders_never_have_more_permits_than_there_are() {
    let register = Register::of(LIMIT);
    let clients = clients(&shared().connect_string(), 8).await;
    contend(&clients, "/semaphore/32", &register, tokio::time::sleep(Duration::from_secs(2))).await;
    has(&operator(), "/semaphore/32", 0, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_that_end_and_connections_that_break_give_away_no_permit_twice() {
    let register = Register::of(LIMIT);
    let (clients, mut faults) = Faults::beset(8).await;
    let work = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        faults.end();
    };
    contend(&clients, "/semaphore/faults", &register, work).await;
    assert!(expired(&clients) > 3, "{} sessions ended", expired(&clients));
    for client in &clients {
        settled(client).await;
    }
    has(&operator(), "/semaphore/faults", 0, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_permits_are_held_together_and_returned_together() {
    let (client, operator, path) = (client().await, operator(), "/semaphore/several");
    let three = soon(semaphore(&client, path, 5, 3).acquire()).await.unwrap();
    assert_eq!(three.nodes().count(), 3);
    assert!(three.nodes().all(|node| operator.stat(node).is_some()));
    has(&operator, path, 0, 3);
    // One task may have several holds, and any task return them.
    let more = take(&client, path, 5, 2).await;
    let tokens: Vec<_> = std::iter::once(&three).chain(&more).map(Hold::token).collect();
    assert!(tokens.is_sorted_by(|one, next| one < next), "{tokens:?}");
    let lock = semaphore(&client, path, 5, 4);
    let waiter = tokio::spawn(async move { lock.acquire().await.unwrap() });
    has(&operator, path, 1, 9);
    for hold in more {
        tokio::spawn(async move { hold.release().await }).await.unwrap().unwrap();
    }
    // Two are free, and four wanted.
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
