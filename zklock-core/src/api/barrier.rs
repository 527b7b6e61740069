//! The barrier: while it is set, everybody who arrives waits.

use super::home::Home;
use super::lazy::Lazy;
use crate::base::error::Error;
#[cfg(doc)]
use crate::base::error::ErrorKind;
use crate::base::wait::Wait;
use crate::client::barrier::Barrier as CoreBarrier;
use crate::connect::path::check_lock_path;
use crate::threads::call::Call;
use std::sync::Arc;
use std::time::Duration;

/// A barrier: a node that exists or does not. While it exists, callers of [`wait`](Self::wait) wait.
///
/// It is the same barrier as Curator's `DistributedBarrier` at that path. It does not belong to a client: it
/// stays after the client that set it has ended, and any client may remove it.
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: zklock_core::Client) -> Result<(), zklock_core::Error> {
/// let barrier = client.barrier("/barriers/migration")?;
/// barrier.set().await?;
/// // ... migrate; meanwhile all others are in barrier.wait() ...
/// barrier.remove().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Barrier {
    core: Lazy<CoreBarrier>,
    path: Arc<str>,
}

impl Barrier {
    pub(super) fn new(home: &Home, path: &str) -> Result<Self, Error> {
        check_lock_path(path)?;
        let path: Arc<str> = path.into();
        let at = path.clone();
        let core = Lazy::new(home, move |client| client.get()?.barrier(&at))?;
        Ok(Self { core, path })
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
    /// # async fn example(barriers: &[zklock_core::Barrier]) -> Result<(), zklock_core::Error> {
    /// for barrier in barriers {
    ///     println!("waiting at {}", barrier.path());
    ///     barrier.wait().await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Sets the barrier. Returns `false` if it was already set; that is not an error.
    ///
    /// If a reply was lost, it is not known which client set it. It then counts as set by this
    /// call.
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::Unreachable`] if the ensemble does not answer within the connect timeout. The barrier may be set
    ///   then;
    /// * [`ErrorKind::Refused`] if the access list does not allow it;
    /// * [`ErrorKind::Closed`] if the client is closed.
    ///
    /// # Cancel safety
    ///
    /// If the call is dropped, the barrier may or may not be set.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(barrier: zklock_core::Barrier) -> Result<(), zklock_core::Error> {
    /// if !barrier.set().await? {
    ///     println!("somebody was before us");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn set(&self) -> Call<bool> {
        self.core.call(Wait::Forever, |barrier| async move { barrier.fixed().set().await })
    }

    /// Removes the barrier, so that all waiters go on. Returns `false` if it was not set; that is not an
    /// error.
    ///
    /// If a reply was lost, it is not known which client removed it. It then counts as removed by
    /// this call.
    ///
    /// # Errors
    ///
    /// Fails like [`set`](Self::set) does.
    ///
    /// # Cancel safety
    ///
    /// If the call is dropped, the barrier may or may not be removed.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(barrier: zklock_core::Barrier) -> Result<(), zklock_core::Error> {
    /// barrier.remove().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn remove(&self) -> Call<bool> {
        self.core.call(Wait::Forever, |barrier| async move { barrier.fixed().remove().await })
    }

    /// Returns whether the barrier is set.
    ///
    /// # Errors
    ///
    /// Fails like [`set`](Self::set) does.
    ///
    /// # Cancel safety
    ///
    /// Dropping the call changes nothing.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(barrier: zklock_core::Barrier) -> Result<(), zklock_core::Error> {
    /// println!("{} is set: {}", barrier.path(), barrier.is_set().await?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_set(&self) -> Call<bool> {
        self.core.call(Wait::Forever, |barrier| async move { barrier.fixed().is_set().await })
    }

    /// Waits until the barrier is not set.
    ///
    /// A waiter may miss the removal if the barrier is set again at once.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`] if the access list does not allow reading the barrier; [`ErrorKind::Closed`] if the
    /// client is closed. While no server answers, it waits.
    ///
    /// # Cancel safety
    ///
    /// Dropping the call ends the wait, and changes nothing.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(barrier: zklock_core::Barrier) -> Result<(), zklock_core::Error> {
    /// barrier.wait().await?;
    /// println!("go on");
    /// # Ok(())
    /// # }
    /// ```
    pub fn wait(&self) -> Call<()> {
        self.wait_within(Wait::Forever)
    }

    /// Like [`wait`](Self::wait), but waits no longer than `timeout`. Zero looks once.
    ///
    /// # Errors
    ///
    /// Fails like [`wait`](Self::wait) does. When the time is up, whatever the network does, it also fails with:
    ///
    /// * [`ErrorKind::Timeout`] if the barrier is still set;
    /// * [`ErrorKind::Unreachable`] if there is no connection at that moment. With a timeout of zero, also if the
    ///   ensemble does not answer within the [try timeout](crate::ClientOptions::try_timeout).
    ///
    /// # Cancel safety
    ///
    /// Dropping the call ends the wait, and changes nothing.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// # async fn example(barrier: zklock_core::Barrier) -> Result<(), zklock_core::Error> {
    /// barrier.wait_timeout(Duration::from_secs(60)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn wait_timeout(&self, timeout: Duration) -> Call<()> {
        self.wait_within(timeout)
    }

    /// Like [`wait`](Self::wait) or [`wait_timeout`](Self::wait_timeout).
    #[doc(hidden)]
    pub fn wait_within(&self, wait: impl Into<Wait>) -> Call<()> {
        let wait = wait.into();
        self.core.call(wait, move |barrier| async move { barrier.fixed().wait_within(wait).await })
    }
}
