//! The queue in front of the queue: those of one process who want one lock.
//!
//! However many threads wait, the ensemble sees at most two nodes of theirs: the holder's, and one
//! queued ahead for the next, created while the holder works, so that a hand-over within the process
//! takes one round trip. Thousands of threads in one queue of the ensemble would make every listing
//! thousands of names long.

use crate::driver::{Driver, Turned};
use crate::error::{Error, ErrorKind};
use crate::hold::{Grant, Hold};
use crate::locks::locked;
use crate::machine::exchange::Patience;
use crate::machine::queue::Kind;
use crate::owner::Owner;
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
    pub(crate) path: Arc<str>,
    pub(crate) shared: Arc<Shared>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Waiter>,
    /// Attempts with a node, or about to have one.
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

const ATTEMPTS_AT_MOST: usize = 2;

impl Line {
    pub(crate) fn new(path: &str, shared: Arc<Shared>) -> Self {
        Self { path: path.into(), shared, state: Mutex::default() }
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
        let mut state = locked(&self.state);
        let mut own = state.grants.iter().filter(|grant| grant.owner() == owner);
        if !reentrant && patience == Patience::Waits && own.any(|grant| grant.is_held()) {
            return Err(self.deadlock());
        }
        let held = state.grants.iter().any(|grant| grant.is_held());
        let entering = state.entering.as_ref().is_some_and(|progress| progress.is_wanted());
        let busy = held || entering || state.waiting.iter().any(|waiter| waiter.progress.is_wanted());
        if busy && patience == Patience::TriesOnce {
            let _ = answer.send(Ok(None));
            return Ok(ticket);
        }
        // Those who gave up while the lock was held for long must not pile up.
        if state.waiting.len() == state.waiting.capacity() {
            state.waiting.retain(|waiter| waiter.progress.is_wanted());
        }
        state.waiting.push_back(Waiter { owner, reentrant, patience, answer, progress });
        drop(state);
        self.start_next();
        Ok(ticket)
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
        if state.entering.is_some() || state.attempts == ATTEMPTS_AT_MOST {
            return;
        }
        let next = std::iter::from_fn(|| state.waiting.pop_front()).find(|waiter| waiter.progress.begin());
        let Some(waiter) = next else { return };
        state.attempts += 1;
        state.entering = Some(waiter.progress.clone());
        drop(state);
        let progress = waiter.progress.clone();
        let attempt =
            Attempt { line: self.clone(), progress, entering: true, seen_through: false, grant: None };
        self.shared.pool.runtime().spawn(attempt.run(waiter));
    }
}

/// One attempt of the line. Its place is free again when it is dropped.
struct Attempt {
    line: Arc<Line>,
    progress: Arc<Progress>,
    entering: bool,
    /// Whether it came to its end. If not, its runtime is gone, and nothing more can be started.
    seen_through: bool,
    grant: Option<Arc<Grant>>,
}

impl Attempt {
    async fn run(mut self, waiter: Waiter) {
        let Waiter { owner, reentrant, patience, mut answer, progress } = waiter;
        let line = self.line.clone();
        let reservation = line.shared.pool.reserve(&line.path);
        let mut driver = Driver::new(Kind::Mutex, patience, line.path.clone(), progress.clone(), reservation);
        match driver.enter(answer.closed()).await {
            Ok(entry) => {
                Counters::count(&line.shared.counters.grants);
                let grant =
                    Grant::new(entry, line.path.clone(), progress, owner, reentrant && owner.returns());
                self.grant = Some(grant.clone());
                // Together, or a caller that has just gone away could find itself the holder.
                let mut state = locked(&line.state);
                state.grants.push(grant.clone());
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
        state.attempts -= 1;
        if self.entering {
            state.entering = None;
        }
        self.progress.settle();
        if let Some(grant) = self.grant.take() {
            grant.abandon();
            // One that was lost is there as long as its owner has holds of it: until they are released, no
            // inner section is entered.
            state.grants.retain(|other| !other.is_over());
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
