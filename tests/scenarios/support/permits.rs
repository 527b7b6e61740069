//! Helpers for semaphores and their two directories.

use crate::support::{SOON, proxied_client, soon};
use ground::wire::Admin;
use ground::{Kind, Proxy, Trigger, shared};
use tokio::task::JoinHandle;
use zklock::{Client, Hold, Lock, LockSpec};

pub(crate) fn semaphore(client: &Client, path: &str, limit: u32, permits: u32) -> Lock {
    client.lock(&LockSpec::semaphore(path, limit).unwrap().permits(permits)).unwrap()
}

/// Holds of one permit each, acquired one after the other, the oldest first.
pub(crate) async fn take(client: &Client, path: &str, limit: u32, count: usize) -> Vec<Hold> {
    let mut holds = Vec::new();
    for _ in 0..count {
        holds.push(soon(semaphore(client, path, limit, 1).acquire()).await.unwrap());
    }
    holds
}

/// A waiter behind its own proxy.
pub(crate) struct Waiter {
    pub(crate) client: Client,
    pub(crate) proxy: Proxy,
    pub(crate) task: JoinHandle<Hold>,
}

impl Waiter {
    /// At the head of the queue it waits for permits; behind the head, it waits for the contender ahead of it.
    pub(crate) async fn new(path: &str, is_head: bool, limit: u32, permits: u32) -> Self {
        let (client, proxy) = proxied_client().await;
        let lock = semaphore(&client, path, limit, permits);
        let locks = format!("{path}/locks");
        // The last request of a counting, or the one that sets the watch.
        let waits = if is_head {
            Trigger::reply(Kind::Exists).path(locks).nth(countings(permits))
        } else {
            Trigger::reply(Kind::GetData).path(locks)
        };
        let waits = proxy.on(waits);
        let task = tokio::spawn(async move {
            let hold = lock.acquire().await.unwrap();
            // Check it here, before anything else can run.
            assert!(!hold.valid_for().is_zero(), "a dead hold was delivered: {hold:?}");
            hold
        });
        assert!(waits.wait(SOON), "it does not wait: {path}");
        proxy.record();
        Self { client, proxy, task }
    }

    /// How often it was woken since it began to wait.
    pub(crate) fn woken(&self) -> usize {
        self.proxy.counts().replies(Kind::Event)
    }

    /// The hold, with its client and proxy.
    pub(crate) async fn granted(self) -> (Hold, (Client, Proxy)) {
        (soon(self.task).await.unwrap(), (self.client, self.proxy))
    }
}

/// How often the head counts the permits before it waits. Servers before 3.7.2, and those of 3.8 before 3.8.2, do not report
/// what a transaction has created, so the head reads that and counts once more.
pub(crate) fn countings(permits: u32) -> usize {
    let figures = shared().server(0).mntr();
    let version = figures.get("zk_version").expect("the server says its version");
    let numbers = version.split(['.', '-', ',']).take(3).map(|number| number.parse().expect("a version"));
    let version = numbers.collect::<Vec<u32>>();
    let since = if version < vec![3, 8] { vec![3, 7, 2] } else { vec![3, 8, 2] };
    let is_told = permits == 1 || version >= since;
    if is_told { 1 } else { 2 }
}

/// Waits until the queue and the permits have these numbers of nodes.
#[track_caller]
pub(crate) fn has(operator: &Admin, path: &str, queued: usize, taken: usize) {
    operator.wait_for_children(&format!("{path}/locks"), queued, SOON);
    operator.wait_for_children(&format!("{path}/leases"), taken, SOON);
}
