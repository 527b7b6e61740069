//! Promise 3: permits go to the head of the queue, in the order of arrival, and it notices every permit that is returned.

use crate::support::permits::{has, head, semaphore, take};
use crate::support::register::clients;
use crate::support::{SOON, client, operator, soon};
use ground::shared;
use std::sync::{Arc, Mutex};
use tokio::task::JoinSet;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whichever_permit_returns_goes_to_the_head() {
    let (client, operator) = (client().await, operator());
    // The newest, the one in the middle, the oldest.
    for returned in [2, 1, 0] {
        let path = format!("/semaphore/returned-{returned}");
        let mut holds = take(&client, &path, 3, 3).await;
        let head = head(&path, 3, 1).await;
        has(&operator, &path, 1, 4);
        assert!(!head.task.is_finished());
        soon(holds.remove(returned).release()).await.unwrap();
        let (hold, _client) = head.granted().await;
        has(&operator, &path, 0, 3);
        drop((hold, holds));
        has(&operator, &path, 0, 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn permits_are_granted_in_the_order_of_arrival_also_to_who_wants_many() {
    const WANTED: [u32; 10] = [1, 3, 1, 1, 2, 3, 1, 2, 1, 1];
    let (operator, path) = (operator(), "/semaphore/order");
    let clients = clients(&shared().connect_string(), WANTED.len() + 1).await;
    let holds = take(&clients[0], path, 3, 3).await;
    // A hold is granted before its node leaves the queue. Wait for that, or it would be counted as the first waiter's node.
    has(&operator, path, 0, 3);
    let grants = Arc::new(Mutex::new(Vec::new()));
    let mut waiters = JoinSet::new();
    for (number, wanted) in WANTED.into_iter().enumerate() {
        let lock = semaphore(&clients[number + 1], path, 3, wanted);
        let grants = grants.clone();
        waiters.spawn(async move {
            let hold = lock.acquire().await.unwrap();
            grants.lock().unwrap().push((hold.token(), number));
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            hold.release().await.unwrap();
        });
        operator.wait_for_children(&format!("{path}/locks"), number + 1, SOON);
    }
    // The first wants one, the second three: nobody behind it goes before it, though there are permits.
    for hold in holds {
        soon(hold.release()).await.unwrap();
    }
    soon(waiters.join_all()).await;
    let grants = grants.lock().unwrap();
    // Holders that overlap may record their grants in any order, so sort them by their tokens.
    let mut in_order = grants.clone();
    in_order.sort_unstable();
    assert_eq!(
        in_order.iter().map(|(_, number)| *number).collect::<Vec<_>>(),
        Vec::from_iter(0..WANTED.len())
    );
    let place = |number: usize| grants.iter().position(|(_, other)| *other == number).unwrap();
    for (one, other) in [(0, 1), (1, 2), (1, 3), (4, 5), (5, 6)] {
        assert!(place(one) < place(other), "{other} went before {one}: {grants:?}");
    }
    has(&operator, path, 0, 0);
}
