//! The loss of a hold, for those who do not keep the hold.

#[cfg(doc)]
use crate::base::error::ErrorKind;
use crate::base::error::LossReason;
use crate::hold::released::Followed;
use crate::machine::status::Status;
use crate::threads::call::Call;
use crate::threads::fork_safe::ForkSafe;

/// The loss of a [`Hold`](crate::Hold). You can poll it or wait for it. It does not keep the hold.
///
/// # Examples
///
/// ```no_run
/// # fn example(hold: &zklock::Hold) -> Result<(), zklock::Error> {
/// let loss = hold.loss();
/// let watchman = std::thread::spawn(move || loss.lost().wait());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Loss {
    pub(super) end: ForkSafe<Followed>,
}

impl Loss {
    /// Returns why the hold was lost; `None` if it is not. It does not wait.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(loss: &zklock::further::Loss) {
    /// if let Some(reason) = loss.reason() {
    ///     println!("stop: {reason}");
    /// }
    /// # }
    /// ```
    pub fn reason(&self) -> Option<LossReason> {
        self.end.look(
            || Some(self.end.loss()),
            |end| match end.state.borrow().status {
                // The node may have been passed on before that.
                Status::Lost(reason) if !end.released.is_before() => Some(reason),
                _ => None,
            },
        )
    }

    /// Waits until the hold is lost, and returns the reason; `None` if the hold is released instead.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forked`] if the hold belongs to the parent process.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(loss: &zklock::further::Loss) -> Result<(), zklock::Error> {
    /// match loss.lost().wait()? {
    ///     Some(reason) => println!("others may hold the lock: {reason}"),
    ///     None => println!("released"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn lost(&self) -> Call<Option<LossReason>> {
        self.end.call(|end| async move { Ok(Self { end }.come().await) })
    }

    pub(super) async fn come(self) -> Option<LossReason> {
        let Followed { state, released } = self.end.fixed();
        let mut state = state.clone();
        tokio::select! {
            biased;
            // A hold that was lost before it was released is lost. What has ended it is copied: while it is borrowed, nobody can
            // write it, or read it again.
            ended = state.wait_for(|state| state.status != Status::Held), if !released.is_before() => {
                match ended.map(|state| state.status) {
                    Ok(Status::Lost(reason)) if !released.is_before() => Some(reason),
                    _ => None,
                }
            }
            () = released.come() => None,
        }
    }

    /// Whether the hold was released.
    pub(super) fn is_released(&self) -> bool {
        self.end.fixed().released.is_set()
    }
}
