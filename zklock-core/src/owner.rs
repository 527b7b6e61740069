//! Who acquires: the unit to which a lock belongs.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// The tokio task, or outside of one the thread; or a wait that belongs to neither.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Owner {
    Task(tokio::task::Id),
    Thread(u64),
    /// A wait that an event loop began: its thread is that of many others.
    Ticket(u64),
}

static NEXT: AtomicU64 = AtomicU64::new(1);

impl Owner {
    pub(crate) fn current() -> Self {
        thread_local! {
            /// The number of this thread, which no later thread has. It has no destructor, so it is
            /// there to the very end: a program may release a lock while it exits, when
            /// `std::thread::current()` would panic.
            static THREAD: Cell<u64> = const { Cell::new(0) };
        }
        if let Some(id) = tokio::task::try_id() {
            return Self::Task(id);
        }
        Self::Thread(THREAD.with(|thread| {
            if thread.get() == 0 {
                thread.set(NEXT.fetch_add(1, Ordering::Relaxed));
            }
            thread.get()
        }))
    }

    /// One that is nobody else.
    pub(crate) fn ticket() -> Self {
        Self::Ticket(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// Whether it can come back and release what it acquired.
    pub(crate) fn returns(self) -> bool {
        !matches!(self, Self::Ticket(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_stays_itself_and_is_no_other() {
        let here = Owner::current();
        assert_eq!(here, Owner::current());
        assert_ne!(here, std::thread::spawn(Owner::current).join().unwrap());
        assert_ne!(here, Owner::ticket());
        assert!(here.returns() && !Owner::ticket().returns());
    }
}
