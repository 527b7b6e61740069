//! The double barrier: nobody begins before all members have come, and nobody leaves before all are done.
//!
//! It has the layout of Curator's `DistributedDoubleBarrier`: members are ephemeral nodes, and the node `ready` says
//! that enough of them have come. `zklock_machine` avoids the mistakes of Curator's members. One mistake remains when
//! Curator's members take part: a `ready` that a crashed round left behind may let one of them in.

use super::member::{Member, Waiting, answered, late, reason_of};
use super::membership::Membership;
use crate::base::debt::Debt;
use crate::base::error::{Error, ErrorKind};
use crate::base::wait::Wait;
use crate::client::home::Home;
use crate::client::registry::CoreClient;
use crate::connect::path::check_lock_path;
use crate::machine::protocol::Patience;
use crate::threads::call::Call;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// Lets its members begin together, and end together.
///
/// It is the same barrier as Curator's `DistributedDoubleBarrier` at that path. The number of members opens the
/// barrier, and is not a limit: a member that comes while the barrier is open enters too, if one of the earlier
/// members is still inside.
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: zklock::Client) -> Result<(), zklock::Error> {
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
    home: Home,
    path: Arc<str>,
    members: u32,
}

impl DoubleBarrier {
    pub(super) fn new(home: &Home, path: &str, members: u32) -> Result<Self, Error> {
        check_lock_path(path)?;
        if members == 0 {
            let message = format!("the barrier {path} without members could never open: ask for 1 or more");
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        home.refuse_forked()?;
        Ok(Self { home: home.clone(), path: path.into(), members })
    }

    /// Returns whether its client was used by a process from which this one was forked. It is useless here then.
    #[doc(hidden)]
    pub fn is_forked(&self) -> bool {
        self.home.is_forked()
    }

    /// Returns the path of the barrier.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(rounds: &[zklock::further::DoubleBarrier]) -> Result<(), zklock::Error> {
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
    /// # fn example(barrier: &zklock::further::DoubleBarrier, files: u32) {
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
    /// # async fn example(barrier: zklock::further::DoubleBarrier) -> Result<(), zklock::Error> {
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
    /// # async fn example(barrier: zklock::further::DoubleBarrier) -> Result<(), zklock::Error> {
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
        let barrier = self.clone();
        self.home.call(wait, move |client| async move { barrier.entered(client.fixed(), wait).await })
    }

    async fn entered(&self, client: &CoreClient, wait: Wait) -> Result<Member, Error> {
        let (path, pool) = (&self.path, &client.handle.pool);
        let mut entering = self.begin_to_enter(client, wait.patience());
        let failed = match answered(pool, wait, &mut entering).await {
            Some(Ok(Some(member))) => return Ok(member),
            Some(Ok(None)) => {
                let message = format!("the barrier {path} is not open: it takes {} members", self.members);
                Error::new(ErrorKind::Timeout, message)
            }
            Some(Err(error)) => error,
            None => {
                let reason = format!("it takes {} members", self.members);
                let trouble = reason_of(pool, wait, &reason);
                let message = format!("the barrier {path} did not open {wait}: {trouble}");
                Error::new(late(pool, wait), message)
            }
        };
        entering.leave().await;
        Err(failed)
    }

    fn begin_to_enter(&self, client: &CoreClient, patience: Patience) -> Waiting<Option<Member>> {
        let (answer, receiver) = oneshot::channel();
        let debt = Debt::new(&client.handle.counters);
        let (handle, known, path) = (client.handle.clone(), client.members(&self.path), self.path.clone());
        let membership = Membership::new(handle, known, path, self.members, debt.clone());
        client.handle.pool.runtime().spawn(membership.run(patience, answer));
        Waiting::new(receiver, debt)
    }
}
