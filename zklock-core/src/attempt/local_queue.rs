//! The local queue: the callers of one client that want the same lock.
//!
//! However many threads wait for a mutex, the ensemble sees at most two nodes of theirs: the holder's, and one queued ahead
//! for the next caller. That one is created while the holder works, so that a hand-over within the process takes one round
//! trip. If holds are too short for that, the next node is created right behind the deletion of the holder's, which also
//! takes one round trip, and no watch. If thousands of threads queued in the ensemble, every listing would have thousands
//! of names. Callers that can hold together, such as readers, have a node each.
//!
//! So processes take turns, however many threads they have. Queueing more nodes ahead would be closer to the order of
//! arrival, but not free. Measured with one more: a hand-over within a process took a quarter more requests and half more
//! bytes, because a contender behind several others lists again; among several processes it took no more requests, but 60 %
//! more bytes. (`tests/FIGURES.md`. The times did not differ by more than they vary.)

mod attempt;
mod kept;
mod lookout;
mod own;
mod span;
mod waiter;

use crate::attempt::acquisition::{Acquisition, Granted};
use crate::attempt::held_at::{HeldAt, Writer};
use crate::attempt::remembered::Remembered;
use crate::attempt::shared::Shared;
use crate::base::clock;
use crate::base::error::Error;
use crate::base::owner::Owner;
use crate::base::progress::Progress;
use crate::base::sync::lock_ignoring_poison;
use crate::base::wait::Wait;
use crate::hold::grant::{Footing, Grant};
use crate::hold::hold::Hold;
use crate::hold::token::Token;
use crate::machine::claim::Claim;
use crate::machine::name::Role;
use crate::machine::protocol::Patience;
use crate::machine::status::Status;
use crate::machine::turns::Passing;
use attempt::Beginning;
use kept::Kept;
use lookout::Lookout;
pub(crate) use own::Own;
pub(crate) use span::of_call as span_of_call;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use waiter::Waiter;
pub(crate) use waiter::{Answer, Ticket};

/// How long a brief hold lasts at most. A contender of another process that arrives within that time may get ahead of the
/// next caller of this process.
const BRIEF: Duration = Duration::from_millis(1);

/// Everything that one client wants of one lock.
pub(crate) struct LocalQueue {
    /// The lock's name in messages.
    pub(crate) path: Arc<str>,
    pub(crate) claims: Vec<Claim>,
    /// One for each claim.
    held_at: Vec<Arc<HeldAt>>,
    width: Width,
    /// How a node is passed on, instead of creating one for each holder.
    passing: Passing,
    pub(crate) shared: Arc<Shared>,
    state: Mutex<State>,
    lookout: Lookout,
}

/// How many callers of a local queue may have nodes in the ensemble at the same time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Width {
    /// One, because a second could not tell its node from the first one's.
    One,
    /// The holder and the next.
    Two,
    /// The next, and all holders.
    Next,
    /// All.
    All,
}

impl Width {
    fn of(claims: &[Claim], passing: Passing) -> Self {
        let excludes = |claim: &&Claim| claim.permits.is_none() && claim.scheme.role() != Role::Read;
        if claims.iter().any(|claim| !claim.has_queue()) {
            Self::One
        } else if claims.iter().find(excludes).is_some() {
            Self::Two
        } else if claims.iter().any(|claim| claim.permits.is_some()) {
            Self::Next
        } else if passing.is_on() {
            // They share one node until others wait.
            Self::Two
        } else {
            Self::All
        }
    }

    /// Returns the largest number of attempts.
    const fn attempts(self) -> usize {
        match self {
            Self::One => 1,
            Self::Two => 2,
            Self::Next | Self::All => usize::MAX,
        }
    }
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Waiter>,
    /// Attempts that have a node or are about to have one, for callers that wait for their turn to begin.
    attempts: usize,
    /// The attempt that has not entered yet. The next one starts after it, so that they enter in order.
    entering: Option<Arc<Progress>>,
    grants: Vec<Arc<Grant>>,
    /// Whether the latest hold was a brief one.
    was_brief: bool,
    /// Whether the next attempt waits for the end of the hold, which will probably be brief too.
    holds_back: bool,
    /// The latest node that may be passed on.
    kept: Option<Arc<Kept>>,
    /// Whether a try has found the lock busy.
    was_busy: bool,
    /// The memory that the last busy try left.
    remembered: Option<Remembered>,
}

impl State {
    /// Returns the next caller, if it is ready to wait. It takes over the place of a caller that went away.
    fn heir(&mut self) -> Option<Waiter> {
        while let Some(next) = self.waiting.pop_front() {
            if next.patience == Patience::TriesOnce && next.progress.is_wanted() {
                self.waiting.push_front(next);
                return None;
            }
            if next.progress.begin() {
                return Some(next);
            }
        }
        None
    }

    /// Forgets the callers at the front that have gone away. Returns whether any caller is left.
    fn tidy_front(&mut self) -> bool {
        while self.waiting.front().is_some_and(|waiter| !waiter.progress.is_wanted()) {
            self.waiting.pop_front();
        }
        !self.waiting.is_empty()
    }

    fn is_latest(&self, kept: &Kept) -> bool {
        self.kept.as_ref().is_some_and(|latest| std::ptr::eq(&**latest, kept))
    }

    /// Forgets a grant that is over because its node is passed on.
    fn forget(&mut self, grant: &Grant) {
        self.grants.retain(|other| !std::ptr::eq(&**other, grant));
    }

    /// Lets waiters of the grant's owner share the grant. If they queued before the owner had it, as two calls of one task
    /// may, they would wait for themselves.
    fn take_part(&mut self, grant: &Arc<Grant>) {
        for waiter in std::mem::take(&mut self.waiting) {
            let is_same = waiter.reentrant && waiter.owner == grant.owner() && waiter.progress.is_wanted();
            match is_same.then(|| Hold::again(grant)).flatten() {
                // If the waiter has gone away meanwhile, this drops the hold.
                Some(hold) => drop(waiter.answer.send(Ok(Some(hold)))),
                None => self.waiting.push_back(waiter),
            }
        }
    }
}

impl LocalQueue {
    /// `held_at` says what is held at the path of each claim, in their order.
    pub(crate) fn new(
        path: Arc<str>,
        claims: Vec<Claim>,
        passing: Passing,
        held_at: Vec<Arc<HeldAt>>,
        shared: Arc<Shared>,
    ) -> Self {
        let width = Width::of(&claims, passing);
        Self {
            path,
            claims,
            held_at,
            width,
            passing,
            shared,
            state: Mutex::default(),
            lookout: Lookout::default(),
        }
    }

    /// Returns another hold of a grant that the owner has and nobody else may release; `None` if there is none.
    pub(crate) fn again(&self, owner: Owner) -> Result<Option<Hold>, Error> {
        if self.shared.pool.is_closed() {
            return Err(Error::closed());
        }
        let state = lock_ignoring_poison(&self.state);
        let mut own = state.grants.iter().filter(|grant| grant.is_bound() && grant.owner() == owner);
        // A grant without holds is only waiting for its node to be deleted, or was lost and is over.
        let Some((grant, hold)) = own.find_map(|grant| Some((grant.clone(), Hold::again(grant)?))) else {
            return Ok(None);
        };
        drop(state);
        // An inner section is not entered if the outer one is lost.
        grant.told()?;
        if hold.valid_for().is_zero() { Err(grant.unheard()) } else { Ok(Some(hold)) }
    }

    /// Queues a caller. When `wait` is nearly over, the queue finds out what the caller waits for. A caller that is ready
    /// to wait must not wait for something that only its owner can release.
    pub(crate) fn join(
        self: &Arc<Self>,
        owner: Owner,
        reentrant: bool,
        patience: Patience,
        wait: Wait,
    ) -> Result<Ticket, Error> {
        if self.shared.pool.is_closed() {
            return Err(Error::closed());
        }
        let within = self.writer(owner);
        let progress = Progress::new(&self.shared.counters);
        if patience == Patience::Waits && within.is_none() {
            match self.own(owner)? {
                Own::Nothing => {}
                Own::Beside => progress.set_beside_own(&self.path),
                Own::InTheWay => self.shared.counters.attempts.warn_of_own(&self.path),
            }
        }
        let mut state = lock_ignoring_poison(&self.state);
        let (waiter, mut ticket) = Waiter::new(owner, within, reentrant, patience, wait, progress);
        // A try that could succeed beside other holders must not wait until one of them has got in.
        let is_free = self.width == Width::Next || self.is_shared();
        let is_next = is_free && patience == Patience::TriesOnce;
        // The way in through its own write side is open to this caller alone.
        let is_within = waiter.within.is_some();
        if patience == Patience::TriesOnce && !is_within && self.is_known_busy(&mut state) {
            drop(state);
            let _ = waiter.answer.send(Ok(None));
            return Ok(ticket);
        }
        if self.width == Width::All || is_next || is_within {
            drop(state);
            if waiter.progress.begin() {
                Beginning::new(self, waiter, false).start();
            }
            return Ok(ticket);
        }
        let held = state.grants.iter().any(|grant| grant.is_held());
        let entering = state.entering.as_ref().is_some_and(|progress| progress.is_wanted());
        let busy = held || entering || state.waiting.iter().any(|waiter| waiter.progress.is_wanted());
        if busy && patience == Patience::TriesOnce {
            let _ = waiter.answer.send(Ok(None));
            return Ok(ticket);
        }
        // Waiters that gave up while the lock was held for a long time must not pile up.
        if state.waiting.len() == state.waiting.capacity() {
            state.waiting.retain(|waiter| waiter.progress.is_wanted());
        }
        state.waiting.push_back(waiter);
        // Another permit may be free, and readers do not wait for readers.
        if self.width != Width::Next && !self.is_shared() {
            state.grants.iter().for_each(|grant| grant.holding().set_wanted(true));
        }
        // An idle node may need a check first.
        self.pass_on_from(state);
        if ticket.is_behind_others() {
            tracing::debug!(path = &*self.path, "waits behind others of this client");
            if wait.deadline().is_some() {
                let lookout = self.clone().look_out(wait, ticket.progress().clone());
                ticket.set_lookout(self.shared.pool.runtime().spawn(lookout).abort_handle());
            }
        }
        Ok(ticket)
    }

    /// Whether a try would find the lock busy, as a server has already said.
    fn is_known_busy(&self, state: &mut State) -> bool {
        let Some(remembered) = &mut state.remembered else { return false };
        let session = self.shared.pool.slot().current();
        let is_busy = session.is_some_and(|session| remembered.is_busy(&session));
        if !is_busy {
            state.remembered = None;
        }
        is_busy
    }

    /// Whether several callers can hold it together.
    fn is_shared(&self) -> bool {
        !self.claims.iter().any(|claim| claim.scheme.role().excludes(claim.scheme.role()))
    }

    /// Returns the owner's hold of the write side, which it alone can release, if this is the read side of the same lock.
    fn writer(&self, owner: Owner) -> Option<Writer> {
        match (&self.claims[..], &self.held_at[..]) {
            // The next writer of this process must not take over that node while the reader is beside it.
            ([claim], [held_at]) => {
                held_at.writer(owner, claim.scheme).filter(|writer| writer.grant.be_the_last())
            }
            _ => None,
        }
    }

    /// Whether the callers here wait for an attempt that the servers have not answered for this long.
    pub(crate) fn is_unanswered_for(&self, patience: Duration) -> bool {
        let state = lock_ignoring_poison(&self.state);
        let is_held = state.grants.iter().any(|grant| grant.is_held());
        !is_held && state.entering.as_ref().is_some_and(|entering| entering.is_unanswered_for(patience))
    }

    fn start_next(self: &Arc<Self>) {
        if let Some(waiter) = self.take_next() {
            Beginning::new(self, waiter, true).start();
        }
    }

    /// Holds the next attempt back for a moment. A node that is created while the holder works delays the deletion of the
    /// holder's node, because servers serve a session's requests in order, and it needs a watch. One that is created right
    /// behind the deletion is the first in the queue at once.
    async fn hold_back(self: Arc<Self>) -> Infallible {
        clock::sleep(BRIEF).await;
        lock_ignoring_poison(&self.state).holds_back = false;
        self.start_next();
        pending().await
    }

    /// Returns the next waiter, if it is to begin now.
    fn take_next(&self) -> Option<Waiter> {
        let mut state = lock_ignoring_poison(&self.state);
        if self.shared.pool.is_closed() {
            // Their receivers notice.
            state.waiting.clear();
        }
        if state.entering.is_some() || state.attempts >= self.width.attempts() || state.holds_back {
            return None;
        }
        if state.kept.as_ref().is_some_and(|kept| !kept.is_spent()) {
            // The waiters take that node.
            return None;
        }
        let mut waiting = std::iter::from_fn(|| state.waiting.pop_front());
        let next = waiting.find(|waiter| waiter.progress.begin())?;
        state.attempts += 1;
        state.entering = Some(next.progress.clone());
        Some(next)
    }

    fn acquisition(&self, waiter: &Waiter) -> Acquisition {
        let progress = waiter.progress.clone();
        if let ([claim], Some(writer)) = (&self.claims[..], &waiter.within) {
            let name = writer.node.rsplit('/').next().map(str::to_owned);
            let claim = Claim { within: name, ..claim.clone() };
            return Acquisition::within(writer.grant.session().clone(), claim, self.path.clone(), progress);
        }
        let slot = self.shared.pool.slot().clone();
        Acquisition::new(self.claims.clone(), waiter.patience, self.path.clone(), progress, slot)
    }

    /// Returns the footing of a grant of this queue.
    fn footing(&self, granted: Granted, token: Token, progress: Arc<Progress>) -> Footing {
        let Granted { session, holding, .. } = granted;
        let slot = self.shared.pool.slot().clone();
        Footing { session, holding, path: self.path.clone(), token, progress, slot }
    }

    /// Waits until the releases that have begun are done, or refused: a node that cannot be deleted really is in the way.
    pub(crate) async fn released(&self) {
        let held_at = self.claims.iter().zip(&self.held_at);
        let releases = held_at.flat_map(|(claim, held_at)| held_at.make_way(claim.scheme.role()));
        for mut release in releases.collect::<Vec<_>>() {
            // It cannot fail while somebody sees the release through.
            let _ = release.wait_for(|told| told.status != Status::Releasing).await;
        }
    }

    /// Registers the grant where other callers of this process look for it.
    fn enter(&self, state: &mut State, grant: &Arc<Grant>) {
        state.grants.push(grant.clone());
        for (claim, held_at) in self.claims.iter().zip(&self.held_at) {
            held_at.add(claim, grant);
        }
    }
}

#[cfg(test)]
mod tests;
