//! Telling a holder that others wait.

use crate::call;
use crate::convert::patience;
use crate::failure::Failure;
use crate::handle::{Object, SentHandle};
use crate::hold::{Held, zklock_hold};
use crate::raw::{Context, call_with_news, out};
use crate::status::zklock_status;
use std::ffi::{c_int, c_void};
use zklock_core::HoldState;

/// Is called when others wait for what a hold has.
#[allow(non_camel_case_types, reason = "the name in C")]
pub type zklock_wanted_callback = Option<unsafe extern "C" fn(hold: *mut zklock_hold, context: *mut c_void)>;

/// Whether somebody is known to wait for what this hold has, of whatever process and library: to
/// finish early, or to let the lock go between two pieces of work.
///
///     for (piece = 0; piece < pieces && !is_wanted; piece++) {
///         work_on(piece);
///         if (zklock_hold_is_wanted(hold, &is_wanted) != ZKLOCK_OK) return fail(zklock_last_error());
///     }
///
/// Somebody who has asked for it by zklock_revoke, or by Curator's Revoker, counts as one who
/// waits.
///
/// It does not wait for the servers: the first call of this, or of another that asks for waiters,
/// has the lock's queue listed and the hold's own nodes read, and leaves watches that the next who
/// queues or asks sets off. A hold that never asks costs nothing. Readers do not wait for readers,
/// so they do not count beside one. It is what was seen last: it may stay so though the other has
/// given up. Nobody queues for a lock of zklock_exclusive_new, so there only the waiters of this
/// client are seen, and those who have asked.
///
/// @param hold the hold.
/// @param[out] is_wanted 1 if somebody waits; 0 if not, and if the hold is released or lost.
/// @return ZKLOCK_OK.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_hold_is_wanted(
    hold: *mut zklock_hold,
    is_wanted: *mut c_int,
) -> zklock_status {
    call::status("zklock_hold_is_wanted", || {
        let is_wanted = out("is_wanted", is_wanted)?;
        let held = Held::table().find(hold)?;
        let now = if held.wanted().is_event() { held.watch_wanted()? } else { held.inner().is_wanted() };
        is_wanted.set(now.into());
        Ok(())
    })
}

/// Another descriptor of a hold: readable when others wait for what the hold has, and from then on.
/// Do not read from it, write to it or close it. See zklock_hold_is_wanted.
///
/// @param hold the hold.
/// @param[out] descriptor valid until the hold is freed.
/// @return ZKLOCK_OK; ZKLOCK_REFUSED if the system gives none.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_hold_wanted_fd(
    hold: *mut zklock_hold,
    descriptor: *mut c_int,
) -> zklock_status {
    call::status("zklock_hold_wanted_fd", || {
        let descriptor = out("descriptor", descriptor)?;
        let held = Held::table().find(hold)?;
        let number = held.wanted().descriptor()?;
        held.watch_wanted()?;
        descriptor.set(number);
        Ok(())
    })
}

/// Calls back when others wait for what the hold has: once, on a thread of ours, and not if it is
/// released or lost before. If they wait already, that is told at once. Each call adds a callback.
/// See zklock_hold_is_wanted.
///
/// @param hold the hold.
/// @param callback see "Callbacks" above. It may look at the hold, and free it, which releases it.
/// @param context handed to it. Both must stay until zklock_hold_free returns.
/// @return ZKLOCK_OK; ZKLOCK_REFUSED if the system gives no thread for callbacks.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_hold_on_wanted(
    hold: *mut zklock_hold,
    callback: zklock_wanted_callback,
    context: *mut c_void,
) -> zklock_status {
    call::status("zklock_hold_on_wanted", || {
        let callback = callback.ok_or_else(|| Failure::argument("the callback is NULL"))?;
        let held = Held::table().find(hold)?;
        let (hold, context) = (SentHandle::new(hold), Context(context));
        let call = move |()| call_with_news(callback, hold.get(), context);
        held.tell(call, |hold, tell| hold.on_wanted(|| tell(())))
    })
}

/// Waits until others wait for what the hold has. See zklock_hold_is_wanted.
///
/// @param hold the hold.
/// @param timeout milliseconds; ZKLOCK_FOREVER waits as long as it takes.
/// @return ZKLOCK_OK if somebody waits; ZKLOCK_TIMEOUT if nobody does by then; ZKLOCK_NOT_HELD if
///         the hold is released; ZKLOCK_LOST if it is lost; ZKLOCK_DEADLOCK in a callback.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_hold_wait_wanted(hold: *mut zklock_hold, timeout: i64) -> zklock_status {
    call::status("zklock_hold_wait_wanted", || {
        let held = Held::table().find(hold)?;
        if held.inner().wait_wanted(patience(timeout)?, None)? {
            return Ok(());
        }
        Err(match held.inner().state() {
            HoldState::Lost(why) => {
                let message =
                    format!("the hold of {} is lost: {why}; stop what it guarded", held.inner().path());
                Failure::new(zklock_status::ZKLOCK_LOST, message)
            }
            _ => Failure::new(zklock_status::ZKLOCK_NOT_HELD, "the hold is released"),
        })
    })
}
