//! The embedded server, for tests. See `zklock/testing.py`.
//!
//! It runs on its own threads, which never enter the interpreter. So there are only two rules: the interpreter is
//! released while the server is called, and in a forked child, which has none of the server's threads, nothing of it is
//! touched, not even to drop it.

#![allow(clippy::needless_pass_by_value, reason = "what pyo3 makes of an argument is a value")]

mod embedded;
mod fault;

use self::embedded::{Embedded, is_closed};
use self::fault::{SessionLike, positive};
use crate::guest::error::{invalid, late, unpicklable};
use crate::guest::number;
use crate::guest::number::{Timeout, patience, seconds};
use crate::guest::value;
use crate::guest::wait::in_slices;
use pyo3::prelude::*;
use std::sync::Arc;
use std::time::Duration;
use zklock_testkit::console;

pub(crate) use self::fault::Injected;

/// Runs the program `zklock.testing` with these arguments, and returns its status.
#[pyfunction]
pub(crate) fn testing_program(py: Python<'_>, arguments: Vec<String>) -> u8 {
    py.detach(|| console::program(&arguments))
}

/// Reads a time among the server's arguments.
fn interval(py: Python<'_>, name: &str, given: f64) -> PyResult<Duration> {
    const BOUNDS: std::ops::RangeInclusive<f64> = 0.001..=86_400.0;
    if BOUNDS.contains(&given) {
        return seconds(py, name, given);
    }
    Err(invalid(
        py,
        format!("{name} of {given} s: it is a number of seconds from 0.001 to 86400, which is a day"),
    ))
}

fn node_path<'a>(py: Python<'_>, path: &'a str) -> PyResult<&'a str> {
    if path == "/" || (path.starts_with('/') && !path.ends_with('/')) {
        return Ok(path);
    }
    Err(invalid(
        py,
        format!("{path:?} is not a path of a node: it begins with '/', and does not end with it"),
    ))
}

/// A ZooKeeper server in this process, for tests. It keeps everything in memory, and forgets it when it is closed.
///
/// >>> with zklock.testing.Server() as server, zklock.Client(server.hosts) as zk:
/// ...     with zk.mutex("/locks/doc"):
/// ...         len(server.children("/locks/doc"))
/// 1
///
/// It serves as soon as it is made, on a port of its own on 127.0.0.1. Any ZooKeeper client in any process can use it.
/// It is a single server, and does not replace an ensemble. It offers no encryption, and every client that can reach it
/// may do everything. ``listen`` is the address at which it listens, ``host:port``; port 0 takes any free port.
///
/// Times are in seconds. ``tick`` is ZooKeeper's unit of time: a session lasts 2 to 20 ticks, and ends on a whole tick.
/// ``session_timeouts`` replaces these bounds by the shortest and the longest session that is granted. With
/// ``manual_clock`` time stands still until ``advance`` moves it: no session ends by itself, however long you look at
/// it in a debugger.
///
/// ``words`` lists the four-letter words that are answered, such as ``"srvr, ruok"``. See ``4lw.commands.whitelist`` of
/// ZooKeeper. By default it answers all that it knows. (A real server answers only ``srvr`` by default.)
///
/// ``like`` says which server it imitates: ``"3.8"``; ``"3.4"``, ZooKeeper 3.4.14, which has no container nodes; or
/// ``"keeper-25"``, ClickHouse Keeper 25, which hangs up on requests that it does not know and never takes a session
/// back.
///
/// Raises ``InvalidInput`` if an argument is wrong, and ``Refused`` if the system does not allow it to listen
/// there.
///
/// Threads may share a server. A process that is forked from this one can use only its ``hosts``: everything else
/// raises ``Forked`` there. After ``close`` everything else raises ``Closed``.
#[pyclass(frozen, weakref, module = "zklock.testing")]
pub(crate) struct Server {
    embedded: Arc<Embedded>,
}

impl Server {
    fn ask<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&zklock_testkit::Server) -> T + Send,
    ) -> PyResult<T> {
        self.embedded.ask(py, call)
    }

    /// The same, about a node.
    fn at<T: Send>(
        &self,
        py: Python<'_>,
        path: &str,
        call: impl FnOnce(&zklock_testkit::Server) -> T + Send,
    ) -> PyResult<T> {
        node_path(py, path)?;
        self.ask(py, call)
    }
}

#[pymethods]
impl Server {
    #[new]
    #[pyo3(signature = (*, listen="127.0.0.1:0", tick=2.0, session_timeouts=None, manual_clock=false, words="*", like="3.8"))]
    fn new(
        py: Python<'_>,
        listen: &str,
        tick: f64,
        session_timeouts: Option<(f64, f64)>,
        manual_clock: bool,
        words: &str,
        like: &str,
    ) -> PyResult<Self> {
        let builder = zklock_testkit::Server::builder().address(listen).words(words);
        let builder = builder.like(like).map_err(|error| invalid(py, error.to_string()))?;
        let mut builder = builder.tick(interval(py, "tick", tick)?);
        if let Some((shortest, longest)) = session_timeouts {
            let name = "session_timeouts";
            let (first, last) = (interval(py, name, shortest)?, interval(py, name, longest)?);
            if first > last {
                let message = format!("{name} of ({shortest}, {longest}): the shortest comes first");
                return Err(invalid(py, message));
            }
            builder = builder.session_timeouts(first, last);
        }
        if manual_clock {
            builder = builder.manual_clock();
        }
        Ok(Self { embedded: Embedded::start(py, builder)? })
    }

    /// The address for clients: ``127.0.0.1:PORT``. It can be read even after the server is closed.
    #[getter]
    fn hosts(&self) -> &str {
        &self.embedded.hosts
    }

    /// The open sessions, oldest first: a list of ``Session``.
    fn sessions(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        let sessions = self.ask(py, zklock_testkit::Server::sessions)?;
        sessions.into_iter().map(|session| value::session(py, session)).collect()
    }

    /// Ends a session at once, and deletes its ephemeral nodes, as if it had timed out. ``session`` is a ``Session``, or
    /// the ``session_id`` of a client. Returns ``False`` if there is no such session.
    ///
    /// >>> hold = zk.mutex("/locks/doc").hold()
    /// >>> server.expire(zk.session_id), hold.lost.wait(timeout=5)
    /// (True, True)
    fn expire(&self, py: Python<'_>, session: SessionLike) -> PyResult<bool> {
        self.ask(py, |server| server.expire(session.id()))
    }

    /// Puts the server's clock forward. Sessions that are frozen or not connected end when their time is over, and
    /// delayed replies are sent. Sessions that are connected stay, because their clients would have sent something
    /// meanwhile.
    ///
    /// The clocks of clients do not move. So a frozen holder still believes in its lease when the next one already has
    /// the lock. Use this to test fencing tokens. Raises ``InvalidInput`` if ``seconds`` is negative.
    #[pyo3(name = "advance", signature = (seconds, /))]
    fn advance(&self, py: Python<'_>, seconds: f64) -> PyResult<()> {
        let by = number::seconds(py, "seconds", seconds)?;
        self.ask(py, |server| server.advance(by))
    }

    /// Sets the date that the server gives to what is written from now on, in seconds since 1970. It runs on from there,
    /// and sessions do not notice. It may go back, as it does when another server becomes the leader whose clock is slow.
    ///
    /// So a test of a job need not wait for the next period:
    ///
    /// >>> import time
    /// >>> server.set_date(time.time() + 86400)
    ///
    /// Raises ``InvalidInput`` if ``since_1970`` is negative.
    #[pyo3(signature = (since_1970, /))]
    fn set_date(&self, py: Python<'_>, since_1970: f64) -> PyResult<()> {
        let date = Duration::try_from_secs_f64(since_1970).map_err(|_| {
            let message =
                format!("a date of {since_1970} s: give the seconds since 1970, such as time.time()");
            invalid(py, message)
        })?;
        self.ask(py, |server| server.set_date(date))
    }

    /// Sets a fault for a message to come. Returns an ``Injected``, which tells when the fault has struck.
    ///
    /// >>> injected = server.inject("cut-before-reply", "create", below="/locks/doc")
    /// >>> with zk.mutex("/locks/doc", timeout=5):
    /// ...     injected.strikes
    /// 1
    ///
    /// ``fault`` says what happens:
    ///
    /// * ``"lose-request"``: the request never arrives, and the connection is cut;
    /// * ``"cut-before-reply"``: the request is carried out, but the connection is cut instead of a reply;
    /// * ``"cut-after-reply"``: the connection is cut just after the reply;
    /// * ``"drop-reply"``: the reply is never sent;
    /// * ``"delay-reply"``: the reply comes ``delay`` seconds later, by the server's clock;
    /// * ``"freeze"``: the session is frozen just before the request;
    /// * ``"expire"``: the session is ended just before the request;
    /// * ``"bring-back"``: the request is answered, and the nodes that it deleted are there again, as when an ensemble
    ///   loses what it had confirmed.
    ///
    /// ``kind`` says which messages count: connect, create, delete, exists, get-data, set-data, get-children, acl, sync,
    /// ping, multi (such as the heartbeat of a holder), auth, watches, close, event (sent by the server when a watch
    /// fires) or other. With ``below``, only messages about that path or a path below it count, and with ``session`` only
    /// those of that session. The fault strikes at the ``nth`` message that counts from now on, and then at the following
    /// ones, ``times`` in all.
    ///
    /// Raises ``InvalidInput`` if there is no such fault or kind, if ``below`` is not a valid path, if ``nth`` or ``times`` is
    /// less than 1, or if ``delay`` is missing for ``"delay-reply"`` or given for another fault.
    #[pyo3(signature = (fault, kind, *, nth=1, times=1, below=None, session=None, delay=None))]
    #[expect(clippy::too_many_arguments, reason = "they are named in Python")]
    fn inject(
        &self,
        py: Python<'_>,
        fault: &str,
        kind: &str,
        nth: i64,
        times: i64,
        below: Option<&str>,
        session: Option<SessionLike>,
        delay: Option<f64>,
    ) -> PyResult<Injected> {
        let mut made = fault::fault(py, fault, kind, delay)?;
        made = made.nth(positive(py, "nth", nth)?).times(positive(py, "times", times)?);
        if let Some(path) = below {
            made = made.below(node_path(py, path)?);
        }
        if let Some(session) = session {
            made = made.of_session(session.id());
        }
        let injected = self.ask(py, |server| server.inject(made))?;
        Ok(Injected {
            injected,
            name: format!("{fault} at {kind}"),
            embedded: Arc::downgrade(&self.embedded),
        })
    }

    /// Removes all faults that have not struck yet.
    fn clear_faults(&self, py: Python<'_>) -> PyResult<()> {
        self.ask(py, zklock_testkit::Server::clear_faults)
    }

    /// Cuts all connections, or only that of ``session``. Returns ``False`` if that session has no connection. Sessions
    /// live on, and new connections are accepted.
    #[pyo3(signature = (session=None))]
    fn cut(&self, py: Python<'_>, session: Option<SessionLike>) -> PyResult<bool> {
        self.ask(py, |server| match session {
            Some(session) => server.cut_session(session.id()),
            None => {
                server.cut();
                true
            }
        })
    }

    /// Stops answering, as a broken network would: all sessions, or only ``session``, on its present and later
    /// connections. Connections stay open, and new ones are accepted. Returns ``False`` if there is no such session.
    #[pyo3(signature = (session=None))]
    fn freeze(&self, py: Python<'_>, session: Option<SessionLike>) -> PyResult<bool> {
        self.ask(py, |server| match session {
            Some(session) => server.freeze_session(session.id()),
            None => {
                server.freeze();
                true
            }
        })
    }

    /// Ends every freeze. Requests that arrived meanwhile are answered now.
    fn thaw(&self, py: Python<'_>) -> PyResult<()> {
        self.ask(py, zklock_testkit::Server::thaw)
    }

    /// Closes each new connection at once. Present connections stay. ``refuse(False)`` ends it.
    #[pyo3(signature = (refused=true))]
    fn refuse(&self, py: Python<'_>, refused: bool) -> PyResult<()> {
        self.ask(py, |server| server.refuse(refused))
    }

    /// The names of a node's children, sorted, or ``None`` if the node does not exist. Raises ``InvalidInput`` for an
    /// invalid path.
    fn children(&self, py: Python<'_>, path: &str) -> PyResult<Option<Vec<String>>> {
        self.at(py, path, |server| server.children(path))
    }

    /// The data of a node, or ``None`` if the node does not exist. Raises ``InvalidInput`` for an invalid path.
    fn data(&self, py: Python<'_>, path: &str) -> PyResult<Option<Vec<u8>>> {
        self.at(py, path, |server| server.data(path))
    }

    /// The number of the session that owns an ephemeral node, or ``None`` if the node does not exist or is not ephemeral.
    /// Raises ``InvalidInput`` for an invalid path.
    fn owner(&self, py: Python<'_>, path: &str) -> PyResult<Option<i64>> {
        self.at(py, path, |server| server.owner(path))
    }

    /// Creates a persistent node, and its parents. If the node exists, replaces its data. Raises ``InvalidInput`` if the
    /// server cannot have such a node.
    #[pyo3(signature = (path, data=Vec::new()), text_signature = "($self, path, data=b'')")]
    fn put(&self, py: Python<'_>, path: &str, data: Vec<u8>) -> PyResult<()> {
        let put = self.ask(py, |server| server.put(path, data))?;
        put.map_err(|error| invalid(py, error.to_string()))
    }

    /// Deletes a node and everything below it, as an operator would. Returns ``False`` if the node does not exist. Raises
    /// ``InvalidInput`` for an invalid path.
    fn delete(&self, py: Python<'_>, path: &str) -> PyResult<bool> {
        self.at(py, path, |server| server.delete(path))
    }

    /// Puts back the node that was deleted last at this path, as it was, and notifies nobody. So its deletion was
    /// confirmed but is lost, as when an ensemble loses transactions at a change of its leader. Returns ``False`` if
    /// there is a node again, if none was deleted, or if its session or its parent is gone. Raises ``InvalidInput`` for
    /// an invalid path.
    fn bring_back(&self, py: Python<'_>, path: &str) -> PyResult<bool> {
        self.at(py, path, |server| server.bring_back(path))
    }

    /// Sets the number that the next sequential child of a node gets. Returns ``False`` if the node does not exist.
    /// ZooKeeper counts in 32 bits with a sign, and since 3.6 its counter sticks: every child after 2147483647 gets that
    /// number again. Raises ``InvalidInput`` for an invalid path.
    fn set_sequence(&self, py: Python<'_>, path: &str, number: i32) -> PyResult<bool> {
        self.at(py, path, |server| server.set_sequence(path, number))
    }

    /// Waits until a node has ``count`` children, and returns their names, sorted. So a test waits for a queue without
    /// sleeping. A node that does not exist has no children.
    ///
    /// Raises ``Timeout`` if the node has another number of children after ``timeout`` seconds; ``None`` waits for ever.
    /// Raises ``Closed`` if the server is closed meanwhile, and ``InvalidInput`` for an invalid path.
    #[pyo3(signature = (path, count, timeout=10.0))]
    fn wait_for_children(
        &self,
        py: Python<'_>,
        path: &str,
        count: i64,
        timeout: Option<f64>,
    ) -> PyResult<Vec<String>> {
        let path = node_path(py, path)?;
        let wanted = number::count(py, "count", count)? as usize;
        let bound = patience(py, timeout.map(Timeout))?;
        self.embedded.refuse_forked(py)?;
        let embedded = &self.embedded;
        let seen = in_slices(py, bound, |slice| {
            // An inner `None`: it was closed meanwhile.
            embedded
                .call(|server| server.wait_for_children(path, wanted, slice).map(Some))
                .unwrap_or(Some(None))
        })?;
        match seen {
            Some(Some(names)) => Ok(names),
            Some(None) => Err(is_closed(py)),
            None => {
                let there = self.ask(py, |server| server.children(path))?.unwrap_or_default();
                let seconds = timeout.unwrap_or_default();
                let message =
                    format!("{path} does not have {count} children after {seconds} s, but these: {there:?}");
                Err(late(py, message))
            }
        }
    }

    /// The tree below a node as text for people, one node to a line. Raises ``InvalidInput`` for an invalid path.
    #[pyo3(signature = (path="/"))]
    fn dump(&self, py: Python<'_>, path: &str) -> PyResult<String> {
        self.at(py, path, |server| server.dump(path))
    }

    /// Closes the server. Its clients lose their connections. Closing twice is not an error.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.embedded.refuse_forked(py)?;
        py.detach(|| self.embedded.close());
        Ok(())
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        slf.get().ask(slf.py(), |_| ())?;
        Ok(slf)
    }

    #[pyo3(signature = (kind, exception, traceback))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        exception: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let _ = (kind, exception, traceback);
        self.close(py).map(|()| false)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let is_open = self.ask(py, |_| ()).is_ok();
        let state = if is_open { "at" } else { "closed, was at" };
        format!("<zklock.testing.Server {state} {}>", self.embedded.hosts)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable("Server", "send its hosts"))
    }
}
