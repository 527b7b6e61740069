//! Jobs that run on one host in each period.

use crate::block::Block;
use crate::calls::anchor::CallbackAnchor;
use crate::calls::coroutine::Coroutine;
use crate::calls::owner;
use crate::client_inner::ClientInner;
use crate::guest::error::{not_held, raised};
use crate::guest::number::{self, Timeout};
use crate::guest::value;
use crate::held::Held;
use crate::hold::BaseHold;
use crate::inside::Inside;
use crate::noun::{Class, Face, Inner, noun};
use crate::scope::Scope;
use crate::verb::{Convert, Verb, or_raise};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use std::sync::Arc;
use std::time::Duration;
use zklock::further::{Owner, Record, RunEntry, RunOutcome};
use zklock::{Begun, Error, JobSpec};

/// A hold, and what is recorded of its run.
type Running = (Arc<Held>, RunEntry);
type Answer = Begun<zklock::Run>;

/// A job, and the blocks that run it.
pub(crate) struct JobInner {
    client: Arc<ClientInner>,
    core: zklock::Job,
    timeout: Option<Duration>,
    /// Whether a loss cancels an `async with` block.
    cancels: bool,
    /// Nothing for a block that has nothing to do.
    inside: Inside<Option<(Running, Option<Scope>)>>,
}

impl Inner for JobInner {
    fn anchor(&self, py: Python<'_>) -> PyResult<Py<CallbackAnchor>> {
        self.client.callbacks.anchor(py)
    }

    fn describe(&self, class: &str) -> String {
        format!("<zklock.{class} {:?} every {:?}>", self.path(), self.core.spec().every())
    }
}

impl JobInner {
    pub(crate) fn new(
        py: Python<'_>,
        client: &Arc<ClientInner>,
        spec: Result<JobSpec, Error>,
        timeout: Option<Timeout>,
        cancels: bool,
    ) -> PyResult<Arc<Self>> {
        let core = spec.and_then(|spec| client.core.job(&spec)).map_err(|error| raised(py, &error))?;
        let timeout = number::patience(py, timeout)?;
        Ok(Arc::new(Self { client: client.clone(), core, timeout, cancels, inside: Inside::default() }))
    }

    fn path(&self) -> &str {
        self.core.spec().path()
    }

    fn begin(&self, owner: Owner) -> Verb<Answer, impl Convert<Answer, Begun<Running>> + use<>> {
        let (core, timeout) = (self.core.clone(), self.timeout);
        let anchored = self.client.callbacks.anchored.clone();
        let begun = or_raise(move |_, begun: Answer| {
            Ok(match begun {
                Begun::Run(run) => {
                    let (hold, entry) = run.into_parts();
                    Begun::Run((Held::new(hold, owner, false, &anchored), entry))
                }
                Begun::Done(record) => Begun::Done(record),
            })
        });
        Verb::timed(move || core.begin_as(owner, timeout), begun).of_client(&self.client)
    }

    /// Makes the value of a block, and keeps what it has until its end.
    fn keep(
        &self,
        py: Python<'_>,
        (owner, block, mut scope): (Owner, Block, Option<Scope>),
        begun: Begun<Running>,
        value: impl FnOnce(Option<Arc<Held>>, Option<Record>) -> PyResult<Py<PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let (inner, value) = match begun {
            Begun::Run(running) => {
                let value = value(Some(running.0.clone()), None)?;
                if let Some(scope) = &mut scope {
                    scope.watch(py, &running.0)?;
                }
                (Some((running, scope)), value)
            }
            Begun::Done(record) => (None, value(None, Some(record))?),
        };
        self.inside.keep(owner, block, inner);
        Ok(value)
    }

    /// Returns what the block has that ends.
    fn take(&self, py: Python<'_>, owner: Owner, block: Block) -> PyResult<Option<(Running, Option<Scope>)>> {
        let inner = self.inside.take(owner, block);
        inner.ok_or_else(|| not_held(py, format!("no block runs the job {}", self.path())))
    }

    /// Records how a run ends whose block ends with this exception, and releases.
    fn end(&self, (held, entry): &Running, exception: &Bound<'_, PyAny>) -> PyResult<zklock::Call<()>> {
        let py = exception.py();
        if held.is_released() && exception.is_none() {
            let message = format!(
                "the run of the job {} is not recorded as done: its hold was released before",
                self.path()
            );
            return Err(not_held(py, message));
        }
        let outcome = if exception.is_none() {
            RunOutcome::Done
        } else {
            let text = exception.str().map(|text| text.to_string()).unwrap_or_default();
            RunOutcome::Failed(format!("{}: {text}", exception.get_type().name()?))
        };
        Ok(entry.end(&held.hold, outcome))
    }

    fn enter(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let (owner, block) = (owner::of_caller(py)?, Block::of_caller(py));
        let begun = self.begin(owner).run(py)?;
        // As with a lock: if a handler that is due raises, the hold is released.
        py.check_signals()?;
        self.keep(py, (owner, block, None), begun, |held, record| {
            let hold = held.map(|held| BaseHold::object(py, Face::Threads, held, false)).transpose()?;
            value::run(py, (hold, record))
        })
    }

    fn exit(&self, exception: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = exception.py();
        match self.take(py, owner::of_caller(py)?, Block::of_caller(py))? {
            Some((running, _)) => running.0.leave_by(self.end(&running, exception)?, exception),
            None => Ok(false),
        }
    }

    fn begin_block(self: &Arc<Self>, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let (owner, block) = (owner::of_task_or_unique(py)?, Block::of_caller(py));
        let scope = if self.cancels { Scope::of_caller(py, self.path(), false)? } else { None };
        let inner = self.clone();
        Scope::entering(py, scope, |scope| {
            let deliver = move |py: Python<'_>, begun| {
                inner.keep(py, (owner, block, scope), begun, |held, record| {
                    let hold =
                        held.map(|held| BaseHold::object(py, Face::Asyncio, held, false)).transpose()?;
                    value::async_run(py, (hold, record))
                })
            };
            Ok(self.begin(owner).and_then(deliver).coroutine("AsyncJob.__aenter__"))
        })
    }

    fn end_block(&self, exception: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        const WHAT: &str = "AsyncJob.__aexit__";
        let py = exception.py();
        match self.take(py, owner::of_task_or_unique(py)?, Block::of_caller(py))? {
            Some((running, scope)) => Scope::leaving(scope, exception, || {
                running.0.end_block_by(WHAT, self.end(&running, exception)?, exception)
            }),
            None => Coroutine::done(WHAT, value::boolean(py, false)).into_py_any(py),
        }
    }
}

noun! {
    /// A job that runs on one host in each period. Get one from ``Client.job``.
    ///
    /// >>> with zk.job("/jobs/doc", every="1d", timeout=5) as run:
    /// ...     if run:
    /// ...         print("with token", run.hold.token > 0)
    /// with token True
    /// >>> with zk.job("/jobs/doc", every="1d") as run:
    /// ...     bool(run), run.record.outcome
    /// (False, 'done')
    ///
    /// While another host runs the job, the block waits before it begins. The block's value, a ``Run``, is false if nothing is left
    /// to do in this period. If the block raises, the job has failed, with that exception as the reason, and the exception goes on.
    /// If the hold is lost meanwhile, the end of the block raises ``LockLost``, and the run counts as failed. An ``async with`` block
    /// is cancelled, as that of an ``AsyncLock`` is.
    ///
    /// It is also a decorator, for a function or a coroutine function: each call runs in a block of its own. If nothing is left to do, the
    /// function is not called, and the call returns ``None``.
    ///
    /// >>> @zk.job("/jobs/doc", every="1d")
    /// ... def report():
    /// ...     return "written"
    /// >>> print(report())
    /// None
    struct Job;

    /// A ``Job`` for asyncio. Get one from ``AsyncClient.job`` or from ``Job.aio``.
    ///
    /// >>> async def report():
    /// ...     async with zk.aio.job("/jobs/doc-too", every=3600, timeout=5) as run:
    /// ...         return bool(run)
    /// >>> asyncio.run(report())
    /// True
    struct AsyncJob;

    both(JobInner: aio, calls, blocks) {
        /// The path of the job, which is that of its mutex.
        #[getter]
        fn path(&self) -> &str {
            self.inner.path()
        }

        /// The ``Record`` of the last run, or ``None`` if the job has never run. It neither waits for a run nor disturbs it. Raises
        /// ``Refused`` if the record cannot be read.
        fn last(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
            let last = Verb::new(self.inner.core.last(), or_raise(value::record_or_none));
            Self::make(py, "last", last.of_client(&self.inner.client))
        }
    }
}
