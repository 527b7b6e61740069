//! Our threads: one for I/O, and one for callbacks, which may take their time.
//!
//! They take no signal of their host. Those that a thread brings on itself (a fault) are left alone,
//! so that the host's crash handler sees ours as well. And a write to a closed connection, which is
//! made on the I/O thread, raises no SIGPIPE that anybody would see.

use super::fork;
use crate::error::{Error, ErrorKind};
use crate::locks::locked;
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use std::cell::Cell;
use std::os::unix::net::UnixDatagram;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::Duration;
use tokio::runtime::{EnterGuard, Handle};
use tokio::task::AbortHandle;

/// The runtime of the I/O thread, which is started by the first client and never ends.
#[derive(Clone, Debug)]
pub(super) struct Io(Handle);

type Job = Box<dyn FnOnce() + Send>;

thread_local! {
    static IS_OURS: Cell<bool> = const { Cell::new(false) };
}

impl Io {
    pub(super) fn start() -> Result<Self, Error> {
        static STARTED: Mutex<Option<Io>> = Mutex::new(None);
        // First: a fork that comes while another thread starts it must not wait for the mutex.
        fork::settle()?;
        refuse_to_block()?;
        let mut started = locked(&STARTED);
        if let Some(io) = &*started {
            return Ok(io.clone());
        }
        let mut builder = tokio::runtime::Builder::new_current_thread();
        // The resolver's threads come when they are needed, and go.
        builder.enable_all().thread_name("zklock-names").thread_keep_alive(Duration::from_millis(100));
        let runtime = builder.build().map_err(|error| not_started(&error))?;
        let io = Self(runtime.handle().clone());
        start_thread("zklock-io", move || runtime.block_on(std::future::pending::<()>()))?;
        *started = Some(io.clone());
        Ok(io)
    }

    pub(super) fn enter(&self) -> EnterGuard<'_> {
        self.0.enter()
    }

    pub(super) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        self.0.spawn(future).abort_handle()
    }
}

/// Runs `job` on the thread for callbacks, after those that were handed over before it. A panic in
/// it is caught.
///
/// There it may take its time: no lock of ours is held, and the I/O thread goes on. It must not make
/// calls that block, which would make the callbacks after it wait: they are refused with
/// [`ErrorKind::Deadlock`].
///
/// ```
/// let (sender, receiver) = std::sync::mpsc::channel();
/// zklock_core::blocking::call_later(move || sender.send(7).unwrap())?;
/// assert_eq!(receiver.recv(), Ok(7));
/// # Ok::<(), zklock_core::Error>(())
/// ```
///
/// # Errors
///
/// [`ErrorKind::Refused`] if the system gives us no thread; [`ErrorKind::Forked`].
pub fn call_later(job: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    static STARTED: Mutex<Option<Sender<Job>>> = Mutex::new(None);
    fork::settle()?;
    let mut started = locked(&STARTED);
    if started.is_none() {
        let (sender, jobs) = channel::<Job>();
        start_thread("zklock-calls", move || {
            for job in jobs {
                // It must not end the thread, on which others rely.
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

/// The client library and those that it uses panic, or try for ever, where they cannot have a thread
/// or a descriptor, and do not recover: so the first things to ask for what they will need are we.
pub(super) fn check_room() -> Result<(), Error> {
    const THREADS: usize = 4;
    const DESCRIPTORS: usize = 10;
    let descriptors: Result<Vec<_>, _> = (0..DESCRIPTORS).map(|_| UnixDatagram::unbound()).collect();
    descriptors.map_err(|error| {
        let message = format!("the system gives no descriptors ({error}): raise the limit of open files");
        Error::new(ErrorKind::Refused, message)
    })?;
    // They all live until the last is started.
    let gate = RwLock::new(());
    let closed = gate.write().unwrap_or_else(PoisonError::into_inner);
    std::thread::scope(|scope| {
        let wait = || drop(gate.read());
        let start = || std::thread::Builder::new().spawn_scoped(scope, wait).map(drop);
        let started = without_signals(|| (0..THREADS).try_for_each(|_| start()));
        drop(closed);
        started.map_err(|error| not_started(&error))
    })
}

/// An error if this thread must not wait, for it would wait for itself.
pub(super) fn refuse_to_block() -> Result<(), Error> {
    fork::refuse_forked()?;
    if IS_OURS.get() {
        let message = "a callback must not make calls that block: hand the work to a thread of your own";
        return Err(Error::new(ErrorKind::Deadlock, message));
    }
    Ok(())
}

fn start_thread(name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    let builder = std::thread::Builder::new().name(name.into());
    let started = without_signals(|| {
        builder.spawn(|| {
            IS_OURS.set(true);
            run();
        })
    });
    started.map(drop).map_err(|error| not_started(&error))
}

/// Starts a thread that takes no signals: it inherits what is blocked here.
pub(super) fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    let mut blocked = SigSet::all();
    for fault in
        [Signal::SIGSEGV, Signal::SIGBUS, Signal::SIGFPE, Signal::SIGILL, Signal::SIGTRAP, Signal::SIGSYS]
    {
        blocked.remove(fault);
    }
    let before = blocked.thread_swap_mask(SigmaskHow::SIG_BLOCK);
    let started = start();
    if let Ok(before) = before {
        // It cannot fail where it has succeeded.
        let _ = before.thread_set_mask();
    }
    started
}

pub(super) fn not_started(error: &std::io::Error) -> Error {
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
        let refused = on_the_calling_thread(|| Io::start().map(drop));
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Deadlock);
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
