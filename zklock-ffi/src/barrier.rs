//! The barrier: as long as it is set, callers wait.

use crate::client::{Client, zklock_client};
use crate::convert::patience;
use crate::events::Events;
use crate::export::{export, noun};
use crate::failure::Failure;
use crate::handle::Object;
use crate::raw::{out, text};
use crate::started::{Answer, Started, starts};
use crate::status::zklock_status;
use std::ffi::{c_char, c_int};
use std::sync::Arc;
use zklock::Call;

noun! {
    /// A barrier at a path: while its node exists, zklock_barrier_wait waits. The node does not belong
    /// to a client, and outlives the process that set it.
    pub struct zklock_barrier: Barrier, 8;

    /// Frees the handle of a barrier. The barrier itself does not change, and waits for it go on.
    ///
    /// @param barrier may be NULL. A handle that was already freed is ignored.
    pub fn zklock_barrier_free(barrier: *mut zklock_barrier);

    fn inherited(&self) -> Option<Self> {
        (!self.0.is_forked()).then(|| self.clone())
    }
}

#[derive(Clone)]
pub(crate) struct Barrier(zklock::further::Barrier, Arc<Events>);

export! {
    /// Creates the handle of the barrier at a path. This sends no request and does not set the barrier.
    /// The barrier is compatible with Curator's DistributedBarrier.
    ///
    /// @param client the client. You may free it before the barrier.
    /// @param path such as "/barriers/migration".
    /// @param[out] barrier the barrier. Free it with zklock_barrier_free.
    /// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the path is invalid.
    pub fn zklock_barrier_new(
        client: *mut zklock_client,
        path: *const c_char,
        barrier: *mut *mut zklock_barrier,
    ) -> zklock_status {
        let barrier = out("barrier", barrier)?;
        let path = text("path", path)?;
        let client = Client::table().find(client)?;
        let made = Barrier(client.inner().barrier(path)?, client.events().clone());
        barrier.set(Barrier::table().put(made));
    }

    /// Sets the barrier, and waits for the servers' answer. It is not an error if the barrier is
    /// already set.
    ///
    /// @param barrier the barrier.
    /// @param[out] changed 1, or 0 if the barrier was already set. It may be NULL.
    /// @return ZKLOCK_OK; ZKLOCK_UNREACHABLE if no server answers within the connect timeout, in which
    ///         case the barrier may be set or not; ZKLOCK_REFUSED; ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a
    ///         callback.
    pub fn zklock_barrier_set(barrier: *mut zklock_barrier, changed: *mut c_int) -> zklock_status {
        answer(changed, Barrier::table().find(barrier)?.0.set())?;
    }

    /// Removes the barrier, so that all waiters go on, and waits for the servers' answer. It is not an
    /// error if the barrier is not set.
    ///
    /// @param barrier the barrier.
    /// @param[out] changed 1, or 0 if the barrier was not set. It may be NULL.
    /// @return ZKLOCK_OK; ZKLOCK_UNREACHABLE if no server answers within the connect timeout, in which
    ///         case the barrier may be removed or not; ZKLOCK_REFUSED; ZKLOCK_CLOSED; ZKLOCK_DEADLOCK
    ///         in a callback.
    pub fn zklock_barrier_remove(barrier: *mut zklock_barrier, changed: *mut c_int) -> zklock_status {
        answer(changed, Barrier::table().find(barrier)?.0.remove())?;
    }

    /// Waits until the barrier is not set. With a timeout of 0, it says whether the barrier is set.
    ///
    /// @param barrier the barrier.
    /// @param timeout in milliseconds. 0 checks once, and takes the try timeout if no server answers.
    ///         ZKLOCK_FOREVER waits as long as it takes. With any other timeout the call returns in
    ///         time, whatever the network does.
    /// @return ZKLOCK_OK; ZKLOCK_TIMEOUT if the barrier was set for all that time; ZKLOCK_UNREACHABLE
    ///         if there was no connection in the end, or no server answered a single check;
    ///         ZKLOCK_REFUSED; ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback.
    pub fn zklock_barrier_wait(barrier: *mut zklock_barrier, timeout: i64) -> zklock_status {
        Barrier::table().find(barrier)?.0.wait_within(patience(timeout)?).wait()?;
    }
}

starts! {
    /// Starts to set the barrier as zklock_barrier_set does, and returns at once. zklock_call_finish
    /// gives `changed` as its number.
    ///
    /// @param barrier the barrier. You may free it before the call.
    pub fn zklock_barrier_set_start(barrier: *mut zklock_barrier) {
        let barrier = Barrier::table().find(barrier)?;
        Started::keep(barrier.0.set(), &barrier.1, Answer::yes)
    }

    /// Starts to remove the barrier as zklock_barrier_remove does, and returns at once.
    /// zklock_call_finish gives `changed` as its number.
    ///
    /// @param barrier the barrier. You may free it before the call.
    pub fn zklock_barrier_remove_start(barrier: *mut zklock_barrier) {
        let barrier = Barrier::table().find(barrier)?;
        Started::keep(barrier.0.remove(), &barrier.1, Answer::yes)
    }

    /// Starts to wait for the barrier as zklock_barrier_wait does, and returns at once.
    ///
    /// @param barrier the barrier. You may free it before the call.
    /// @param timeout in milliseconds, as for zklock_barrier_wait.
    pub fn zklock_barrier_wait_start(barrier: *mut zklock_barrier, timeout: i64) {
        let barrier = Barrier::table().find(barrier)?;
        Started::keep(barrier.0.wait_within(patience(timeout)?), &barrier.1, Answer::nothing)
    }
}

fn answer(answer: *mut c_int, call: Call<bool>) -> Result<(), Failure> {
    let yes = call.wait()?;
    if let Ok(answer) = out("answer", answer) {
        answer.set(yes.into());
    }
    Ok(())
}
