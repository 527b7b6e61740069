//! A member of a double barrier, for threads.

use crate::base::error::{Error, LossReason};
use crate::base::wait::Wait;
use crate::threads::call::{Begun, Call};
use crate::threads::fork_safe::ForkSafe;
use crate::threads::interrupt::Interrupt;
use std::sync::Arc;
use std::time::Duration;

/// A [`Member`](crate::Member) whose calls block the calling thread. Dropping it leaves in the
/// background, without waiting for the others.
///
/// # Examples
///
/// ```no_run
/// # fn example(client: zklock_core::blocking::Client) -> Result<(), zklock_core::Error> {
/// let member = client.double_barrier("/barriers/round", 3)?.enter()?;
/// // ... do our share of the work ...
/// member.leave()?;
/// // ... all others have done theirs ...
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a member is within the barrier only as long as it is kept: dropping it leaves"]
pub struct Member {
    core: ForkSafe<crate::Member>,
}

impl Member {
    pub(super) fn new(core: ForkSafe<crate::Member>) -> Self {
        Self { core }
    }

    /// Returns the core's member.
    #[doc(hidden)]
    pub fn core(&self) -> &ForkSafe<crate::Member> {
        &self.core
    }

    /// Returns the path of the barrier.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(member: &zklock_core::blocking::Member) -> Result<(), zklock_core::Error> {
    /// member.leave()?;
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
    /// # fn example(member: &zklock_core::blocking::Member) {
    /// // An operator who must take this member out of the barrier deletes that node.
    /// println!("in the barrier {} as {}", member.path(), member.node());
    /// # }
    /// ```
    pub fn node(&self) -> &str {
        self.core.fixed().node()
    }

    /// Returns why the member is lost; `None` if it is not. It does not wait. See
    /// [`Member::loss`](crate::Member::loss).
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(member: &zklock_core::blocking::Member) {
    /// if let Some(reason) = member.loss() {
    ///     println!("the others do not wait for us any more: {reason}");
    /// }
    /// # }
    /// ```
    pub fn loss(&self) -> Option<LossReason> {
        self.core.look(|| Some(self.core.io().opened().loss()), crate::Member::loss)
    }

    /// Blocks until the member is lost, but no longer than `timeout`, and returns the reason. Without a
    /// timeout it waits for ever. See [`Member::lost`](crate::Member::lost).
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::Timeout`](crate::ErrorKind::Timeout) if it is not lost by then;
    /// * [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted) if the interrupt is triggered;
    /// * [`ErrorKind::Forked`](crate::ErrorKind::Forked) if the member belongs to the parent process;
    /// * [`ErrorKind::Deadlock`](crate::ErrorKind::Deadlock) in a callback.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(member: &zklock_core::blocking::Member) -> Result<(), zklock_core::Error> {
    /// println!("stop: {}", member.lost(None, None)?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn lost(
        &self,
        timeout: Option<Duration>,
        interrupt: Option<&Interrupt>,
    ) -> Result<LossReason, Error> {
        let wait = Wait::at_most(timeout);
        let lost = |member: Arc<crate::Member>| async move { Ok(member.lost().await) };
        self.core.call(move |member| wait.bound(lost(member))).until(wait).wait(interrupt)
    }

    /// Leaves, and blocks until all members that are inside now have left. See
    /// [`Member::leave`](crate::Member::leave).
    ///
    /// # Errors
    ///
    /// Fails like [`Member::leave`](crate::Member::leave) does; with
    /// [`ErrorKind::Forked`](crate::ErrorKind::Forked) if the member belongs to the parent process, and
    /// with [`ErrorKind::Deadlock`](crate::ErrorKind::Deadlock) in a callback. In these two cases
    /// nothing changes.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(member: &zklock_core::blocking::Member) -> Result<(), zklock_core::Error> {
    /// member.leave()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn leave(&self) -> Result<(), Error> {
        self.leave_within(Wait::Forever, None)
    }

    /// Leaves, and blocks until all members that are inside now have left, but no longer than
    /// `timeout`. Zero does not wait for the others. See
    /// [`Member::leave_timeout`](crate::Member::leave_timeout).
    ///
    /// # Errors
    ///
    /// Fails like [`leave`](Self::leave) does. When the time is up it fails with
    /// [`ErrorKind::Timeout`](crate::ErrorKind::Timeout) if others are still inside, and with
    /// [`ErrorKind::Unreachable`](crate::ErrorKind::Unreachable) if the ensemble does not answer.
    /// Even then the member has left, or leaves in the background.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// # fn example(member: &zklock_core::blocking::Member) -> Result<(), zklock_core::Error> {
    /// member.leave_timeout(Duration::from_secs(60))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn leave_timeout(&self, timeout: Duration) -> Result<(), Error> {
        self.leave_within(timeout, None)
    }

    /// Like [`leave_timeout`](Self::leave_timeout), but also ends when the interrupt is triggered.
    /// Without a time it waits for ever.
    ///
    /// # Errors
    ///
    /// Fails like [`leave_timeout`](Self::leave_timeout) does; and with
    /// [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted) if the interrupt is triggered first.
    /// Even then the member leaves.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use zklock_core::Wait;
    ///
    /// # use zklock_core::blocking::{Interrupt, Member};
    /// # fn example(member: &Member, interrupt: &Interrupt) -> Result<(), zklock_core::Error> {
    /// // Until the others have left, or another thread triggers the interrupt.
    /// member.leave_within(Wait::Forever, Some(interrupt))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn leave_within(&self, wait: impl Into<Wait>, interrupt: Option<&Interrupt>) -> Result<(), Error> {
        self.leave_call(wait).wait(interrupt)
    }

    /// Makes the call of [`leave_within`](Self::leave_within). The member begins to leave when the call begins.
    #[doc(hidden)]
    pub fn leave_call(&self, wait: impl Into<Wait>) -> Call<()> {
        let wait = wait.into();
        let begin = move |member: &ForkSafe<crate::Member>| match member.fixed().begin_to_leave(wait) {
            Ok(leaving) => Begun::goes_on(member.io(), leaving),
            Err(error) => Begun::Over(Err(error)),
        };
        self.core.begin(begin).until(wait)
    }
}
