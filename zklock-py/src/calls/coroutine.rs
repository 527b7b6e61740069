//! Calls of the core as asyncio coroutines.
//!
//! Our coroutines fetch their result in the same step in which their task continues. So there is no moment at which a
//! grant is on its way and belongs to nobody: a task that is cancelled before that step finds the call still there, and
//! drops it, which withdraws the attempt or releases the lock.

use crate::calls::anchor::{AnchoredCallbacks, CallbackAnchor};
use crate::calls::event_loop;
use crate::calls::waker::{Waker, wake_at};
use crate::guest::error::unpicklable;
use crate::guest::exit::is_over;
use crate::guest::sync::{intern, lock_ignoring_poison};
use pyo3::exceptions::{PyRuntimeError, PyRuntimeWarning, PyStopIteration};
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};
use std::borrow::Cow;
use std::ffi::CString;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use zklock::Error;
use zklock::face::Process;
use zklock::further::Started;

/// A call that goes on in the background, and what Python gets from it. Dropping it ends the wait.
pub(crate) trait Pending: Send {
    /// Returns the result, if it is there. If not, the waker will be used.
    fn fetch(&mut self, py: Python<'_>) -> Option<PyResult<Py<PyAny>>>;

    /// When to fetch it, even if the waker was not used.
    fn due(&self) -> Option<Instant>;
}

struct GoesOn<T, F> {
    started: Started<T>,
    convert: Option<F>,
}

impl<T, F> Pending for GoesOn<T, F>
where
    T: Send,
    F: FnOnce(Python<'_>, Result<T, Error>) -> PyResult<Py<PyAny>> + Send,
{
    fn fetch(&mut self, py: Python<'_>) -> Option<PyResult<Py<PyAny>>> {
        let result = self.started.fetch()?;
        self.convert.take().map(|convert| convert(py, result))
    }

    fn due(&self) -> Option<Instant> {
        self.started.due()
    }
}

/// The future that a task waits for, as its iterator, and the timer that sets it when the result is due.
pub(crate) struct Future {
    future: Py<PyAny>,
    timer: Option<Py<PyAny>>,
}

pub(crate) type Begin = Box<dyn FnOnce(Python<'_>, &Arc<Waker>) -> PyResult<Stage> + Send>;

/// An awaitable of zklock. It may be awaited once, or be wrapped in a task.
#[pyclass(frozen, module = "zklock")]
pub(crate) struct Coroutine {
    what: Cow<'static, str>,
    waker: Arc<Waker>,
    stage: Mutex<Stage>,
    /// Keeps the client or the hold alive until the coroutine is finished.
    anchor: Mutex<Option<Py<CallbackAnchor>>>,
    process: Process,
}

/// How far it has come.
pub(crate) enum Stage {
    New(Begin),
    /// Started, whether or not anything waits for it yet.
    Waits {
        pending: Box<dyn Pending>,
        future: Option<Future>,
    },
    Done(Py<PyAny>),
    Over,
}

impl Stage {
    /// A call that goes on, and whose result will be converted.
    pub(crate) fn begun<T: Send + 'static>(
        started: Started<T>,
        convert: impl FnOnce(Python<'_>, Result<T, Error>) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Self {
        Self::Waits { pending: Box::new(GoesOn { started, convert: Some(convert) }), future: None }
    }
}

impl Coroutine {
    /// Makes an awaitable that starts when it is awaited.
    pub(crate) fn new(
        what: impl Into<Cow<'static, str>>,
        begin: impl FnOnce(Python<'_>, &Arc<Waker>) -> PyResult<Stage> + Send + 'static,
    ) -> Self {
        Self::at(what, Arc::default(), Stage::New(Box::new(begin)))
    }

    /// Returns an awaitable that has already started, and need not be awaited.
    pub(crate) fn begun(
        what: impl Into<Cow<'static, str>>,
        begin: impl FnOnce(&Arc<Waker>) -> PyResult<Stage>,
    ) -> PyResult<Self> {
        let waker = Arc::default();
        let stage = begin(&waker)?;
        Ok(Self::at(what, waker, stage))
    }

    /// Returns an awaitable that already has its result.
    pub(crate) fn done(what: impl Into<Cow<'static, str>>, value: Py<PyAny>) -> Self {
        Self::at(what, Arc::default(), Stage::Done(value))
    }

    fn at(what: impl Into<Cow<'static, str>>, waker: Arc<Waker>, stage: Stage) -> Self {
        let what = what.into();
        Self { what, waker, stage: Mutex::new(stage), anchor: Mutex::default(), process: Process::current() }
    }

    /// Keeps the client or the hold of these callbacks alive until the coroutine is finished.
    pub(crate) fn keeping(self, callbacks: Option<Arc<AnchoredCallbacks>>) -> Self {
        // If there is no memory for the anchor, it goes on without one.
        let anchor = Python::attach(|py| callbacks?.anchor(py).ok());
        *lock_ignoring_poison(&self.anchor) = anchor;
        self
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

    fn end(&self) -> Stage {
        let stage = std::mem::replace(&mut *lock_ignoring_poison(&self.stage), Stage::Over);
        self.let_go();
        stage
    }

    fn go_on(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        // No Python code runs while the mutex is held.
        let mut stage = std::mem::replace(&mut *lock_ignoring_poison(&self.stage), Stage::Over);
        if let Stage::New(begin) = stage {
            // Without an event loop it must not work by chance when there is nothing to wait for.
            event_loop::running(py)?;
            stage = begin(py, &self.waker)?;
        }
        let mut pending = match stage {
            Stage::Waits { pending, future } => {
                if let Some(future) = future {
                    // It is finished, or this raises the reason why not.
                    match future.future.bind(py).call_method0(intern!(py, "__next__")) {
                        Err(error) if error.is_instance_of::<PyStopIteration>(py) => future.cancel_timer(py),
                        Err(error) => {
                            future.cancel_timer(py);
                            return Err(error);
                        }
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
            Stage::New(_) | Stage::Over => return Err(self.awaited_before()),
        };
        loop {
            self.waker.clear();
            if let Some(result) = pending.fetch(py) {
                return result.and_then(|value| Err(returned(value)));
            }
            let running = event_loop::running(py)?;
            let future = running.call_method0(intern!(py, "create_future"))?;
            if self.waker.wakes_task(&running, &future)? {
                let timer = pending.due().map(|due| wake_at(due, &running, &future)).transpose()?;
                let future = future.call_method0(intern!(py, "__await__"))?;
                let waits_for = future.call_method0(intern!(py, "__next__"))?.unbind();
                let future = Future { future: future.unbind(), timer };
                *lock_ignoring_poison(&self.stage) = Stage::Waits { pending, future: Some(future) };
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
        self.close(kind.py());
        let exception = match value {
            Some(value) if value.is_instance_of::<pyo3::exceptions::PyBaseException>() => value,
            Some(value) => kind.call1((value,))?,
            None if kind.is_instance_of::<pyo3::exceptions::PyBaseException>() => kind,
            None => kind.call0()?,
        };
        Err(PyErr::from_value(exception))
    }

    fn close(&self, py: Python<'_>) {
        let stage = self.end();
        if let Stage::Waits { future: Some(future), .. } = &stage {
            future.cancel_timer(py);
        }
        // Drop it after the mutex is released: dropping may run any Python code.
        drop(stage);
    }

    #[getter]
    fn __name__(&self) -> &str {
        &self.what
    }

    #[getter]
    fn __qualname__(&self) -> &str {
        &self.what
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
            Ok(Stage::Waits { future: Some(future), .. }) => {
                visit.call(&future.timer)?;
                visit.call(&future.future)
            }
            Ok(Stage::Done(value)) => visit.call(value),
            _ => Ok(()),
        }
    }

    fn __clear__(&self) {
        drop(self.end());
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

impl Future {
    /// Otherwise the loop would keep the timer until its time, which may be long after the wait.
    fn cancel_timer(&self, py: Python<'_>) {
        if let Some(timer) = &self.timer {
            // The loop may be closed.
            let _ = timer.call_method0(py, intern!(py, "cancel"));
        }
    }
}
