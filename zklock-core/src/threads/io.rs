//! Our threads: one for I/O, and one for callbacks, which may take their time.
//!
//! They take none of the host's signals. Signals that a thread causes itself (faults) are not blocked, so that the host's
//! crash handler sees ours too. And a write to a closed connection, which happens on the I/O thread, raises no SIGPIPE that
//! anybody would see.

use super::fork::{Home, OfProcess, Process};
use crate::error::{Error, ErrorKind};
use crate::sync::lock_ignoring_poison;
use crate::wait::Wait;
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::{EnterGuard, Handle};
use tokio::task::AbortHandle;

/// The runtime of the I/O thread. The first client of a process starts the thread, and it never ends.
#[derive(Clone, Debug)]
pub(crate) struct Io {
    runtime: Handle,
    process: Process,
    has_begun: Arc<AtomicBool>,
}

type Job = Box<dyn FnOnce() + Send>;

thread_local! {
    /// The process in which this thread was started, if it is one of ours. In a child that is forked on it, it is the main
    /// thread.
    static OURS: Cell<Option<Process>> = const { Cell::new(None) };
}

impl Io {
    pub(crate) fn start() -> Result<Self, Error> {
        static STARTED: OfProcess<Mutex<Option<Io>>> = OfProcess::new();
        refuse_second_process()?;
        let mut started = lock_ignoring_poison(STARTED.here(|_| Mutex::default()));
        if let Some(io) = &*started {
            return Ok(io.clone());
        }
        let mut builder = tokio::runtime::Builder::new_current_thread();
        // The resolver's threads are started when needed, and end soon.
        builder.enable_all().thread_name("zklock-names").thread_keep_alive(Duration::from_millis(100));
        let runtime = builder.build().map_err(|error| not_started(&error))?;
        let has_begun = Arc::new(AtomicBool::new(false));
        let io = Self {
            runtime: runtime.handle().clone(),
            process: Process::current(),
            has_begun: has_begun.clone(),
        };
        start_thread("zklock-io", move || {
            runtime.block_on(async {
                has_begun.store(true, Ordering::Relaxed);
                std::future::pending::<()>().await;
            });
        })?;
        *started = Some(io.clone());
        Ok(io)
    }

    pub(crate) fn enter(&self) -> EnterGuard<'_> {
        self.runtime.enter()
    }

    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        // Boxed, so that the runtime's code for a task is compiled once, and not for each kind of task.
        let task: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(future);
        self.runtime.spawn(task).abort_handle()
    }

    pub(crate) fn process(&self) -> Process {
        self.process
    }

    pub(crate) fn is_forked(&self) -> bool {
        self.process.is_forked()
    }

    pub(crate) fn refuse_forked(&self) -> Result<(), Error> {
        self.process.refuse_forked()
    }

    /// Returns the error for a session that was not opened in time, as far as the waiting thread can know the reason. While
    /// a shared object is being loaded, the loader lets no new thread begin.
    pub(crate) fn unconnected(&self, hosts: &str, wait: Wait) -> Error {
        let advice = if self.has_begun.load(Ordering::Relaxed) {
            "check hosts and network"
        } else {
            "the thread for it waits until a shared object is loaded: connect after that, not in its constructors"
        };
        let message = format!("no session with {hosts} was opened {wait}: {advice}");
        Error::new(ErrorKind::Unreachable, message)
    }
}

/// Runs `job` on the thread for callbacks, after the jobs that were handed over before it. A panic in it is caught.
///
/// The job may take its time: no lock of ours is held, and the I/O thread goes on. It must not make calls that block, because
/// the callbacks after it would wait. Such calls fail with [`ErrorKind::Deadlock`].
///
/// # Errors
///
/// [`ErrorKind::Refused`] if the system has no more threads; [`ErrorKind::Forked`] in a child, without the feature `fork`.
///
/// # Examples
///
/// ```
/// let (sender, receiver) = std::sync::mpsc::channel();
/// zklock_core::face::call_later(move || sender.send(7).unwrap())?;
/// assert_eq!(receiver.recv(), Ok(7));
/// # Ok::<(), zklock_core::Error>(())
/// ```
pub fn call_later(job: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    static STARTED: OfProcess<Mutex<Option<Sender<Job>>>> = OfProcess::new();
    refuse_second_process()?;
    let mut started = lock_ignoring_poison(STARTED.here(|_| Mutex::default()));
    if started.is_none() {
        let (sender, jobs) = channel::<Job>();
        start_thread("zklock-calls", move || {
            for job in jobs {
                // A panic must not end the thread, which others rely on.
                let _ = catch_unwind(AssertUnwindSafe(job));
            }
        })?;
        *started = Some(sender);
    }
    if let Some(sender) = &*started {
        // The thread never ends, so there is a receiver.
        let _ = sender.send(Box::new(job));
    }
    Ok(())
}

/// Checks that the system has what a connection will need before anything is begun. Without descriptors, a connection that is
/// half made could only try again.
///
/// It uses a kind of descriptor that every process may have, because a hardened one may be forbidden some kinds of socket. It
/// does not start a thread to see whether that works: while a shared object is being loaded, that would wait until it is.
pub(crate) fn check_resources() -> Result<(), Error> {
    const DESCRIPTORS: usize = 10;
    let one = |_| EventFd::from_flags(EfdFlags::EFD_CLOEXEC);
    (0..DESCRIPTORS).map(one).collect::<Result<Vec<_>, _>>().map(drop).map_err(|error| {
        let message = format!("the system has no more descriptors ({error}): raise the limit of open files");
        Error::new(ErrorKind::Refused, message)
    })
}

/// Without the feature `fork`, only one process among those forked from one another can use the client library: its threads
/// do not exist in the others.
fn refuse_second_process() -> Result<(), Error> {
    static HOME: Home = Home::new();
    if cfg!(feature = "fork") { Ok(()) } else { HOME.settle() }
}

/// Returns an error if this thread must not wait, because it would wait for itself.
pub(crate) fn refuse_to_block() -> Result<(), Error> {
    if OURS.get() == Some(Process::current()) {
        let message = "a callback must not make calls that block: hand the work to a thread of your own";
        return Err(Error::new(ErrorKind::Deadlock, message));
    }
    Ok(())
}

fn start_thread(name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), Error> {
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

pub(crate) fn not_started(error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Refused, format!("a thread cannot be started ({error}): raise the limits"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_the_calling_thread<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> T {
        let (sender, receiver) = channel();
        call_later(move || sender.send(job()).unwrap()).unwrap();
        receiver.recv_timeout(Duration::from_secs(10)).unwrap()
    }

    #[test]
    fn a_callback_may_panic_and_must_not_block() {
        call_later(|| panic!("on purpose")).unwrap();
        let refused = on_the_calling_thread(refuse_to_block);
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Deadlock);
        assert!(refuse_to_block().is_ok());
    }

    #[test]
    fn our_threads_take_no_signals_but_faults() {
        let before = SigSet::thread_get_mask().unwrap();
        let blocked = on_the_calling_thread(|| SigSet::thread_get_mask().unwrap());
        assert_eq!(before, SigSet::thread_get_mask().unwrap());
        for signal in [Signal::SIGTERM, Signal::SIGALRM, Signal::SIGPIPE, Signal::SIGPROF, Signal::SIGUSR1] {
            assert!(blocked.contains(signal), "{signal}");
        }
        assert!(!blocked.contains(Signal::SIGSEGV));
    }
}
