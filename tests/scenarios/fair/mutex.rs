//! Promise 3: grants follow the order of the nodes, and a release wakes the next two waiters, one of them for its turn, never
//! a herd. (How callers of one client share its nodes: `one_node_a_process`.)

use crate::support::{SOON, client, operator, proxied_client, soon};
use ground::{Kind, Proxy, Trigger};
use std::sync::{Arc, Mutex};
use tokio::task::JoinHandle;
use zklock::Client;

/// The grants, in order.
type Grants = Arc<Mutex<Vec<usize>>>;

/// A waiter, behind its own proxy.
struct Waiter {
    _client: Client,
    proxy: Proxy,
    task: JoinHandle<()>,
}

/// `count` waiters behind a holder, in this order, each with its watch.
async fn queue(path: &str, count: usize, grants: &Grants) -> Vec<Waiter> {
    let mut waiters = Vec::new();
    for place in 0..count {
        let (client, proxy) = proxied_client().await;
        let watched = proxy.on(Trigger::reply(Kind::GetData));
        let (lock, grants) = (client.mutex(path).unwrap(), grants.clone());
        let task = tokio::spawn(async move {
            let hold = lock.acquire().await.expect("its turn comes");
            grants.lock().unwrap().push(place);
            hold.release().await.expect("nobody takes it away");
        });
        assert!(watched.wait(SOON));
        proxy.record();
        waiters.push(Waiter { _client: client, proxy, task });
    }
    waiters
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_that_gives_up_wakes_the_one_behind_its_successor_only_and_the_order_stays() {
    let (holder, operator) = (client().await, operator());
    let hold = holder.mutex("/fair/cancel").unwrap().acquire().await.unwrap();
    let grants = Grants::default();
    let mut waiters = queue("/fair/cancel", 5, &grants).await;
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
    assert!(grants.lock().unwrap().is_empty(), "the lock is held");
    hold.release().await.unwrap();
    let mut proxies = Vec::new();
    for Waiter { proxy, task, .. } in waiters {
        soon(task).await.unwrap();
        proxies.push(proxy);
    }
    let heard: Vec<_> = proxies.iter().map(|proxy| proxy.counts().replies(Kind::Event)).collect();
    assert_eq!(*grants.lock().unwrap(), [0, 1, 3, 4]);
    // The last is woken by the one who gave up, and by the two before it, though five nodes were deleted before its own.
    assert!(heard.iter().all(|woken| *woken <= 3), "{heard:?}");
}
