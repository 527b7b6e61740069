//! Locking without panicking, and what `tests/threads` puts loom's in the place of.

use std::sync::PoisonError;
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, atomic};

/// No code of ours panics with a lock held, and if it did, what the lock guards would still be whole.
pub(crate) fn lock_ignoring_poison<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
