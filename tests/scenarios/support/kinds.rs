//! Kinds of locks, for promises that all of them keep in the same way.

use crate::support::SOON;
use crate::support::permits::{countings, has, semaphore};
use ground::wire::Admin;
use ground::{Kind, Trigger};
use zklock::{Client, Lock};

/// A test of each of these promises for each of these kinds.
macro_rules! of_each {
    ($(#[$runtime:meta] $promise:ident: $body:ident($($kind:ident),+);)+) => {
        $(mod $promise {
            $(#[$runtime]
            #[expect(non_snake_case, reason = "each is called as its kind")]
            async fn $kind() {
                super::$body(&super::$kind).await;
            })+
        })+
    };
}
pub(crate) use of_each;

/// A kind of lock, or one side of it.
pub(crate) struct LockKind {
    pub(crate) name: &'static str,
    pub(crate) lock: fn(&Client, &str) -> Lock,
    /// A lock that excludes it.
    pub(crate) rival: fn(&Client, &str) -> Lock,
    /// The directories of its nodes, below the path: the queue, and that of the permits.
    pub(crate) places: &'static [&'static str],
    /// The request that creates its first node, and the directory of that.
    pub(crate) enters: (Kind, &'static str),
    /// The reply that begins the wait for a rival.
    pub(crate) waits: fn(&str) -> Trigger,
    /// The directory whose event ends the wait, below the path.
    pub(crate) told_at: &'static str,
    /// Waits until a rival holds, and this number of others wait.
    pub(crate) has_queued: fn(&Admin, &str, usize),
}

impl LockKind {
    /// Waits until nothing is left of it.
    #[track_caller]
    pub(crate) fn is_gone(&self, operator: &Admin, path: &str) {
        for place in self.places {
            operator.wait_for_children(&format!("{path}{place}"), 0, SOON);
        }
    }
}

pub(crate) const MUTEX: LockKind = LockKind {
    name: "mutex",
    lock: |client, path| client.mutex(path).unwrap(),
    rival: |client, path| client.mutex(path).unwrap(),
    places: &[""],
    enters: (Kind::Create, ""),
    waits: |path| Trigger::reply(Kind::GetData).path(path),
    told_at: "",
    has_queued: |operator, path, queued| drop(operator.wait_for_children(path, 1 + queued, SOON)),
};

pub(crate) const READER: LockKind = LockKind {
    name: "reader",
    lock: |client, path| client.read_lock(path).unwrap(),
    rival: |client, path| client.write_lock(path).unwrap(),
    ..MUTEX
};

pub(crate) const WRITER: LockKind = LockKind {
    name: "writer",
    lock: |client, path| client.write_lock(path).unwrap(),
    rival: |client, path| client.read_lock(path).unwrap(),
    ..MUTEX
};

/// It has no queue, but its node has a companion.
pub(crate) const SINGLE_NODE: LockKind = LockKind {
    name: "single-node",
    lock: |client, path| client.single_node(path).unwrap(),
    rival: |client, path| client.single_node(path).unwrap(),
    enters: (Kind::Multi, ""),
    waits: |path| Trigger::reply(Kind::GetChildren).path(path),
    has_queued: |operator, path, _| drop(operator.wait_for_children(path, 2, SOON)),
    ..MUTEX
};

pub(crate) const ELECTION: LockKind = LockKind {
    name: "election",
    lock: |client, path| client.election(path).unwrap(),
    rival: |client, path| client.election(path).unwrap(),
    ..MUTEX
};

/// A set whose second lock is held.
pub(crate) const SET: LockKind = LockKind {
    name: "set",
    lock: |client, path| {
        let [mutex, read] = [client.mutex(&format!("{path}/a")), client.read_lock(&format!("{path}/b"))];
        client.all(&[mutex.unwrap(), read.unwrap()]).unwrap()
    },
    rival: |client, path| client.write_lock(&format!("{path}/b")).unwrap(),
    places: &["/a", "/b"],
    enters: (Kind::Multi, "/a"),
    waits: |path| Trigger::reply(Kind::GetData).path(format!("{path}/b")),
    told_at: "/b",
    ..MUTEX
};

/// All of them exclude one permit.
const LIMIT: u32 = 3;

pub(crate) const PERMIT: LockKind = LockKind {
    name: "permit",
    lock: |client, path| semaphore(client, path, LIMIT, 1),
    rival: |client, path| semaphore(client, path, LIMIT, LIMIT),
    places: &["/locks", "/leases"],
    enters: (Kind::Create, "/locks"),
    waits: |path| waits_for_permits(path, 1),
    told_at: "/leases",
    // The waiter is at the head of the queue, and has created the nodes of its permits.
    has_queued: |operator, path, queued| has(operator, path, queued, 3 + queued),
};

pub(crate) const PERMITS: LockKind = LockKind {
    name: "permits",
    lock: |client, path| semaphore(client, path, LIMIT, LIMIT),
    waits: |path| waits_for_permits(path, LIMIT),
    has_queued: |operator, path, queued| has(operator, path, queued, 3 + 3 * queued),
    ..PERMIT
};

fn waits_for_permits(path: &str, permits: u32) -> Trigger {
    Trigger::reply(Kind::Exists).path(format!("{path}/locks")).nth(countings(permits))
}
