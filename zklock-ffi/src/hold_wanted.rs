//! Reporting to a holder that others wait.

use crate::convert::patience;
use crate::export::export;
use crate::failure::Failure;
use crate::handle::Object;
use crate::hold::{Held, zklock_hold};
use crate::status::zklock_status;
use std::ffi::c_int;
use zklock::HoldState;

export! {
    /// Says whether others are known to be waiting for what this hold has, in any process and with any
    /// library. Use it to finish early, or to release the lock between two pieces of work.
    ///
    ///     for (piece = 0; piece < pieces && !zklock_hold_is_wanted(hold); piece++) work_on(piece);
    ///
    /// A request by zklock_request_release, or by Curator's Revoker, counts as a waiter.
    ///
    /// This function never waits for the servers. The first call of this function or of
    /// zklock_hold_wait_wanted for a hold starts to list the lock's queue and to read the hold's own nodes
    /// in the background. It leaves watches, which the next contender or request triggers. A hold that is
    /// never asked costs nothing.
    ///
    /// In an event loop, call this function once for each hold. If the client queues events,
    /// ZKLOCK_EVENT_WANTED comes when others wait. Without a loop, call zklock_hold_wait_wanted on a
    /// thread.
    ///
    /// The answer is the state that was seen last, so it may still be 1 after the other contender has
    /// given up. Readers do not wait for readers, so other readers do not make a hold of the read
    /// side wanted. A lock of zklock_single_node_new has no queue: there, only waiters of this client
    /// and requests to release are seen.
    ///
    /// @param hold the hold.
    /// @return 1 if others wait; 0 if none do, if the hold is released or lost, or if the handle is wrong.
    pub fn zklock_hold_is_wanted(hold: *mut zklock_hold) -> c_int {
        let held = Held::table().find(hold)?;
        let now = if held.wanted().is_event() { held.watch_wanted()? } else { held.inner().is_wanted() };
        now.into()
    }

    /// Waits until others wait for what a hold has. See zklock_hold_is_wanted.
    ///
    /// @param hold the hold.
    /// @param timeout in milliseconds. ZKLOCK_FOREVER waits as long as it takes.
    /// @return ZKLOCK_OK if others wait; ZKLOCK_TIMEOUT if none do in that time; ZKLOCK_NOT_HELD if
    ///         the hold is released; ZKLOCK_LOST if it is lost; ZKLOCK_DEADLOCK in a callback.
    pub fn zklock_hold_wait_wanted(hold: *mut zklock_hold, timeout: i64) -> zklock_status {
        let held = Held::table().find(hold)?;
        if !held.inner().wanted().within(patience(timeout)?).wait()? {
            return Err(ended(held.inner()));
        }
    }
}

/// Returns why nobody wants a hold any more.
fn ended(hold: &zklock::Hold) -> Failure {
    match hold.state() {
        HoldState::Lost(why) => {
            let message =
                format!("the hold of {} is lost: {why}; stop the work that it guarded", hold.path());
            Failure::new(zklock_status::ZKLOCK_LOST, message)
        }
        _ => Failure::new(zklock_status::ZKLOCK_NOT_HELD, "the hold is released"),
    }
}
