//! The library's futures, run so that they do no harm: the task that they spawn is caught, and so is a panic.

use crate::base::sync::{Mutex, lock_ignoring_poison};
use crate::zookeeper::ensemble::Pending;
use spawns_core::{Spawn, Task};
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;
use zookeeper_client::Error;

/// Runs the future, and catches the task that it spawns. What servers send during a login can make the library panic, which
/// would end the client.
pub(super) async fn spawning<T>(
    spawned: &Spawned,
    future: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let mut future = pin!(future);
    poll_fn(|context| {
        let _scope = spawns_core::enter(spawned);
        let poll = || catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context)));
        let (polled, found) = zklock_frames::watched(poll);
        if found.is_some() {
            *lock_ignoring_poison(&spawned.breach) = found;
        }
        polled.unwrap_or_else(|_| Poll::Ready(Err(unexpected("the server's answer makes no sense"))))
    })
    .await
}

pub(super) fn unexpected(what: &str) -> Error {
    Error::UnexpectedError(what.to_owned())
}

/// What the library's future leaves behind: the task in which it serves a connection, or a reason why there is none.
#[derive(Default)]
pub(super) struct Spawned {
    task: Mutex<Option<Pending<()>>>,
    breach: Mutex<Option<&'static str>>,
}

impl Spawned {
    pub(super) fn take(&self) -> Option<Pending<()>> {
        lock_ignoring_poison(&self.task).take()
    }

    /// Returns why something that the server sent was not passed on to the library, if so.
    pub(super) fn breach(&self) -> Option<&'static str> {
        *lock_ignoring_poison(&self.breach)
    }
}

impl Spawn for Spawned {
    fn spawn(&self, task: Task) {
        *lock_ignoring_poison(&self.task) = Some(Box::into_pin(task.future));
    }
}
