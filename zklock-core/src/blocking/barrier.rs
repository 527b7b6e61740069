//! The barrier and the double barrier, for threads.

use super::connector::Connector;
use super::{Interrupt, Lazy};
use crate::error::{Error, LossReason};
use crate::path::check_lock_path;
use crate::threads::call::Call;
use crate::threads::fork_safe::ForkSafe;
use crate::wait::Wait;
use std::sync::Arc;
use std::time::Duration;

/// A [`Barrier`](crate::Barrier) for threads.
///
/// ```no_run
/// # fn example(client: zklock_core::blocking::Client) -> Result<(), zklock_core::Error> {
/// client.barrier("/barriers/migration")?.wait()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Barrier {
    core: Lazy<crate::Barrier>,
    path: Arc<str>,
}

impl Barrier {
    pub(super) fn new(connector: &Connector, path: &str) -> Result<Self, Error> {
        check_lock_path(path)?;
        let path: Arc<str> = path.into();
        let at = path.clone();
        let core = Lazy::new(connector, move |client| client.get()?.barrier(&at))?;
        Ok(Self { core, path })
    }

    /// The barrier of the core.
    #[doc(hidden)]
    pub fn core(&self) -> &Lazy<crate::Barrier> {
        &self.core
    }

    /// The path of the barrier.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// See [`Barrier::set`](crate::Barrier::set).
    pub fn set(&self) -> Result<bool, Error> {
        self.core.wait(Wait::Forever, None, crate::Barrier::set)
    }

    /// See [`Barrier::remove`](crate::Barrier::remove).
    pub fn remove(&self) -> Result<bool, Error> {
        self.core.wait(Wait::Forever, None, crate::Barrier::remove)
    }

    /// See [`Barrier::is_set`](crate::Barrier::is_set).
    pub fn is_set(&self) -> Result<bool, Error> {
        self.core.wait(Wait::Forever, None, crate::Barrier::is_set)
    }

    /// See [`Barrier::wait`](crate::Barrier::wait).
    pub fn wait(&self) -> Result<(), Error> {
        self.wait_within(Wait::Forever, None)
    }

    /// See [`Barrier::wait_timeout`](crate::Barrier::wait_timeout).
    pub fn wait_timeout(&self, timeout: Duration) -> Result<(), Error> {
        self.wait_within(timeout, None)
    }

    /// As [`wait_timeout`](Self::wait_timeout), or with `None` for ever, until the interrupt is triggered.
    pub fn wait_within(&self, wait: impl Into<Wait>, interrupt: Option<&Interrupt>) -> Result<(), Error> {
        let wait = wait.into();
        self.core.wait(wait, interrupt, |barrier| barrier.wait_within(wait))
    }
}

/// A [`DoubleBarrier`](crate::DoubleBarrier) for threads.
///
/// ```no_run
/// # fn example(client: zklock_core::blocking::Client) -> Result<(), zklock_core::Error> {
/// let member = client.double_barrier("/barriers/round", 3)?.enter()?;
/// // ... all three have come ...
/// member.leave()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct DoubleBarrier {
    core: Lazy<crate::DoubleBarrier>,
    path: Arc<str>,
    members: u32,
}

impl DoubleBarrier {
    /// The double barrier of the core.
    #[doc(hidden)]
    pub fn core(&self) -> &Lazy<crate::DoubleBarrier> {
        &self.core
    }

    pub(super) fn new(connector: &Connector, path: &str, members: u32) -> Result<Self, Error> {
        crate::DoubleBarrier::check(path, members)?;
        let path: Arc<str> = path.into();
        let at = path.clone();
        let core = Lazy::new(connector, move |client| client.get()?.double_barrier(&at, members))?;
        Ok(Self { core, path, members })
    }

    /// The path of the barrier.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// How many members open it.
    pub fn members(&self) -> u32 {
        self.members
    }

    /// See [`DoubleBarrier::enter`](crate::DoubleBarrier::enter).
    pub fn enter(&self) -> Result<Member, Error> {
        self.enter_within(Wait::Forever, None)
    }

    /// See [`DoubleBarrier::enter_timeout`](crate::DoubleBarrier::enter_timeout).
    pub fn enter_timeout(&self, timeout: Duration) -> Result<Member, Error> {
        self.enter_within(timeout, None)
    }

    /// As [`enter_timeout`](Self::enter_timeout), or with `None` for ever, until the interrupt is triggered.
    pub fn enter_within(
        &self,
        wait: impl Into<Wait>,
        interrupt: Option<&Interrupt>,
    ) -> Result<Member, Error> {
        let wait = wait.into();
        self.core.wait(wait, interrupt, |barrier| barrier.enter_within(wait)).and_then(Member::here)
    }

    /// As [`enter_timeout`](Self::enter_timeout), and returns at once. `ready` is called when there is a result: on the I/O
    /// thread, so it must not block. Dropping the call withdraws, and leaves if the barrier had opened and the member was not
    /// fetched.
    ///
    /// ```no_run
    /// # fn example(barrier: &zklock_core::blocking::DoubleBarrier) -> Result<(), zklock_core::Error> {
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// let call = barrier.start(None, move || sender.send(()).unwrap())?;
    /// receiver.recv().unwrap();
    /// if let Some(member) = call.fetch() {
    ///     member?.leave()?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[doc(hidden)]
    pub fn start(
        &self,
        wait: impl Into<Wait>,
        ready: impl FnOnce() + Send + 'static,
    ) -> Result<Call<Member>, Error> {
        let wait = wait.into();
        let enter = move |barrier: Arc<crate::DoubleBarrier>| async move {
            barrier.enter_within(wait).await.and_then(Member::here)
        };
        self.core.start(ready, wait, enter)
    }
}

/// A [`Member`](crate::Member) for threads.
#[derive(Debug)]
#[must_use = "a member is within the barrier only as long as it is kept: dropping it leaves"]
pub struct Member {
    core: ForkSafe<crate::Member>,
}

impl Member {
    fn here(member: crate::Member) -> Result<Self, Error> {
        Ok(Self { core: ForkSafe::here(member)? })
    }

    /// The member of the core.
    #[doc(hidden)]
    pub fn core(&self) -> &ForkSafe<crate::Member> {
        &self.core
    }

    /// The path of the barrier.
    pub fn path(&self) -> &str {
        self.core.fixed().path()
    }

    /// The path of the node that stands for this member.
    pub fn node(&self) -> &str {
        self.core.fixed().node()
    }

    /// See [`Member::loss`](crate::Member::loss).
    pub fn loss(&self) -> Option<LossReason> {
        self.core.look(Some(LossReason::Forked), crate::Member::loss)
    }

    /// Waits until the member is lost, and says why. See [`Member::lost`](crate::Member::lost).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Timeout`](crate::ErrorKind::Timeout) if it is not by then,
    /// [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted), [`ErrorKind::Forked`](crate::ErrorKind::Forked).
    pub fn lost(
        &self,
        timeout: Option<Duration>,
        interrupt: Option<&Interrupt>,
    ) -> Result<LossReason, Error> {
        self.core.wait(Wait::at_most(timeout), interrupt, |member| async { Ok(member.lost().await) })
    }

    /// See [`Member::leave`](crate::Member::leave).
    pub fn leave(&self) -> Result<(), Error> {
        self.leave_within(Wait::Forever, None)
    }

    /// See [`Member::leave_timeout`](crate::Member::leave_timeout).
    pub fn leave_timeout(&self, timeout: Duration) -> Result<(), Error> {
        self.leave_within(timeout, None)
    }

    /// As [`leave_timeout`](Self::leave_timeout), or with `None` for ever, until the interrupt is triggered: the member has
    /// left all the same.
    pub fn leave_within(&self, wait: impl Into<Wait>, interrupt: Option<&Interrupt>) -> Result<(), Error> {
        let wait = wait.into();
        // A thread that must not wait must not change anything.
        let leaving = self.core.get_to_wait()?.begin_to_leave(wait)?;
        self.core.wait(wait, interrupt, |_| leaving)
    }
}
