//! The barrier: as long as it is set, those that come wait.

use crate::async_call::{Answer, AsyncCall, zklock_call};
use crate::call;
use crate::client::{Client, zklock_client};
use crate::convert::patience;
use crate::events::Events;
use crate::failure::Failure;
use crate::handle::{Object, handle};
use crate::raw::{out, text};
use crate::status::zklock_status;
use std::ffi::{c_char, c_int};
use std::sync::Arc;
use zklock_core::{Error, Wait, blocking};

/// A node that exists or not: as long as it exists, zklock_barrier_wait waits. It belongs to
/// nobody, and outlives the process that set it.
#[allow(non_camel_case_types, reason = "the name in C")]
#[derive(Debug)]
pub struct zklock_barrier {
    _opaque: [u8; 0],
}

pub(crate) struct Barrier(blocking::Barrier, Arc<Events>);

handle!(
    Barrier: zklock_barrier,
    8,
    fn inherited(&self) -> Option<Self> {
        (!self.0.core().is_forked()).then(|| Self(self.0.clone(), self.1.clone()))
    }
);

/// Makes the barrier at a path, which is the DistributedBarrier of Curator's there. It costs no
/// request, and sets nothing.
///
/// @param client the client. It may be freed before the barrier.
/// @param path such as "/barriers/migration".
/// @param[out] barrier the barrier. Free it with zklock_barrier_free.
/// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the path is invalid.
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
        let client = Client::table().find(client)?;
        let made = Barrier(client.inner().barrier(path)?, client.events().clone());
        barrier.set(Barrier::table().put(made));
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

/// Sets the barrier. If it is set already, that is not an error.
///
/// @param barrier the barrier.
/// @param[out] changed 1, or 0 if it was set already. It may be NULL.
/// @return ZKLOCK_OK; ZKLOCK_UNREACHABLE if no server answers within the connect timeout: it may be
///         set then; ZKLOCK_REFUSED; ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_barrier_set(
    barrier: *mut zklock_barrier,
    changed: *mut c_int,
) -> zklock_status {
    call::status("zklock_barrier_set", || answer(barrier, changed, blocking::Barrier::set))
}

/// Removes the barrier, so that all waiters go on. If it is not set, that is not an error.
///
/// @param barrier the barrier.
/// @param[out] changed 1, or 0 if it was not set. It may be NULL.
/// @return ZKLOCK_OK; ZKLOCK_UNREACHABLE if no server answers within the connect timeout: it may be
///         removed then; ZKLOCK_REFUSED; ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback.
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
/// @param[out] is_set 1 if it is, 0 if not.
/// @return ZKLOCK_OK; ZKLOCK_UNREACHABLE if no server answers within the connect timeout;
///         ZKLOCK_REFUSED; ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback.
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
/// @param timeout milliseconds: 0 looks once, which takes as long as the try timeout if no server
///        answers; ZKLOCK_FOREVER waits as long as it takes. Otherwise it returns by then, whatever
///        the network does.
/// @return ZKLOCK_OK; ZKLOCK_TIMEOUT if it was set until then; ZKLOCK_UNREACHABLE if there was no
///         connection then, or it looked once and no server answered; ZKLOCK_REFUSED;
///         ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_barrier_wait(barrier: *mut zklock_barrier, timeout: i64) -> zklock_status {
    call::status("zklock_barrier_wait", || {
        Ok(Barrier::table().find(barrier)?.0.wait_within(patience(timeout)?, None)?)
    })
}

/// Begins what zklock_barrier_set does, and returns at once. zklock_call_finish gives 1 or 0.
///
/// @param barrier the barrier. It may be freed before the call.
/// @param[out] call the call. Free it with zklock_call_free.
/// @return ZKLOCK_OK. Other statuses come with the result.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_barrier_set_start(
    barrier: *mut zklock_barrier,
    call: *mut *mut zklock_call,
) -> zklock_status {
    call::status("zklock_barrier_set_start", || {
        begin(barrier, call, Answer::yes, Wait::Forever, |barrier| async move { barrier.set().await })
    })
}

/// Begins what zklock_barrier_remove does, and returns at once. zklock_call_finish gives 1 or 0.
///
/// @param barrier the barrier. It may be freed before the call.
/// @param[out] call the call. Free it with zklock_call_free.
/// @return ZKLOCK_OK. Other statuses come with the result.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_barrier_remove_start(
    barrier: *mut zklock_barrier,
    call: *mut *mut zklock_call,
) -> zklock_status {
    call::status("zklock_barrier_remove_start", || {
        begin(barrier, call, Answer::yes, Wait::Forever, |barrier| async move { barrier.remove().await })
    })
}

/// Begins what zklock_barrier_is_set does, and returns at once. zklock_call_finish gives 1 or 0.
///
/// @param barrier the barrier. It may be freed before the call.
/// @param[out] call the call. Free it with zklock_call_free.
/// @return ZKLOCK_OK. Other statuses come with the result.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_barrier_is_set_start(
    barrier: *mut zklock_barrier,
    call: *mut *mut zklock_call,
) -> zklock_status {
    call::status("zklock_barrier_is_set_start", || {
        begin(barrier, call, Answer::yes, Wait::Forever, |barrier| async move { barrier.is_set().await })
    })
}

/// Begins what zklock_barrier_wait does, and returns at once.
///
/// @param barrier the barrier. It may be freed before the call.
/// @param timeout milliseconds: as zklock_barrier_wait.
/// @param[out] call the call. Free it with zklock_call_free.
/// @return ZKLOCK_OK. Other statuses come with the result.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_barrier_wait_start(
    barrier: *mut zklock_barrier,
    timeout: i64,
    call: *mut *mut zklock_call,
) -> zklock_status {
    call::status("zklock_barrier_wait_start", || {
        let wait = Wait::from(patience(timeout)?);
        begin(
            barrier,
            call,
            Answer::nothing,
            wait,
            move |barrier| async move { barrier.wait_within(wait).await },
        )
    })
}

fn begin<T: Send + 'static, F: Future<Output = Result<T, Error>> + Send + 'static>(
    barrier: *mut zklock_barrier,
    call: *mut *mut zklock_call,
    answer: fn(T) -> Answer,
    connecting: Wait,
    ask: impl FnOnce(Arc<zklock_core::Barrier>) -> F + Send + 'static,
) -> Result<(), Failure> {
    let call = out("call", call)?;
    let barrier = Barrier::table().find(barrier)?;
    let notice = AsyncCall::notice(Some(&barrier.1));
    let begin = |ready| barrier.0.core().start(ready, connecting, ask);
    call.set(AsyncCall::start(&notice, begin, answer)?);
    Ok(())
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
