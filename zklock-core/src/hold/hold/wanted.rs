//! How a holder learns that others wait for its lock, or have asked for it.

use super::{Hold, Released};
use crate::session::session::{Notice, Status, Told};
use tokio::sync::watch;

impl Hold {
    /// Waits until another contender wants what this hold has, whatever its process or library. Use it to finish early, or
    /// to let the lock go between two pieces of work. Returns `false` if the hold is released or lost instead. A request by
    /// [`revoke`](crate::Lock::revoke), or by Curator's `Revoker`, counts too.
    ///
    /// The first call lists the lock's queue, reads the hold's own nodes, and sets watches that fire when the next contender
    /// queues or asks. A hold on which this is never called costs nothing. Readers do not wait for readers, so they do not
    /// count against a reader's hold. The answer is what was seen last: it may stay true even if the other contender has
    /// given up. A contender for another permit of a semaphore counts too, even if a permit is free for it. Nobody queues
    /// for an [exclusive lock](crate::Client::exclusive), so only waiters of this client, and requests, are seen there.
    ///
    /// # Cancel safety
    ///
    /// The future may be dropped and the method called again.
    ///
    /// # Examples
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
    pub async fn wanted(&self) -> bool {
        self.notice().come().await
    }

    /// Returns whether another contender is known to wait for what this hold has, or to have asked for it. It costs no
    /// request by itself: the first call starts looking in the background, and does not wait for the result. See
    /// [`wanted`](Self::wanted).
    ///
    /// # Examples
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

    /// Like [`wanted`](Self::wanted), but does not keep the hold.
    pub(crate) fn notice(&self) -> Wanted {
        self.look_out();
        self.unasked_notice()
    }

    /// Makes the attempt look out for other contenders.
    pub(crate) fn look_out(&self) {
        if !self.is_released() {
            self.grant.holding.ask_for_notice();
        }
    }

    /// Like [`notice`](Self::notice), but does not look out: it reports what earlier calls have found.
    pub(crate) fn unasked_notice(&self) -> Wanted {
        Wanted { told: self.grant.holding.watch(), released: self.released.subscribe() }
    }
}

/// Reports that others want what a hold has.
#[derive(Clone, Debug)]
pub struct Wanted {
    told: watch::Receiver<Told>,
    released: watch::Receiver<Released>,
}

impl Wanted {
    /// Waits until others want it; `false` if the hold ends first.
    pub async fn come(self) -> bool {
        let Self { mut told, mut released } = self;
        let says = |told: &Told| told.status != Status::Held || told.notice == Notice::Given;
        tokio::select! {
            biased;
            _ = released.wait_for(|released| *released != Released::No) => false,
            told = told.wait_for(says) => told.is_ok_and(|told| told.status == Status::Held),
        }
    }

    /// Whether others are known to want it now.
    pub(crate) fn now(&self) -> bool {
        let Told { status, notice, .. } = *self.told.borrow();
        *self.released.borrow() == Released::No && status == Status::Held && notice == Notice::Given
    }
}
