//! Waiting for a future on a thread that has no runtime.

use super::interrupt::Interrupt;
use super::threads::{self, Io};
use crate::error::{Error, ErrorKind};
use crate::locks::locked;
use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;
use tokio::runtime::Handle;

/// Wakes one thread that waits.
#[derive(Debug, Default)]
pub(super) struct Signal {
    raised: Mutex<bool>,
    condition: Condvar,
}

impl Signal {
    pub(super) fn raise(&self) {
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
pub(super) fn wait<T: Send>(
    io: &Io,
    future: impl Future<Output = T> + Send,
    deadline: Option<Instant>,
    interrupt: Option<&Interrupt>,
) -> Result<T, Error> {
    threads::refuse_to_block()?;
    match Handle::try_current() {
        // The thread is at its end (a handler of `atexit`, a destructor of a static), and what the
        // runtime keeps for each thread is gone: another has to do it.
        Err(error) if error.is_thread_local_destroyed() => std::thread::scope(|scope| {
            let polls = || poll(io, future, deadline, interrupt);
            let builder = std::thread::Builder::new().name("zklock-last".into());
            let last = threads::without_signals(|| builder.spawn_scoped(scope, polls));
            last.map_err(|error| threads::not_started(&error))?.join().unwrap_or_else(|_| {
                Err(Error::new(ErrorKind::Refused, "the wait panicked: this is a mistake in zklock"))
            })
        }),
        _ => poll(io, future, deadline, interrupt),
    }
}

fn poll<T>(
    io: &Io,
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
