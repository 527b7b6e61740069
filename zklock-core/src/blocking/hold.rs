//! A hold, for threads.

use super::loss::Loss;
use super::wanted::Wanted;
use super::watch::Watch;
use crate::base::error::{Error, LossReason};
use crate::base::owner::Owner;
use crate::base::wait::Wait;
use crate::hold::guarded::{CheckedWrites, Committed, Guarded};
use crate::hold::hold::HoldState;
use crate::hold::token::Token;
use crate::threads::call::{Begun, Call};
use crate::threads::descriptors::Listener;
use crate::threads::fork::Process;
use crate::threads::fork_safe::ForkSafe;
use crate::threads::interrupt::Interrupt;
use crate::zookeeper::ensemble::NodeData;
use std::sync::Arc;
use std::time::Duration;

/// A [`Hold`](crate::Hold) whose calls block the calling thread. Dropping it releases the lock in the background.
///
/// # Examples
///
/// ```no_run
/// # fn example(lock: zklock_core::blocking::Lock) -> Result<(), zklock_core::Error> {
/// let hold = lock.acquire()?;
/// println!("held with token {} for {:?} at least", hold.token(), hold.valid_for());
/// hold.release()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a lock is held only as long as its hold is kept: dropping it releases the lock"]
pub struct Hold {
    core: ForkSafe<crate::Hold>,
}

impl Hold {
    pub(super) fn new(core: ForkSafe<crate::Hold>) -> Self {
        Self { core }
    }

    /// Returns the core's hold.
    #[doc(hidden)]
    pub fn core(&self) -> &ForkSafe<crate::Hold> {
        &self.core
    }

    /// Returns the fencing token of this grant.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(hold: &zklock_core::blocking::Hold) {
    /// // The storage refuses a token that is smaller than the largest it has seen.
    /// store("report.csv", hold.token());
    /// # }
    /// # fn store(_: &str, _: zklock_core::Token) {}
    /// ```
    pub fn token(&self) -> Token {
        self.core.fixed().token()
    }

    /// Returns the path of the lock; see [`Lock::path`](crate::Lock::path).
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(hold: &zklock_core::blocking::Hold) {
    /// println!("do what {} stands for", hold.path());
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
    /// # fn example(hold: &zklock_core::blocking::Hold) {
    /// // An operator finds that node with `zklock ls`.
    /// println!("{} is held as {}", hold.path(), hold.node());
    /// # }
    /// ```
    pub fn node(&self) -> &str {
        self.core.fixed().node()
    }

    /// Returns the state of the hold. It is [lost](LossReason::Forked) in a forked child, and also [after the program has
    /// closed descriptors of zklock](super#descriptors).
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use zklock_core::HoldState;
    ///
    /// # fn example(hold: &zklock_core::blocking::Hold) {
    /// if let HoldState::Lost(reason) = hold.state() {
    ///     println!("stop: {reason}");
    /// }
    /// # }
    /// ```
    pub fn state(&self) -> HoldState {
        self.core.look(|| HoldState::Lost(self.core.io().opened().loss()), crate::Hold::state)
    }

    /// Returns how long the lock is certain to be held, even if the client hears nothing more from the ensemble. Zero
    /// means that others may hold it. It sends no request. See [`Hold::valid_for`](crate::Hold::valid_for).
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// # fn example(hold: &zklock_core::blocking::Hold) {
    /// // The next piece takes less than a second.
    /// if hold.valid_for() > Duration::from_secs(1) {
    ///     // ... nobody else has the lock before it is done ...
    /// }
    /// # }
    /// ```
    pub fn valid_for(&self) -> Duration {
        self.core.look(|| Duration::ZERO, crate::Hold::valid_for)
    }

    /// Checks that the lock is certain to be held for this time plus a hundredth of the session timeout. It sends no
    /// request and does not wait. See [`Hold::ensure`](crate::Hold::ensure).
    ///
    /// # Errors
    ///
    /// Fails like [`Hold::ensure`](crate::Hold::ensure) does, and with [`ErrorKind::Forked`](crate::ErrorKind::Forked) if the hold
    /// belongs to the parent process.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// # fn example(hold: &zklock_core::blocking::Hold) -> Result<(), zklock_core::Error> {
    /// // The request is given up after two seconds.
    /// hold.ensure(Duration::from_secs(2))?;
    /// send_the_request(hold.token(), Duration::from_secs(2));
    /// # Ok(())
    /// # }
    /// # fn send_the_request(_: zklock_core::Token, _: Duration) {}
    /// ```
    pub fn ensure(&self, needs: Duration) -> Result<(), Error> {
        self.core.get()?.ensure(needs)
    }

    /// Returns the process that it belongs to. It is hidden, because only the Python layer asks for it.
    #[doc(hidden)]
    pub fn process(&self) -> Process {
        self.core.io().process()
    }

    /// Returns whether this hold was released, even if it was lost before. It is hidden, because only the Python layer must
    /// tell these two apart.
    #[doc(hidden)]
    pub fn is_released(&self) -> bool {
        self.core.look(|| false, crate::Hold::is_released)
    }

    /// Calls `callback` when the hold is lost. It is not called if the hold is released, or the [`Watch`] dropped,
    /// first. The I/O thread calls it, so it must not block.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forked`](crate::ErrorKind::Forked) if the hold belongs to the parent process.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(hold: &zklock_core::blocking::Hold) -> Result<(), zklock_core::Error> {
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

    /// Calls `callback` when others want what this hold has. It is not called if the hold ends, or the [`Watch`] is
    /// dropped, first. The I/O thread calls it, so it must not block. See [`Hold::wanted`](crate::Hold::wanted).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forked`](crate::ErrorKind::Forked) if the hold belongs to the parent process.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(hold: &zklock_core::blocking::Hold) -> Result<(), zklock_core::Error> {
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

    /// Returns whether others are known to want what this hold has. It does not wait. See
    /// [`Hold::is_wanted`](crate::Hold::is_wanted).
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(hold: zklock_core::blocking::Hold) -> Result<(), zklock_core::Error> {
    /// for piece in 0..1_000 {
    ///     // ... work on this piece ...
    ///     if hold.is_wanted() {
    ///         break;
    ///     }
    /// }
    /// hold.release()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_wanted(&self) -> bool {
        self.core.look(|| false, crate::Hold::is_wanted)
    }

    /// Blocks until others want what this hold has, but no longer than `timeout`. Returns `false` if the hold ends
    /// first. Without a timeout it waits for ever. See [`Hold::wanted`](crate::Hold::wanted).
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::Timeout`](crate::ErrorKind::Timeout) if no other contender wants it by then;
    /// * [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted) if the interrupt is triggered;
    /// * [`ErrorKind::Forked`](crate::ErrorKind::Forked) if the hold belongs to the parent process;
    /// * [`ErrorKind::Deadlock`](crate::ErrorKind::Deadlock) in a callback.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(hold: zklock_core::blocking::Hold) -> Result<(), zklock_core::Error> {
    /// // Keep the lock until somebody else needs it.
    /// if hold.wait_wanted(None, None)? {
    ///     hold.release()?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn wait_wanted(
        &self,
        timeout: Option<Duration>,
        interrupt: Option<&Interrupt>,
    ) -> Result<bool, Error> {
        let wait = Wait::at_most(timeout);
        let wanted = |hold: Arc<crate::Hold>| async move { Ok(hold.notice().come().await) };
        self.core.call(move |hold| wait.bound(wanted(hold))).until(wait).wait(interrupt)
    }

    /// Returns a value that says whether others want what this hold has. You can poll it or wait for it. The hold
    /// looks out for others after this call; see [`Hold::wanted`](crate::Hold::wanted) for what that costs.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use zklock_core::blocking::{Hold, Wanted};
    ///
    /// # fn example(hold: &Hold) -> Result<(), zklock_core::Error> {
    /// // The work ends early if others wait. It cannot release the lock.
    /// work(&hold.wanted());
    /// hold.release()
    /// # }
    /// # fn work(_: &Wanted) {}
    /// ```
    pub fn wanted(&self) -> Wanted {
        // Not in a forked child, where its mutexes may be locked for ever.
        if let Ok(hold) = self.core.get() {
            hold.ask_for_notice();
        }
        Wanted::new(self.core.adopt(self.core.fixed().unasked_notice()))
    }

    /// Returns the loss of this hold as a value. Another thread can wait for it, for example.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(hold: &zklock_core::blocking::Hold) {
    /// let loss = hold.loss();
    /// std::thread::spawn(move || {
    ///     if let Ok(Some(reason)) = loss.wait(None, None) {
    ///         println!("stop: {reason}");
    ///     }
    /// });
    /// # }
    /// ```
    pub fn loss(&self) -> Loss {
        Loss { core: self.core.adopt(self.core.fixed().loss()) }
    }

    /// Asks the quorum whether the lock is still held, and returns how long it is certain to be held from now on. It
    /// blocks for what is left of the lease, or for a second if that is longer. See
    /// [`Hold::confirm`](crate::Hold::confirm).
    ///
    /// # Errors
    ///
    /// Fails like [`Hold::confirm`](crate::Hold::confirm) does, and as [the module](super#errors) says.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(hold: &zklock_core::blocking::Hold) -> Result<(), zklock_core::Error> {
    /// // Before a step that cannot be undone.
    /// let valid_for = hold.confirm()?;
    /// println!("nobody else holds the lock for the next {valid_for:?}");
    /// # Ok(())
    /// # }
    /// ```
    pub fn confirm(&self) -> Result<Duration, Error> {
        self.core.call(|hold| async move { hold.confirm().await }).wait(None)
    }

    /// Reads a node's data and its version; `None` if there is no such node. See [`Hold::read`](crate::Hold::read).
    ///
    /// # Errors
    ///
    /// Fails like [`Hold::read`](crate::Hold::read) does, and as [the module](super#errors) says.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(hold: &zklock_core::blocking::Hold) -> Result<(), zklock_core::Error> {
    /// if let Some(node) = hold.read("/report/state")? {
    ///     println!("version {}, {} bytes", node.version, node.data.len());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn read(&self, path: &str) -> Result<Option<NodeData>, Error> {
        let path = path.to_owned();
        self.core.call(|hold| async move { hold.read(&path).await }).wait(None)
    }

    /// Returns the identity of the ensemble, which a fence keeps together with the token. See
    /// [`Client::ensemble_id`](crate::Client::ensemble_id).
    ///
    /// # Errors
    ///
    /// Fails like [`Hold::ensemble_id`](crate::Hold::ensemble_id) does, and as [the module](super#errors) says.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(hold: &zklock_core::blocking::Hold) -> Result<(), zklock_core::Error> {
    /// let (ensemble, token) = (hold.ensemble_id()?, hold.token());
    /// # Ok(())
    /// # }
    /// ```
    pub fn ensemble_id(&self) -> Result<Arc<str>, Error> {
        self.core.call(|hold| async move { hold.ensemble_id().await }).wait(None)
    }

    /// Does all of the writes that `fill` adds, or none, and only if the lock is still held. Returns when they
    /// are committed. See [`Hold::guarded`](crate::Hold::guarded).
    ///
    /// # Errors
    ///
    /// Fails like [`Guarded::commit`](crate::Guarded::commit) does, and as [the module](super#errors) says.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(hold: &zklock_core::blocking::Hold) -> Result<(), zklock_core::Error> {
    /// hold.commit_guarded(|writes| writes.set_data("/report/state", b"done", None))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn commit_guarded<'a>(
        &'a self,
        fill: impl FnOnce(Guarded<'a>) -> Guarded<'a>,
    ) -> Result<Committed, Error> {
        let writes = fill(self.core.get()?.guarded()).checked()?;
        self.commit_call(writes).wait(None)
    }

    /// Makes the call of [`commit_guarded`](Self::commit_guarded).
    #[doc(hidden)]
    pub fn commit_call(&self, writes: CheckedWrites) -> Call<Committed> {
        self.core.call(|hold| async move { hold.commit_checked(writes).await })
    }

    /// Releases the lock, and returns when the ensemble has confirmed it, or after a session timeout, in which case
    /// the release goes on in the background. See [`Hold::release`](crate::Hold::release).
    ///
    /// # Errors
    ///
    /// Fails like [`Hold::release`](crate::Hold::release) does; with [`ErrorKind::Forked`](crate::ErrorKind::Forked) if
    /// the hold belongs to the parent process, and with [`ErrorKind::Deadlock`](crate::ErrorKind::Deadlock) in a
    /// callback. In these two cases nothing changes.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use zklock_core::ErrorKind;
    ///
    /// # fn example(hold: zklock_core::blocking::Hold) -> Result<(), zklock_core::Error> {
    /// match hold.release() {
    ///     Err(error) if matches!(error.kind(), ErrorKind::Lost(_)) => println!("check the report: {error}"),
    ///     released => released?,
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn release(&self) -> Result<(), Error> {
        self.release_call(Owner::current()).wait(None)
    }

    /// Makes the call of [`release`](Self::release). The release begins when the call does.
    #[doc(hidden)]
    pub fn release_call(&self, owner: Owner) -> Call<()> {
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
