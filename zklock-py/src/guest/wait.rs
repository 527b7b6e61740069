//! Waiting without holding the interpreter, while signals are still handled.
//!
//! Python only runs signal handlers in its main thread, and only when that thread runs Python code. So when the main
//! thread waits, it sleeps in `poll`, which a signal ends at once. A signal may come just before the sleep begins, so
//! the first sleeps are short, and none is longer than a second.

use crate::guest::error::keep_signal;
use crate::guest::exit;
use crate::guest::platform::{doorbell, is_main_thread};
use pyo3::prelude::*;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::cell::RefCell;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};
use zklock::face::{Opened, Park, Parked, check_descriptors, park_by};

const FIRST_SLEEP: Duration = Duration::from_millis(20);
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// The longest wait that does not notice signals.
const SLICE: Duration = Duration::from_millis(20);

thread_local! {
    static DOORBELL: RefCell<Option<Arc<Doorbell>>> = const { RefCell::new(None) };
}

pub(crate) fn prepare() {
    is_main_thread();
    park_by(|| {
        if is_main_thread() {
            Doorbell::of_this_thread().map(|doorbell| doorbell as Arc<dyn Park>)
        } else {
            None
        }
    });
}

/// Calls `look`, which waits for up to the given time, until it has found something; `None` if the time runs out. This
/// is for the few waits outside of the core. Signals are handled between two looks.
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

fn run_handlers(py: Python<'_>) -> PyResult<()> {
    py.check_signals()
}

/// Wakes the main thread, or a greenlet. A forked child has a copy: it must not hear what is meant for the parent, and
/// must not close a descriptor whose number it may be using for something else by then. Neither must a program that has closed
/// our descriptors.
#[derive(Debug)]
pub(crate) struct Doorbell {
    descriptor: Arc<OwnedFd>,
    /// What is written into it makes the descriptor readable. On Linux it is the same one.
    button: Arc<OwnedFd>,
    opened: Opened,
}

impl Doorbell {
    pub(crate) fn new() -> std::io::Result<Self> {
        let (descriptor, button) = doorbell()?;
        Ok(Self { descriptor, button, opened: Opened::now() })
    }

    /// Readable once it has rung.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }

    /// Whether it is of no use here.
    pub(crate) fn is_lost(&self) -> bool {
        !self.opened.are_ours()
    }

    pub(crate) fn ring(&self) {
        if !self.is_lost() {
            // This only fails if it was rung very often without being heard.
            let _ = rustix::io::write(&self.button, &1_u64.to_ne_bytes());
        }
    }

    pub(crate) fn clear(&self) {
        if !self.is_lost() {
            let _ = rustix::io::read(&self.descriptor, &mut [0; 256]);
        }
    }

    /// Sleeps until it rings, or until this time has passed. `None` if it is of no use here.
    pub(crate) fn listen(&self, time: Option<&Timespec>) -> Option<rustix::io::Result<usize>> {
        check_descriptors();
        (!self.is_lost()).then(|| poll(&mut [PollFd::new(&self.descriptor, PollFlags::IN)], time))
    }

    /// `None` if the system has no descriptor left. Then a wait does not notice signals, but still works.
    fn of_this_thread() -> Option<Arc<Self>> {
        DOORBELL.with_borrow_mut(|doorbell| {
            // A signal handler may wait while its thread waits: it must not hear what is meant for the outer wait.
            let free = |doorbell: &&Arc<Self>| Arc::strong_count(doorbell) == 1 && !doorbell.is_lost();
            if doorbell.as_ref().filter(free).is_none() {
                *doorbell = Some(Arc::new(Self::new().ok()?));
            }
            doorbell.clone()
        })
    }
}

impl Drop for Doorbell {
    fn drop(&mut self) {
        check_descriptors();
        if self.is_lost() {
            std::mem::forget((self.descriptor.clone(), self.button.clone()));
        }
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
            // If it is of no use, the caller checks that next, and refuses.
            let Some(heard) = self.listen(sleep.as_ref()) else { return Parked::Woken };
            match heard {
                Ok(0) if left.is_some_and(|left| left <= longest) => return Parked::Late,
                Ok(0) | Err(Errno::INTR) => {
                    if let Some(Err(exception)) = Python::try_attach(run_handlers) {
                        keep_signal(exception);
                        return Parked::Interrupted;
                    }
                    longest = (longest * 2).min(LONGEST_SLEEP);
                }
                // Whatever else poll reports, the caller checks again.
                _ => {
                    self.clear();
                    return Parked::Woken;
                }
            }
        }
    }

    fn unpark(&self) {
        self.ring();
    }
}
