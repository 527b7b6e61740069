//! One grant of a lock: what its holds share, and what is done with its nodes and said of them.

use crate::base::clock;
use crate::base::error::{Error, ErrorKind, LossReason};
use crate::base::failure::Failure;
use crate::base::lock_figures::{LockFigures, Losable};
use crate::base::owner::Owner;
use crate::base::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::hold::loss::Loss;
use crate::hold::token::Token;
use crate::machine::Moment;
use crate::machine::callers::{ReleaseOutcome, TurnId};
use crate::machine::status::Status;
use crate::session::ask::{MOMENT, ask_for_ever, catch_up};
use crate::session::session::Holding;
use crate::session::session::Session;
use crate::session::slot::Slot;
use crate::zookeeper::ensemble::{NodeVersion, Versions, Write};
use std::sync::{Arc, OnceLock, Weak};

/// One grant, shared by all holds of a reentrant owner.
pub(crate) struct Grant {
    holding: Arc<Holding>,
    token: Token,
    /// Finds the client's next session once the one of the grant is over.
    pub(super) slot: Arc<Slot>,
    owner: Owner,
    since: Moment,
    /// Whether only the owner may release it.
    bound: bool,
    /// Whether any of its holds has not been released.
    has_holds: AtomicBool,
    /// What granted it, and under which name. Weak, because it does not outlive its client.
    granter: Weak<dyn Granter>,
    turn: TurnId,
    /// Guarded writes that may still be under way.
    unsettled: AtomicUsize,
    /// Where it is counted too, if its lock has a name for figures.
    figures: OnceLock<Arc<LockFigures>>,
}

impl Losable for Grant {
    fn loss(&self) -> Option<LossReason> {
        if let Status::Lost(reason) = self.holding.status() { Some(reason) } else { None }
    }
}

/// What grants a lock, and decides what becomes of its nodes.
pub(crate) trait Granter: Send + Sync {
    /// Takes back one hold of a grant.
    fn take_back(&self, turn: TurnId, grant: &Grant) -> ReleaseOutcome;
}

impl Grant {
    pub(crate) fn new(
        holding: Arc<Holding>,
        token: Token,
        slot: Arc<Slot>,
        owner: Owner,
        bound: bool,
        granter: Weak<dyn Granter>,
        turn: TurnId,
    ) -> Arc<Self> {
        let (has_holds, unsettled) = (AtomicBool::new(true), AtomicUsize::new(0));
        let since = clock::now();
        let figures = OnceLock::new();
        Arc::new(Self {
            holding,
            token,
            slot,
            owner,
            since,
            bound,
            has_holds,
            granter,
            turn,
            unsettled,
            figures,
        })
    }

    pub(crate) fn turn(&self) -> TurnId {
        self.turn
    }

    /// Whether there is a hold of it.
    pub(crate) fn has_holds(&self) -> bool {
        self.has_holds.load(Ordering::Acquire)
    }

    /// Whether a write that it guards may still be done after its end.
    pub(crate) fn is_unsettled(&self) -> bool {
        self.unsettled.load(Ordering::Acquire) > 0
    }

    pub(crate) fn token(&self) -> Token {
        self.token
    }

    /// Returns the lock's name in messages.
    pub(super) fn path(&self) -> &str {
        &self.holding.path
    }

    pub(crate) fn session(&self) -> &Arc<Session> {
        &self.holding.session
    }

    pub(crate) fn holding(&self) -> &Arc<Holding> {
        &self.holding
    }

    /// Takes away one hold.
    pub(super) fn let_go(&self) -> ReleaseOutcome {
        if let Some(granter) = self.granter.upgrade() {
            return granter.take_back(self.turn, self);
        }
        // Its client is gone, and the session with it.
        self.set_unused();
        self.note_end();
        if self.session().release(&self.holding) { ReleaseOutcome::Released } else { ReleaseOutcome::Lost }
    }

    /// Notes that the last of its holds is released.
    pub(crate) fn set_unused(&self) {
        self.has_holds.store(false, Ordering::Release);
    }

    pub(super) fn is_at_risk(&self) -> bool {
        self.session().is_late(&self.holding)
            || !self.session().is_connected()
            || self.session().has_heartbeat() && self.session().valid_for(&self.holding).is_zero()
    }

    // Its owner, and who may release it.

    pub(crate) fn owner(&self) -> Owner {
        self.owner
    }

    /// Whether only the owner may release it.
    pub(crate) fn is_bound(&self) -> bool {
        self.bound
    }

    /// Notes a release by somebody other than the owner: it shows that the program hands holds
    /// over.
    pub(super) fn note_release_by(&self, owner: Owner) {
        if owner != self.owner && self.owner.returns() {
            self.session().counters().attempts.set_handed_over();
        }
    }

    /// Counts it among these figures too, from now on. The inner hold of a reentrant owner does not count.
    pub(super) fn count_among(self: &Arc<Self>, figures: &Arc<LockFigures>) {
        if self.figures.set(figures.clone()).is_ok() {
            let counted: Weak<Self> = Arc::downgrade(self);
            figures.count_grant(self.since, counted);
        }
    }

    /// Counts the grant's duration when its last hold is gone. A lost grant ended when the loss was
    /// found.
    pub(crate) fn note_end(&self) {
        let lost_at = self.holding.lost_at();
        let held = lost_at.unwrap_or_else(clock::now).since(self.since);
        self.session().counters().tally.count_hold(held);
        if let Some(figures) = self.figures.get() {
            figures.count_hold(self.since, self, held);
        }
        if lost_at.is_none() {
            let (node, token) = (self.holding.node(), self.token.value());
            tracing::debug!(path = self.path(), node, token, ?held, "lock released");
        }
    }

    // Its nodes, and the writes that they guard.

    /// Does writes that it guards, through a hold that ends with this loss.
    pub(super) async fn commit(&self, writes: Vec<Write>, loss: Loss) -> Result<Versions, Error> {
        if self.holding.all_names_are_reused() {
            return Err(Error::unguarded(self.path()));
        }
        // Counted before the hold is checked, so that a hold released meanwhile does not pass its node on.
        self.unsettled.fetch_add(1, Ordering::AcqRel);
        let committed = self.commit_unsettled(writes, loss).await;
        // A write that may still be under way keeps the node from the next holder, whose write it would seem to be.
        if committed.as_ref().err().is_none_or(|error| error.kind() != ErrorKind::Uncertain) {
            self.unsettled.fetch_sub(1, Ordering::AcqRel);
        }
        committed
    }

    async fn commit_unsettled(&self, writes: Vec<Write>, loss: Loss) -> Result<Versions, Error> {
        tokio::select! {
            biased;
            // Nothing has been sent yet, so it is certain that nothing was written.
            reason = loss.clone().come() => return Err(reason.map_or_else(
                || self.not_held(),
                |reason| Error::lost(reason, self.path()),
            )),
            () = self.session().connected() => self.check_not_lost()?,
        }
        match self.session().commit(self.holding.nodes.clone(), writes).await {
            Ok(versions) => Ok(versions),
            Err(Failure::GuardGone) => {
                self.session().lose(&self.holding, LossReason::NodeDeleted);
                // It may also have been a release that deleted the node.
                Err(if loss.is_released() { self.not_held() } else { self.unheard() })
            }
            Err(Failure::Conflict { at, problem }) => Err(Error::conflict_at(at, &problem)),
            Err(Failure::Refused(message)) => Err(Error::new(ErrorKind::Refused, message)),
            // Nobody has said that nothing was written.
            Err(_) => {
                let message =
                    "the reply to the guarded writes was lost: read whether they were done, then decide";
                Err(Error::new(ErrorKind::Uncertain, message))
            }
        }
    }

    /// Waits until the quorum no longer has the nodes of the hold. One server's word that the session is over is not enough:
    /// a leader that has lost its followers ends sessions too, and these live on if another server becomes the leader before
    /// that is committed.
    pub(super) async fn is_gone(&self) -> Result<(), Error> {
        // Another node may have been created at the same path.
        let is_ours =
            |seen: NodeVersion| !self.holding.name_is_reused() || Token::of(seen.czxid) == self.token;
        for node in &self.holding.nodes {
            let look = |session| seen(session, node);
            while ask_for_ever(|| self.slot.session(), || node.to_string(), look).await?.is_some_and(is_ours)
            {
                clock::sleep(10 * MOMENT).await;
            }
        }
        Ok(())
    }

    // The errors that the methods of its holds return.

    /// Returns an error if the hold is lost.
    pub(crate) fn check_not_lost(&self) -> Result<(), Error> {
        let status = match self.holding.status() {
            // A session that has ended marks its holds as lost one by one; this one may not have
            // been reached yet.
            Status::Held => self.session().loss().map_or(Status::Held, Status::Lost),
            status => status,
        };
        match status {
            Status::Lost(LossReason::SessionClosed) => {
                let error = Error::lost(LossReason::SessionClosed, self.path());
                Err(self.session().undeletable().map_or(error.clone(), |why| error.because(why)))
            }
            Status::Lost(reason) => Err(Error::lost(reason, self.path())),
            Status::Freed => {
                let (node, why) = (self.holding.node(), self.session().undeletable().unwrap_or_default());
                let free = if self.session().nodes_are_gone() {
                    "the lock is free".to_owned()
                } else {
                    format!("no server has confirmed that, so the lock is free {}", self.later())
                };
                let message = format!(
                    "the ensemble refused to delete {node}: {why}; {free}, and all other holds of that \
                     session are lost; give the client that right"
                );
                Err(Error::new(ErrorKind::Refused, message))
            }
            Status::Held | Status::Releasing | Status::Stuck | Status::Released => Ok(()),
        }
    }

    pub(super) fn not_held(&self) -> Error {
        Error::new(ErrorKind::NotHeld, format!("this hold of {} was already released", self.path()))
    }

    /// Returns when the lock becomes free after its session was given up.
    fn later(&self) -> String {
        format!(
            "when the ensemble ends the session, {:?} after it last heard from the client",
            self.session().timeout()
        )
    }

    /// Returns the error for a release that can get no reply any more.
    pub(super) fn unconfirmed(&self) -> Error {
        let why = self.session().trouble().unwrap_or_else(|| "no server answers".to_owned());
        let message = format!(
            "the release of {} cannot be confirmed, because its session can no longer connect: {why}; the \
             lock is free {}",
            self.path(),
            self.later(),
        );
        Error::new(ErrorKind::Unreachable, message)
    }

    /// Returns the error for a release that takes longer than a session timeout.
    pub(super) fn unconfirmed_yet(&self) -> Error {
        let path = self.path();
        let message =
            format!("the ensemble has not confirmed the release of {path} yet: it goes on in the background");
        Error::new(ErrorKind::Timeout, message)
    }

    /// Returns why the hold has no lease: either it is lost, or the ensemble did not answer.
    pub(crate) fn unheard(&self) -> Error {
        if let Err(lost) = self.check_not_lost() {
            return lost;
        }
        let message = format!(
            "the ensemble did not confirm the hold of {}: rely on the time that it is certain to last, and try again",
            self.path()
        );
        Error::new(ErrorKind::Unreachable, message)
    }
}

async fn seen(session: Arc<Session>, node: &Arc<str>) -> Result<Option<NodeVersion>, Failure> {
    let directory = node.rsplit_once('/').map_or("", |(directory, _)| directory);
    catch_up(&session, &directory.into()).await?;
    session.look(node.clone()).await
}
