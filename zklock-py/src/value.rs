//! Plain values, which are classes written in Python.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyTuple};
use std::time::UNIX_EPOCH;
use zklock_core::{
    Committed, ConnectionState, HoldState, LossReason, NodeData, QueuedContender, Role, Stats,
};

/// The classes and their members, fetched once: to look a member up runs code that is written in Python.
struct Classes {
    held: Py<PyAny>,
    at_risk: Py<PyAny>,
    lost: Py<PyAny>,
    released: Py<PyAny>,
    session_expired: Py<PyAny>,
    node_deleted: Py<PyAny>,
    lease_lapsed: Py<PyAny>,
    client_closed: Py<PyAny>,
    foreign_contender: Py<PyAny>,
    forked: Py<PyAny>,
    connected: Py<PyAny>,
    disconnected: Py<PyAny>,
    session_lost: Py<PyAny>,
    closed: Py<PyAny>,
    stats: Py<PyAny>,
    contender: Py<PyAny>,
    node_data: Py<PyAny>,
    session: Py<PyAny>,
    /// `tuple.__new__`, since that of a named tuple is written in Python.
    make: Py<PyAny>,
}

impl Classes {
    fn load(py: Python<'_>) -> PyResult<Self> {
        let module = py.import("zklock._values")?;
        let member = |class: &str, name: &str| module.getattr(class)?.getattr(name).map(Bound::unbind);
        Ok(Self {
            held: member("HoldState", "HELD")?,
            at_risk: member("HoldState", "AT_RISK")?,
            lost: member("HoldState", "LOST")?,
            released: member("HoldState", "RELEASED")?,
            session_expired: member("LossReason", "SESSION_EXPIRED")?,
            node_deleted: member("LossReason", "NODE_DELETED")?,
            lease_lapsed: member("LossReason", "LEASE_LAPSED")?,
            client_closed: member("LossReason", "CLIENT_CLOSED")?,
            foreign_contender: member("LossReason", "FOREIGN_CONTENDER")?,
            forked: member("LossReason", "FORKED")?,
            connected: member("ConnectionState", "CONNECTED")?,
            disconnected: member("ConnectionState", "DISCONNECTED")?,
            session_lost: member("ConnectionState", "SESSION_LOST")?,
            closed: member("ConnectionState", "CLOSED")?,
            stats: module.getattr("Stats")?.unbind(),
            contender: module.getattr("Contender")?.unbind(),
            node_data: module.getattr("NodeData")?.unbind(),
            session: module.getattr("Session")?.unbind(),
            make: py.get_type::<PyTuple>().getattr("__new__")?.unbind(),
        })
    }

    fn of(py: Python<'_>) -> PyResult<&Self> {
        static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();
        CLASSES.get_or_try_init(py, || Self::load(py))
    }
}

pub(crate) fn prepare(py: Python<'_>) -> PyResult<()> {
    Classes::of(py).map(drop)
}

pub(crate) fn state(py: Python<'_>, state: HoldState) -> PyResult<Py<PyAny>> {
    let classes = Classes::of(py)?;
    let member = match state {
        HoldState::Held => &classes.held,
        HoldState::AtRisk => &classes.at_risk,
        HoldState::Released => &classes.released,
        // What is not known is not held.
        _ => &classes.lost,
    };
    Ok(member.clone_ref(py))
}

pub(crate) fn reason(py: Python<'_>, reason: LossReason) -> PyResult<Py<PyAny>> {
    let classes = Classes::of(py)?;
    let member = match reason {
        LossReason::SessionExpired => &classes.session_expired,
        LossReason::NodeDeleted => &classes.node_deleted,
        LossReason::ClientClosed => &classes.client_closed,
        LossReason::ForeignContender => &classes.foreign_contender,
        LossReason::Forked => &classes.forked,
        // There is no other.
        _ => &classes.lease_lapsed,
    };
    Ok(member.clone_ref(py))
}

pub(crate) fn connection_state(py: Python<'_>, state: ConnectionState) -> PyResult<Py<PyAny>> {
    let classes = Classes::of(py)?;
    let member = match state {
        ConnectionState::Connected => &classes.connected,
        ConnectionState::SessionLost => &classes.session_lost,
        ConnectionState::Closed => &classes.closed,
        _ => &classes.disconnected,
    };
    Ok(member.clone_ref(py))
}

pub(crate) fn stats(py: Python<'_>, stats: Stats) -> PyResult<Py<PyAny>> {
    let classes = Classes::of(py)?;
    let Stats { sessions, grants, losses, owed, .. } = stats;
    classes.make.call1(py, (&classes.stats, (sessions, grants, losses, owed)))
}

pub(crate) fn contenders(py: Python<'_>, queue: Vec<QueuedContender>) -> PyResult<Py<PyAny>> {
    let queue = queue.into_iter().map(|one| contender(py, one));
    Ok(queue.collect::<PyResult<Vec<_>>>()?.into_pyobject(py)?.unbind())
}

pub(crate) fn contender(py: Python<'_>, contender: QueuedContender) -> PyResult<Py<PyAny>> {
    let classes = Classes::of(py)?;
    let since = contender.since.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let role = match contender.role {
        Role::Read => "read",
        Role::Write => "write",
        _ => "exclusive",
    };
    let QueuedContender { name, node, identity, session, token, dialect, holds, .. } = contender;
    let values = (name, identity, session, token.value(), since, dialect.to_string(), node, role, holds);
    classes.make.call1(py, (&classes.contender, values))
}

pub(crate) fn node(py: Python<'_>, node: Option<NodeData>) -> PyResult<Py<PyAny>> {
    let Some(NodeData { data, version, .. }) = node else { return Ok(py.None()) };
    let classes = Classes::of(py)?;
    classes.make.call1(py, (&classes.node_data, (PyBytes::new(py, &data), version)))
}

/// The version of each node after the writes.
pub(crate) fn versions(py: Python<'_>, written: &Committed) -> PyResult<Py<PyAny>> {
    Ok(PyTuple::new(py, written.versions())?.into_any().unbind())
}

pub(crate) fn session(py: Python<'_>, session: zklock_testkit::Session) -> PyResult<Py<PyAny>> {
    let classes = Classes::of(py)?;
    let nodes = PyTuple::new(py, session.nodes)?;
    let values = (session.id, session.timeout.as_secs_f64(), session.is_connected, nodes);
    classes.make.call1(py, (&classes.session, values))
}

pub(crate) fn boolean(py: Python<'_>, value: bool) -> Py<PyAny> {
    PyBool::new(py, value).to_owned().into_any().unbind()
}
