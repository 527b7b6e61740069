//! The proof that a lock is held.

use super::guarded::Guarded;
use super::loss::Loss;
use super::wanted::Wanted;
use super::watch::Watch;
#[cfg(doc)]
use crate::base::error::ErrorKind;
use crate::base::error::{Error, LossReason};
use crate::base::owner::Owner;
use crate::fence::Stamp;
use crate::hold::hold::{Hold as CoreHold, HoldState};
use crate::hold::token::Token;
use crate::threads::call::{Begun, Call};
use crate::threads::descriptors::Listener;
use crate::threads::fork::Process;
use crate::threads::fork_safe::ForkSafe;
use crate::zookeeper::ensemble::NodeData;
use std::sync::Arc;
use std::time::Duration;

/// The proof that a lock is held. Dropping it releases the lock in the background.
///
/// # Examples
///
/// ```no_run
/// # async fn example(lock: zklock_core::Lock) -> Result<(), zklock_core::Error> {
/// let hold = lock.acquire().await?;
/// tokio::select! {
///     () = write_the_report(hold.token()) => hold.release().await?,
///     reason = hold.lost() => println!("stop: {:?}", reason?),
/// }
/// # Ok(())
/// # }
/// # async fn write_the_report(_: zklock_core::Token) {}
/// ```
#[derive(Debug)]
#[must_use = "a lock is held only as long as its hold is kept: dropping it releases the lock"]
pub struct Hold {
    pub(super) core: ForkSafe<CoreHold>,
}

impl Hold {
    pub(crate) fn new(core: ForkSafe<CoreHold>) -> Self {
        Self { core }
    }

    /// Returns the fencing token of this grant.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(hold: &zklock_core::Hold) {
    /// // The storage refuses a token that is smaller than the largest it has seen.
    /// store("report.csv", hold.token()).await;
    /// # }
    /// # async fn store(_: &str, _: zklock_core::Token) {}
    /// ```
    pub fn token(&self) -> Token {
        self.core.fixed().token()
    }

    /// Returns the path of the lock; see [`Lock::path`](crate::Lock::path).
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: zklock_core::Client) -> Result<(), zklock_core::Error> {
    /// let either = client.any(&[client.mutex("/jobs/1")?, client.mutex("/jobs/2")?])?;
    /// let hold = either.acquire().await?;
    /// println!("do what {} stands for", hold.path());
    /// # Ok(())
    /// # }
    /// ```
    pub fn path(&self) -> &str {
        self.core.fixed().path()
    }

    /// Returns the path of the node that represents this hold. For a set of locks, and for several permits, it is the
    /// first.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(hold: &zklock_core::Hold) {
    /// // An operator finds that node with `zklock ls`.
    /// println!("{} is held as {}", hold.path(), hold.node());
    /// # }
    /// ```
    pub fn node(&self) -> &str {
        self.core.fixed().node()
    }

    /// Returns the paths of all nodes that represent this hold. If one of them is deleted, the hold is lost.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: zklock_core::Client) -> Result<(), zklock_core::Error> {
    /// let accounts = [client.mutex("/accounts/1")?, client.mutex("/accounts/2")?];
    /// let hold = client.all(&accounts)?.acquire().await?;
    /// assert_eq!(hold.nodes().count(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn nodes(&self) -> impl Iterator<Item = &str> {
        self.core.fixed().nodes()
    }

    /// Returns the state of the hold. It is [lost](LossReason::Forked) in a forked child, and also after the program has
    /// closed [descriptors](crate#descriptors) of zklock.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use zklock_core::HoldState;
    ///
    /// # fn example(hold: &zklock_core::Hold) {
    /// if hold.state() == HoldState::AtRisk {
    ///     println!("begin nothing new: the lock is certain for {:?} only", hold.valid_for());
    /// }
    /// # }
    /// ```
    pub fn state(&self) -> HoldState {
        self.core.look(|| HoldState::Lost(self.core.io().opened().loss()), CoreHold::state)
    }

    /// Returns how long the lock is certain to be held, even if the client hears nothing more from
    /// the ensemble.
    ///
    /// Zero means that others may hold it. The call sends no request. Its answer stays true for that time, whatever
    /// the network and the servers do, unless the hold is released or an operator ends it. But if the process is
    /// paused before it does the guarded work, that time may be over by then. The [`token`](Self::token) and
    /// [`guarded`](Self::guarded) writes protect against that.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// # fn example(hold: &zklock_core::Hold, pieces: &[u32]) {
    /// for piece in pieces {
    ///     // A piece takes less than a second.
    ///     if hold.valid_for() < Duration::from_secs(1) {
    ///         break;
    ///     }
    ///     work_on(*piece);
    /// }
    /// # }
    /// # fn work_on(_: u32) {}
    /// ```
    pub fn valid_for(&self) -> Duration {
        self.core.look(|| Duration::ZERO, CoreHold::valid_for)
    }

    /// Checks that the lock is certain to be held for this time plus a hundredth of the session timeout, even if
    /// the client hears nothing more from the ensemble. Call it before work that takes this long, so that you begin
    /// nothing that cannot end in time. The call sends no request and does not wait.
    ///
    /// A lease is never longer than half of the session timeout, and in normal operation seldom shorter than four tenths of
    /// it. If the process is paused after the call, its work may still be late: a [fence](crate::fence) refuses late
    /// writes.
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::AtRisk`] if the lease is shorter. Ask again later, or [`confirm`](Self::confirm) it;
    /// * [`ErrorKind::Lost`] if the hold is lost, [`ErrorKind::NotHeld`] if it was released;
    /// * [`ErrorKind::InvalidInput`] if no lease of this session can be that long.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// # async fn example(hold: &zklock_core::Hold) -> Result<(), zklock_core::Error> {
    /// // The request is given up after two seconds.
    /// hold.ensure(Duration::from_secs(2))?;
    /// send_the_request(hold.token(), Duration::from_secs(2)).await;
    /// # Ok(())
    /// # }
    /// # async fn send_the_request(_: zklock_core::Token, _: Duration) {}
    /// ```
    pub fn ensure(&self, needs: Duration) -> Result<(), Error> {
        self.core.get()?.ensure(needs)
    }

    /// Returns the process that it belongs to.
    #[doc(hidden)]
    pub fn process(&self) -> Process {
        self.core.io().process()
    }

    /// Returns whether this hold was released, even if it was lost before. It is hidden, because only the Python layer must
    /// tell these two apart.
    #[doc(hidden)]
    pub fn is_released(&self) -> bool {
        self.core.look(|| false, CoreHold::is_released)
    }

    /// Runs `work` while the lock is held, and returns its output. If the hold is lost, this drops `work` where it awaits, and
    /// returns the reason. If the hold is released, `work` goes on.
    ///
    /// A future that blocks its thread cannot be stopped until it awaits again.
    ///
    /// # Cancel safety
    ///
    /// Dropping the call drops the work.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(lock: zklock_core::Lock) -> Result<(), zklock_core::Error> {
    /// let hold = lock.acquire().await?;
    /// match hold.run(write_the_report()).await {
    ///     Ok(pages) => println!("{pages} pages"),
    ///     Err(reason) => println!("stopped, others may write it: {reason}"),
    /// }
    /// hold.release().await
    /// # }
    /// # async fn write_the_report() -> u32 { 0 }
    /// ```
    pub async fn run<F: Future>(&self, work: F) -> Result<F::Output, LossReason> {
        let loss = match self.core.get() {
            Ok(hold) => hold.loss(),
            Err(_) => return Err(self.core.io().opened().loss()),
        };
        tokio::select! {
            biased;
            Some(reason) = loss.come() => Err(reason),
            output = work => Ok(output),
        }
    }

    /// Waits until the hold is lost, and returns the reason; `None` if the hold is released instead. The holds of a
    /// reentrant owner are lost together, and released with the last of them.
    ///
    /// # Cancel safety
    ///
    /// The call may be dropped, and made again.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(hold: zklock_core::Hold) -> Result<(), zklock_core::Error> {
    /// tokio::select! {
    ///     () = write_the_report() => hold.release().await?,
    ///     Ok(Some(reason)) = hold.lost() => println!("stopped, others may write it: {reason}"),
    /// }
    /// # Ok(())
    /// # }
    /// # async fn write_the_report() {}
    /// ```
    pub fn lost(&self) -> Call<Option<LossReason>> {
        self.loss().lost()
    }

    /// Returns the loss of this hold as a value. Another thread or task can wait for it, for example.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(hold: &zklock_core::Hold) {
    /// let loss = hold.loss();
    /// std::thread::spawn(move || {
    ///     if let Ok(Some(reason)) = loss.lost().wait() {
    ///         println!("stop: {reason}");
    ///     }
    /// });
    /// # }
    /// ```
    pub fn loss(&self) -> Loss {
        Loss { core: self.core.adopt(self.core.fixed().loss()) }
    }

    /// Calls `callback` when the hold is lost. It is not called if the hold is released, or the [`Watch`] dropped,
    /// first. A task of the client calls it, so it must not block.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forked`] if the hold belongs to the parent process.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(hold: &zklock_core::Hold) -> Result<(), zklock_core::Error> {
    /// let _watch = hold.on_lost(|reason| eprintln!("stop: {reason}"))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_lost(&self, callback: impl FnOnce(LossReason) + Send + 'static) -> Result<Watch, Error> {
        let loss = self.core.get()?.loss();
        let listener = Listener::once(LossReason::ClientClosed, callback);
        Ok(Watch::start(self.core.io(), listener, |listener| async move {
            if let Some(reason) = loss.come().await {
                Listener::call(&listener, reason);
            }
        }))
    }

    /// Waits until another contender wants what this hold has, in any process and with any library. Use it to finish early,
    /// or to release the lock between two pieces of work. Returns `false` if the hold is released or lost instead. A
    /// request by [`request_release`](crate::Lock::request_release), or by Curator's `Revoker`, counts too.
    ///
    /// The first call lists the lock's queue, reads the hold's own nodes, and sets watches that fire when the next contender
    /// queues or asks. A hold on which this is never called costs nothing. Readers do not wait for readers, so other readers
    /// do not make a reader's hold wanted. The answer is what was seen last: it may stay true after the other contender has
    /// given up. A contender for another permit of a semaphore counts too, even if a permit is free for it. An [exclusive
    /// lock](crate::Client::exclusive) has no queue: only waiters of this client, and requests to release it, are seen
    /// there.
    ///
    /// # Cancel safety
    ///
    /// The call may be dropped, and made again.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(hold: zklock_core::Hold) -> Result<(), zklock_core::Error> {
    /// tokio::select! {
    ///     Ok(true) = hold.wanted() => hold.release().await?,
    ///     _ = hold.lost() => {}
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn wanted(&self) -> Call<bool> {
        self.watch_wanted().wanted()
    }

    /// Returns whether another contender is known to wait for what this hold has, or to have asked for its release. It
    /// does not wait for the servers: the first call starts looking in the background. See [`wanted`](Self::wanted).
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(hold: zklock_core::Hold) -> Result<(), zklock_core::Error> {
    /// for piece in 0..1_000 {
    ///     work_on(piece);
    ///     if hold.is_wanted() {
    ///         break;
    ///     }
    /// }
    /// hold.release().await
    /// # }
    /// # fn work_on(_: u32) {}
    /// ```
    pub fn is_wanted(&self) -> bool {
        self.core.look(|| false, CoreHold::is_wanted)
    }

    /// Returns a value that says whether others want what this hold has. The hold
    /// looks out for others after this call; see [`wanted`](Self::wanted) for what that costs.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use zklock_core::{Hold, Wanted};
    ///
    /// # fn example(hold: &Hold) -> Result<(), zklock_core::Error> {
    /// // The work ends early if others wait. It cannot release the lock.
    /// work(&hold.watch_wanted());
    /// hold.release().wait()
    /// # }
    /// # fn work(_: &Wanted) {}
    /// ```
    pub fn watch_wanted(&self) -> Wanted {
        // Not in a forked child, where its mutexes may be locked for ever.
        if let Ok(hold) = self.core.get() {
            hold.ask_for_notice();
        }
        Wanted { core: self.core.adopt(self.core.fixed().unasked_notice()) }
    }

    /// Calls `callback` when others want what this hold has. It is not called if the hold ends, or the [`Watch`] is
    /// dropped, first. A task of the client calls it, so it must not block. See [`wanted`](Self::wanted).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forked`] if the hold belongs to the parent process.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(hold: &zklock_core::Hold) -> Result<(), zklock_core::Error> {
    /// let _watch = hold.on_wanted(|| eprintln!("somebody waits: make haste"))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_wanted(&self, callback: impl FnOnce() + Send + 'static) -> Result<Watch, Error> {
        let wanted = self.core.get()?.notice();
        // At the end there is nothing left that others could want.
        let listener = Listener::once(false, |is_wanted| {
            if is_wanted {
                callback();
            }
        });
        Ok(Watch::start(self.core.io(), listener, |listener| async move {
            Listener::call(&listener, wanted.come().await);
        }))
    }

    /// Asks the quorum whether the lock is still held, and returns how long it is certain to be held from now on.
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::Lost`] if it is not;
    /// * [`ErrorKind::Unreachable`] if the ensemble did not answer while the lease ran (or within a second, if less
    ///   than a second was left);
    /// * [`ErrorKind::NotHeld`] if the hold was released, even while the call waited.
    ///
    /// # Cancel safety
    ///
    /// Dropping the call changes nothing.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(hold: &zklock_core::Hold) -> Result<(), zklock_core::Error> {
    /// // Before a step that cannot be undone.
    /// let valid_for = hold.confirm().await?;
    /// println!("nobody else holds the lock for the next {valid_for:?}");
    /// # Ok(())
    /// # }
    /// ```
    pub fn confirm(&self) -> Call<Duration> {
        self.core.call(|hold| async move { hold.confirm().await })
    }

    /// Starts a list of writes to ZooKeeper that are done only if the lock is still held when the quorum commits them.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(hold: &zklock_core::Hold) -> Result<(), zklock_core::Error> {
    /// hold.guarded().set_data("/report/state", b"done", None).commit().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn guarded(&self) -> Guarded {
        Guarded::of(&self.core)
    }

    /// Reads a node's data and its version; `None` if there is no such node.
    ///
    /// The data is at least as recent as everything that the ensemble had committed when this was called. It shows the
    /// final outcome of every earlier guarded write of this hold, even of one whose reply was lost. So after an
    /// [`Uncertain`](ErrorKind::Uncertain) commit, read what it should have written, then decide. This works while the
    /// client is open, even when the hold is lost or released.
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::Unreachable`] if the ensemble did not answer within a session timeout, or within two seconds if that
    ///   is longer, or if one server has ended the hold's session but the ensemble has not confirmed that by then;
    /// * [`ErrorKind::Refused`] if the access list does not allow reading it;
    /// * [`ErrorKind::InvalidInput`] for a bad path;
    /// * [`ErrorKind::Closed`] if the client is closed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the call changes nothing.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(hold: &zklock_core::Hold) -> Result<(), zklock_core::Error> {
    /// use zklock_core::ErrorKind;
    ///
    /// // Without a version the write would be done whatever the node holds by then.
    /// let Some(before) = hold.read("/report/state").await? else { return Ok(()) };
    /// match hold.guarded().set_data("/report/state", b"done", Some(before.version)).commit().await {
    ///     Err(error) if error.kind() == ErrorKind::Uncertain => {
    ///         let after = hold.read("/report/state").await?;
    ///         println!("written: {}", after.is_some_and(|after| after.version > before.version));
    ///     }
    ///     written => println!("version {:?}", written?.versions()),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn read(&self, path: &str) -> Call<Option<NodeData>> {
        let path = path.to_owned();
        self.core.call(|hold| async move { hold.read(&path).await })
    }

    /// Returns the identity of the ensemble, which a fence keeps together with the token. See
    /// [`Client::ensemble_id`](crate::Client::ensemble_id).
    ///
    /// # Errors
    ///
    /// Fails like [`Client::ensemble_id`](crate::Client::ensemble_id) does, but gives up after a session timeout, or after two
    /// seconds if that is longer; and with [`ErrorKind::Lost`] if the hold is lost and the client had not asked before, because
    /// it may be connected to another ensemble now.
    ///
    /// # Cancel safety
    ///
    /// Dropping the call changes nothing that a later call would not do.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(hold: &zklock_core::Hold) -> Result<(), zklock_core::Error> {
    /// let (ensemble, token) = (hold.ensemble_id().await?, hold.token());
    /// # Ok(())
    /// # }
    /// ```
    pub fn ensemble_id(&self) -> Call<Arc<str>> {
        self.core.call(|hold| async move { hold.ensemble_id().await })
    }

    /// Releases the lock, and waits until the ensemble has confirmed it.
    ///
    /// With a reentrant lock, only the release of the owner's last hold reaches the ensemble.
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::Lost`] if the hold had been lost;
    /// * [`ErrorKind::NotOwner`] if the lock is reentrant and the caller is not the hold's owner. Nothing changes;
    /// * [`ErrorKind::NotHeld`] if this hold has already been released;
    /// * [`ErrorKind::Refused`] if the access list does not allow deleting its node. The lock is still free,
    ///   because the client closed the session, and the servers deleted its nodes. All other holds of that session
    ///   are lost, for the reason [`LossReason::SessionClosed`];
    /// * [`ErrorKind::Timeout`] if the ensemble has not answered within a session timeout. The release goes on in the
    ///   background;
    /// * [`ErrorKind::Unreachable`] if the session can no longer connect, for example after a change of passwords.
    ///   The lock is free when the ensemble ends the session, a session timeout after it last heard from the
    ///   client.
    ///
    /// # Cancel safety
    ///
    /// The release begins with the first poll. Dropping the call only stops the waiting.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use zklock_core::ErrorKind;
    ///
    /// # async fn example(hold: zklock_core::Hold) -> Result<(), zklock_core::Error> {
    /// match hold.release().await {
    ///     Err(error) if matches!(error.kind(), ErrorKind::Lost(_)) => println!("check the report: {error}"),
    ///     released => released?,
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn release(&self) -> Call<()> {
        self.release_as(Owner::current())
    }

    /// Like [`release`](Self::release), for the given owner.
    #[doc(hidden)]
    pub fn release_as(&self, owner: Owner) -> Call<()> {
        self.core.begin(move |hold| match hold.fixed().begin_release(owner) {
            Ok(Some(rest)) => Begun::goes_on(hold.io(), rest),
            Ok(None) => Begun::Over(Ok(())),
            Err(error) => Begun::Over(Err(error)),
        })
    }

    /// Releases the lock in the background, like dropping the hold does, but without checking the owner, and even while
    /// other code still has the hold. It is hidden, because only the C and Python layers share holds with such code.
    #[doc(hidden)]
    pub fn let_go(&self) {
        if let Ok(hold) = self.core.get() {
            hold.let_go();
        }
    }

    /// This hold, or an error if it has been lost since it was granted.
    #[doc(hidden)]
    pub fn refuse_dead(self) -> Result<Self, Error> {
        if !self.valid_for().is_zero() {
            return Ok(self);
        }
        let reason = match self.state() {
            HoldState::Lost(reason) => reason,
            _ => LossReason::LeaseLapsed,
        };
        Err(Error::lost(reason, self.path()))
    }
}

impl Stamp {
    /// Makes the stamp of a hold. Its name is the path of the lock. The first stamp of a client asks the servers for the
    /// ensemble's identity.
    ///
    /// # Errors
    ///
    /// Fails like [`Hold::ensemble_id`] does, and like [`new`](Self::new).
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(hold: &zklock_core::Hold) -> Result<(), zklock_core::Error> {
    /// let stamp = zklock_core::fence::Stamp::of(hold).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn of(hold: &Hold) -> Call<Self> {
        let new = async |hold: Arc<CoreHold>| {
            Self::new(hold.path(), &hold.ensemble_id().await?, hold.token().value())
        };
        hold.core.call(new)
    }
}
