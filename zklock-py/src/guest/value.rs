//! Plain values, whose classes are written in Python.

use crate::guest::mirror::{Members, Mirrored, Named, mirrored, named_tuple};
use crate::guest::sync::Found;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyTuple};
use std::time::{SystemTime, UNIX_EPOCH};
use zklock::further::{
    AcquireOutcome, Committed, ConnectionState, Histogram, LockStats, NodeData, Record, RunOutcome, Stats,
};
use zklock::{HoldState, LossReason, QueuedContender};
use zklock_testkit::Session;

mirrored! {
    HoldState { Held => HELD, AtRisk => AT_RISK, Lost(_) => LOST, Released => RELEASED, }
}

mirrored! {
    LossReason {
        SessionExpired => SESSION_EXPIRED,
        NodeDeleted => NODE_DELETED,
        LeaseLapsed => LEASE_LAPSED,
        ClientClosed => CLIENT_CLOSED,
        SessionClosed => SESSION_CLOSED,
        ForeignContender => FOREIGN_CONTENDER,
        Forked => FORKED,
    }
    texts
}

mirrored! {
    ConnectionState {
        Connected => CONNECTED,
        Disconnected => DISCONNECTED,
        SessionLost => SESSION_LOST,
        Closed => CLOSED,
    }
    texts
}

struct Classes {
    states: Members<HoldState>,
    reasons: Members<LossReason>,
    connection_states: Members<ConnectionState>,
    histogram: Named,
    lock_stats: Named,
    stats: Named,
    contender: Named,
    node_data: Named,
    record: Named,
    run: Named,
    async_run: Named,
    session: Named,
}

impl Classes {
    fn load(py: Python<'_>) -> PyResult<Self> {
        let module = py.import("zklock._values")?;
        Ok(Self {
            states: Members::load(&module)?,
            reasons: Members::load(&module)?,
            connection_states: Members::load(&module)?,
            histogram: Named::load(&module, "Histogram", HISTOGRAM)?,
            lock_stats: Named::load(&module, "LockStats", LOCK_STATS)?,
            stats: Named::load(&module, "Stats", STATS)?,
            contender: Named::load(&module, "Contender", CONTENDER)?,
            node_data: Named::load(&module, "NodeData", NODE_DATA)?,
            record: Named::load(&module, "Record", RECORD)?,
            run: Named::load(&module, "Run", RUN)?,
            async_run: Named::load(&module, "AsyncRun", ASYNC_RUN)?,
            session: Named::load(&module, "Session", SESSION)?,
        })
    }

    fn of(py: Python<'_>) -> PyResult<&Self> {
        static CLASSES: Found<Classes> = Found::new();
        CLASSES.or_find(|| Self::load(py))
    }
}

pub(crate) fn prepare(py: Python<'_>) -> PyResult<()> {
    Classes::of(py).map(drop)
}

pub(crate) fn state(py: Python<'_>, state: HoldState) -> PyResult<Py<PyAny>> {
    Ok(Classes::of(py)?.states.get(py, state))
}

pub(crate) fn reason(py: Python<'_>, reason: LossReason) -> PyResult<Py<PyAny>> {
    Ok(Classes::of(py)?.reasons.get(py, reason))
}

pub(crate) fn connection_state(py: Python<'_>, state: ConnectionState) -> PyResult<Py<PyAny>> {
    Ok(Classes::of(py)?.connection_states.get(py, state))
}

named_tuple! {
    fn histogram(py, histogram: Histogram) -> HISTOGRAM {
        counted: histogram.count(),
        sum: histogram.sum(),
        buckets: PyTuple::new(py, histogram.buckets().collect::<Vec<_>>())?,
    }
}

named_tuple! {
    fn lock_stats(py, lock: LockStats) -> LOCK_STATS {
        held: lock.held,
        waiting: lock.waiting,
        oldest_hold: lock.oldest_hold.map(|age| age.as_secs_f64()),
        acquires: acquires(py, |outcome| lock.acquires(outcome))?,
        losses_by: losses_by(py, |reason| lock.losses_by(reason))?,
        acquire_wait: histogram(py, lock.acquire_wait)?,
        hold_time: histogram(py, lock.hold_time)?,
    }
}

named_tuple! {
    fn stats(py, stats: Stats) -> STATS {
        sessions: stats.sessions,
        grants: stats.grants,
        losses: stats.losses,
        owed: stats.owed,
        reconnects: stats.reconnects,
        acquires: acquires(py, |outcome| stats.acquires(outcome))?,
        losses_by: losses_by(py, |reason| stats.losses_by(reason))?,
        acquire_wait: histogram(py, stats.acquire_wait)?,
        hold_time: histogram(py, stats.hold_time)?,
        heartbeat_lag: histogram(py, stats.heartbeat_lag)?,
        queue_length: histogram(py, stats.queue_length)?,
        locks: locks(py, stats.locks)?,
    }
}

fn locks(py: Python<'_>, named: Vec<LockStats>) -> PyResult<Bound<'_, PyDict>> {
    let locks = PyDict::new(py);
    for lock in named {
        locks.set_item(lock.name.clone(), lock_stats(py, lock)?)?;
    }
    Ok(locks)
}

/// Counts acquires by the names that the outcomes have in metrics.
fn acquires(py: Python<'_>, count: impl Fn(AcquireOutcome) -> u64) -> PyResult<Bound<'_, PyDict>> {
    let acquires = PyDict::new(py);
    for outcome in AcquireOutcome::ALL {
        acquires.set_item(outcome.to_string(), count(*outcome))?;
    }
    Ok(acquires)
}

/// Counts losses by the names that the reasons have in metrics. Hashing a member of an enum would run code that is
/// written in Python.
fn losses_by(py: Python<'_>, count: impl Fn(LossReason) -> u64) -> PyResult<Bound<'_, PyDict>> {
    let losses = PyDict::new(py);
    for why in LossReason::ALL {
        losses.set_item(LossReason::MEMBERS[why.place()].to_ascii_lowercase(), count(*why))?;
    }
    Ok(losses)
}

named_tuple! {
    fn contender(py, contender: QueuedContender) -> CONTENDER {
        name: contender.name,
        identity: contender.identity,
        session: contender.session,
        token: contender.token.value(),
        since: since_1970(contender.since),
        naming: contender.naming.to_string(),
        node: contender.node,
        role: contender.role.to_string(),
        holds: contender.holds,
    }
}

named_tuple! {
    fn node_data(py, node: NodeData) -> NODE_DATA {
        data: PyBytes::new(py, &node.data),
        version: node.version,
    }
}

named_tuple! {
    fn record(py, record: Record) -> RECORD {
        period: record.period(),
        began: since_1970(record.began),
        ended: record.ended.map(since_1970),
        next: since_1970(record.next()),
        identity: record.identity,
        token: record.token.value(),
        outcome: record.outcome.to_string(),
        failure: if let RunOutcome::Failed(why) = record.outcome { Some(why) } else { None },
    }
}

named_tuple! {
    fn run(py, run: (Option<Py<PyAny>>, Option<Record>)) -> RUN {
        hold: run.0,
        record: record_or_none(py, run.1)?,
    }
}

named_tuple! {
    fn async_run(py, run: (Option<Py<PyAny>>, Option<Record>)) -> ASYNC_RUN {
        hold: run.0,
        record: record_or_none(py, run.1)?,
    }
}

named_tuple! {
    fn session(py, session: Session) -> SESSION {
        id: session.id,
        timeout: session.timeout.as_secs_f64(),
        is_connected: session.is_connected,
        nodes: PyTuple::new(py, session.nodes)?,
    }
}

pub(crate) fn contenders(py: Python<'_>, queue: Vec<QueuedContender>) -> PyResult<Py<PyAny>> {
    let queue = queue.into_iter().map(|one| contender(py, one));
    Ok(queue.collect::<PyResult<Vec<_>>>()?.into_pyobject(py)?.unbind())
}

/// Converts a record; `None` if there is none.
pub(crate) fn record_or_none(py: Python<'_>, last: Option<Record>) -> PyResult<Py<PyAny>> {
    last.map_or_else(|| Ok(py.None()), |last| record(py, last))
}

fn since_1970(at: SystemTime) -> f64 {
    at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// Converts a node; `None` if there is no such node.
pub(crate) fn node(py: Python<'_>, node: Option<NodeData>) -> PyResult<Py<PyAny>> {
    node.map_or_else(|| Ok(py.None()), |node| node_data(py, node))
}

/// Returns the version of each node after the writes.
pub(crate) fn versions(py: Python<'_>, written: &Committed) -> PyResult<Py<PyAny>> {
    Ok(PyTuple::new(py, written.versions())?.into_any().unbind())
}

pub(crate) fn boolean(py: Python<'_>, value: bool) -> Py<PyAny> {
    PyBool::new(py, value).to_owned().into_any().unbind()
}
