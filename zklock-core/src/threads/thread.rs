//! How our threads are started, and how a thread is known as one of ours.
//!
//! They take none of the host's signals. Signals that a thread causes itself (faults) are not blocked, so that the host's
//! crash handler sees ours too. And a write to a closed connection, which happens on the I/O thread, raises no SIGPIPE that
//! anybody would see.

use super::fork::Process;
use crate::base::error::{Error, ErrorKind};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use std::cell::Cell;
use std::io;
use tokio::runtime::{EnterGuard, Handle};

thread_local! {
    /// The process in which this thread was started, if it is one of ours. In a child that is forked on it, it is the main
    /// thread.
    static OURS: Cell<Option<Process>> = const { Cell::new(None) };
    /// How many waits of this thread have entered a runtime. A signal handler waits within another wait.
    static WAITS: Cell<u32> = const { Cell::new(0) };
}

/// Returns an error if this thread must not wait, because it would wait for itself, or stop the tasks of its runtime.
pub(crate) fn refuse_to_block() -> Result<(), Error> {
    let message = if OURS.get() == Some(Process::current()) {
        "a callback must not make calls that block: hand the work to a thread of your own"
    } else if host_runtime().is_some() {
        "a thread of an asynchronous runtime must not block: await the call, or wait for it with Handle::block_on in a \
         blocking task"
    } else {
        return Ok(());
    };
    Err(Error::new(ErrorKind::Deadlock, message))
}

/// Returns the runtime that the program has entered on this thread, if there is one.
pub(crate) fn host_runtime() -> Option<Handle> {
    let is_ours = OURS.get().is_some() || WAITS.get() > 0;
    if is_ours { None } else { Handle::try_current().ok() }
}

/// A wait of this thread, within a runtime that the program has not entered.
pub(super) struct Entered<'a> {
    _runtime: EnterGuard<'a>,
}

impl<'a> Entered<'a> {
    pub(super) fn enter(runtime: &'a Handle) -> Self {
        WAITS.set(WAITS.get() + 1);
        Self { _runtime: runtime.enter() }
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        WAITS.set(WAITS.get() - 1);
    }
}

pub(super) fn start_thread(name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    let builder = std::thread::Builder::new().name(name.into());
    let started = without_signals(|| {
        builder.spawn(|| {
            OURS.set(Some(Process::current()));
            run();
        })
    });
    started.map(drop).map_err(|error| not_started(&error))
}

/// Starts a thread that takes no signals: it inherits the signals blocked here.
pub(crate) fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    let mut blocked = SigSet::all();
    for fault in
        [Signal::SIGSEGV, Signal::SIGBUS, Signal::SIGFPE, Signal::SIGILL, Signal::SIGTRAP, Signal::SIGSYS]
    {
        blocked.remove(fault);
    }
    let before = blocked.thread_swap_mask(SigmaskHow::SIG_BLOCK);
    let started = start();
    if let Ok(before) = before {
        // It cannot fail, since it has just succeeded.
        let _ = before.thread_set_mask();
    }
    started
}

pub(crate) fn not_started(error: &io::Error) -> Error {
    Error::new(ErrorKind::Refused, format!("a thread cannot be started ({error}): raise the limits"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    #[test]
    fn our_threads_take_no_signals_but_faults() {
        let before = SigSet::thread_get_mask().unwrap();
        let (sender, receiver) = channel();
        start_thread("zklock-test", move || sender.send(SigSet::thread_get_mask().unwrap()).unwrap())
            .unwrap();
        let blocked = receiver.recv_timeout(Duration::from_secs(10)).unwrap();
        assert_eq!(before, SigSet::thread_get_mask().unwrap());
        for signal in [Signal::SIGTERM, Signal::SIGALRM, Signal::SIGPIPE, Signal::SIGPROF, Signal::SIGUSR1] {
            assert!(blocked.contains(signal), "{signal}");
        }
        assert!(!blocked.contains(Signal::SIGSEGV));
    }
}
