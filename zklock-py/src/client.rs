//! One logical connection to an ensemble.

use crate::aio::client::AsyncClient;
use crate::coroutine::Coroutine;
use crate::error::{raised, unpicklable};
use crate::exit;
use crate::lock::{Core, Lock};
use crate::log;
use crate::options::{Tls, options};
use crate::place::Shared;
use crate::value;
use crate::wait::detached;
use pyo3::prelude::*;
use std::sync::Arc;
use zklock_core::ErrorKind;
use zklock_core::blocking::{Connector, is_forked};

/// One logical connection to an ensemble, at ``hosts``: ``host:port,host:port``, and perhaps a ``/chroot``.
///
/// >>> with zklock.Client(hosts, session_timeout=10) as zk:
/// ...     with zk.mutex("/locks/doc", timeout=5):
/// ...         pass
///
/// It connects when it is first needed, or entered, or by ``connect()``; so a program may make one at the top of a
/// module, and fork before it is used. It outlives sessions: when one expires it opens the next. Share one client
/// among all threads and tasks of a process; each process needs one of its own. What is wrong with an argument is
/// said at once, with ``InvalidInput``; that no server answers, when it connects, with ``Unreachable``.
///
/// Times are in seconds. ``session_timeout`` is for how long a lock stays taken when its holder has crashed, and
/// about how long the network may fail without a hold being lost; the servers may grant another. ``connect_timeout``
/// bounds the try to reach a server. ``chroot`` puts all paths below that node. ``identity`` is what others see as
/// this contender's name, by default ``host/pid``. ``tls`` is a ``Tls``.
///
/// At the end of the program clients are closed, which frees their locks; but not where a daemon thread may still
/// be using one: then those of its client are free when the session has timed out.
#[pyclass(frozen, weakref, module = "zklock")]
pub(crate) struct Client {
    shared: Arc<Shared>,
}

#[pymethods]
impl Client {
    #[new]
    #[pyo3(signature = (hosts, *, session_timeout=10.0, connect_timeout=10.0, chroot=None, identity=None, tls=None))]
    fn new(
        py: Python<'_>,
        hosts: &str,
        session_timeout: f64,
        connect_timeout: f64,
        chroot: Option<&str>,
        identity: Option<&str>,
        tls: Option<&Bound<'_, Tls>>,
    ) -> PyResult<Self> {
        let tls = tls.map(Bound::get);
        let options = options(py, hosts, session_timeout, connect_timeout, chroot, identity, tls)?;
        log::prepare(py)?;
        let shared = Shared::new(Connector::new(options), hosts.to_owned());
        exit::remember(Arc::downgrade(&shared));
        Ok(Self { shared })
    }

    /// The same client for asyncio.
    #[getter]
    fn aio(&self) -> AsyncClient {
        AsyncClient { shared: self.shared.clone() }
    }

    /// Connects, unless that has been done.
    ///
    /// Raises ``Unreachable`` if no server answers within the connect timeout, or none of the hosts is known;
    /// ``Timeout`` if ``timeout`` seconds are over before.
    #[pyo3(signature = (timeout=None))]
    fn connect(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        let timeout = value::patience(py, timeout)?;
        log::prepare(py)?;
        detached(py, || self.shared.connector.connect(timeout).map(drop))
    }

    /// Closes the client, which frees every lock that it holds, and waits until the ensemble has confirmed it, or a
    /// second has passed. Holds are lost then, waits end with ``Closed``. Closing twice is no mistake.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || self.shared.connector.close())
    }

    /// The mutex at ``path``: one holder at a time, in the order of arrival.
    ///
    /// >>> lock = zk.mutex("/locks/doc", timeout=5, reentrant=True)
    /// >>> with lock as outer, lock as inner:
    /// ...     outer.token == inner.token
    /// True
    ///
    /// ``timeout`` is how many seconds to wait for it where nothing else is said; ``None`` is for ever, 0 tries
    /// once. It costs no request.
    #[pyo3(signature = (path, *, timeout=None, reentrant=false))]
    fn mutex(&self, py: Python<'_>, path: &str, timeout: Option<f64>, reentrant: bool) -> PyResult<Lock> {
        mutex(py, &self.shared, path, timeout, reentrant).map(|core| Lock { core })
    }

    /// What this client has done, and what it still owes: a ``Stats``.
    ///
    /// >>> zk.stats().owed
    /// 0
    fn stats(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        stats(py, &self.shared)
    }

    /// The number of the session, if there is one now.
    #[getter]
    fn session_id(&self) -> Option<i64> {
        self.shared.connector.connected()?.session_id()
    }

    /// The session timeout in seconds, as the servers granted it, if there is a session now.
    #[getter]
    fn session_timeout(&self) -> Option<f64> {
        Some(self.shared.connector.connected()?.session_timeout()?.as_secs_f64())
    }

    fn __enter__<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        slf.get().connect(slf.py(), None)?;
        Ok(slf)
    }

    #[pyo3(signature = (kind, exception, traceback))]
    fn __exit__(
        &self,
        kind: &Bound<'_, PyAny>,
        exception: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let _ = (exception, traceback);
        let py = kind.py();
        match py.detach(|| self.shared.connector.close()) {
            // What the handler of a signal raises is never swallowed.
            Err(error) if kind.is_none() || error.kind() == ErrorKind::Interrupted => Err(raised(py, &error)),
            _ => Ok(false),
        }
    }

    fn __aenter__(&self, py: Python<'_>) -> PyResult<Coroutine> {
        AsyncClient::__aenter__(Bound::new(py, self.aio())?)
    }

    #[pyo3(signature = (kind, exception, traceback))]
    fn __aexit__(
        &self,
        kind: &Bound<'_, PyAny>,
        exception: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<Coroutine> {
        self.aio().__aexit__(kind, exception, traceback)
    }

    fn __repr__(&self) -> String {
        describe(&self.shared, "Client")
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable("Client", "make one in each process: zklock.Client(hosts)"))
    }
}

pub(crate) fn mutex(
    py: Python<'_>,
    shared: &Arc<Shared>,
    path: &str,
    timeout: Option<f64>,
    reentrant: bool,
) -> PyResult<Arc<Core>> {
    let timeout = value::patience(py, timeout)?;
    let core = Core::new(shared.clone(), path, timeout, reentrant);
    core.map(Arc::new).map_err(|error| raised(py, &error))
}

pub(crate) fn stats(py: Python<'_>, shared: &Shared) -> PyResult<Py<PyAny>> {
    value::stats(py, shared.connector.stats())
}

pub(crate) fn describe(shared: &Shared, class: &str) -> String {
    let state = if is_forked() {
        "of the process from which this one was forked".to_owned()
    } else if shared.connector.is_closed() {
        "closed".to_owned()
    } else {
        match shared.connector.connected() {
            None => "not connected yet".to_owned(),
            Some(client) => {
                let session = match (client.session_id(), client.session_timeout()) {
                    (Some(id), Some(timeout)) => format!("session {id:#x} of {timeout:?}"),
                    _ => "without a session".to_owned(),
                };
                let stats = client.stats();
                let (held, owed) = (shared.held().len(), stats.owed);
                format!(
                    "{session}, {held} held, {owed} owed, {} granted, {} lost",
                    stats.grants, stats.losses
                )
            }
        }
    };
    format!("<zklock.{class} {:?} {state}>", shared.hosts)
}
