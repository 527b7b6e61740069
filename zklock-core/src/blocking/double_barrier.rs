//! The double barrier, for threads.

use super::home::Home;
use super::lazy::Lazy;
use super::member::Member;
use crate::base::error::Error;
use crate::base::wait::Wait;
use crate::threads::call::{Begun, Call};
use crate::threads::interrupt::Interrupt;
use std::sync::Arc;
use std::time::Duration;

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

    pub(super) fn new(home: &Home, path: &str, members: u32) -> Result<Self, Error> {
        crate::DoubleBarrier::check(path, members)?;
        let path: Arc<str> = path.into();
        let at = path.clone();
        let core = Lazy::new(home, move |client| client.get()?.double_barrier(&at, members))?;
        Ok(Self { core, path, members })
    }

    /// Returns the path of the barrier.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(barrier: &zklock_core::blocking::DoubleBarrier) -> Result<(), zklock_core::Error> {
    /// println!("waiting at {}", barrier.path());
    /// let member = barrier.enter()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns how many members open the barrier.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(barrier: &zklock_core::blocking::DoubleBarrier, files: u32) {
    /// println!("each member works on {} files", files.div_ceil(barrier.members()));
    /// # }
    /// ```
    pub fn members(&self) -> u32 {
        self.members
    }

    /// Enters the barrier, blocks until it is open, and returns the member. While no server answers, it
    /// keeps waiting. See [`DoubleBarrier::enter`](crate::DoubleBarrier::enter).
    ///
    /// # Errors
    ///
    /// Fails like [`DoubleBarrier::enter`](crate::DoubleBarrier::enter) does, and as [the
    /// module](super#errors) says. A client that has not connected yet also fails like
    /// [`Client::connect`](super::Client::connect) does.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(barrier: &zklock_core::blocking::DoubleBarrier) -> Result<(), zklock_core::Error> {
    /// let member = barrier.enter()?;
    /// // ... all others have come ...
    /// member.leave()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn enter(&self) -> Result<Member, Error> {
        self.enter_within(Wait::Forever, None)
    }

    /// Like [`enter`](Self::enter), but blocks no longer than `timeout`. With zero it enters only if
    /// the barrier is open, or this member opens it. See
    /// [`DoubleBarrier::enter_timeout`](crate::DoubleBarrier::enter_timeout).
    ///
    /// # Errors
    ///
    /// Fails like [`enter`](Self::enter) does. When the time is up it fails with
    /// [`ErrorKind::Timeout`](crate::ErrorKind::Timeout) if the barrier has not opened, and with
    /// [`ErrorKind::Unreachable`](crate::ErrorKind::Unreachable) if the ensemble does not answer. The
    /// member has left by then, or leaves in the background if the servers take longer than 30 ms.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// # fn example(barrier: &zklock_core::blocking::DoubleBarrier) -> Result<(), zklock_core::Error> {
    /// let member = barrier.enter_timeout(Duration::from_secs(60))?;
    /// # Ok(())
    /// # }
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use zklock_core::Wait;
    ///
    /// # use zklock_core::blocking::{DoubleBarrier, Interrupt};
    /// # fn example(barrier: &DoubleBarrier, interrupt: &Interrupt) -> Result<(), zklock_core::Error> {
    /// // Until the barrier opens, or another thread triggers the interrupt.
    /// let member = barrier.enter_within(Wait::Forever, Some(interrupt))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn enter_within(
        &self,
        wait: impl Into<Wait>,
        interrupt: Option<&Interrupt>,
    ) -> Result<Member, Error> {
        self.enter_call(wait).wait(interrupt)
    }

    /// Makes the call of [`enter_within`](Self::enter_within). If it goes on in the background, dropping it withdraws. If the
    /// barrier had opened and the member was not fetched, the member leaves.
    #[doc(hidden)]
    pub fn enter_call(&self, wait: impl Into<Wait>) -> Call<Member> {
        let wait = wait.into();
        self.core.begin(wait, move |barrier| {
            let (here, value) = (barrier.clone(), barrier.value());
            let entered = async move { Ok(Member::new(here.adopt(value.enter_within(wait).await?))) };
            Begun::goes_on(barrier.io(), entered)
        })
    }
}
