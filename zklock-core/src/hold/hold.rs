//! The proof that a lock is held.

use crate::base::clock;
use crate::base::error::{Error, ErrorKind, LossReason};
use crate::base::lock_figures::LockFigures;
use crate::base::owner::Owner;
use crate::connect::path::check_path;
use crate::hold::grant::Grant;
use crate::hold::guarded::Committed;
use crate::hold::loss::Loss;
use crate::hold::released::Released;
use crate::hold::token::Token;
use crate::hold::wanted::Wanted;
use crate::machine::callers::ReleaseOutcome;
use crate::machine::lease::longest;
use crate::machine::status::Status;
use crate::machine::times;
use crate::session::ask::ask_within;
use crate::session::ensemble_id;
use crate::session::session::Session;
use crate::zookeeper::ensemble::{NodeData, Write};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use zklock_machine::listed;

/// The least time that a read is given, however short the session timeout.
const READ_AT_LEAST: Duration = Duration::from_secs(2);

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
#[must_use = "a lock is held only as long as its hold is kept: dropping it releases the lock"]
pub(crate) struct Hold {
    grant: Arc<Grant>,
    /// This hold's own flag: the grant outlives it while the owner has others.
    released: watch::Sender<Released>,
}

impl Hold {
    pub(crate) fn new(grant: Arc<Grant>) -> Self {
        Self { grant, released: watch::Sender::new(Released::No) }
    }

    /// Counts its grant among these figures, unless it is counted among some already.
    pub(crate) fn count_among(&self, figures: &Arc<LockFigures>) {
        self.grant.count_among(figures);
    }

    /// Returns the fencing token of this grant.
    pub(crate) fn token(&self) -> Token {
        self.grant.token()
    }

    /// Returns the path of the lock; see [`Lock::path`](crate::Lock::path).
    pub(crate) fn path(&self) -> &str {
        self.grant.path()
    }

    /// Returns the path of the node that represents this hold. For a set of locks, and for several permits, it is the
    /// first.
    pub(crate) fn node(&self) -> &str {
        self.grant.holding().node()
    }

    /// Returns the paths of all nodes that represent this hold. If one of them is deleted, the hold is lost.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = &str> {
        self.grant.holding().nodes.iter().map(|node| &**node)
    }

    /// Returns the state of the hold.
    pub(crate) fn state(&self) -> HoldState {
        match self.grant.holding().status() {
            _ if *self.released.borrow() == Released::Before => HoldState::Released,
            Status::Lost(reason) => HoldState::Lost(reason),
            _ if self.is_released() => HoldState::Released,
            Status::Releasing | Status::Stuck | Status::Released | Status::Freed => HoldState::Released,
            Status::Held if self.grant.is_at_risk() => HoldState::AtRisk,
            Status::Held => HoldState::Held,
        }
    }

    /// Returns how long the lock is certain to be held, even if the client hears nothing more from
    /// the ensemble.
    pub(crate) fn valid_for(&self) -> Duration {
        let valid_for = self.grant.session().valid_for(self.grant.holding());
        // Checked last: the node may have been passed on, and the lease would then be the next holder's.
        if self.is_released() { Duration::ZERO } else { valid_for }
    }

    /// Checks that the lock is certain to be held for this time plus a hundredth of the session timeout, even if
    /// the client hears nothing more from the ensemble. Call it before work that takes this long, so that you begin
    /// nothing that cannot end in time. The call sends no request and does not wait.
    pub(crate) fn ensure(&self, needs: Duration) -> Result<(), Error> {
        let (valid_for, timeout) = (self.valid_for(), self.grant.session().timeout());
        let needs = needs.saturating_add(times::MARGIN.of(timeout));
        if valid_for >= needs {
            return Ok(());
        }
        // Looked at last: the hold may have been released or lost at any moment before.
        self.refuse_released()?;
        self.grant.check_not_lost()?;
        let (path, longest) = (self.path(), longest(timeout));
        if needs > longest {
            let message = format!(
                "no hold of {path} is ever certain for {needs:?}: with a session timeout of {timeout:?}, a \
                 lease is {longest:?} at most; do the work in smaller parts, or ask for a longer session \
                 timeout"
            );
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        let message = format!(
            "the hold of {path} is certain for {valid_for:?}, and {needs:?} are needed: begin nothing; ask again, or confirm the hold"
        );
        Err(Error::new(ErrorKind::AtRisk, message))
    }

    /// Returns the loss of this hold, which does not keep it.
    pub(crate) fn loss(&self) -> Loss {
        Loss { state: self.grant.holding().watch(), released: self.released.subscribe() }
    }

    /// Returns whether another contender is known to wait for what this hold has, or to have asked for its release. It
    /// does not wait for the servers: the first call starts looking in the background.
    pub(crate) fn is_wanted(&self) -> bool {
        self.notice().now()
    }

    /// Looks out for other contenders, and returns what reports them, which does not keep the hold.
    pub(crate) fn notice(&self) -> Wanted {
        self.ask_for_notice();
        self.unasked_notice()
    }

    /// Makes the attempt look out for other contenders.
    pub(crate) fn ask_for_notice(&self) {
        if !self.is_released() {
            self.grant.holding().ask_for_notice();
        }
    }

    /// Like [`notice`](Self::notice), but does not look out: it reports what earlier calls have found.
    pub(crate) fn unasked_notice(&self) -> Wanted {
        Wanted { state: self.grant.holding().watch(), released: self.released.subscribe() }
    }

    /// Asks the quorum whether the lock is still held, and returns how long it is certain to be held from now on.
    pub(crate) async fn confirm(&self) -> Result<Duration, Error> {
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
            let is_answered = grant.session().clone().prove(grant.holding()).await;
            grant.check_not_lost().ok()?;
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

    /// Does these writes, all or none, if the lock is still held when the quorum commits them.
    pub(crate) async fn commit(&self, writes: Vec<Write>) -> Result<Committed, Error> {
        Ok(Committed { versions: self.grant.commit(writes, self.loss()).await? })
    }

    /// Reads a node's data and its version; `None` if there is no such node.
    pub(crate) async fn read(&self, path: &str) -> Result<Option<NodeData>, Error> {
        check_path(path)?;
        let (grant, path) = (&self.grant, &Arc::<str>::from(path));
        // While the hold's own session lives, its writes may still be under way, and only in that session do they come before
        // the read.
        let session = || async {
            if !grant.session().is_over() {
                return Ok(grant.session().clone());
            }
            grant.is_gone().await?;
            grant.slot.session().await
        };
        let problem = || format!("the node {path} could not be read");
        let read = |session: Arc<Session>| async move { session.read(path.clone()).await };
        ask_within(self.patience(), &grant.slot, session, problem, read).await
    }

    /// Returns the identity of the ensemble, which a fence keeps together with the token. See
    /// [`Client::ensemble_id`](crate::Client::ensemble_id).
    pub(crate) async fn ensemble_id(&self) -> Result<Arc<str>, Error> {
        let session = || async {
            let session = self.grant.session();
            if session.ensemble_id.get().is_none() {
                self.grant.check_not_lost()?;
            }
            Ok(session.clone())
        };
        let ask = |session| async move { ensemble_id::of(&session).await };
        ask_within(self.patience(), &self.grant.slot, session, ensemble_id::problem, ask).await
    }

    /// Returns how long to wait for an answer that does not concern the hold.
    fn patience(&self) -> Duration {
        self.grant.session().timeout().max(READ_AT_LEAST)
    }

    /// Releases the lock, and waits until the ensemble has confirmed it.
    pub(crate) async fn release(&self) -> Result<(), Error> {
        match self.begin_release(Owner::current())? {
            Some(rest) => rest.await,
            None => Ok(()),
        }
    }

    /// Releases the lock, and returns a future that waits for the release; `None` if there is nothing to wait for,
    /// because the owner has other holds.
    pub(crate) fn begin_release(
        &self,
        owner: Owner,
    ) -> Result<Option<impl Future<Output = Result<(), Error>> + Send + use<>>, Error> {
        let grant = self.grant.clone();
        if grant.is_bound() && owner != grant.owner() {
            let message = format!(
                "the hold of {} is of a reentrant lock, and belongs to the thread or task that acquired it: release it there",
                grant.path()
            );
            return Err(Error::new(ErrorKind::NotOwner, message));
        }
        grant.note_release_by(owner);
        let was_valid = !grant.session().valid_for(grant.holding()).is_zero();
        let left = self.leave().ok_or_else(|| grant.not_held())?;
        match left {
            ReleaseOutcome::Released => {}
            // The next holder looks after the node.
            ReleaseOutcome::PassedOn if was_valid => return Ok(None),
            // Others may have held the lock, so the servers must confirm that they did not.
            ReleaseOutcome::PassedOn => {}
            ReleaseOutcome::Others | ReleaseOutcome::Lost => return grant.check_not_lost().map(|()| None),
        }
        Ok(Some(async move {
            if left == ReleaseOutcome::PassedOn {
                let proves = grant.session().clone().prove(grant.holding());
                let is_known = clock::timeout(grant.session().timeout(), proves).await == Ok(true);
                grant.check_not_lost()?;
                return if is_known { Ok(()) } else { Err(grant.unconfirmed_yet()) };
            }
            let mut state = grant.holding().watch();
            let ended = async {
                let goes_on =
                    |status: &Status| matches!(status, Status::Held | Status::Releasing | Status::Stuck);
                let ended = state.wait_for(|state| !goes_on(&state.status));
                // Copied, because nobody can write it, or read it again, while it is borrowed.
                let ended = ended.await.map(|state| state.status);
                let gone = match ended {
                    // A hold that was lost before the release is reported as lost at once.
                    Ok(Status::Lost(LossReason::SessionExpired))
                        if was_valid && grant.session().nodes_are_gone() =>
                    {
                        grant.is_gone().await.is_ok()
                    }
                    Ok(Status::Lost(_)) => grant.session().gone().await,
                    _ => false,
                };
                (ended, gone)
            };
            match clock::timeout(grant.session().timeout(), ended).await {
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
                Ok(_) => grant.check_not_lost(),
                Err(_) => Err(grant.unconfirmed_yet()),
            }
        }))
    }

    /// Releases the lock in the background, without checking the owner.
    pub(crate) fn let_go(&self) {
        self.leave();
    }

    /// Releases this hold, and returns what is left of its grant; `None` if it had been released before.
    fn leave(&self) -> Option<ReleaseOutcome> {
        let first = self.released.send_if_modified(|released| {
            let first = *released == Released::No;
            if first {
                *released = Released::Yes;
            }
            first
        });
        let left = first.then(|| self.grant.let_go())?;
        if matches!(left, ReleaseOutcome::Others | ReleaseOutcome::PassedOn) {
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

#[cfg(test)]
mod tests;
