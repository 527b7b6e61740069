//! Waiting for a future on a thread that has no runtime.

use super::descriptors::{OnClosed, Opened};
use super::interrupt::Interrupt;
use super::io::Io;
use super::park::{Parked, Signal};
use super::thread::{not_started, refuse_to_block, without_signals};
use crate::base::error::{Error, ErrorKind};
use crate::base::wait::{Wait, cut_short, polled, too_late};
use std::cell::Cell;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Waker};
use tokio::runtime::Handle;

/// The future of a call.
pub(super) type Future<T> = Pin<Box<dyn std::future::Future<Output = Result<T, Error>> + Send>>;

/// Polls the future on this thread until it is ready, its time is over, or the interrupt is triggered. The future keeps the
/// deadline too: it is polled then, and has a moment to end. After an interrupt, what it waits for is over, and it has a moment
/// to leave.
pub(crate) fn wait<T: Send>(
    io: &Io,
    future: Future<T>,
    wait: Wait,
    interrupt: Option<&Interrupt>,
) -> Result<T, Error> {
    let mut result = None;
    let waited: Waited<'_> = Box::pin(async { result = Some(future.await) });
    wait_for(io, waited, wait, interrupt)?;
    result
        .unwrap_or_else(|| Err(Error::new(ErrorKind::Refused, "the wait panicked: this is a bug in zklock")))
}

/// It leaves its result elsewhere, so that the code below is compiled once, and not for each call.
type Waited<'a> = Pin<Box<dyn std::future::Future<Output = ()> + Send + 'a>>;

fn wait_for(io: &Io, future: Waited<'_>, wait: Wait, interrupt: Option<&Interrupt>) -> Result<(), Error> {
    io.check()?;
    refuse_to_block()?;
    match Handle::try_current() {
        // The thread is ending (in a handler of `atexit`, or a destructor of a static), and the data
        // that the runtime keeps for each thread is gone. Another thread has to do it.
        Err(error) if error.is_thread_local_destroyed() => std::thread::scope(|scope| {
            let polls = || poll(io, future, wait, interrupt);
            let builder = std::thread::Builder::new().name("zklock-last".into());
            let last = without_signals(|| builder.spawn_scoped(scope, polls));
            // If it panics, it leaves no result.
            last.map_err(|error| not_started(&error))?.join().unwrap_or(Ok(()))
        }),
        _ => poll(io, future, wait, interrupt),
    }
}

fn poll(io: &Io, future: Waited<'_>, wait: Wait, interrupt: Option<&Interrupt>) -> Result<(), Error> {
    let own = OwnSignal::take(io);
    let polled = poll_by(&own.signal, io, future, wait, interrupt);
    // Only the I/O thread lets it know of closed descriptors.
    if !io.is_of_host() {
        own.keep();
    }
    polled
}

fn poll_by(
    signal: &Arc<Signal>,
    io: &Io,
    future: Waited<'_>,
    wait: Wait,
    interrupt: Option<&Interrupt>,
) -> Result<(), Error> {
    // The future's timers belong to the client's runtime.
    let _runtime = io.enter();
    // Moved here, so that it is dropped inside the runtime.
    let mut future = future;
    let interrupt = interrupt.map(|interrupt| (interrupt, interrupt.register(signal)));
    let waker = Waker::from(signal.clone());
    let mut context = Context::from_waker(&waker);
    let interrupted = || interrupt.is_some_and(|(interrupt, registered)| interrupt.has_ended(registered));
    if interrupted() {
        return Err(interruption());
    }
    let mut is_interrupted = false;
    let (mut now, mut wakes_at) = polled(|| future.as_mut().poll(&mut context));
    while now.is_pending() {
        // With another time to wake, it is leaving.
        if wakes_at.is_none() {
            if is_interrupted {
                break;
            }
            if wait.is_long_over() {
                return Err(too_late());
            }
        }
        let parked = signal.wait([wait.due(), wakes_at].into_iter().flatten().min());
        if let Err(other_process) = io.check() {
            // A signal handler has forked, and returned in the child, so the wait belongs to the parent; or the program has
            // closed the descriptors of the I/O thread, which must not be woken any more.
            std::mem::forget(future);
            return Err(other_process);
        }
        let first = !is_interrupted;
        is_interrupted |= parked == Parked::Interrupted || interrupted();
        let polls = || future.as_mut().poll(&mut context);
        (now, wakes_at) = if is_interrupted && first { cut_short(polls) } else { polled(polls) };
    }
    if is_interrupted { Err(interruption()) } else { Ok(()) }
}

/// What wakes this thread. It is kept for the next wait of the thread, because each wait would otherwise have to make its own
/// known to all.
struct OwnSignal {
    of: Opened,
    signal: Arc<Signal>,
}

thread_local! {
    static OWN: Cell<Option<OwnSignal>> = const { Cell::new(None) };
}

impl OwnSignal {
    fn take(io: &Io) -> Self {
        // A thread that is ending has none.
        let kept = if io.is_of_host() { None } else { OWN.try_with(Cell::take).ok().flatten() };
        // A wait that is over may still be woken. If a signal handler waits while its thread does, it has one of its own.
        let is_free = |own: &Self| own.of == io.opened() && Arc::strong_count(&own.signal) == 1;
        kept.filter(is_free).unwrap_or_else(|| {
            let signal = Signal::of_this_thread();
            io.tell(Arc::downgrade(&signal) as Weak<dyn OnClosed>);
            Self { of: io.opened(), signal }
        })
    }

    fn keep(self) {
        // A thread that is ending keeps nothing.
        let _ = OWN.try_with(|own| own.set(Some(self)));
    }
}

fn interruption() -> Error {
    Error::new(ErrorKind::Interrupted, "the wait was interrupted")
}
