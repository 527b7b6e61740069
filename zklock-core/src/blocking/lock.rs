//! A lock, for threads.

use super::connector::{Connected, Connector};
use super::{Hold, Interrupt, Lazy, Observer};
use crate::contenders::QueuedContender;
use crate::error::Error;
use crate::owner::Owner;
use crate::spec::LockSpec;
use crate::threads::call::Call;
use crate::threads::io::refuse_to_block;
use crate::wait::Wait;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// A [`Lock`](crate::Lock) for threads.
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

    /// The lock of the core.
    #[doc(hidden)]
    pub fn core(&self) -> &Lazy<crate::Lock> {
        &self.core
    }

    /// The path of the lock.
    pub fn path(&self) -> &str {
        self.spec.path()
    }

    /// See [`Lock::spec`](crate::Lock::spec).
    pub fn spec(&self) -> &LockSpec {
        &self.spec
    }

    /// See [`Lock::acquire`](crate::Lock::acquire).
    pub fn acquire(&self) -> Result<Hold, Error> {
        self.acquire_within(Wait::Forever, None)
    }

    /// See [`Lock::acquire_timeout`](crate::Lock::acquire_timeout).
    pub fn acquire_timeout(&self, timeout: Duration) -> Result<Hold, Error> {
        self.acquire_within(timeout, None)
    }

    /// As [`acquire_timeout`](Self::acquire_timeout), or with `None` for ever, until the interrupt is triggered.
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
        self.core.wait(wait, interrupt, |lock| lock.acquire_as(owner, wait)).and_then(Hold::here)
    }

    /// See [`Lock::try_acquire`](crate::Lock::try_acquire).
    pub fn try_acquire(&self) -> Result<Option<Hold>, Error> {
        let owner = Owner::current();
        if let Some(hold) = self.at_once(owner)? {
            return Ok(Some(hold));
        }
        let hold = self.core.wait(Wait::Forever, None, |lock| lock.try_acquire_as(owner))?;
        hold.map(Hold::here).transpose()
    }

    /// Begins to wait for the lock, and returns at once. `ready` is called when the [ticket](Ticket::fetch) has the result:
    /// on the I/O thread, so it must not block.
    ///
    /// The wait is the owner's: [`Owner::ticket`] is one that holds nothing else, so its hold may be released from anywhere,
    /// even if the lock is reentrant.
    ///
    /// ```no_run
    /// use std::time::Duration;
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

    /// A hold without a request or a wait: one more of an owner that has one, if the lock is reentrant, or of a node that
    /// the process has [kept](crate::LockSpec::linger).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Lost`](crate::ErrorKind::Lost) if the outer hold is lost,
    /// [`ErrorKind::Unreachable`](crate::ErrorKind::Unreachable) if its lease has lapsed;
    /// [`ErrorKind::Closed`](crate::ErrorKind::Closed), [`ErrorKind::Forked`](crate::ErrorKind::Forked).
    pub fn at_once(&self, owner: Owner) -> Result<Option<Hold>, Error> {
        let Some(lock) = self.core.now()? else { return Ok(None) };
        // It is of this process, or there would be none now.
        Ok(lock.fixed().acquire_at_once(owner)?.map(|hold| Hold::new(lock.adopt(hold))))
    }

    /// See [`Lock::contenders`](crate::Lock::contenders).
    pub fn contenders(&self) -> Result<Vec<QueuedContender>, Error> {
        self.core.wait(Wait::Forever, None, crate::Lock::contenders)
    }

    /// See [`Lock::evict`](crate::Lock::evict).
    pub fn evict(&self, node: &str) -> Result<bool, Error> {
        self.core.wait(Wait::Forever, None, |lock| lock.evict(node))
    }

    /// See [`Lock::break_lock`](crate::Lock::break_lock).
    pub fn break_lock(&self) -> Result<Vec<QueuedContender>, Error> {
        self.core.wait(Wait::Forever, None, crate::Lock::break_lock)
    }

    /// See [`Lock::revoke`](crate::Lock::revoke).
    pub fn revoke(&self) -> Result<Vec<QueuedContender>, Error> {
        self.core.wait(Wait::Forever, None, crate::Lock::revoke)
    }

    /// See [`Lock::observe`](crate::Lock::observe).
    pub fn observe(&self) -> Result<Observer, Error> {
        self.spec.check_observable()?;
        let lock = self.core.clone();
        let observe = move |client: &Connected| lock.of(client)?.get()?.observe().map(Mutex::new);
        Ok(Observer { core: Lazy::new(self.core.connector(), observe)? })
    }
}

/// A wait for a lock that goes on by itself. See [`Lock::start`].
///
/// Dropping it leaves the queue, and releases the lock if it was granted and not fetched.
#[derive(Debug)]
#[must_use = "dropping it ends the wait"]
pub struct Ticket(Call<Hold>);

impl Ticket {
    /// The result, once: `None` as long as the wait goes on.
    ///
    /// # Errors
    ///
    /// * As [`Lock::acquire_timeout`];
    /// * [`ErrorKind::Lost`](crate::ErrorKind::Lost) if the lock was granted, and lost before it was
    ///   fetched;
    /// * [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted) after [`cancel`](Self::cancel);
    /// * [`ErrorKind::NotHeld`](crate::ErrorKind::NotHeld) if it was fetched before;
    ///   [`ErrorKind::Forked`](crate::ErrorKind::Forked).
    pub fn fetch(&self) -> Option<Result<Hold, Error>> {
        self.0.fetch().map(|result| result.and_then(Hold::refuse_dead))
    }

    /// Ends the wait: from now on [`fetch`](Self::fetch) gives
    /// [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted), unless there was a result already. What was to be called
    /// when it is ready is not called then.
    pub fn cancel(&self) {
        self.0.cancel();
    }
}
