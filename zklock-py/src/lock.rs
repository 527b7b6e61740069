//! A thing that can be acquired.

use crate::aio::lock::AsyncLock;
use crate::coroutine::Coroutine;
use crate::error::{raised, unpicklable};
use crate::hold::{Hold, leave, release};
use crate::log;
use crate::place::{Held, Place, Shared};
use crate::value;
use crate::wait::detached;
use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use zklock_core::{Error, ErrorKind, LockOptions, Owner, blocking};

/// That of `threading`, in seconds.
const TIMEOUT_MAX: f64 = i64::MAX as f64 / 1e9;

/// What both faces of a lock share.
pub(crate) struct Core {
    pub(crate) shared: Arc<Shared>,
    pub(crate) place: Arc<Place>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) is_reentrant: bool,
    lock: OnceLock<blocking::Lock>,
}

impl Core {
    pub(crate) fn new(
        shared: Arc<Shared>,
        path: &str,
        timeout: Option<Duration>,
        is_reentrant: bool,
    ) -> Result<Self, Error> {
        zklock_core::check_lock_path(path)?;
        let place = shared.place(path);
        Ok(Self { shared, place, timeout, is_reentrant, lock: OnceLock::new() })
    }

    /// The lock of the core, if the client has connected.
    pub(crate) fn connected(&self) -> Option<&blocking::Lock> {
        self.lock.get()
    }

    pub(crate) fn connect_to(&self, client: &blocking::Client) -> Result<&blocking::Lock, Error> {
        let lock = client.mutex_with(&self.place.path, LockOptions::new().reentrant(self.is_reentrant))?;
        Ok(self.lock.get_or_init(|| lock))
    }

    /// One more hold, where a reentrant lock is held by its owner.
    pub(crate) fn again(&self, owner: Owner) -> Result<Option<Arc<Held>>, Error> {
        if !self.is_reentrant {
            return Ok(None);
        }
        let Some(lock) = self.lock.get() else { return Ok(None) };
        Ok(lock.again(owner)?.map(|hold| Held::new(hold, owner, true)))
    }

    /// Waits until the lock is held.
    fn wait(&self, py: Python<'_>, timeout: Option<Duration>) -> PyResult<Result<Arc<Held>, Error>> {
        let owner = Owner::current();
        if let Some(held) = self.again(owner).map_err(|error| raised(py, &error))? {
            return Ok(Ok(held));
        }
        if self.lock.get().is_none() {
            log::prepare(py)?;
        }
        let granted = detached(py, || match self.wait_detached(timeout) {
            Err(error) if error.kind() == ErrorKind::Timeout => Ok(Err(error)),
            granted => granted.map(Ok),
        })?;
        Ok(granted.map(|hold| Held::new(hold, owner, self.is_reentrant)))
    }

    fn wait_detached(&self, timeout: Option<Duration>) -> Result<blocking::Hold, Error> {
        let begun = Instant::now();
        let tries_once = timeout.is_some_and(|timeout| timeout.is_zero());
        let lock = match self.lock.get() {
            Some(lock) => lock,
            None => self.connect_to(&self.shared.connector.connect(timeout.filter(|_| !tries_once))?)?,
        };
        match timeout {
            None => lock.acquire(),
            Some(timeout) if tries_once => lock.acquire_timeout(timeout),
            // One deadline, of which connecting may have taken a part.
            Some(timeout) => {
                lock.acquire_timeout(timeout.saturating_sub(begun.elapsed()).max(Duration::from_nanos(1)))
            }
        }
    }

    /// How long `acquire` is to wait, by the arguments of `threading.Lock.acquire` and with its objections.
    pub(crate) fn patience(
        &self,
        blocking: Option<&Bound<'_, PyAny>>,
        timeout: Option<Seconds>,
    ) -> PyResult<Option<Duration>> {
        let blocks = blocking.map_or(Ok(true), PyAnyMethods::is_truthy)?;
        match timeout.map(|Seconds(seconds)| seconds) {
            Some(seconds) if seconds.is_nan() => {
                Err(PyValueError::new_err("Invalid value NaN (not a number)"))
            }
            Some(seconds) if !blocks && seconds != -1.0 => {
                Err(PyValueError::new_err("can't specify a timeout for a non-blocking call"))
            }
            _ if !blocks => Ok(Some(Duration::ZERO)),
            None => Ok(self.timeout),
            Some(-1.0) => Ok(None),
            Some(seconds) if seconds < 0.0 => {
                Err(PyValueError::new_err("timeout value must be a non-negative number"))
            }
            Some(seconds) if seconds > TIMEOUT_MAX => {
                Err(PyOverflowError::new_err("timeout value is too large"))
            }
            Some(seconds) => Ok(Some(Duration::from_secs_f64(seconds))),
        }
    }

    pub(crate) fn describe(&self, class: &str) -> String {
        let reentrant = if self.is_reentrant { " reentrant" } else { "" };
        let held = self.place.held();
        let state = match held.last() {
            Some(held) => {
                let (token, seconds) = (held.hold.token(), held.hold.valid_for().as_secs_f64());
                format!("held with token {token} for {seconds:.3} s at least")
            }
            None => "not held here".to_owned(),
        };
        format!("<zklock.{class}{reentrant} {:?} {state}>", self.place.path)
    }
}

/// A lock at a path. It can be shared by threads, and holds nothing itself: a ``with`` block does.
///
/// >>> lock = zk.mutex("/locks/doc", timeout=5)
/// >>> with lock as hold:
/// ...     hold.token > 0
/// True
///
/// ``acquire``, ``release`` and ``locked`` are those of ``threading.Lock``; or of ``threading.RLock``, if the
/// lock is reentrant. What differs: where the wait could never end, since this thread itself holds the lock,
/// ``acquire`` raises ``Deadlock`` at once. What ``acquire`` got is held until it is released, or the client is
/// closed, also if the lock object is gone.
#[pyclass(frozen, weakref, module = "zklock")]
pub(crate) struct Lock {
    pub(crate) core: Arc<Core>,
}

#[pymethods]
impl Lock {
    /// The path of the lock.
    #[getter]
    fn path(&self) -> &str {
        &self.core.place.path
    }

    /// The same lock for asyncio.
    #[getter]
    fn aio(&self) -> AsyncLock {
        AsyncLock { core: self.core.clone() }
    }

    /// Acquires the lock, and says whether it did, as ``threading.Lock.acquire`` does.
    ///
    /// >>> lock = zk.mutex("/locks/doc")
    /// >>> lock.acquire(timeout=5)
    /// True
    /// >>> lock.acquire(blocking=False)
    /// False
    /// >>> lock.release()
    ///
    /// Without a timeout it waits as long as the lock was made to; -1 is for ever. With ``blocking=False`` it
    /// waits for the ensemble's answer, and for nothing else.
    #[pyo3(signature = (blocking=None, timeout=None), text_signature = "($self, blocking=True, timeout=-1)")]
    fn acquire(
        &self,
        py: Python<'_>,
        blocking: Option<&Bound<'_, PyAny>>,
        timeout: Option<Seconds>,
    ) -> PyResult<bool> {
        let timeout = self.core.patience(blocking, timeout)?;
        match self.core.wait(py, timeout)? {
            Ok(held) => {
                self.core.place.keep(&held, false);
                Ok(true)
            }
            Err(error) => {
                log::inform(py, &error.to_string());
                Ok(false)
            }
        }
    }

    /// Acquires the lock and gives the hold as a value, which is to be released.
    ///
    /// >>> hold = zk.mutex("/locks/doc").hold(timeout=5)
    /// >>> hold.release()
    ///
    /// It waits for ``timeout`` seconds at most, for ever if that is ``None``, or else as long as the lock was
    /// made to; zero tries once. Raises ``Timeout`` then.
    #[pyo3(signature = (timeout=Given::Usual), text_signature = "($self, timeout=...)")]
    fn hold(&self, py: Python<'_>, timeout: Given) -> PyResult<Py<Hold>> {
        let timeout = timeout.patience(py, &self.core)?;
        let held = self.core.wait(py, timeout)?.map_err(|error| raised(py, &error))?;
        self.core.place.know(&held);
        Hold::of(py, held, true)
    }

    /// Releases what this thread acquired last with ``acquire`` or a ``with`` block, or if the lock is not
    /// reentrant, what any thread did.
    ///
    /// Raises ``NotHeld``, which is a ``RuntimeError``, if there is nothing to release; else as ``Hold.release``.
    fn release(&self, py: Python<'_>) -> PyResult<()> {
        let held = self.core.place.release(py, Owner::current())?;
        release(py, &held)
    }

    /// Whether this client holds the lock. It asks nobody: for others see ``contenders``.
    fn locked(&self) -> bool {
        !self.core.place.held().is_empty()
    }

    /// What this thread acquired last with ``acquire`` or a ``with`` block and has not released yet, or
    /// ``None``.
    #[getter]
    fn current(&self, py: Python<'_>) -> PyResult<Option<Py<Hold>>> {
        let held = self.core.place.current(Owner::current());
        held.map(|held| Hold::of(py, held, false)).transpose()
    }

    /// Who is in the queue, the holder first, of whatever library: a list of ``Contender``.
    ///
    /// >>> lock = zk.mutex("/locks/doc")
    /// >>> with lock as hold:
    /// ...     [contender.token == hold.token for contender in lock.contenders()]
    /// [True]
    fn contenders(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let queue = detached(py, || {
            let lock = match self.core.connected() {
                Some(lock) => lock,
                None => self.core.connect_to(&self.core.shared.connector.connect(None)?)?,
            };
            lock.contenders()
        })?;
        value::contenders(py, queue)
    }

    fn __enter__(&self, py: Python<'_>) -> PyResult<Py<Hold>> {
        let held = self.core.wait(py, self.core.timeout)?.map_err(|error| raised(py, &error))?;
        let hold = Hold::of(py, held.clone(), false)?;
        self.core.place.keep(&held, true);
        Ok(hold)
    }

    #[pyo3(signature = (kind, exception, traceback))]
    fn __exit__(
        &self,
        kind: &Bound<'_, PyAny>,
        exception: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let _ = (exception, traceback);
        let (py, has_failed) = (kind.py(), !kind.is_none());
        match self.core.place.leave(py, Owner::current()) {
            Ok(held) => leave(py, &held, has_failed),
            Err(_) if has_failed => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn __aenter__(&self, py: Python<'_>) -> PyResult<Coroutine> {
        self.aio().__aenter__(py)
    }

    #[pyo3(signature = (kind, exception, traceback))]
    fn __aexit__(
        &self,
        kind: &Bound<'_, PyAny>,
        exception: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<Coroutine> {
        self.aio().__aexit__(kind, exception, traceback)
    }

    fn __repr__(&self) -> String {
        self.core.describe("Lock")
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable("Lock", "send its path, and make a Client and a Lock in each process"))
    }
}

/// The timeout of `acquire`: a number, where that of all else may be `None`.
pub(crate) struct Seconds(f64);

impl<'py> FromPyObject<'_, 'py> for Seconds {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        value.extract().map(Self)
    }
}

/// A timeout that may be left out, which is not the same as `None`.
pub(crate) enum Given {
    Usual,
    Seconds(Option<f64>),
}

impl Given {
    pub(crate) fn patience(self, py: Python<'_>, core: &Core) -> PyResult<Option<Duration>> {
        match self {
            Self::Usual => Ok(core.timeout),
            Self::Seconds(seconds) => value::patience(py, seconds),
        }
    }
}

impl<'py> FromPyObject<'_, 'py> for Given {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        value.extract().map(Self::Seconds)
    }
}
