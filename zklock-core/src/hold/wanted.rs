//! How a holder learns that others wait, or ask for what it has.

use super::{Hold, Released};
use crate::session::{Notice, Status, Told};
use tokio::sync::watch;

impl Hold {
    /// Waits until somebody waits for what this hold has, of whatever process and library: to finish early, or to let the
    /// lock go between two pieces of work. `false` if the hold is released or lost instead. Somebody who has asked for it by
    /// [`revoke`](crate::Lock::revoke), or by Curator's `Revoker`, counts as one who waits.
    ///
    /// The first call lists the lock's queue and reads the hold's own nodes, and leaves watches that the next who queues or asks
    /// sets off; a hold that never asks costs nothing. Readers do not wait for readers, so they do not count beside one. It is what was seen last: it
    /// may stay true though the other has given up meanwhile. A contender for another permit of a semaphore counts as well,
    /// even if one is free for it. Nobody queues for an [exclusive
    /// lock](crate::Client::exclusive), so there only those of this client are seen, and those who have asked.
    ///
    /// ```no_run
    /// # async fn example(hold: zklock_core::Hold) -> Result<(), zklock_core::Error> {
    /// tokio::select! {
    ///     true = hold.wanted() => hold.release().await?,
    ///     _ = hold.lost() => {}
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// May be dropped and called again.
    pub async fn wanted(&self) -> bool {
        self.notice().come().await
    }

    /// Whether somebody is known to wait for what this hold has, or to have asked for it. It costs no request by itself: the first call begins to
    /// look out, and does not wait for what is seen. See [`wanted`](Self::wanted).
    ///
    /// ```no_run
    /// # async fn example(hold: zklock_core::Hold) -> Result<(), zklock_core::Error> {
    /// for piece in 0..1_000 {
    ///     work_on(piece);
    ///     if hold.is_wanted() {
    ///         break;
    ///     }
    /// }
    /// hold.release().await
    /// # }
    /// # fn work_on(_: u32) {}
    /// ```
    pub fn is_wanted(&self) -> bool {
        self.notice().now()
    }

    /// As [`wanted`](Self::wanted), and does not keep the hold.
    pub(crate) fn notice(&self) -> Wanted {
        self.look_out();
        self.unasked_notice()
    }

    /// Has the attempt look out for others.
    pub(crate) fn look_out(&self) {
        if !self.is_released() {
            self.grant.holding.ask_for_notice();
        }
    }

    /// What others have asked to be told.
    pub(crate) fn unasked_notice(&self) -> Wanted {
        Wanted { told: self.grant.holding.watch(), released: self.released.subscribe() }
    }
}

/// Tells when others wait for what a hold has.
#[derive(Clone, Debug)]
pub struct Wanted {
    told: watch::Receiver<Told>,
    released: watch::Receiver<Released>,
}

impl Wanted {
    /// Waits for it; `false` if the hold ends before.
    pub async fn come(self) -> bool {
        let Self { mut told, mut released } = self;
        let says = |told: &Told| told.status != Status::Held || told.notice == Notice::Given;
        tokio::select! {
            biased;
            _ = released.wait_for(|released| *released != Released::No) => false,
            told = told.wait_for(says) => told.is_ok_and(|told| told.status == Status::Held),
        }
    }

    /// Whether it is known now.
    pub(crate) fn now(&self) -> bool {
        let Told { status, notice } = *self.told.borrow();
        *self.released.borrow() == Released::No && status == Status::Held && notice == Notice::Given
    }
}
