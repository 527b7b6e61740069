//! The barrier, for threads.

use super::home::Home;
use super::lazy::Lazy;
use crate::base::error::Error;
use crate::base::wait::Wait;
use crate::connect::path::check_lock_path;
use crate::threads::call::Call;
use crate::threads::interrupt::Interrupt;
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
    pub(super) fn new(home: &Home, path: &str) -> Result<Self, Error> {
        check_lock_path(path)?;
        let path: Arc<str> = path.into();
        let at = path.clone();
        let core = Lazy::new(home, move |client| client.get()?.barrier(&at))?;
        Ok(Self { core, path })
    }

    /// Returns the core's barrier.
    #[doc(hidden)]
    pub fn core(&self) -> &Lazy<crate::Barrier> {
        &self.core
    }

    /// Returns the path of the barrier.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(barriers: &[zklock_core::blocking::Barrier]) -> Result<(), zklock_core::Error> {
    /// for barrier in barriers {
    ///     println!("waiting at {}", barrier.path());
    ///     barrier.wait()?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Sets the barrier, and waits until that is done. Returns `false` if it was already set. See
    /// [`Barrier::set`](crate::Barrier::set).
    ///
    /// # Errors
    ///
    /// Fails like [`Barrier::set`](crate::Barrier::set) does, and as [the module](super#errors) says. A
    /// client that has not connected yet also fails like [`Client::connect`](super::Client::connect)
    /// does.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(barrier: &zklock_core::blocking::Barrier) -> Result<(), zklock_core::Error> {
    /// if !barrier.set()? {
    ///     println!("somebody was before us");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn set(&self) -> Result<bool, Error> {
        self.core.call(Wait::Forever, |barrier| async move { barrier.set().await }).wait(None)
    }

    /// Removes the barrier, and waits until that is done. Returns `false` if it was not set. See
    /// [`Barrier::remove`](crate::Barrier::remove).
    ///
    /// # Errors
    ///
    /// Fails like [`set`](Self::set) does.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(barrier: &zklock_core::blocking::Barrier) -> Result<(), zklock_core::Error> {
    /// barrier.set()?;
    /// // ... migrate; meanwhile all others are in barrier.wait() ...
    /// barrier.remove()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn remove(&self) -> Result<bool, Error> {
        self.core.call(Wait::Forever, |barrier| async move { barrier.remove().await }).wait(None)
    }

    /// Asks the ensemble whether the barrier is set. See [`Barrier::is_set`](crate::Barrier::is_set).
    ///
    /// # Errors
    ///
    /// Fails like [`set`](Self::set) does.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(barrier: &zklock_core::blocking::Barrier) -> Result<(), zklock_core::Error> {
    /// println!("{} is set: {}", barrier.path(), barrier.is_set()?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_set(&self) -> Result<bool, Error> {
        self.core.call(Wait::Forever, |barrier| async move { barrier.is_set().await }).wait(None)
    }

    /// Blocks until the barrier is not set. While no server answers, it keeps waiting. See
    /// [`Barrier::wait`](crate::Barrier::wait).
    ///
    /// # Errors
    ///
    /// Fails like [`Barrier::wait`](crate::Barrier::wait) does, and as [the module](super#errors) says.
    /// A client that has not connected yet also fails like [`Client::connect`](super::Client::connect)
    /// does.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(barrier: &zklock_core::blocking::Barrier) -> Result<(), zklock_core::Error> {
    /// barrier.wait()?;
    /// println!("go on");
    /// # Ok(())
    /// # }
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// # fn example(barrier: &zklock_core::blocking::Barrier) -> Result<(), zklock_core::Error> {
    /// barrier.wait_timeout(Duration::from_secs(60))?;
    /// # Ok(())
    /// # }
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use zklock_core::Wait;
    ///
    /// # use zklock_core::blocking::{Barrier, Interrupt};
    /// # fn example(barrier: &Barrier, interrupt: &Interrupt) -> Result<(), zklock_core::Error> {
    /// // Until the barrier is removed, or another thread triggers the interrupt.
    /// barrier.wait_within(Wait::Forever, Some(interrupt))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn wait_within(&self, wait: impl Into<Wait>, interrupt: Option<&Interrupt>) -> Result<(), Error> {
        self.wait_call(wait).wait(interrupt)
    }

    /// Makes the call of [`wait_within`](Self::wait_within).
    #[doc(hidden)]
    pub fn wait_call(&self, wait: impl Into<Wait>) -> Call<()> {
        let wait = wait.into();
        self.core.call(wait, move |barrier| async move { barrier.wait_within(wait).await })
    }
}
