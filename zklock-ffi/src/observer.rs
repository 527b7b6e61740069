//! Reports who holds a lock.

use crate::call;
use crate::contenders::{Shown, shown, zklock_contender};
use crate::convert::patience;
use crate::failure::Failure;
use crate::handle::{Object, handle};
use crate::lock::{Lock, zklock_lock};
use crate::raw::out;
use crate::readiness::Readiness;
use crate::status::zklock_status::{self, ZKLOCK_TIMEOUT};
use std::ffi::c_int;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use zklock_core::blocking::{self, Started};
use zklock_core::{Error, ErrorKind, QueuedContender, Wait};

/// Reports who holds a lock, without taking part in it.
#[allow(non_camel_case_types, reason = "the name in C")]
#[derive(Debug)]
pub struct zklock_observer {
    _opaque: [u8; 0],
}

pub(crate) struct Observer {
    inner: blocking::Observer,
    watching: Mutex<Watching>,
}

#[derive(Default)]
struct Watching {
    /// A call for the next holder, made while nobody waits for it.
    call: Option<Started<Option<QueuedContender>>>,
    /// Raised when the call has an answer.
    ready: Arc<Readiness>,
    /// The descriptor is in use, so there is always a call.
    has_descriptor: bool,
    /// The holder that was reported last. C has pointers to it.
    told: Option<Box<Shown>>,
}

handle!(Observer: zklock_observer, 7);

impl Observer {
    fn watching(&self) -> MutexGuard<'_, Watching> {
        self.watching.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the next holder, if it is already known.
    fn fetch(&self) -> Result<Option<QueuedContender>, Failure> {
        let mut watching = self.watching();
        watching.look_ahead(&self.inner)?;
        // Lowered before the check, so that a later answer raises it again.
        watching.ready.lower();
        let Some(answer) = watching.call.as_ref().and_then(Started::fetch) else {
            return Err(Failure::new(ZKLOCK_TIMEOUT, "nothing has changed yet"));
        };
        watching.call = None;
        watching.look_ahead_for_descriptor(&self.inner)?;
        Ok(answer?)
    }

    /// Waits for the next holder.
    fn wait(&self, timeout: i64) -> Result<Option<QueuedContender>, Failure> {
        let patience = patience(timeout)?;
        let known = self.watching().call.take().as_ref().and_then(last_answer);
        let answer = known.unwrap_or_else(|| self.inner.next(patience));
        self.watching().look_ahead_for_descriptor(&self.inner)?;
        Ok(answer?)
    }
}

impl Watching {
    /// Starts to fetch the next answer in the background, unless that is already running.
    fn look_ahead(&mut self, observer: &blocking::Observer) -> Result<(), Failure> {
        if self.call.is_none() {
            let ready = Arc::downgrade(&self.ready);
            let raise = move || {
                if let Some(ready) = ready.upgrade() {
                    ready.raise();
                }
            };
            self.call = Some(observer.next_call(Wait::Forever).detach(raise)?);
        }
        Ok(())
    }

    fn look_ahead_for_descriptor(&mut self, observer: &blocking::Observer) -> Result<(), Failure> {
        if !self.has_descriptor || self.call.is_some() {
            return Ok(());
        }
        self.ready.lower();
        self.look_ahead(observer)
    }
}

/// Ends the call, and returns its answer if there is one.
fn last_answer(call: &Started<Option<QueuedContender>>) -> Option<Result<Option<QueuedContender>, Error>> {
    call.cancel();
    call.fetch().filter(|answer| !answer.as_ref().is_err_and(|error| error.kind() == ErrorKind::Interrupted))
}

/// Starts to observe who holds a lock or, for an election, who leads. It returns at once. An
/// observer watches only the holder, so many can observe one lock without waking each other.
///
/// @param lock the lock. It must be of a kind that has a single holder, or one side of a read/write
///         lock. You may free it before the observer.
/// @param[out] observer the observer. Free it with zklock_observer_free.
/// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT for a semaphore or a set of locks.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_observe(
    lock: *mut zklock_lock,
    observer: *mut *mut zklock_observer,
) -> zklock_status {
    call::status("zklock_observe", || {
        let observer = out("observer", observer)?;
        let inner = Lock::table().find(lock)?.inner().observe()?;
        observer.set(Observer::table().put(Observer { inner, watching: Mutex::default() }));
        Ok(())
    })
}

/// Reports the holder of the lock on the first call. Each later call waits until the holder has
/// changed, and reports the new one. Several quick changes may be reported as one. If there are
/// several holders, it reports the first of them. If no server answers, it keeps waiting.
///
/// The first contender in the queue is reported as the holder, even if it is a set of locks that
/// still waits for another of its locks. zklock_contenders can tell the two apart.
///
/// @param observer the observer.
/// @param timeout in milliseconds. 0 checks whether there is anything new, without waiting.
///         ZKLOCK_FOREVER waits as long as it takes.
/// @param[out] holder the holder, or NULL if there is none. It is valid until the next call with
///         this observer.
/// @return ZKLOCK_OK; ZKLOCK_TIMEOUT if nothing changed in that time; ZKLOCK_UNREACHABLE if the
///         client has never connected, and cannot; ZKLOCK_REFUSED; ZKLOCK_CLOSED; ZKLOCK_DEADLOCK
///         if it would have to wait in a callback.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_observer_next(
    observer: *mut zklock_observer,
    timeout: i64,
    holder: *mut *const zklock_contender,
) -> zklock_status {
    call::status("zklock_observer_next", || {
        let holder = out("holder", holder)?;
        let observer = Observer::table().find(observer)?;
        let now = if timeout == 0 { observer.fetch()? } else { observer.wait(timeout)? };
        let told = now.map(|now| Box::new(shown(&now)));
        holder.set(told.as_ref().map_or(std::ptr::null(), |told| std::ptr::from_ref(told.value())));
        observer.watching().told = told;
        Ok(())
    })
}

/// Gets the descriptor of an observer. It is readable while zklock_observer_next has something new.
/// When it is readable, call zklock_observer_next with a timeout of 0, which gives ZKLOCK_TIMEOUT
/// if there is nothing new after all. Do not read from it, write to it or close it.
///
/// @param observer the observer.
/// @param[out] descriptor valid until the observer is freed.
/// @return ZKLOCK_OK; ZKLOCK_REFUSED if the system has no descriptor left.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_observer_fd(
    observer: *mut zklock_observer,
    descriptor: *mut c_int,
) -> zklock_status {
    call::status("zklock_observer_fd", || {
        let descriptor = out("descriptor", descriptor)?;
        let observer = Observer::table().find(observer)?;
        let mut watching = observer.watching();
        let number = watching.ready.number()?;
        watching.has_descriptor = true;
        watching.look_ahead_for_descriptor(&observer.inner)?;
        descriptor.set(number);
        Ok(())
    })
}

/// Frees an observer and its descriptor. Remove the descriptor from your event loop first. Calls
/// that are waiting with this observer go on.
///
/// @param observer may be NULL. A handle that was already freed is ignored.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_observer_free(observer: *mut zklock_observer) {
    call::free("zklock_observer_free", || drop(Observer::table().take(observer)));
}
