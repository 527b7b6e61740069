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
use crate::threads::call::{Beginning, Call};
use crate::threads::fork_safe::ForkSafe;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// A member inside a [`DoubleBarrier`](crate::further::DoubleBarrier). Dropping it leaves in the background, without waiting for the others.
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: zklock::Client) -> Result<(), zklock::Error> {
/// let member = client.double_barrier("/barriers/round", 3)?.enter().await?;
/// tokio::select! {
///     () = do_our_share() => member.leave().await?,
///     Ok(reason) = member.lost() => println!("the others go on without us: {reason}"),
/// }
/// # Ok(())
/// # }
/// # async fn do_our_share() {}
/// ```
#[must_use = "a member is within the barrier only as long as it is kept: dropping it leaves"]
pub struct Member {
    within: ForkSafe<Within>,
}

impl Member {
    pub(super) fn new(within: Within) -> Self {
        let io = within.client.pool.slot().io.clone();
        Self { within: ForkSafe::new(within, io) }
    }

    /// Returns the path of the barrier.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(member: zklock::further::Member) -> Result<(), zklock::Error> {
    /// member.leave().await?;
    /// println!("all are done at {}", member.path());
    /// # Ok(())
    /// # }
    /// ```
    pub fn path(&self) -> &str {
        &self.within.fixed().path
    }

    /// Returns the path of the node that represents this member.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(member: &zklock::further::Member) {
    /// // An operator who must take this member out of the barrier deletes that node.
    /// println!("in the barrier {} as {}", member.path(), member.node());
    /// # }
    /// ```
    pub fn node(&self) -> &str {
        &self.within.fixed().node
    }

    /// Returns why the member is lost; `None` if it is not. A member is lost when its session has ended: the servers
    /// have deleted its node, so the others consider it to have left.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(member: &zklock::further::Member) {
    /// if let Some(reason) = member.loss() {
    ///     println!("the others do not wait for us any more: {reason}");
    /// }
    /// # }
    /// ```
    pub fn loss(&self) -> Option<LossReason> {
        self.within.look(|| Some(self.within.loss()), |within| within.session.loss())
    }

    /// Waits until the member is lost, because its session has ended, and returns the reason.
    ///
    /// # Cancel safety
    ///
    /// The call may be dropped, and made again.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(member: &zklock::further::Member) -> Result<(), zklock::Error> {
    /// println!("stop: {}", member.lost().await?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn lost(&self) -> Call<LossReason> {
        self.within.call(|within| async move {
            let mut link = within.fixed().session.link();
            let over = link.wait_for(|link| matches!(link, Link::Over(_))).await;
            Ok(match over.as_deref() {
                Ok(Link::Over(reason)) => *reason,
                _ => LossReason::ClientClosed,
            })
        })
    }

    /// Leaves, and waits until all members that are inside now have left. A member that crashes counts as having
    /// left when its session is over.
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
    /// The member leaves with the first poll. Dropping the call only stops the waiting.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(member: zklock::further::Member) -> Result<(), zklock::Error> {
    /// member.leave().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn leave(&self) -> Call<()> {
        self.leave_within(Wait::Forever)
    }

    /// Like [`leave`](Self::leave), but waits no longer than `timeout`. Zero does not wait for the
    /// others.
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
    /// Dropping the call only stops the waiting, as with [`leave`](Self::leave).
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// # async fn example(member: zklock::further::Member) -> Result<(), zklock::Error> {
    /// member.leave_timeout(Duration::from_secs(60)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn leave_timeout(&self, timeout: Duration) -> Call<()> {
        self.leave_within(timeout)
    }

    /// Like [`leave`](Self::leave) or [`leave_timeout`](Self::leave_timeout).
    #[doc(hidden)]
    pub fn leave_within(&self, wait: impl Into<Wait>) -> Call<()> {
        let wait = wait.into();
        let begin = move |member: &ForkSafe<Within>| match member.fixed().begin_to_leave(wait) {
            Ok(leaving) => Beginning::goes_on(member.io(), leaving),
            Err(error) => Beginning::Over(Err(error)),
        };
        self.within.begin(begin).until(wait)
    }
}

/// What a member is made of.
pub(super) struct Within {
    pub(super) client: Handle,
    pub(super) path: Arc<str>,
    pub(super) node: Arc<str>,
    pub(super) session: Arc<Session>,
    pub(super) debt: Arc<Debt>,
    /// Taken by the first call that leaves.
    pub(super) leave_tx: Mutex<Option<oneshot::Sender<LeaveRequest>>>,
}

impl Within {
    /// Leaves, and returns a future that waits for the others.
    fn begin_to_leave(
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

impl Drop for Within {
    fn drop(&mut self) {
        // If it is already leaving, the call that leaves sees to that.
        if lock_ignoring_poison(&self.leave_tx).take().is_some() {
            self.debt.owe();
        }
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member")
            .field("node", &self.node())
            .field("loss", &self.loss())
            .finish_non_exhaustive()
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
