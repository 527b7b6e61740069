//! The owner of a hold: the unit to which a lock belongs.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// The owner of a hold: the unit to which a lock belongs.
///
/// # Examples
///
/// ```
/// use zklock::further::Owner;
///
/// assert_eq!(Owner::current(), Owner::current());
/// assert_ne!(Owner::unique(), Owner::unique());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Owner(Kind);

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Kind {
    Task(tokio::task::Id),
    Thread(u64),
    Named(u64),
    /// A wait that an event loop began: it shares its thread with many others.
    Once(u64),
}

static NEXT: AtomicU64 = AtomicU64::new(1);

impl Owner {
    /// Returns the calling tokio task as an owner, or the calling thread if there is no task.
    ///
    /// # Examples
    ///
    /// ```
    /// use zklock::further::Owner;
    ///
    /// let here = Owner::current();
    /// let elsewhere = std::thread::spawn(Owner::current).join().unwrap();
    /// assert_ne!(here, elsewhere);
    /// ```
    pub fn current() -> Self {
        thread_local! {
            /// The number of this thread, which no later thread gets. It has no destructor, so it exists to the very
            /// end: a program may release a lock while it exits, when `std::thread::current()` would panic.
            static THREAD: Cell<u64> = const { Cell::new(0) };
        }
        if let Some(id) = tokio::task::try_id() {
            return Self(Kind::Task(id));
        }
        Self(Kind::Thread(THREAD.with(|thread| {
            if thread.get() == 0 {
                thread.set(next());
            }
            thread.get()
        })))
    }

    /// Makes a new owner, distinct from every other: for the task of another event loop, for example.
    ///
    /// # Examples
    ///
    /// ```
    /// use zklock::further::Owner;
    ///
    /// // Two coroutines that share a thread, but no locks.
    /// let (one, other) = (Owner::unique(), Owner::unique());
    /// assert!(one != other && one != Owner::current());
    /// ```
    pub fn unique() -> Self {
        Self(Kind::Named(next()))
    }

    /// Makes an owner that acquires once and holds nothing else, so that its hold may be released from anywhere. It is
    /// for calls made on an event loop, which share a thread with many others.
    ///
    /// # Examples
    ///
    /// ```
    /// use zklock::further::Owner;
    ///
    /// // Two waits that one event loop begins.
    /// let (first, second) = (Owner::once(), Owner::once());
    /// assert!(first != second && first != Owner::current());
    /// ```
    pub fn once() -> Self {
        Self(Kind::Once(next()))
    }

    /// Whether it can come back and release what it acquired.
    pub(crate) fn returns(self) -> bool {
        !matches!(self.0, Kind::Once(_))
    }
}

fn next() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_stays_itself_and_is_no_other() {
        let here = Owner::current();
        assert_eq!(here, Owner::current());
        assert_ne!(here, std::thread::spawn(Owner::current).join().unwrap());
        assert_ne!(here, Owner::unique());
        assert!(here.returns() && Owner::unique().returns() && !Owner::once().returns());
    }
}
