//! The library's futures, run so that they do no harm: the task that they spawn is caught, and so is a panic.

use crate::base::sync::lock_ignoring_poison;
use crate::zookeeper::ensemble::Pending;
use spawns_core::{Spawn, Task};
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Mutex;
use std::task::Poll;
use zookeeper_client::Error;

/// Why there is no connection.
pub(super) enum Failed {
    /// The server sent something that was not passed on to the library, for this reason.
    Breach(&'static str),
    Library(Error),
}

/// Runs the future, and catches the task that it spawns. What servers send during a login can make the library panic, which
/// would end the client.
pub(super) async fn spawning<T>(
    spawned: &Spawned,
    future: impl Future<Output = Result<T, Error>>,
) -> Result<T, Failed> {
    let mut future = pin!(future);
    let mut breach = None;
    poll_fn(|context| {
        let _scope = spawns_core::enter(spawned);
        let poll = || catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context)));
        let (polled, found) = zklock_frames::watched(poll);
        breach = found.or(breach);
        let polled = polled.map(|polled| polled.map_err(Failed::Library));
        match (polled, breach) {
            // The library has lost its connection to the only host that it was given.
            (Ok(Poll::Ready(Err(Failed::Library(Error::NoHosts)))), Some(breach)) => {
                Poll::Ready(Err(Failed::Breach(breach)))
            }
            (Ok(polled), _) => polled,
            (Err(_), _) => Poll::Ready(Err(unexpected("the server's answer makes no sense"))),
        }
    })
    .await
}

pub(super) fn unexpected(what: &str) -> Failed {
    Failed::Library(Error::UnexpectedError(what.to_owned()))
}

/// The task in which the library serves a connection.
#[derive(Default)]
pub(super) struct Spawned(Mutex<Option<Pending<()>>>);

impl Spawned {
    pub(super) fn take(&self) -> Option<Pending<()>> {
        lock_ignoring_poison(&self.0).take()
    }
}

impl Spawn for Spawned {
    fn spawn(&self, task: Task) {
        *lock_ignoring_poison(&self.0) = Some(Box::into_pin(task.future));
    }
}
