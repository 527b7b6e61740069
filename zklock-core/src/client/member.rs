//! A member of a double barrier, as its caller has it.

use crate::attempt::shared::Handle;
use crate::base::debt::Debt;
use crate::base::error::{Error, ErrorKind, LossReason};
use crate::base::leaving::Leaving;
use crate::base::sync::{Mutex, lock_ignoring_poison};
use crate::base::wait::Wait;
use crate::client::barrier::{failure, trouble};
use crate::machine::protocol::Patience;
use crate::session::ask::silence;
use crate::session::pool::Pool;
use crate::session::session::{Link, Session};
use std::fmt;
use std::sync::Arc;
use tokio::sync::oneshot;

/// A member inside a [`DoubleBarrier`](crate::DoubleBarrier). Dropping it leaves in the background, without waiting for the others.
#[must_use = "a member is within the barrier only as long as it is kept: dropping it leaves"]
pub(crate) struct Member {
    pub(super) client: Handle,
    pub(super) path: Arc<str>,
    pub(super) node: Arc<str>,
    pub(super) session: Arc<Session>,
    pub(super) debt: Arc<Debt>,
    /// Taken by the first call that leaves.
    pub(super) leave_tx: Mutex<Option<oneshot::Sender<LeaveRequest>>>,
}

impl Member {
    /// Returns the path of the barrier.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Returns the path of the node that represents this member.
    pub(crate) fn node(&self) -> &str {
        &self.node
    }

    /// Returns why the member is lost; `None` if it is not. A member is lost when its session has ended: the servers
    /// have deleted its node, so the others consider it to have left.
    pub(crate) fn loss(&self) -> Option<LossReason> {
        self.session.loss()
    }

    /// Waits until the member is lost, because its session has ended, and returns the reason.
    pub(crate) async fn lost(&self) -> LossReason {
        let mut link = self.session.link();
        let over = link.wait_for(|link| matches!(link, Link::Over(_))).await;
        match over.as_deref() {
            Ok(Link::Over(reason)) => *reason,
            _ => LossReason::ClientClosed,
        }
    }

    /// Leaves, and returns a future that waits for the others.
    pub(crate) fn begin_to_leave(
        &self,
        wait: Wait,
    ) -> Result<impl Future<Output = Result<(), Error>> + Send + use<>, Error> {
        let path = self.path.clone();
        let Some(leave_tx) = lock_ignoring_poison(&self.leave_tx).take() else {
            let message = format!("this member of the barrier {path} has already left");
            return Err(Error::new(ErrorKind::NotHeld, message));
        };
        let (answer, receiver) = oneshot::channel();
        let mut leaving = Waiting::new(receiver, self.debt.clone());
        // If the task is gone, the session is over.
        let _ = leave_tx.send(LeaveRequest { answer, patience: wait.patience() });
        let (client, session) = (self.client.clone(), self.session.clone());
        Ok(async move {
            let failed = match answered(&client.pool, wait, &mut leaving).await {
                Some(Ok(true)) => return Ok(()),
                Some(Ok(false)) => {
                    let message = format!("others are still within the barrier {path}");
                    Error::new(ErrorKind::Timeout, message)
                }
                Some(Err(error)) => match session.loss() {
                    Some(reason) if error.kind() == ErrorKind::Closed => lost(reason, &path),
                    _ => error,
                },
                None => {
                    let trouble = reason_of(&client.pool, wait, "others are still within");
                    let message = format!("not all have left the barrier {path} {wait}: {trouble}");
                    Error::new(late(&client.pool, wait), message)
                }
            };
            leaving.leave().await;
            Err(failed)
        })
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // If it is already leaving, the call that leaves sees to that.
        if lock_ignoring_poison(&self.leave_tx).take().is_some() {
            self.debt.owe();
        }
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member").field("node", &self.node).field("loss", &self.loss()).finish_non_exhaustive()
    }
}

/// Waits for an answer. If it is dropped first, the rest of the work goes on without it.
pub(super) struct Waiting<T> {
    receiver: oneshot::Receiver<Result<T, Error>>,
    answered: bool,
    debt: Arc<Debt>,
}

impl<T> Waiting<T> {
    pub(super) fn new(receiver: oneshot::Receiver<Result<T, Error>>, debt: Arc<Debt>) -> Self {
        Self { receiver, answered: false, debt }
    }

    async fn answer(&mut self) -> Result<T, Error> {
        let answer = (&mut self.receiver).await;
        self.answered = true;
        // Without an answer the member has been dropped, because the client is closed.
        answer.unwrap_or_else(|_| Err(Error::closed()))
    }

    /// Waits until the member's node is deleted, but not for long.
    pub(super) async fn leave(self) {
        let mut leaving = Leaving::default();
        leaving.add(Some(self.debt.clone()));
        drop(self);
        leaving.seen_through().await;
    }
}

impl<T> Drop for Waiting<T> {
    fn drop(&mut self) {
        if !self.answered {
            self.debt.owe();
        }
    }
}

/// Returns the answer, or `None` if there was none by the deadline. For a caller that does not wait for others, the deadline is
/// the try timeout.
pub(super) async fn answered<T>(
    pool: &Pool,
    wait: Wait,
    waiting: &mut Waiting<T>,
) -> Option<Result<T, Error>> {
    let wait = if wait == Wait::Once { Wait::at_most(Some(pool.options().try_timeout)) } else { wait };
    tokio::select! {
        biased;
        answer = waiting.answer() => Some(answer),
        _ = wait.over() => None,
    }
}

/// Returns why a wait failed. A caller that does not wait for others has only waited for an answer.
pub(super) fn reason_of(pool: &Pool, wait: Wait, otherwise: &str) -> String {
    if wait == Wait::Once { silence(pool.slot()) } else { trouble(pool, otherwise) }
}

pub(super) fn late(pool: &Pool, wait: Wait) -> ErrorKind {
    if wait == Wait::Once { ErrorKind::Unreachable } else { failure(pool) }
}

pub(super) fn lost(reason: LossReason, path: &str) -> Error {
    let message =
        format!("the member of the barrier {path} is lost: {reason}; the others consider it to have left");
    Error::new(ErrorKind::Lost(reason), message)
}

/// A request that the member leaves.
pub(super) struct LeaveRequest {
    /// Whether all others have left.
    pub(super) answer: oneshot::Sender<Result<bool, Error>>,
    pub(super) patience: Patience,
}
