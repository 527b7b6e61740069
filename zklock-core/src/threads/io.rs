//! Our threads: one for I/O, and one for callbacks, which may take their time.
//!
//! How they are started, and what they take of the host's signals: see [`thread`](super::thread).

use super::descriptors::{Descriptors, OnClosed, Opened};
use super::fork::{OfProcess, Process};
use super::thread::{Entered, not_started, start_thread};
use crate::base::error::{Error, ErrorKind};
use crate::base::platform;
use crate::base::sync::{Mutex, lock_ignoring_poison};
use once_cell::race::OnceBox;
use std::cell::OnceCell;
use std::io;
use std::os::fd::AsRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::pin::Pin;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::AbortHandle;

/// The runtime of a client: one of the program's, or that of the I/O thread. The first client of a process that is made outside
/// of a runtime starts the thread, and it never ends. If the program closes its descriptors, it stops where it is, and the next
/// client starts another one.
#[derive(Clone, Debug)]
pub(crate) struct Io {
    runtime: Handle,
    descriptors: Arc<Descriptors>,
}

type Job = Box<dyn FnOnce() + Send>;

static IO: OfProcess<Mutex<Option<Io>>> = OfProcess::new();

thread_local! {
    /// On the I/O thread: what it depends on.
    static DESCRIPTORS: OnceCell<Arc<Descriptors>> = const { OnceCell::new() };
}

impl Io {
    pub(crate) fn start() -> Result<Self, Error> {
        refuse_second_process()?;
        let mut started = lock_ignoring_poison(IO.here(|_| Mutex::default()));
        if let Some(io) = started.as_ref().filter(|io| io.check().is_ok()) {
            return Ok(io.clone());
        }
        let (runtime, descriptors) = open_runtime().map_err(|error| not_started(&error))?;
        let io = Self { runtime: runtime.handle().clone(), descriptors: descriptors.clone() };
        start_thread("zklock-io", move || {
            let _ = DESCRIPTORS.with(|here| here.set(descriptors.clone()));
            let run = || runtime.block_on(std::future::pending::<()>());
            // It panics if the program closes its descriptors after they were checked.
            let _ = catch_unwind(AssertUnwindSafe(run));
            descriptors.end();
            stop();
        })?;
        *started = Some(io.clone());
        Ok(io)
    }

    /// Makes one of a runtime of the program. Its descriptors are the program's concern.
    pub(crate) fn of(runtime: Handle) -> Result<Self, Error> {
        refuse_second_process()?;
        Ok(Self { runtime, descriptors: Arc::new(Descriptors::of_host()) })
    }

    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Enters the runtime: timers belong to it.
    pub(super) fn enter(&self) -> Entered<'_> {
        Entered::enter(&self.runtime)
    }

    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        // Boxed, so that the runtime's code for a task is compiled once, and not for each kind of task.
        let task: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(future);
        self.runtime.spawn(task).abort_handle()
    }

    pub(crate) fn process(&self) -> Process {
        self.opened().process()
    }

    pub(crate) fn opened(&self) -> Opened {
        self.descriptors.opened()
    }

    /// Whether it must be left alone: in a forked child, or because the program has closed its descriptors.
    pub(crate) fn is_lost(&self) -> bool {
        !self.is_of_host() && !self.opened().are_ours()
    }

    /// Whether it is a runtime of the program. None survives a fork, so nothing is checked.
    pub(crate) fn is_of_host(&self) -> bool {
        self.descriptors.are_of_host()
    }

    /// Fails if it must be left alone. Unlike [`is_lost`](Self::is_lost) it asks the system whether its descriptors are closed.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.is_of_host() { Ok(()) } else { self.descriptors.check() }
    }

    /// Lets `listener` know if the program closes our descriptors.
    pub(crate) fn tell(&self, listener: Weak<dyn OnClosed>) {
        self.descriptors.tell(listener);
    }
}

/// Opens the descriptors of the I/O thread, with numbers above those of the standard streams.
fn open_runtime() -> io::Result<(Runtime, Arc<Descriptors>)> {
    // Its numbers are the lowest that are free, so those of streams that are closed are taken meanwhile. If another thread
    // opens one of these streams in this moment, it gets another number, or what it has put there is closed.
    let mut taken = Vec::new();
    loop {
        let next = platform::descriptor()?;
        if next.as_raw_fd() > 2 {
            break;
        }
        taken.push(next);
    }
    let descriptors = Arc::new(Descriptors::new()?);
    let mut builder = Builder::new_current_thread();
    // The resolver's threads are started when needed, and end soon.
    builder.enable_all().thread_name("zklock-names").thread_keep_alive(Duration::from_millis(100));
    // Only after a sleep: until the next one it is awake for a moment.
    builder.on_thread_unpark(stop_if_closed);
    Ok((builder.build()?, descriptors))
}

/// Stops the I/O thread if the program has closed its descriptors.
fn stop_if_closed() {
    DESCRIPTORS.with(|here| {
        // A child that is forked on this thread has the same descriptors.
        if let Some(descriptors) = here.get().filter(|descriptors| !descriptors.are_ours()) {
            descriptors.end();
            stop();
        }
    });
}

/// It drops nothing: that would close what has the same numbers by now.
fn stop() -> ! {
    loop {
        std::thread::park();
    }
}

/// Lets panics be logged, and not printed. It is for a face that is a library of its own, and so has its own copy of the
/// standard library: the host's panics are not affected.
///
/// # Examples
///
/// ```no_run
/// zklock::face::log_panics();
/// ```
pub fn log_panics() {
    set_hook(Box::new(|panic| {
        // The runtime panics on a closed descriptor. To unwind would close it again, although it may be another one by now.
        stop_if_closed();
        tracing::error!("zklock panicked: {panic}");
    }));
}

/// Notices whether the program has closed our descriptors since. Call it before you use a descriptor of your own that it would
/// have closed together with these.
///
/// # Examples
///
/// ```
/// zklock::face::check_descriptors();
/// ```
pub fn check_descriptors() {
    let io = lock_ignoring_poison(IO.here(|_| Mutex::default())).clone();
    // From now on, `Opened::are_ours` says so.
    let _ = io.map(|io| io.check());
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
/// zklock::face::call_later(move || sender.send(7).unwrap())?;
/// assert_eq!(receiver.recv(), Ok(7));
/// # Ok::<(), zklock::Error>(())
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
    (0..DESCRIPTORS).map(|_| platform::descriptor()).collect::<Result<Vec<_>, _>>().map(drop).map_err(
        |error| {
            let message =
                format!("the system has no more descriptors ({error}): raise the limit of open files");
            Error::new(ErrorKind::Refused, message)
        },
    )
}

/// Without the feature `fork`, only one process among those forked from one another can use the client library: its threads
/// do not exist in the others.
fn refuse_second_process() -> Result<(), Error> {
    static HOME: OnceBox<Process> = OnceBox::new();
    if cfg!(feature = "fork") {
        Ok(())
    } else {
        HOME.get_or_init(|| Box::new(Process::current())).refuse_forked()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::thread::refuse_to_block;

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
}
