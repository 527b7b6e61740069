//! What threads share.

use once_cell::race::OnceBox;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex even if it is poisoned: the data is consistent between any two statements.
pub(crate) fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Something of Python's that is looked up once.
///
/// No thread waits for another that looks it up, because that one may have no counterpart in a forked child: while it looks,
/// others run, and one of them may fork. So two threads may look, and what the first has found stays. (PyO3's `PyOnceLock`, and
/// with it `intern!`, lets others run even where there is nothing to look up.)
pub(crate) struct Found<T>(OnceBox<T>);

impl<T> Found<T> {
    pub(crate) const fn new() -> Self {
        Self(OnceBox::new())
    }

    pub(crate) fn get(&self) -> Option<&T> {
        self.0.get()
    }

    pub(crate) fn or_find(&self, find: impl FnOnce() -> pyo3::PyResult<T>) -> pyo3::PyResult<&T> {
        self.0.get_or_try_init(|| find().map(Box::new))
    }

    pub(crate) fn or_keep(&self, found: T) -> &T {
        self.0.get_or_init(|| Box::new(found))
    }
}

/// Returns a string of Python's that is made once, as PyO3's macro of that name.
macro_rules! intern {
    ($py:expr, $text:literal) => {{
        static NAME: $crate::guest::sync::Found<pyo3::Py<pyo3::types::PyString>> =
            $crate::guest::sync::Found::new();
        let make = || NAME.or_keep(pyo3::types::PyString::intern($py, $text).unbind());
        NAME.get().unwrap_or_else(make).bind($py)
    }};
}
pub(crate) use intern;
