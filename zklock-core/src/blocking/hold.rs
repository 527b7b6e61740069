//! The hold of a thread.

use super::fork::Process;
use super::threads::{Io, refuse_to_block};
use super::wait::wait;
use super::{Call, Interrupt};
use crate::ensemble::NodeData;
use crate::error::{Error, LossReason};
use crate::guarded::{Committed, Guarded};
use crate::hold::{HoldState, Token};
use crate::owner::Owner;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::AbortHandle;

/// A [`Hold`](crate::Hold) for threads.
#[derive(Debug)]
#[must_use = "a lock is held only as long as its hold is kept: dropping it releases the lock"]
pub struct Hold {
    inner: Arc<crate::Hold>,
    io: Io,
}

impl Hold {
    pub(super) fn new(inner: crate::Hold, io: Io) -> Self {
        Self { inner: Arc::new(inner), io }
    }

    /// As [`Hold::token`](crate::Hold::token).
    pub fn token(&self) -> Token {
        self.inner.token()
    }

    /// As [`Hold::path`](crate::Hold::path).
    pub fn path(&self) -> &str {
        self.inner.path()
    }

    /// As [`Hold::node`](crate::Hold::node).
    pub fn node(&self) -> &str {
        self.inner.node()
    }

    /// As [`Hold::state`](crate::Hold::state).
    pub fn state(&self) -> HoldState {
        if self.io.is_forked() { HoldState::Lost(LossReason::Forked) } else { self.inner.state() }
    }

    /// As [`Hold::valid_for`](crate::Hold::valid_for).
    pub fn valid_for(&self) -> Duration {
        if self.io.is_forked() { Duration::ZERO } else { self.inner.valid_for() }
    }

    /// The process to which it belongs.
    pub fn process(&self) -> Process {
        self.io.process()
    }

    /// Whether this hold was released, be it that it was lost before.
    pub fn is_released(&self) -> bool {
        !self.io.is_forked() && self.inner.is_released()
    }

    /// Calls `told` when the hold is lost, unless it is released or the [`Watch`] dropped before: on
    /// the I/O thread, so it must only pass it on (with [`call_later`](super::call_later), for one).
    ///
    /// ```no_run
    /// # fn example(hold: &zklock_core::blocking::Hold) -> Result<(), zklock_core::Error> {
    /// let _watch = hold.on_lost(|reason| eprintln!("stop: {reason}"))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forked`](crate::ErrorKind::Forked).
    pub fn on_lost(&self, told: impl FnOnce(LossReason) + Send + 'static) -> Result<Watch, Error> {
        self.io.refuse_forked()?;
        let loss = self.inner.loss();
        let task = self.io.spawn(async move {
            if let Some(reason) = loss.come().await {
                told(reason);
            }
        });
        Ok(Watch::new(task, self.io.process()))
    }

    /// The loss of this hold, to be waited for.
    pub fn loss(&self) -> Loss {
        Loss { inner: self.inner.loss(), io: self.io.clone() }
    }

    /// As [`Hold::confirm`](crate::Hold::confirm).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn confirm(&self) -> Result<Duration, Error> {
        wait(&self.io, self.inner.confirm(), None, None)?
    }

    /// As [`confirm`](Self::confirm), and returns at once. `ready` is called when there is a result: on the
    /// I/O thread, so it must only pass it on.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forked`](crate::ErrorKind::Forked); all others come with the result.
    pub fn start_confirm(&self, ready: impl FnOnce() + Send + 'static) -> Result<Call<Duration>, Error> {
        let inner = self.inner.clone();
        Call::start(&self.io, async move { inner.confirm().await }, ready)
    }

    /// What is in a node, with its version; `None` if there is no such node.
    /// See [`Hold::read`](crate::Hold::read).
    ///
    /// ```no_run
    /// # fn example(hold: &zklock_core::blocking::Hold) -> Result<(), zklock_core::Error> {
    /// if let Some(node) = hold.read("/report/state")? {
    ///     println!("version {}, {} bytes", node.version, node.data.len());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As there.
    pub fn read(&self, path: &str) -> Result<Option<NodeData>, Error> {
        wait(&self.io, self.inner.read(path), None, None)?
    }

    /// As [`read`](Self::read), and returns at once. `ready` is called when there is a result: on the I/O thread,
    /// so it must only pass it on.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forked`](crate::ErrorKind::Forked); all others come with the result.
    pub fn start_read(
        &self,
        path: &str,
        ready: impl FnOnce() + Send + 'static,
    ) -> Result<Call<Option<NodeData>>, Error> {
        let (inner, path) = (self.inner.clone(), path.to_owned());
        Call::start(&self.io, async move { inner.read(&path).await }, ready)
    }

    /// Does the writes that `fill` adds if the lock is still held, all or none.
    /// See [`Hold::guarded`](crate::Hold::guarded).
    ///
    /// ```no_run
    /// # fn example(hold: &zklock_core::blocking::Hold) -> Result<(), zklock_core::Error> {
    /// hold.commit_guarded(|writes| writes.set_data("/report/state", b"done", None))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Guarded::commit`].
    pub fn commit_guarded<'a>(
        &'a self,
        fill: impl FnOnce(Guarded<'a>) -> Guarded<'a>,
    ) -> Result<Committed, Error> {
        wait(&self.io, fill(self.inner.guarded()).commit(), None, None)?
    }

    /// As [`commit_guarded`](Self::commit_guarded), and returns at once. `ready` is called when there is a
    /// result: on the I/O thread, so it must only pass it on. Dropping the call leaves it open whether the
    /// writes are done.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forked`](crate::ErrorKind::Forked); all others come with the result.
    pub fn start_commit_guarded(
        &self,
        fill: impl FnOnce(Guarded<'_>) -> Guarded<'_> + Send + 'static,
        ready: impl FnOnce() + Send + 'static,
    ) -> Result<Call<Committed>, Error> {
        let inner = self.inner.clone();
        Call::start(&self.io, async move { fill(inner.guarded()).commit().await }, ready)
    }

    /// As [`Hold::release`](crate::Hold::release).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn release(&self) -> Result<(), Error> {
        // Where it must not wait, nothing is to change.
        self.io.refuse_forked()?;
        refuse_to_block()?;
        match self.inner.begin_release(Owner::current())? {
            Some(rest) => wait(&self.io, rest, None, None)?,
            None => Ok(()),
        }
    }

    /// As [`release`](Self::release) by this owner, and returns at once; `None` if there is nothing to
    /// wait for, since other holds of the owner go on. `ready` is called when there is a result: on the
    /// I/O thread, so it must only pass it on. Dropping the call ends the waiting, not the release.
    ///
    /// # Errors
    ///
    /// As [`release`](Self::release).
    pub fn start_release(
        &self,
        owner: Owner,
        ready: impl FnOnce() + Send + 'static,
    ) -> Result<Option<Call<()>>, Error> {
        self.io.refuse_forked()?;
        let inner = self.inner.clone();
        let Some(rest) = inner.begin_release(owner)? else { return Ok(None) };
        Call::start(&self.io, rest, ready).map(Some)
    }

    /// Releases the lock in the background, whoever its owner is, as dropping the hold does: but also
    /// while others have a part in it.
    pub fn let_go(&self) {
        if !self.io.is_forked() {
            self.inner.let_go();
        }
    }

    /// This hold, unless it has died since it was granted.
    pub(super) fn refuse_dead(self) -> Result<Self, Error> {
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

impl Drop for Hold {
    fn drop(&mut self) {
        if self.io.is_forked() {
            std::mem::forget(self.inner.clone());
        }
    }
}

/// The loss of a [`Hold`], to be waited for. It does not keep the hold.
///
/// ```no_run
/// # fn example(hold: &zklock_core::blocking::Hold) -> Result<(), zklock_core::Error> {
/// let loss = hold.loss();
/// let watchman = std::thread::spawn(move || loss.wait(None, None));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Loss {
    inner: crate::hold::Loss,
    io: Io,
}

impl Loss {
    /// Why the hold was lost, if it is.
    pub fn reason(&self) -> Option<LossReason> {
        if self.io.is_forked() { Some(LossReason::Forked) } else { self.inner.now() }
    }

    /// Waits until the hold is lost, and says why; `None` if it is released instead.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Timeout`](crate::ErrorKind::Timeout) if it is still held then,
    /// [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted),
    /// [`ErrorKind::Forked`](crate::ErrorKind::Forked).
    pub fn wait(
        &self,
        timeout: Option<Duration>,
        interrupt: Option<&Interrupt>,
    ) -> Result<Option<LossReason>, Error> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        wait(&self.io, self.inner.clone().come(), deadline, interrupt)
    }

    /// As [`wait`](Self::wait), and returns at once. `ready` is called when there is a result: on the I/O
    /// thread, so it must only pass it on.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forked`](crate::ErrorKind::Forked).
    pub fn start(&self, ready: impl FnOnce() + Send + 'static) -> Result<Call<Option<LossReason>>, Error> {
        let come = self.inner.clone().come();
        Call::start(&self.io, async move { Ok(come.await) }, ready)
    }
}

impl Drop for Loss {
    fn drop(&mut self) {
        if self.io.is_forked() {
            std::mem::forget(self.inner.clone());
        }
    }
}

impl fmt::Debug for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loss").finish_non_exhaustive()
    }
}

/// As long as it is kept, a function is called when something happens. See [`Hold::on_lost`] and
/// [`Client::on_connection`](super::Client::on_connection).
#[derive(Debug)]
#[must_use = "dropping it ends the watch"]
pub struct Watch {
    task: AbortHandle,
    process: Process,
}

impl Watch {
    pub(super) fn new(task: AbortHandle, process: Process) -> Self {
        Self { task, process }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if !self.process.is_forked() {
            self.task.abort();
        }
    }
}
