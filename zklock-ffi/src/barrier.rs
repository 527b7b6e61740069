//! The barrier: who comes waits until it is removed.

use crate::call;
use crate::client::{Client, zklock_client};
use crate::convert::patience;
use crate::failure::Failure;
use crate::handle::{Object, handle};
use crate::raw::{out, text};
use crate::status::zklock_status;
use std::ffi::{c_char, c_int};
use zklock_core::{Error, blocking};

/// A node that is there or not: as long as it is there, who comes waits. It belongs to nobody, and outlives whoever
/// set it.
#[allow(non_camel_case_types, reason = "the name in C")]
#[derive(Debug)]
pub struct zklock_barrier {
    _opaque: [u8; 0],
}

pub(crate) struct Barrier(blocking::Barrier);

handle!(Barrier: zklock_barrier, 8);

/// Makes the barrier at a path, which is the DistributedBarrier of Curator's there. It costs no request, and sets
/// nothing.
///
/// @param client the client. It may be freed before the barrier.
/// @param path such as "/barriers/migration".
/// @param[out] barrier the barrier. Free it with zklock_barrier_free.
/// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the path is none; ZKLOCK_INVALID_HANDLE; ZKLOCK_FORKED,
///         ZKLOCK_INTERNAL.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_barrier_new(
    client: *mut zklock_client,
    path: *const c_char,
    barrier: *mut *mut zklock_barrier,
) -> zklock_status {
    call::status("zklock_barrier_new", || {
        let barrier = out("barrier", barrier)?;
        let path = text("path", path)?;
        let made = Client::table().find(client)?.inner().barrier(path)?;
        barrier.set(Barrier::table().put(Barrier(made)));
        Ok(())
    })
}

/// Frees the barrier. Whether it is set is not touched, and waits for it go on.
///
/// @param barrier may be NULL; a handle that was freed before is ignored.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_barrier_free(barrier: *mut zklock_barrier) {
    call::free("zklock_barrier_free", || drop(Barrier::table().take(barrier)));
}

/// Sets the barrier. That it was set already is no mistake.
///
/// @param barrier the barrier.
/// @param[out] changed 1, or 0 if it was set already. It may be NULL.
/// @return ZKLOCK_OK; ZKLOCK_UNREACHABLE if no server answers within the connect timeout: it may be set then;
///         ZKLOCK_REFUSED; ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback; ZKLOCK_INVALID_ARGUMENT,
///         ZKLOCK_INVALID_HANDLE, ZKLOCK_FORKED, ZKLOCK_INTERNAL.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_barrier_set(
    barrier: *mut zklock_barrier,
    changed: *mut c_int,
) -> zklock_status {
    call::status("zklock_barrier_set", || answer(barrier, changed, blocking::Barrier::set))
}

/// Removes the barrier, and whoever waits goes on. That it was not set is no mistake.
///
/// @param barrier the barrier.
/// @param[out] changed 1, or 0 if it was not set. It may be NULL.
/// @return ZKLOCK_OK; ZKLOCK_UNREACHABLE if no server answers within the connect timeout: it may be removed then;
///         ZKLOCK_REFUSED; ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback; ZKLOCK_INVALID_ARGUMENT,
///         ZKLOCK_INVALID_HANDLE, ZKLOCK_FORKED, ZKLOCK_INTERNAL.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_barrier_remove(
    barrier: *mut zklock_barrier,
    changed: *mut c_int,
) -> zklock_status {
    call::status("zklock_barrier_remove", || answer(barrier, changed, blocking::Barrier::remove))
}

/// Whether the barrier is set.
///
/// @param barrier the barrier.
/// @param[out] is_set 1 if it is, else 0.
/// @return ZKLOCK_OK; ZKLOCK_UNREACHABLE if no server answers within the connect timeout; ZKLOCK_REFUSED;
///         ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback; ZKLOCK_INVALID_ARGUMENT, ZKLOCK_INVALID_HANDLE,
///         ZKLOCK_FORKED, ZKLOCK_INTERNAL.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_barrier_is_set(
    barrier: *mut zklock_barrier,
    is_set: *mut c_int,
) -> zklock_status {
    call::status("zklock_barrier_is_set", || {
        out("is_set", is_set)?;
        answer(barrier, is_set, blocking::Barrier::is_set)
    })
}

/// Waits until the barrier is not set.
///
/// @param barrier the barrier.
/// @param timeout milliseconds: 0 looks once, which takes as long as the try timeout where no server answers;
///        ZKLOCK_FOREVER waits as long as it takes. Else it returns by then, whatever the
///        network does.
/// @return ZKLOCK_OK; ZKLOCK_TIMEOUT if it was set until then; ZKLOCK_UNREACHABLE if there was no connection then, or
///         it looked once and no server answered; ZKLOCK_REFUSED; ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback; ZKLOCK_INVALID_ARGUMENT if it is
///         NULL, ZKLOCK_INVALID_HANDLE, ZKLOCK_FORKED, ZKLOCK_INTERNAL.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_barrier_wait(barrier: *mut zklock_barrier, timeout: i64) -> zklock_status {
    call::status("zklock_barrier_wait", || {
        let barrier = Barrier::table().find(barrier)?;
        match patience(timeout)? {
            Some(timeout) => barrier.0.wait_timeout(timeout)?,
            None => barrier.0.wait()?,
        }
        Ok(())
    })
}

fn answer(
    barrier: *mut zklock_barrier,
    answer: *mut c_int,
    ask: impl FnOnce(&blocking::Barrier) -> Result<bool, Error>,
) -> Result<(), Failure> {
    let yes = ask(&Barrier::table().find(barrier)?.0)?;
    if let Ok(answer) = out("answer", answer) {
        answer.set(yes.into());
    }
    Ok(())
}
