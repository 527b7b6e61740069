//! The proof that a lock is held.

use crate::base::clock;
use crate::base::error::{Error, ErrorKind, LossReason};
use crate::base::lock_figures::LockFigures;
use crate::base::owner::Owner;
use crate::connect::path::check_path;
use crate::hold::grant::Grant;
use crate::hold::loss::Loss;
use crate::hold::released::{Followed, Released};
use crate::hold::token::Token;
use crate::hold::wanted::Wanted;
use crate::machine::callers::ReleaseOutcome;
use crate::machine::lease::longest;
use crate::machine::status::Status;
use crate::machine::times;
use crate::session::ask::ask_within;
use crate::session::ensemble_id;
use crate::session::session::Session;
use crate::threads::call::{Beginning, Call};
use crate::threads::descriptors::Listener;
use crate::threads::fork::Process;
use crate::threads::fork_safe::ForkSafe;
use crate::threads::watch::Watch;
use crate::zookeeper::ensemble::NodeData;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use zklock_machine::listed;

/// The least time that a read is given, however short the session timeout.
const READ_AT_LEAST: Duration = Duration::from_secs(2);

listed! {
    /// The state of a hold.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(hold: &zklock::Hold) {
    /// use zklock::HoldState;
    ///
    /// match hold.state() {
    ///     HoldState::Held => {}
    ///     HoldState::AtRisk => println!("out of touch, {:?} left", hold.valid_for()),
    ///     state => println!("stop: {state:?}"),
    /// }
    /// # }
    /// ```
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    #[non_exhaustive]
    pub enum HoldState {
        /// The lock is held, and the ensemble has confirmed it recently.
        Held,
        /// The ensemble is unreachable or late. The lock is held for as long as [`valid_for`](Hold::valid_for) says;
        /// after that, others may hold it.
        AtRisk,
        /// The lock is no longer held. This is final.
        Lost(LossReason),
        /// The hold was released.
        Released,
    }
}

/// The proof that a lock is held. Dropping it releases the lock in the background.
///
/// # Examples
///
/// ```no_run
/// # async fn example(lock: zklock::Lock) -> Result<(), zklock::Error> {
/// let hold = lock.acquire().await?;
/// tokio::select! {
///     () = write_the_report(hold.token()) => hold.release().await?,
///     reason = hold.lost() => println!("stop: {:?}", reason?),
/// }
/// # Ok(())
/// # }
/// # async fn write_the_report(_: zklock::Token) {}
/// ```
#[must_use = "a lock is held only as long as its hold is kept: dropping it releases the lock"]
pub struct Hold {
    held: ForkSafe<Held>,
}

struct Held {
    grant: Arc<Grant>,
    /// This hold's own: the grant outlives it while the owner has others.
    released: Arc<Released>,
}

impl Hold {
    pub(crate) fn new(grant: Arc<Grant>) -> Self {
        let io = grant.slot.io.clone();
        Self { held: ForkSafe::new(Held { grant, released: Arc::default() }, io) }
    }

    /// Returns this hold once more. It is released when the last of these is dropped.
    pub(super) fn share(&self) -> Self {
        Self { held: self.held.clone() }
    }

    pub(super) fn grant(&self) -> &Arc<Grant> {
        &self.held.fixed().grant
    }

    /// Counts its grant among these figures, unless it is counted among some already.
    pub(crate) fn count_among(&self, figures: &Arc<LockFigures>) {
        self.grant().count_among(figures);
    }

    /// Makes a call that keeps the hold until it is over.
    pub(crate) fn call<R, F>(&self, call: impl FnOnce(Self) -> F + Send + 'static) -> Call<R>
    where
        R: Send + 'static,
        F: Future<Output = Result<R, Error>> + Send + 'static,
    {
        self.held.call(|held| call(Self { held }))
    }

    /// Returns the fencing token of this grant.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(hold: &zklock::Hold) {
    /// // The storage refuses a token that is smaller than the largest it has seen.
    /// store("report.csv", hold.token()).await;
    /// # }
    /// # async fn store(_: &str, _: zklock::Token) {}
    /// ```
    pub fn token(&self) -> Token {
        self.grant().token()
    }

    /// Returns the path of the lock; see [`Lock::path`](crate::Lock::path).
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: zklock::Client) -> Result<(), zklock::Error> {
    /// let either = client.any(&[client.mutex("/jobs/1")?, client.mutex("/jobs/2")?])?;
    /// let hold = either.acquire().await?;
    /// println!("do what {} stands for", hold.path());
    /// # Ok(())
    /// # }
    /// ```
    pub fn path(&self) -> &str {
        self.grant().path()
    }

    /// Returns the path of the node that represents this hold. For a set of locks, and for several permits, it is the
    /// first.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(hold: &zklock::Hold) {
    /// // An operator finds that node with `zklock ls`.
    /// println!("{} is held as {}", hold.path(), hold.node());
    /// # }
    /// ```
    pub fn node(&self) -> &str {
        self.grant().holding().node()
    }

    /// Returns the paths of all nodes that represent this hold. If one of them is deleted, the hold is lost.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: zklock::Client) -> Result<(), zklock::Error> {
    /// let accounts = [client.mutex("/accounts/1")?, client.mutex("/accounts/2")?];
    /// let hold = client.all(&accounts)?.acquire().await?;
    /// assert_eq!(hold.nodes().count(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn nodes(&self) -> impl Iterator<Item = &str> {
        self.grant().holding().nodes.iter().map(|node| &**node)
    }

    /// Returns the state of the hold. It is [lost](LossReason::Forked) in a forked child, and also after the program has
    /// closed [descriptors](crate#descriptors) of zklock.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use zklock::HoldState;
    ///
    /// # fn example(hold: &zklock::Hold) {
    /// if hold.state() == HoldState::AtRisk {
    ///     println!("begin nothing new: the lock is certain for {:?} only", hold.valid_for());
    /// }
    /// # }
    /// ```
    pub fn state(&self) -> HoldState {
        let lost = || HoldState::Lost(self.held.loss());
        self.held.look(lost, |held| match held.grant.holding().status() {
            _ if held.released.is_before() => HoldState::Released,
            Status::Lost(reason) => HoldState::Lost(reason),
            _ if held.released.is_set() => HoldState::Released,
            Status::Releasing | Status::Stuck | Status::Released | Status::Freed => HoldState::Released,
            Status::Held if held.grant.is_at_risk() => HoldState::AtRisk,
            Status::Held => HoldState::Held,
        })
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
    /// # fn example(hold: &zklock::Hold, pieces: &[u32]) {
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
        let none = || Duration::ZERO;
        self.held.look(none, |held| {
            let valid_for = held.grant.session().valid_for(held.grant.holding());
            // Checked last: the node may have been passed on, and the lease would then be the next holder's.
            if held.released.is_set() { Duration::ZERO } else { valid_for }
        })
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
    /// # async fn example(hold: &zklock::Hold) -> Result<(), zklock::Error> {
    /// // The request is given up after two seconds.
    /// hold.ensure(Duration::from_secs(2))?;
    /// send_the_request(hold.token(), Duration::from_secs(2)).await;
    /// # Ok(())
    /// # }
    /// # async fn send_the_request(_: zklock::Token, _: Duration) {}
    /// ```
    pub fn ensure(&self, needs: Duration) -> Result<(), Error> {
        self.held.get()?;
        let (valid_for, timeout) = (self.valid_for(), self.grant().session().timeout());
        let needs = needs.saturating_add(times::MARGIN.of(timeout));
        if valid_for >= needs {
            return Ok(());
        }
        // Looked at last: the hold may have been released or lost at any moment before.
        self.refuse_released()?;
        self.grant().check_not_lost()?;
        let (path, longest) = (self.path(), longest(timeout));
        if needs > longest {
            let message = format!(
                "no hold of {path} is ever certain for {needs:?}: with a session timeout of {timeout:?}, a \
                 lease is {longest:?} at most; do the work in smaller parts, or ask for a longer session \
                 timeout"
            );
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        let message = format!(
            "the hold of {path} is certain for {valid_for:?}, and {needs:?} are needed: begin nothing; ask again, or confirm the hold"
        );
        Err(Error::new(ErrorKind::AtRisk, message))
    }

    /// Returns the process that it belongs to.
    #[doc(hidden)]
    pub fn process(&self) -> Process {
        self.held.io().process()
    }

    /// Returns whether this hold was released, even if it was lost before. It is hidden, because only the Python layer must
    /// tell these two apart.
    #[doc(hidden)]
    pub fn is_released(&self) -> bool {
        self.held.look(|| false, |held| held.released.is_set())
    }

    fn refuse_released(&self) -> Result<(), Error> {
        if self.held.fixed().released.is_set() { Err(self.grant().not_held()) } else { Ok(()) }
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
    /// # async fn example(lock: zklock::Lock) -> Result<(), zklock::Error> {
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
        if self.held.get().is_err() {
            return Err(self.held.loss());
        }
        tokio::select! {
            biased;
            Some(reason) = self.loss().come() => Err(reason),
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
    /// # async fn example(hold: zklock::Hold) -> Result<(), zklock::Error> {
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
    /// # fn example(hold: &zklock::Hold) {
    /// let loss = hold.loss();
    /// std::thread::spawn(move || {
    ///     if let Ok(Some(reason)) = loss.lost().wait() {
    ///         println!("stop: {reason}");
    ///     }
    /// });
    /// # }
    /// ```
    pub fn loss(&self) -> Loss {
        Loss { end: self.followed() }
    }

    fn followed(&self) -> ForkSafe<Followed> {
        let Held { grant, released } = self.held.fixed();
        let followed = Followed { state: grant.holding().watch(), released: released.clone() };
        ForkSafe::new(followed, self.held.io().clone())
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
    /// # fn example(hold: &zklock::Hold) -> Result<(), zklock::Error> {
    /// let _watch = hold.on_lost(|reason| eprintln!("stop: {reason}"))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_lost(&self, callback: impl FnOnce(LossReason) + Send + 'static) -> Result<Watch, Error> {
        self.held.get()?;
        let loss = self.loss();
        let listener = Listener::once(LossReason::ClientClosed, callback);
        Ok(Watch::start(self.held.io(), listener, |listener| async move {
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
    /// lock](crate::Client::single_node) has no queue: only waiters of this client, and requests to release it, are seen
    /// there.
    ///
    /// # Cancel safety
    ///
    /// The call may be dropped, and made again.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(hold: zklock::Hold) -> Result<(), zklock::Error> {
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
    /// # async fn example(hold: zklock::Hold) -> Result<(), zklock::Error> {
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
        self.watch_wanted().is_set()
    }

    /// Returns a value that says whether others want what this hold has. The hold
    /// looks out for others after this call; see [`wanted`](Self::wanted) for what that costs.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use zklock::Hold;
    /// use zklock::further::Wanted;
    ///
    /// # fn example(hold: &Hold) -> Result<(), zklock::Error> {
    /// // The work ends early if others wait. It cannot release the lock.
    /// work(&hold.watch_wanted());
    /// hold.release().wait()
    /// # }
    /// # fn work(_: &Wanted) {}
    /// ```
    pub fn watch_wanted(&self) -> Wanted {
        // Not in a forked child, where its mutexes may be locked for ever.
        if self.held.get().is_ok_and(|held| !held.released.is_set()) {
            self.grant().holding().ask_for_notice();
        }
        Wanted { notice: self.followed() }
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
    /// # fn example(hold: &zklock::Hold) -> Result<(), zklock::Error> {
    /// let _watch = hold.on_wanted(|| eprintln!("somebody waits: make haste"))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_wanted(&self, callback: impl FnOnce() + Send + 'static) -> Result<Watch, Error> {
        self.held.get()?;
        let wanted = self.watch_wanted();
        // At the end there is nothing left that others could want.
        let listener = Listener::once(false, |is_wanted| {
            if is_wanted {
                callback();
            }
        });
        Ok(Watch::start(self.held.io(), listener, |listener| async move {
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
    /// # async fn example(hold: &zklock::Hold) -> Result<(), zklock::Error> {
    /// // Before a step that cannot be undone.
    /// let valid_for = hold.confirm().await?;
    /// println!("nobody else holds the lock for the next {valid_for:?}");
    /// # Ok(())
    /// # }
    /// ```
    pub fn confirm(&self) -> Call<Duration> {
        self.call(|hold| async move {
            hold.refuse_released()?;
            let patience = hold.valid_for().max(Duration::from_secs(1));
            let confirmed = tokio::select! {
                biased;
                // After a release or a loss, the answer would change nothing.
                _ = hold.loss().come() => None,
                confirmed = clock::timeout(patience, hold.ask()) => confirmed.ok().flatten(),
            };
            confirmed.ok_or_else(|| hold.unconfirmed())
        })
    }

    /// Returns how long the hold is certain to last, if the quorum confirms it.
    async fn ask(&self) -> Option<Duration> {
        let grant = self.grant();
        // A lapsed lease takes two checks to be restored.
        for _ in 0..2 {
            let is_answered = grant.session().clone().prove(grant.holding()).await;
            grant.check_not_lost().ok()?;
            let valid_for = self.valid_for();
            if is_answered && !valid_for.is_zero() {
                return Some(valid_for);
            }
        }
        None
    }

    /// Returns why the hold could not be confirmed. Call it last: the hold may have been released or lost at any
    /// moment before.
    fn unconfirmed(&self) -> Error {
        self.refuse_released().err().unwrap_or_else(|| self.grant().unheard())
    }

    /// Reads a node's data and its version; `None` if there is no such node.
    ///
    /// The data is at least as recent as everything that the ensemble had committed when this was called. So after an
    /// [`Uncertain`](ErrorKind::Uncertain) commit, read what it should have written. If it is not there, write again, with the
    /// version that you have read: at most one of the two writes is done. (While the hold lasts, a server that was cut off
    /// may still do the first one.) Once the hold is released or lost, the answer is final. This works while the client is
    /// open.
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
    /// # async fn example(hold: &zklock::Hold) -> Result<(), zklock::Error> {
    /// use zklock::ErrorKind;
    ///
    /// while let Some(state) = hold.read("/report/state").await?.filter(|state| state.data != b"done") {
    ///     match hold.guarded().set_data("/report/state", b"done", Some(state.version)).commit().await {
    ///         Err(error) if error.kind() == ErrorKind::Uncertain => {}
    ///         written => println!("version {:?}", written?.versions()),
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn read(&self, path: &str) -> Call<Option<NodeData>> {
        let path = Arc::<str>::from(path);
        self.call(|hold| async move {
            check_path(&path)?;
            let grant = hold.grant();
            // While the hold's own session lives, its writes may still be under way, and only in that session do they come before
            // the read.
            let session = || async {
                if !grant.session().is_over() {
                    return Ok(grant.session().clone());
                }
                grant.is_gone().await?;
                grant.slot.session().await
            };
            let problem = || format!("the node {path} could not be read");
            let read = |session: Arc<Session>| {
                let path = path.clone();
                async move { session.read(path).await }
            };
            ask_within(hold.patience(), &grant.slot, session, problem, read).await
        })
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
    /// # async fn example(hold: &zklock::Hold) -> Result<(), zklock::Error> {
    /// let (ensemble, token) = (hold.ensemble_id().await?, hold.token());
    /// # Ok(())
    /// # }
    /// ```
    pub fn ensemble_id(&self) -> Call<Arc<str>> {
        self.call(|hold| async move {
            let grant = hold.grant();
            let session = || async {
                if grant.session().ensemble_id.get().is_none() {
                    grant.check_not_lost()?;
                }
                Ok(grant.session().clone())
            };
            let ask = |session| async move { ensemble_id::of(&session).await };
            ask_within(hold.patience(), &grant.slot, session, ensemble_id::problem, ask).await
        })
    }

    /// Returns how long to wait for an answer that does not concern the hold.
    fn patience(&self) -> Duration {
        self.grant().session().timeout().max(READ_AT_LEAST)
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
    /// use zklock::ErrorKind;
    ///
    /// # async fn example(hold: zklock::Hold) -> Result<(), zklock::Error> {
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
        let hold = self.share();
        self.held.begin(move |held| match hold.begin_release(owner) {
            Ok(Some(rest)) => Beginning::goes_on(held.io(), rest),
            Ok(None) => Beginning::Over(Ok(())),
            Err(error) => Beginning::Over(Err(error)),
        })
    }

    /// Releases the lock, and returns a future that waits for the release; `None` if there is nothing to wait for,
    /// because the owner has other holds.
    fn begin_release(
        &self,
        owner: Owner,
    ) -> Result<Option<impl Future<Output = Result<(), Error>> + Send + use<>>, Error> {
        let grant = self.grant().clone();
        if grant.is_bound() && owner != grant.owner() {
            let message = format!(
                "the hold of {} is of a reentrant lock, and belongs to the thread or task that acquired it: release it there",
                grant.path()
            );
            return Err(Error::new(ErrorKind::NotOwner, message));
        }
        grant.note_release_by(owner);
        let was_valid = !grant.session().valid_for(grant.holding()).is_zero();
        let left = self.held.fixed().leave().ok_or_else(|| grant.not_held())?;
        match left {
            ReleaseOutcome::Released => {}
            // The next holder looks after the node.
            ReleaseOutcome::PassedOn if was_valid => return Ok(None),
            // Others may have held the lock, so the servers must confirm that they did not.
            ReleaseOutcome::PassedOn => {}
            ReleaseOutcome::Others | ReleaseOutcome::Lost => return grant.check_not_lost().map(|()| None),
        }
        Ok(Some(async move {
            if left == ReleaseOutcome::PassedOn {
                let proves = grant.session().clone().prove(grant.holding());
                let is_known = clock::timeout(grant.session().timeout(), proves).await == Ok(true);
                grant.check_not_lost()?;
                return if is_known { Ok(()) } else { Err(grant.unconfirmed_yet()) };
            }
            let mut state = grant.holding().watch();
            let ended = async {
                let goes_on =
                    |status: &Status| matches!(status, Status::Held | Status::Releasing | Status::Stuck);
                let ended = state.wait_for(|state| !goes_on(&state.status));
                // Copied, because nobody can write it, or read it again, while it is borrowed.
                let ended = ended.await.map(|state| state.status);
                let gone = match ended {
                    // A hold that was lost before the release is reported as lost at once.
                    Ok(Status::Lost(LossReason::SessionExpired))
                        if was_valid && grant.session().nodes_are_gone() =>
                    {
                        grant.is_gone().await.is_ok()
                    }
                    Ok(Status::Lost(_)) => grant.session().gone().await,
                    _ => false,
                };
                (ended, gone)
            };
            match clock::timeout(grant.session().timeout(), ended).await {
                // It was held to the end; its node goes with the session.
                Ok((Ok(Status::Lost(LossReason::SessionExpired | LossReason::SessionClosed)), gone))
                    if was_valid =>
                {
                    if gone {
                        Ok(())
                    } else {
                        Err(grant.unconfirmed())
                    }
                }
                Ok(_) => grant.check_not_lost(),
                Err(_) => Err(grant.unconfirmed_yet()),
            }
        }))
    }

    /// Releases the lock in the background, like dropping the hold does, but without checking the owner, and even while
    /// other code still has the hold. It is hidden, because only the C and Python layers share holds with such code.
    #[doc(hidden)]
    pub fn let_go(&self) {
        if let Ok(held) = self.held.get() {
            held.leave();
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

impl Held {
    /// Releases this hold, and returns what is left of its grant; `None` if it had been released before.
    fn leave(&self) -> Option<ReleaseOutcome> {
        let left = self.released.set().then(|| self.grant.let_go())?;
        if matches!(left, ReleaseOutcome::Others | ReleaseOutcome::PassedOn) {
            self.released.set_before();
        }
        Some(left)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if !self.released.is_set() {
            self.grant.note_release_by(Owner::current());
            self.leave();
        }
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hold")
            .field("node", &self.node())
            .field("token", &self.token().value())
            .field("state", &self.state())
            .field("valid_for", &self.valid_for())
            .finish()
    }
}

#[cfg(test)]
mod tests;
