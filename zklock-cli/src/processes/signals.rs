//! Signals, read from a descriptor.
//!
//! They are blocked rather than handled. So SIGTSTP keeps its default action, which this process uses to stop itself
//! ([`suspend`]).

use std::fs;
use std::io;
use std::sync::Arc;

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd, siginfo};
use rustix::process::{getpid, kill_current_process_group, kill_process};
use tokio::net::unix::pipe::Receiver;

/// The signals that are passed on to a job.
const PASSED_ON: [Signal; 9] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGTSTP,
    Signal::SIGCONT,
    Signal::SIGWINCH,
];

/// Undoes what outlives exec and nobody means for us, as flock(1) and timeout(1) do: blocked signals, and an ignored SIGCHLD,
/// with which nobody learns how a child has ended. A handler does not outlive exec, so our children get the default action.
pub(crate) fn reset() -> io::Result<()> {
    SigSet::empty().thread_set_mask()?;
    signal_hook::flag::register(Signal::SIGCHLD as i32, Arc::default()).map(drop)
}

/// Blocks these signals in this thread, and in all that it starts. It must be called before there are others.
///
/// A signal that is ignored stays ignored, as under `nohup`; the job inherits that.
pub(crate) fn block() -> io::Result<SigSet> {
    let ignored = ignored();
    let mut watched = SigSet::empty();
    PASSED_ON.into_iter().filter(|signal| !is_in(ignored, *signal)).for_each(|signal| watched.add(signal));
    let mut blocked = watched;
    // So that the terminal's foreground can be given and taken from the background.
    blocked.add(Signal::SIGTTOU);
    // A limit of the size of files makes a write fail, but does not end us.
    blocked.add(Signal::SIGXFSZ);
    blocked.thread_block()?;
    Ok(watched)
}

/// Returns the set of ignored signals, as the kernel writes it.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let set = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or_default()
}

fn is_in(set: u64, signal: Signal) -> bool {
    set >> (signal as i32 - 1) & 1 == 1
}

/// The signals that this process gets.
///
/// They are read as a pipe is, for which tokio has a type. Nothing but [`next`](Self::next) takes a signal: in [`suspend`] it
/// must be there for the thread that wants to be stopped by it.
#[derive(Debug)]
pub(crate) struct Signals(Receiver);

impl Signals {
    /// Makes the receiver of the signals that [`block`] has blocked.
    pub(crate) fn new(watched: &SigSet) -> io::Result<Self> {
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        let descriptor = SignalFd::with_flags(watched, flags)?;
        Ok(Self(Receiver::from_owned_fd_unchecked(descriptor.into())?))
    }

    /// Returns the next signal. May be dropped and called again.
    pub(crate) async fn next(&self) -> io::Result<Signal> {
        let mut info = [0; size_of::<siginfo>()];
        loop {
            self.0.readable().await?;
            match self.0.try_read(&mut info) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                read => read?,
            };
            // It begins with the number.
            let number = info.first_chunk().copied().map(i32::from_ne_bytes).unwrap_or_default();
            if let Ok(signal) = Signal::try_from(number) {
                return Ok(signal);
            }
        }
    }

    /// Returns the next signal that asks us to end. A signal that asks us to stop stops us on the way.
    pub(crate) async fn end(&self) -> io::Result<Signal> {
        loop {
            match self.next().await? {
                Signal::SIGTSTP => suspend(Whom::Itself)?,
                Signal::SIGCONT | Signal::SIGWINCH => {}
                signal => return Ok(signal),
            }
        }
    }
}

/// The processes to stop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Whom {
    /// This process alone. The process that told us to stop may have told others.
    Itself,
    /// Its group, which is what Ctrl-Z would have stopped if the job were not in the foreground in its place.
    Group,
}

/// Stops this process, and returns when it is continued. If nobody is there to continue it, because its group has no
/// shell, the kernel does not stop it.
pub(crate) fn suspend(whom: Whom) -> io::Result<()> {
    match whom {
        Whom::Itself => kill_process(getpid(), rustix::process::Signal::TSTP)?,
        Whom::Group => kill_current_process_group(rustix::process::Signal::TSTP)?,
    }
    let mut stop = SigSet::empty();
    stop.add(Signal::SIGTSTP);
    // Here we stop.
    stop.thread_unblock()?;
    stop.thread_block()?;
    Ok(())
}
