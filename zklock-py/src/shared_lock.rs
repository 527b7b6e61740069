//! A lock before its client has connected: what the core needs to make it, and the lock once it is made.
//!
//! A client connects when it is first needed, and a lock is described before that. What is wrong with the description is
//! found at once, since the core checks it without a client.

use crate::error::{invalid, raised};
use crate::kept::Kept;
use crate::mirror::table;
use crate::number;
use crate::shared_client::SharedClient;
use crate::shared_hold::SharedHold;
use pyo3::prelude::*;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use zklock_core::blocking::{Client, Hold, Lock};
use zklock_core::{Dialect, Error, Foreign, LockSpec, Owner, Wait, Watching};

/// What both faces of a lock share.
pub(crate) struct SharedLock {
    pub(crate) shared: Arc<SharedClient>,
    pub(crate) kept: Arc<Kept>,
    pub(crate) path: String,
    pub(crate) timeout: Option<Duration>,
    pub(crate) is_reentrant: bool,
    spec: LockSpec,
    lock: OnceLock<Lock>,
}

impl SharedLock {
    pub(crate) fn new(
        py: Python<'_>,
        shared: &Arc<SharedClient>,
        spec: LockSpec,
        timeout: Option<f64>,
    ) -> PyResult<Arc<Self>> {
        let timeout = number::patience(py, timeout)?;
        spec.check().map_err(|error| raised(py, &error))?;
        let core = Self {
            shared: shared.clone(),
            kept: shared.kept(&spec.key(), spec.path()),
            path: spec.path().to_owned(),
            timeout,
            is_reentrant: spec.is_reentrant(),
            spec,
            lock: OnceLock::new(),
        };
        // Where there is a client already, it has the last word.
        if let Some(client) = shared.connector.connected() {
            core.connect_to(&client).map_err(|error| raised(py, &error))?;
        }
        Ok(Arc::new(core))
    }

    /// The description of the set of these locks.
    pub(crate) fn all(shared: &Arc<SharedClient>, locks: &[Arc<Self>]) -> Result<LockSpec, Error> {
        let specs: Vec<_> = locks.iter().map(|lock| lock.spec.clone()).collect();
        if !locks.iter().all(|lock| Arc::ptr_eq(&lock.shared, shared)) {
            return Err(LockSpec::of_another_client(&specs));
        }
        LockSpec::all(specs)
    }

    /// The lock of the core, if the client has connected.
    pub(crate) fn connected(&self) -> Option<&Lock> {
        self.lock.get().or_else(|| self.connect_to(&self.shared.connector.connected()?).ok())
    }

    pub(crate) fn connect(&self, wait: Wait) -> Result<&Lock, Error> {
        match self.connected() {
            Some(lock) => Ok(lock),
            None => self.connect_to(&self.shared.connector.connect(wait)?),
        }
    }

    pub(crate) fn connect_to(&self, client: &Client) -> Result<&Lock, Error> {
        let lock = client.lock(&self.spec)?;
        Ok(self.lock.get_or_init(|| lock))
    }

    /// One more hold, where a reentrant lock is held by its owner.
    pub(crate) fn again(&self, owner: Owner) -> Result<Option<Arc<SharedHold>>, Error> {
        if !self.is_reentrant {
            return Ok(None);
        }
        let Some(lock) = self.connected() else { return Ok(None) };
        Ok(lock.again(owner)?.map(|hold| self.granted(hold, owner)))
    }

    pub(crate) fn granted(&self, hold: Hold, owner: Owner) -> Arc<SharedHold> {
        SharedHold::new(hold, owner, self.is_reentrant, &self.shared.callbacks)
    }

    /// Whether one alone can hold it, or lead, and be observed.
    pub(crate) fn refuse_observers(&self, py: Python<'_>) -> PyResult<()> {
        self.spec.check_observable().map_err(|error| raised(py, &error))
    }

    pub(crate) fn describe(&self, class: &str) -> String {
        // For a mutex, the most common kind, the class says enough.
        let kind = Some(self.spec.kind()).filter(|kind| kind != "mutex");
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

/// How the lock stands in its queue, by the names of Python.
pub(crate) fn queued(py: Python<'_>, spec: LockSpec, foreign: &str, watching: &str) -> PyResult<LockSpec> {
    let foreign = chosen(py, "foreign", foreign, Foreign::ALL, |foreign| foreign_name(foreign).to_owned())?;
    let watching =
        chosen(py, "watching", watching, Watching::ALL, |watching| watching_name(watching).to_owned())?;
    Ok(spec.foreign(foreign).watching(watching))
}

/// The dialect of this name.
pub(crate) fn dialect(py: Python<'_>, name: &str) -> PyResult<Dialect> {
    chosen(py, "dialect", name, Dialect::ALL, |dialect| dialect.to_string())
}

table! {
    fn foreign_name(Foreign) -> &'static str { Refuse => "refuse", GoAhead => "go-ahead", }
}

table! {
    fn watching_name(Watching) -> &'static str { Nearest => "nearest", Children => "children", }
}

/// Looks up one of a fixed set of words.
fn chosen<T: Copy>(
    py: Python<'_>,
    what: &str,
    given: &str,
    all: &[T],
    name: impl Fn(T) -> String,
) -> PyResult<T> {
    all.iter().copied().find(|one| name(*one) == given).ok_or_else(|| {
        let names: Vec<_> = all.iter().map(|one| format!("{:?}", name(*one))).collect();
        invalid(py, format!("{what}={given:?}: it is {}", names.join(" or ")))
    })
}
