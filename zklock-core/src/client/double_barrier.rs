//! The double barrier: nobody begins before all members have come, and nobody leaves before all are done.
//!
//! It has the layout of Curator's `DistributedDoubleBarrier`: members are ephemeral nodes, and the node `ready` says
//! that enough of them have come. `zklock_machine` avoids the mistakes of Curator's members. One mistake remains when
//! Curator's members take part: a `ready` that a crashed round left behind may let one of them in.

mod membership;

use crate::base::error::{Error, ErrorKind, LossReason};
use crate::base::leaving::Leaving;
use crate::base::progress::Progress;
use crate::base::sync::lock_ignoring_poison;
use crate::base::wait::Wait;
use crate::client::barrier::{failure, trouble};
use crate::client::client::Client;
use crate::connect::path::check_lock_path;
use crate::machine::protocol::Patience;
use crate::session::ask::silence;
use crate::session::pool::Pool;
use crate::session::session::{Link, Session};
use membership::{LeaveRequest, Membership};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::oneshot;

/// Lets its members begin together, and end together.
///
/// It is the same barrier as Curator's `DistributedDoubleBarrier` at that path. The number of members is what it takes
/// to open it, not a limit: a member that comes while the barrier is open goes in too, as long as one of the earlier
/// members is still inside.
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: zklock_core::Client) -> Result<(), zklock_core::Error> {
/// let barrier = client.double_barrier("/barriers/round", 3)?;
/// let member = barrier.enter().await?;
/// // ... all three have come ...
/// member.leave().await?;
/// // ... and all three are done.
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct DoubleBarrier {
    client: Client,
    path: Arc<str>,
    members: u32,
}

impl Client {
    /// Makes the double barrier at `path`, which opens when `members` have come. All its users must agree on that
    /// number. It costs no request.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if `path` cannot be the path of a lock, or `members` is zero.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: zklock_core::Client) -> Result<(), zklock_core::Error> {
    /// let member = client.double_barrier("/barriers/round", 3)?.enter().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn double_barrier(&self, path: &str, members: u32) -> Result<DoubleBarrier, Error> {
        DoubleBarrier::check(path, members)?;
        Ok(DoubleBarrier { client: self.clone(), path: path.into(), members })
    }
}

impl DoubleBarrier {
    pub(crate) fn check(path: &str, members: u32) -> Result<(), Error> {
        check_lock_path(path)?;
        if members == 0 {
            let message = format!("the barrier {path} without members could never open: ask for 1 or more");
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        Ok(())
    }

    /// Returns the path of the barrier.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns how many members it takes to open the barrier.
    pub fn members(&self) -> u32 {
        self.members
    }

    /// Enters the barrier, and waits until it is open. Every call is a new member.
    ///
    /// If the session ends meanwhile, the member enters again in the next session.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`] if the access list does not allow it; [`ErrorKind::Closed`] if the client is closed. While
    /// no server answers, it waits.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future withdraws. If a node already exists, it is removed in the background.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(barrier: zklock_core::DoubleBarrier) -> Result<(), zklock_core::Error> {
    /// let member = barrier.enter().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn enter(&self) -> Result<Member, Error> {
        self.enter_within(Wait::Forever).await
    }

    /// Like [`enter`](Self::enter), but waits no longer than `timeout`. With zero it goes in only if the barrier is
    /// open, or opens with this member.
    ///
    /// # Errors
    ///
    /// Fails like [`enter`](Self::enter) does. When the time is up, whatever the network does, it also fails with:
    ///
    /// * [`ErrorKind::Timeout`] if the barrier has not opened;
    /// * [`ErrorKind::Unreachable`] if there is no connection at that moment, or, with a timeout of zero, if the
    ///   ensemble does not answer within the [try timeout](crate::ClientOptions::try_timeout).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future withdraws, as with [`enter`](Self::enter).
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// # async fn example(barrier: zklock_core::DoubleBarrier) -> Result<(), zklock_core::Error> {
    /// let member = barrier.enter_timeout(Duration::from_secs(60)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn enter_timeout(&self, timeout: Duration) -> Result<Member, Error> {
        self.enter_within(timeout.into()).await
    }

    /// Like [`enter`](Self::enter) or [`enter_timeout`](Self::enter_timeout).
    #[doc(hidden)]
    pub async fn enter_within(&self, wait: Wait) -> Result<Member, Error> {
        let path = &self.path;
        let mut entering = self.begin_to_enter(wait.patience())?;
        let failed = match self.client.answered(wait, &mut entering).await {
            Some(Ok(Some(member))) => return Ok(member),
            Some(Ok(None)) => {
                let message = format!("the barrier {path} is not open: it takes {} members", self.members);
                Error::new(ErrorKind::Timeout, message)
            }
            Some(Err(error)) => error,
            None => {
                let reason = format!("it takes {} members", self.members);
                let trouble = reason_of(self.client.pool(), wait, &reason);
                let message = format!("the barrier {path} did not open {wait}: {trouble}");
                Error::new(late(self.client.pool(), wait), message)
            }
        };
        entering.leave().await;
        Err(failed)
    }

    /// Starts a task that enters. It withdraws if nobody waits for it any more.
    fn begin_to_enter(&self, patience: Patience) -> Result<Waiting<Option<Member>>, Error> {
        let pool = self.client.pool();
        if pool.is_closed() {
            return Err(Error::closed());
        }
        let (answer, receiver) = oneshot::channel();
        let progress = Progress::new(self.client.counters());
        progress.begin();
        let (client, path) = (self.client.clone(), self.path.clone());
        let membership = Membership::new(client, path, self.members, patience, progress.clone());
        pool.runtime().spawn(membership.run(answer));
        Ok(Waiting { receiver, answered: false, progress })
    }
}

impl fmt::Debug for DoubleBarrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DoubleBarrier")
            .field("path", &self.path)
            .field("members", &self.members)
            .finish_non_exhaustive()
    }
}

/// A member inside a [`DoubleBarrier`]. Dropping it leaves in the background, without waiting for the others.
#[must_use = "a member is within the barrier only as long as it is kept: dropping it leaves"]
pub struct Member {
    client: Client,
    path: Arc<str>,
    node: Arc<str>,
    session: Arc<Session>,
    progress: Arc<Progress>,
    /// Taken by the first call that leaves.
    leave_tx: Mutex<Option<oneshot::Sender<LeaveRequest>>>,
}

impl Member {
    /// Returns the path of the barrier.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the path of the node that represents this member.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// Returns why the member is lost; `None` if it is not. A member is lost when its session has ended: its node is
    /// gone, so the others believe that it has left.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(member: &zklock_core::Member) {
    /// if let Some(reason) = member.loss() {
    ///     println!("the others do not wait for us any more: {reason}");
    /// }
    /// # }
    /// ```
    pub fn loss(&self) -> Option<LossReason> {
        self.session.loss()
    }

    /// Waits until the member is lost, because its session has ended, and returns the reason.
    ///
    /// # Cancel safety
    ///
    /// The future may be dropped and the method called again.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(member: &zklock_core::Member) {
    /// println!("stop: {}", member.lost().await);
    /// # }
    /// ```
    pub async fn lost(&self) -> LossReason {
        let mut link = self.session.link();
        let over = link.wait_for(|link| matches!(link, Link::Over(_))).await;
        match over.as_deref() {
            Ok(Link::Over(reason)) => *reason,
            _ => LossReason::ClientClosed,
        }
    }

    /// Leaves, and waits until all members that are inside now have left. A member that crashes has left when its
    /// session is over.
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::Lost`] if its session ended before it left, or its node was deleted. The others may have gone on
    ///   without it;
    /// * [`ErrorKind::NotHeld`] if the member has already left;
    /// * [`ErrorKind::Refused`] if the access list does not allow it;
    /// * [`ErrorKind::Closed`] if the client is closed.
    ///
    /// In every case the member has left, or is leaving in the background.
    ///
    /// # Cancel safety
    ///
    /// The member leaves from the first poll on. Dropping the future only stops the waiting.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(member: zklock_core::Member) -> Result<(), zklock_core::Error> {
    /// member.leave().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn leave(&self) -> Result<(), Error> {
        self.begin_to_leave(Wait::Forever)?.await
    }

    /// Like [`leave`](Self::leave), but waits no longer than `timeout`. Zero waits for nobody.
    ///
    /// # Errors
    ///
    /// Fails like [`leave`](Self::leave) does. When the time is up, whatever the network does, it also fails with:
    ///
    /// * [`ErrorKind::Timeout`] if others are still inside;
    /// * [`ErrorKind::Unreachable`] if there is no connection at that moment, or, with a timeout of zero, if the
    ///   ensemble does not answer within the [try timeout](crate::ClientOptions::try_timeout).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future only stops the waiting, as with [`leave`](Self::leave).
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// # async fn example(member: zklock_core::Member) -> Result<(), zklock_core::Error> {
    /// member.leave_timeout(Duration::from_secs(60)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn leave_timeout(&self, timeout: Duration) -> Result<(), Error> {
        self.begin_to_leave(timeout.into())?.await
    }

    /// Leaves, and returns a future that waits for the others.
    #[doc(hidden)]
    pub fn begin_to_leave(
        &self,
        wait: Wait,
    ) -> Result<impl Future<Output = Result<(), Error>> + Send + use<>, Error> {
        let path = self.path.clone();
        let Some(leave_tx) = lock_ignoring_poison(&self.leave_tx).take() else {
            let message = format!("this member of the barrier {path} has left before");
            return Err(Error::new(ErrorKind::NotHeld, message));
        };
        let (answer, receiver) = oneshot::channel();
        let mut leaving = Waiting { receiver, answered: false, progress: self.progress.clone() };
        // If the task is gone, the session is over.
        let _ = leave_tx.send(LeaveRequest { answer, patience: wait.patience() });
        let (client, session) = (self.client.clone(), self.session.clone());
        Ok(async move {
            let failed = match client.answered(wait, &mut leaving).await {
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
                    let trouble = reason_of(client.pool(), wait, "others are still within");
                    let message = format!("not all have left the barrier {path} {wait}: {trouble}");
                    Error::new(late(client.pool(), wait), message)
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
            self.progress.owe();
        }
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member").field("node", &self.node).field("loss", &self.loss()).finish_non_exhaustive()
    }
}

/// Waits for an answer. If it is dropped first, the rest of the work goes on without it.
struct Waiting<T> {
    receiver: oneshot::Receiver<Result<T, Error>>,
    answered: bool,
    progress: Arc<Progress>,
}

impl<T> Waiting<T> {
    async fn answer(&mut self) -> Result<T, Error> {
        let answer = (&mut self.receiver).await;
        self.answered = true;
        // Without an answer the member has been dropped, because the client is closed.
        answer.unwrap_or_else(|_| Err(Error::closed()))
    }

    /// Waits until the member's node is deleted, but not for long.
    async fn leave(self) {
        let mut leaving = Leaving::default();
        leaving.add(&self.progress);
        drop(self);
        leaving.seen_through().await;
    }
}

impl<T> Drop for Waiting<T> {
    fn drop(&mut self) {
        if !self.answered {
            self.progress.owe();
        }
    }
}

impl Client {
    /// Returns the answer, or `None` if there was none by the deadline. For a caller that does not wait for others, the
    /// deadline is the try timeout.
    async fn answered<T>(&self, wait: Wait, waiting: &mut Waiting<T>) -> Option<Result<T, Error>> {
        let try_timeout = || Wait::at_most(Some(self.pool().options().try_timeout));
        let wait = if wait == Wait::Once { try_timeout() } else { wait };
        tokio::select! {
            biased;
            answer = waiting.answer() => Some(answer),
            _ = wait.over() => None,
        }
    }
}

/// Returns why a wait failed. A caller that does not wait for others has only waited for an answer.
fn reason_of(pool: &Pool, wait: Wait, otherwise: &str) -> String {
    if wait == Wait::Once { silence(pool) } else { trouble(pool, otherwise) }
}

fn late(pool: &Pool, wait: Wait) -> ErrorKind {
    if wait == Wait::Once { ErrorKind::Unreachable } else { failure(pool) }
}

fn lost(reason: LossReason, path: &str) -> Error {
    let message =
        format!("the member of the barrier {path} is lost: {reason}; the others take it to have left");
    Error::new(ErrorKind::Lost(reason), message)
}
