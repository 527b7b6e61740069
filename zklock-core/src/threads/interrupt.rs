//! Ending a wait from another thread.

use super::park::Signal;
use crate::base::sync::{Mutex, lock_ignoring_poison};
use std::sync::{Arc, Weak};

/// Ends waits of other threads, for example when a signal arrives.
///
/// # Examples
///
/// ```
/// use zklock::further::Interrupt;
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
    /// How many times it was triggered. A reset must not hide that from a thread that was waiting.
    times: u64,
    waiting: Vec<Weak<Signal>>,
}

impl Interrupt {
    /// Makes an interrupt that is not triggered.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use zklock::further::Interrupt;
    ///
    /// # fn example(lock: &zklock::Lock) -> Result<(), zklock::Error> {
    /// let interrupt = Interrupt::new();
    /// // ... give a clone to the thread that handles signals ...
    /// let hold = lock.acquire().wait_unless(&interrupt)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends all waits with this interrupt, current and future ones.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use zklock::further::Interrupt;
    ///
    /// # fn example(lock: zklock::Lock) {
    /// let interrupt = Interrupt::new();
    /// let for_waiter = interrupt.clone();
    /// let waiter = std::thread::spawn(move || lock.acquire().wait_unless(&for_waiter));
    /// interrupt.trigger();
    /// // The waiter gets an error of the kind `Interrupted`, unless it was granted the lock before.
    /// # }
    /// ```
    pub fn trigger(&self) {
        let mut state = lock_ignoring_poison(&self.state);
        state.triggered = true;
        state.times += 1;
        for signal in state.waiting.drain(..).filter_map(|signal| signal.upgrade()) {
            signal.raise();
        }
    }

    /// Lets future waits go on. Waits that it had already ended stay ended.
    ///
    /// # Examples
    ///
    /// ```
    /// # let interrupt = zklock::further::Interrupt::new();
    /// interrupt.trigger();
    /// // ... all waits have ended ...
    /// interrupt.reset();
    /// assert!(!interrupt.is_triggered());
    /// ```
    pub fn reset(&self) {
        lock_ignoring_poison(&self.state).triggered = false;
    }

    /// Returns whether it is triggered.
    ///
    /// # Examples
    ///
    /// ```
    /// # let interrupt = zklock::further::Interrupt::new();
    /// assert!(!interrupt.is_triggered());
    /// interrupt.trigger();
    /// assert!(interrupt.is_triggered());
    /// ```
    pub fn is_triggered(&self) -> bool {
        lock_ignoring_poison(&self.state).triggered
    }

    /// Raises the signal when triggered. Returns how many times it had been triggered before.
    pub(super) fn register(&self, signal: &Arc<Signal>) -> u64 {
        let mut state = lock_ignoring_poison(&self.state);
        // A thread has the same signal again in its next wait.
        state.waiting.retain(|other| other.strong_count() > 0 && other.as_ptr() != Arc::as_ptr(signal));
        state.waiting.push(Arc::downgrade(signal));
        state.times
    }

    pub(super) fn has_ended(&self, registered: u64) -> bool {
        let state = lock_ignoring_poison(&self.state);
        state.triggered || state.times != registered
    }
}

#[cfg(test)]
mod tests {
    use super::super::io::Io;
    use super::super::wait::wait;
    use super::*;
    use crate::base::error::{Error, ErrorKind};
    use crate::base::wait::Wait;
    use std::time::Duration;

    #[test]
    fn an_interrupt_ends_waits_to_come_until_it_is_reset() {
        let interrupt = Interrupt::new();
        let waited = |until| {
            let never = Box::pin(std::future::pending::<Result<(), Error>>());
            wait(&Io::start().unwrap(), never, until, Some(&interrupt)).unwrap_err().kind()
        };
        interrupt.trigger();
        assert_eq!(waited(Wait::Forever), ErrorKind::Interrupted);
        interrupt.reset();
        assert_eq!(waited(Wait::from(Duration::from_millis(5))), ErrorKind::Timeout);
    }
}

#[cfg(all(test, feature = "loom"))]
mod interleavings {
    use super::*;
    use crate::base::sync::{in_every_order, spawn};

    /// A wait is registered before the first check, and checks the interrupt after each wake. A reset hides nothing from a wait.
    #[test]
    fn an_interrupt_ends_a_wait_whenever_it_comes() {
        in_every_order(None, || {
            let (signal, interrupt) = (Signal::of_this_thread(), Interrupt::new());
            let (elsewhere, registered) = (interrupt.clone(), interrupt.register(&signal));
            let other = spawn(move || {
                elsewhere.trigger();
                elsewhere.reset();
            });
            while !interrupt.has_ended(registered) {
                signal.wait(None);
            }
            other.join().unwrap();
            assert!(!interrupt.is_triggered());
        });
    }
}
