//! The proof that a lock is held.

mod errors;
mod loss;
mod nodes;
mod owned;
mod wanted;

use crate::base::clock;
use crate::base::error::{Error, ErrorKind, LossReason};
use crate::base::owner::Owner;
use crate::base::progress::Progress;
use crate::hold::guarded::Guarded;
use crate::machine::Moment;
use crate::session::pool::Slot;
use crate::session::session::{Holding, Session, Status};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use zklock_machine::listed;

pub use self::loss::Loss;
pub use self::wanted::Wanted;
pub(crate) use crate::hold::token::Token;

listed! {
    /// The state of a hold.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(hold: &zklock_core::Hold) {
    /// use zklock_core::HoldState;
    ///
    /// match hold.state() {
    ///     HoldState::Held => {}
    ///     HoldState::AtRisk => println!("out of touch, {:?} left", hold.valid_for()),
    ///     state => println!("stop: {state:?}"),
    /// }
    /// # }
    /// ```
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    #[non_exhaustive]
    pub enum HoldState {
        /// The lock is held, and the ensemble has confirmed it recently.
        Held,
        /// The ensemble is unreachable or late. The lock is held for as long as [`valid_for`](Hold::valid_for) says;
        /// after that, others may hold it.
        AtRisk,
        /// The lock is no longer held. This is final.
        Lost(LossReason),
        /// The hold was released.
        Released,
    }
}

/// The proof that a lock is held. Dropping it releases the lock in the background.
///
/// See [`Lock`](crate::Lock) for an example.
#[must_use = "a lock is held only as long as its hold is kept: dropping it releases the lock"]
pub struct Hold {
    grant: Arc<Grant>,
    /// This hold's own flag: the grant outlives it while the owner has others.
    released: watch::Sender<Released>,
}

/// Whether a hold was released.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Released {
    No,
    /// It was released together with the grant, or after the grant was lost.
    Yes,
    /// It was released while other holds of the owner went on, or its node was passed on. What happens to that node
    /// later is not this hold's concern.
    Before,
}

/// One grant, shared by all holds of a reentrant owner.
pub(crate) struct Grant {
    footing: Footing,
    owner: Owner,
    since: Moment,
    /// Whether only the owner may release it.
    bound: bool,
    /// Holds that share this grant.
    holds: AtomicUsize,
    /// Takes the node back, if it may be passed on.
    returns: Option<Arc<dyn Returns>>,
    /// Guarded writes that may still be under way.
    unsettled: AtomicUsize,
}

/// The basis of a grant. Grants that follow one another on one node share it.
#[derive(Clone)]
pub(crate) struct Footing {
    pub(crate) session: Arc<Session>,
    pub(crate) holding: Arc<Holding>,
    pub(crate) path: Arc<str>,
    pub(crate) token: Token,
    pub(crate) progress: Arc<Progress>,
    /// Finds the client's next session once this one is over.
    pub(crate) slot: Arc<Slot>,
}

impl Deref for Grant {
    type Target = Footing;

    fn deref(&self) -> &Footing {
        &self.footing
    }
}

/// Takes back the node of a grant that ends.
pub(crate) trait Returns: Send + Sync {
    /// Whether the node is kept for the next holder in this process.
    fn give_back(&self, grant: &Grant) -> bool;

    /// Deletes the node when this grant ends; `false` if it has ended.
    fn keep_for_last(&self, grant: &Grant) -> bool;
}

impl Hold {
    pub(crate) fn new(grant: Arc<Grant>) -> Self {
        Self { grant, released: watch::Sender::new(Released::No) }
    }

    /// Returns the fencing token of this grant.
    pub fn token(&self) -> Token {
        self.grant.token
    }

    /// Returns the path of the lock; see [`Lock::path`](crate::Lock::path).
    pub fn path(&self) -> &str {
        &self.grant.path
    }

    /// Returns the path of the node that represents this hold. For a set of locks, and for several permits, it is the
    /// first.
    pub fn node(&self) -> &str {
        self.grant.holding.node()
    }

    /// Returns the paths of all nodes that represent this hold. If one of them is deleted, the hold is lost.
    pub fn nodes(&self) -> impl Iterator<Item = &str> {
        self.grant.holding.nodes.iter().map(|node| &**node)
    }

    /// Returns the state of the hold.
    pub fn state(&self) -> HoldState {
        match self.grant.holding.status() {
            _ if *self.released.borrow() == Released::Before => HoldState::Released,
            Status::Lost(reason) => HoldState::Lost(reason),
            _ if self.is_released() => HoldState::Released,
            Status::Releasing | Status::Stuck | Status::Released | Status::Freed => HoldState::Released,
            Status::Held if self.grant.is_at_risk() => HoldState::AtRisk,
            Status::Held => HoldState::Held,
        }
    }

    /// Returns how long the lock is certain to be held, even if the ensemble is not heard from again.
    ///
    /// Zero means that others may hold it. The call costs no request. Its answer stays true to its end, whatever the
    /// network and the servers do, unless the hold is released or an operator ends it. But if the process is paused
    /// before it does the guarded work, that end may be over by then. The [`token`](Self::token)
    /// and [`guarded`](Self::guarded) writes protect against that.
    pub fn valid_for(&self) -> Duration {
        let valid_for = self.grant.session.valid_for(&self.grant.holding);
        // Checked last: the node may have been passed on, and the lease would then be the next holder's.
        if self.is_released() { Duration::ZERO } else { valid_for }
    }

    /// Waits until the hold is lost, and returns the reason; `None` if the hold is released instead. The holds of a
    /// reentrant owner are lost together, and released with the last of them.
    ///
    /// # Cancel safety
    ///
    /// The future may be dropped and the method called again.
    pub async fn lost(&self) -> Option<LossReason> {
        self.loss().come().await
    }

    /// Like [`lost`](Self::lost), but does not keep the hold.
    pub(crate) fn loss(&self) -> Loss {
        Loss { told: self.grant.holding.watch(), released: self.released.subscribe() }
    }

    /// Asks the quorum whether the lock is still held, and returns how long it is certain to be held from now on.
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::Lost`] if it is not;
    /// * [`ErrorKind::Unreachable`] if the ensemble did not answer while the lease ran (or within a second, if less
    ///   than a second was left);
    /// * [`ErrorKind::NotHeld`] if the hold was released, even while the call waited.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn confirm(&self) -> Result<Duration, Error> {
        self.refuse_released()?;
        let patience = self.valid_for().max(Duration::from_secs(1));
        let confirmed = tokio::select! {
            biased;
            // After a release or a loss, the answer would change nothing.
            _ = self.loss().come() => None,
            confirmed = clock::timeout(patience, self.ask()) => confirmed.ok().flatten(),
        };
        confirmed.ok_or_else(|| self.unconfirmed())
    }

    /// Returns how long the hold is certain to last, if the quorum confirms it.
    async fn ask(&self) -> Option<Duration> {
        let grant = &self.grant;
        // A lapsed lease takes two checks to be restored.
        for _ in 0..2 {
            let is_answered = grant.session.clone().prove(&grant.holding).await;
            grant.told().ok()?;
            let valid_for = self.valid_for();
            if is_answered && !valid_for.is_zero() {
                return Some(valid_for);
            }
        }
        None
    }

    /// Returns why the hold could not be confirmed. Call it last: the hold may have been released or lost at any
    /// moment before.
    fn unconfirmed(&self) -> Error {
        self.refuse_released().err().unwrap_or_else(|| self.grant.unheard())
    }

    /// Starts a list of writes to ZooKeeper that are done only if the lock is still held when the quorum commits them.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(hold: &zklock_core::Hold) -> Result<(), zklock_core::Error> {
    /// hold.guarded().set_data("/report/state", b"done", None).commit().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn guarded(&self) -> Guarded<'_> {
        Guarded::by(self)
    }

    /// Releases the lock, and waits until the ensemble has confirmed it.
    ///
    /// With a reentrant lock, only the release of the owner's last hold reaches the ensemble.
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::Lost`] if the hold had been lost;
    /// * [`ErrorKind::NotOwner`] if the lock is reentrant and the caller is not the hold's owner. Nothing changes;
    /// * [`ErrorKind::NotHeld`] if this hold has already been released;
    /// * [`ErrorKind::Refused`] if the access list does not allow deleting its node. The lock is free all the same,
    ///   because the client closed the session and its nodes are gone with it. All other holds of that session are
    ///   lost, for the reason [`LossReason::SessionClosed`];
    /// * [`ErrorKind::Timeout`] if the ensemble has not answered within a session timeout. The release goes on in the
    ///   background;
    /// * [`ErrorKind::Unreachable`] if the session can get no connection any more, for example after a change of
    ///   passwords. The lock is free when the ensemble ends the session, a session timeout after it last heard from
    ///   it.
    ///
    /// # Cancel safety
    ///
    /// The release begins with the first poll. Dropping the future only stops the waiting.
    pub async fn release(&self) -> Result<(), Error> {
        match self.begin_release(Owner::current())? {
            Some(rest) => rest.await,
            None => Ok(()),
        }
    }

    /// Releases the lock, and returns a future that waits for the release; `None` if there is nothing to wait for,
    /// because the owner has other holds.
    #[doc(hidden)]
    pub fn begin_release(
        &self,
        owner: Owner,
    ) -> Result<Option<impl Future<Output = Result<(), Error>> + Send + use<>>, Error> {
        let grant = self.grant.clone();
        if grant.bound && owner != grant.owner {
            let message = format!(
                "the hold of {} is of a reentrant lock, and belongs to the thread or task that acquired it: release it there",
                grant.path
            );
            return Err(Error::new(ErrorKind::NotOwner, message));
        }
        grant.note_release_by(owner);
        let was_valid = !grant.session.valid_for(&grant.holding).is_zero();
        let left = self.leave().ok_or_else(|| grant.not_held())?;
        match left {
            Left::Released => {}
            // The next holder looks after the node.
            Left::PassedOn if was_valid => return Ok(None),
            // Others may have held the lock, so the servers must confirm that they did not.
            Left::PassedOn => {}
            Left::Others | Left::Lost => return grant.told().map(|()| None),
        }
        Ok(Some(async move {
            if left == Left::PassedOn {
                let proves = grant.session.clone().prove(&grant.holding);
                let is_known = clock::timeout(grant.session.timeout(), proves).await == Ok(true);
                grant.told()?;
                return if is_known { Ok(()) } else { Err(grant.unconfirmed_yet()) };
            }
            let mut told = grant.holding.watch();
            let ended = async {
                let goes_on =
                    |status: &Status| matches!(status, Status::Held | Status::Releasing | Status::Stuck);
                let ended = told.wait_for(|told| !goes_on(&told.status));
                // Copied, because nobody can write it, or read it again, while it is borrowed.
                let ended = ended.await.map(|told| told.status);
                let gone = match ended {
                    // A hold that was lost before the release is reported as lost at once.
                    Ok(Status::Lost(LossReason::SessionExpired))
                        if was_valid && grant.session.nodes_are_gone() =>
                    {
                        grant.is_gone().await.is_ok()
                    }
                    Ok(Status::Lost(_)) => grant.session.gone().await,
                    _ => false,
                };
                (ended, gone)
            };
            match clock::timeout(grant.session.timeout(), ended).await {
                // It was held to the end; its node goes with the session.
                Ok((Ok(Status::Lost(LossReason::SessionExpired | LossReason::SessionClosed)), gone))
                    if was_valid =>
                {
                    if gone {
                        Ok(())
                    } else {
                        Err(grant.unconfirmed())
                    }
                }
                Ok(_) => grant.told(),
                Err(_) => Err(grant.unconfirmed_yet()),
            }
        }))
    }

    /// Releases the lock in the background, without checking the owner.
    pub(crate) fn let_go(&self) {
        self.leave();
    }

    /// Releases this hold, and returns what is left of its grant; `None` if it had been released before.
    fn leave(&self) -> Option<Left> {
        let first = self.released.send_if_modified(|released| {
            let first = *released == Released::No;
            if first {
                *released = Released::Yes;
            }
            first
        });
        let left = first.then(|| self.grant.let_go())?;
        if matches!(left, Left::Others | Left::PassedOn) {
            self.released.send_replace(Released::Before);
        }
        Some(left)
    }

    pub(crate) fn is_released(&self) -> bool {
        *self.released.borrow() != Released::No
    }

    fn refuse_released(&self) -> Result<(), Error> {
        if self.is_released() { Err(self.grant.not_held()) } else { Ok(()) }
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hold")
            .field("node", &self.node())
            .field("token", &self.token().value())
            .field("state", &self.state())
            .field("valid_for", &self.valid_for())
            .finish()
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if !self.is_released() {
            self.grant.note_release_by(Owner::current());
            self.let_go();
        }
    }
}

/// The result of releasing one of a grant's holds.
#[derive(PartialEq, Eq)]
enum Left {
    /// The owner has other holds of the grant.
    Others,
    /// The next holder in this process gets the node.
    PassedOn,
    /// The grant is being released.
    Released,
    /// The grant had been lost.
    Lost,
}

impl Grant {
    pub(crate) fn new(
        footing: Footing,
        owner: Owner,
        bound: bool,
        returns: Option<Arc<dyn Returns>>,
    ) -> Arc<Self> {
        let (holds, unsettled) = (AtomicUsize::new(1), AtomicUsize::new(0));
        Arc::new(Self { footing, owner, since: clock::now(), bound, holds, returns, unsettled })
    }

    /// Makes this the node's last grant; `false` if it has ended.
    pub(crate) fn be_the_last(&self) -> bool {
        self.returns.as_ref().is_none_or(|returns| returns.keep_for_last(self))
    }

    /// Whether there is a hold of it.
    pub(crate) fn is_in_use(&self) -> bool {
        self.holds.load(Ordering::Acquire) > 0
    }

    /// Whether a write that it guards may still be done after its end.
    pub(crate) fn is_unsettled(&self) -> bool {
        self.unsettled.load(Ordering::Acquire) > 0
    }

    pub(crate) fn token(&self) -> Token {
        self.token
    }

    pub(crate) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    pub(crate) fn is_held(&self) -> bool {
        self.holding.status() == Status::Held
    }

    /// Whether all its holds are released, and nothing of it is left at the servers.
    pub(crate) fn is_over(&self) -> bool {
        self.holds.load(Ordering::Acquire) == 0
            && matches!(self.holding.status(), Status::Lost(_) | Status::Released | Status::Freed)
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.loss().is_some()
    }

    /// Returns why it was lost; `None` if it was not.
    pub(crate) fn loss(&self) -> Option<LossReason> {
        if let Status::Lost(reason) = self.holding.status() { Some(reason) } else { None }
    }

    pub(crate) fn holding(&self) -> &Arc<Holding> {
        &self.holding
    }

    /// Returns another hold for the same owner; `None` if the last hold has been released meanwhile.
    pub(crate) fn again(self: &Arc<Self>) -> Option<Hold> {
        let more = |holds: usize| (holds > 0).then_some(holds + 1);
        self.holds.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).ok()?;
        Some(Hold::new(self.clone()))
    }

    /// Gives up looking after it, and wakes all who wait for its end.
    pub(crate) fn abandon(&self) {
        self.session.abandon(&self.holding);
    }

    /// Takes away one hold.
    fn let_go(&self) -> Left {
        let is_lost = self.is_lost();
        if self.holds.fetch_sub(1, Ordering::AcqRel) > 1 {
            return if is_lost { Left::Lost } else { Left::Others };
        }
        self.note_end();
        if self.returns.as_ref().is_some_and(|returns| returns.give_back(self)) {
            return Left::PassedOn;
        }
        self.progress.owe();
        if self.session.release(&self.holding) { Left::Released } else { Left::Lost }
    }

    fn is_at_risk(&self) -> bool {
        self.session.is_late(&self.holding)
            || !self.session.is_connected()
            || self.session.has_heartbeat() && self.session.valid_for(&self.holding).is_zero()
    }
}

#[cfg(test)]
mod tests;
