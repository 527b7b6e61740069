//! Locking without panicking. `tests/run threads` replaces these types with loom's: see the modules
//! named `interleavings`.

#[cfg(all(test, feature = "loom"))]
pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard, atomic};
use std::sync::PoisonError;
#[cfg(not(all(test, feature = "loom")))]
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, atomic};
use tokio::sync::watch;

/// Locks a mutex even if it is poisoned. No code of ours panics while it holds a lock, and if it did,
/// the data would still be consistent.
pub(crate) fn lock_ignoring_poison<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Replaces the value of a channel if that is as it should be; `false` if it stays.
pub(crate) fn replace_if<T>(
    sender: &watch::Sender<T>,
    value: T,
    is_to_change: impl FnOnce(&T) -> bool,
) -> bool {
    sender.send_if_modified(|old| {
        let changes = is_to_change(old);
        if changes {
            *old = value;
        }
        changes
    })
}

/// Runs `meet` once for each order of its threads in which at most `interruptions` changes interrupt a thread that could go on;
/// `None` is no bound. loom fails if all threads wait for one another.
#[cfg(all(test, feature = "loom"))]
pub(crate) fn in_every_order(interruptions: Option<usize>, meet: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = interruptions;
    model.max_branches = 100_000;
    let meet = std::sync::Arc::new(meet);
    model.check(move || {
        let meet = meet.clone();
        spawn(move || meet()).join().expect("they have met");
    });
}

/// Starts a thread of loom's. By default those have too little stack for code that is not optimised.
#[cfg(all(test, feature = "loom"))]
pub(crate) fn spawn<T: Send + 'static>(
    run: impl FnOnce() -> T + Send + 'static,
) -> loom::thread::JoinHandle<T> {
    const WORDS: usize = 0x10000;
    loom::thread::Builder::new().stack_size(WORDS).spawn(run).expect("there is room for a thread")
}

/// Sleeps until the future is ready. A wake-up that is lost leaves it asleep.
#[cfg(all(test, feature = "loom"))]
pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    use std::sync::Arc;
    use std::task::{Context, Poll, Wake};

    struct Unpark(loom::thread::Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let (mut future, waker) = (std::pin::pin!(future), Arc::new(Unpark(loom::thread::current())).into());
    loop {
        if let Poll::Ready(result) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return result;
        }
        loom::thread::park();
    }
}
