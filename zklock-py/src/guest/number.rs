//! Numbers that users give: times in seconds, and counts.

use crate::guest::error::invalid;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use std::time::Duration;
use zklock::face::parse_duration;

/// The argument `timeout`. Its error names it: Python shows the name that PyO3 adds only from 3.11 on, and only in tracebacks.
pub(crate) struct Timeout(pub(crate) f64);

impl<'py> FromPyObject<'_, 'py> for Timeout {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        value.extract().map(Self).map_err(|error| no_timeout(value, error))
    }
}

/// Names the argument in the error about a timeout that is no number.
pub(crate) fn no_timeout(value: Borrowed<'_, '_, PyAny>, error: PyErr) -> PyErr {
    if !error.is_instance_of::<PyTypeError>(value.py()) {
        return error;
    }
    PyTypeError::new_err(match value.repr() {
        Ok(given) => format!("timeout={given}: it is a number of seconds, such as timeout=5"),
        Err(_) => "timeout is a number of seconds, such as timeout=5".to_owned(),
    })
}

/// Reads how long to wait; `None` waits for ever.
pub(crate) fn patience(py: Python<'_>, timeout: Option<Timeout>) -> PyResult<Option<Duration>> {
    match timeout.map(|Timeout(seconds)| seconds) {
        Some(seconds) if seconds.is_nan() || seconds < 0.0 => {
            let message = format!(
                "a timeout of {seconds} s: give None to wait for ever, or a number that is not negative"
            );
            Err(invalid(py, message))
        }
        // A time too long to represent waits for ever.
        seconds => Ok(seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())),
    }
}

/// Reads a count.
pub(crate) fn count(py: Python<'_>, name: &str, count: i64) -> PyResult<u32> {
    u32::try_from(count)
        .map_err(|_| invalid(py, format!("{name}={count}: it is a number from 0 to {}", u32::MAX)))
}

/// Reads the version of a node. To ZooKeeper, any negative version means no check.
pub(crate) fn version(version: &Bound<'_, PyAny>) -> PyResult<i32> {
    match version.extract() {
        Ok(version) if version >= 0 => Ok(version),
        Err(error) if !error.is_instance_of::<PyOverflowError>(version.py()) => Err(error),
        _ => {
            let range = format!("it is a number from 0 to {}; leave it out if any version will do", i32::MAX);
            Err(invalid(version.py(), format!("version={version}: {range}")))
        }
    }
}

/// How long a period is, or how much later it begins: a number of seconds, a `timedelta`, or a text such as `1d`.
#[derive(Clone, Copy)]
pub(crate) struct Every(pub(crate) Duration);

impl<'py> FromPyObject<'_, 'py> for Every {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let py = value.py();
        if let Ok(text) = value.extract::<String>() {
            return parse_duration(&text).map(Self).map_err(|problem| invalid(py, problem));
        }
        if let Ok(seconds) = value.extract::<f64>() {
            let problem =
                |_| invalid(py, format!("{seconds} s: give a number of seconds that is not negative"));
            return Duration::try_from_secs_f64(seconds).map(Self).map_err(problem);
        }
        value.extract().map(Self)
    }
}

/// Reads a time that must be a number of seconds.
pub(crate) fn seconds(py: Python<'_>, name: &str, seconds: f64) -> PyResult<Duration> {
    /// Thirty years. A longer time would be shown with far too many digits.
    const LONGEST: f64 = 1e9;
    if seconds.is_nan() || seconds < 0.0 {
        let message = format!("{name} of {seconds} s: give a number of seconds that is not negative");
        return Err(invalid(py, message));
    }
    Ok(Duration::from_secs_f64(seconds.min(LONGEST)))
}
