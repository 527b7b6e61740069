//! Calls of the core as asyncio coroutines.
//!
//! Our coroutines fetch their result in the same step in which their task continues. So there is no moment at which a
//! grant is on its way and belongs to nobody: a task that is cancelled before that step finds the call still there, and
//! drops it, which withdraws the attempt or releases the lock.

use crate::anchor::{AnchoredCallbacks, CallbackAnchor};
use crate::error::{raised, unpicklable};
use crate::exit::{is_over, later};
use crate::sync::lock_ignoring_poison;
use crate::wait::Doorbell;
use pyo3::exceptions::{PyRuntimeError, PyRuntimeWarning, PyStopIteration};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyWeakrefReference;
use pyo3::{PyTraverseError, PyVisit, wrap_pyfunction};
use std::ffi::CString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use zklock_core::Error;
use zklock_core::face::{Call, OfProcess, Park, Process, call_later};

/// The result that a coroutine waits for. Dropping it ends the wait.
pub(crate) trait Pending: Send {
    /// Returns the result, if it is there. If not, `bell` will ring.
    fn fetch(&mut self, py: Python<'_>, bell: &Arc<Bell>) -> Option<PyResult<Py<PyAny>>>;
}

/// A call that was started.
pub(crate) enum Begun {
    Done(Py<PyAny>),
    Pending(Box<dyn Pending>),
}

type Begin = Box<dyn FnOnce(Python<'_>, &Arc<Bell>) -> PyResult<Begun> + Send>;

/// An awaitable of zklock. It may be awaited once, or be wrapped in a task.
#[pyclass(frozen, module = "zklock")]
pub(crate) struct Coroutine {
    what: &'static str,
    bell: Arc<Bell>,
    stage: Mutex<Stage>,
    /// Keeps the client or the hold alive until the coroutine is finished.
    anchor: Mutex<Option<Py<CallbackAnchor>>>,
    process: Process,
}

enum Stage {
    New(Begin),
    /// Started, whether or not anything waits for it yet.
    Waits {
        pending: Box<dyn Pending>,
        future: Option<Py<PyAny>>,
    },
    Done(Py<PyAny>),
    Over,
}

impl Coroutine {
    /// Makes an awaitable that starts when it is awaited.
    pub(crate) fn new(
        what: &'static str,
        begin: impl FnOnce(Python<'_>, &Arc<Bell>) -> PyResult<Begun> + Send + 'static,
    ) -> Self {
        Self::at(what, Arc::default(), Stage::New(Box::new(begin)))
    }

    /// Returns an awaitable that has already started, and need not be awaited.
    pub(crate) fn begun(
        what: &'static str,
        begin: impl FnOnce(&Arc<Bell>) -> PyResult<Begun>,
    ) -> PyResult<Self> {
        let bell = Arc::default();
        let stage = match begin(&bell)? {
            Begun::Done(value) => Stage::Done(value),
            Begun::Pending(pending) => Stage::Waits { pending, future: None },
        };
        Ok(Self::at(what, bell, stage))
    }

    /// Returns an awaitable that already has its result.
    pub(crate) fn done(what: &'static str, value: Py<PyAny>) -> Self {
        Self::at(what, Arc::default(), Stage::Done(value))
    }

    fn at(what: &'static str, bell: Arc<Bell>, stage: Stage) -> Self {
        Self { what, bell, stage: Mutex::new(stage), anchor: Mutex::default(), process: Process::current() }
    }

    /// Like `started`, but keeps the client or the hold of these callbacks alive until it is finished.
    pub(crate) fn keeping(self, callbacks: &Arc<AnchoredCallbacks>) -> Self {
        // If there is no memory for the anchor, it goes on without one.
        let anchor = Python::attach(|py| callbacks.anchor(py).ok());
        *lock_ignoring_poison(&self.anchor) = anchor;
        self
    }

    /// Takes out the call and starts it, for a caller that waits for it without an event loop; and the bell that rings
    /// when its result may be there.
    pub(crate) fn begin(self, py: Python<'_>) -> PyResult<(Begun, Arc<Bell>)> {
        // No Python code runs while the mutex is held.
        let stage = std::mem::replace(&mut *lock_ignoring_poison(&self.stage), Stage::Over);
        let begun = match stage {
            Stage::New(begin) => begin(py, &self.bell)?,
            Stage::Waits { pending, .. } => Begun::Pending(pending),
            Stage::Done(value) => Begun::Done(value),
            Stage::Over => return Err(self.awaited_before()),
        };
        Ok((begun, self.bell.clone()))
    }

    fn awaited_before(&self) -> PyErr {
        PyRuntimeError::new_err(format!("{} has been awaited already", self.what))
    }

    /// Goes on, and returns the future to wait for. Once it has its result, or another exception, it is finished.
    fn step(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let stepped = self.go_on(py);
        if stepped.is_err() {
            self.let_go();
        }
        stepped
    }

    fn let_go(&self) {
        let anchor = lock_ignoring_poison(&self.anchor).take();
        drop(anchor);
    }

    fn go_on(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        // No Python code runs while the mutex is held.
        let stage = std::mem::replace(&mut *lock_ignoring_poison(&self.stage), Stage::Over);
        let mut pending = match stage {
            Stage::New(begin) => {
                // Without an event loop it must not work by chance when there is nothing to wait for.
                running_loop(py)?;
                match begin(py, &self.bell)? {
                    Begun::Done(value) => return Err(returned(value)),
                    Begun::Pending(pending) => pending,
                }
            }
            Stage::Waits { pending, future } => {
                if let Some(future) = future {
                    // It is finished, or this raises the reason why not.
                    match future.bind(py).call_method0(intern!(py, "__next__")) {
                        Err(error) if error.is_instance_of::<PyStopIteration>(py) => {}
                        Err(error) => return Err(error),
                        Ok(again) => {
                            *lock_ignoring_poison(&self.stage) =
                                Stage::Waits { pending, future: Some(future) };
                            return Ok(again.unbind());
                        }
                    }
                }
                pending
            }
            Stage::Done(value) => return Err(returned(value)),
            Stage::Over => return Err(self.awaited_before()),
        };
        loop {
            self.bell.listen_again();
            if let Some(result) = pending.fetch(py, &self.bell) {
                return result.and_then(|value| Err(returned(value)));
            }
            let event_loop = running_loop(py)?;
            let future = event_loop.call_method0(intern!(py, "create_future"))?;
            if self.bell.wake(&event_loop, &future)? {
                let future = future.call_method0(intern!(py, "__await__"))?;
                let waits_for = future.call_method0(intern!(py, "__next__"))?.unbind();
                *lock_ignoring_poison(&self.stage) = Stage::Waits { pending, future: Some(future.unbind()) };
                return Ok(waits_for);
            }
        }
    }
}

#[pymethods]
impl Coroutine {
    fn __await__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.step(py)
    }

    fn send(&self, py: Python<'_>, value: Py<PyAny>) -> PyResult<Py<PyAny>> {
        drop(value);
        self.step(py)
    }

    #[pyo3(signature = (kind, value=None, traceback=None))]
    fn throw(
        &self,
        kind: Bound<'_, PyAny>,
        value: Option<Bound<'_, PyAny>>,
        traceback: Option<Py<PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        drop(traceback);
        self.close();
        let exception = match value {
            Some(value) if value.is_instance_of::<pyo3::exceptions::PyBaseException>() => value,
            Some(value) => kind.call1((value,))?,
            None if kind.is_instance_of::<pyo3::exceptions::PyBaseException>() => kind,
            None => kind.call0()?,
        };
        Err(PyErr::from_value(exception))
    }

    fn close(&self) {
        let stage = std::mem::replace(&mut *lock_ignoring_poison(&self.stage), Stage::Over);
        self.let_go();
        // Drop it after the mutex is released: dropping may run any Python code.
        drop(stage);
    }

    #[getter]
    fn __name__(&self) -> &'static str {
        self.what
    }

    #[getter]
    fn __qualname__(&self) -> &'static str {
        self.what
    }

    fn __repr__(&self) -> String {
        let stage = match &*lock_ignoring_poison(&self.stage) {
            Stage::New(_) => "not awaited yet",
            Stage::Waits { .. } => "waiting",
            Stage::Done(_) => "done",
            Stage::Over => "over",
        };
        format!("<{} {stage}>", self.what)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable("coroutine", "await it here"))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        if let Ok(Some(anchor)) = self.anchor.try_lock().as_deref() {
            visit.call(anchor)?;
        }
        match self.stage.try_lock().as_deref() {
            Ok(Stage::Waits { future: Some(future), .. }) => visit.call(future),
            Ok(Stage::Done(value)) => visit.call(value),
            _ => Ok(()),
        }
    }

    fn __clear__(&self) {
        self.close();
    }
}

impl Drop for Coroutine {
    fn drop(&mut self) {
        let is_new = matches!(&*lock_ignoring_poison(&self.stage), Stage::New(_));
        if is_new && !is_over() && !self.process.is_forked() {
            let text = format!("{} was never awaited", self.what);
            warn::<PyRuntimeWarning>(&text);
        }
    }
}

/// Gives a warning where nothing can be raised: while an object is being taken down.
pub(crate) fn warn<W: pyo3::type_object::PyTypeInfo>(text: &str) {
    Python::try_attach(|py| {
        // Another exception may be propagating.
        let other = PyErr::take(py);
        let text = CString::new(text.replace('\0', "")).unwrap_or_default();
        if let Err(error) = PyErr::warn(py, &py.get_type::<W>(), &text, 1) {
            error.write_unraisable(py, None);
        }
        if let Some(other) = other {
            other.restore(py);
        }
    });
}

fn returned(value: Py<PyAny>) -> PyErr {
    PyStopIteration::new_err((value,))
}

fn running_loop(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    static GET: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let get =
        GET.get_or_try_init(py, || py.import("asyncio")?.getattr("get_running_loop").map(Bound::unbind))?;
    get.bind(py).call0().map_err(|error| {
        let message = "zklock's coroutines run in an asyncio event loop; under trio or without a loop, make the \
                       blocking call in a thread";
        let explained = PyRuntimeError::new_err(message);
        explained.set_cause(py, Some(error));
        explained
    })
}

/// Lets the task that waits for the future continue. The future may have been cancelled meanwhile.
#[pyfunction]
#[pyo3(name = "_awaken")]
fn awaken(future: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = future.py();
    if !future.call_method0(intern!(py, "done"))?.is_truthy()? {
        future.call_method1(intern!(py, "set_result"), (py.None(),))?;
    }
    Ok(())
}

/// Wakes a task from the I/O thread.
#[derive(Default)]
pub(crate) struct Bell(Mutex<Ear>);

#[derive(Default)]
enum Ear {
    #[default]
    Nobody,
    Rung,
    /// A weak reference, because the future is not ours to keep: if its task is forgotten, it must be collected.
    Task {
        event_loop: Py<PyAny>,
        future: Py<PyWeakrefReference>,
    },
    Greenlet(Arc<Doorbell>),
}

impl Bell {
    /// Returns the function to call when a call is ready.
    pub(crate) fn ringer(self: &Arc<Self>) -> impl FnOnce() + Send + 'static {
        let bell = self.clone();
        move || bell.ring()
    }

    fn ring(&self) {
        let ear = std::mem::replace(&mut *lock_ignoring_poison(&self.0), Ear::Rung);
        if let Ear::Greenlet(doorbell) = &ear {
            doorbell.unpark();
        }
        if let Ear::Task { event_loop, future } = ear {
            // The thread was already started by `wake`.
            let _ = later(move |py| {
                if let Some(future) = future.bind(py).upgrade() {
                    // This fails if the loop is closed, and nothing waits any longer.
                    let _ = wrap_pyfunction!(awaken, py).and_then(|awaken| {
                        event_loop.call_method1(py, intern!(py, "call_soon_threadsafe"), (awaken, future))
                    });
                }
            });
        }
    }

    pub(crate) fn listen_again(&self) {
        let before = std::mem::take(&mut *lock_ignoring_poison(&self.0));
        drop(before);
    }

    /// Rings there too; `false` if it has already rung.
    pub(crate) fn ring_at(&self, doorbell: &Arc<Doorbell>) -> bool {
        let mut ear = lock_ignoring_poison(&self.0);
        if let Ear::Rung = *ear {
            return false;
        }
        *ear = Ear::Greenlet(doorbell.clone());
        true
    }

    /// Sets the future when it rings; `false` if it has already rung.
    fn wake(&self, event_loop: &Bound<'_, PyAny>, future: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = future.py();
        start_thread().map_err(|error| raised(py, &error))?;
        let task = Ear::Task {
            event_loop: event_loop.clone().unbind(),
            future: PyWeakrefReference::new(future)?.unbind(),
        };
        let mut ear = lock_ignoring_poison(&self.0);
        if let Ear::Rung = *ear {
            return Ok(false);
        }
        *ear = task;
        Ok(true)
    }
}

/// Starts the thread, before anything relies on it.
fn start_thread() -> Result<(), Error> {
    static HAS_STARTED: OfProcess<AtomicBool> = OfProcess::new();
    let has_started = HAS_STARTED.here(|_| AtomicBool::new(false));
    if !has_started.load(Ordering::Relaxed) {
        call_later(|| ())?;
        has_started.store(true, Ordering::Relaxed);
    }
    Ok(())
}

/// A call of the core, and the conversion of its result to an object.
struct Simple<C, F> {
    call: C,
    convert: Option<F>,
}

impl Begun {
    /// Waits for the result that `fetch` gives once.
    pub(crate) fn pending<T, C, F>(fetch: C, convert: F) -> Self
    where
        C: FnMut() -> Option<Result<T, Error>> + Send + 'static,
        F: FnOnce(Python<'_>, Result<T, Error>) -> PyResult<Py<PyAny>> + Send + 'static,
    {
        Self::Pending(Box::new(Simple { call: fetch, convert: Some(convert) }))
    }

    /// Waits for a call.
    pub(crate) fn call<T: Send + 'static>(
        call: Call<T>,
        convert: impl FnOnce(Python<'_>, Result<T, Error>) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Self {
        Self::pending(move || call.fetch(), convert)
    }
}

impl<T, C, F> Pending for Simple<C, F>
where
    C: FnMut() -> Option<Result<T, Error>> + Send + 'static,
    F: FnOnce(Python<'_>, Result<T, Error>) -> PyResult<Py<PyAny>> + Send + 'static,
{
    fn fetch(&mut self, py: Python<'_>, _: &Arc<Bell>) -> Option<PyResult<Py<PyAny>>> {
        let result = (self.call)()?;
        self.convert.take().map(|convert| convert(py, result))
    }
}

/// Converts the result of a call that gives nothing but an error.
pub(crate) fn nothing(py: Python<'_>, result: Result<(), Error>) -> PyResult<Py<PyAny>> {
    result.map(|()| py.None()).map_err(|error| raised(py, &error))
}
