//! A logical connection to an ensemble.

use crate::aio::client::AsyncClient;
use crate::barrier::Barrier;
use crate::calls::coroutine::Coroutine;
use crate::calls::greenlet::Greenlet;
use crate::double_barrier::DoubleBarrier;
use crate::guest::error::raised;
use crate::guest::exit;
use crate::guest::log;
use crate::guest::number;
use crate::guest::wait::detached;
use crate::lock::Lock;
use crate::settings::credentials::{AccessText, Auth, with_access};
use crate::settings::guardian;
use crate::settings::hosts::Hosts;
use crate::settings::options::{Timeouts, options};
use crate::settings::tls::Tls;
use crate::shared::client::SharedClient;
use crate::shared::kinds::{BaseClient, Face};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;
use zklock_core::{ErrorKind, Wait};

/// A logical connection to an ensemble. ``hosts`` is ``host:port,host:port``, optionally with a ``/chroot`` at the end.
/// It may also be a list of hosts, ``["zk1:2181", "zk2:2181"]``, or of pairs, ``[("zk1", 2181), ("zk2", 2181)]``.
///
/// >>> with zklock.Client(hosts, session_timeout=10) as zk:
/// ...     with zk.mutex("/locks/doc", timeout=5):
/// ...         pass
///
/// A client connects when it is first used or entered, or by ``connect()``. So a program may make one at the top of a
/// module, and fork before it uses it. It outlives sessions: when one expires, it opens the next. Share one client
/// among all threads and tasks of a process, but give each process its own. A wrong argument raises ``InvalidInput`` at
/// once. If no server answers, connecting raises ``Unreachable``.
///
/// Times are in seconds. ``session_timeout`` is how long a lock stays taken after its holder has crashed, and roughly
/// how long the network may fail before a hold is lost. The servers may grant another. ``connect_timeout`` limits how
/// long it tries to reach a server. ``try_timeout`` limits how long the servers may take to answer a call that does not
/// wait for others: ``acquire(blocking=False)``, and any call with a timeout of zero. After that it raises
/// ``Unreachable``. If such a call is the first to use the client, it connects first, for up to ``connect_timeout``.
///
/// ``chroot`` puts all paths below that node, which must exist unless ``create_chroot`` is set. ``identity`` is the
/// name under which others see this client in a queue, by default ``host/pid`` of the process that connects. ``tls``
/// is a ``Tls``. ``auth`` is a ``Digest``, ``Sasl`` or ``Kerberos`` to log in as, or a list of these.
/// ``server_version`` is the version of the servers, such as ``(3, 4)``. If it is not given, the client asks them.
///
/// Normally the client has the servers confirm its holds every twelfth of the session timeout. That adds up if
/// thousands of clients hold something all day, for example as leaders of thousands of elections. ``heartbeat=False``
/// switches it off. But then nothing proves that a hold still exists: ``valid_for`` drops to zero half a session
/// timeout after the grant. The hold is at risk while the client is disconnected. It is only reported as lost when the
/// servers say that its session is over or its node is deleted. By then another client may have held the lock for a
/// while.
///
/// ``access`` says who may use what the client creates: everyone (``open``), only clients that are logged in as its
/// creator (``creator-all``), or these, while all others may read (``read-open``). All clients of a lock create, list,
/// read and delete nodes there, so with the last two they must all log in as the same user. Nodes that already exist
/// keep their access list. ``access`` may also be an access list in the format of ``zkCli``,
/// ``"sasl:billing:cdrwa,world:anyone:r"``, or a list of such entries, one string each. Then only those that it names
/// have access.
///
/// When the program ends, clients are closed, which frees their locks. A client is not closed if a daemon thread may
/// still be using its locks. These locks are free once the session has timed out.
#[pyclass(frozen, extends = BaseClient, module = "zklock")]
pub(crate) struct Client;

/// The client for threads.
static THREADS: Face = Face {
    lock: |py, core| Lock::of(py, core).map(Py::into_any),
    barrier: |py, barrier| Barrier::of(py, barrier).map(Py::into_any),
    double_barrier: |py, barrier| DoubleBarrier::of(py, barrier).map(Py::into_any),
};

impl Client {
    fn shared<'a>(slf: &'a Bound<'_, Self>) -> &'a Arc<SharedClient> {
        &slf.as_super().get().shared
    }
}

#[pymethods]
impl Client {
    #[new]
    #[pyo3(signature = (hosts, *, session_timeout=10.0, connect_timeout=10.0, try_timeout=1.0, chroot=None, create_chroot=false, identity=None, tls=None, auth=None, access=AccessText::default(), server_version=None, heartbeat=true), text_signature = "(hosts, *, session_timeout=10.0, connect_timeout=10.0, try_timeout=1.0, chroot=None, create_chroot=False, identity=None, tls=None, auth=None, access='open', server_version=None, heartbeat=True)")]
    #[expect(clippy::too_many_arguments, reason = "those that come last have names in Python")]
    fn new(
        py: Python<'_>,
        hosts: Hosts,
        session_timeout: f64,
        connect_timeout: f64,
        try_timeout: f64,
        chroot: Option<&str>,
        create_chroot: bool,
        identity: Option<&str>,
        tls: Option<&Bound<'_, Tls>>,
        auth: Option<Auth>,
        access: AccessText,
        server_version: Option<(u32, u32)>,
        heartbeat: bool,
    ) -> PyResult<PyClassInitializer<Self>> {
        let tls = tls.map(Bound::get);
        let timeouts = Timeouts { session: session_timeout, connect: connect_timeout, trying: try_timeout };
        let Hosts(hosts) = hosts;
        let options = options(py, &hosts, &timeouts, chroot, identity, tls, server_version)?;
        let options =
            with_access(py, options.create_chroot(create_chroot).heartbeat(heartbeat), auth, access)?;
        log::prepare(py)?;
        let shared = SharedClient::new(options, hosts);
        let weak = Arc::downgrade(&shared);
        exit::remember(weak);
        Ok(PyClassInitializer::from(BaseClient::new(py, shared, &THREADS)?).add_subclass(Self))
    }

    /// This client for asyncio.
    #[getter]
    fn aio(slf: &Bound<'_, Self>) -> PyResult<Py<AsyncClient>> {
        AsyncClient::of(slf.py(), Self::shared(slf).clone())
    }

    /// Connects now, unless the client is already connected.
    ///
    /// Raises ``Unreachable`` if no server answers within the connect timeout, or within ``timeout`` seconds if that is
    /// less, or if no host name can be resolved.
    #[pyo3(signature = (timeout=None))]
    fn connect(slf: &Bound<'_, Self>, timeout: Option<f64>) -> PyResult<()> {
        let (py, shared) = (slf.py(), Self::shared(slf));
        if let Some(greenlet) = Greenlet::current(py)? {
            let connected = AsyncClient::connect(Self::aio(slf)?.bind(py), timeout)?;
            return greenlet.wait_for(connected).map(drop);
        }
        let timeout = number::patience(py, timeout)?;
        shared.call(py, || shared.client.connect_within(Wait::at_most(timeout)))
    }

    /// Starts a guardian: a process that ends the session at the servers as soon as this process is dead. The locks of the client
    /// are then free at once. Without a guardian, which is the default, they are free when the session times out.
    ///
    /// >>> zk.guard()
    ///
    /// The guardian is the command ``zklock guardian``. By default that is the ``zklock`` that was installed with this package, or else
    /// the one on the ``PATH``. ``command`` is the path or name of another one of the same version. Through its standard input the
    /// client tells it how to connect, with all passwords, and the key of each session. It is a child of this process with its own
    /// process group. This call connects the client if necessary, and returns when the guardian watches. The guardian ends when the
    /// client is closed, or collected together with everything that was made from it.
    ///
    /// The guardian waits until this process is dead. It does nothing to a process that is stopped, slow, cut off or replaced
    /// (``os.exec``). Child processes of this process may live on beside the next holder. If the machine or the container dies, if
    /// the guardian is killed too, or if the servers cannot be reached, the session timeout applies. If the guardian ends early,
    /// the log has a warning, and you can call this again.
    ///
    /// Raises ``InvalidInput`` if the command cannot be started, if it is another program or of another version, or if the client
    /// has a guardian already; ``Refused`` if the guardian cannot connect as the client does; ``Unreachable``; ``Closed``.
    #[pyo3(signature = (command=None))]
    fn guard(slf: &Bound<'_, Self>, command: Option<PathBuf>) -> PyResult<()> {
        let (py, shared) = (slf.py(), Self::shared(slf));
        if let Some(greenlet) = Greenlet::current(py)? {
            return greenlet.wait_for(AsyncClient::guard(Self::aio(slf)?.bind(py), command)).map(drop);
        }
        let command = guardian::command(py, command);
        shared.call(py, || shared.client.guard(command))
    }

    /// Closes the client, which frees every lock that it holds. Waits until the servers have confirmed this, for up to a
    /// second. Its holds are lost, and all waits end with ``Closed``. Closing twice is not an error.
    fn close(slf: &Bound<'_, Self>) -> PyResult<()> {
        let (py, shared) = (slf.py(), Self::shared(slf));
        if let Some(greenlet) = Greenlet::current(py)? {
            return greenlet.wait_for(AsyncClient::close(Self::aio(slf)?.bind(py))?).map(drop);
        }
        shared.prepare_to_close(py);
        detached(py, || shared.client.close())
    }

    /// Writes the number of permits to the node that semaphores name with ``limit_at``. All waiters notice.
    ///
    /// >>> zk.set_limit("/limits/doc", 7)
    ///
    /// The node is created if it does not exist. It is compatible with Curator's ``SharedCount``. Permits that are held
    /// stay held, even if the new limit is lower.
    fn set_limit(slf: &Bound<'_, Self>, path: &str, limit: i64) -> PyResult<()> {
        let (py, shared) = (slf.py(), Self::shared(slf));
        if let Some(greenlet) = Greenlet::current(py)? {
            let set = AsyncClient::set_limit(Self::aio(slf)?.bind(py), path.to_owned(), limit)?;
            return greenlet.wait_for(set).map(drop);
        }
        let limit = number::count(py, "limit", limit)?;
        shared.call(py, || shared.client.set_limit(path, limit))
    }

    fn __enter__<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        Self::connect(&slf, None)?;
        Ok(slf)
    }

    #[pyo3(signature = (kind, exception, traceback))]
    fn __exit__(
        slf: &Bound<'_, Self>,
        kind: &Bound<'_, PyAny>,
        exception: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let _ = (exception, traceback);
        let (py, shared) = (slf.py(), Self::shared(slf));
        if Greenlet::current(py)?.is_some() {
            return match Self::close(slf) {
                Err(error) if kind.is_none() || !error.is_instance_of::<PyException>(py) => Err(error),
                _ => Ok(false),
            };
        }
        shared.prepare_to_close(py);
        match py.detach(|| shared.client.close()) {
            // An exception from a signal handler is never swallowed.
            Err(error) if kind.is_none() || error.kind() == ErrorKind::Interrupted => Err(raised(py, &error)),
            _ => Ok(false),
        }
    }

    fn __aenter__(slf: &Bound<'_, Self>) -> PyResult<Coroutine> {
        AsyncClient::__aenter__(Self::aio(slf)?)
    }

    #[pyo3(signature = (kind, exception, traceback))]
    fn __aexit__(
        slf: &Bound<'_, Self>,
        kind: &Bound<'_, PyAny>,
        exception: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<Coroutine> {
        AsyncClient::__aexit__(Self::aio(slf)?.bind(slf.py()), kind, exception, traceback)
    }
}
