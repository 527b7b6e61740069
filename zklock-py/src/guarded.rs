//! Writes that are done only if the lock is held.

use crate::calls::anchor::CallbackAnchor;
use crate::calls::coroutine::warn;
use crate::guest::error::unpicklable;
use crate::guest::exit::is_over;
use crate::guest::number;
use crate::guest::sync::lock_ignoring_poison;
use crate::guest::value::versions;
use crate::held::Held;
use crate::noun::{Class, Face, noun};
use crate::verb::{Verb, or_raise};
use pyo3::exceptions::{PyRuntimeWarning, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes};
use pyo3::{PyTraverseError, PyVisit};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use zklock::further::Committed;

/// Adds one to a list of the core's, which is made when it is committed.
type Write = Box<dyn Fn(zklock::further::Guarded) -> zklock::further::Guarded + Send + Sync>;

/// The methods that a ``Guarded`` and an ``AsyncGuarded`` share: they add writes to the list.
#[pyclass(frozen, subclass, module = "zklock")]
pub(crate) struct BaseGuarded {
    anchor: Py<CallbackAnchor>,
    inner: Arc<Held>,
    writes: Mutex<Vec<Write>>,
    is_committed: AtomicBool,
}

impl BaseGuarded {
    /// Makes the object of a face.
    pub(crate) fn object(py: Python<'_>, face: Face, inner: Arc<Held>) -> PyResult<Py<PyAny>> {
        let anchor = inner.anchored().anchor(py)?;
        let base = Self { anchor, inner, writes: Mutex::default(), is_committed: AtomicBool::new(false) };
        match face {
            Face::Threads => Py::new(py, Guarded::from_base(base)).map(Py::into_any),
            Face::Asyncio => Py::new(py, AsyncGuarded::from_base(base)).map(Py::into_any),
        }
    }
}

impl Drop for BaseGuarded {
    fn drop(&mut self) {
        let forgotten =
            !self.is_committed.load(Ordering::Relaxed) && !lock_ignoring_poison(&self.writes).is_empty();
        if forgotten && !is_over() && !self.inner.hold.process().is_forked() {
            let path = self.inner.hold.path();
            warn::<PyRuntimeWarning>(&format!("writes guarded by the hold of {path} were never committed"));
        }
    }
}

#[pymethods]
impl BaseGuarded {
    /// Adds a write that creates a persistent node. Its parent must exist.
    ///
    /// Raises ``TypeError`` if ``data`` is not bytes.
    #[pyo3(signature = (path, data=None), text_signature = "($self, path, data=b'')")]
    fn create<'py>(
        slf: Bound<'py, Self>,
        path: String,
        data: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Self>> {
        let data = data.map(bytes).transpose()?.unwrap_or_default();
        lock_ignoring_poison(&slf.get().writes).push(Box::new(move |list| list.create(&path, &data)));
        Ok(slf)
    }

    /// Adds a write that sets the data of a node, which must have this version. ``None`` means any version.
    ///
    /// Raises ``TypeError`` if ``data`` is not bytes, and ``InvalidInput`` if no node can have this ``version``.
    #[pyo3(signature = (path, data, version=None))]
    fn set_data<'py>(
        slf: Bound<'py, Self>,
        path: String,
        data: &Bound<'py, PyAny>,
        version: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Self>> {
        let (data, version) = (bytes(data)?, version.map(number::version).transpose()?);
        lock_ignoring_poison(&slf.get().writes)
            .push(Box::new(move |list| list.set_data(&path, &data, version)));
        Ok(slf)
    }

    /// Adds a write that deletes a node, which must have this version. ``None`` means any version.
    ///
    /// Raises ``InvalidInput`` if no node can have this ``version``.
    #[pyo3(signature = (path, version=None))]
    fn delete<'py>(
        slf: Bound<'py, Self>,
        path: String,
        version: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Self>> {
        let version = version.map(number::version).transpose()?;
        lock_ignoring_poison(&slf.get().writes).push(Box::new(move |list| list.delete(&path, version)));
        Ok(slf)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.anchor)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let (class, base) = (slf.get_type(), slf.get());
        let (path, count) = (base.inner.hold.path(), lock_ignoring_poison(&base.writes).len());
        Ok(format!("<zklock.{} by the hold of {path:?}, {count} writes>", class.name()?))
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable("guarded write", "commit it where the lock is held"))
    }
}

noun! {
    /// A list of writes to ZooKeeper that are done together, and only if the lock is held. See ``Hold.guarded``.
    struct Guarded;

    /// A ``Guarded`` for asyncio. See ``AsyncHold.guarded``.
    struct AsyncGuarded;

    both(Held in BaseGuarded) {
        /// Does all of the writes or none. Returns the version of each node after its write: 0 if the node was created,
        /// ``None`` if it was deleted. In asyncio, if it is cancelled, the writes may have been done or not.
        ///
        /// Raises ``LockLost`` if the lock was no longer held, and ``Conflict`` if a node did not allow its write because it
        /// had another version, already existed, or did not exist. The ``index`` and ``path`` of the ``Conflict`` say which
        /// write it was. In both cases nothing was written. Raises ``Uncertain`` if the reply was lost: either all or none of
        /// the writes are done, see ``Hold.read``. Raises ``NotHeld`` if the hold was released, and
        /// ``InvalidInput`` for an invalid path, for more than 512 KiB in total, or on servers of version
        /// 3.4 for a hold of a single-node lock.
        fn commit(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
            let (base, held) = (slf.as_super().get(), Self::inner(slf));
            base.is_committed.store(true, Ordering::Relaxed);
            let writes = lock_ignoring_poison(&base.writes);
            let list = writes.iter().fold(held.hold.guarded(), |list, write| write(list));
            let commit = Verb::new(list.commit(), or_raise(|py, written: Committed| versions(py, &written)));
            Self::make(slf.py(), "commit", commit.of_anchored(held.anchored()))
        }
    }
}

fn bytes(data: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    if let Ok(bytes) = data.cast::<PyBytes>() {
        return Ok(bytes.as_bytes().to_vec());
    }
    if let Ok(bytes) = data.cast::<PyByteArray>() {
        return Ok(bytes.to_vec());
    }
    let message = format!("data is bytes, not {}: encode it first", data.get_type().name()?);
    Err(PyTypeError::new_err(message))
}
