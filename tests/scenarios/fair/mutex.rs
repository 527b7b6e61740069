//! Promise 3: grants follow the order of the nodes, and a release wakes the next two waiters, one of them for its turn, never
//! a herd. (How callers of one client share its nodes: `one_node_a_process`.)

use crate::support::{SOON, Waiting, client, operator, soon};
use ground::{Kind, Trigger};
use zklock::Client;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_that_gives_up_wakes_the_one_behind_its_successor_only_and_the_order_stays() {
    let (holder, operator) = (client().await, operator());
    let hold = holder.mutex("/fair/cancel").unwrap().acquire().await.unwrap();
    let mut waiters = Vec::new();
    for _ in 0..5 {
        let lock = |client: &Client| client.mutex("/fair/cancel").unwrap();
        waiters.push(Waiting::new(lock, Trigger::reply(Kind::GetData)).await);
    }
    let rewatched = waiters[4].proxy.on(Trigger::reply(Kind::GetData).nth(2));
    let quitter = waiters.remove(2);
    quitter.task.abort();
    assert!(rewatched.wait(SOON), "it looks for whom to wait now");
    operator.wait_for_children("/fair/cancel", 5, SOON);
    let heard: Vec<_> = waiters.iter().map(|waiter| waiter.proxy.counts()).collect();
    for (at, counts) in heard.iter().enumerate() {
        if at == 3 {
            assert_eq!(counts.replies(Kind::Event), 1);
            // Its new neighbour has others ahead of it, so it moves its watch to the second node ahead.
            let unwatches = Kind::Other(18);
            assert_eq!(counts.asked, [Kind::GetChildren, Kind::GetData, unwatches, Kind::GetData]);
        } else {
            assert_eq!((counts.requests(Kind::Any), counts.replies(Kind::Any)), (0, 0), "waiter {at}");
        }
    }
    assert!(waiters.iter().all(|waiter| !waiter.task.is_finished()), "the lock is held");
    hold.release().await.unwrap();
    for number in 0..waiters.len() {
        let hold = soon(&mut waiters[number].task).await.unwrap().unwrap();
        assert!(waiters[number + 1..].iter().all(|waiter| !waiter.task.is_finished()), "{number} holds");
        hold.release().await.expect("nobody takes it away");
    }
    // The last is woken by the one who gave up, and by the two before it, though five nodes were deleted before its own.
    let heard: Vec<_> = waiters.iter().map(Waiting::woken).collect();
    assert!(heard.iter().all(|woken| *woken <= 3), "{heard:?}");
}
