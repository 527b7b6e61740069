//! The hold of a thread.

use super::{Interrupt, Wanted};
use crate::ensemble::NodeData;
use crate::error::{Error, LossReason};
use crate::guarded::{Committed, Guarded};
use crate::hold::{HoldState, Token};
use crate::owner::Owner;
use crate::threads::fork::Process;
use crate::threads::fork_safe::ForkSafe;
use crate::wait::Wait;
use std::time::Duration;
use tokio::task::AbortHandle;

/// A [`Hold`](crate::Hold) for threads.
#[derive(Debug)]
#[must_use = "a lock is held only as long as its hold is kept: dropping it releases the lock"]
pub struct Hold {
    core: ForkSafe<crate::Hold>,
}

impl Hold {
    pub(super) fn new(core: ForkSafe<crate::Hold>) -> Self {
        Self { core }
    }

    /// One that was granted in this process.
    pub(super) fn here(hold: crate::Hold) -> Result<Self, Error> {
        Ok(Self::new(ForkSafe::here(hold)?))
    }

    /// The hold of the core.
    #[doc(hidden)]
    pub fn core(&self) -> &ForkSafe<crate::Hold> {
        &self.core
    }

    /// See [`Hold::token`](crate::Hold::token).
    pub fn token(&self) -> Token {
        self.core.fixed().token()
    }

    /// See [`Hold::path`](crate::Hold::path).
    pub fn path(&self) -> &str {
        self.core.fixed().path()
    }

    /// See [`Hold::node`](crate::Hold::node).
    pub fn node(&self) -> &str {
        self.core.fixed().node()
    }

    /// See [`Hold::state`](crate::Hold::state).
    pub fn state(&self) -> HoldState {
        self.core.look(HoldState::Lost(LossReason::Forked), crate::Hold::state)
    }

    /// See [`Hold::valid_for`](crate::Hold::valid_for).
    pub fn valid_for(&self) -> Duration {
        self.core.look(Duration::ZERO, crate::Hold::valid_for)
    }

    /// The process to which it belongs.
    pub fn process(&self) -> Process {
        self.core.io().process()
    }

    /// Whether this hold was released, even if it was lost before.
    pub fn is_released(&self) -> bool {
        self.core.look(false, crate::Hold::is_released)
    }

    /// Calls `callback` when the hold is lost, unless it is released or the [`Watch`] dropped before: on
    /// the I/O thread, so it must not block.
    ///
    /// ```no_run
    /// # fn example(hold: &zklock_core::blocking::Hold) -> Result<(), zklock_core::Error> {
    /// let _watch = hold.on_lost(|reason| eprintln!("stop: {reason}"))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_lost(&self, callback: impl FnOnce(LossReason) + Send + 'static) -> Result<Watch, Error> {
        let loss = self.core.get()?.loss();
        let task = self.core.io().spawn(async move {
            if let Some(reason) = loss.come().await {
                callback(reason);
            }
        });
        Ok(Watch::new(task, self.process()))
    }

    /// Calls `callback` when others wait for what this hold has, unless it ends or the [`Watch`] is dropped before: on the
    /// I/O thread, so it must not block. See [`Hold::wanted`](crate::Hold::wanted).
    ///
    /// ```no_run
    /// # fn example(hold: &zklock_core::blocking::Hold) -> Result<(), zklock_core::Error> {
    /// let _watch = hold.on_wanted(|| eprintln!("somebody waits: make haste"))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_wanted(&self, callback: impl FnOnce() + Send + 'static) -> Result<Watch, Error> {
        let wanted = self.core.get()?.notice();
        let task = self.core.io().spawn(async move {
            if wanted.come().await {
                callback();
            }
        });
        Ok(Watch::new(task, self.process()))
    }

    /// Whether others are known to wait for what this hold has. See [`Hold::is_wanted`](crate::Hold::is_wanted).
    pub fn is_wanted(&self) -> bool {
        self.core.look(false, crate::Hold::is_wanted)
    }

    /// Waits until others wait for what this hold has; `false` if it ends before. See [`Hold::wanted`](crate::Hold::wanted).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Timeout`](crate::ErrorKind::Timeout) if nobody waits by then,
    /// [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted),
    /// [`ErrorKind::Forked`](crate::ErrorKind::Forked).
    pub fn wait_wanted(
        &self,
        timeout: Option<Duration>,
        interrupt: Option<&Interrupt>,
    ) -> Result<bool, Error> {
        let wait = Wait::at_most(timeout);
        self.core.wait(wait, interrupt, |hold| async { Ok(hold.notice().come().await) })
    }

    /// That others wait for what this hold has, to be asked and waited for. From now on it looks out for them: see
    /// [`Hold::wanted`](crate::Hold::wanted) for what that costs.
    pub fn wanted(&self) -> Wanted {
        // Not in a child, where its mutexes may be locked for ever.
        self.core.look((), crate::Hold::look_out);
        Wanted::new(self.core.adopt(self.core.fixed().unasked_notice()))
    }

    /// The loss of this hold, to be waited for.
    pub fn loss(&self) -> Loss {
        Loss { core: self.core.adopt(self.core.fixed().loss()) }
    }

    /// See [`Hold::confirm`](crate::Hold::confirm).
    pub fn confirm(&self) -> Result<Duration, Error> {
        self.core.wait(Wait::Forever, None, crate::Hold::confirm)
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
    pub fn read(&self, path: &str) -> Result<Option<NodeData>, Error> {
        self.core.wait(Wait::Forever, None, |hold| hold.read(path))
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
    pub fn commit_guarded<'a>(
        &'a self,
        fill: impl FnOnce(Guarded<'a>) -> Guarded<'a>,
    ) -> Result<Committed, Error> {
        self.core.wait(Wait::Forever, None, |hold| fill(hold.guarded()).commit())
    }

    /// See [`Hold::release`](crate::Hold::release).
    pub fn release(&self) -> Result<(), Error> {
        // A thread that must not wait must not change anything.
        match self.core.get_to_wait()?.begin_release(Owner::current())? {
            Some(rest) => self.core.wait(Wait::Forever, None, |_| rest),
            None => Ok(()),
        }
    }

    /// Releases the lock in the background, as dropping the hold does, but without a check of the owner, and even while
    /// others have a part in it.
    pub fn let_go(&self) {
        self.core.look((), crate::Hold::let_go);
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

/// The loss of a [`Hold`], to be waited for. It does not keep the hold.
///
/// ```no_run
/// # fn example(hold: &zklock_core::blocking::Hold) -> Result<(), zklock_core::Error> {
/// let loss = hold.loss();
/// let watchman = std::thread::spawn(move || loss.wait(None, None));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Loss {
    core: ForkSafe<crate::hold::Loss>,
}

impl Loss {
    /// The loss of the core.
    #[doc(hidden)]
    pub fn core(&self) -> &ForkSafe<crate::hold::Loss> {
        &self.core
    }

    /// Why the hold was lost, if it is.
    pub fn reason(&self) -> Option<LossReason> {
        self.core.look(Some(LossReason::Forked), crate::hold::Loss::now)
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
        self.core.wait(Wait::at_most(timeout), interrupt, |loss| async { Ok(loss.clone().come().await) })
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
