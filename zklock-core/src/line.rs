//! The queue in front of the queue: those of one process who want one lock.
//!
//! However many threads wait for a mutex, the ensemble sees at most two nodes of theirs: the holder's,
//! and one queued ahead for the next, created while the holder works, so that a hand-over within the
//! process takes one round trip. Thousands of threads in one queue of the ensemble would make every
//! listing thousands of names long. Who can hold together, such as readers, has each a node.

use crate::driver::{Driver, Turned};
use crate::error::{Error, ErrorKind};
use crate::hold::{Grant, Hold, Token};
use crate::locks::locked;
use crate::machine::claim::Claim;
use crate::machine::exchange::Patience;
use crate::machine::name::{Role, Scheme};
use crate::owner::Owner;
use crate::place::{Place, Writer};
use crate::pool::Pool;
use crate::stats::{Counters, Progress};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use tokio::sync::oneshot;

/// What all handles of a client share. The last of them closes its sessions.
pub(crate) struct Shared {
    pub(crate) pool: Pool,
    pub(crate) counters: Arc<Counters>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.pool.close();
    }
}

/// All that one client wants of one lock.
pub(crate) struct Line {
    /// The lock, as messages name it.
    pub(crate) path: Arc<str>,
    pub(crate) claims: Vec<Claim>,
    /// One for each claim.
    places: Vec<Arc<Place>>,
    width: Width,
    pub(crate) shared: Arc<Shared>,
    state: Mutex<State>,
}

/// How many of a line may be at work in the ensemble.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Width {
    /// One, where another could not tell its node from that one's.
    One,
    /// The holder and the next.
    Two,
    /// The next, and all who hold.
    Next,
    /// All.
    All,
}

impl Width {
    fn of(claims: &[Claim]) -> Self {
        let excludes = |claim: &&Claim| claim.permits.is_none() && claim.scheme.role() != Role::Read;
        if claims.iter().any(|claim| claim.scheme == Scheme::Single) {
            Self::One
        } else if claims.iter().find(excludes).is_some() {
            Self::Two
        } else if claims.iter().any(|claim| claim.permits.is_some()) {
            Self::Next
        } else {
            Self::All
        }
    }

    /// How many attempts at most.
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
    /// Attempts with a node, or about to have one, of those who wait for their turn to begin.
    attempts: usize,
    /// The one of them that has not entered yet. The next starts after it, so that they enter in order.
    entering: Option<Arc<Progress>>,
    grants: Vec<Arc<Grant>>,
}

impl State {
    /// Those of the same owner who queued before it had the grant (as two calls of one task may) would wait for
    /// themselves.
    fn take_part(&mut self, grant: &Arc<Grant>) {
        for waiter in std::mem::take(&mut self.waiting) {
            let is_same = waiter.reentrant && waiter.owner == grant.owner() && waiter.progress.is_wanted();
            match is_same.then(|| grant.again()).flatten() {
                // If it has gone away meanwhile, this hold is dropped here.
                Some(hold) => drop(waiter.answer.send(Ok(Some(hold)))),
                None => self.waiting.push_back(waiter),
            }
        }
    }
}

/// The answer to one who waits: a hold, or nothing if the lock is busy and it was not to wait.
pub(crate) type Answer = Result<Option<Hold>, Error>;

struct Waiter {
    owner: Owner,
    /// The write side that the owner holds, if it wants the read side.
    within: Option<Writer>,
    reentrant: bool,
    patience: Patience,
    answer: oneshot::Sender<Answer>,
    progress: Arc<Progress>,
}

/// Waits for the answer. Dropping it leaves the queue.
pub(crate) struct Ticket {
    receiver: oneshot::Receiver<Answer>,
    answered: bool,
    progress: Arc<Progress>,
}

impl Ticket {
    pub(crate) async fn answer(&mut self) -> Answer {
        let answer = (&mut self.receiver).await;
        self.answered = true;
        // Without an answer the attempt has been dropped, because the client is closed.
        answer.unwrap_or_else(|_| Err(Error::closed()))
    }

    /// Whether it waits behind others, here or in the ensemble.
    pub(crate) fn is_behind_others(&self) -> bool {
        self.progress.is_behind_others()
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.answered {
            self.progress.owe();
        }
    }
}

impl Line {
    /// The places are those of the claims.
    pub(crate) fn new(
        path: Arc<str>,
        claims: Vec<Claim>,
        places: Vec<Arc<Place>>,
        shared: Arc<Shared>,
    ) -> Self {
        let width = Width::of(&claims);
        Self { path, claims, places, width, shared, state: Mutex::default() }
    }

    /// Takes part in a grant that the owner has; `None` if it has none.
    pub(crate) fn again(&self, owner: Owner) -> Result<Option<Hold>, Error> {
        if self.shared.pool.is_closed() {
            return Err(Error::closed());
        }
        let state = locked(&self.state);
        let mut own = state.grants.iter().filter(|grant| grant.owner() == owner);
        // A grant without holds is only waiting for its node to be gone; or it was lost, and is over.
        let Some((grant, hold)) = own.find_map(|grant| Some((grant.clone(), grant.again()?))) else {
            return Ok(None);
        };
        drop(state);
        // An inner section is not entered where the outer one is lost.
        grant.told()?;
        if hold.valid_for().is_zero() { Err(grant.unheard()) } else { Ok(Some(hold)) }
    }

    /// Queues. One that is to wait must not have a grant already.
    pub(crate) fn join(
        self: &Arc<Self>,
        owner: Owner,
        reentrant: bool,
        patience: Patience,
    ) -> Result<Ticket, Error> {
        if self.shared.pool.is_closed() {
            return Err(Error::closed());
        }
        let (answer, receiver) = oneshot::channel();
        let progress = Progress::new(&self.shared.counters);
        let ticket = Ticket { receiver, answered: false, progress: progress.clone() };
        let within = self.writer(owner);
        let mut state = locked(&self.state);
        if patience == Patience::Waits {
            self.refuse_to_wait_for_oneself(&state, owner, reentrant, within.is_some())?;
        }
        let waiter = Waiter { owner, within, reentrant, patience, answer, progress };
        let is_next = self.width == Width::Next && patience == Patience::TriesOnce;
        if self.width == Width::All || is_next {
            drop(state);
            if waiter.progress.begin() {
                self.start(waiter, false);
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
        // Those who gave up while the lock was held for long must not pile up.
        if state.waiting.len() == state.waiting.capacity() {
            state.waiting.retain(|waiter| waiter.progress.is_wanted());
        }
        state.waiting.push_back(waiter);
        drop(state);
        self.start_next();
        Ok(ticket)
    }

    /// The write side that the owner holds, if this is the read side of the same lock.
    fn writer(&self, owner: Owner) -> Option<Writer> {
        match (&self.claims[..], &self.places[..]) {
            ([claim], [place]) => place.writer(owner, claim.scheme),
            _ => None,
        }
    }

    fn refuse_to_wait_for_oneself(
        &self,
        state: &State,
        owner: Owner,
        reentrant: bool,
        is_within: bool,
    ) -> Result<(), Error> {
        let is_own = |grant: &Arc<Grant>| grant.owner() == owner && grant.is_held();
        // Permits belong to nobody: one thread may take several, and another return them.
        if self.width != Width::Next && state.grants.iter().any(is_own) {
            return if reentrant { Ok(()) } else { Err(self.deadlock()) };
        }
        if is_within {
            return Ok(());
        }
        let queues = self.claims.iter().zip(&self.places).filter(|(claim, _)| claim.permits.is_none());
        for (claim, place) in queues {
            match (claim.scheme.role(), place.rival(owner, claim.scheme.role())) {
                (_, None) => {}
                (Role::Write, Some(Role::Read)) => return Err(self.upgrade(&claim.directory)),
                (_, Some(_)) => return Err(self.deadlock()),
            }
        }
        Ok(())
    }

    fn upgrade(&self, path: &str) -> Error {
        let message = format!(
            "this thread or task holds the read side of {path}, so it would wait for itself: release that first, then \
             acquire the write side and read again what may have changed"
        );
        Error::new(ErrorKind::Deadlock, message)
    }

    fn deadlock(&self) -> Error {
        let message = format!(
            "this thread or task holds {} itself, so it would wait for ever: release it first, or make the lock reentrant",
            self.path
        );
        Error::new(ErrorKind::Deadlock, message)
    }

    fn start_next(self: &Arc<Self>) {
        let mut state = locked(&self.state);
        if self.shared.pool.is_closed() {
            // Their receivers hear of it.
            state.waiting.clear();
        }
        if state.entering.is_some() || state.attempts >= self.width.attempts() {
            return;
        }
        let next = std::iter::from_fn(|| state.waiting.pop_front()).find(|waiter| waiter.progress.begin());
        let Some(waiter) = next else { return };
        state.attempts += 1;
        state.entering = Some(waiter.progress.clone());
        drop(state);
        self.start(waiter, true);
    }

    fn start(self: &Arc<Self>, waiter: Waiter, in_line: bool) {
        let attempt = Attempt {
            line: self.clone(),
            progress: waiter.progress.clone(),
            in_line,
            entering: in_line,
            seen_through: false,
            grant: None,
        };
        self.shared.pool.runtime().spawn(attempt.run(waiter));
    }

    fn driver(&self, waiter: &Waiter) -> Driver {
        let progress = waiter.progress.clone();
        if let ([claim], Some(writer)) = (&self.claims[..], &waiter.within) {
            let name = writer.node.rsplit('/').next().map(str::to_owned);
            let claim = Claim { within: name, ..claim.clone() };
            return Driver::within(writer.session.clone(), claim, self.path.clone(), progress);
        }
        let slot = self.shared.pool.slot().clone();
        Driver::new(self.claims.clone(), waiter.patience, self.path.clone(), progress, slot)
    }

    /// Those of this process who look for it find the grant.
    fn enter(&self, state: &mut State, grant: &Arc<Grant>) {
        state.grants.push(grant.clone());
        for (claim, place) in self.claims.iter().zip(&self.places) {
            place.add(claim, grant);
        }
    }
}

/// One attempt of the line. Its place is free again when it is dropped.
struct Attempt {
    line: Arc<Line>,
    progress: Arc<Progress>,
    /// Whether it has one of the places of the line.
    in_line: bool,
    entering: bool,
    /// Whether it came to its end. If not, its runtime is gone, and nothing more can be started.
    seen_through: bool,
    grant: Option<Arc<Grant>>,
}

impl Attempt {
    async fn run(mut self, waiter: Waiter) {
        let line = self.line.clone();
        let mut driver = line.driver(&waiter);
        let Waiter { owner, within, reentrant, mut answer, progress, .. } = waiter;
        match driver.enter(answer.closed()).await {
            Ok(entry) => {
                Counters::count(&line.shared.counters.grants);
                // What the reader guards has seen the token of its writer, and the next writer is queued already
                // with one that is smaller than that of the reader's node.
                let token = within.map_or(Token::of(entry.czxid), |writer| writer.token);
                let bound = reentrant && owner.returns();
                let grant = Grant::new(entry, token, line.path.clone(), progress, owner, bound);
                self.grant = Some(grant.clone());
                // Together, or a caller that has just gone away could find itself the holder.
                let mut state = locked(&line.state);
                line.enter(&mut state, &grant);
                if reentrant {
                    state.take_part(&grant);
                }
                // If the caller is gone, the hold is dropped here, which releases it.
                let _ = answer.send(Ok(Some(Hold::new(grant))));
            }
            Err(turned) => {
                progress.owe();
                let _ = answer.send(match turned {
                    Turned::Busy | Turned::Away => Ok(None),
                    Turned::Failed(error) => Err(error),
                });
            }
        }
        self.entered();
        driver.leave(self.grant.as_ref().map(|grant| grant.holding())).await;
        if self.grant.as_ref().is_some_and(|grant| grant.is_lost()) {
            Counters::count(&line.shared.counters.losses);
        }
        self.seen_through = true;
    }

    fn entered(&mut self) {
        if std::mem::take(&mut self.entering) {
            locked(&self.line.state).entering = None;
            self.line.start_next();
        }
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let mut state = locked(&self.line.state);
        if self.in_line {
            state.attempts -= 1;
        }
        if self.entering {
            state.entering = None;
        }
        self.progress.settle();
        if let Some(grant) = self.grant.take() {
            grant.abandon();
            // One that was lost is there as long as its owner has holds of it: until they are released, no
            // inner section is entered.
            state.grants.retain(|other| !other.is_over());
            self.line.places.iter().for_each(|place| place.tidy());
        }
        if self.seen_through {
            drop(state);
            self.line.start_next();
        } else {
            // Their receivers hear of it.
            state.waiting.clear();
        }
    }
}
