//! A member of a double barrier.

#[cfg(doc)]
use crate::base::error::ErrorKind;
use crate::base::error::LossReason;
use crate::base::wait::Wait;
use crate::client::member::Member as CoreMember;
use crate::threads::call::{Begun, Call};
use crate::threads::fork_safe::ForkSafe;
use std::time::Duration;

/// A member inside a [`DoubleBarrier`](crate::DoubleBarrier). Dropping it leaves in the background, without waiting for the others.
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: zklock_core::Client) -> Result<(), zklock_core::Error> {
/// let member = client.double_barrier("/barriers/round", 3)?.enter().await?;
/// tokio::select! {
///     () = do_our_share() => member.leave().await?,
///     Ok(reason) = member.lost() => println!("the others go on without us: {reason}"),
/// }
/// # Ok(())
/// # }
/// # async fn do_our_share() {}
/// ```
#[derive(Debug)]
#[must_use = "a member is within the barrier only as long as it is kept: dropping it leaves"]
pub struct Member {
    core: ForkSafe<CoreMember>,
}

impl Member {
    pub(super) fn new(core: ForkSafe<CoreMember>) -> Self {
        Self { core }
    }

    /// Returns the path of the barrier.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(member: zklock_core::Member) -> Result<(), zklock_core::Error> {
    /// member.leave().await?;
    /// println!("all are done at {}", member.path());
    /// # Ok(())
    /// # }
    /// ```
    pub fn path(&self) -> &str {
        self.core.fixed().path()
    }

    /// Returns the path of the node that represents this member.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(member: &zklock_core::Member) {
    /// // An operator who must take this member out of the barrier deletes that node.
    /// println!("in the barrier {} as {}", member.path(), member.node());
    /// # }
    /// ```
    pub fn node(&self) -> &str {
        self.core.fixed().node()
    }

    /// Returns why the member is lost; `None` if it is not. A member is lost when its session has ended: the servers
    /// have deleted its node, so the others consider it to have left.
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
        self.core.look(|| Some(self.core.loss()), CoreMember::loss)
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
    /// # async fn example(member: &zklock_core::Member) -> Result<(), zklock_core::Error> {
    /// println!("stop: {}", member.lost().await?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn lost(&self) -> Call<LossReason> {
        self.core.call(|member| async move { Ok(member.fixed().lost().await) })
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
    /// # async fn example(member: zklock_core::Member) -> Result<(), zklock_core::Error> {
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
    /// # async fn example(member: zklock_core::Member) -> Result<(), zklock_core::Error> {
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
        let begin = move |member: &ForkSafe<CoreMember>| match member.fixed().begin_to_leave(wait) {
            Ok(leaving) => Begun::goes_on(member.io(), leaving),
            Err(error) => Begun::Over(Err(error)),
        };
        self.core.begin(begin).until(wait)
    }
}
