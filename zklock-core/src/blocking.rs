//! The same for threads: calls that block, on one I/O thread for the whole process.
//!
//! The futures are polled by the thread that waits. So the owner of a lock is that thread, its
//! deadline is kept by its own clock even if the I/O thread should be late, and an [`Interrupt`]
//! from any other thread ends the wait at once.
//!
//! These calls must not be made within an asynchronous task: they would block its thread.
//!
//! ```no_run
//! use std::time::Duration;
//! use zklock_core::{ClientOptions, blocking::Client};
//!
//! # fn main() -> Result<(), zklock_core::Error> {
//! let client = Client::connect(ClientOptions::new("zk1:2181,zk2:2181")?)?;
//! let lock = client.mutex("/locks/report")?;
//! let hold = lock.acquire_timeout(Duration::from_secs(5))?;
//! println!("held with token {}", hold.token());
//! hold.release()?;
//! # Ok(())
//! # }
//! ```

use crate::error::{Error, ErrorKind, LossReason};
use crate::hold::{Guarded, HoldState, Token};
use crate::lock::QueuedContender;
use crate::locks::locked;
use crate::options::{ClientOptions, LockOptions};
use crate::stats::Stats;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

/// A [`Client`](crate::Client) for threads.
#[derive(Clone, Debug)]
pub struct Client {
    inner: crate::Client,
    io: Handle,
}

/// A [`Lock`](crate::Lock) for threads.
#[derive(Clone, Debug)]
pub struct Lock {
    inner: crate::Lock,
    io: Handle,
}

/// A [`Hold`](crate::Hold) for threads.
#[derive(Debug)]
#[must_use = "a lock is held only as long as its hold is kept: dropping it releases the lock"]
pub struct Hold {
    inner: crate::Hold,
    io: Handle,
}

/// Ends waits from outside, such as on a signal.
///
/// ```
/// use zklock_core::blocking::Interrupt;
///
/// let interrupt = Interrupt::new();
/// let elsewhere = interrupt.clone();
/// elsewhere.trigger();
/// assert!(interrupt.is_triggered());
/// interrupt.reset();
/// ```
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    state: Arc<Mutex<InterruptState>>,
}

#[derive(Debug, Default)]
struct InterruptState {
    triggered: bool,
    /// How often it was triggered: a reset must not hide that from who was waiting.
    times: u64,
    waiting: Vec<Weak<Signal>>,
}

impl Client {
    /// As [`Client::connect`](crate::Client::connect).
    ///
    /// # Errors
    ///
    /// As there; [`ErrorKind::Refused`] if the system gives us no I/O thread.
    pub fn connect(options: ClientOptions) -> Result<Self, Error> {
        let io = io_thread()?;
        let inner = wait(&io, crate::Client::connect(options), None, None)??;
        Ok(Self { inner, io })
    }

    /// As [`Client::mutex`](crate::Client::mutex).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn mutex(&self, path: &str) -> Result<Lock, Error> {
        self.mutex_with(path, LockOptions::new())
    }

    /// As [`Client::mutex_with`](crate::Client::mutex_with).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn mutex_with(&self, path: &str, options: LockOptions) -> Result<Lock, Error> {
        Ok(Lock { inner: self.inner.mutex_with(path, options)?, io: self.io.clone() })
    }

    /// As [`Client::stats`](crate::Client::stats).
    pub fn stats(&self) -> Stats {
        self.inner.stats()
    }

    /// As [`Client::close`](crate::Client::close).
    pub fn close(&self) {
        // Without deadline and interrupt nothing can go wrong.
        let _ = wait(&self.io, self.inner.close(), None, None);
    }
}

impl Lock {
    /// The path of the lock.
    pub fn path(&self) -> &str {
        self.inner.path()
    }

    /// As [`Lock::acquire`](crate::Lock::acquire).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn acquire(&self) -> Result<Hold, Error> {
        self.acquire_interruptible(None, &Interrupt::new())
    }

    /// As [`Lock::acquire_timeout`](crate::Lock::acquire_timeout).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn acquire_timeout(&self, timeout: Duration) -> Result<Hold, Error> {
        self.acquire_interruptible(Some(timeout), &Interrupt::new())
    }

    /// As [`acquire`](Self::acquire) or [`acquire_timeout`](Self::acquire_timeout), until `interrupt`
    /// is triggered.
    ///
    /// # Errors
    ///
    /// As there, and [`ErrorKind::Interrupted`].
    pub fn acquire_interruptible(
        &self,
        timeout: Option<Duration>,
        interrupt: &Interrupt,
    ) -> Result<Hold, Error> {
        let inner = match timeout {
            None => wait(&self.io, self.inner.acquire(), None, Some(interrupt))??,
            Some(Duration::ZERO) => {
                wait(&self.io, self.inner.acquire_timeout(Duration::ZERO), None, Some(interrupt))??
            }
            Some(timeout) => {
                let deadline = Instant::now().checked_add(timeout);
                // The clock of this thread, not a timer of the I/O thread.
                let over = poll_fn(|_| match deadline {
                    Some(deadline) if Instant::now() >= deadline => Poll::Ready(()),
                    _ => Poll::Pending,
                });
                wait(&self.io, self.inner.acquire_before(over, timeout), deadline, Some(interrupt))??
            }
        };
        Ok(Hold { inner, io: self.io.clone() })
    }

    /// As [`Lock::try_acquire`](crate::Lock::try_acquire).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn try_acquire(&self) -> Result<Option<Hold>, Error> {
        let inner = wait(&self.io, self.inner.try_acquire(), None, None)??;
        Ok(inner.map(|inner| Hold { inner, io: self.io.clone() }))
    }

    /// As [`Lock::contenders`](crate::Lock::contenders).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn contenders(&self) -> Result<Vec<QueuedContender>, Error> {
        wait(&self.io, self.inner.contenders(), None, None)?
    }
}

impl Hold {
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
        self.inner.state()
    }

    /// As [`Hold::valid_for`](crate::Hold::valid_for).
    pub fn valid_for(&self) -> Duration {
        self.inner.valid_for()
    }

    /// Waits until the hold is lost, and says why; `None` if it is released instead.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Timeout`] if it is still held then, and [`ErrorKind::Interrupted`].
    pub fn wait_lost(
        &self,
        timeout: Option<Duration>,
        interrupt: &Interrupt,
    ) -> Result<Option<LossReason>, Error> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        wait(&self.io, self.inner.lost(), deadline, Some(interrupt))
    }

    /// As [`Hold::confirm`](crate::Hold::confirm).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn confirm(&self) -> Result<Duration, Error> {
        wait(&self.io, self.inner.confirm(), None, None)?
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
    pub fn commit_guarded<'a>(&'a self, fill: impl FnOnce(Guarded<'a>) -> Guarded<'a>) -> Result<(), Error> {
        wait(&self.io, fill(self.inner.guarded()).commit(), None, None)?
    }

    /// As [`Hold::release`](crate::Hold::release).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn release(&self) -> Result<(), Error> {
        wait(&self.io, self.inner.release(), None, None)?
    }
}

impl Interrupt {
    /// One that is not triggered.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends all waits with this interrupt, those under way and those to come.
    pub fn trigger(&self) {
        let mut state = locked(&self.state);
        state.triggered = true;
        state.times += 1;
        for signal in state.waiting.drain(..).filter_map(|signal| signal.upgrade()) {
            signal.raise();
        }
    }

    /// Lets waits to come go on. Those that were under way are ended all the same.
    pub fn reset(&self) {
        locked(&self.state).triggered = false;
    }

    /// Whether it is triggered.
    pub fn is_triggered(&self) -> bool {
        locked(&self.state).triggered
    }

    /// Raises the signal when triggered; says how often it was before.
    fn register(&self, signal: &Arc<Signal>) -> u64 {
        let mut state = locked(&self.state);
        state.waiting.retain(|other| other.strong_count() > 0);
        state.waiting.push(Arc::downgrade(signal));
        state.times
    }

    fn has_ended(&self, registered: u64) -> bool {
        let state = locked(&self.state);
        state.triggered || state.times != registered
    }
}

/// Wakes one thread that waits.
#[derive(Debug, Default)]
struct Signal {
    raised: Mutex<bool>,
    condition: Condvar,
}

impl Signal {
    fn raise(&self) {
        *locked(&self.raised) = true;
        self.condition.notify_one();
    }

    /// Waits for the next raise; `false` if the deadline came first.
    fn wait(&self, deadline: Option<Instant>) -> bool {
        let mut raised = locked(&self.raised);
        while !*raised {
            raised = match deadline {
                None => self.condition.wait(raised).unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return false;
                    }
                    self.condition.wait_timeout(raised, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        *raised = false;
        true
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.raise();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.raise();
    }
}

/// Polls the future on this thread until it is ready, the deadline has come or the interrupt. At the
/// deadline it is polled once more.
fn wait<T>(
    io: &Handle,
    future: impl Future<Output = T>,
    deadline: Option<Instant>,
    interrupt: Option<&Interrupt>,
) -> Result<T, Error> {
    // Its timers are those of the I/O thread.
    let _runtime = io.enter();
    let signal = Arc::new(Signal::default());
    let interrupt = interrupt.map(|interrupt| (interrupt, interrupt.register(&signal)));
    let waker = Waker::from(signal.clone());
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    let mut in_time = true;
    loop {
        if interrupt.is_some_and(|(interrupt, registered)| interrupt.has_ended(registered)) {
            return Err(Error::new(ErrorKind::Interrupted, "the wait was interrupted"));
        }
        if let Poll::Ready(result) = future.as_mut().poll(&mut context) {
            return Ok(result);
        }
        if !in_time {
            return Err(Error::new(ErrorKind::Timeout, "the time is over"));
        }
        in_time = signal.wait(deadline);
    }
}

/// The runtime of the I/O thread, which is started by the first call and never ends.
fn io_thread() -> Result<Handle, Error> {
    static STARTED: Mutex<Option<Handle>> = Mutex::new(None);
    let mut started = locked(&STARTED);
    if let Some(io) = &*started {
        return Ok(io.clone());
    }
    let failed = |error: std::io::Error| {
        Error::new(
            ErrorKind::Refused,
            format!("the I/O thread cannot be started ({error}): raise the limits"),
        )
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let io = runtime.handle().clone();
    let run = move || runtime.block_on(std::future::pending::<()>());
    std::thread::Builder::new().name("zklock-io".into()).spawn(run).map_err(failed)?;
    *started = Some(io.clone());
    Ok(io)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waited(deadline: Option<Instant>, interrupt: &Interrupt) -> Result<(), Error> {
        wait(&io_thread().unwrap(), std::future::pending(), deadline, Some(interrupt))
    }

    #[test]
    fn an_interrupt_ends_waits_under_way_and_to_come() {
        let interrupt = Interrupt::new();
        let elsewhere = interrupt.clone();
        let waiter = std::thread::spawn(move || waited(None, &elsewhere));
        let registered = || locked(&interrupt.state).waiting.len() == 1;
        while !registered() {
            std::thread::yield_now();
        }
        interrupt.trigger();
        interrupt.reset();
        assert_eq!(waiter.join().unwrap().unwrap_err().kind(), ErrorKind::Interrupted);
        interrupt.trigger();
        assert_eq!(waited(None, &interrupt).unwrap_err().kind(), ErrorKind::Interrupted);
        interrupt.reset();
        let soon = Some(Instant::now() + Duration::from_millis(5));
        assert_eq!(waited(soon, &interrupt).unwrap_err().kind(), ErrorKind::Timeout);
    }

    #[test]
    fn the_io_thread_drives_timers_of_other_threads() {
        let sleep = async { tokio::time::sleep(Duration::from_millis(5)).await };
        wait(&io_thread().unwrap(), sleep, None, None).unwrap();
    }
}
