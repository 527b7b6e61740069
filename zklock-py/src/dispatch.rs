//! The threads that call functions of others: callbacks, and handlers of log lines.
//!
//! They are threads of Python's, which fetch what to call from here. A thread of ours would have frames of
//! ours beneath the function, and at the interpreter's end, until Python 3.13, a thread that is in Python is
//! ended through all of its frames, at which those of ours abort the process. And what others do may take
//! long: those who wait for a lock must not wait for that, nor log lines for a callback, nor the callbacks of one hold for
//! those of another.
//!
//! Where gevent or eventlet has patched Python, greenlets of the main thread take their place: its locks and queues are
//! those of greenlets then, and a thread of the system must not touch them.

use crate::error::refused;
use crate::exit::{is_over, later};
use crate::patched;
use crate::sync::lock_ignoring_poison;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use zklock_core::face::Process;

/// What is to be called, and with what.
pub(crate) type Call = (Py<PyAny>, Py<PyTuple>);

/// Callbacks. Those of one hold are called one after the other, and so are those of one client.
pub(crate) static CALLBACKS: Queue = Queue::new("zklock-callbacks", 32, false);
/// Log lines, one after the other.
pub(crate) static LOG: Queue = Queue::new("zklock-log", 1, true);

/// Calls that are to be made.
pub(crate) struct Queue {
    name: &'static str,
    /// How many strands may run at once. What comes beyond waits until one of them has come to its end.
    at_once: usize,
    /// Whether its thread stays where there is nothing to do: where calls come often, and one at a time.
    stays: bool,
    state: Mutex<State>,
}

/// Looked at by those who are in the interpreter alone: so nobody forks while it is locked.
struct State {
    /// The process of which this is: in a child made by `fork` there are no threads that would call anything.
    process: u32,
    /// What is to be called one after the other, under one number. One that runs and has nothing more to do is empty.
    strands: BTreeMap<u64, VecDeque<Call>>,
    /// Those that wait for somebody to run them.
    ready: VecDeque<u64>,
    /// How many threads or greenlets run strands.
    running: usize,
    /// What wakes the thread that stays, or the greenlet that starts others.
    bell: Option<Arc<OwnedFd>>,
    is_for_greenlets: bool,
}

/// A number for a strand of its own.
pub(crate) fn strand() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Has something called, after all that came before in the same strand.
pub(crate) fn call(py: Python<'_>, queue: &'static Queue, call: Call) -> PyResult<()> {
    queue.call(py, 0, call)
}

/// The same from a thread that is not in Python.
pub(crate) fn call_later(
    queue: &'static Queue,
    make: impl FnOnce(Python<'_>) -> PyResult<Option<Call>> + Send + 'static,
) -> bool {
    call_strand_later(queue, 0, make)
}

pub(crate) fn call_strand_later(
    queue: &'static Queue,
    strand: u64,
    make: impl FnOnce(Python<'_>) -> PyResult<Option<Call>> + Send + 'static,
) -> bool {
    let handed_over = later(move |py| {
        let made = make(py);
        if let Err(error) = made.and_then(|made| made.map_or(Ok(()), |made| queue.call(py, strand, made))) {
            error.write_unraisable(py, None);
        }
    });
    handed_over.is_ok()
}

impl Queue {
    const fn new(name: &'static str, at_once: usize, stays: bool) -> Self {
        Self { name, at_once, stays, state: Mutex::new(State::new(0)) }
    }

    fn call(&'static self, py: Python<'_>, strand: u64, call: Call) -> PyResult<()> {
        let of_parent = lock_ignoring_poison(&self.state).leave_parent();
        drop(of_parent);
        let begun = {
            let mut state = lock_ignoring_poison(&self.state);
            if let Some(calls) = state.strands.get_mut(&strand) {
                calls.push_back(call);
            } else {
                state.strands.insert(strand, VecDeque::from([call]));
                state.ready.push_back(strand);
            }
            let begun = if state.is_for_greenlets { None } else { state.begin(self.at_once) };
            if begun.is_none() {
                state.ring();
            }
            begun
        };
        let Some(strand) = begun else { return Ok(()) };
        let started =
            module(py)?.call_method1(intern!(py, "start"), (Hand::of(self, false), self.name, strand));
        if started.is_err() {
            let mut state = lock_ignoring_poison(&self.state);
            state.running -= 1;
            // For the next one that comes.
            state.ready.push_front(strand);
        }
        started.map(drop)
    }

    /// From now on greenlets make the calls, if Python is patched and this is its main thread.
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
            strands: BTreeMap::new(),
            ready: VecDeque::new(),
            running: 0,
            bell: None,
            is_for_greenlets: false,
        }
    }

    /// What was the parent's, if this process has been forked since.
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
            // It fails only where it has been rung very often and not been heard.
            let _ = rustix::io::write(bell, &1_u64.to_ne_bytes());
        }
    }

    /// A strand for somebody who does not run one yet.
    fn begin(&mut self, at_once: usize) -> Option<u64> {
        if self.running >= at_once || is_over() {
            return None;
        }
        let strand = self.ready.pop_front()?;
        self.running += 1;
        Some(strand)
    }
}

/// A queue, for those who make its calls.
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
    /// Makes it one for greenlets: the descriptor that can be read when there is something to begin.
    fn listen(&self, py: Python<'_>) -> PyResult<i32> {
        let bell = new_bell().map_err(|error| {
            refused(py, format!("the system gives no descriptor ({error}): raise the limit of open files"))
        })?;
        let descriptor = bell.as_raw_fd();
        let mut state = lock_ignoring_poison(&self.queue.state);
        state.is_for_greenlets = true;
        // A thread that waits goes.
        state.ring();
        state.bell = Some(bell);
        Ok(descriptor)
    }

    /// Silences the bell; `false` if this is to go. In a child made by `fork` it must leave the bell to its parent.
    fn hear(&self) -> bool {
        if Process::current().number() != self.process || is_over() {
            return false;
        }
        let state = lock_ignoring_poison(&self.queue.state);
        if let Some(bell) = &state.bell {
            hush(bell);
        }
        state.is_for_greenlets
    }

    /// Nobody listens any more.
    fn stop(&self) {
        let mut state = lock_ignoring_poison(&self.queue.state);
        if Process::current().number() == self.process && state.process == self.process {
            state.bell = None;
            state.is_for_greenlets = false;
        }
    }

    /// A strand for somebody who does not run one yet.
    fn begin(&self) -> Option<u64> {
        lock_ignoring_poison(&self.queue.state).begin(self.queue.at_once)
    }

    /// What is to be called next in this strand; `None` when it has come to its end.
    fn next(&self, strand: u64) -> Option<Call> {
        let mut state = lock_ignoring_poison(&self.queue.state);
        if is_over() || state.process != self.process {
            return None;
        }
        let call = state.strands.get_mut(&strand).and_then(VecDeque::pop_front);
        if call.is_none() {
            state.strands.remove(&strand);
        }
        call
    }

    /// The next strand for somebody who has run one; `None` if it is to go.
    fn take(&self, py: Python<'_>) -> Option<u64> {
        loop {
            let bell = {
                let mut state = lock_ignoring_poison(&self.queue.state);
                let waits = self.queue.stays && !state.is_for_greenlets && state.ready.is_empty();
                if waits && state.bell.is_none() {
                    state.bell = new_bell().ok();
                }
                match &state.bell {
                    Some(bell) if waits => bell.clone(),
                    _ => return self.take_from(&mut state),
                }
            };
            py.detach(|| sleep_until_it_rings(&bell));
        }
    }

    /// Tells what such a function has raised, by `sys.unraisablehook`.
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
        let strand = if is_to_go { None } else { state.ready.pop_front() };
        if strand.is_none() {
            state.running -= 1;
            // What it has left there is for a greenlet.
            state.ring();
        }
        strand
    }
}

fn new_bell() -> rustix::io::Result<Arc<OwnedFd>> {
    eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map(Arc::new)
}

fn hush(bell: &OwnedFd) {
    let _ = rustix::io::read(bell, &mut [0; 8]);
}

fn sleep_until_it_rings(bell: &OwnedFd) {
    while poll(&mut [PollFd::new(bell, PollFlags::IN)], None).is_err() {}
    hush(bell);
    while is_over() {
        // It must not come back into the interpreter.
        std::thread::park();
    }
}
