//! A logical connection to an ensemble.

use crate::block::is_generator_exit;
use crate::calls::coroutine::Coroutine;
use crate::client_inner::ClientInner;
use crate::guest::error::raised;
use crate::guest::exit;
use crate::guest::log;
use crate::guest::number::{self, Timeout};
use crate::kinds::BaseClient;
use crate::noun::{Class, Face, noun};
use crate::settings::guardian;
use crate::settings::hosts::Hosts;
use crate::settings::options::options_of;
use crate::verb::{Verb, nothing, or_raise};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use zklock::face::hosts_from_env;
use zklock::further::{Guardian, Wait};
use zklock::{Error, ErrorKind};

/// What both classes ask of the core.
impl ClientInner {
    fn connecting<F>(self: &Arc<Self>, timeout: Option<Duration>, convert: F) -> Verb<zklock::Client, F> {
        let core = self.core.clone();
        Verb::timed(move || core.connect_within(Wait::at_most(timeout)), convert).of_client(self)
    }

    fn closing<F>(&self, py: Python<'_>, convert: F) -> Verb<(), F> {
        self.prepare_to_close(py);
        Verb::new(self.core.close(), convert).begins_first()
    }

    fn exit(&self, exception: &Bound<'_, PyAny>) -> PyResult<bool> {
        let closed = |py: Python<'_>, closed: Result<(), Error>| match closed {
            // An exception from a signal handler is never swallowed.
            Err(error) if exception.is_none() || error.kind() == ErrorKind::Interrupted => {
                Err(raised(py, &error))
            }
            _ => Ok(false),
        };
        self.closing(exception.py(), closed).run(exception.py())
    }

    fn end_block(&self, exception: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let py = exception.py();
        let closing = self.closing(py, nothing).begun(py, "AsyncClient.close");
        // If the event loop is closing this coroutine, it must not wait any longer.
        if is_generator_exit(exception) || closing.is_err() && !exception.is_none() {
            return Coroutine::done("AsyncClient.__aexit__", py.None()).into_py_any(py);
        }
        closing?.into_py_any(py)
    }
}

noun! {
    /// A logical connection to an ensemble. ``hosts`` is ``host:port,host:port``, optionally with a ``/chroot`` at the end.
    /// It may also be a list of hosts, ``["zk1:2181", "zk2:2181"]``, or of pairs, ``[("zk1", 2181), ("zk2", 2181)]``. By
    /// default, the environment variable ``ZKLOCK_HOSTS`` names them.
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
    /// wait for others: ``acquire(blocking=False)``, and any call with a timeout of zero. After that time, the call raises
    /// ``Unreachable``. If such a call is the first to use the client, it connects first, for up to ``connect_timeout``.
    ///
    /// ``chroot`` puts all paths below that node, which must exist unless ``create_chroot`` is set. ``identity`` is the
    /// name under which others see this client in a queue, by default ``host/pid`` of the process that connects. ``tls``
    /// is a ``Tls``. ``auth`` is a ``Digest``, ``Sasl`` or ``Kerberos`` to log in as, or a list of these.
    /// ``server_version`` is the version of the servers, such as ``(3, 4)``. If it is not given, the client asks them.
    ///
    /// By default, a client that holds anything writes to the servers every twelfth of the session timeout, to confirm its
    /// holds. That adds up if thousands of clients hold something all day, for example as leaders of thousands of elections.
    /// ``loss_timeout``, in seconds, makes these writes rarer. It is how soon a holder learns of a loss that no server
    /// reports: by default a tenth of the session timeout, and at most a third. The answers of ``valid_for`` stay true.
    /// ``heartbeat=False`` switches the writes off. But then nothing proves that a hold still exists: ``valid_for`` drops to
    /// zero half a session timeout after the grant. The hold is at risk while the client is disconnected. It is only
    /// reported as lost when the servers say that its session is over or its node is deleted. By then another client may
    /// have held the lock for a while.
    ///
    /// ``access`` says who may use the nodes that the client creates: everyone (``open``); only clients that are logged in
    /// as the creator (``creator-all``); or only these, while all others may read (``read-open``). All clients of a lock
    /// create, list, read and delete nodes there, so with the last two they must all log in as the same user. Nodes that
    /// already exist keep their access list. ``access`` may also be an access list in the format of ``zkCli``,
    /// ``"sasl:billing:cdrwa,world:anyone:r"``, or a list of such entries, one string each. Then only those that it names
    /// have access.
    ///
    /// For asyncio, use ``async with`` or ``aio``. In a thread whose event loop is running, all calls that wait raise
    /// ``Deadlock``, because they would stop the loop. Even so, ``close`` and the ``release`` of a lock go on in the
    /// background.
    ///
    /// When the program ends, clients are closed, which frees their locks. A client is not closed if a daemon thread may
    /// still be using its locks. These locks are free once the session has timed out.
    struct Client;

    /// A ``Client`` for asyncio. Get one with ``async with`` on a ``Client``, or from ``Client.aio``.
    ///
    /// >>> async def report():
    /// ...     async with zklock.Client(hosts) as zk:
    /// ...         async with zk.mutex("/locks/doc", timeout=5) as hold:
    /// ...             return hold.token > 0
    /// >>> asyncio.run(report())
    /// True
    struct AsyncClient;

    both(ClientInner in BaseClient: closes) {
        /// Connects now, unless the client is already connected.
        ///
        /// Raises ``Unreachable`` if no server answers within the connect timeout, or within ``timeout`` seconds if that is
        /// less, or if no host name can be resolved.
        #[pyo3(signature = (timeout=None))]
        fn connect(slf: &Bound<'_, Self>, timeout: Option<Timeout>) -> PyResult<Py<PyAny>> {
            let timeout = number::patience(slf.py(), timeout)?;
            Self::make(slf.py(), "connect", Self::inner(slf).connecting(timeout, nothing))
        }

        /// Starts a guardian: a process that ends the session at the servers as soon as this process is dead. The client's locks
        /// are then free at once. Without a guardian, which is the default, they are free when the session times out.
        ///
        /// >>> zk.guard()
        ///
        /// The guardian is the command ``zklock guardian``. By default that is the ``zklock`` that was installed with this package,
        /// or else the one on the ``PATH``. ``command`` is the path or name of another one of the same version. It is a child of
        /// this process, in a process group of its own. The client writes to its standard input: how to connect, with all
        /// passwords, and the key of each session. This call connects the client if necessary, and returns when the guardian
        /// watches. The guardian ends when the client is closed, or collected together with everything that was made from it.
        ///
        /// The guardian waits until this process is dead. It does nothing to a process that is stopped, slow, cut off or replaced
        /// (``os.exec``). Child processes of this process may still run when the next holder has the lock. If the machine or the
        /// container dies, if the guardian is killed too, or if the servers cannot be reached, the session timeout applies. If the
        /// guardian ends early, the log has a warning, and you can call this again.
        ///
        /// Raises ``InvalidInput`` if the command cannot be started, if it is another program or of another version, or if the client
        /// has a guardian already; ``Refused`` if the guardian cannot connect as the client does; ``Unreachable``; ``Closed``.
        #[pyo3(signature = (command=None))]
        fn guard(slf: &Bound<'_, Self>, command: Option<PathBuf>) -> PyResult<Py<PyAny>> {
            let guard = Self::inner(slf).core.guard(guardian::command(slf.py(), command));
            let keep = |py: Python<'_>, started: Result<Guardian, Error>| nothing(py, started.map(Guardian::keep));
            Self::make(slf.py(), "guard", Verb::new(guard, keep).of_client(Self::inner(slf)))
        }

        /// Writes the number of permits to the node that semaphores name with ``limit_at``. All waiters notice.
        ///
        /// >>> zk.set_limit("/limits/doc", 7)
        ///
        /// The node is created if it does not exist. It is compatible with Curator's ``SharedCount``. Permits that are held
        /// stay held, even if the new limit is lower.
        fn set_limit(slf: &Bound<'_, Self>, path: &str, limit: i64) -> PyResult<Py<PyAny>> {
            let set = Self::inner(slf).core.set_limit(path, number::count(slf.py(), "limit", limit)?);
            Self::make(slf.py(), "set_limit", Verb::new(set, nothing).of_client(Self::inner(slf)))
        }

        /// The identity of the ensemble. A fence (``zklock.fence``) keeps it together with the token, because tokens of two
        /// ensembles cannot be compared. It is the data of the node ``/zklock-ensemble``. The first client that asks creates this
        /// node below its chroot, with its access list. A client asks the servers once in each session.
        ///
        /// >>> len(zk.ensemble_id())
        /// 36
        ///
        /// An ensemble that you restore from a backup keeps its identity, although its tokens start again from earlier ones.
        /// In that case, delete the node once the ensemble's clients have ended.
        ///
        /// Raises ``Unreachable`` if no server answers within the connect timeout, ``Refused`` if the access list does not allow
        /// reading or creating the node, or if its data is not from zklock, and ``Closed`` if the client is closed.
        fn ensemble_id(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
            let id = or_raise(|py, id: Arc<str>| id.into_py_any(py));
            let ask = Verb::new(Self::inner(slf).core.ensemble_id(), id);
            Self::make(slf.py(), "ensemble_id", ask.of_client(Self::inner(slf)))
        }

        /// Closes the client, which frees every lock that it holds. Waits until the servers have confirmed this, for up to a
        /// second. In asyncio, it starts at once; await it to wait. Its holds are lost, and all waits end with ``Closed``. Closing
        /// twice is not an error.
        fn close(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
            Self::make(slf.py(), "close", Self::inner(slf).closing(slf.py(), nothing))
        }
    }

    blocking {
        #[new]
        #[pyo3(signature = (hosts=None, **options), text_signature = "(hosts=None, *, session_timeout=10.0, connect_timeout=10.0, try_timeout=1.0, chroot=None, create_chroot=False, identity=None, tls=None, auth=None, access='open', server_version=None, heartbeat=True, loss_timeout=None)")]
        fn new(
            py: Python<'_>,
            hosts: Option<Hosts>,
            options: Option<&Bound<'_, PyDict>>,
        ) -> PyResult<PyClassInitializer<Self>> {
            let hosts = hosts
                .map_or_else(hosts_from_env, |Hosts(hosts)| Ok(hosts))
                .map_err(|error| raised(py, &error))?;
            let options = options_of(py, &hosts, options)?;
            log::prepare(py)?;
            let inner = ClientInner::new(options, hosts);
            let weak = Arc::downgrade(&inner);
            exit::remember(weak);
            Ok(Self::from_base(BaseClient::new(py, inner, Face::Threads)?))
        }

        /// This client for asyncio.
        #[getter]
        fn aio(slf: &Bound<'_, Self>) -> PyResult<Py<AsyncClient>> {
            Py::new(slf.py(), AsyncClient::from_base(BaseClient::new(slf.py(), Self::inner(slf).clone(), Face::Asyncio)?))
        }

        fn __enter__<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
            Self::connect(&slf, None)?;
            Ok(slf)
        }

        fn __aenter__(slf: &Bound<'_, Self>) -> PyResult<Coroutine> {
            Ok(AsyncClient::__aenter__(Self::aio(slf)?, slf.py()))
        }
    }

    asyncio {
        /// This client itself.
        #[getter]
        fn aio(slf: Py<Self>) -> Py<Self> {
            slf
        }

        fn __aenter__(slf: Py<Self>, py: Python<'_>) -> Coroutine {
            let connecting = Self::inner(slf.bind(py)).connecting(None, nothing);
            connecting.and_then(|_, _| Ok(slf.into_any())).coroutine("AsyncClient.__aenter__")
        }
    }
}
