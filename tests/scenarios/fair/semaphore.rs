//! Promise 3: permits go to the head of the queue. It notices every permit that is returned, and nobody else is woken by
//! that. A grant, with which the head leaves the queue, wakes the next two.

use crate::support::permits::{Waiter, has, semaphore, take};
use crate::support::register::clients;
use crate::support::{SOON, client, operator, soon};
use ground::{Kind, Side, Trigger, shared};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use tokio::task::JoinSet;
use zklock_core::{Error, Hold, Lock};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whichever_permit_returns_goes_to_the_head() {
    let (client, operator) = (client().await, operator());
    // The newest, the one in the middle, the oldest.
    for returned in [2, 1, 0] {
        let path = format!("/semaphore/returned-{returned}");
        let mut holds = take(&client, &path, 3, 3).await;
        let head = Waiter::new(&path, true, 3, 1).await;
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
async fn only_the_head_hears_of_a_permit_that_returns_and_only_the_next_two_of_its_grant() {
    let (client, operator, path) = (client().await, operator(), "/semaphore/heard");
    let mut holds = take(&client, path, 4, 4).await;
    let mut queue = VecDeque::new();
    for number in 0..5 {
        queue.push_back(Waiter::new(path, number == 0, 4, 1).await);
    }
    has(&operator, path, 5, 5);
    let mut clients = Vec::new();
    // Whichever of the held permits is returned.
    for (round, place) in [3, 0, 1].into_iter().enumerate() {
        let becomes_head = queue[1].proxy.on(Trigger::reply(Kind::Exists).path(path));
        let gets_ready = queue[2].proxy.on(Trigger::reply(Kind::GetData));
        soon(holds.remove(place).release()).await.unwrap();
        let head = queue.pop_front().unwrap();
        assert!(becomes_head.wait(SOON), "the next does not become the head");
        assert!(gets_ready.wait(SOON), "the one behind it does not watch it");
        let woken: Vec<_> = queue.iter().map(Waiter::woken).collect();
        // The first of them was ready from the beginning.
        let expected = [&[1 + usize::from(round > 0), 1][..], &vec![0; queue.len() - 2]].concat();
        assert_eq!(woken, expected, "the new head and the next, and nobody behind them");
        // Only the head has looked at the permits.
        for (number, waiter) in queue.iter().enumerate() {
            let record = waiter.proxy.messages();
            let looks = record.iter().filter(|it| it.side == Side::Request && it.kind == Kind::GetChildren);
            let looks = looks.filter(|it| it.path.ends_with("/leases")).count();
            assert_eq!(looks, usize::from(number == 0));
        }
        let (hold, client) = head.granted().await;
        clients.push(client);
        holds.insert(0, hold);
    }
    drop(holds);
    for waiter in queue {
        drop(waiter.granted().await);
    }
    has(&operator, path, 0, 0);
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiters_of_one_client_stand_in_one_line_and_all_get_their_permits() {
    let (client, operator, path) = (client().await, operator(), "/semaphore/line");
    let holds = take(&client, path, 2, 2).await;
    let mut waiters = JoinSet::new();
    for _ in 0..50 {
        let lock = semaphore(&client, path, 2, 1);
        waiters.spawn(async move { lock.acquire().await.unwrap().release().await.unwrap() });
    }
    has(&operator, path, 1, 3);
    assert_eq!(operator.children(&format!("{path}/locks")).len(), 1, "one of a process at a time");
    drop(holds);
    soon(waiters.join_all()).await;
    has(&operator, path, 0, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_gives_up_leaves_its_place_and_its_permit_to_the_next_of_its_client() {
    let (holder, client, operator) = (client().await, client().await, operator());
    let path = "/semaphore/handed-on";
    let hold = take(&holder, path, 1, 1).await.remove(0);
    let quitter = Waiting::join(&semaphore(&client, path, 1, 1)).await;
    has(&operator, path, 1, 2);
    let behind = Waiting::join(&semaphore(&client, path, 1, 1)).await;
    let later = Waiter::new(path, false, 1, 1).await;
    has(&operator, path, 2, 2);
    let queue = operator.children(&format!("{path}/locks"));
    let permits = operator.children(&format!("{path}/leases"));
    drop(quitter);
    soon(hold.release()).await.unwrap();
    let behind = soon(behind.0).await.unwrap();
    assert!(!later.task.is_finished(), "one that came later was granted before");
    assert!(
        permits.iter().any(|permit| behind.node().ends_with(permit)),
        "{behind:?} is none of {permits:?}"
    );
    // The new holder leaves the queue, so the later waiter becomes its head.
    has(&operator, path, 1, 2);
    assert!(queue.contains(&operator.children(&format!("{path}/locks"))[0]));
    soon(behind.release()).await.unwrap();
    drop(later.granted().await);
    has(&operator, path, 0, 0);
}

/// A call that waits in its client's local queue.
struct Waiting(std::pin::Pin<Box<dyn Future<Output = Result<Hold, Error>> + Send>>);

impl Waiting {
    async fn join(lock: &Lock) -> Self {
        let lock = lock.clone();
        let mut call: std::pin::Pin<Box<dyn Future<Output = _> + Send>> =
            Box::pin(async move { lock.acquire().await });
        tokio::select! {
            biased;
            early = &mut call => panic!("there is no permit: {early:?}"),
            () = std::future::ready(()) => Self(call),
        }
    }
}
