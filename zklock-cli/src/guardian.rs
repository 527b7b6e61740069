//! Ends the session of a process that is dead, so that the next in the queue has the lock at once: for the warden, when it has
//! ended the job of a `zklock run`, and as a process of its own, `zklock guardian`, for a `zklock run` that waits and for programs
//! that call `Client::guard`.
//!
//! It must never do so while the process lives. That nothing is heard of it, or that its end of the sockets is closed, proves
//! nothing: it may be stopped or slow, and others may have that end. A pidfd is readable when the process is dead, and not before,
//! and no later process can have it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::time::Duration;

use clap::Parser;
use nix::sys::signal::SigSet;
use rustix::event::{PollFd, PollFlags, poll};
use serde::Deserialize;
use zklock_core::{SessionEnd, SessionKey};

use crate::clock::Moment;
use crate::connect::Connection;
use crate::duration;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::orders::{Guard, Lines};
use crate::warden::{receive_with_descriptors, timespec};

/// The first word of its command line, by which `main` knows it. It is for programs, so help and completions do not have it.
pub(crate) const WORD: &str = "guardian";

/// A process closes its descriptors on its way out, a little before it is dead.
const ON_ITS_WAY_OUT: Duration = Duration::from_secs(5);

pub(crate) struct Guardian {
    /// The pidfd of the process.
    guarded: OwnedFd,
    guard: Guard,
}

impl Guardian {
    pub(crate) fn new(guarded: OwnedFd, guard: Guard) -> Self {
        Self { guarded, guard }
    }

    pub(crate) fn guarded(&self) -> &OwnedFd {
        &self.guarded
    }

    /// Whether the process is dead.
    pub(crate) fn is_dead(&self) -> bool {
        self.is_dead_within(Duration::ZERO)
    }

    fn is_dead_within(&self, bound: Duration) -> bool {
        let until = Moment::now().plus(bound);
        loop {
            let mut dead = [PollFd::new(&self.guarded, PollFlags::IN)];
            let left = timespec(until.since(Moment::now()));
            match poll(&mut dead, Some(&left)) {
                Err(rustix::io::Errno::INTR) => {}
                // An error proves nothing.
                polled => return polled.is_ok() && dead[0].revents().contains(PollFlags::IN),
            }
        }
    }

    /// Ends the session, if the process is dead. By now nothing must be left of its job.
    pub(crate) fn end_session(&self) {
        let Guard { key, session_timeout, not_before, .. } = &self.guard;
        if !self.is_dead_within(ON_ITS_WAY_OUT) {
            return;
        }
        match self.end() {
            Ok(SessionEnd::WasOver) if not_before.since(Moment::now()) > Duration::ZERO => say!(
                "zklock was killed, and its session {:#x} ended before --at-least was over: the lock is free",
                key.session_id()
            ),
            Ok(_) => {}
            Err(failure) => say!(
                "a process died, and its locks are free when its session {:#x} times out, in {} or a little more: {failure}",
                key.session_id(),
                duration::short(*session_timeout)
            ),
        }
    }

    /// Until `--at-least` is over the session is kept, which without a connection would end before.
    fn end(&self) -> Result<SessionEnd, Failure> {
        let Guard { key, session_timeout, connection, not_before } = &self.guard;
        let patience = connection.connect_timeout.unwrap_or(Duration::from_secs(10)).min(*session_timeout);
        let options = connection.options()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let early = not_before.since(Moment::now());
        Ok(runtime.block_on(key.end_session_after(early, &options, patience))?)
    }
}

/// How it is started for a `zklock run` that is connected like this.
pub(crate) fn command(connection: &Connection) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("zklock-guardian").arg(WORD).envs(connection.variables());
    command
}

/// The command line of `zklock guardian`.
#[derive(Parser)]
#[command(name = "zklock guardian")]
struct Words {
    #[command(flatten)]
    connection: Connection,
}

/// What a client says to its guardian: see zklock-core's `guardian.rs`.
#[derive(Deserialize)]
enum Told {
    /// With it comes the pidfd.
    Watch,
    /// The present session of the client.
    Key(Vec<u8>),
    /// The client looks after its session itself.
    Leave,
}

/// The `main` of `zklock guardian`.
pub(crate) fn main() -> ExitCode {
    let words = match Words::try_parse_from(std::env::args_os().skip(1)) {
        Ok(words) => words,
        Err(error) => {
            let _ = error.print();
            return Exit::Usage.into();
        }
    };
    match watch(words.connection) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say!("the guardian failed: {error}");
            ExitCode::FAILURE
        }
    }
}

fn watch(connection: Connection) -> io::Result<()> {
    // Nothing but KILL ends it before its client.
    SigSet::all().thread_block()?;
    let _ = rustix::thread::set_name(c"guardian");
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let (mut lines, mut descriptors, mut key) = (Lines::default(), Vec::new(), None);
    loop {
        while let Some(told) = lines.next() {
            match told {
                Told::Watch => {}
                Told::Key(bytes) => key = SessionKey::from_bytes(&bytes).ok(),
                Told::Leave => return Ok(()),
            }
        }
        let mut sources = vec![PollFd::new(&socket, PollFlags::IN)];
        sources.extend(descriptors.first().map(|guarded| PollFd::new(guarded, PollFlags::IN)));
        match poll(&mut sources, None) {
            Err(rustix::io::Errno::INTR) => continue,
            polled => polled?,
        };
        // What was said last is heard, even if the process is dead by now.
        let has_said = !sources[0].revents().is_empty();
        let mut bytes = [0; 4096];
        match has_said.then(|| receive_with_descriptors(&socket, &mut bytes, &mut descriptors)) {
            Some(Ok(received @ 1..)) => lines.push(&bytes[..received]),
            Some(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            // It is at its end, or is dead and others keep its socket open.
            _ => break,
        }
    }
    if let (Some(guarded), Some(key)) = (descriptors.pop(), key) {
        let (session_timeout, not_before) = (key.session_timeout(), Moment::now());
        Guardian::new(guarded, Guard { key, session_timeout, connection, not_before }).end_session();
    }
    Ok(())
}
