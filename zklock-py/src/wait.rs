//! Waiting without the interpreter, and hearing of signals meanwhile.
//!
//! Python runs the handlers of signals in its main thread alone, and only when that comes by. So where the
//! main thread waits, it sleeps in `poll`, which a signal ends at once. A signal may come just before the
//! sleep begins: so the first sleeps are short, and none is longer than a second.

use crate::error::raised;
use crate::exit;
use pyo3::prelude::*;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};
use zklock_core::Error;
use zklock_core::blocking::{Park, Parked, park_by};

const FIRST_SLEEP: Duration = Duration::from_millis(20);
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// How long a wait that knows nothing of signals may be.
const SLICE: Duration = Duration::from_millis(20);

thread_local! {
    static DOORBELL: RefCell<Option<Arc<Doorbell>>> = const { RefCell::new(None) };
    /// What the handler of a signal has raised.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

pub(crate) fn prepare() {
    park_by(|| {
        let is_main = rustix::thread::gettid() == rustix::process::getpid();
        if is_main { Doorbell::of_this_thread().map(|doorbell| doorbell as Arc<dyn Park>) } else { None }
    });
}

/// Runs `call`, which may wait, without the interpreter.
pub(crate) fn detached<T: Send>(
    py: Python<'_>,
    call: impl FnOnce() -> Result<T, Error> + Send,
) -> PyResult<T> {
    let result = py.detach(|| call().inspect(|_| exit::stay_if_over()));
    result.map_err(|error| raised(py, &error))
}

/// Calls `look`, which waits for so long at most, until it has seen what it looks for; `None` when the time is over.
/// For waits that are none of the core's, and of which nobody makes many: they hear of signals between two looks.
pub(crate) fn in_slices<T: Send>(
    py: Python<'_>,
    timeout: Option<Duration>,
    mut look: impl FnMut(Duration) -> Option<T> + Send,
) -> PyResult<Option<T>> {
    let begun = Instant::now();
    loop {
        let left = timeout.map(|timeout| timeout.saturating_sub(begun.elapsed()));
        let slice = left.map_or(SLICE, |left| left.min(SLICE));
        let seen = py.detach(|| {
            let seen = look(slice);
            exit::stay_if_over();
            seen
        });
        if seen.is_some() {
            return Ok(seen);
        }
        py.check_signals()?;
        if left.is_some_and(|left| left <= slice) {
            return Ok(None);
        }
    }
}

/// The exception that ended a wait of this thread.
pub(crate) fn signalled() -> Option<PyErr> {
    RAISED.take()
}

fn run_handlers(py: Python<'_>) -> PyResult<()> {
    py.check_signals()
}

/// Wakes the main thread.
#[derive(Debug)]
struct Doorbell(OwnedFd);

impl Doorbell {
    /// `None` where the system gives no descriptor: then a wait hears of no signal, but is one.
    fn of_this_thread() -> Option<Arc<Self>> {
        DOORBELL.with_borrow_mut(|doorbell| {
            // A signal's handler may wait while the thread waits: it must not hear what is meant for that.
            let is_free = doorbell.as_ref().is_some_and(|doorbell| Arc::strong_count(doorbell) == 1);
            if !is_free {
                let descriptor = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).ok()?;
                *doorbell = Some(Arc::new(Self(descriptor)));
            }
            doorbell.clone()
        })
    }
}

impl Park for Doorbell {
    fn park(&self, deadline: Option<Instant>) -> Parked {
        let mut longest = FIRST_SLEEP;
        loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let sleep = left.map_or(longest, |left| left.min(longest));
            // It is at most a second.
            let sleep = Timespec::try_from(sleep).ok();
            match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], sleep.as_ref()) {
                Ok(0) if left.is_some_and(|left| left <= longest) => return Parked::Late,
                Ok(0) | Err(Errno::INTR) => {
                    if let Some(Err(exception)) = Python::try_attach(run_handlers) {
                        RAISED.set(Some(exception));
                        return Parked::Interrupted;
                    }
                    longest = (longest * 2).min(LONGEST_SLEEP);
                }
                // Whatever else poll may say, it is for the caller to look.
                _ => {
                    let mut count = [0; 8];
                    let _ = rustix::io::read(&self.0, &mut count);
                    return Parked::Woken;
                }
            }
        }
    }

    fn unpark(&self) {
        // It fails only where it has been rung very often and not been heard.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }
}
