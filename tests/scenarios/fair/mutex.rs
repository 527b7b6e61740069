//! Promise 3: grants follow the order of the nodes, and a release wakes the next two waiters, one of them for its turn, never
//! a herd. (How callers of one client share its nodes: `one_node_a_process`.)

use crate::support::figures::{fired, watched};
use crate::support::register::{PATIENT, patient_clients};
use crate::support::{SOON, client, operator, proxied_client, soon};
use ground::wire::Admin;
use ground::{Ensemble, Kind, Proxy, Trigger, until};
use std::sync::{Arc, Mutex};
use tokio::task::{JoinHandle, JoinSet};
use zklock::further::Foreign;
use zklock::{Client, Lock, LockSpec};

/// The grants, in order.
type Grants<T> = Arc<Mutex<Vec<T>>>;

/// Waits, notes its grant, and releases.
fn wait_in_line<T: Send + 'static>(
    lock: Lock,
    grants: &Grants<T>,
    note: impl FnOnce(&str) -> T + Send + 'static,
) -> JoinHandle<()> {
    let grants = grants.clone();
    tokio::spawn(async move {
        let hold = lock.acquire().await.expect("its turn comes");
        grants.lock().unwrap().push(note(hold.node()));
        hold.release().await.expect("nobody takes it away");
    })
}

fn sequence(node: &str) -> u64 {
    node[node.len() - 10..].parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_wakes_two_of_five_hundred_waiters_and_each_has_its_turn() {
    const WAITERS: usize = 500;
    // A server of its own: the figures are those of the whole server.
    let ensemble = Ensemble::builder().max_session_timeout(PATIENT).start();
    let server = ensemble.server(0);
    let operator = Admin::connect(server.address());
    let clients = patient_clients(&ensemble.connect_string(), WAITERS + 1).await;
    let (holder, waiting) = clients.split_first().unwrap();
    // The holder does not watch for strangers: only the waiters' watches are counted.
    let careless = LockSpec::mutex("/fair/500").unwrap().foreign(Foreign::IgnoreUnknown);
    let hold = holder.lock(&careless).unwrap().acquire().await.unwrap();
    let first = sequence(hold.node());
    let grants = Grants::default();
    let mut waiters = JoinSet::new();
    for client in waiting {
        waiters.spawn(wait_in_line(client.mutex("/fair/500").unwrap(), &grants, sequence));
    }
    // On a busy machine so many at once are slow, and some may even have to reconnect.
    let queued = || operator.stat("/fair/500").map_or(0, |stat| stat.num_children as usize);
    assert!(until(SOON * 4, || queued() == WAITERS + 1), "{} are in the queue", queued());
    assert!(until(SOON * 4, || watched(server) == WAITERS), "{} watches", watched(server));
    assert_eq!(fired(server), 0, "somebody was woken before the release");

    hold.release().await.unwrap();
    tokio::time::timeout(SOON * 4, waiters.join_all()).await.expect("everybody has a turn");
    let notifications = fired(server);
    assert_eq!(server.mntr()["zk_max_node_deleted_watch_count"], "2", "notifications of one release");
    // A waiter whose turn comes before it has set its next watch is notified of one release only.
    assert!((WAITERS as u64..2 * WAITERS as u64).contains(&notifications), "{notifications} notifications");
    let expected: Vec<_> = (first + 1..=first + WAITERS as u64).collect();
    assert_eq!(*grants.lock().unwrap(), expected);
}

/// A waiter, behind its own proxy.
struct Waiter {
    _client: Client,
    proxy: Proxy,
    task: JoinHandle<()>,
}

/// `count` waiters behind a holder, in this order, each with its watch.
async fn queue(path: &str, count: usize, grants: &Grants<usize>) -> Vec<Waiter> {
    let mut waiters = Vec::new();
    for place in 0..count {
        let (client, proxy) = proxied_client().await;
        let watched = proxy.on(Trigger::reply(Kind::GetData));
        let task = wait_in_line(client.mutex(path).unwrap(), grants, move |_| place);
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
    for waiter in waiters {
        soon(waiter.task).await.unwrap();
    }
    assert_eq!(*grants.lock().unwrap(), [0, 1, 3, 4]);
}
