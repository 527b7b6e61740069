//! Promise 3: grants follow the order of the nodes, and no stream of readers starves a writer.

use crate::support::register::clients;
use crate::support::{SOON, operator, soon};
use ground::shared;
use std::sync::{Arc, Mutex};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_of_readers_and_writers_take_their_turns_in_the_order_of_their_arrival() {
    const PLAN: &str = "rrWrrrWWrWWrrrrW";
    let (operator, path) = (operator(), "/rwlock/groups");
    // A client has at most one writer in the queue, besides one that holds.
    let clients = clients(&shared().connect_string(), PLAN.len() + 1).await;
    let first = soon(clients[0].write_lock(path).unwrap().acquire()).await.unwrap();
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
            let lock = if *side == 'r' { client.read_lock(path) } else { client.write_lock(path) }.unwrap();
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
