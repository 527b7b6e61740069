//! The common part of blocking and asyncio barriers.

use crate::guest::error::raised;
use crate::shared::client::SharedClient;
use pyo3::prelude::*;
use std::sync::Arc;
use zklock_core::blocking::Barrier;

/// A barrier at a path.
pub(crate) struct SharedBarrier {
    pub(crate) shared: Arc<SharedClient>,
    pub(crate) barrier: Barrier,
}

impl SharedBarrier {
    pub(crate) fn new(py: Python<'_>, shared: &Arc<SharedClient>, path: &str) -> PyResult<Arc<Self>> {
        let barrier = shared.client.barrier(path).map_err(|error| raised(py, &error))?;
        Ok(Arc::new(Self { shared: shared.clone(), barrier }))
    }
}
