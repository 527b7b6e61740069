//! A thing that can be acquired.

use crate::aio::is_generator_exit;
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
use pyo3::types::PyFloat;
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
        self.lock.get().or_else(|| self.connect_to(&self.shared.connector.connected()?).ok())
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
        let Some(lock) = self.connected() else { return Ok(None) };
        Ok(lock.again(owner)?.map(|hold| Held::new(hold, owner, true)))
    }

    /// Waits until the lock is held; an error of its own is that the time was over.
    fn wait(&self, py: Python<'_>, timeout: Option<Duration>) -> PyResult<Result<Arc<Held>, Error>> {
        let owner = Owner::current();
        if let Some(held) = self.again(owner).map_err(|error| raised(py, &error))? {
            return Ok(Ok(held));
        }
        if self.connected().is_none() {
            log::prepare(py)?;
        }
        let begun = Instant::now();
        loop {
            let granted = detached(py, || match self.wait_detached(timeout, begun) {
                Err(error) if error.kind() == ErrorKind::Timeout => Ok(Err(error)),
                granted => granted.map(Ok),
            })?;
            match granted {
                // It took so long to come back into the interpreter that the hold has died meanwhile: queue again.
                Ok(hold) if hold.valid_for().is_zero() => drop(hold),
                granted => return Ok(granted.map(|hold| Held::new(hold, owner, self.is_reentrant))),
            }
        }
    }

    /// One deadline, counted from `begun`.
    fn wait_detached(&self, timeout: Option<Duration>, begun: Instant) -> Result<blocking::Hold, Error> {
        let Some(timeout) = timeout else {
            return self.connect(None)?.acquire();
        };
        if timeout.is_zero() {
            return self.connect(None)?.acquire_timeout(timeout);
        }
        let lock = self.connect(Some(timeout))?;
        lock.acquire_timeout(left(timeout, begun))
    }

    fn connect(&self, timeout: Option<Duration>) -> Result<&blocking::Lock, Error> {
        match self.connected() {
            Some(lock) => Ok(lock),
            None => self.connect_to(&self.shared.connector.connect(timeout)?),
        }
    }

    /// How long `acquire` is to wait, by the arguments of `threading.Lock.acquire` and with its objections.
    pub(crate) fn patience(&self, blocking: &Blocking, timeout: &Seconds) -> PyResult<Patience> {
        let Blocking(blocks) = *blocking;
        let timeout = match *timeout {
            Seconds::Given(seconds) if seconds.is_nan() => {
                Err(PyValueError::new_err("Invalid value NaN (not a number)"))
            }
            Seconds::Given(seconds) if seconds.abs() > TIMEOUT_MAX => {
                Err(PyOverflowError::new_err("timeout value is too large"))
            }
            Seconds::Given(seconds) if !blocks && seconds != -1.0 => {
                Err(PyValueError::new_err("can't specify a timeout for a non-blocking call"))
            }
            _ if !blocks => Ok(Some(Duration::ZERO)),
            Seconds::Usual => return Ok(Patience { timeout: self.timeout, raises: true }),
            Seconds::Given(-1.0) => Ok(None),
            Seconds::Given(seconds) if seconds < 0.0 => {
                Err(PyValueError::new_err("timeout value must be a non-negative number"))
            }
            Seconds::Given(seconds) => Ok(Some(Duration::from_secs_f64(seconds))),
        };
        Ok(Patience { timeout: timeout?, raises: false })
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
/// On Python 3.14 a signal's exception may come just before the block is entered, as with any lock, and then the block is
/// not left either: where handlers raise, write ``with lock.hold() as hold``, which is safe there.
///
/// The block raises ``Timeout`` if the lock was not to be had in time, and at its end ``LockLost`` if it was lost
/// meanwhile, unless it raises something itself.
///
/// ``acquire``, ``release`` and ``locked`` are those of ``threading.Lock``; or of ``threading.RLock``, if the
/// lock is reentrant. What differs: where this thread itself holds the lock, and it is not reentrant, ``acquire`` raises
/// ``Deadlock`` at once, whatever the timeout, unless it is not to block. What ``acquire`` got is held until it is
/// released, or the client is closed, also if the lock object is gone.
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
    /// Without a timeout it waits as long as the lock was made to, and raises ``Timeout`` then; -1 is for ever. With
    /// ``blocking=False`` it waits for the ensemble's answer, and for nothing else. Why it was ``False`` is logged.
    ///
    /// Raises ``Deadlock`` if this thread holds the lock already; ``Unreachable`` if the ensemble does not answer, and
    /// no timeout ends the wait before; ``ForeignContender``, ``LockLost``, ``Refused`` and ``Closed`` as they say.
    #[pyo3(signature = (blocking=Blocking(true), timeout=Seconds::Usual), text_signature = "($self, blocking=True, timeout=...)")]
    #[expect(clippy::needless_pass_by_value, reason = "what Python gives is extracted by value")]
    fn acquire(&self, py: Python<'_>, blocking: Blocking, timeout: Seconds) -> PyResult<bool> {
        let Patience { timeout, raises } = self.core.patience(&blocking, &timeout)?;
        match self.core.wait(py, timeout)? {
            Ok(held) => {
                self.core.place.keep(&held, false);
                Ok(true)
            }
            Err(error) if raises => Err(raised(py, &error)),
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
        let held = self.core.place.release(py, Owner::current(), self.core.is_reentrant)?;
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
        let queue = detached(py, || self.core.connect(None)?.contenders())?;
        value::contenders(py, queue)
    }

    fn __enter__(&self, py: Python<'_>) -> PyResult<Py<Hold>> {
        let held = self.core.wait(py, self.core.timeout)?.map_err(|error| raised(py, &error))?;
        let hold = Hold::of(py, held.clone(), false)?;
        // CPython 3.14 runs the handlers of signals between this call and the block, which then is not left either:
        // those that are due run here, where the hold is released when they raise.
        py.check_signals()?;
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
        match self.core.place.leave(Owner::current()) {
            Some(held) => {
                let left = leave(py, &held, has_failed);
                self.core.place.keep_on(&held, is_generator_exit(kind)?);
                left
            }
            None if has_failed => Ok(false),
            None => Err(self.core.place.released_before(py)),
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

/// How long `acquire` is to wait.
pub(crate) struct Patience {
    pub(crate) timeout: Option<Duration>,
    /// Whether it raises that the time is over. A call that names no time need not look at what it returns: then it is
    /// not to go on without the lock.
    pub(crate) raises: bool,
}

/// Whether `acquire` is to wait: whatever is true or false.
pub(crate) struct Blocking(pub(crate) bool);

impl<'py> FromPyObject<'_, 'py> for Blocking {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        value.is_truthy().map(Self)
    }
}

/// The timeout of `acquire`, which may be left out: a float or an integer, and nothing that is only like one.
pub(crate) enum Seconds {
    Usual,
    Given(f64),
}

impl<'py> FromPyObject<'_, 'py> for Seconds {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let number = if value.is_instance_of::<PyFloat>() {
            value.extract()
        } else {
            // Seconds beyond 2⁵³ are too large anyhow.
            value.extract::<i64>().map(|seconds| seconds as f64)
        };
        number.map(Self::Given)
    }
}

/// What is left of a time that began then.
pub(crate) fn left(timeout: Duration, begun: Instant) -> Duration {
    let spent = begun.elapsed();
    // An odd number is not worth it where nothing but the call itself came before.
    let left = if spent < Duration::from_millis(1) { timeout } else { timeout.saturating_sub(spent) };
    // Zero would be to try once.
    left.max(Duration::from_nanos(1))
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
