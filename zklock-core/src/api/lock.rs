//! Locks: things that can be acquired.

use super::home::{CoreClient, Home};
use super::lazy::Lazy;
use super::observer::Observer;
use crate::base::error::Error;
#[cfg(doc)]
use crate::base::error::ErrorKind;
use crate::base::owner::Owner;
use crate::base::wait::Wait;
use crate::client::lock::Lock as CoreLock;
use crate::client::spec::LockSpec;
use crate::hold::hold::Hold;
use crate::operator::contenders::QueuedContender;
use crate::threads::call::{Begun, Call};
use crate::threads::fork_safe::ForkSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// A lock of any kind: a mutex, a side of a read/write lock, a semaphore, a set of locks, any one of several locks, or the
/// leadership of an election.
///
/// It is cheap to clone, and holds nothing itself: [`acquire`](Self::acquire) gives a [`Hold`].
///
/// # Examples
///
/// ```no_run
/// use std::time::Duration;
/// use zklock_core::{Client, ClientOptions};
///
/// # async fn example() -> Result<(), zklock_core::Error> {
/// let client = Client::connect(ClientOptions::new("zk1:2181,zk2:2181")?).await?;
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
    pub(super) core: Lazy<CoreLock>,
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

    /// Returns whether its client was used by a process from which this one was forked. It is useless here then.
    #[doc(hidden)]
    pub fn is_forked(&self) -> bool {
        self.core.is_forked()
    }

    /// Returns the path of the lock. For a set, the paths of its locks in alphabetical order, separated by commas; for a
    /// choice, the same in the order in which its locks were named.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(lock: zklock_core::Lock) -> Result<(), zklock_core::Error> {
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
    /// # fn example(lock: &zklock_core::Lock, other: &zklock_core::Client) -> Result<(), zklock_core::Error> {
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
    /// # async fn example(client: zklock_core::Client) -> Result<(), zklock_core::Error> {
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
    /// use zklock_core::ErrorKind;
    ///
    /// # async fn example(lock: zklock_core::Lock) -> Result<(), zklock_core::Error> {
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
    /// reports from memory that a lock is free. Tries of semaphores, sets, choices and exclusive locks always ask the servers.
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
    /// # async fn example(lock: zklock_core::Lock) -> Result<(), zklock_core::Error> {
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
        self.core.begin(Wait::Forever, move |lock| {
            let value = lock.clone();
            Begun::goes_on(lock.io(), async move { value.fixed().try_acquire_as(owner).await })
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
    /// use zklock_core::{Lock, Owner};
    ///
    /// # fn example(lock: &Lock) -> Result<(), zklock_core::Error> {
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
    pub fn acquire_as(&self, owner: Owner, wait: impl Into<Wait>) -> Call<Hold> {
        let wait = wait.into();
        let begin = move |lock: &ForkSafe<CoreLock>| match lock.fixed().acquire_at_once(owner) {
            Ok(None) => {
                let value = lock.clone();
                Begun::goes_on(lock.io(), async move { value.fixed().queue_as(owner, wait).await })
            }
            Ok(Some(hold)) => Begun::Over(Ok(hold)),
            Err(error) => Begun::Over(Err(error)),
        };
        self.core.begin(wait, begin).accepted(Hold::refuse_dead)
    }

    /// Lists the contenders in the queue, whatever their library. The holders come first.
    ///
    /// A set of locks that is first in the queue but still waits for another of its locks is listed first, but does not
    /// [hold](QueuedContender::holds) the lock.
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::Unreachable`] if the ensemble does not answer within the connect timeout;
    /// * [`ErrorKind::Refused`] if the access list does not allow reading the queue;
    /// * [`ErrorKind::Closed`] if the client is closed.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(lock: zklock_core::Lock) -> Result<(), zklock_core::Error> {
    /// for (position, contender) in lock.contenders().await?.iter().enumerate() {
    ///     println!("{position} {} {}", contender.identity, if contender.holds { "holds" } else { "waits" });
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn contenders(&self) -> Call<Vec<QueuedContender>> {
        self.core.call(Wait::Forever, |lock| async move { lock.fixed().contenders().await })
    }

    /// Takes any contender out of the queue by deleting its [node](QueuedContender::node). Returns `false` if the node no
    /// longer existed.
    ///
    /// **This breaks what the lock guards**, unless the contender is known to have stopped: until a holder learns of its
    /// loss, it believes that it holds the lock while another already does. It learns of the loss only if its library
    /// reports that. A waiter queues again. If it had just become the holder, it learns of the loss within a heartbeat.
    ///
    /// All nodes of an [exclusive](crate::Client::exclusive) lock have the same path. So this evicts the present holder, which
    /// may not be the one that you saw. [`break_lock`](Self::break_lock) evicts only the holders that it returns. The node's
    /// companion is deleted with it. Otherwise, a holder that is just releasing the lock could delete the node of the next
    /// holder.
    ///
    /// # Errors
    ///
    /// Fails like [`contenders`](Self::contenders) does, and with [`ErrorKind::InvalidInput`] if `node` is not a contender of
    /// this lock.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(lock: zklock_core::Lock) -> Result<(), zklock_core::Error> {
    /// for contender in lock.contenders().await? {
    ///     if contender.identity == "db7/4711" {
    ///         lock.evict(&contender.node).await?;
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn evict(&self, node: &str) -> Call<bool> {
        let node = node.to_owned();
        self.core.call(Wait::Forever, |lock| async move { lock.fixed().evict(&node).await })
    }

    /// Takes the lock away from all its holders, and returns them. Waiters stay, including a set of locks that is first in
    /// the queue and waits for another of its locks.
    ///
    /// **This breaks what the lock guards**, as [`evict`](Self::evict) explains.
    ///
    /// The node of an [exclusive](crate::Client::exclusive) lock is deleted in one transaction with its companion. So a later
    /// holder that has created the node again keeps it. There is no companion on servers of version 3.4, or if another
    /// library created the node. In these cases the node is read right before it is deleted, and a later holder's node is
    /// deleted by mistake if it is created between these two requests.
    ///
    /// # Errors
    ///
    /// Fails like [`contenders`](Self::contenders) does.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: zklock_core::Client) -> Result<(), zklock_core::Error> {
    /// for holder in client.mutex("/locks/report")?.break_lock().await? {
    ///     println!("{} held it", holder.identity);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn break_lock(&self) -> Call<Vec<QueuedContender>> {
        self.core.call(Wait::Forever, |lock| async move { lock.fixed().break_lock().await })
    }

    /// Asks all holders of the lock to release it, and returns them. This takes nothing away: a holder can [wait for such
    /// a request](crate::Hold::wanted), and keeps the lock until it releases it.
    ///
    /// The request is written as Curator's `Revoker` writes it: the data of the holder's node becomes `__REVOKE__`. So it
    /// reaches holders of zklock, in this process too, and holders of a Curator `InterProcessMutex` that called
    /// `makeRevocable`. Other libraries ignore it. Below that word, the node of a holder of zklock keeps its
    /// [identity](QueuedContender::identity). For a holder of another library, the word replaces it. On servers of version
    /// 3.4, if an [exclusive](crate::Client::exclusive) lock changes hands at the last moment, the next holder may be asked in
    /// place of the one that is returned.
    ///
    /// # Errors
    ///
    /// Fails like [`contenders`](Self::contenders) does, and with [`ErrorKind::Refused`] if the access list does not allow
    /// writing to a holder's node. All other holders have been asked even so.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: zklock_core::Client) -> Result<(), zklock_core::Error> {
    /// for holder in client.mutex("/locks/report")?.request_release().await? {
    ///     println!("{} is asked to let it go", holder.identity);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn request_release(&self) -> Call<Vec<QueuedContender>> {
        self.core.call(Wait::Forever, |lock| async move { lock.fixed().request_release().await })
    }

    /// Observes who holds the lock. For an election, that is the leader.
    ///
    /// It watches only the holder, so many processes can observe one lock without waking each other. If several hold it at
    /// once, it reports the first of them. It reports the first contender in the queue as the holder, even if that is a set
    /// of locks that still waits for another of its locks. [`contenders`](Self::contenders) tells the two apart.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) for a set of locks and for a semaphore.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: zklock_core::Client) -> Result<(), zklock_core::Error> {
    /// let mut observer = client.election("/election/scheduler")?.observe()?;
    /// loop {
    ///     match observer.next().await? {
    ///         Some(leader) => println!("{} leads", leader.identity),
    ///         None => println!("nobody leads"),
    ///     }
    /// }
    /// # }
    /// ```
    pub fn observe(&self) -> Result<Observer, Error> {
        self.spec.check_observable()?;
        let lock = self.core.clone();
        let observe = move |client: &CoreClient| lock.of(client)?.get()?.observe().map(Mutex::new);
        Ok(Observer { core: Lazy::new(self.core.home(), observe)? })
    }
}
