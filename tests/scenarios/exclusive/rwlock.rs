//! Promise 1: a writer is alone, readers are together.

use crate::support::register::{Faults, Register, clients, expired};
use crate::support::{SOON, client, operator, settled, soon};
use ground::shared;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use zklock_core::Client;

/// More than there ever are.
const ALL: u32 = 1000;

/// Contenders of these clients, of whom every third writes, until it is ended.
fn contend(clients: &[Client], count: usize, path: &str, register: &Arc<Register>) -> (JoinSet<()>, Ending) {
    let ended = Ending::default();
    let mut contenders = JoinSet::new();
    for number in 0..count {
        let client = &clients[number % clients.len()];
        let (lock, weight) = if number % 3 == 0 {
            (client.write(path).unwrap(), ALL)
        } else {
            (client.read(path).unwrap(), 1)
        };
        let (register, ended) = (register.clone(), ended.clone());
        contenders.spawn(async move {
            while !ended.load(Ordering::Relaxed) {
                register.turn(&lock, weight, Duration::from_millis(2)).await;
            }
        });
    }
    (contenders, ended)
}

type Ending = Arc<AtomicBool>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thirty_two_readers_and_writers_of_eight_clients_keep_to_the_rule_in_order() {
    let register = Register::of(ALL);
    let clients = clients(&shared().connect_string(), 8).await;
    let (contenders, ended) = contend(&clients, 32, "/rwlock/32", &register);
    tokio::time::sleep(Duration::from_secs(2)).await;
    ended.store(true, Ordering::Relaxed);
    soon(contenders.join_all()).await;
    let (grants, most) = (register.grants(), register.most());
    let writers = grants.iter().filter(|(_, weight)| *weight == ALL).count();
    println!("{} grants, {writers} of them to writers, {most} readers at once", grants.len());
    assert!(most > 4, "only {most} readers at once");
    assert!(writers > 20 && grants.len() > 2 * writers, "{writers} writers of {}", grants.len());
    register.assert_growing();
    operator().wait_for_children("/rwlock/32", 0, SOON);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_that_end_and_connections_that_break_let_nobody_in_beside_a_writer() {
    let register = Register::of(ALL);
    let (clients, mut faults) = Faults::beset(8).await;
    let (contenders, ended) = contend(&clients, 32, "/rwlock/faults", &register);
    tokio::time::sleep(Duration::from_secs(5)).await;
    faults.end();
    // Also after the last of the faults.
    let before = register.count();
    assert!(soon_more(&register, before + 32).await, "nobody gets the lock any more");
    ended.store(true, Ordering::Relaxed);
    soon(contenders.join_all()).await;
    let expired = expired(&clients);
    println!("{} grants, {expired} sessions ended, {} at once", register.count(), register.most());
    assert!(expired > 3 && register.most() > 1, "{expired} sessions ended, {} at once", register.most());
    register.assert_growing();
    for client in &clients {
        settled(client).await;
    }
    operator().wait_for_children("/rwlock/faults", 0, SOON);
}

async fn soon_more(register: &Register, count: usize) -> bool {
    let more = async {
        while register.count() < count {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(SOON, more).await.is_ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_of_one_client_have_a_node_each_and_are_together() {
    let (client, admin, path) = (client().await, operator(), "/rwlock/together");
    let mut readers = JoinSet::new();
    for _ in 0..10 {
        let lock = client.read(path).unwrap();
        readers.spawn(async move { lock.acquire().await.unwrap() });
    }
    let holds = soon(readers.join_all()).await;
    let nodes: std::collections::BTreeSet<_> = holds.iter().map(|hold| hold.node().to_owned()).collect();
    assert_eq!((nodes.len(), admin.children(path).len()), (10, 10));
    assert!(holds.iter().all(|hold| !hold.valid_for().is_zero()));
    let lock = client.write(path).unwrap();
    let writer = tokio::spawn(async move { lock.acquire().await });
    admin.wait_for_children(path, 11, SOON);
    for (left, hold) in (1..=10).rev().zip(&holds) {
        assert!(!writer.is_finished(), "beside {left} readers");
        soon(hold.release()).await.unwrap();
    }
    let writer = soon(writer).await.unwrap().unwrap();
    assert!(holds.iter().all(|hold| hold.token() < writer.token()));
    soon(writer.release()).await.unwrap();
}
