//! Plain values, which are classes written in Python; and numbers of seconds.

use crate::error;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyBool;
use std::time::{Duration, UNIX_EPOCH};
use zklock_core::{Dialect, HoldState, LossReason, QueuedContender, Stats};

pub(crate) fn state(py: Python<'_>, state: HoldState) -> PyResult<Py<PyAny>> {
    let name = match state {
        HoldState::Held => intern!(py, "HELD"),
        HoldState::AtRisk => intern!(py, "AT_RISK"),
        HoldState::Released => intern!(py, "RELEASED"),
        _ => intern!(py, "LOST"),
    };
    Ok(class(py, "HoldState")?.getattr(name)?.unbind())
}

pub(crate) fn reason(py: Python<'_>, reason: LossReason) -> PyResult<Py<PyAny>> {
    let name = match reason {
        LossReason::SessionExpired => intern!(py, "SESSION_EXPIRED"),
        LossReason::NodeDeleted => intern!(py, "NODE_DELETED"),
        LossReason::ClientClosed => intern!(py, "CLIENT_CLOSED"),
        LossReason::Forked => intern!(py, "FORKED"),
        _ => intern!(py, "LEASE_LAPSED"),
    };
    Ok(class(py, "LossReason")?.getattr(name)?.unbind())
}

pub(crate) fn stats(py: Python<'_>, stats: Stats) -> PyResult<Py<PyAny>> {
    let Stats { sessions, grants, losses, owed, .. } = stats;
    Ok(class(py, "Stats")?.call1((sessions, grants, losses, owed))?.unbind())
}

pub(crate) fn contenders(py: Python<'_>, queue: Vec<QueuedContender>) -> PyResult<Py<PyAny>> {
    let class = class(py, "Contender")?;
    let queue = queue.into_iter().map(|contender| {
        let since = contender.since.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let dialect = match contender.dialect {
            Dialect::Curator => "curator",
            Dialect::Kazoo => "kazoo",
            Dialect::WriteLock => "writelock",
            _ => "other",
        };
        let QueuedContender { name, identity, session, token, .. } = contender;
        class.call1((name, identity, session, token.value(), since, dialect))
    });
    Ok(queue.collect::<PyResult<Vec<_>>>()?.into_pyobject(py)?.unbind())
}

pub(crate) fn boolean(py: Python<'_>, value: bool) -> Py<PyAny> {
    PyBool::new(py, value).to_owned().into_any().unbind()
}

fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = MODULE.get_or_try_init(py, || py.import("zklock._values").map(Bound::unbind))?;
    module.bind(py).getattr(name)
}

/// How long to wait: `None` is for ever.
pub(crate) fn patience(py: Python<'_>, seconds: Option<f64>) -> PyResult<Option<Duration>> {
    match seconds {
        Some(seconds) if seconds.is_nan() || seconds < 0.0 => {
            let message = format!(
                "a timeout of {seconds} s: it is None, to wait for ever, or a number that is not negative"
            );
            Err(error::invalid(py, message))
        }
        // Beyond the end of time is for ever.
        seconds => Ok(seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())),
    }
}
