//! Helpers for semaphores and their two directories.

use crate::support::{SOON, Waiting, soon};
use ground::wire::Admin;
use ground::{Kind, Trigger, shared};
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

/// A waiter at the head of the queue, which waits for permits.
pub(crate) async fn head(path: &str, limit: u32, permits: u32) -> Waiting {
    // The last request of a counting, or the one that sets the watch.
    let waits = Trigger::reply(Kind::Exists).path(format!("{path}/locks")).nth(countings(permits));
    Waiting::new(|client| semaphore(client, path, limit, permits), waits).await
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
