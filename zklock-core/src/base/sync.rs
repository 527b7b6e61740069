//! Locking without panicking. `tests/threads` replaces these types with loom's.

use std::sync::PoisonError;
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, atomic};

/// Locks a mutex even if it is poisoned. No code of ours panics while it holds a lock, and if it did,
/// the data would still be consistent.
pub(crate) fn lock_ignoring_poison<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
