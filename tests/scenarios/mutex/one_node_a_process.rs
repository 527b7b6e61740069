//! However many tasks of one client want a lock, the ensemble sees at most two nodes of theirs.

use crate::support::register::Register;
use crate::support::{SOON, client, held, join, operator, proxied_client, soon};
use ground::{Kind, Message, Side, Trigger, until};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use tokio::task::JoinSet;

/// The most nodes that existed at once, as the client must have seen it.
fn most_nodes(record: &[Message]) -> usize {
    let (mut nodes, mut most) = (0, 0);
    for message in record {
        match (message.side, message.kind) {
            (Side::Request, Kind::Create) => nodes += 1,
            (Side::Reply, Kind::Delete) => nodes -= 1,
            _ => {}
        }
        most = most.max(nodes);
    }
    most
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_tasks_have_two_nodes_at_most_and_each_hold_its_own() {
    let ((client, proxy), operator) = (proxied_client().await, operator());
    let lock = client.mutex("/line/twenty").unwrap();
    held(&lock).await.release().await.unwrap();
    proxy.record();
    let register = Register::of(1);
    let nodes = Arc::new(Mutex::new(BTreeSet::new()));
    let mut tasks = JoinSet::new();
    for _ in 0..20 {
        let (lock, register, nodes) = (lock.clone(), register.clone(), nodes.clone());
        tasks.spawn(async move {
            for _ in 0..3 {
                let hold = Arc::new(lock.acquire().await.unwrap());
                assert!(register.enter(&hold, 1));
                nodes.lock().unwrap().insert(hold.node().to_owned());
                register.leave();
                hold.release().await.unwrap();
            }
        });
    }
    let mut seen = 0;
    assert!(until(SOON, || {
        seen = seen.max(operator.children("/line/twenty").len());
        register.count() == 60
    }));
    soon(tasks.join_all()).await;
    assert!(seen <= 2, "the operator has seen {seen}");
    assert_eq!(most_nodes(&proxy.messages()), 2, "one holds, one is queued ahead");
    register.assert_ordered(u64::lt);
    assert_eq!(nodes.lock().unwrap().len(), 60, "a node for each hold");
    assert_eq!(proxy.counts().requests(Kind::Create), 60);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_of_a_client_is_queued_while_the_holder_works() {
    let (client, proxy) = proxied_client().await;
    let lock = client.mutex("/line/ahead").unwrap();
    let hold = held(&lock).await;
    let watched = proxy.on(Trigger::reply(Kind::GetData).path("/line/ahead"));
    let second = tokio::spawn(join(&lock).await);
    assert!(watched.wait(SOON), "it does not queue ahead");
    proxy.record();
    hold.release().await.unwrap();
    let second = soon(second).await.unwrap().unwrap();
    // Its node was there, so the hand-over needed no creation, no listing; perhaps a check of its node.
    let asked = proxy.counts().asked;
    assert!(asked.iter().all(|kind| [Kind::Delete, Kind::Multi].contains(kind)), "{asked:?}");
    second.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tasks_of_a_client_are_served_in_the_order_of_their_arrival() {
    let client = client().await;
    let lock = client.mutex("/line/order").unwrap();
    let first = held(&lock).await;
    let grants = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = JoinSet::new();
    for arrival in 0..20 {
        let (acquire, grants) = (join(&lock).await, grants.clone());
        tasks.spawn(async move {
            let hold = acquire.await.unwrap();
            grants.lock().unwrap().push(arrival);
            hold.release().await.unwrap();
        });
    }
    first.release().await.unwrap();
    soon(tasks.join_all()).await;
    assert_eq!(*grants.lock().unwrap(), (0..20).collect::<Vec<_>>());
}
