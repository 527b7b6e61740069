//! The common part of the blocking and the asyncio side of a lock.

use crate::guest::error::raised;
use crate::guest::number;
use crate::shared::client::SharedClient;
use crate::shared::hold::SharedHold;
use crate::shared::kept::Kept;
use pyo3::prelude::*;
use std::sync::Arc;
use std::time::Duration;
use zklock_core::blocking::{Hold, Lock};
use zklock_core::{Error, LockSpec, Owner};

/// A lock, and the holds of it.
pub(crate) struct SharedLock {
    pub(crate) shared: Arc<SharedClient>,
    pub(crate) kept: Arc<Kept>,
    pub(crate) path: String,
    pub(crate) timeout: Option<Duration>,
    pub(crate) is_reentrant: bool,
    /// Whether it can be acquired without waiting: again by its owner, or on a node that the client has kept.
    may_be_at_once: bool,
    pub(crate) lock: Lock,
}

impl SharedLock {
    pub(crate) fn new(
        py: Python<'_>,
        shared: &Arc<SharedClient>,
        spec: &LockSpec,
        timeout: Option<f64>,
    ) -> PyResult<Arc<Self>> {
        let timeout = number::patience(py, timeout)?;
        let lock = shared.client.lock(spec).map_err(|error| raised(py, &error))?;
        Ok(Arc::new(Self {
            shared: shared.clone(),
            kept: shared.kept(&spec.key(), spec.path()),
            path: spec.path().to_owned(),
            timeout,
            is_reentrant: spec.is_reentrant(),
            may_be_at_once: spec.is_reentrant() || spec.is_passed_on(),
            lock,
        }))
    }

    /// Returns a hold without a request: one more for the owner of a reentrant lock, or on a node that the client
    /// has kept.
    pub(crate) fn at_once(&self, owner: Owner) -> Result<Option<Arc<SharedHold>>, Error> {
        if !self.may_be_at_once {
            return Ok(None);
        }
        Ok(self.lock.at_once(owner)?.map(|hold| self.granted(hold, owner)))
    }

    pub(crate) fn granted(&self, hold: Hold, owner: Owner) -> Arc<SharedHold> {
        SharedHold::new(hold, owner, self.is_reentrant, &self.shared.callbacks.anchored)
    }

    pub(crate) fn describe(&self, class: &str) -> String {
        // For a mutex, the most common kind, the class name is enough.
        let kind = Some(self.lock.spec().kind()).filter(|kind| kind != "mutex");
        let kind = kind.map_or_else(String::new, |kind| format!(" {kind}"));
        let reentrant = if self.is_reentrant { " reentrant" } else { "" };
        let held = self.kept.held();
        let state = match held.last() {
            Some(held) => {
                let (token, seconds) = (held.hold.token(), held.hold.valid_for().as_secs_f64());
                format!("held with token {token} for {seconds:.3} s at least")
            }
            None => "not held here".to_owned(),
        };
        format!("<zklock.{class}{kind}{reentrant} {:?} {state}>", self.path)
    }
}
