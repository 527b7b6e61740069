//! How a thread that is not Python's enters the interpreter, and what that has to do with forks.
//!
//! Such a thread gets its own state in the interpreter. To add it, Python locks the list of all states, without holding
//! its global lock. If another thread forks at that moment, the list stays locked for ever in the child, which hangs
//! before any hook of ours is called (seen in Python 3.11, in one of six runs of a test that forks forty times). So no
//! fork may happen while a thread enters.

use crate::guest::sync::lock_ignoring_poison;
use pyo3::prelude::*;
use pyo3::types::IntoPyDict;
use pyo3::wrap_pyfunction;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use zklock::face::{OfProcess, has_forked};

static ENTRANCE: OfProcess<Entrance> = OfProcess::new();

#[derive(Default)]
struct Entrance {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    coming_in: usize,
    /// Threads that are about to fork.
    forking: usize,
}

impl Entrance {
    fn here() -> &'static Self {
        ENTRANCE.here(|_| Self::default())
    }

    /// Changes the state as soon as it allows that.
    fn change(&self, may: impl Fn(&State) -> bool, change: impl FnOnce(&mut State)) {
        let mut state: MutexGuard<'_, State> = lock_ignoring_poison(&self.state);
        while !may(&state) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        change(&mut state);
        self.changed.notify_all();
    }
}

/// Registers our hooks for forks.
pub(crate) fn prepare(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let hooks = [
        ("before", wrap_pyfunction!(before_fork, module)?),
        ("after_in_parent", wrap_pyfunction!(after_fork_in_parent, module)?),
        ("after_in_child", wrap_pyfunction!(after_fork_in_child, module)?),
    ];
    py.import("os")?.call_method("register_at_fork", (), Some(&hooks.into_py_dict(py)?)).map(drop)
}

/// Runs `job` in the interpreter, unless that is ending.
pub(crate) fn come_in(job: impl FnOnce(Python<'_>)) {
    let entrance = Entrance::here();
    entrance.change(|state| state.forking == 0, |state| state.coming_in += 1);
    let is_in = || entrance.change(|_| true, |state| state.coming_in -= 1);
    let came_in = Python::try_attach(|py| {
        is_in();
        job(py);
    });
    if came_in.is_none() {
        is_in();
    }
}

/// Waits until no thread is entering. It does so without the global lock, because a thread that enters waits for that.
#[pyfunction]
#[pyo3(name = "_before_fork")]
fn before_fork(py: Python<'_>) {
    let entrance = Entrance::here();
    py.detach(|| {
        // Threads that come later wait, so this one gets its turn.
        entrance.change(|_| true, |state| state.forking += 1);
        entrance.change(|state| state.coming_in == 0, |_| ());
    });
}

#[pyfunction]
#[pyo3(name = "_after_fork_in_parent")]
fn after_fork_in_parent() {
    Entrance::here().change(|_| true, |state| state.forking = state.forking.saturating_sub(1));
}

/// The child has its own entrance, from the next call on.
#[pyfunction]
#[pyo3(name = "_after_fork")]
fn after_fork_in_child() {
    has_forked();
}
