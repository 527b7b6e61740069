//! Faults, with their Python names.

use super::embedded::{Embedded, is_closed};
use crate::guest::error::{invalid, unpicklable};
use crate::guest::number::{Timeout, patience, seconds};
use crate::guest::wait::in_slices;
use pyo3::prelude::*;
use std::sync::Weak;
use zklock_testkit::{Fault, Kind};

/// A session, or its number.
#[derive(FromPyObject)]
pub(super) enum SessionLike {
    #[pyo3(transparent, annotation = "int")]
    Number(i64),
    #[pyo3(annotation = "Session")]
    Session { id: i64 },
}

impl SessionLike {
    pub(super) fn id(&self) -> i64 {
        match *self {
            Self::Number(id) | Self::Session { id } => id,
        }
    }
}

pub(super) fn fault(py: Python<'_>, fault: &str, kind: &str, delay: Option<f64>) -> PyResult<Fault> {
    let kind: Kind = kind.parse().map_err(|error| invalid(py, format!("{error}")))?;
    let delay = delay.map(|delay| seconds(py, "delay", delay)).transpose()?;
    Fault::named(fault, kind, delay).map_err(|error| invalid(py, error))
}

pub(super) fn positive(py: Python<'_>, name: &str, number: i64) -> PyResult<u64> {
    let is_wrong = || invalid(py, format!("{name}={number}: it is a number from 1 on"));
    u64::try_from(number).ok().filter(|&number| number > 0).ok_or_else(is_wrong)
}

/// A fault that was injected, which tells when it has struck. Dropping this object does not remove the fault. See
/// ``Server.inject``.
#[pyclass(frozen, weakref, module = "zklock.testing")]
pub(crate) struct Injected {
    pub(super) injected: zklock_testkit::Injected,
    pub(super) name: String,
    pub(super) embedded: Weak<Embedded>,
}

impl Injected {
    fn refuse_forked(&self, py: Python<'_>) -> PyResult<()> {
        self.embedded.upgrade().map_or(Ok(()), |embedded| embedded.refuse_forked(py))
    }
}

#[pymethods]
impl Injected {
    /// How often the fault has struck. This can be read even after the server is closed.
    #[getter]
    fn strikes(&self, py: Python<'_>) -> PyResult<u64> {
        self.refuse_forked(py)?;
        Ok(self.injected.strikes())
    }

    /// Waits until the fault has struck. Returns ``True`` then, and ``False`` if it has not within ``timeout`` seconds;
    /// ``None`` waits for ever. Raises ``Closed`` if the server is closed before.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<Timeout>) -> PyResult<bool> {
        let timeout = patience(py, timeout)?;
        self.refuse_forked(py)?;
        let seen = in_slices(py, timeout, |slice| {
            if self.injected.wait(slice) {
                return Some(true);
            }
            let is_open = self.embedded.upgrade().is_some_and(|embedded| embedded.call(|_| ()).is_some());
            (!is_open).then_some(false)
        })?;
        match seen {
            Some(true) => Ok(true),
            Some(false) => Err(is_closed(py)),
            None => Ok(false),
        }
    }

    fn __repr__(&self) -> String {
        format!("<zklock.testing.Injected {}>", self.name)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable("Injected", "look at it where the server runs"))
    }
}
