//! The barrier and the double barrier, for threads.

use super::connector::Connector;
use super::{Interrupt, Lazy};
use crate::base::error::{Error, LossReason};
use crate::base::wait::Wait;
use crate::connect::path::check_lock_path;
use crate::threads::call::Call;
use crate::threads::fork_safe::ForkSafe;
use std::sync::Arc;
use std::time::Duration;

/// A [`Barrier`](crate::Barrier) whose calls block the calling thread.
///
/// # Examples
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

    /// Returns the core's barrier.
    #[doc(hidden)]
    pub fn core(&self) -> &Lazy<crate::Barrier> {
        &self.core
    }

    /// Returns the path of the barrier.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Sets the barrier, and returns when that is done, with `false` if it was already set. See
    /// [`Barrier::set`](crate::Barrier::set).
    ///
    /// # Errors
    ///
    /// Fails like [`Barrier::set`](crate::Barrier::set) does, and as [the module](super#errors) says. A
    /// client that has not connected yet also fails like [`Client::connect`](super::Client::connect)
    /// does.
    pub fn set(&self) -> Result<bool, Error> {
        self.core.wait(Wait::Forever, None, crate::Barrier::set)
    }

    /// Removes the barrier, and returns when that is done, with `false` if it was not set. See
    /// [`Barrier::remove`](crate::Barrier::remove).
    ///
    /// # Errors
    ///
    /// Fails like [`set`](Self::set) does.
    pub fn remove(&self) -> Result<bool, Error> {
        self.core.wait(Wait::Forever, None, crate::Barrier::remove)
    }

    /// Asks the ensemble whether the barrier is set. See [`Barrier::is_set`](crate::Barrier::is_set).
    ///
    /// # Errors
    ///
    /// Fails like [`set`](Self::set) does.
    pub fn is_set(&self) -> Result<bool, Error> {
        self.core.wait(Wait::Forever, None, crate::Barrier::is_set)
    }

    /// Blocks until the barrier is not set. While no server answers, it goes on waiting. See
    /// [`Barrier::wait`](crate::Barrier::wait).
    ///
    /// # Errors
    ///
    /// Fails like [`Barrier::wait`](crate::Barrier::wait) does, and as [the module](super#errors) says.
    /// A client that has not connected yet also fails like [`Client::connect`](super::Client::connect)
    /// does.
    pub fn wait(&self) -> Result<(), Error> {
        self.wait_within(Wait::Forever, None)
    }

    /// Blocks until the barrier is not set, but no longer than `timeout`. Zero looks once. See
    /// [`Barrier::wait_timeout`](crate::Barrier::wait_timeout).
    ///
    /// # Errors
    ///
    /// Fails like [`wait`](Self::wait) does. When the time is up it fails with
    /// [`ErrorKind::Timeout`](crate::ErrorKind::Timeout) if the barrier is still set, and with
    /// [`ErrorKind::Unreachable`](crate::ErrorKind::Unreachable) if the ensemble does not answer.
    pub fn wait_timeout(&self, timeout: Duration) -> Result<(), Error> {
        self.wait_within(timeout, None)
    }

    /// Like [`wait_timeout`](Self::wait_timeout), but also ends when the interrupt is triggered.
    /// Without a time it waits for ever.
    ///
    /// # Errors
    ///
    /// Fails like [`wait_timeout`](Self::wait_timeout) does; and with
    /// [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted) if the interrupt is triggered first.
    pub fn wait_within(&self, wait: impl Into<Wait>, interrupt: Option<&Interrupt>) -> Result<(), Error> {
        let wait = wait.into();
        self.core.wait(wait, interrupt, |barrier| barrier.wait_within(wait))
    }
}

/// A [`DoubleBarrier`](crate::DoubleBarrier) whose calls block the calling thread.
///
/// # Examples
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
    /// Returns the core's double barrier.
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

    /// Returns the path of the barrier.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns how many members it takes to open the barrier.
    pub fn members(&self) -> u32 {
        self.members
    }

    /// Enters the barrier, blocks until it is open, and returns the member. While no server answers, it
    /// goes on waiting. See [`DoubleBarrier::enter`](crate::DoubleBarrier::enter).
    ///
    /// # Errors
    ///
    /// Fails like [`DoubleBarrier::enter`](crate::DoubleBarrier::enter) does, and as [the
    /// module](super#errors) says. A client that has not connected yet also fails like
    /// [`Client::connect`](super::Client::connect) does.
    pub fn enter(&self) -> Result<Member, Error> {
        self.enter_within(Wait::Forever, None)
    }

    /// Like [`enter`](Self::enter), but blocks no longer than `timeout`. With zero it goes in only if
    /// the barrier is open, or opens with this member. See
    /// [`DoubleBarrier::enter_timeout`](crate::DoubleBarrier::enter_timeout).
    ///
    /// # Errors
    ///
    /// Fails like [`enter`](Self::enter) does. When the time is up it fails with
    /// [`ErrorKind::Timeout`](crate::ErrorKind::Timeout) if the barrier has not opened, and with
    /// [`ErrorKind::Unreachable`](crate::ErrorKind::Unreachable) if the ensemble does not answer. The
    /// member has left by then, or leaves in the background if the servers take longer than 30 ms.
    pub fn enter_timeout(&self, timeout: Duration) -> Result<Member, Error> {
        self.enter_within(timeout, None)
    }

    /// Like [`enter_timeout`](Self::enter_timeout), but also ends when the interrupt is triggered.
    /// Without a time it waits for ever.
    ///
    /// # Errors
    ///
    /// Fails like [`enter_timeout`](Self::enter_timeout) does; and with
    /// [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted) if the interrupt is triggered first.
    pub fn enter_within(
        &self,
        wait: impl Into<Wait>,
        interrupt: Option<&Interrupt>,
    ) -> Result<Member, Error> {
        let wait = wait.into();
        self.core.wait_and_leave(wait, interrupt, |barrier| barrier.enter_within(wait)).and_then(Member::here)
    }

    /// Like [`enter_timeout`](Self::enter_timeout), but returns at once. The I/O thread calls `ready`
    /// when there is a result, so `ready` must not block. Dropping the call withdraws. If the barrier
    /// had opened and the member was not fetched, the member leaves.
    ///
    /// # Examples
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

/// A [`Member`](crate::Member) whose calls block the calling thread. Dropping it leaves in the
/// background, without waiting for the others.
#[derive(Debug)]
#[must_use = "a member is within the barrier only as long as it is kept: dropping it leaves"]
pub struct Member {
    core: ForkSafe<crate::Member>,
}

impl Member {
    fn here(member: crate::Member) -> Result<Self, Error> {
        Ok(Self { core: ForkSafe::here(member)? })
    }

    /// Returns the core's member.
    #[doc(hidden)]
    pub fn core(&self) -> &ForkSafe<crate::Member> {
        &self.core
    }

    /// Returns the path of the barrier.
    pub fn path(&self) -> &str {
        self.core.fixed().path()
    }

    /// Returns the path of the node that represents this member.
    pub fn node(&self) -> &str {
        self.core.fixed().node()
    }

    /// Returns why the member is lost; `None` if it is not. It does not wait. See
    /// [`Member::loss`](crate::Member::loss).
    pub fn loss(&self) -> Option<LossReason> {
        self.core.look(Some(self.core.io().opened().loss()), crate::Member::loss)
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
    pub fn lost(
        &self,
        timeout: Option<Duration>,
        interrupt: Option<&Interrupt>,
    ) -> Result<LossReason, Error> {
        self.core.wait(Wait::at_most(timeout), interrupt, |member| async { Ok(member.lost().await) })
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
    pub fn leave(&self) -> Result<(), Error> {
        self.leave_within(Wait::Forever, None)
    }

    /// Leaves, and blocks until all members that are inside now have left, but no longer than
    /// `timeout`. Zero waits for nobody. See [`Member::leave_timeout`](crate::Member::leave_timeout).
    ///
    /// # Errors
    ///
    /// Fails like [`leave`](Self::leave) does. When the time is up it fails with
    /// [`ErrorKind::Timeout`](crate::ErrorKind::Timeout) if others are still inside, and with
    /// [`ErrorKind::Unreachable`](crate::ErrorKind::Unreachable) if the ensemble does not answer. The
    /// member has left all the same, or leaves in the background.
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
    /// The member leaves all the same.
    pub fn leave_within(&self, wait: impl Into<Wait>, interrupt: Option<&Interrupt>) -> Result<(), Error> {
        let wait = wait.into();
        // A thread that must not wait must not change anything.
        let leaving = self.core.get_to_wait()?.begin_to_leave(wait)?;
        // It keeps the deadline by itself.
        self.core.wait(Wait::Forever, interrupt, |_| leaving)
    }
}
