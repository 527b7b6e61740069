//! The threads that call the user's functions: callbacks, and log handlers.
//!
//! They are Python threads, which fetch their calls from here. A native thread would have our frames beneath the user's
//! function. Until Python 3.13, a thread that is in Python when the interpreter ends is ended by unwinding all of its
//! frames, and at ours the process would abort. User functions may also take long: callers that wait for a lock must
//! not wait for them, nor log lines for a callback, nor the callbacks of one hold for those of another.
//!
//! If gevent or eventlet has patched Python, greenlets of the main thread take their place: Python's locks and queues
//! are then those of greenlets, and a real thread must not touch them.

use crate::guest::error::refused;
use crate::guest::exit::{is_over, later};
use crate::guest::patched;
use crate::guest::sync::{intern, lock_ignoring_poison};
use crate::guest::wait::Doorbell;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use rustix::event::Timespec;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use zklock::face::Process;

/// How long the thread that stays sleeps at most.
const SLICE: Duration = Duration::from_secs(10);

/// A function, and its arguments.
pub(crate) type Call = (Py<PyAny>, Py<PyTuple>);

/// Callbacks. Those of one hold are called one at a time, and so are those of one client.
pub(crate) static CALLBACKS: Queue = Queue::new("zklock-callbacks", 32, false);
/// Log lines, one at a time.
pub(crate) static LOG: Queue = Queue::new("zklock-log", 1, true);

/// Calls that are to be made.
pub(crate) struct Queue {
    name: &'static str,
    /// How many lanes may run at once. Further ones wait until one of them has ended.
    at_once: usize,
    /// Whether its thread stays when there is nothing to do: for calls that come often, and one at a time.
    stays: bool,
    state: Mutex<State>,
}

/// Only locked by threads that are in the interpreter, so no fork happens while it is locked.
struct State {
    /// The process that this belongs to. In a child made by `fork` there are no threads to make calls.
    process: u32,
    /// The calls of each lane, by number, which are made one at a time. A lane that is running and has no more
    /// calls is empty.
    lanes: BTreeMap<u64, VecDeque<Call>>,
    /// Lanes that wait for a thread to run them.
    ready: VecDeque<u64>,
    /// How many threads or greenlets run lanes.
    running: usize,
    /// Wakes the thread that stays, or the greenlet that starts others.
    bell: Option<Arc<Doorbell>>,
    is_for_greenlets: bool,
}

/// Returns a number for a new lane.
pub(crate) fn lane() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Schedules a call, after all earlier calls of the same lane.
pub(crate) fn call(py: Python<'_>, queue: &'static Queue, call: Call) -> PyResult<()> {
    queue.call(py, 0, call)
}

/// Schedules a call from a thread that is not in Python.
pub(crate) fn call_later(
    queue: &'static Queue,
    make: impl FnOnce(Python<'_>) -> PyResult<Option<Call>> + Send + 'static,
) -> bool {
    call_in_lane_later(queue, 0, make)
}

pub(crate) fn call_in_lane_later(
    queue: &'static Queue,
    lane: u64,
    make: impl FnOnce(Python<'_>) -> PyResult<Option<Call>> + Send + 'static,
) -> bool {
    let handed_over = later(move |py| {
        let made = make(py);
        if let Err(error) = made.and_then(|made| made.map_or(Ok(()), |made| queue.call(py, lane, made))) {
            error.write_unraisable(py, None);
        }
    });
    handed_over.is_ok()
}

impl Queue {
    const fn new(name: &'static str, at_once: usize, stays: bool) -> Self {
        Self { name, at_once, stays, state: Mutex::new(State::new(0)) }
    }

    fn call(&'static self, py: Python<'_>, lane: u64, call: Call) -> PyResult<()> {
        let of_parent = lock_ignoring_poison(&self.state).leave_parent();
        drop(of_parent);
        let begun = {
            let mut state = lock_ignoring_poison(&self.state);
            if let Some(calls) = state.lanes.get_mut(&lane) {
                calls.push_back(call);
            } else {
                state.lanes.insert(lane, VecDeque::from([call]));
                state.ready.push_back(lane);
            }
            let begun = if state.is_for_greenlets { None } else { state.begin(self.at_once) };
            if begun.is_none() {
                state.ring();
            }
            begun
        };
        let Some(lane) = begun else { return Ok(()) };
        let started =
            module(py)?.call_method1(intern!(py, "start"), (Hand::of(self, false), self.name, lane));
        if started.is_err() {
            let mut state = lock_ignoring_poison(&self.state);
            state.running -= 1;
            // For the next call.
            state.ready.push_front(lane);
        }
        started.map(drop)
    }

    /// Makes the calls in greenlets from now on, if Python is patched and this is its main thread.
    pub(crate) fn start_in_a_greenlet(&'static self, py: Python<'_>) -> PyResult<()> {
        if !patched::is_main_and_patched(py)? {
            return Ok(());
        }
        let of_parent = lock_ignoring_poison(&self.state).leave_parent();
        drop(of_parent);
        if lock_ignoring_poison(&self.state).is_for_greenlets {
            return Ok(());
        }
        let arguments = (Hand::of(self, true), self.stays);
        module(py)?.call_method1(intern!(py, "start_in_a_greenlet"), arguments).map(drop)
    }
}

fn module(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import("zklock._dispatch")
}

impl State {
    const fn new(process: u32) -> Self {
        Self {
            process,
            lanes: BTreeMap::new(),
            ready: VecDeque::new(),
            running: 0,
            bell: None,
            is_for_greenlets: false,
        }
    }

    /// Drops what belonged to the parent, if this process has been forked since.
    fn leave_parent(&mut self) -> Option<Self> {
        let process = Process::current().number();
        if self.process == process {
            return None;
        }
        let mut before = std::mem::replace(self, Self::new(process));
        // A greenlet that was copied with the process may still wait for it.
        std::mem::forget(before.bell.take());
        Some(before)
    }

    fn ring(&self) {
        if let Some(bell) = &self.bell {
            bell.ring();
        }
    }

    /// Returns a lane for a thread that does not run one yet.
    fn begin(&mut self, at_once: usize) -> Option<u64> {
        if self.running >= at_once || is_over() {
            return None;
        }
        let lane = self.ready.pop_front()?;
        self.running += 1;
        Some(lane)
    }
}

/// A queue, as seen by those who make its calls.
#[pyclass(frozen, module = "zklock")]
struct Hand {
    queue: &'static Queue,
    process: u32,
    is_greenlet: bool,
}

impl Hand {
    fn of(queue: &'static Queue, is_greenlet: bool) -> Self {
        Self { queue, process: Process::current().number(), is_greenlet }
    }
}

#[pymethods]
impl Hand {
    /// Makes it a queue for greenlets. Returns the descriptor that is readable when there is something to start.
    fn listen(&self, py: Python<'_>) -> PyResult<i32> {
        let bell = Doorbell::new().map(Arc::new).map_err(|error| {
            refused(py, format!("the system has no descriptor left ({error}): raise the limit of open files"))
        })?;
        let descriptor = bell.descriptor();
        let mut state = lock_ignoring_poison(&self.queue.state);
        state.is_for_greenlets = true;
        // A waiting thread ends.
        state.ring();
        state.bell = Some(bell);
        Ok(descriptor)
    }

    /// Silences the bell; `false` if this greenlet should end. In a child made by `fork` it must leave the bell to its
    /// parent.
    fn hear(&self) -> bool {
        if Process::current().number() != self.process || is_over() {
            return false;
        }
        let state = lock_ignoring_poison(&self.queue.state);
        if let Some(bell) = &state.bell {
            bell.clear();
        }
        state.is_for_greenlets
    }

    /// Notes that nothing listens any longer.
    fn stop(&self) {
        let mut state = lock_ignoring_poison(&self.queue.state);
        if Process::current().number() == self.process && state.process == self.process {
            state.bell = None;
            state.is_for_greenlets = false;
        }
    }

    /// A lane for a thread that does not run one yet.
    fn begin(&self) -> Option<u64> {
        lock_ignoring_poison(&self.queue.state).begin(self.queue.at_once)
    }

    /// The next call of this lane; `None` if it has no more.
    fn next(&self, lane: u64) -> Option<Call> {
        let mut state = lock_ignoring_poison(&self.queue.state);
        if is_over() || state.process != self.process {
            return None;
        }
        let call = state.lanes.get_mut(&lane).and_then(VecDeque::pop_front);
        if call.is_none() {
            state.lanes.remove(&lane);
        }
        call
    }

    /// The next lane for a thread that has run one; `None` if the thread should end.
    fn take(&self, py: Python<'_>) -> Option<u64> {
        loop {
            let bell = {
                let mut state = lock_ignoring_poison(&self.queue.state);
                let waits = self.queue.stays && !state.is_for_greenlets && state.ready.is_empty();
                if waits && state.bell.as_ref().is_none_or(|bell| bell.is_lost()) {
                    state.bell = Doorbell::new().map(Arc::new).ok();
                }
                match &state.bell {
                    Some(bell) if waits => bell.clone(),
                    _ => return self.take_from(&mut state),
                }
            };
            py.detach(|| sleep_until_it_rings(&bell));
        }
    }

    /// Reports an exception of such a function, through `sys.unraisablehook`.
    #[staticmethod]
    fn report(error: Bound<'_, PyAny>, function: &Bound<'_, PyAny>) {
        PyErr::from_value(error).write_unraisable(function.py(), Some(function));
    }
}

impl Hand {
    fn take_from(&self, state: &mut State) -> Option<u64> {
        if state.process != self.process {
            return None;
        }
        let is_to_go = is_over() || (state.is_for_greenlets && !self.is_greenlet);
        let lane = if is_to_go { None } else { state.ready.pop_front() };
        if lane.is_none() {
            state.running -= 1;
            // The rest there is for a greenlet.
            state.ring();
        }
        lane
    }
}

fn sleep_until_it_rings(bell: &Doorbell) {
    let slice = Timespec { tv_sec: SLICE.as_secs() as i64, tv_nsec: 0 };
    // In each slice it looks whether the program has closed the bell.
    while bell.listen(Some(&slice)).is_some_and(|heard| heard.unwrap_or(0) == 0) {}
    bell.clear();
    while is_over() {
        // It must not enter the interpreter again.
        std::thread::park();
    }
}
