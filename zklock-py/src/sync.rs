//! A helper for the mutexes of std.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A panic while it was locked is no reason to stop: what it guards is whole between any two statements.
pub(crate) fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
