//! Promise 3: grants follow the order of the nodes, and no stream of readers starves a writer.

use crate::support::register::clients;
use crate::support::{SOON, client, operator, soon};
use ground::{shared, until};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_of_readers_and_writers_take_their_turns_in_the_order_of_their_arrival() {
    const PLAN: &str = "rrWrrrWWrWWrrrrW";
    let (operator, path) = (operator(), "/rwlock/groups");
    // A client has at most one writer in the queue, besides one that holds.
    let clients = clients(&shared().connect_string(), PLAN.len() + 1).await;
    let first = soon(clients[0].write(path).unwrap().acquire()).await.unwrap();
    // Consecutive readers form a group, and each writer is one by itself.
    let mut groups: Vec<(char, usize)> = Vec::new();
    for side in PLAN.chars() {
        match groups.last_mut() {
            Some((last, count)) if *last == side && side == 'r' => *count += 1,
            _ => groups.push((side, 1)),
        }
    }
    let grants = Arc::new(Mutex::new(Vec::new()));
    let mut contenders = JoinSet::new();
    let mut queued = 1;
    for (number, (side, count)) in groups.iter().enumerate() {
        // Nobody leaves before the whole group is in, so its members overlap.
        let together = Arc::new(Barrier::new(*count));
        for _ in 0..*count {
            let client = &clients[queued];
            let lock = if *side == 'r' { client.read(path) } else { client.write(path) }.unwrap();
            let (grants, together) = (grants.clone(), together.clone());
            contenders.spawn(async move {
                let hold = lock.acquire().await.unwrap();
                grants.lock().unwrap().push(number);
                together.wait().await;
                hold.release().await.unwrap();
            });
            queued += 1;
            operator.wait_for_children(path, queued, SOON);
        }
    }
    assert!(grants.lock().unwrap().is_empty());
    soon(first.release()).await.unwrap();
    soon(contenders.join_all()).await;
    let expected: Vec<usize> =
        groups.iter().enumerate().flat_map(|(number, (_, count))| vec![number; *count]).collect();
    assert_eq!(*grants.lock().unwrap(), expected, "{groups:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_of_readers_lets_a_writer_through_in_its_turn() {
    let (operator, path) = (operator(), "/rwlock/stream");
    let clients = clients(&shared().connect_string(), 4).await;
    let (ended, tokens) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
    let mut readers = JoinSet::new();
    for number in 0..12 {
        let (lock, ended) = (clients[number % 4].read(path).unwrap(), ended.clone());
        let tokens = tokens.clone();
        readers.spawn(async move {
            while !ended.load(Ordering::Relaxed) {
                let hold = lock.acquire().await.unwrap();
                tokens.lock().unwrap().push(hold.token());
                // Readers overlap so that, if the queue's order did not count, there would always be a reader.
                tokio::time::sleep(Duration::from_millis(20 + number as u64 * 3)).await;
                hold.release().await.unwrap();
            }
        });
    }
    let writer = client().await.write(path).unwrap();
    for _ in 0..10 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let flows = || !operator.children(path).is_empty();
        assert!(until(SOON, flows), "a stream that dries up lets anybody through");
        let hold = soon(writer.acquire()).await.unwrap();
        let overtaken = tokens.lock().unwrap().iter().filter(|token| **token > hold.token()).count();
        assert_eq!(overtaken, 0, "readers went before a writer that was there before them");
        soon(hold.release()).await.unwrap();
    }
    ended.store(true, Ordering::Relaxed);
    soon(readers.join_all()).await;
    assert!(tokens.lock().unwrap().len() > 50);
}
