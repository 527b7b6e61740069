//! The embedded server, for tests. See `zklock/testing.py`.
//!
//! It runs on threads of its own, which never enter the interpreter. So all that is to be minded here is that the
//! interpreter is not held while it is called, and that a fork has none of its threads: there nothing of it is touched,
//! not even to drop it.

mod embedded;
mod fault;

use self::embedded::{Embedded, is_closed, without_signals};
use self::fault::{SessionLike, positive};
use crate::error::{invalid, late, refused, unpicklable};
use crate::number;
use crate::number::{patience, seconds};
use crate::sync::lock_ignoring_poison;
use crate::value;
use crate::wait::in_slices;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use zklock_testkit::console;

pub(crate) use self::fault::Injected;

/// A time that a server is made with.
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
    Err(invalid(py, format!("{path:?} is no path of a node: it begins with '/', and does not end with it")))
}

/// A ZooKeeper server in this process, for tests: all that it keeps is in memory, and gone when it is closed.
///
/// >>> with zklock.testing.Server() as server, zklock.Client(server.hosts) as zk:
/// ...     with zk.mutex("/locks/doc"):
/// ...         len(server.children("/locks/doc"))
/// 1
///
/// It serves as soon as it is made, on a port of its own on 127.0.0.1, and any ZooKeeper client can use it, of any
/// process. It is one server, and no replacement for an ensemble. There is no encryption, and all who can reach it can do
/// everything: ``listen`` is where it listens, ``host:port``, and port 0 takes any that is free.
///
/// Times are in seconds. ``tick`` is ZooKeeper's unit of time: a session lasts 2 to 20 of them, and ends at a full one;
/// ``session_timeouts`` are the shortest and the longest that are granted, in place of that. With ``manual_clock`` time stands
/// still, but for ``advance``: no session ends by itself, however long somebody looks at it in a debugger.
///
/// ``words`` are the words of four letters that are answered, as in ZooKeeper's ``4lw.commands.whitelist``: all that it knows, unless
/// they are listed, ``"srvr, ruok"``. (A real server that was not told otherwise answers ``srvr`` alone.)
///
/// Threads may share it. A fork has only its ``hosts``: all else raises ``ForkedError`` there. And once it is closed, all
/// else raises ``Closed``.
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
}

#[pymethods]
impl Server {
    #[new]
    #[pyo3(signature = (*, listen="127.0.0.1:0", tick=2.0, session_timeouts=None, manual_clock=false, words="*"))]
    fn new(
        py: Python<'_>,
        listen: &str,
        tick: f64,
        session_timeouts: Option<(f64, f64)>,
        manual_clock: bool,
        words: &str,
    ) -> PyResult<Self> {
        let builder = zklock_testkit::Server::builder().address(listen).words(words);
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

    /// Where clients reach it: ``127.0.0.1:PORT``. It stays the same when it is closed.
    #[getter]
    fn hosts(&self) -> &str {
        &self.embedded.hosts
    }

    /// The sessions that are open, in the order of their beginning: a list of ``Session``.
    fn sessions(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        let sessions = self.ask(py, zklock_testkit::Server::sessions)?;
        sessions.into_iter().map(|session| value::session(py, session)).collect()
    }

    /// Ends a session at once, with its nodes, as if its time were over: a ``Session``, or the ``session_id`` of a client.
    /// ``False`` when there is no such session.
    ///
    /// >>> hold = zk.mutex("/locks/doc").hold()
    /// >>> server.expire(zk.session_id), hold.lost.wait(timeout=5)
    /// (True, True)
    #[allow(clippy::needless_pass_by_value, reason = "what pyo3 makes of an argument is a value")]
    fn expire(&self, py: Python<'_>, session: SessionLike) -> PyResult<bool> {
        self.ask(py, |server| server.expire(session.id()))
    }

    /// Puts the server's clock forward: sessions that are not connected, or frozen, end when their time is over, and what
    /// is delayed comes. Sessions that are connected would have been heard of meanwhile, and stay.
    ///
    /// The clocks of clients go on as they were. So a holder that is frozen still believes in its lease when the next has the
    /// lock: what fencing tokens are for can be tested with that.
    #[pyo3(name = "advance", signature = (seconds, /))]
    fn advance(&self, py: Python<'_>, seconds: f64) -> PyResult<()> {
        let by = number::seconds(py, "seconds", seconds)?;
        self.ask(py, |server| server.advance(by))
    }

    /// Sets a fault for a message to come, and gives an ``Injected``, which tells when it has struck.
    ///
    /// >>> injected = server.inject("cut-before-reply", "create", below="/locks/doc")
    /// >>> with zk.mutex("/locks/doc", timeout=5):
    /// ...     injected.strikes
    /// 1
    ///
    /// ``fault`` is what happens: with ``"lose-request"`` the request never arrives, and the connection is cut; with
    /// ``"cut-before-reply"`` it is carried out, but the connection is cut in place of the reply; with ``"cut-after-reply"`` it
    /// is cut just after it; with ``"drop-reply"`` the reply is swallowed; with ``"delay-reply"`` it comes ``delay`` seconds
    /// later, by the server's clock; with ``"freeze"`` the session is frozen just before, and with ``"expire"`` ended; with
    /// ``"bring-back"`` it is answered, and the nodes that it has deleted are there again, as when an ensemble has lost what it
    /// had confirmed.
    ///
    /// ``kind`` is what the message is about: connect, create, delete, exists, get-data, set-data, get-children, acl, sync,
    /// ping, multi (the heartbeat of a holder is one), auth, watches, close, event (a watch has fired; this one the server
    /// sends unasked) or other. Only those count that are about a path at or ``below`` this one, and of this ``session``. It
    /// strikes at the ``nth`` that counts from now on, and so many ``times``.
    #[pyo3(signature = (fault, kind, *, nth=1, times=1, below=None, session=None, delay=None))]
    #[allow(clippy::too_many_arguments, clippy::needless_pass_by_value, reason = "they are named in Python")]
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

    /// Forgets all faults that have not struck yet.
    fn clear_faults(&self, py: Python<'_>) -> PyResult<()> {
        self.ask(py, zklock_testkit::Server::clear_faults)
    }

    /// Cuts all connections, or that of a session; ``False`` when that has none. Sessions live on, and new connections are
    /// welcome.
    #[pyo3(signature = (session=None))]
    #[allow(clippy::needless_pass_by_value, reason = "what pyo3 makes of an argument is a value")]
    fn cut(&self, py: Python<'_>, session: Option<SessionLike>) -> PyResult<bool> {
        self.ask(py, |server| match session {
            Some(session) => server.cut_session(session.id()),
            None => {
                server.cut();
                true
            }
        })
    }

    /// Stops answering all, or one session, on this connection and on those to come, as a broken network would. Connections
    /// stay open, and new ones are accepted. ``False`` when there is no such session.
    #[pyo3(signature = (session=None))]
    #[allow(clippy::needless_pass_by_value, reason = "what pyo3 makes of an argument is a value")]
    fn freeze(&self, py: Python<'_>, session: Option<SessionLike>) -> PyResult<bool> {
        self.ask(py, |server| match session {
            Some(session) => server.freeze_session(session.id()),
            None => {
                server.freeze();
                true
            }
        })
    }

    /// Ends every freeze: what has waited goes on.
    fn thaw(&self, py: Python<'_>) -> PyResult<()> {
        self.ask(py, zklock_testkit::Server::thaw)
    }

    /// Closes new connections at once; those that are there stay. ``refuse(False)`` ends it.
    #[pyo3(signature = (refused=true))]
    fn refuse(&self, py: Python<'_>, refused: bool) -> PyResult<()> {
        self.ask(py, |server| server.refuse(refused))
    }

    /// The names of a node's children, sorted; ``None`` where there is no such node.
    fn children(&self, py: Python<'_>, path: &str) -> PyResult<Option<Vec<String>>> {
        let path = node_path(py, path)?;
        self.ask(py, |server| server.children(path))
    }

    /// A node's data; ``None`` where there is no such node.
    fn data(&self, py: Python<'_>, path: &str) -> PyResult<Option<Vec<u8>>> {
        let path = node_path(py, path)?;
        self.ask(py, |server| server.data(path))
    }

    /// The number of the session that a node ends with; ``None`` where there is no such node, or it is not ephemeral.
    fn owner(&self, py: Python<'_>, path: &str) -> PyResult<Option<i64>> {
        let path = node_path(py, path)?;
        self.ask(py, |server| server.owner(path))
    }

    /// Puts a persistent node there, and its parents; where there is one already, gives it other data.
    #[pyo3(signature = (path, data=Vec::new()), text_signature = "($self, path, data=b'')")]
    fn put(&self, py: Python<'_>, path: &str, data: Vec<u8>) -> PyResult<()> {
        let put = self.ask(py, |server| server.put(path, data))?;
        put.map_err(|error| invalid(py, error.to_string()))
    }

    /// Deletes a node and all below it, as an operator would; ``False`` where there is none.
    fn delete(&self, py: Python<'_>, path: &str) -> PyResult<bool> {
        let path = node_path(py, path)?;
        self.ask(py, |server| server.delete(path))
    }

    /// Puts back the node that was deleted last at this path, as it was, and tells nobody: its deletion was confirmed, and is
    /// lost, as when an ensemble has lost transactions in a change of its leader. ``False`` where there is a node again, where
    /// none was deleted, and where its session or its parent is gone.
    fn bring_back(&self, py: Python<'_>, path: &str) -> PyResult<bool> {
        let path = node_path(py, path)?;
        self.ask(py, |server| server.bring_back(path))
    }

    /// Sets the number that the next sequential child of a node gets; ``False`` where there is no such node. ZooKeeper counts
    /// in 32 bits with a sign, and since 3.6 its counter sticks: every child after that gets 2147483647, too.
    fn set_sequence(&self, py: Python<'_>, path: &str, number: i32) -> PyResult<bool> {
        let path = node_path(py, path)?;
        self.ask(py, |server| server.set_sequence(path, number))
    }

    /// Waits until a node has so many children, and gives their names, sorted: so a test waits for a queue without sleeping. A
    /// node that is not there has none.
    ///
    /// Raises ``Timeout`` if that is not so within ``timeout`` seconds; ``None`` waits for ever.
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
        let bound = patience(py, timeout)?;
        self.embedded.refuse_forked(py)?;
        let embedded = &self.embedded;
        let seen = in_slices(py, bound, |slice| {
            // `None` in it: closed meanwhile.
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
                    format!("{path} has not got {count} children within {seconds} s, but these: {there:?}");
                Err(late(py, message))
            }
        }
    }

    /// The tree below a node as a text to look at, a node a line.
    #[pyo3(signature = (path="/"))]
    fn dump(&self, py: Python<'_>, path: &str) -> PyResult<String> {
        let path = node_path(py, path)?;
        self.ask(py, |server| server.dump(path))
    }

    /// Ends the server. Its clients lose their connections. Closing twice is not an error.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.embedded.refuse_forked(py)?;
        py.detach(|| self.embedded.close());
        Ok(())
    }

    /// The server that the arguments of the program ask for; `None` when it is help.
    #[staticmethod]
    #[pyo3(signature = (arguments, /))]
    #[allow(clippy::needless_pass_by_value, reason = "what pyo3 makes of an argument is a value")]
    fn _of_arguments(py: Python<'_>, arguments: Vec<String>) -> PyResult<Option<Self>> {
        let settings = console::settings(&arguments).map_err(|error| invalid(py, error.to_string()))?;
        let started = settings.map(|builder| Embedded::start(py, builder)).transpose()?;
        Ok(started.map(|embedded| Self { embedded }))
    }

    /// What the program tells of itself.
    #[classattr]
    fn _usage() -> &'static str {
        console::USAGE
    }

    /// Carries out an order to the program; its answer, and whether it was to quit.
    #[pyo3(signature = (order, /))]
    fn _obey(&self, py: Python<'_>, order: PyBackedStr) -> PyResult<(String, bool)> {
        self.embedded.refuse_forked(py)?;
        let (sender, done) = channel();
        let embedded = self.embedded.clone();
        let obey = move || {
            let mut answer = Vec::new();
            let quits = embedded.call(|server| {
                lock_ignoring_poison(&embedded.console).run(server, order.as_bytes(), &mut answer)
            });
            // Nobody may listen any more.
            let _ = sender.send((answer, quits));
        };
        // An order may be to wait, which a signal cannot end: but who waits for it can go.
        let started = without_signals(|| thread::Builder::new().spawn(obey));
        started.map_err(|error| refused(py, format!("the system gives no thread: {error}")))?;
        let done = Mutex::new(done);
        let seen = in_slices(py, None, |slice| match lock_ignoring_poison(&done).recv_timeout(slice) {
            Err(RecvTimeoutError::Timeout) => None,
            seen => Some(seen.ok()),
        })?;
        match seen.flatten() {
            Some((answer, Some(Ok(quits)))) => Ok((String::from_utf8_lossy(&answer).into_owned(), quits)),
            _ => Err(is_closed(py)),
        }
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
