//! How any one of several locks is acquired.
//!
//! It uses the locks as they are, with a ticket for the local queue of each. So everything that holds for one lock holds here
//! too, and a wait that ends leaves nothing behind, because none of its tickets does. A special machine, with all nodes in one
//! transaction, would save about half of the requests of a wait, but it would have to repeat what every kind of lock and the
//! local queues do.
//!
//! All queues are listed before anything is created. Trying each lock instead would take every free one for a moment, and
//! others would find these busy.

use super::OpenLock;
use crate::attempt::local_queue::{Acquired, Ticket};
use crate::base::error::{Error, ErrorKind};
use crate::base::failure::Failure;
use crate::base::leaving::Leaving;
use crate::base::owner::Owner;
use crate::base::platform::random_bits;
use crate::base::wait::Wait;
use crate::client::any::shortened;
use crate::hold::hold::Hold;
use crate::machine::claim::Claim;
use crate::machine::protocol::{Operation, Outcome, Patience};
use crate::machine::queue::is_taken;
use crate::session::ask::{ask_for_ever, silence, too_short};
use crate::session::pool::Pool;
use crate::session::session::Session;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

/// Several locks, one of which will be held.
pub(crate) struct Choice {
    /// At least one.
    locks: Vec<OpenLock>,
    /// Their names in messages.
    paths: String,
}

/// Boxed, because a lock's future contains those of other locks.
pub(super) type Acquiring<'a> = Pin<Box<dyn Future<Output = Result<Option<Hold>, Error>> + Send + 'a>>;

/// The ticket for one of the locks, which is given by its index.
struct Queued {
    lock: usize,
    ticket: Ticket,
}

impl Choice {
    pub(crate) fn new(locks: Vec<OpenLock>, path: &str) -> Arc<Self> {
        let paths = format!("{} locks {}", locks.len(), shortened(path));
        Arc::new(Self { locks, paths })
    }

    pub(super) fn at_once(&self, owner: Owner) -> Result<Option<Hold>, Error> {
        let mut held = self.locks.iter().map(|lock| lock.at_once(owner));
        held.find_map(Result::transpose).transpose()
    }

    /// Like [`OpenLock::acquire_within`].
    pub(super) fn acquire_within<'a>(
        &'a self,
        patience: Patience,
        owner: Owner,
        wait: Wait,
        leaving: &'a mut Leaving,
    ) -> Acquiring<'a> {
        Box::pin(async move {
            let soon = wait.no_longer_than(self.pool().options().try_timeout);
            let tried = self.try_until(owner, soon, leaving).await;
            let is_unheard = match tried {
                Ok(None) if patience == Patience::Waits => false,
                // It waits for the servers too.
                Err(error) if error.kind() == ErrorKind::Unreachable && patience == Patience::Waits => true,
                tried => return tried,
            };
            if let Some(hold) = self.at_once(owner)? {
                return Ok(Some(hold));
            }
            let mut tickets = self.join(owner, wait)?;
            let waited = self.wait_in(&mut tickets, owner, wait, is_unheard, leaving).await;
            tickets.into_iter().for_each(|queued| leaving.add(queued.ticket.leave()));
            waited.map(Some)
        })
    }

    /// Waits for all of these tickets.
    async fn wait_in(
        &self,
        tickets: &mut Vec<Queued>,
        owner: Owner,
        wait: Wait,
        is_unheard: bool,
        leaving: &mut Leaving,
    ) -> Result<Hold, Error> {
        let mut over = pin!(wait.over());
        loop {
            let (index, answer) = tokio::select! {
                biased;
                first = first_answer(tickets) => first,
                _ = &mut over => return Err(self.in_vain(tickets, wait, is_unheard)),
            };
            // Without a hold whose lease is over, because the process slept between the grant and now: its owner would get that
            // one again and again, or wait for itself.
            let hold = answer?.filter(|hold| !hold.valid_for().is_zero());
            let Queued { lock, ticket } = tickets.remove(index);
            if let Some(hold) = hold {
                return Ok(hold);
            }
            leaving.add(ticket.leave());
            if wait.is_over() {
                return Err(self.in_vain(tickets, wait, is_unheard));
            }
            tickets.push(self.locks[lock].queue_up(lock, owner, wait)?);
        }
    }

    /// Says that no lock is free. It names the holder of the first one only: hundreds of questions would be a flood.
    pub(super) async fn busy(&self, wait: Wait) -> String {
        let first = &self.locks[0];
        let holder = first.queue.holder(wait).await;
        let holder = holder.map(|holder| format!("; of {}: {holder}", first.path()));
        format!("every one of the {} is held by another{}", self.paths, holder.unwrap_or_default())
    }

    /// Acquires a free lock; `None` if there is none.
    async fn try_until(
        &self,
        owner: Owner,
        wait: Wait,
        leaving: &mut Leaving,
    ) -> Result<Option<Hold>, Error> {
        let mut free = tokio::select! {
            biased;
            free = self.free(owner) => free?,
            _ = wait.over() => return Err(self.unheard(wait)),
        };
        // The lock that was named first. But callers that all tried it and were too late go on with different ones.
        let mut next = 0;
        while !free.is_empty() && !wait.is_over() {
            let lock = &self.locks[free.remove(next)];
            if let Some(hold) = lock.at_once(owner)? {
                return Ok(Some(hold));
            }
            if let Some(hold) = lock.acquire_within(Patience::TriesOnce, owner, wait, leaving).await? {
                return Ok(Some(hold));
            }
            next = random_bits().checked_rem(free.len() as u128).map_or(0, |next| next as usize);
        }
        Ok(None)
    }

    /// Returns the indexes of the locks that seem to be free.
    async fn free(&self, owner: Owner) -> Result<Vec<usize>, Error> {
        for lock in &self.locks {
            // Otherwise it would seem busy because of a node that we are deleting.
            lock.queue.released().await;
        }
        let queues = self.locks.iter().flat_map(|lock| lock.claims().iter().flat_map(directories));
        // A barrier, so that the listings show what others have already released.
        let barrier = Operation::Barrier { directory: self.locks[0].claims()[0].directory.clone() };
        let flight: Vec<_> =
            std::iter::once(barrier).chain(queues.map(|directory| Operation::List { directory })).collect();
        let problem = || format!("the {} could not be listed", self.paths);
        let listed =
            ask_for_ever(|| self.pool().slot().session(), problem, |session| look(session, flight.clone()))
                .await?;
        let mut listed = listed.iter().skip(1);
        let mut free = Vec::new();
        for (number, lock) in self.locks.iter().enumerate() {
            // Ask for every claim, or its listings would be taken for those of the next lock.
            let taken = lock.claims().iter().filter(|claim| is_busy(claim, &mut listed)).count();
            if taken == 0 || lock.queue.may_be_within(owner) {
                free.push(number);
            }
        }
        Ok(free)
    }

    /// Joins each queue, except where the caller would wait for something that only it can release.
    fn join(&self, owner: Owner, wait: Wait) -> Result<Vec<Queued>, Error> {
        let (mut tickets, mut deadlock) = (Vec::new(), None);
        for (number, lock) in self.locks.iter().enumerate() {
            match lock.queue_up(number, owner, wait) {
                Ok(queued) => tickets.push(queued),
                Err(error) if error.kind() == ErrorKind::Deadlock => deadlock = Some(error),
                Err(error) => return Err(error),
            }
        }
        deadlock.filter(|_| tickets.is_empty()).map_or(Ok(tickets), Err)
    }

    /// Returns why no lock was acquired in time. `is_unheard` says that the first look had no answer either.
    fn in_vain(&self, tickets: &[Queued], wait: Wait, is_unheard: bool) -> Error {
        let is_silent = |queued: &Queued| self.locks[queued.lock].is_silent(&queued.ticket);
        let is_behind_others = tickets.iter().any(|queued| queued.ticket.is_behind_others());
        let is_cut_off = !self.pool().slot().is_connected() || tickets.iter().all(is_silent);
        let (kind, trouble) = if is_cut_off || is_unheard && !is_behind_others {
            (ErrorKind::Unreachable, silence(self.pool().slot()))
        } else if is_behind_others {
            let seen = tickets.iter().find_map(|queued| {
                let lock = &self.locks[queued.lock];
                let seen = lock.queue.in_the_way(&queued.ticket)?;
                Some(format!("; of {}: {seen}", lock.path()))
            });
            (ErrorKind::Timeout, format!("others are before us in their queues{}", seen.unwrap_or_default()))
        } else {
            (ErrorKind::Timeout, too_short(self.pool().slot()))
        };
        Error::new(kind, format!("none of the {} was acquired {wait}: {trouble}", self.paths))
    }

    /// Returns the error if the servers did not say in time which locks are free.
    fn unheard(&self, wait: Wait) -> Error {
        let (paths, silence) = (&self.paths, silence(self.pool().slot()));
        Error::new(ErrorKind::Unreachable, format!("none of the {paths} was tried {wait}: {silence}"))
    }

    fn pool(&self) -> &Pool {
        self.locks[0].pool()
    }
}

impl OpenLock {
    /// Joins the queue of the lock with this index. Only the wait for the first lock finds out the holder:
    /// hundreds of questions would be a flood.
    fn queue_up(&self, lock: usize, owner: Owner, wait: Wait) -> Result<Queued, Error> {
        let wait = if lock == 0 { wait } else { Wait::Forever };
        let ticket = self.queue.join(owner, self.spec.is_reentrant(), Patience::Waits, wait)?;
        Ok(Queued { lock, ticket })
    }
}

/// Returns the index of the first ticket that has an answer, and the answer. Locks that are granted as well are released when
/// their tickets are dropped.
async fn first_answer(tickets: &mut [Queued]) -> (usize, Acquired) {
    poll_fn(|context| {
        for (index, queued) in tickets.iter_mut().enumerate() {
            if let Poll::Ready(answer) = queued.ticket.poll_answer(context) {
                return Poll::Ready((index, answer));
            }
        }
        Poll::Pending
    })
    .await
}

/// Returns the directories that show whether a lock is free.
fn directories(claim: &Claim) -> impl Iterator<Item = Arc<str>> {
    let permits = claim.permits.as_ref().map(|permits| permits.directory.clone());
    std::iter::once(claim.directory.clone()).chain(permits)
}

/// Whether a contender that queued now would wait. A queue that cannot be listed does not count as busy: the caller that tries
/// it learns what is wrong.
fn is_busy<'a>(claim: &Claim, listed: &mut impl Iterator<Item = &'a Outcome>) -> bool {
    let mut next = || match listed.next() {
        Some(Outcome::Children(children)) => children.as_slice(),
        _ => &[],
    };
    let queue = next();
    // Nobody holds in a semaphore's queue: its contenders are about to take permits, and may leave enough.
    let is_queued = claim.permits.is_none() && is_taken(queue, claim);
    let has_permits = claim.permits.as_ref().is_none_or(|permits| {
        let taken = next().len();
        // The node may store another limit.
        permits.limit_at.is_some() || taken + permits.count as usize <= permits.limit as usize
    });
    is_queued || !has_permits
}

async fn look(session: Arc<Session>, flight: Vec<Operation>) -> Result<Vec<Outcome>, Failure> {
    let landing = session.send(flight).await;
    if landing.outcomes.contains(&Outcome::SessionOver) {
        return Err(Failure::SessionOver);
    }
    if landing.outcomes.contains(&Outcome::Unknown) {
        return Err(Failure::Unknown);
    }
    Ok(landing.outcomes)
}
