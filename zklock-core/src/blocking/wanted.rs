//! Tells a thread that others wait for what it holds.

use crate::base::error::Error;
use crate::base::wait::Wait;
use crate::threads::call::Call;
use crate::threads::fork_safe::ForkSafe;
use crate::threads::interrupt::Interrupt;
use std::sync::Arc;
use std::time::Duration;

/// Says whether others wait for what a [`Hold`](super::Hold) has. You can poll it or wait for it.
/// It does not keep the hold.
///
/// # Examples
///
/// ```no_run
/// # fn example(hold: &zklock_core::blocking::Hold) -> Result<(), zklock_core::Error> {
/// let wanted = hold.wanted();
/// for piece in 0..1_000 {
///     work_on(piece);
///     if wanted.is_set() {
///         break;
///     }
/// }
/// hold.release()
/// # }
/// # fn work_on(_: u32) {}
/// ```
#[derive(Clone, Debug)]
pub struct Wanted {
    core: ForkSafe<crate::hold::wanted::Wanted>,
}

impl Wanted {
    pub(super) fn new(core: ForkSafe<crate::hold::wanted::Wanted>) -> Self {
        Self { core }
    }

    /// Returns the core's value.
    #[doc(hidden)]
    pub fn core(&self) -> &ForkSafe<crate::hold::wanted::Wanted> {
        &self.core
    }

    /// Returns whether others are known to wait; `false` once the hold has ended.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(wanted: &zklock_core::blocking::Wanted) {
    /// if wanted.is_set() {
    ///     println!("others wait: finish early");
    /// }
    /// # }
    /// ```
    pub fn is_set(&self) -> bool {
        self.core.look(|| false, crate::hold::wanted::Wanted::now)
    }

    /// Blocks until others wait for the lock, but no longer than `timeout`. Returns `false` if the
    /// hold ends first. Without a timeout it waits for ever.
    ///
    /// # Errors
    ///
    /// Fails like [`Hold::wait_wanted`](super::Hold::wait_wanted) does.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// # fn example(wanted: &zklock_core::blocking::Wanted) -> Result<(), zklock_core::Error> {
    /// if wanted.wait(Some(Duration::from_secs(60)), None)? {
    ///     println!("others wait: finish early");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn wait(&self, timeout: Option<Duration>, interrupt: Option<&Interrupt>) -> Result<bool, Error> {
        self.wait_call(Wait::at_most(timeout)).wait(interrupt)
    }

    /// Makes the call of [`wait`](Self::wait).
    #[doc(hidden)]
    pub fn wait_call(&self, wait: Wait) -> Call<bool> {
        let come =
            |wanted: Arc<crate::hold::wanted::Wanted>| async move { Ok((*wanted).clone().come().await) };
        self.core.call(move |wanted| wait.bound(come(wanted))).until(wait)
    }
}
