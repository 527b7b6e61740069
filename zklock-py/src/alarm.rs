//! What wakes a block when its hold is lost.

use crate::calls::waker::start_thread;
use crate::guest::error::raised;
use crate::guest::exit::later;
use crate::guest::sync::intern;
use crate::held::Held;
use pyo3::prelude::*;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};
use zklock_core::Watch;

/// Calls `wake()` of a block when its hold is lost, for as long as this exists.
///
/// It is no callback of the user's: those of one hold wait for each other, and a block that waited for them would be cancelled late.
/// The block must not be kept alive by what waits for the loss, so the reference to it is weak.
#[pyclass(frozen, module = "zklock")]
pub(crate) struct Alarm {
    _watch: Watch,
}

impl Alarm {
    pub(crate) fn set(held: &Held, block: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = block.py();
        start_thread().map_err(|error| raised(py, &error))?;
        let block = PyWeakrefReference::new(block)?.unbind();
        let wake = move |py: Python<'_>| {
            let Some(block) = block.bind(py).upgrade() else { return };
            if let Err(error) = block.call_method0(intern!(py, "wake")) {
                error.write_unraisable(py, Some(&block));
            }
        };
        let watch = held.hold.on_lost(move |_| drop(later(wake))).map_err(|error| raised(py, &error))?;
        Ok(Self { _watch: watch })
    }
}
