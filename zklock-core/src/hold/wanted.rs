//! Tells a holder that others wait for what it holds.

use crate::hold::released::Followed;
use crate::machine::status::Status;
use crate::session::session::{HoldingState, Notice};
use crate::threads::call::Call;
use crate::threads::fork_safe::ForkSafe;

/// Says whether others wait for what a [`Hold`](crate::Hold) has. You can poll it or wait for it.
/// It does not keep the hold.
///
/// # Examples
///
/// ```no_run
/// # fn example(hold: &zklock::Hold) -> Result<(), zklock::Error> {
/// let wanted = hold.watch_wanted();
/// for piece in 0..1_000 {
///     work_on(piece);
///     if wanted.is_set() {
///         break;
///     }
/// }
/// hold.release().wait()
/// # }
/// # fn work_on(_: u32) {}
/// ```
#[derive(Clone, Debug)]
pub struct Wanted {
    pub(super) notice: ForkSafe<Followed>,
}

impl Wanted {
    /// Returns whether others are known to wait; `false` once the hold has ended.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(wanted: &zklock::further::Wanted) {
    /// if wanted.is_set() {
    ///     println!("others wait: finish early");
    /// }
    /// # }
    /// ```
    pub fn is_set(&self) -> bool {
        self.notice.look(
            || false,
            |Followed { state, released }| {
                let HoldingState { status, notice, .. } = *state.borrow();
                !released.is_set() && status == Status::Held && notice == Notice::Given
            },
        )
    }

    /// Waits until others wait for the lock. Returns `false` if the hold ends first. It fails like
    /// [`Hold::wanted`](crate::Hold::wanted) does.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// # fn example(wanted: &zklock::further::Wanted) -> Result<(), zklock::Error> {
    /// if wanted.wanted().wait_timeout(Duration::from_secs(60))? {
    ///     println!("others wait: finish early");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn wanted(&self) -> Call<bool> {
        self.notice.call(|notice| async move { Ok(Self { notice }.come().await) })
    }

    pub(super) async fn come(self) -> bool {
        let Followed { state, released } = self.notice.fixed();
        let mut state = state.clone();
        let says = |state: &HoldingState| state.status != Status::Held || state.notice == Notice::Given;
        tokio::select! {
            biased;
            () = released.come() => false,
            state = state.wait_for(says) => state.is_ok_and(|state| state.status == Status::Held),
        }
    }
}
