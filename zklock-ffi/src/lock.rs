//! A lock. The constructors of its kinds, and nothing else about them, are in kinds.rs.

use crate::convert::{c_string, patience};
use crate::events::Events;
use crate::export::{export, noun};
use crate::handle::Object;
use crate::hold::{Held, zklock_hold};
use crate::raw::{Context, out};
use crate::started::{Answer, Started, starts, zklock_call};
use crate::status::zklock_status;
use std::ffi::{CString, c_char};
use std::sync::Arc;
use zklock::further::Owner;

noun! {
    /// A lock at a path. A zklock_lock holds nothing itself: zklock_acquire gives a hold.
    pub struct zklock_lock: Lock, 3;

    /// Frees a lock. Its holds are not affected, and waits for it go on.
    ///
    /// @param lock may be NULL. A handle that was already freed is ignored.
    pub fn zklock_lock_free(lock: *mut zklock_lock);

    fn inherited(&self) -> Option<Self> {
        (!self.inner.is_forked()).then(|| self.clone())
    }
}

#[derive(Clone)]
pub(crate) struct Lock {
    inner: zklock::Lock,
    path: CString,
    events: Arc<Events>,
}

impl Lock {
    pub(crate) fn inner(&self) -> &zklock::Lock {
        &self.inner
    }

    /// Returns the events of its client.
    pub(crate) fn events(&self) -> &Arc<Events> {
        &self.events
    }

    pub(crate) fn keep(inner: zklock::Lock, events: &Arc<Events>) -> *mut zklock_lock {
        let (path, events) = (c_string(inner.path()), events.clone());
        Self::table().put(Self { inner, path, events })
    }
}

export! {
    /// Gets the path of a lock, or all the paths of a set of locks.
    ///
    /// @param lock the lock.
    /// @return the path, valid until the lock is freed; "" if the handle is wrong.
    pub fn zklock_lock_path(lock: *const zklock_lock) -> *const c_char {
        Lock::table().find(lock)?.path.as_ptr()
    }

    /// Acquires a lock: waits until it is held.
    ///
    /// Clients get the lock in the order in which they queue, and the callers within a client in the
    /// order in which they call. However many callers a client has, clients take turns. If a caller
    /// gives up, the next caller of its client takes its place.
    ///
    /// A thread may acquire a lock for another thread, so it also waits for holds that it acquired
    /// itself. If no other thread releases such a hold, the wait never ends. The log has a warning when
    /// such a wait begins.
    ///
    /// You may poll with a timeout of 0. After two tries have found a zklock_lock of a mutex, an
    /// election or a read/write lock busy, further tries send no request until the servers report
    /// that the contender ahead has left. So just after another client's release, a try may still
    /// return ZKLOCK_TIMEOUT until that report arrives, for a tenth of the session timeout at most.
    /// A call whose timeout leaves enough time for an answer always asks the servers.
    ///
    /// After ZKLOCK_TIMEOUT, the message of zklock_last_error names the holder, if the servers say who
    /// that is. To find out, a wait asks them shortly before its end, and a try asks at most once a
    /// second.
    ///
    /// A call that fails deletes its node, and waits until the servers have confirmed that, for 30 ms at
    /// most. So the process may end right after it, unless the servers take longer.
    ///
    /// @param lock the lock.
    /// @param timeout in milliseconds. 0 tries once, and takes the try timeout if no server answers.
    ///         ZKLOCK_FOREVER waits as long as it takes. With any other timeout the call returns in
    ///         time, whatever the network does.
    /// @param[out] hold the proof that the lock is held. Release it with zklock_release, and free it
    ///         with zklock_hold_free.
    /// @return ZKLOCK_OK; ZKLOCK_TIMEOUT if others held the lock for all that time, or the time was too
    ///         short for an answer; ZKLOCK_UNREACHABLE if there was no connection in the end, or no
    ///         server answered within the try timeout, so that it is not known who has the lock;
    ///         ZKLOCK_DEADLOCK in a callback, or if the call would wait for a hold of a reentrant lock
    ///         that only this thread can release (for example, a hold of the read side, if this is the
    ///         write side); ZKLOCK_LOST if the lock is reentrant and this thread's outer hold is lost,
    ///         and ZKLOCK_UNREACHABLE if that hold's lease has run out; ZKLOCK_FOREIGN_CONTENDER;
    ///         ZKLOCK_REFUSED if the servers' access list does not allow it, or the process is exiting
    ///         and no thread can be started; ZKLOCK_CLOSED.
    pub fn zklock_acquire(
        lock: *mut zklock_lock,
        timeout: i64,
        hold: *mut *mut zklock_hold,
    ) -> zklock_status {
        let hold = out("hold", hold)?;
        let lock = Lock::table().find(lock)?;
        let granted = lock.inner.acquire_as(Owner::current(), patience(timeout)?).wait()?;
        hold.set(Held::keep(granted, None, &lock.events, Context::NONE));
    }

    /// Takes the hold from a call of zklock_acquire_start or zklock_job_begin_start. It returns at once.
    /// The events of the hold start with the pointer of the call: see zklock_call_set_context.
    ///
    /// @param call the call. You must still free it.
    /// @param[out] hold as for zklock_acquire.
    /// @return ZKLOCK_OK; ZKLOCK_NOT_HELD if the hold was already taken from the call; ZKLOCK_LOST if
    ///         the lock was granted, but lost before this call; ZKLOCK_INVALID_ARGUMENT if the call is of
    ///         another function; and everything that zklock_call_finish, zklock_acquire and
    ///         zklock_job_begin return.
    pub fn zklock_call_hold(call: *mut zklock_call, hold: *mut *mut zklock_hold) -> zklock_status {
        let hold = out("hold", hold)?;
        let call = Started::table().find(call)?;
        let (granted, run) = call.take("a hold", |answer| match answer {
            Answer::Hold(granted, run) => Ok((granted, run)),
            other => Err(other),
        })?;
        // It may have been lost since zklock_call_finish looked.
        let granted = granted.refuse_dead().map_err(|lost| call.fail(lost.into()))?;
        hold.set(Held::keep(granted, run, &call.events(), call.context()));
    }
}

starts! {
    /// Starts to acquire a lock as zklock_acquire does, and returns at once. When the call has its
    /// result, take the hold from it with zklock_call_hold.
    ///
    /// Such a wait does not belong to a thread: a thread that holds the lock may start another wait for
    /// it, and any thread may release the hold, even if the lock is reentrant. The lock is held from
    /// the moment that it is granted, not from the moment that you take the hold.
    ///
    /// @param lock the lock. You may free it before the call.
    /// @param timeout in milliseconds, as for zklock_acquire.
    pub fn zklock_acquire_start(lock: *mut zklock_lock, timeout: i64) {
        let lock = Lock::table().find(lock)?;
        let acquiring = lock.inner.acquire_as(Owner::once(), patience(timeout)?);
        Started::keep(acquiring, &lock.events, |granted| Answer::Hold(granted, None))
    }
}
