//! The common part of blocking and asyncio double barriers, and their members.

use crate::calls::anchor::AnchoredCallbacks;
use crate::guest::error::{not_held, raised};
use crate::guest::number;
use crate::guest::sync::lock_ignoring_poison;
use crate::guest::value;
use crate::shared::base_hold::note;
use crate::shared::block::Block;
use crate::shared::client::SharedClient;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use zklock_core::{Owner, blocking};

/// A double barrier at a path, and the members inside.
pub(crate) struct SharedDoubleBarrier {
    pub(crate) shared: Arc<SharedClient>,
    pub(crate) barrier: blocking::DoubleBarrier,
    pub(crate) timeout: Option<Duration>,
    /// The members of blocks, and their owners.
    inside: Mutex<Vec<(Owner, Block, Arc<SharedMember>)>>,
}

/// A member, until it has left.
pub(crate) struct SharedMember {
    pub(crate) path: String,
    pub(crate) node: String,
    /// The collector's view of the client's callbacks, since a member keeps the client.
    pub(crate) anchored: Arc<AnchoredCallbacks>,
    /// `None` once it was given up.
    member: Mutex<Option<Arc<blocking::Member>>>,
}

impl SharedDoubleBarrier {
    pub(crate) fn new(
        py: Python<'_>,
        shared: &Arc<SharedClient>,
        path: &str,
        members: i64,
        timeout: Option<f64>,
    ) -> PyResult<Arc<Self>> {
        let members = number::count(py, "members", members)?;
        let barrier = shared.client.double_barrier(path, members).map_err(|error| raised(py, &error))?;
        let timeout = number::patience(py, timeout)?;
        Ok(Arc::new(Self { shared: shared.clone(), barrier, timeout, inside: Mutex::default() }))
    }

    pub(crate) fn keep(&self, owner: Owner, block: Block, member: &Arc<SharedMember>) {
        lock_ignoring_poison(&self.inside).push((owner, block, member.clone()));
    }

    /// Returns the member that the end of a block leaves with. If the block is not known: the latest of this owner,
    /// otherwise of anyone, since another thread or task may end a generator.
    pub(crate) fn take(&self, py: Python<'_>, owner: Owner, block: Block) -> PyResult<Arc<SharedMember>> {
        let last = {
            let mut inside = lock_ignoring_poison(&self.inside);
            let blocks = inside.iter().enumerate().map(|(index, (_, block, _))| (index, *block));
            let known = block.find(blocks);
            let own = || inside.iter().rposition(|(whose, ..)| *whose == owner);
            known.or_else(own).or(inside.len().checked_sub(1)).map(|last| inside.remove(last).2)
        };
        last.ok_or_else(|| {
            not_held(
                py,
                format!("no member is inside the barrier {}: there is nothing to leave", self.barrier.path()),
            )
        })
    }

    pub(crate) fn describe(&self, class: &str) -> String {
        format!("<zklock.{class} {:?} of {} members>", self.barrier.path(), self.barrier.members())
    }
}

impl SharedMember {
    pub(crate) fn of(member: blocking::Member, client: &SharedClient) -> Arc<Self> {
        let (path, node) = (member.path().to_owned(), member.node().to_owned());
        let anchored = client.callbacks.anchored.clone();
        Arc::new(Self { path, node, anchored, member: Mutex::new(Some(Arc::new(member))) })
    }

    pub(crate) fn member(&self, py: Python<'_>) -> PyResult<Arc<blocking::Member>> {
        let member = lock_ignoring_poison(&self.member).clone();
        member
            .ok_or_else(|| not_held(py, format!("this member of the barrier {} has left before", self.path)))
    }

    /// Leaves in the background: others may wait for this member, but it does not wait for them.
    pub(crate) fn give_up(&self) {
        let member = lock_ignoring_poison(&self.member).take();
        drop(member);
    }

    /// Leaves after a block that failed: others may wait for this member, but it does not wait for them.
    pub(crate) fn fail(&self, exception: &Bound<'_, PyAny>) {
        let loss = lock_ignoring_poison(&self.member).as_ref().and_then(|member| member.loss());
        if let Some(reason) = loss {
            note(exception, &format!("the member of the barrier {} is lost: {reason}", self.path));
        }
        self.give_up();
    }

    pub(crate) fn loss(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let loss = lock_ignoring_poison(&self.member).as_ref().and_then(|member| member.loss());
        loss.map(|reason| value::reason(py, reason)).transpose()
    }

    pub(crate) fn describe(&self, class: &str) -> String {
        let node = self.node.rsplit('/').next().unwrap_or_default();
        format!("<zklock.{class} of {:?}, node {node}>", self.path)
    }
}
