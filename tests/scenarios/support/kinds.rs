//! Kinds of locks, for promises that all of them keep in the same way.

use crate::support::SOON;
use crate::support::permits::{countings, has, semaphore};
use ground::wire::Admin;
use ground::{Kind, Trigger};
use zklock_core::{Client, Lock};

/// A kind of lock, or one side of it.
pub(crate) struct LockKind {
    pub(crate) name: &'static str,
    pub(crate) lock: fn(&Client, &str) -> Lock,
    /// A lock that excludes it.
    pub(crate) rival: fn(&Client, &str) -> Lock,
    /// The directories of its nodes, below the path: the queue, and that of the permits.
    pub(crate) places: &'static [&'static str],
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
    waits: |path| Trigger::reply(Kind::GetData).path(path),
    told_at: "",
    has_queued: |operator, path, queued| drop(operator.wait_for_children(path, 1 + queued, SOON)),
};

pub(crate) const READER: LockKind = LockKind {
    name: "reader",
    lock: |client, path| client.read(path).unwrap(),
    rival: |client, path| client.write(path).unwrap(),
    ..MUTEX
};

pub(crate) const WRITER: LockKind = LockKind {
    name: "writer",
    lock: |client, path| client.write(path).unwrap(),
    rival: |client, path| client.read(path).unwrap(),
    ..MUTEX
};

/// All of them exclude one permit.
const LIMIT: u32 = 3;

pub(crate) const PERMIT: LockKind = LockKind {
    name: "permit",
    lock: |client, path| semaphore(client, path, LIMIT, 1),
    rival: |client, path| semaphore(client, path, LIMIT, LIMIT),
    places: &["/locks", "/leases"],
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
