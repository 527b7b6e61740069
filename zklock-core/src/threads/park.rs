//! How a thread sleeps while it waits.

use crate::base::sync::{Condvar, Mutex, lock_ignoring_poison};
use std::sync::{Arc, OnceLock, PoisonError};
use std::task::Wake;
use std::time::Instant;

/// How a thread sleeps while it waits. It is for a face whose threads have other things to look after
/// then, such as the host's signals. See [`park_by`].
pub trait Park: Send + Sync + std::fmt::Debug {
    /// Sleeps until [`unpark`](Self::unpark), which may have come before, or until the deadline. It
    /// may wake without a reason.
    fn park(&self, deadline: Option<Instant>) -> Parked;

    /// Ends the sleep, or the next one. Any thread may call it.
    fn unpark(&self);
}

/// Why a sleep ended. See [`Park::park`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parked {
    /// Something may have changed.
    Woken,
    /// The deadline has come.
    Late,
    /// The wait must end with [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted).
    Interrupted,
}

type Choose = fn() -> Option<Arc<dyn Park>>;

static CHOICE: OnceLock<Choose> = OnceLock::new();

/// Lets `choose` decide how the calling thread sleeps whenever it waits; `None` is the default way.
///
/// # Examples
///
/// ```
/// zklock::face::park_by(|| None);
/// ```
pub fn park_by(choose: fn() -> Option<Arc<dyn Park>>) {
    // The first one stays.
    let _ = CHOICE.set(choose);
}

/// Wakes one thread that waits.
#[derive(Debug)]
pub(super) struct Signal(Arc<dyn Park>);

impl Signal {
    pub(super) fn of_this_thread() -> Arc<Self> {
        let chosen = CHOICE.get().and_then(|choose| choose());
        Arc::new(Self(chosen.unwrap_or_else(|| Arc::new(Bell::default()))))
    }

    pub(super) fn raise(&self) {
        self.0.unpark();
    }

    pub(super) fn wait(&self, deadline: Option<Instant>) -> Parked {
        self.0.park(deadline)
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

/// The default way.
#[derive(Debug, Default)]
struct Bell {
    rung: Mutex<bool>,
    condition: Condvar,
}

impl Park for Bell {
    fn park(&self, deadline: Option<Instant>) -> Parked {
        let mut rung = lock_ignoring_poison(&self.rung);
        while !*rung {
            rung = match deadline {
                None => self.condition.wait(rung).unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Parked::Late;
                    }
                    self.condition.wait_timeout(rung, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        *rung = false;
        Parked::Woken
    }

    fn unpark(&self) {
        *lock_ignoring_poison(&self.rung) = true;
        self.condition.notify_one();
    }
}

#[cfg(all(test, feature = "loom"))]
mod interleavings {
    use super::*;
    use crate::base::sync::atomic::{AtomicBool, Ordering};
    use crate::base::sync::{in_every_order, spawn};
    use std::task::Waker;

    /// As in `wait.rs`: after the future becomes ready, the thread is woken.
    #[test]
    fn a_thread_that_waits_for_a_future_wakes() {
        in_every_order(None, || {
            let signal = Signal::of_this_thread();
            let is_ready = Arc::new(AtomicBool::new(false));
            let (makes_ready, waker) = (is_ready.clone(), Waker::from(signal.clone()));
            let other = spawn(move || {
                makes_ready.store(true, Ordering::Release);
                waker.wake();
            });
            while !is_ready.load(Ordering::Acquire) {
                signal.wait(None);
            }
            other.join().unwrap();
        });
    }
}
