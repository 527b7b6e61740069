//! How long to wait: the timeouts of `threading.Lock`, and ours.

use crate::guest::error::invalid;
use crate::guest::number::{self, Timeout, no_timeout};
use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyFloat;
use std::time::Duration;

/// The timeout of `threading`, in seconds.
const TIMEOUT_MAX: f64 = i64::MAX as f64 / 1e9;

/// Returns how long `acquire` waits, from the arguments of `threading.Lock.acquire`, which are checked in the same way. Without
/// arguments that is the usual time.
pub(crate) fn patience(
    usual: Option<Duration>,
    &Blocking(blocks): &Blocking,
    timeout: &Seconds,
) -> PyResult<Option<Duration>> {
    match *timeout {
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
        Seconds::Usual => Ok(usual),
        Seconds::Given(-1.0) => Ok(None),
        Seconds::Given(seconds) if seconds < 0.0 => {
            Err(PyValueError::new_err("timeout value must be a non-negative number"))
        }
        Seconds::Given(seconds) => Ok(Some(Duration::from_secs_f64(seconds))),
    }
}

/// The `blocking` argument of `acquire`: anything that is true or false, except a number that must be meant as a timeout.
pub(crate) struct Blocking(pub(crate) bool);

impl<'py> FromPyObject<'_, 'py> for Blocking {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let number = value.extract().ok().filter(|number: &f64| ![0.0, 1.0].contains(number));
        if let Some(seconds) = number {
            let message = format!(
                "acquire({seconds}): the first argument is blocking, so write acquire(timeout={seconds})"
            );
            return Err(invalid(value.py(), message));
        }
        value.is_truthy().map(Self)
    }
}

/// The timeout of `acquire`, which may be left out: a float or an integer (and nothing that only behaves like one), or
/// `None`, which waits for ever, as everywhere else.
pub(crate) enum Seconds {
    Usual,
    Given(f64),
}

impl<'py> FromPyObject<'_, 'py> for Seconds {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let number = if value.is_none() {
            Ok(-1.0)
        } else if value.is_instance_of::<PyFloat>() {
            value.extract()
        } else {
            // Seconds beyond 2⁵³ are too large anyway.
            value.extract::<i64>().map(|seconds| seconds as f64)
        };
        number.map(Self::Given).map_err(|error| no_timeout(value, error))
    }
}

/// A timeout that may be left out, which differs from `None`.
pub(crate) enum Given {
    Usual,
    Seconds(Option<Timeout>),
}

impl Given {
    pub(crate) fn patience(self, py: Python<'_>, usual: Option<Duration>) -> PyResult<Option<Duration>> {
        match self {
            Self::Usual => Ok(usual),
            Self::Seconds(seconds) => number::patience(py, seconds),
        }
    }
}

impl<'py> FromPyObject<'_, 'py> for Given {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        value.extract().map(Self::Seconds)
    }
}
