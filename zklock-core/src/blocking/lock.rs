//! A lock, for threads.

use super::hold::Hold;
use super::home::{CoreClient, Home};
use super::lazy::Lazy;
use super::observer::Observer;
use crate::base::error::Error;
use crate::base::owner::Owner;
use crate::base::wait::Wait;
use crate::client::spec::LockSpec;
use crate::operator::contenders::QueuedContender;
use crate::threads::call::{Begun, Call};
use crate::threads::fork_safe::ForkSafe;
use crate::threads::interrupt::Interrupt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// A [`Lock`](crate::Lock) whose calls block the calling thread. The owner of a hold is that thread.
///
/// # Examples
///
/// ```no_run
/// use std::time::Duration;
///
/// # fn example(client: zklock_core::blocking::Client) -> Result<(), zklock_core::Error> {
/// let lock = client.mutex("/locks/report")?;
/// let hold = lock.acquire_timeout(Duration::from_secs(5))?;
/// // ... nobody else writes the report ...
/// hold.release()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Lock {
    pub(super) core: Lazy<crate::Lock>,
    spec: Arc<LockSpec>,
}

impl Lock {
    pub(super) fn new(home: &Home, spec: &LockSpec) -> Result<Self, Error> {
        spec.check()?;
        let spec = Arc::new(spec.clone());
        let of = spec.clone();
        let core = Lazy::new(home, move |client| client.get()?.lock(&of))?;
        Ok(Self { core, spec })
    }

    /// Returns the core's lock.
    #[doc(hidden)]
    pub fn core(&self) -> &Lazy<crate::Lock> {
        &self.core
    }

    /// Returns the path of the lock. See [`Lock::path`](crate::Lock::path).
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(lock: zklock_core::blocking::Lock) -> Result<(), zklock_core::Error> {
    /// if lock.try_acquire()?.is_none() {
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
    /// # use zklock_core::blocking::{Client, Lock};
    /// # fn example(lock: &Lock, other: &Client) -> Result<(), zklock_core::Error> {
    /// // The same lock, for another client.
    /// let same = other.lock(lock.spec())?;
    /// assert_eq!(same.path(), lock.path());
    /// # Ok(())
    /// # }
    /// ```
    pub fn spec(&self) -> &LockSpec {
        &self.spec
    }

    /// Blocks until the lock is held, and returns the hold. See [`Lock::acquire`](crate::Lock::acquire).
    ///
    /// # Errors
    ///
    /// Fails like [`Lock::acquire`](crate::Lock::acquire) does, and as [the module](super#errors) says. A client that has
    /// not connected yet also fails like [`Client::connect`](super::Client::connect) does.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(lock: zklock_core::blocking::Lock) -> Result<(), zklock_core::Error> {
    /// let hold = lock.acquire()?;
    /// // ... nobody else has the lock ...
    /// hold.release()?;
    /// # Ok(())
    /// # }
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use zklock_core::ErrorKind;
    ///
    /// # fn example(lock: zklock_core::blocking::Lock) -> Result<(), zklock_core::Error> {
    /// match lock.acquire_timeout(Duration::from_secs(5)) {
    ///     // The message names the holder.
    ///     Err(error) if error.kind() == ErrorKind::Timeout => println!("{error}"),
    ///     hold => hold?.release()?,
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn acquire_timeout(&self, timeout: Duration) -> Result<Hold, Error> {
        self.acquire_within(timeout, None)
    }

    /// Like [`acquire_timeout`](Self::acquire_timeout), but also ends when the interrupt is triggered. Without a time it
    /// waits for ever. After an interrupt, it leaves the queue like a wait that has timed out.
    ///
    /// # Errors
    ///
    /// Fails like [`acquire_timeout`](Self::acquire_timeout) does; and with
    /// [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted) if the interrupt is triggered first.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use zklock_core::Wait;
    ///
    /// # use zklock_core::blocking::{Interrupt, Lock};
    /// # fn example(lock: &Lock, interrupt: &Interrupt) -> Result<(), zklock_core::Error> {
    /// // Until the lock is held, or another thread triggers the interrupt.
    /// let hold = lock.acquire_within(Wait::Forever, Some(interrupt))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn acquire_within(
        &self,
        wait: impl Into<Wait>,
        interrupt: Option<&Interrupt>,
    ) -> Result<Hold, Error> {
        self.acquire_call(Owner::current(), wait).wait(interrupt)
    }

    /// Acquires the lock if it is free, and returns `None` if another contender holds it or is in the queue. It blocks
    /// until the ensemble answers, but no longer than the [try timeout](crate::ClientOptions::try_timeout). See
    /// [`Lock::try_acquire`](crate::Lock::try_acquire).
    ///
    /// # Errors
    ///
    /// Fails like [`Lock::try_acquire`](crate::Lock::try_acquire) does, and as [the module](super#errors) says. A client
    /// that has not connected yet also fails like [`Client::connect`](super::Client::connect) does.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(lock: zklock_core::blocking::Lock) -> Result<(), zklock_core::Error> {
    /// match lock.try_acquire()? {
    ///     Some(hold) => hold.release()?,
    ///     None => println!("somebody else does the job"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn try_acquire(&self) -> Result<Option<Hold>, Error> {
        let owner = Owner::current();
        let call = self.core.begin(Wait::Forever, move |lock| {
            let (here, value) = (lock.clone(), lock.value());
            Begun::goes_on(lock.io(), async move {
                Ok(value.try_acquire_as(owner).await?.map(|hold| Hold::new(here.adopt(hold))))
            })
        });
        call.wait(None)
    }

    /// Makes a call that acquires the lock. You can wait for it, or let it go on in the background.
    ///
    /// The hold will belong to `owner`. [`Owner::once`] makes an owner that holds nothing else: its hold may be released from
    /// anywhere, even if the lock is reentrant. If the call goes on in the background, the lock is held from the moment it is
    /// granted. If the hold is lost before you fetch it, the call fails with [`ErrorKind::Lost`](crate::ErrorKind::Lost).
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use zklock_core::{Owner, blocking::Lock};
    ///
    /// # fn example(lock: &Lock) -> Result<(), zklock_core::Error> {
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// let call = lock.acquire_call(Owner::once(), Duration::from_secs(5));
    /// let acquiring = call.detach(move || sender.send(()).unwrap())?;
    /// receiver.recv().unwrap();
    /// if let Some(result) = acquiring.fetch() {
    ///     let hold = result?;
    ///     hold.release()?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn acquire_call(&self, owner: Owner, wait: impl Into<Wait>) -> Call<Hold> {
        let wait = wait.into();
        let begin = move |lock: &ForkSafe<crate::Lock>| match lock.fixed().acquire_at_once(owner) {
            Ok(None) => {
                let (here, value) = (lock.clone(), lock.value());
                Begun::goes_on(lock.io(), async move {
                    Ok(Hold::new(here.adopt(value.queue_as(owner, wait).await?)))
                })
            }
            Ok(Some(hold)) => Begun::Over(Ok(Hold::new(lock.adopt(hold)))),
            Err(error) => Begun::Over(Err(error)),
        };
        self.core.begin(wait, begin).accepted(Hold::refuse_dead)
    }

    /// Lists the contenders in the queue, the holders first. Blocks until the ensemble answers, but no longer than the
    /// connect timeout. See [`Lock::contenders`](crate::Lock::contenders).
    ///
    /// # Errors
    ///
    /// Fails like [`Lock::contenders`](crate::Lock::contenders) does, and as [the module](super#errors) says. A client
    /// that has not connected yet also fails like [`Client::connect`](super::Client::connect) does.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(lock: zklock_core::blocking::Lock) -> Result<(), zklock_core::Error> {
    /// for contender in lock.contenders()? {
    ///     println!("{} {}", contender.identity, if contender.holds { "holds" } else { "waits" });
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn contenders(&self) -> Result<Vec<QueuedContender>, Error> {
        self.core.call(Wait::Forever, |lock| async move { lock.contenders().await }).wait(None)
    }

    /// Takes a contender out of the queue by deleting its node. Returns when that is done, with `false` if the node no
    /// longer existed. **This breaks what the lock guards**, unless the contender is known to have stopped. See
    /// [`Lock::evict`](crate::Lock::evict).
    ///
    /// # Errors
    ///
    /// Fails like [`contenders`](Self::contenders) does; and with
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if `node` is not a contender of this lock.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(lock: zklock_core::blocking::Lock) -> Result<(), zklock_core::Error> {
    /// for contender in lock.contenders()?.iter().filter(|contender| contender.identity == "db7/4711") {
    ///     lock.evict(&contender.node)?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn evict(&self, node: &str) -> Result<bool, Error> {
        let node = node.to_owned();
        self.core.call(Wait::Forever, |lock| async move { lock.evict(&node).await }).wait(None)
    }

    /// Takes the lock away from all its holders, and returns them when that is done. **This breaks what the lock
    /// guards**, unless the holders are known to have stopped. See [`Lock::break_lock`](crate::Lock::break_lock).
    ///
    /// # Errors
    ///
    /// Fails like [`contenders`](Self::contenders) does.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(lock: zklock_core::blocking::Lock) -> Result<(), zklock_core::Error> {
    /// for holder in lock.break_lock()? {
    ///     println!("{} held it", holder.identity);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn break_lock(&self) -> Result<Vec<QueuedContender>, Error> {
        self.core.call(Wait::Forever, |lock| async move { lock.break_lock().await }).wait(None)
    }

    /// Asks all holders of the lock to release it, and returns them. It does not wait until they do.
    /// See [`Lock::request_release`](crate::Lock::request_release).
    ///
    /// # Errors
    ///
    /// Fails like [`Lock::request_release`](crate::Lock::request_release) does, and as [the module](super#errors) says.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(lock: zklock_core::blocking::Lock) -> Result<(), zklock_core::Error> {
    /// for holder in lock.request_release()? {
    ///     println!("{} is asked to let it go", holder.identity);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn request_release(&self) -> Result<Vec<QueuedContender>, Error> {
        self.core.call(Wait::Forever, |lock| async move { lock.request_release().await }).wait(None)
    }

    /// Returns an observer, which reports who holds the lock and each new holder. It returns at once and sends no
    /// request. See [`Lock::observe`](crate::Lock::observe).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) for a set or a choice of locks and for a semaphore;
    /// [`ErrorKind::Forked`](crate::ErrorKind::Forked) if the client belongs to the parent process.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(client: zklock_core::blocking::Client) -> Result<(), zklock_core::Error> {
    /// let observer = client.election("/election/scheduler")?.observe()?;
    /// let leader = observer.next(None)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn observe(&self) -> Result<Observer, Error> {
        self.spec.check_observable()?;
        let lock = self.core.clone();
        let observe = move |client: &CoreClient| lock.of(client)?.get()?.observe().map(Mutex::new);
        Ok(Observer { core: Lazy::new(self.core.home(), observe)? })
    }
}
