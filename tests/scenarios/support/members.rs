//! Members of double barriers, and checks for any of them.

use crate::support::{SOON, client, soon};
use ground::wire::Admin;
use ground::{Hook, Kind, Proxy, Trigger};
use std::time::Duration;
use tokio::task::JoinHandle;
use zklock::further::{DoubleBarrier, Member};
use zklock::{Client, Error};

pub(crate) fn barrier(client: &Client, path: &str, members: u32) -> DoubleBarrier {
    client.double_barrier(path, members).unwrap()
}

pub(crate) fn enters(client: &Client, path: &str, members: u32) -> JoinHandle<Result<Member, Error>> {
    let barrier = barrier(client, path, members);
    tokio::spawn(async move { barrier.enter().await })
}

pub(crate) fn leaves(member: Member) -> JoinHandle<Result<(), Error>> {
    tokio::spawn(async move { member.leave().await })
}

/// Gives everybody the time to pass, before the test says that this one does not.
pub(crate) async fn still_waits<T>(task: &JoinHandle<T>) {
    tokio::time::sleep(Duration::from_millis(150)).await;
    assert!(!task.is_finished());
}

/// A hook that fires when the member, whose client is behind this proxy, has begun to wait for the other to leave.
pub(crate) fn waits_to_leave(proxy: &Proxy, member: &Member, other: &Member) -> Hook {
    proxy.on(looks_at(Trigger::reply(Kind::GetData), member, other))
}

/// The same moment, of a read.
pub(crate) fn looks_at(read: Trigger, member: &Member, other: &Member) -> Trigger {
    // The member with the first name keeps its node. The other deletes its own, after it has read all nodes.
    let nth = if member.node() < other.node() { 1 } else { 2 };
    read.nth(nth).path(other.node())
}

/// This number of members, within the barrier, each with its own client.
pub(crate) async fn within(path: &str, members: u32) -> Vec<(Member, Client)> {
    let mut coming = Vec::new();
    for _ in 0..members {
        let client = client().await;
        coming.push((enters(&client, path, members), client));
    }
    let mut within = Vec::new();
    for (member, client) in coming {
        within.push((soon(member).await.unwrap().unwrap(), client));
    }
    within.sort_by(|(one, _), (other, _)| one.node().cmp(other.node()));
    within
}

/// Waits until this number of members are there, not counting `ready`.
#[track_caller]
pub(crate) fn there(operator: &Admin, path: &str, members: usize) -> Vec<String> {
    let mut seen = Vec::new();
    let fine = ground::until(SOON, || {
        seen = operator.children_or_empty(path);
        seen.retain(|child| child != "ready");
        seen.len() == members
    });
    assert!(fine, "{path} should have {members} members, and has {seen:?}");
    seen
}

/// Waits until nobody is left, nor anything that would let the next member in.
#[track_caller]
pub(crate) fn is_empty(operator: &Admin, path: &str) {
    operator.wait_for_children(path, 0, SOON);
}

pub(crate) fn is_open(operator: &Admin, path: &str) -> bool {
    operator.stat(&format!("{path}/ready")).is_some()
}
