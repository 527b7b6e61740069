//! The barrier and the double barrier, for threads.

use super::threads::{Io, refuse_to_block};
use super::wait::wait;
use super::{Call, Client, Interrupt};
use crate::error::{Error, LossReason};
use crate::lock::deadline_in;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

impl Client {
    /// As [`Client::barrier`](crate::Client::barrier).
    ///
    /// # Errors
    ///
    /// As there, and [`ErrorKind::Forked`](crate::ErrorKind::Forked).
    pub fn barrier(&self, path: &str) -> Result<Barrier, Error> {
        self.io.refuse_forked()?;
        Ok(Barrier { inner: self.inner.barrier(path)?, io: self.io.clone() })
    }

    /// As [`Client::double_barrier`](crate::Client::double_barrier).
    ///
    /// # Errors
    ///
    /// As there, and [`ErrorKind::Forked`](crate::ErrorKind::Forked).
    pub fn double_barrier(&self, path: &str, members: u32) -> Result<DoubleBarrier, Error> {
        self.io.refuse_forked()?;
        Ok(DoubleBarrier { inner: self.inner.double_barrier(path, members)?, io: self.io.clone() })
    }
}

/// A [`Barrier`](crate::Barrier) for threads.
///
/// ```no_run
/// # fn example(client: zklock_core::blocking::Client) -> Result<(), zklock_core::Error> {
/// client.barrier("/barriers/migration")?.wait()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Barrier {
    inner: crate::Barrier,
    io: Io,
}

impl Barrier {
    /// The path of the barrier.
    pub fn path(&self) -> &str {
        self.inner.path()
    }

    /// As [`Barrier::set`](crate::Barrier::set).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn set(&self) -> Result<bool, Error> {
        wait(&self.io, self.inner.set(), None, None)?
    }

    /// As [`set`](Self::set), and returns at once. `ready` is called when there is a result: on the I/O thread, so it
    /// must only pass it on. Dropping the call leaves it open whether the barrier is set.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forked`](crate::ErrorKind::Forked); all others come with the result.
    pub fn start_set(&self, ready: impl FnOnce() + Send + 'static) -> Result<Call<bool>, Error> {
        let inner = self.inner.clone();
        Call::start(&self.io, async move { inner.set().await }, ready)
    }

    /// As [`Barrier::remove`](crate::Barrier::remove).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn remove(&self) -> Result<bool, Error> {
        wait(&self.io, self.inner.remove(), None, None)?
    }

    /// As [`remove`](Self::remove), and returns at once, as [`start_set`](Self::start_set) does.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn start_remove(&self, ready: impl FnOnce() + Send + 'static) -> Result<Call<bool>, Error> {
        let inner = self.inner.clone();
        Call::start(&self.io, async move { inner.remove().await }, ready)
    }

    /// As [`Barrier::is_set`](crate::Barrier::is_set).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn is_set(&self) -> Result<bool, Error> {
        wait(&self.io, self.inner.is_set(), None, None)?
    }

    /// As [`is_set`](Self::is_set), and returns at once, as [`start_set`](Self::start_set) does.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn start_is_set(&self, ready: impl FnOnce() + Send + 'static) -> Result<Call<bool>, Error> {
        let inner = self.inner.clone();
        Call::start(&self.io, async move { inner.is_set().await }, ready)
    }

    /// As [`Barrier::wait`](crate::Barrier::wait).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn wait(&self) -> Result<(), Error> {
        self.wait_until(None, None)
    }

    /// As [`Barrier::wait_timeout`](crate::Barrier::wait_timeout).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn wait_timeout(&self, timeout: Duration) -> Result<(), Error> {
        self.wait_until(Some(timeout), None)
    }

    /// As [`wait`](Self::wait) or [`wait_timeout`](Self::wait_timeout), until `interrupt` is triggered.
    ///
    /// # Errors
    ///
    /// As there, and [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted).
    pub fn wait_interruptible(&self, timeout: Option<Duration>, interrupt: &Interrupt) -> Result<(), Error> {
        self.wait_until(timeout, Some(interrupt))
    }

    fn wait_until(&self, timeout: Option<Duration>, interrupt: Option<&Interrupt>) -> Result<(), Error> {
        let bound = Bound::of(timeout);
        wait(&self.io, self.inner.wait_before(bound.over(), bound.timeout), bound.deadline, interrupt)?
    }

    /// As [`wait`](Self::wait) or [`wait_timeout`](Self::wait_timeout), and returns at once. `ready` is called when
    /// there is a result: on the I/O thread, so it must only pass it on. Dropping the call ends the wait.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forked`](crate::ErrorKind::Forked); all others come with the result.
    pub fn start_wait(
        &self,
        timeout: Option<Duration>,
        ready: impl FnOnce() + Send + 'static,
    ) -> Result<Call<()>, Error> {
        let timeout = timeout.unwrap_or(Duration::MAX);
        let (inner, deadline) = (self.inner.clone(), deadline_in(timeout));
        Call::start(&self.io, async move { inner.wait_before(deadline, timeout).await }, ready)
    }
}

impl Drop for Barrier {
    fn drop(&mut self) {
        if self.io.is_forked() {
            std::mem::forget(self.inner.clone());
        }
    }
}

/// A [`DoubleBarrier`](crate::DoubleBarrier) for threads.
///
/// ```no_run
/// # fn example(client: zklock_core::blocking::Client) -> Result<(), zklock_core::Error> {
/// let member = client.double_barrier("/barriers/round", 3)?.enter()?;
/// // ... all three have come ...
/// member.leave()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct DoubleBarrier {
    inner: crate::DoubleBarrier,
    io: Io,
}

impl DoubleBarrier {
    /// The path of the barrier.
    pub fn path(&self) -> &str {
        self.inner.path()
    }

    /// How many members open it.
    pub fn members(&self) -> u32 {
        self.inner.members()
    }

    /// As [`DoubleBarrier::enter`](crate::DoubleBarrier::enter).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn enter(&self) -> Result<Member, Error> {
        self.enter_until(None, None)
    }

    /// As [`DoubleBarrier::enter_timeout`](crate::DoubleBarrier::enter_timeout).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn enter_timeout(&self, timeout: Duration) -> Result<Member, Error> {
        self.enter_until(Some(timeout), None)
    }

    /// As [`enter`](Self::enter) or [`enter_timeout`](Self::enter_timeout), until `interrupt` is triggered.
    ///
    /// # Errors
    ///
    /// As there, and [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted).
    pub fn enter_interruptible(
        &self,
        timeout: Option<Duration>,
        interrupt: &Interrupt,
    ) -> Result<Member, Error> {
        self.enter_until(timeout, Some(interrupt))
    }

    fn enter_until(&self, timeout: Option<Duration>, interrupt: Option<&Interrupt>) -> Result<Member, Error> {
        let bound = Bound::of(timeout);
        let entering = self.inner.enter_before(bound.over(), bound.timeout);
        Ok(Member::new(wait(&self.io, entering, bound.deadline, interrupt)??, self.io.clone()))
    }

    /// As [`enter`](Self::enter) or [`enter_timeout`](Self::enter_timeout), and returns at once. `ready` is called
    /// when there is a result: on the I/O thread, so it must only pass it on. Dropping the call withdraws, and leaves
    /// if the barrier had opened and the member was not fetched.
    ///
    /// ```no_run
    /// # fn example(barrier: &zklock_core::blocking::DoubleBarrier) -> Result<(), zklock_core::Error> {
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// let call = barrier.start_enter(None, move || sender.send(()).unwrap())?;
    /// receiver.recv().unwrap();
    /// if let Some(member) = call.fetch() {
    ///     member?.leave()?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forked`](crate::ErrorKind::Forked); all others come with the result.
    pub fn start_enter(
        &self,
        timeout: Option<Duration>,
        ready: impl FnOnce() + Send + 'static,
    ) -> Result<Call<Member>, Error> {
        let timeout = timeout.unwrap_or(Duration::MAX);
        let (inner, io, deadline) = (self.inner.clone(), self.io.clone(), deadline_in(timeout));
        let entering = async move { Ok(Member::new(inner.enter_before(deadline, timeout).await?, io)) };
        Call::start(&self.io, entering, ready)
    }
}

impl Drop for DoubleBarrier {
    fn drop(&mut self) {
        if self.io.is_forked() {
            std::mem::forget(self.inner.clone());
        }
    }
}

/// A [`Member`](crate::Member) for threads.
#[derive(Debug)]
#[must_use = "a member is within the barrier only as long as it is kept: dropping it leaves"]
pub struct Member {
    inner: Arc<crate::Member>,
    io: Io,
}

impl Member {
    fn new(inner: crate::Member, io: Io) -> Self {
        Self { inner: Arc::new(inner), io }
    }

    /// The path of the barrier.
    pub fn path(&self) -> &str {
        self.inner.path()
    }

    /// The path of the node that stands for this member.
    pub fn node(&self) -> &str {
        self.inner.node()
    }

    /// As [`Member::loss`](crate::Member::loss).
    pub fn loss(&self) -> Option<LossReason> {
        if self.io.is_forked() { Some(LossReason::Forked) } else { self.inner.loss() }
    }

    /// Waits until the member is lost, and says why. See [`Member::lost`](crate::Member::lost).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Timeout`](crate::ErrorKind::Timeout) if it is not by then,
    /// [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted), [`ErrorKind::Forked`](crate::ErrorKind::Forked).
    pub fn lost(
        &self,
        timeout: Option<Duration>,
        interrupt: Option<&Interrupt>,
    ) -> Result<LossReason, Error> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        wait(&self.io, self.inner.lost(), deadline, interrupt)
    }

    /// As [`lost`](Self::lost), and returns at once. `ready` is called when there is a result: on the I/O thread, so
    /// it must only pass it on. The call keeps the member.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forked`](crate::ErrorKind::Forked).
    pub fn start_lost(&self, ready: impl FnOnce() + Send + 'static) -> Result<Call<LossReason>, Error> {
        let inner = self.inner.clone();
        Call::start(&self.io, async move { Ok(inner.lost().await) }, ready)
    }

    /// As [`Member::leave`](crate::Member::leave).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn leave(&self) -> Result<(), Error> {
        self.leave_until(None, None)
    }

    /// As [`Member::leave_timeout`](crate::Member::leave_timeout).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn leave_timeout(&self, timeout: Duration) -> Result<(), Error> {
        self.leave_until(Some(timeout), None)
    }

    /// As [`leave`](Self::leave) or [`leave_timeout`](Self::leave_timeout), until `interrupt` is triggered: the member
    /// has left all the same.
    ///
    /// # Errors
    ///
    /// As there, and [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted).
    pub fn leave_interruptible(&self, timeout: Option<Duration>, interrupt: &Interrupt) -> Result<(), Error> {
        self.leave_until(timeout, Some(interrupt))
    }

    fn leave_until(&self, timeout: Option<Duration>, interrupt: Option<&Interrupt>) -> Result<(), Error> {
        // Where it must not wait, nothing is to change.
        self.io.refuse_forked()?;
        refuse_to_block()?;
        let bound = Bound::of(timeout);
        let leaving = self.inner.begin_to_leave(bound.over(), bound.timeout)?;
        wait(&self.io, leaving, bound.deadline, interrupt)?
    }

    /// As [`leave`](Self::leave) or [`leave_timeout`](Self::leave_timeout), and returns at once. `ready` is called
    /// when there is a result: on the I/O thread, so it must only pass it on. Dropping the call ends the waiting, not
    /// the leaving.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotHeld`](crate::ErrorKind::NotHeld) if it has left before,
    /// [`ErrorKind::Forked`](crate::ErrorKind::Forked); all others come with the result.
    pub fn start_leave(
        &self,
        timeout: Option<Duration>,
        ready: impl FnOnce() + Send + 'static,
    ) -> Result<Call<()>, Error> {
        self.io.refuse_forked()?;
        let timeout = timeout.unwrap_or(Duration::MAX);
        Call::start(&self.io, self.inner.begin_to_leave(deadline_in(timeout), timeout)?, ready)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if self.io.is_forked() {
            std::mem::forget(self.inner.clone());
        }
    }
}

/// How long a thread waits, by its own clock and not by a timer of the I/O thread.
struct Bound {
    timeout: Duration,
    /// Of a timeout of zero there is none: it waits for an answer.
    deadline: Option<Instant>,
}

impl Bound {
    fn of(timeout: Option<Duration>) -> Self {
        let timeout = timeout.unwrap_or(Duration::MAX);
        let deadline = if timeout.is_zero() { None } else { Instant::now().checked_add(timeout) };
        Self { timeout, deadline }
    }

    /// Comes to its end at the deadline, if it is polled then.
    fn over(&self) -> impl Future<Output = ()> + Send + use<> {
        let deadline = self.deadline;
        poll_fn(move |_| match deadline {
            Some(deadline) if Instant::now() >= deadline => Poll::Ready(()),
            _ => Poll::Pending,
        })
    }
}
