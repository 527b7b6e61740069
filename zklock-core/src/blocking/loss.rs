//! The loss of a hold, for threads that do not keep the hold.

use crate::base::error::{Error, LossReason};
use crate::base::wait::Wait;
use crate::threads::call::Call;
use crate::threads::fork_safe::ForkSafe;
use crate::threads::interrupt::Interrupt;
use std::sync::Arc;
use std::time::Duration;

/// The loss of a [`Hold`](super::Hold). You can poll it or wait for it. It does not keep the hold.
///
/// # Examples
///
/// ```no_run
/// # fn example(hold: &zklock_core::blocking::Hold) -> Result<(), zklock_core::Error> {
/// let loss = hold.loss();
/// let watchman = std::thread::spawn(move || loss.wait(None, None));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Loss {
    pub(super) core: ForkSafe<crate::hold::loss::Loss>,
}

impl Loss {
    /// Returns the core's value.
    #[doc(hidden)]
    pub fn core(&self) -> &ForkSafe<crate::hold::loss::Loss> {
        &self.core
    }

    /// Returns why the hold was lost; `None` if it is not. It does not wait.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(loss: &zklock_core::blocking::Loss) {
    /// if let Some(reason) = loss.reason() {
    ///     println!("stop: {reason}");
    /// }
    /// # }
    /// ```
    pub fn reason(&self) -> Option<LossReason> {
        self.core.look(|| Some(self.core.io().opened().loss()), crate::hold::loss::Loss::now)
    }

    /// Blocks until the hold is lost, but no longer than `timeout`, and returns the reason; `None` if the hold is
    /// released instead. Without a timeout it waits for ever.
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::Timeout`](crate::ErrorKind::Timeout) if the hold is not lost by then;
    /// * [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted) if the interrupt is triggered;
    /// * [`ErrorKind::Forked`](crate::ErrorKind::Forked) if the hold belongs to the parent process;
    /// * [`ErrorKind::Deadlock`](crate::ErrorKind::Deadlock) in a callback.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(loss: &zklock_core::blocking::Loss) -> Result<(), zklock_core::Error> {
    /// match loss.wait(None, None)? {
    ///     Some(reason) => println!("others may hold the lock: {reason}"),
    ///     None => println!("released"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn wait(
        &self,
        timeout: Option<Duration>,
        interrupt: Option<&Interrupt>,
    ) -> Result<Option<LossReason>, Error> {
        self.wait_call(Wait::at_most(timeout)).wait(interrupt)
    }

    /// Makes the call of [`wait`](Self::wait).
    #[doc(hidden)]
    pub fn wait_call(&self, wait: Wait) -> Call<Option<LossReason>> {
        let come = |loss: Arc<crate::hold::loss::Loss>| async move { Ok((*loss).clone().come().await) };
        self.core.call(move |loss| wait.bound(come(loss))).until(wait)
    }
}
