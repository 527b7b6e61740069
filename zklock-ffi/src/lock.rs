//! A thing that can be acquired. Its kinds are in kinds.rs: a constructor each, and nothing else.

use crate::call;
use crate::convert::{c_string, patience};
use crate::events::Events;
use crate::handle::{Object, handle};
use crate::hold::{Held, zklock_hold};
use crate::raw::{Context, out};
use crate::status::zklock_status;
use std::ffi::{CString, c_char};
use std::sync::Arc;
use zklock_core::blocking;

/// A lock at a path. It holds nothing itself: zklock_acquire does.
#[allow(non_camel_case_types, reason = "the name in C")]
#[derive(Debug)]
pub struct zklock_lock {
    _opaque: [u8; 0],
}

pub(crate) struct Lock {
    inner: blocking::Lock,
    path: CString,
    events: Arc<Events>,
}

handle!(
    Lock: zklock_lock,
    3,
    fn inherited(&self) -> Option<Self> {
        let is_forked = self.inner.core().is_forked();
        let Self { inner, path, events } = self;
        (!is_forked).then(|| Self { inner: inner.clone(), path: path.clone(), events: events.clone() })
    }
);

impl Lock {
    pub(crate) fn inner(&self) -> &blocking::Lock {
        &self.inner
    }

    /// Where the events of its client are.
    pub(crate) fn events(&self) -> &Arc<Events> {
        &self.events
    }

    pub(crate) fn keep(inner: blocking::Lock, events: &Arc<Events>) -> *mut zklock_lock {
        let (path, events) = (c_string(inner.path()), events.clone());
        Self::table().put(Self { inner, path, events })
    }
}

/// Frees the lock. Holds of it are not touched, and waits for it go on.
///
/// @param lock may be NULL; a handle that was freed before is ignored.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_lock_free(lock: *mut zklock_lock) {
    call::free("zklock_lock_free", || drop(Lock::table().take(lock)));
}

/// The path of a lock; of a set of locks, the paths of all.
///
/// @param lock the lock.
/// @param[out] path valid until the lock is freed.
/// @return ZKLOCK_OK.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_lock_path(
    lock: *const zklock_lock,
    path: *mut *const c_char,
) -> zklock_status {
    call::status("zklock_lock_path", || {
        out("path", path)?.set(Lock::table().find(lock)?.path.as_ptr());
        Ok(())
    })
}

/// Waits until the lock is held.
///
/// Grants follow the order in which clients queue, and within a client that of its callers: however
/// many wait, clients take turns. A caller that gives up leaves its place to the next of its
/// client.
///
/// A thread may acquire for others, and hand each hold to one that releases it: so it also waits
/// for what it has acquired itself. If nobody else releases that, it waits in vain; a warning is
/// logged when such a wait begins.
///
/// With a timeout of 0 it may be called again and again: from the second time on that one and the
/// same zklock_lock of a mutex, an election or a read/write lock was busy, further such calls cost
/// no request until the servers tell that the one in the way has gone. So right after another
/// client's release it may still be ZKLOCK_TIMEOUT, for the moment that this takes, a tenth of the
/// session timeout at most. With a timeout that leaves the servers the time to answer, they are
/// asked in any case.
///
/// @param lock the lock.
/// @param timeout milliseconds: 0 tries once, which takes as long as the try timeout if no server
///        answers; ZKLOCK_FOREVER waits as long as it takes. Otherwise it returns by then, whatever
///        the network does.
/// @param[out] hold the proof that the lock is held. Give it back with zklock_release, and free it
///        with zklock_hold_free.
/// @return ZKLOCK_OK; ZKLOCK_TIMEOUT if others had the lock until then, or the time was too short
///         for an answer; ZKLOCK_UNREACHABLE if there was no connection then, or no server has
///         answered for the try timeout: nobody knows who has the lock; ZKLOCK_DEADLOCK if it was
///         to wait for what this thread itself holds by a reentrant lock, so that no other can
///         release it (such as the read side, if this is the write side), or in a callback; if the
///         lock is reentrant; ZKLOCK_LOST if the outer hold is lost, and ZKLOCK_UNREACHABLE if its
///         lease has run out; ZKLOCK_FOREIGN_CONTENDER; ZKLOCK_REFUSED if the servers' access list
///         does not allow it, or the process is exiting and no thread can be started;
///         ZKLOCK_CLOSED.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_acquire(
    lock: *mut zklock_lock,
    timeout: i64,
    hold: *mut *mut zklock_hold,
) -> zklock_status {
    call::status("zklock_acquire", || {
        let hold = out("hold", hold)?;
        let lock = Lock::table().find(lock)?;
        let inner = lock.inner.acquire_within(patience(timeout)?, None)?;
        hold.set(Held::keep(inner, &lock.events, Context::NONE));
        Ok(())
    })
}
