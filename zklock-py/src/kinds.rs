//! The methods that a `Client` and an `AsyncClient` share, which make the kinds of lock.

use crate::barrier::{AsyncBarrier, Barrier, BarrierInner};
use crate::calls::anchor::CallbackAnchor;
use crate::calls::callback::Callback;
use crate::client_inner::ClientInner;
use crate::double_barrier::{AsyncDoubleBarrier, DoubleBarrier, DoubleBarrierInner};
use crate::guest::error::{forked, invalid, raised, unpicklable};
use crate::guest::number::{self, Every, Timeout};
use crate::guest::value;
use crate::job::{AsyncJob, Job, JobInner};
use crate::lock::{AsyncLock, Lock, LockInner};
use crate::noun::Face;
use crate::settings::keyword::keywords;
use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping};
use pyo3::{PyTraverseError, PyVisit};
use std::sync::Arc;
use zklock::further::AfterFailure;
use zklock::{Error, JobSpec, LockSpec};

/// The methods that a ``Client`` and an ``AsyncClient`` share. They make locks of every kind: a ``Client`` makes a
/// ``Lock``, and an ``AsyncClient`` makes an ``AsyncLock``.
///
/// Making a lock sends no request. The kinds share these arguments. ``timeout`` is how many seconds to wait for the
/// lock by default: ``None`` waits for ever, 0 tries once. With ``reentrant``, the thread or task that holds the lock
/// can acquire it again, and only it can release it. Do not use it if a thread may serve another user while it holds
/// the lock, as a thread of a pool does between two calls: both users would hold the lock together. With ``cancel=False``,
/// a loss does not cancel an ``async with`` block: see ``AsyncLock``.
///
/// A mutex, or either side of a read/write lock, can be kept between two uses. ``linger`` is how many seconds the
/// lock's node stays after a release while no other contender wants the lock. Meanwhile nobody holds it, and this
/// client can acquire it again without a request. When another contender queues, of any library, the node is deleted:
/// at once, or on release if the lock is held. If another client tries the lock once while the node lingers, it finds
/// the lock busy. That try causes the node to be deleted, so the lock is free afterwards. If the process is killed,
/// others wait for its session timeout, as for any holder.
///
/// ``max_local_handoffs`` is how often holders of this client may pass the lock on among themselves while others wait, by default
/// never. With it, or with ``linger``, threads and tasks pass the lock on without a request while no other client
/// waits. All grants on one node have the same token, so the resource that the lock guards must accept a token equal to
/// the largest that it has seen. In a set of locks, ``linger`` and ``max_local_handoffs`` have no effect.
///
/// ``metrics_name`` is a name under which ``stats`` counts the lock separately, such as ``"report"``. Locks with the same name
/// are counted together. Choose a few names, at most 100 in a client: locks with further names are counted as ``other``. For
/// a set or a choice, only its own name has an effect.
///
/// Two options matter only if other libraries use the lock too. ``naming`` says how the nodes are named: see ``mutex``. ``foreign`` says
/// what to do about a contender that cannot see ours: ``"refuse"`` raises ``ForeignContender``. ``"ignore-unknown"`` is dangerous: it
/// waits for contenders of known libraries, which must see ours, and ignores all others, which must have nothing to do with the
/// lock. Otherwise two may hold it. The log has a warning at each grant that ignores one.
#[pyclass(frozen, subclass, weakref, module = "zklock")]
pub(crate) struct BaseClient {
    /// Dropped first, here and elsewhere: without it nothing is reported, and then the client may be closed.
    anchor: Py<CallbackAnchor>,
    pub(crate) inner: Arc<ClientInner>,
    face: Face,
}

impl BaseClient {
    pub(crate) fn new(py: Python<'_>, inner: Arc<ClientInner>, face: Face) -> PyResult<Self> {
        let anchor = inner.callbacks.anchor(py)?;
        Ok(Self { inner, face, anchor })
    }

    /// Makes a lock with these options, of those that this method has.
    fn made(
        slf: &Bound<'_, Self>,
        method: &str,
        spec: Result<LockSpec, Error>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let (py, client) = (slf.py(), slf.get());
        let mut spec = spec.map_err(|error| raised(py, &error))?;
        let (mut timeout, mut cancels) = (None, true);
        if options.is_some() {
            for option in keywords(&slf.getattr(method)?, options)? {
                match option.name.as_str() {
                    "timeout" => timeout = option.get()?,
                    "cancel" => cancels = option.get()?,
                    _ => spec = option.set(LockSpec::NAMED, spec, LockSpec::set)?,
                }
            }
        }
        client.face.object::<Lock, AsyncLock>(py, LockInner::new(py, &client.inner, &spec, timeout, cancels)?)
    }
}

#[pymethods]
impl BaseClient {
    /// Names the method for those who look for it under another name.
    fn __getattr__<'py>(slf: &Bound<'py, Self>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let there = match name {
            "lock" => "mutex(path)",
            "rwlock" => "read_lock(path) and write_lock(path)",
            // Raises the usual error.
            _ => return slf.py().get_type::<PyAny>().call_method1("__getattribute__", (slf, name)),
        };
        Err(PyAttributeError::new_err(format!("a client has no {name}: it has {there}")))
    }

    /// The mutex at ``path``: one holder at a time, in order of arrival.
    ///
    /// >>> lock = zk.mutex("/locks/doc", timeout=5, reentrant=True)
    /// >>> with lock as outer, lock as inner:
    /// ...     outer.token == inner.token
    /// True
    ///
    /// A lock that is used often can be kept between two uses, while no other contender wants it:
    ///
    /// >>> often = zk.mutex("/locks/doc", linger=10)
    /// >>> with often as first:
    /// ...     pass
    /// >>> with often as second:
    /// ...     second.token == first.token
    /// True
    ///
    /// It shares a queue with Curator's ``InterProcessMutex`` of the same path. ``naming`` says how its nodes are named:
    /// ``"curator"``, ``"kazoo"`` to share the queue of a ``kazoo.recipe.lock.Lock``, ``"writelock"`` to share that of
    /// ZooKeeper's own ``WriteLock``, or a pattern to share that of a custom lock:
    ///
    /// >>> with zk.mutex("/shop/report", naming="{name}_lock_{sequence}") as hold:
    /// ...     hold.node.startswith("/shop/report_lock_0")
    /// True
    ///
    /// In a pattern, ``{sequence}`` is the number that the server appends, and comes last. ``{name}`` is the last component of
    /// the path, for several locks under one node. ``{any}`` is what each contender chooses. Children whose names do not match
    /// are ignored.
    #[pyo3(signature = (path, **with), text_signature = "($self, path, *, timeout=None, reentrant=False, cancel=True, linger=None, max_local_handoffs=0, metrics_name=None, naming='curator', foreign='refuse')")]
    fn mutex(slf: &Bound<'_, Self>, path: &str, with: Option<&Bound<'_, PyDict>>) -> PyResult<Py<PyAny>> {
        Self::made(slf, "mutex", LockSpec::mutex(path), with)
    }

    /// The read side of the read/write lock at ``path``: several readers can hold it at once.
    ///
    /// >>> with zk.read_lock("/locks/doc") as hold:
    /// ...     [contender.role for contender in zk.read_lock("/locks/doc").contenders()]
    /// ['read']
    ///
    /// A thread that holds the read side and acquires the write side waits until the read side is released. If only that
    /// thread can release it, because it was made reentrant, the acquire raises ``Deadlock`` instead. It shares a queue
    /// with Curator's ``InterProcessReadWriteLock``, or with ``naming="kazoo"`` with kazoo's ``ReadLock`` and
    /// ``WriteLock``. With a pattern such as ``naming="{any}-{R|W}-{sequence}"`` it shares one with a custom lock whose
    /// readers have ``R`` there and its writers ``W``: see :meth:`mutex`. A writer's token is larger than those of earlier
    /// readers, and a reader's token is larger than those of earlier writers. Among readers that hold the lock together, the
    /// order of tokens means nothing.
    #[pyo3(signature = (path, **with), text_signature = "($self, path, *, timeout=None, reentrant=False, cancel=True, linger=None, max_local_handoffs=0, metrics_name=None, naming='curator', foreign='refuse')")]
    fn read_lock(slf: &Bound<'_, Self>, path: &str, with: Option<&Bound<'_, PyDict>>) -> PyResult<Py<PyAny>> {
        Self::made(slf, "read_lock", LockSpec::read_lock(path), with)
    }

    /// The write side of the read/write lock at ``path``: one writer at a time, and no readers.
    ///
    /// >>> with zk.write_lock("/locks/doc", reentrant=True):
    /// ...     reading = zk.read_lock("/locks/doc").hold()
    /// >>> reading.valid_for() > 0
    /// True
    /// >>> reading.release()
    ///
    /// To downgrade, as here, a thread that holds the write side by a lock with ``reentrant=True`` can acquire the read
    /// side at once, and keep it when it releases the write side. No other writer gets in between, and the reader's hold
    /// has the writer's token. The lock for the read side may be reentrant or not. With a pattern as ``naming`` that is not
    /// possible, and raises ``Deadlock``.
    ///
    /// A write hold that is not reentrant may be in use by any thread or task. So until it is released, even the thread
    /// that acquired it waits for the read side, like all others. Later readers do not starve a waiting writer.
    #[pyo3(signature = (path, **with), text_signature = "($self, path, *, timeout=None, reentrant=False, cancel=True, linger=None, max_local_handoffs=0, metrics_name=None, naming='curator', foreign='refuse')")]
    fn write_lock(
        slf: &Bound<'_, Self>,
        path: &str,
        with: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        Self::made(slf, "write_lock", LockSpec::write_lock(path), with)
    }

    /// The semaphore at ``path`` with ``limit`` permits. A hold takes one of them, or as many as ``permits`` says.
    ///
    /// >>> licence = zk.semaphore("/locks/doc-licences", 5)
    /// >>> with licence, licence, zk.semaphore("/locks/doc-licences", 5, permits=3):
    /// ...     licence.acquire(blocking=False)
    /// False
    ///
    /// A permit does not belong to a thread: a thread or task may hold several. Any of them may call ``release()``. It
    /// releases what the caller acquired last or, if the caller has acquired nothing, what another acquired. Every program
    /// that uses the semaphore must give the same limit. With ``limit_at`` the limit is read from the node at that path,
    /// which ``set_limit`` writes, and all waiters notice when it changes.
    ///
    /// It is compatible with Curator's ``InterProcessSemaphoreV2`` of the same path and, with a limit of 1, with its
    /// ``InterProcessSemaphoreMutex``.
    #[pyo3(signature = (path, limit, **with), text_signature = "($self, path, limit, *, permits=1, limit_at=None, timeout=None, cancel=True, metrics_name=None, foreign='refuse')")]
    fn semaphore(
        slf: &Bound<'_, Self>,
        path: &str,
        limit: i64,
        with: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let limit = number::count(slf.py(), "limit", limit)?;
        Self::made(slf, "semaphore", LockSpec::semaphore(path, limit), with)
    }

    /// The election at ``path``: one candidate leads, and the others are ready to take over.
    ///
    /// >>> with zk.election("/locks/doc") as lead:
    /// ...     lead.lost.is_set()
    /// False
    ///
    /// To campaign, acquire it. To resign, release it. ``Lock.observe`` reports the leader. It shares a queue with
    /// Curator's ``LeaderLatch``.
    #[pyo3(signature = (path, **with), text_signature = "($self, path, *, timeout=None, reentrant=False, cancel=True, metrics_name=None, foreign='refuse')")]
    fn election(slf: &Bound<'_, Self>, path: &str, with: Option<&Bound<'_, PyDict>>) -> PyResult<Py<PyAny>> {
        Self::made(slf, "election", LockSpec::election(path), with)
    }

    /// The single-node lock at ``path``: one node, to share a lock with programs that create that node.
    ///
    /// >>> job = zk.single_node("/locks/doc", timeout=0)
    /// >>> with job as hold:
    /// ...     hold.node
    /// '/locks/doc/lock'
    ///
    /// There is no queue: when the node is deleted, all waiters are woken, and the first to create it again has the lock.
    /// To wait in order, use a mutex.
    #[pyo3(signature = (path, **with), text_signature = "($self, path, *, timeout=None, reentrant=False, cancel=True, metrics_name=None)")]
    fn single_node(
        slf: &Bound<'_, Self>,
        path: &str,
        with: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        Self::made(slf, "single_node", LockSpec::single_node(path), with)
    }

    /// A set of these locks, which are acquired and released together: all or none.
    ///
    /// >>> both = zk.all([zk.mutex("/locks/doc"), zk.write_lock("/locks/doc-too")], timeout=5)
    /// >>> with both as hold:
    /// ...     hold.path
    /// '/locks/doc, /locks/doc-too'
    ///
    /// A single transaction queues for all of them, so two sets cannot deadlock, whatever the order of arrival. You can mix
    /// mutexes, read and write sides, semaphores and elections of this client. A lock that is named twice is in the set once,
    /// but no two different locks may have the same path. Each lock keeps its own options, except that ``timeout`` and
    /// ``reentrant`` are those of the set.
    #[pyo3(signature = (locks, **with), text_signature = "($self, locks, *, timeout=None, reentrant=False, cancel=True, metrics_name=None)")]
    fn all(
        slf: &Bound<'_, Self>,
        locks: &Bound<'_, PyAny>,
        with: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        Self::made(slf, "all", slf.get().inner.core.all_of(&locks_of(locks)?), with)
    }

    /// A choice of these locks: acquiring it gives a hold of whichever is free first, and leaves the queues of the others.
    ///
    /// >>> jobs = [zk.mutex("/jobs/doc-1"), zk.mutex("/jobs/doc-2")]
    /// >>> with zk.any(jobs, timeout=5) as hold:
    /// ...     hold.path
    /// '/jobs/doc-1'
    ///
    /// Use it in workers that take any free job out of many. ``hold.path`` says which lock it is. An acquire first looks
    /// at all the queues, in one round trip that changes nothing. If some locks are free, it acquires the one that you
    /// named first. If none is free, it queues for all of them. You can mix locks of any kind that has a queue, but no two
    /// may have the same path. Each is acquired as it would be alone, with its own options except for ``timeout``. So a
    /// lock that the caller already holds counts as busy, unless it is reentrant.
    #[pyo3(signature = (locks, **with), text_signature = "($self, locks, *, timeout=None, cancel=True, metrics_name=None)")]
    fn any(
        slf: &Bound<'_, Self>,
        locks: &Bound<'_, PyAny>,
        with: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        Self::made(slf, "any", slf.get().inner.core.any_of(&locks_of(locks)?), with)
    }

    /// The job at ``path``, which runs on one host in each period: a ``Job``, or for asyncio an ``AsyncJob``.
    ///
    /// >>> with zk.job("/jobs/doc-three", every="1d", offset="12h") as run:
    /// ...     if run:
    /// ...         token = run.hold.token  # write the report with it
    ///
    /// ``every`` is the length of a period: seconds, a ``timedelta``, or a text such as ``"1 day"`` or ``"1h30m"``; a second at least.
    /// Periods are counted from 1970-01-01T00:00:00Z, on the clocks of the servers, so a wrong clock of a host does not matter.
    /// ``offset`` lets them begin later. The clocks of hosts and servers differ, so do not start a job where a period begins: if
    /// cron starts it at midnight UTC, 12 hours are a good offset.
    ///
    /// A job is a mutex with a record of its last run. While another host runs it, others wait, for ``timeout`` seconds as with
    /// other locks (``None`` waits for ever, 0 does not wait), and then raise ``Timeout``. If that host dies, the next one takes
    /// over. ``after_failure`` says whether a job that has failed runs ``"again"`` in the same period, or in the ``"next"`` one. A
    /// host that dies, or loses the lock, has failed.
    #[pyo3(signature = (path, every, **with), text_signature = "($self, path, every, *, offset=0, after_failure='again', timeout=None, cancel=True)")]
    fn job(
        slf: &Bound<'_, Self>,
        path: &str,
        every: Every,
        with: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let (py, client) = (slf.py(), slf.get());
        let (mut spec, mut timeout, mut cancels) = (JobSpec::new(path, every.0), None, true);
        for option in keywords(&slf.getattr("job")?, with)? {
            match option.name.as_str() {
                "timeout" => timeout = option.get()?,
                "cancel" => cancels = option.get()?,
                "offset" => {
                    let Every(offset) = option.get()?;
                    spec = spec.and_then(|spec| spec.offset(offset));
                }
                _ => {
                    let after_failure = match option.get::<String>()?.as_str() {
                        "again" => AfterFailure::Again,
                        "next" => AfterFailure::Next,
                        other => {
                            return Err(invalid(
                                py,
                                format!("after_failure={other:?}: it is \"again\" or \"next\""),
                            ));
                        }
                    };
                    spec = spec.map(|spec| spec.after_failure(after_failure));
                }
            }
        }
        client.face.object::<Job, AsyncJob>(py, JobInner::new(py, &client.inner, spec, timeout, cancels)?)
    }

    /// The barrier at ``path``: while it is set, callers of ``wait`` wait.
    ///
    /// >>> barrier = zk.barrier("/barriers/doc")
    /// >>> barrier.set(), barrier.wait(timeout=0.01), barrier.remove(), barrier.wait()
    /// (True, False, True, True)
    ///
    /// It does not belong to a process: it stays set after the process that set it has ended, and any process may remove
    /// it. It is compatible with Curator's ``DistributedBarrier``.
    fn barrier(&self, py: Python<'_>, path: &str) -> PyResult<Py<PyAny>> {
        self.face.object::<Barrier, AsyncBarrier>(py, BarrierInner::new(py, &self.inner, path)?)
    }

    /// The double barrier at ``path``: no member begins before ``members`` have entered, and none goes on before all have
    /// left.
    ///
    /// >>> with zk.double_barrier("/barriers/doc-too", 1, timeout=5) as member:
    /// ...     member.loss is None
    /// True
    ///
    /// The block begins when all members have entered, and at its end it waits until all have left. If the block raises,
    /// the member leaves without waiting. ``timeout`` is how many seconds to wait for the others, at either end; ``None``
    /// waits for ever. It is compatible with Curator's ``DistributedDoubleBarrier``.
    #[pyo3(signature = (path, members, *, timeout=None))]
    fn double_barrier(
        &self,
        py: Python<'_>,
        path: &str,
        members: i64,
        timeout: Option<Timeout>,
    ) -> PyResult<Py<PyAny>> {
        let inner = DoubleBarrierInner::new(py, &self.inner, path, members, timeout)?;
        self.face.object::<DoubleBarrier, AsyncDoubleBarrier>(py, inner)
    }

    /// The counters of this client: its work so far, and the nodes that it still has to clean up. It
    /// is a ``Stats``. This sends no request.
    ///
    /// >>> stats = zk.stats()
    /// >>> stats.owed, stats.losses_by["lease_lapsed"]
    /// (0, 0)
    ///
    /// ``acquires`` counts acquires by outcome, and there are histograms of how long they waited. For a client that has not
    /// connected yet, everything is zero. ``locks`` has the figures of locks that were made with ``metrics_name``, by that name:
    ///
    /// >>> with zk.mutex("/locks/doc", metrics_name="report"):
    /// ...     zk.stats().locks["report"].held
    /// 1
    fn stats(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        value::stats(py, self.inner.core.stats())
    }

    /// All the figures of ``stats`` as text for Prometheus. It has Prometheus' format 0.0.4: serve it as ``text/plain;
    /// version=0.0.4``.
    ///
    /// >>> page = zk.prometheus()
    /// >>> 'zklock_acquires_total{outcome="timed_out"} 0' in page.splitlines()
    /// True
    ///
    /// Names of metrics and labels do not change from version to version, but later versions may add some. Each text is
    /// about one client. For several clients, use ``prometheus_text``: with two texts on one page, every name would
    /// occur twice, and Prometheus refuses that. It sends no request.
    fn prometheus(&self) -> String {
        self.inner.core.stats().to_prometheus()
    }

    /// The state of the connection: a ``ConnectionState``. It is ``None`` if the client has not connected yet, or was used
    /// in a process from which this one was forked.
    ///
    /// >>> zk.connection_state
    /// <ConnectionState.CONNECTED: 'connected'>
    #[getter]
    fn connection_state(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let state = self.inner.core.connection_state();
        state.map(|state| value::connection_state(py, state)).transpose()
    }

    /// Calls ``callback(state)`` with the current ``ConnectionState``, and again whenever it changes. Use it to pause work
    /// during an outage, or to drop what belonged to a lost session.
    ///
    /// >>> import queue
    /// >>> states = queue.Queue()
    /// >>> zk.on_connection(states.put)
    /// >>> states.get(timeout=5)
    /// <ConnectionState.CONNECTED: 'connected'>
    ///
    /// If the client has not connected yet, the first call comes once it has connected or is closed. ``CLOSED`` is always
    /// the last state. A client that is dropped without ``close``, or garbage collected, reports nothing more. Changes in
    /// quick succession may be reported as one. Several lost sessions are reported as one at least. To watch what a lock
    /// guards, use its hold instead, with ``Hold.lost``, ``Hold.on_lost`` and ``Hold.valid_for``.
    ///
    /// Raises ``TypeError`` if ``callback`` is not callable, and ``Forked`` if the client belongs to the process from
    /// which this one was forked.
    ///
    /// The callbacks of one client are called one at a time, on a thread for callbacks. If one raises, the exception goes
    /// to ``sys.unraisablehook``, and the callback is still called the next time. Under gevent and eventlet, a greenlet of
    /// the main thread calls them. In asyncio, have the callback use ``loop.call_soon_threadsafe``.
    fn on_connection(&self, callback: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = callback.py();
        let callback = Callback::new(callback, "on_connection", "each state of the connection")?;
        if self.inner.core.is_forked() {
            let message = "the client belongs to the process from which this one was forked: make one here";
            return Err(forked(py, message.to_owned()));
        }
        self.inner.callbacks.add(py, callback)
    }

    /// The number of the current session, or ``None`` if there is none.
    #[getter]
    fn session_id(&self) -> Option<i64> {
        self.inner.core.session_id()
    }

    /// The session timeout in seconds that the servers granted, or ``None`` if there is no session.
    #[getter]
    fn session_timeout(&self) -> Option<f64> {
        Some(self.inner.core.session_timeout()?.as_secs_f64())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.anchor)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        Ok(describe(&slf.get().inner, &slf.get_type().name()?.to_cow()?))
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable("Client", "make one in each process: zklock.Client(hosts)"))
    }
}

fn describe(inner: &ClientInner, class: &str) -> String {
    let client = &inner.core;
    let state = if client.is_forked() {
        "of the process from which this one was forked".to_owned()
    } else {
        match client.connection_state() {
            None => "not connected yet".to_owned(),
            Some(_) if !client.has_connected() => "closed".to_owned(),
            Some(_) => {
                let session = match (client.session_id(), client.session_timeout()) {
                    (Some(id), Some(timeout)) => format!("session {id:#x} of {timeout:?}"),
                    _ => "without a session".to_owned(),
                };
                let stats = client.stats();
                let (held, owed) = (inner.held().len(), stats.owed);
                format!(
                    "{session}, {held} held, {owed} owed, {} granted, {} lost",
                    stats.grants, stats.losses
                )
            }
        }
    };
    format!("<zklock.{class} {:?} {state}>", inner.hosts)
}

/// The figures of several clients as one text for Prometheus, as ``Client.prometheus`` gives it for one. Each client has the
/// key that it is given with as the label ``client``.
///
/// >>> page = zklock.prometheus_text({"orders": zk})
/// >>> 'zklock_acquires_total{client="orders",outcome="timed_out"} 0' in page.splitlines()
/// True
///
/// It sends no request.
#[pyfunction]
pub(crate) fn prometheus_text(clients: &Bound<'_, PyMapping>) -> PyResult<String> {
    let clients: Vec<(String, PyRef<'_, BaseClient>)> = clients.items()?.extract()?;
    let stats = clients.iter().map(|(name, client)| (name.as_str(), client.inner.core.stats()));
    Ok(zklock::further::prometheus_text(&stats.collect()))
}

/// Returns the locks that were given, blocking or asyncio.
fn locks_of(locks: &Bound<'_, PyAny>) -> PyResult<Vec<zklock::Lock>> {
    let core = |lock: Bound<'_, PyAny>| match lock.cast::<AsyncLock>() {
        Ok(lock) => Ok(lock.get().inner.core.clone()),
        Err(_) => Ok(lock.cast::<Lock>()?.get().inner.core.clone()),
    };
    locks.try_iter()?.map(|lock| core(lock?)).collect()
}
