//! The task that runs one member of a double barrier, from the creation of its node to its deletion.
//!
//! It comes, waits until the barrier is open, is inside, and leaves. The pure functions of [`barrier`](crate::machine::barrier) decide who may go on,
//! and who waits for whom.
//!
//! ```text
//!  come --> survey? --> changed -- ready --> within --> depart --> find the others, watch one --> remove
//!                  \-- enough are there --> open --^
//! ```
//!
//! **A member's name is its own, and is created once.** So every step can be repeated after a lost reply: if a deletion was sent and
//! the node is gone, we have left. If a creation was sent and the node is not there, it may have been there and was deleted: others
//! wait for the end of that name, so the member takes another one.

mod node;

use super::member::{LeaveRequest, Member, Within, lost};
use crate::attempt::members::Members;
use crate::attempt::shared::Handle;
use crate::base::clock;
use crate::base::debt::Debt;
use crate::base::error::{Error, LossReason};
use crate::base::failure::Failure;
use crate::base::sync::Mutex;
use crate::machine::protocol::Patience;
use crate::session::session::Link;
use crate::zookeeper::node_data;
use node::Node;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// How long to wait before a refused deletion is tried again. Meanwhile the session is closed.
const UNTIL_ALLOWED: Duration = Duration::from_secs(1);

pub(super) struct Membership {
    client: Handle,
    path: Arc<str>,
    /// How many members it takes to open the barrier.
    members: usize,
    debt: Arc<Debt>,
    known: Arc<Members>,
    /// `None` before there is a session.
    node: Option<Node>,
}

impl Membership {
    pub(super) fn new(
        client: Handle,
        known: Arc<Members>,
        path: Arc<str>,
        members: u32,
        debt: Arc<Debt>,
    ) -> Self {
        let members = usize::try_from(members).unwrap_or(usize::MAX);
        Self { client, path, members, debt, known, node: None }
    }

    pub(super) async fn run(
        mut self,
        patience: Patience,
        mut answer: oneshot::Sender<Result<Option<Member>, Error>>,
    ) {
        let entered = tokio::select! {
            biased;
            () = answer.closed() => Ok(false),
            entered = self.enter(patience) => entered,
        };
        match entered {
            Ok(true) => {
                let (leave_tx, request) = oneshot::channel();
                // If the caller is gone, the member is dropped here, and leaves.
                let _ = answer.send(Ok(self.member(leave_tx)));
                if let Some(request) = self.request(request).await {
                    self.answer_leave(request).await;
                }
            }
            not => {
                self.debt.owe();
                let _ = answer.send(not.map(|_| None));
            }
        }
        self.see_through().await;
    }

    fn member(&self, leave_tx: oneshot::Sender<LeaveRequest>) -> Option<Member> {
        let node = self.node.as_ref()?;
        Some(Member::new(Within {
            client: self.client.clone(),
            path: self.path.clone(),
            node: node.path().into(),
            session: node.session.clone(),
            debt: self.debt.clone(),
            leave_tx: Mutex::new(Some(leave_tx)),
        }))
    }

    /// Takes this member into the next session, where it has no node yet.
    async fn begin(&mut self) -> Result<&mut Node, Error> {
        let pool = &self.client.pool;
        let session = pool.slot().session().await?;
        let data = node_data::of(pool.identity());
        let (path, known, debt) = (self.path.clone(), self.known.clone(), self.debt.clone());
        let others = self.node.take().map(|mut node| std::mem::take(&mut node.others));
        let others = others.unwrap_or_default();
        Ok(self.node.insert(Node::new(session, path, data, known, debt, others)))
    }

    /// Waits until the barrier is open. Returns `false` if it is not, and the member does not want to wait.
    async fn enter(&mut self, patience: Patience) -> Result<bool, Error> {
        loop {
            let members = self.members;
            let node = self.begin().await?;
            match node.enter(members, patience).await {
                // A session that is over cannot be used to enter.
                Ok(_) if node.session.is_over() => {}
                Ok(is_within) => return Ok(is_within),
                Err(Failure::SessionOver) => {}
                Err(failure) => return Err(node.failed(&failure)),
            }
        }
    }

    /// Waits for the request to leave; `None` if the member was dropped, or has lost its session.
    async fn request(&mut self, request: oneshot::Receiver<LeaveRequest>) -> Option<LeaveRequest> {
        let mut link = self.node.as_ref()?.session.link();
        tokio::select! {
            biased;
            request = request => request.ok(),
            _ = link.wait_for(|link| matches!(link, Link::Over(_))) => None,
        }
    }

    async fn answer_leave(&mut self, request: LeaveRequest) {
        let LeaveRequest { mut answer, patience } = request;
        let left = tokio::select! {
            biased;
            () = answer.closed() => return,
            left = self.leave(patience) => left,
        };
        if !matches!(left, Ok(true)) {
            // Our node may still exist.
            self.debt.owe();
        }
        if let (Err(_), Some(node)) = (&left, &self.node) {
            node.session.gone().await;
        }
        let _ = answer.send(left);
    }

    /// Leaves, and waits for the others. Returns whether all of them have left.
    async fn leave(&mut self, patience: Patience) -> Result<bool, Error> {
        let path = self.path.clone();
        let deleted = || lost(LossReason::NodeDeleted, &path);
        let Some(mut node) = self.node.as_mut() else { return Err(Error::closed()) };
        let stays = node.depart().await.map_err(|failure| node.failed(&failure))?;
        let stays = stays.ok_or_else(deleted)?;
        // One that does not stay to the end waits when its node is gone.
        if !stays && !node.remove().await.map_err(|failure| node.failed(&failure))? {
            return Err(deleted());
        }
        loop {
            match node.wait_for_others(stays, patience).await {
                Ok(true) => break,
                Ok(false) => return Ok(false),
                Err(Failure::SessionOver) if !stays => node = self.begin().await?,
                Err(failure) => return Err(node.failed(&failure)),
            }
        }
        if stays && !node.remove().await.map_err(|failure| node.failed(&failure))? {
            return Err(deleted());
        }
        Ok(true)
    }

    /// Waits until the node is gone.
    async fn see_through(&mut self) {
        let Some(node) = &mut self.node else { return };
        node.watch = None;
        while node.may_exist && !node.session.is_over() {
            if let Err(Failure::Refused(_)) = node.remove().await {
                clock::sleep(UNTIL_ALLOWED).await;
            }
        }
        node.session.gone().await;
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.node = None;
        // This runs even if its runtime is gone.
        self.debt.settle();
    }
}
