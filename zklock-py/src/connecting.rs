//! Calls of a client and of what it makes. They connect first if necessary.

use crate::bell::Bell;
use crate::coroutine::{Begun, Coroutine};
use crate::shared_client::SharedClient;
use crate::wait::detached;
use pyo3::prelude::*;
use std::sync::Arc;
use zklock_core::Error;
use zklock_core::face::Call;

impl SharedClient {
    /// Makes a call that waits.
    pub(crate) fn call<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce() -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        self.prepare(py)?;
        detached(py, call)
    }

    /// Makes a call that can be awaited.
    pub(crate) fn coroutine<T: Send + 'static>(
        self: &Arc<Self>,
        what: &'static str,
        begin: impl FnOnce(&Arc<Bell>) -> Result<Call<T>, Error> + Send + 'static,
        convert: impl FnOnce(Python<'_>, Result<T, Error>) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Coroutine {
        let shared = self.clone();
        Coroutine::new(what, move |py, bell| {
            shared.prepare(py)?;
            match begin(bell) {
                Ok(call) => Ok(Begun::call(call, convert)),
                Err(error) => convert(py, Err(error)).map(Begun::Done),
            }
        })
        .keeping(&self.callbacks.anchored)
    }
}
