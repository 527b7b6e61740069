//! The double barrier: nobody begins before all members have come, and nobody leaves before all are done.

use super::home::Home;
use super::lazy::Lazy;
use super::member::Member;
use crate::base::error::Error;
#[cfg(doc)]
use crate::base::error::ErrorKind;
use crate::base::wait::Wait;
use crate::client::double_barrier::DoubleBarrier as CoreDoubleBarrier;
use crate::threads::call::{Begun, Call};
use crate::threads::fork_safe::ForkSafe;
use std::sync::Arc;
use std::time::Duration;

/// Lets its members begin together, and end together.
///
/// It is the same barrier as Curator's `DistributedDoubleBarrier` at that path. The number of members opens the
/// barrier, and is not a limit: a member that comes while the barrier is open enters too, if one of the earlier
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
#[derive(Clone, Debug)]
pub struct DoubleBarrier {
    core: Lazy<CoreDoubleBarrier>,
    path: Arc<str>,
    members: u32,
}

impl DoubleBarrier {
    pub(super) fn new(home: &Home, path: &str, members: u32) -> Result<Self, Error> {
        CoreDoubleBarrier::check(path, members)?;
        let path: Arc<str> = path.into();
        let at = path.clone();
        let core = Lazy::new(home, move |client| client.get()?.double_barrier(&at, members))?;
        Ok(Self { core, path, members })
    }

    /// Returns whether its client was used by a process from which this one was forked. It is useless here then.
    #[doc(hidden)]
    pub fn is_forked(&self) -> bool {
        self.core.is_forked()
    }

    /// Returns the path of the barrier.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(rounds: &[zklock_core::DoubleBarrier]) -> Result<(), zklock_core::Error> {
    /// for barrier in rounds {
    ///     println!("waiting at {}", barrier.path());
    ///     let member = barrier.enter().await?;
    ///     // ... do this round together with the others ...
    ///     member.leave().await?;
    /// }
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
    /// # fn example(barrier: &zklock_core::DoubleBarrier, files: u32) {
    /// println!("each member works on {} files", files.div_ceil(barrier.members()));
    /// # }
    /// ```
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
    /// Dropping the call withdraws. If a node already exists, it is removed in the background.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(barrier: zklock_core::DoubleBarrier) -> Result<(), zklock_core::Error> {
    /// let member = barrier.enter().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn enter(&self) -> Call<Member> {
        self.enter_within(Wait::Forever)
    }

    /// Like [`enter`](Self::enter), but waits no longer than `timeout`. With zero it enters only if the barrier is
    /// open, or this member opens it.
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
    /// Dropping the call withdraws, as with [`enter`](Self::enter).
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
    pub fn enter_timeout(&self, timeout: Duration) -> Call<Member> {
        self.enter_within(timeout)
    }

    /// Like [`enter`](Self::enter) or [`enter_timeout`](Self::enter_timeout).
    #[doc(hidden)]
    pub fn enter_within(&self, wait: impl Into<Wait>) -> Call<Member> {
        let wait = wait.into();
        self.core.begin(wait, move |barrier| {
            let (here, io) = (barrier.clone(), barrier.io().clone());
            Begun::goes_on(barrier.io(), async move {
                Ok(Member::new(ForkSafe::new(here.fixed().enter_within(wait).await?, io)))
            })
        })
    }
}
