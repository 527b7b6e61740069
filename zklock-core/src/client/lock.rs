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
use crate::client::home::Home;
use crate::client::lazy::Lazy;
use crate::client::registry::CoreClient;
use crate::client::spec::LockSpec;
use crate::hold::hold::Hold;
use crate::machine::callers::Own;
use crate::machine::claim::Claim;
use crate::machine::protocol::Patience;
use crate::session::ask::{silence, too_short};
use crate::session::pool::Pool;
use crate::threads::call::{Beginning, Call};
use crate::threads::fork_safe::ForkSafe;
use call::AcquireCall;
use choice::Choice;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// A lock of any kind: a mutex, a side of a read/write lock, a semaphore, a set of locks, any one of several locks, or the
/// leadership of an election.
///
/// It is cheap to clone, and holds nothing itself: [`acquire`](Self::acquire) gives a [`Hold`].
///
/// # Examples
///
/// ```no_run
/// use std::time::Duration;
/// use zklock::{Client, ClientOptions};
///
/// # async fn example() -> Result<(), zklock::Error> {
/// let client = Client::connect(ClientOptions::new("zk1:2181,zk2:2181")).await?;
/// let lock = client.mutex("/locks/report")?;
///
/// let hold = lock.acquire_timeout(Duration::from_secs(5)).await?;
/// println!("held with token {} for {:?} at least", hold.token(), hold.valid_for());
/// hold.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Lock {
    pub(crate) open: Lazy<OpenLock>,
    spec: Arc<LockSpec>,
}

impl Lock {
    pub(crate) fn new(home: &Home, spec: &LockSpec) -> Result<Self, Error> {
        spec.check()?;
        let spec = Arc::new(spec.clone());
        let of = spec.clone();
        let open = Lazy::new(home, move |client| OpenLock::new(client.get()?, &of))?;
        Ok(Self { open, spec })
    }

    /// Returns whether its client was used by a process from which this one was forked. It is useless here then.
    #[doc(hidden)]
    pub fn is_forked(&self) -> bool {
        self.open.is_forked()
    }

    /// Returns the path of the lock. For a set, the paths of its locks in alphabetical order, separated by commas; for a
    /// choice, the same in the order in which its locks were named.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(lock: zklock::Lock) -> Result<(), zklock::Error> {
    /// if lock.try_acquire().await?.is_none() {
    ///     println!("{} is busy", lock.path());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn path(&self) -> &str {
        self.spec.path()
    }

    /// Returns the description that the lock was made from.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(lock: &zklock::Lock, other: &zklock::Client) -> Result<(), zklock::Error> {
    /// // The same lock, for another client.
    /// let same = other.lock(lock.spec())?;
    /// assert_eq!(same.path(), lock.path());
    /// # Ok(())
    /// # }
    /// ```
    pub fn spec(&self) -> &LockSpec {
        &self.spec
    }

    /// Waits until the lock is held.
    ///
    /// Clients are granted the lock in the order in which they queue, and callers within a client in the order in which they
    /// call. However many callers of a client wait, only one of them has a node at the servers, in addition to the holder. So
    /// clients take turns. Callers that can hold the lock together, such as readers, all have one. A caller that gives up
    /// leaves its place to the next caller of its client.
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::Deadlock`] if this call would wait for a hold that only this task or thread can release. That is a hold
    ///   of a reentrant lock, if this lock is not reentrant, or if it is the write side and the hold is of the read side. If
    ///   others may release the hold, the call waits for that instead, and logs a warning;
    /// * [`ErrorKind::Lost`] if the lock is reentrant and the outer hold is lost;
    /// * [`ErrorKind::Unreachable`] if the lock is reentrant, the outer hold's lease has lapsed, and the ensemble has not
    ///   confirmed it again;
    /// * [`ErrorKind::ForeignContender`] if a contender that cannot see ours is in the queue;
    /// * [`ErrorKind::Refused`] if the access list or the server's rules forbid it;
    /// * [`ErrorKind::Closed`] if the client is closed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the call leaves the queue. If a node or a grant already exists, it is removed in the background.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: zklock::Client) -> Result<(), zklock::Error> {
    /// let hold = client.mutex("/locks/report")?.acquire().await?;
    /// // ... nobody else writes the report ...
    /// hold.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn acquire(&self) -> Call<Hold> {
        self.acquire_as(Owner::current(), Wait::Forever)
    }

    /// Like [`acquire`](Self::acquire), but waits no longer than `timeout`. Zero tries once, like
    /// [`try_acquire`](Self::try_acquire).
    ///
    /// A call that fails leaves no node in the queue, so a program may end right after it. The call waits until the
    /// servers have confirmed that, for 30 ms at most. (If the call is dropped instead, the node is deleted in the
    /// background.)
    ///
    /// An error of kind [`ErrorKind::Timeout`] names the holder, if the servers say who that is. To find out, this lock and
    /// its clones ask them shortly before the end of a wait, and after a try at most once a second.
    ///
    /// # Errors
    ///
    /// Fails like [`acquire`](Self::acquire) does. When the time is up, whatever the network does, it also fails with:
    ///
    /// * [`ErrorKind::Timeout`] if others had the lock, or the time was too short for an answer;
    /// * [`ErrorKind::Unreachable`] if there is no connection at that moment, or the ensemble has not answered for the [try
    ///   timeout](crate::ClientOptions::try_timeout), so that it is not known who has the lock.
    ///
    /// # Cancel safety
    ///
    /// Dropping the call leaves the queue, as with [`acquire`](Self::acquire).
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use zklock::ErrorKind;
    ///
    /// # async fn example(lock: zklock::Lock) -> Result<(), zklock::Error> {
    /// match lock.acquire_timeout(Duration::from_secs(5)).await {
    ///     Ok(hold) => hold.release().await?,
    ///     // The message names the holder.
    ///     Err(error) if error.kind() == ErrorKind::Timeout => println!("{error}"),
    ///     Err(error) => return Err(error),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn acquire_timeout(&self, timeout: Duration) -> Call<Hold> {
        self.acquire_as(Owner::current(), timeout)
    }

    /// Acquires the lock if it is free. Returns `None` if another contender holds it or is in the
    /// queue.
    ///
    /// You may poll with it. After the second busy answer, the servers notify this client when the contender in the way has
    /// left. Until that notification, further tries by this lock and its clones send no request. So just after another
    /// client's release, a try may still find the lock busy until the notification arrives, for a tenth of the session timeout
    /// at most. To ask the servers in any case, call [`acquire_timeout`](Self::acquire_timeout) with a short time. No try
    /// reports from memory that a lock is free. Tries of semaphores, sets, choices and single-node locks always ask the servers.
    ///
    /// In all other cases it waits for the ensemble's answer, but no longer than the [try
    /// timeout](crate::ClientOptions::try_timeout).
    ///
    /// # Errors
    ///
    /// Fails like [`acquire`](Self::acquire) does, but never with [`ErrorKind::Deadlock`]; and with [`ErrorKind::Unreachable`]
    /// if the ensemble does not answer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the call leaves the queue, as with [`acquire`](Self::acquire).
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(lock: zklock::Lock) -> Result<(), zklock::Error> {
    /// match lock.try_acquire().await? {
    ///     Some(hold) => {
    ///         // ... do the job ...
    ///         hold.release().await?;
    ///     }
    ///     None => println!("somebody else does the job"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn try_acquire(&self) -> Call<Option<Hold>> {
        let owner = Owner::current();
        self.open.begin(Wait::Forever, false, move |lock| {
            let value = lock.clone();
            Beginning::goes_on(lock.io(), async move {
                let lock = value.fixed();
                match lock.acquire_at_once(owner)? {
                    Some(hold) => Ok(Some(hold)),
                    None => lock.join(Patience::TriesOnce, owner, lock.try_wait()).await,
                }
            })
        })
    }

    /// Like [`acquire`](Self::acquire) or [`acquire_timeout`](Self::acquire_timeout), for the given owner.
    ///
    /// [`Owner::once`] makes an owner that holds nothing else: its hold may be released from
    /// anywhere, even if the lock is reentrant. If the call goes on in the background, the lock is held from the moment it is
    /// granted. If the hold is lost before you fetch it, the call fails with [`ErrorKind::Lost`].
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use zklock::Lock;
    /// use zklock::further::Owner;
    ///
    /// # fn example(lock: &Lock) -> Result<(), zklock::Error> {
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// let call = lock.acquire_as(Owner::once(), Duration::from_secs(5));
    /// let acquiring = call.detach(move || sender.send(()).unwrap())?;
    /// receiver.recv().unwrap();
    /// if let Some(result) = acquiring.fetch() {
    ///     let hold = result?;
    ///     hold.release().wait()?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[doc(hidden)]
    pub fn acquire_as(&self, owner: Owner, wait: impl Into<Wait>) -> Call<Hold> {
        let wait = wait.into();
        let begin = move |lock: &ForkSafe<OpenLock>| match lock.fixed().acquire_at_once(owner) {
            Ok(None) => {
                let value = lock.clone();
                Beginning::goes_on(lock.io(), async move { value.fixed().queue_as(owner, wait).await })
            }
            Ok(Some(hold)) => Beginning::Over(Ok(hold)),
            Err(error) => Beginning::Over(Err(error)),
        };
        self.open.begin(wait, wait != Wait::Once, begin).accepted(Hold::refuse_dead)
    }
}

/// A lock of a client that has connected.
#[derive(Clone)]
pub(crate) struct OpenLock {
    queue: Arc<LocalQueue>,
    spec: Arc<LockSpec>,
    /// Its locks, if it is any one of several. Its own queue is then never waited in; it only has the claims of all of them.
    choice: Option<Arc<Choice>>,
    /// Where it is counted by itself, if it has a name for that.
    figures: Option<Arc<LockFigures>>,
    /// Keeps the client's session open while this lock exists.
    _handle: Handle,
}

impl OpenLock {
    pub(crate) fn new(client: &CoreClient, spec: &LockSpec) -> Result<Self, Error> {
        let pool = &client.handle.pool;
        let wanted = (spec.claims_of(pool.options(), pool.identity())?, spec.passing);
        let locks =
            spec.alternatives().map(|locks| locks.iter().map(|spec| Self::new(client, spec)).collect());
        let locks: Option<Vec<_>> = locks.transpose()?;
        let choice = locks.map(|locks| Choice::new(locks, spec.path()));
        let queue = client.queue(spec.path(), wanted, choice.is_none());
        let figures = spec.own_metrics_name().map(|name| client.handle.counters.of_locks(name));
        Ok(Self { queue, spec: Arc::new(spec.clone()), choice, figures, _handle: client.handle.clone() })
    }

    pub(crate) fn path(&self) -> &str {
        self.spec.path()
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

    /// Acquires the lock for this owner, after there was nothing to be had [at once](Self::acquire_at_once).
    async fn queue_as(&self, owner: Owner, wait: Wait) -> Result<Hold, Error> {
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
    fn acquire_at_once(&self, owner: Owner) -> Result<Option<Hold>, Error> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::io::Io;
    use crate::{ClientOptions, LockSpec};
    use tokio::runtime::Handle;
    use zklock_testkit::Server;

    #[tokio::test]
    async fn a_call_shares_the_turn_that_its_owner_was_granted_after_there_was_nothing_at_once() {
        let server = Server::start().unwrap();
        let options = ClientOptions::new(&server.connect_string());
        let client = CoreClient::unopened(options, Io::of(Handle::current()).unwrap()).unwrap();
        client.handle.pool.opened(Wait::Forever).await.unwrap();
        let spec = LockSpec::mutex("/lock").unwrap().reentrant(true);
        let (lock, owner) = (OpenLock::new(&client, &spec).unwrap(), Owner::current());
        let hold = lock.queue_as(owner, Wait::Forever).await.unwrap();
        for wait in [Wait::Forever, Wait::Once] {
            let inner = lock.queue_as(owner, wait).await.unwrap();
            assert_eq!((inner.node(), inner.token()), (hold.node(), hold.token()));
        }
    }
}
