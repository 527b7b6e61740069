//! A lock, for threads.

use super::connector::{Connected, Connector};
use super::hold::Hold;
use super::lazy::Lazy;
use super::observer::Observer;
use crate::base::error::Error;
use crate::base::owner::Owner;
use crate::base::wait::Wait;
use crate::client::spec::LockSpec;
use crate::operator::contenders::QueuedContender;
use crate::threads::call::Call;
use crate::threads::interrupt::Interrupt;
use crate::threads::thread::refuse_to_block;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// A [`Lock`](crate::Lock) whose calls block the calling thread. The owner of a hold is that thread.
#[derive(Clone, Debug)]
pub struct Lock {
    pub(super) core: Lazy<crate::Lock>,
    spec: Arc<LockSpec>,
}

impl Lock {
    pub(super) fn new(connector: &Connector, spec: &LockSpec) -> Result<Self, Error> {
        spec.check()?;
        let spec = Arc::new(spec.clone());
        let of = spec.clone();
        let core = Lazy::new(connector, move |client| client.get()?.lock(&of))?;
        Ok(Self { core, spec })
    }

    /// Returns the core's lock.
    #[doc(hidden)]
    pub fn core(&self) -> &Lazy<crate::Lock> {
        &self.core
    }

    /// Returns the path of the lock. See [`Lock::path`](crate::Lock::path).
    pub fn path(&self) -> &str {
        self.spec.path()
    }

    /// Returns the description that the lock was made from.
    pub fn spec(&self) -> &LockSpec {
        &self.spec
    }

    /// Blocks until the lock is held, and returns the hold. See [`Lock::acquire`](crate::Lock::acquire).
    ///
    /// # Errors
    ///
    /// Fails like [`Lock::acquire`](crate::Lock::acquire) does, and as [the module](super#errors) says. A client that has
    /// not connected yet also fails like [`Client::connect`](super::Client::connect) does.
    pub fn acquire(&self) -> Result<Hold, Error> {
        self.acquire_within(Wait::Forever, None)
    }

    /// Blocks until the lock is held, but no longer than `timeout`, and returns the hold. Zero tries once. See
    /// [`Lock::acquire_timeout`](crate::Lock::acquire_timeout).
    ///
    /// # Errors
    ///
    /// Fails like [`acquire`](Self::acquire) does. When the time is up it fails with
    /// [`ErrorKind::Timeout`](crate::ErrorKind::Timeout) if others had the lock, and with
    /// [`ErrorKind::Unreachable`](crate::ErrorKind::Unreachable) if the ensemble did not answer.
    pub fn acquire_timeout(&self, timeout: Duration) -> Result<Hold, Error> {
        self.acquire_within(timeout, None)
    }

    /// Like [`acquire_timeout`](Self::acquire_timeout), but also ends when the interrupt is triggered. Without a time it
    /// waits for ever. After an interrupt it leaves the queue as a wait does that has timed out.
    ///
    /// # Errors
    ///
    /// Fails like [`acquire_timeout`](Self::acquire_timeout) does; and with
    /// [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted) if the interrupt is triggered first.
    pub fn acquire_within(
        &self,
        wait: impl Into<Wait>,
        interrupt: Option<&Interrupt>,
    ) -> Result<Hold, Error> {
        let (wait, owner) = (wait.into(), Owner::current());
        refuse_to_block()?;
        if let Some(hold) = self.at_once(owner)? {
            return Ok(hold);
        }
        self.core.wait_and_leave(wait, interrupt, |lock| lock.acquire_as(owner, wait)).and_then(Hold::here)
    }

    /// Acquires the lock if it is free, and returns `None` if somebody else holds it or is in the queue. It blocks until
    /// the ensemble answers, but no longer than the [try timeout](crate::ClientOptions::try_timeout). See
    /// [`Lock::try_acquire`](crate::Lock::try_acquire).
    ///
    /// # Errors
    ///
    /// Fails like [`Lock::try_acquire`](crate::Lock::try_acquire) does, and as [the module](super#errors) says. A client
    /// that has not connected yet also fails like [`Client::connect`](super::Client::connect) does.
    pub fn try_acquire(&self) -> Result<Option<Hold>, Error> {
        let owner = Owner::current();
        if let Some(hold) = self.at_once(owner)? {
            return Ok(Some(hold));
        }
        let hold = self.core.wait(Wait::Forever, None, |lock| lock.try_acquire_as(owner))?;
        hold.map(Hold::here).transpose()
    }

    /// Starts to wait for the lock, and returns at once. The I/O thread calls `ready` when the [ticket](Ticket::fetch)
    /// has the result, so `ready` must not block.
    ///
    /// The hold will belong to `owner`. [`Owner::ticket`] makes an owner that holds nothing else: its hold may be
    /// released from anywhere, even if the lock is reentrant.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forked`](crate::ErrorKind::Forked) if the client belongs to the parent process. All other
    /// errors come with the result.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::time::{Duration, Instant};
    /// use zklock_core::{Owner, blocking::Lock};
    ///
    /// # fn example(lock: &Lock) -> Result<(), zklock_core::Error> {
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// let ticket = lock.start(Owner::ticket(), Duration::from_secs(5), move || sender.send(()).unwrap())?;
    /// receiver.recv().unwrap();
    /// if let Some(result) = ticket.fetch() {
    ///     let hold = result?;
    ///     hold.release()?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn start(
        &self,
        owner: Owner,
        wait: impl Into<Wait>,
        ready: impl FnOnce() + Send + 'static,
    ) -> Result<Ticket, Error> {
        let wait = wait.into();
        let acquire = move |lock: Arc<crate::Lock>| async move {
            lock.acquire_as(owner, wait).await.and_then(Hold::here)
        };
        self.core.start(ready, wait, acquire).map(Ticket)
    }

    /// Returns a hold that takes no request and no wait: another one for an owner that already has one, if the lock is
    /// reentrant, or one on a node that the process has [kept](crate::LockSpec::linger). `None` if there is no such hold.
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::Lost`](crate::ErrorKind::Lost) if the outer hold is lost;
    /// * [`ErrorKind::Unreachable`](crate::ErrorKind::Unreachable) if its lease has lapsed;
    /// * [`ErrorKind::Closed`](crate::ErrorKind::Closed) if the client is closed;
    /// * [`ErrorKind::Forked`](crate::ErrorKind::Forked) if the client belongs to the parent process.
    pub fn at_once(&self, owner: Owner) -> Result<Option<Hold>, Error> {
        let Some(lock) = self.core.now()? else { return Ok(None) };
        // There is one only in the process that made it.
        Ok(lock.fixed().acquire_at_once(owner)?.map(|hold| Hold::new(lock.adopt(hold))))
    }

    /// Lists the contenders in the queue, the holders first. Blocks until the ensemble answers, but no longer than the
    /// connect timeout. See [`Lock::contenders`](crate::Lock::contenders).
    ///
    /// # Errors
    ///
    /// Fails like [`Lock::contenders`](crate::Lock::contenders) does, and as [the module](super#errors) says. A client
    /// that has not connected yet also fails like [`Client::connect`](super::Client::connect) does.
    pub fn contenders(&self) -> Result<Vec<QueuedContender>, Error> {
        self.core.wait(Wait::Forever, None, crate::Lock::contenders)
    }

    /// Takes a contender out of the queue by deleting its node. Returns when that is done, with `false` if the node was
    /// already gone. **This breaks what the lock guards**, unless the contender is known to have stopped. See
    /// [`Lock::evict`](crate::Lock::evict).
    ///
    /// # Errors
    ///
    /// Fails like [`contenders`](Self::contenders) does; and with
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if `node` is not a contender of this lock.
    pub fn evict(&self, node: &str) -> Result<bool, Error> {
        self.core.wait(Wait::Forever, None, |lock| lock.evict(node))
    }

    /// Takes the lock away from all its holders, and returns them when that is done. **This breaks what the lock
    /// guards**, unless the holders are known to have stopped. See [`Lock::break_lock`](crate::Lock::break_lock).
    ///
    /// # Errors
    ///
    /// Fails like [`contenders`](Self::contenders) does.
    pub fn break_lock(&self) -> Result<Vec<QueuedContender>, Error> {
        self.core.wait(Wait::Forever, None, crate::Lock::break_lock)
    }

    /// Asks all holders of the lock to let it go, and returns them. It does not wait until they do. See
    /// [`Lock::revoke`](crate::Lock::revoke).
    ///
    /// # Errors
    ///
    /// Fails like [`Lock::revoke`](crate::Lock::revoke) does, and as [the module](super#errors) says.
    pub fn revoke(&self) -> Result<Vec<QueuedContender>, Error> {
        self.core.wait(Wait::Forever, None, crate::Lock::revoke)
    }

    /// Returns an observer, which reports who holds the lock and each new holder. It returns at once and costs no
    /// request. See [`Lock::observe`](crate::Lock::observe).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) for a set or a choice of locks and for a semaphore;
    /// [`ErrorKind::Forked`](crate::ErrorKind::Forked) if the client belongs to the parent process.
    pub fn observe(&self) -> Result<Observer, Error> {
        self.spec.check_observable()?;
        let lock = self.core.clone();
        let observe = move |client: &Connected| lock.of(client)?.get()?.observe().map(Mutex::new);
        Ok(Observer { core: Lazy::new(self.core.connector(), observe)? })
    }
}

/// A wait for a lock that goes on in the background. See [`Lock::start`].
///
/// Dropping it leaves the queue. If the lock was granted and the hold not fetched, the lock is released.
#[derive(Debug)]
#[must_use = "dropping it ends the wait"]
pub struct Ticket(Call<Hold>);

impl Ticket {
    /// Returns the result, once. `None` means that the wait goes on. It has ended 50 ms after its deadline.
    ///
    /// # Errors
    ///
    /// * Fails like [`Lock::acquire_timeout`] does;
    /// * [`ErrorKind::Lost`](crate::ErrorKind::Lost) if the lock was granted, but lost before it was fetched;
    /// * [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted) after [`cancel`](Self::cancel);
    /// * [`ErrorKind::NotHeld`](crate::ErrorKind::NotHeld) if the result was already fetched;
    /// * [`ErrorKind::Forked`](crate::ErrorKind::Forked) if the wait belongs to the parent process.
    pub fn fetch(&self) -> Option<Result<Hold, Error>> {
        self.0.fetch().map(|result| result.and_then(Hold::refuse_dead))
    }

    /// Returns when to fetch the result, at the latest: see [`Call::due`](crate::face::Call::due).
    #[doc(hidden)]
    pub fn due(&self) -> Option<Instant> {
        self.0.due()
    }

    /// Ends the wait. From now on [`fetch`](Self::fetch) gives [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted),
    /// unless there was a result already. The function `ready` is not called any more.
    pub fn cancel(&self) {
        self.0.cancel();
    }
}
