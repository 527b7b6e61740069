//! Locks: things that can be acquired.

mod call;
mod choice;

use crate::attempt::local_queue::{LocalQueue, Ticket};
use crate::attempt::shared::{Handle, Shared};
use crate::base::error::{Error, ErrorKind};
use crate::base::leaving::Leaving;
use crate::base::lock_figures::LockFigures;
use crate::base::owner::Owner;
use crate::base::wait::Wait;
use crate::client::spec::LockSpec;
use crate::hold::hold::Hold;
use crate::machine::callers::Own;
use crate::machine::claim::Claim;
use crate::machine::protocol::Patience;
use crate::session::ask::{silence, too_short};
use crate::session::pool::Pool;
use call::AcquireCall;
use choice::Choice;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// A lock of any kind: a mutex, a side of a read/write lock, a semaphore, a set of locks, any one of several locks, or the
/// leadership of an election.
#[derive(Clone)]
pub(crate) struct Lock {
    queue: Arc<LocalQueue>,
    spec: Arc<LockSpec>,
    /// Its locks, if it is any one of several. Its own queue is then never waited in; it only has the claims of all of them.
    choice: Option<Arc<Choice>>,
    /// Where it is counted by itself, if it has a name for that.
    figures: Option<Arc<LockFigures>>,
    /// Keeps the client's session open while this lock exists.
    _handle: Handle,
}

impl Lock {
    pub(crate) fn new(queue: Arc<LocalQueue>, spec: LockSpec, handle: Handle) -> Self {
        let figures = spec.figures_name().map(|name| handle.counters.of_locks(name));
        Self { queue, spec: Arc::new(spec), choice: None, figures, _handle: handle }
    }

    pub(crate) fn any(self, locks: Vec<Self>) -> Self {
        let choice = Choice::new(locks, self.path());
        Self { choice: Some(choice), ..self }
    }

    /// Returns the path of the lock. For a set, the paths of its locks in alphabetical order, separated by commas; for a
    /// choice, the same in the order in which its locks were named.
    pub(crate) fn path(&self) -> &str {
        self.spec.path()
    }

    /// Returns the description that the lock was made from.
    pub(crate) fn spec(&self) -> &LockSpec {
        &self.spec
    }

    pub(crate) fn claims(&self) -> &[Claim] {
        &self.queue.claims
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.queue.shared.pool
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.queue.shared
    }

    pub(crate) async fn try_acquire_as(&self, owner: Owner) -> Result<Option<Hold>, Error> {
        match self.acquire_at_once(owner)? {
            Some(hold) => Ok(Some(hold)),
            None => self.join(Patience::TriesOnce, owner, self.try_wait()).await,
        }
    }

    /// Acquires the lock for this owner.
    pub(crate) async fn acquire_as(&self, owner: Owner, wait: Wait) -> Result<Hold, Error> {
        match self.acquire_at_once(owner)? {
            Some(hold) => Ok(hold),
            None => self.queue_as(owner, wait).await,
        }
    }

    /// Like [`acquire_as`](Self::acquire_as), after there was nothing to be had [at once](Self::acquire_at_once).
    pub(crate) async fn queue_as(&self, owner: Owner, wait: Wait) -> Result<Hold, Error> {
        let (patience, wait) = match wait {
            Wait::Once => (Patience::TriesOnce, self.try_wait()),
            wait => (Patience::Waits, wait),
        };
        match self.join(patience, owner, wait).await? {
            Some(hold) => Ok(hold),
            // Boxed, because most acquires end without it.
            None => Err(Box::pin(self.busy(owner, wait)).await),
        }
    }

    /// Returns for how long a try waits for an answer.
    fn try_wait(&self) -> Wait {
        Wait::at_most(Some(self.pool().options().try_timeout))
    }

    /// One call, counted and logged. It returns no hold only if it tries and the lock is busy.
    async fn join(&self, patience: Patience, owner: Owner, wait: Wait) -> Result<Option<Hold>, Error> {
        let mut leaving = Leaving::default();
        let acquires = self.acquire_within(patience, owner, wait, &mut leaving);
        let acquired = AcquireCall::begin(self).run(acquires).await;
        if !matches!(acquired, Ok(Some(_))) {
            // Boxed, because most calls end without it.
            Box::pin(leaving.seen_through()).await;
        }
        acquired
    }

    /// Returns the error of a try that found the lock busy. The error names the holder, if the servers say who that is
    /// before `wait` is over.
    async fn busy(&self, owner: Owner, wait: Wait) -> Error {
        let message = if let Some(choice) = &self.choice {
            choice.busy(wait).await
        } else if self.is_own(owner) {
            format!("the lock {} is held by this thread or task itself", self.path())
        } else {
            let holder = self.queue.holder(wait).await.map(|holder| format!(": {holder}"));
            format!("the lock {} is held by another{}", self.path(), holder.unwrap_or_default())
        };
        Error::new(ErrorKind::Timeout, message)
    }

    /// Like [`at_once`](Self::at_once), but counted as a call of its own. A call that finds no hold is not counted, because the
    /// caller goes on to wait for one. It does not read the clock, which would take a tenth of its time.
    pub(crate) fn acquire_at_once(&self, owner: Owner) -> Result<Option<Hold>, Error> {
        let hold = self.at_once(owner);
        if !matches!(hold, Ok(None)) {
            call::note(self, hold.as_ref().map(Option::as_ref), Duration::ZERO);
        }
        hold
    }

    /// Returns a hold that costs no request and no wait: another one for an owner that already has one of a reentrant lock,
    /// or one on a node that the process has kept.
    pub(crate) fn at_once(&self, owner: Owner) -> Result<Option<Hold>, Error> {
        if let Some(choice) = &self.choice {
            return choice.at_once(owner);
        }
        let reentrant = self.spec.is_reentrant();
        let again = if reentrant { self.queue.again(owner)? } else { None };
        Ok(again.or_else(|| self.queue.take(owner, reentrant)))
    }

    /// Queues, until there is a hold or `wait` is over. Ask first whether there is one [at once](Self::at_once).
    /// If it returns no hold, `leaving` has what its attempts owe.
    async fn acquire_within(
        &self,
        patience: Patience,
        owner: Owner,
        wait: Wait,
        leaving: &mut Leaving,
    ) -> Result<Option<Hold>, Error> {
        if let Some(choice) = &self.choice {
            return choice.acquire_within(patience, owner, wait, leaving).await;
        }
        // The deadline ends a try, but nobody asks for the holder's name shortly before.
        let known_wait = if patience == Patience::Waits { wait } else { Wait::Forever };
        let mut deadline = pin!(wait.over());
        loop {
            let mut ticket = self.queue.join(owner, self.spec.is_reentrant(), patience, known_wait)?;
            let answer = tokio::select! {
                // An answer that has come by the deadline counts.
                biased;
                answer = ticket.answer() => answer,
                _ = deadline.as_mut() => {
                    let late = match patience {
                        Patience::Waits => Err(self.not_acquired(owner, wait, &ticket)),
                        Patience::TriesOnce if self.waits_its_turn(&ticket) => Ok(None),
                        Patience::TriesOnce => Err(self.not_tried()),
                    };
                    leaving.add(ticket.leave());
                    return late;
                }
            };
            match answer {
                Ok(Some(hold)) if !hold.valid_for().is_zero() => return Ok(Some(hold)),
                // The process slept past the lease between the grant and now: queue again.
                Ok(Some(hold)) => {
                    drop(hold);
                    leaving.add(ticket.leave());
                    // Its owner may have acquired it elsewhere meanwhile, and must not wait for itself.
                    if let Some(hold) = self.at_once(owner)? {
                        return Ok(Some(hold));
                    }
                }
                no_hold => {
                    leaving.add(ticket.leave());
                    return if matches!(no_hold, Ok(None)) { self.found_busy() } else { no_hold };
                }
            }
        }
    }

    /// Returns the answer of a try that found the lock busy. It may have found other callers of this client who have no
    /// answer either. Then nobody knows whether the lock is busy.
    fn found_busy(&self) -> Result<Option<Hold>, Error> {
        if !self.queue.is_unanswered_for(self.pool().options().try_timeout) {
            return Ok(None);
        }
        let (path, silence) = (self.path(), silence(self.pool().slot()));
        let message =
            format!("other callers of this client try the lock {path} too, without an answer: {silence}");
        Err(Error::new(ErrorKind::Unreachable, message))
    }

    /// Returns the error of a try that got no answer in time.
    fn not_tried(&self) -> Error {
        let (path, silence, patience) =
            (self.path(), silence(self.pool().slot()), self.pool().options().try_timeout);
        let message = format!("the lock {path} was not tried within {patience:?}: {silence}");
        Error::new(ErrorKind::Unreachable, message)
    }

    /// Returns the error of a wait that is over. It blames other holders only while a server answers: a caller that mistakes
    /// an outage for contention goes on without the lock. A server may also accept connections and never answer, but its
    /// silence shows only after the time that every try allows it.
    fn not_acquired(&self, owner: Owner, wait: Wait, ticket: &Ticket) -> Error {
        let is_answered = !self.is_silent(ticket) && self.pool().slot().is_connected();
        let kind = if is_answered { ErrorKind::Timeout } else { ErrorKind::Unreachable };
        let trouble = if self.is_own(owner) {
            "this thread or task holds it itself, and that hold was not released".to_owned()
        } else if !is_answered {
            silence(self.pool().slot())
        } else if ticket.is_behind_others() {
            let seen = self.queue.in_the_way(ticket).map(|seen| format!(": {seen}"));
            format!("others are before us in the queue{}", seen.unwrap_or_default())
        } else {
            too_short(self.pool().slot())
        };
        Error::new(kind, format!("the lock {} was not acquired {wait}: {trouble}", self.path()))
    }

    /// Whether a try is known to wait behind others. Only a try for permits waits in a queue. Any other try waits for one of
    /// our own nodes to be cleaned up, which takes long if the servers do not answer.
    fn waits_its_turn(&self, ticket: &Ticket) -> bool {
        let has_permits = self.claims().iter().any(|claim| claim.permits.is_some());
        has_permits && ticket.is_behind_others() && self.pool().slot().is_connected()
    }

    fn is_silent(&self, ticket: &Ticket) -> bool {
        let patience = self.pool().options().try_timeout;
        ticket.is_unanswered_for(patience) || self.queue.is_unanswered_for(patience)
    }

    /// Whether the owner's own hold is in the way.
    fn is_own(&self, owner: Owner) -> bool {
        !matches!(self.queue.own(owner), Ok(Own::Nothing | Own::Beside))
    }
}

impl fmt::Debug for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock").field("path", &self.path()).field("spec", &self.spec).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::client::Client;
    use crate::threads::io::Io;
    use crate::{ClientOptions, LockSpec};
    use tokio::runtime::Handle;
    use zklock_testkit::Server;

    #[tokio::test]
    async fn a_call_shares_the_turn_that_its_owner_was_granted_after_there_was_nothing_at_once() {
        let server = Server::start().unwrap();
        let options = ClientOptions::new(&server.connect_string()).unwrap();
        let client = Client::unopened(options, Io::of(Handle::current()).unwrap()).unwrap();
        client.opened(Wait::Forever).await.unwrap();
        let spec = LockSpec::mutex("/lock").unwrap().reentrant(true);
        let (lock, owner) = (client.lock(&spec).unwrap(), Owner::current());
        let hold = lock.acquire_as(owner, Wait::Forever).await.unwrap();
        for wait in [Wait::Forever, Wait::Once] {
            let inner = lock.queue_as(owner, wait).await.unwrap();
            assert_eq!((inner.node(), inner.token()), (hold.node(), hold.token()));
        }
    }
}
