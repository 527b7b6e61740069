//! Ends the session of a dead process, so that the next contender in the queue has the lock at once. The warden does that
//! when it has ended the job of a `zklock run`. A process of its own, `zklock guardian`, does it for a `zklock run` that
//! waits, and for programs that call `Client::guard`.
//!
//! It must never do so while the process lives. If nothing is heard of the process, or its end of the sockets is closed,
//! that proves nothing: it may be stopped or slow, and others may have that end. A pidfd becomes readable when the process
//! is dead, and not before, and never stands for a later process.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::time::Duration;

use nix::sys::signal::SigSet;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::sockopt::socket_type;
use serde::Deserialize;
use zklock_core::{ClientOptions, Error, SessionEnd, SessionKey};

use crate::connect::Connection;
use crate::duration;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::processes::clock::{Moment, timespec};
use crate::processes::orders::{Guard, Lines, receive_with_descriptors};

/// The first word of its command line, by which `main` knows it. It is for programs, so help and completions do not show
/// it.
pub(crate) const WORD: &str = "guardian";

/// How long the end of a process may take. It closes its descriptors a little before it is dead.
const ON_ITS_WAY_OUT: Duration = Duration::from_secs(5);

pub(crate) struct Guardian {
    /// The pidfd of the process.
    guarded: OwnedFd,
    key: SessionKey,
    session_timeout: Duration,
    not_before: Moment,
    servers: Servers,
}

/// How to reach the servers.
enum Servers {
    /// As a `zklock run` does.
    Of(Connection),
    /// As a program does, and within this time.
    Told(ClientOptions, Duration),
}

impl Guardian {
    pub(crate) fn new(guarded: OwnedFd, guard: Guard) -> Self {
        let Guard { key, session_timeout, connection, not_before } = guard;
        Self { guarded, key, session_timeout, not_before, servers: Servers::Of(connection) }
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

    /// Ends the session if the process is dead. Nothing of its job may be left by now.
    pub(crate) fn end_session(&self) {
        if !self.is_dead_within(ON_ITS_WAY_OUT) {
            return;
        }
        match self.end() {
            Ok(SessionEnd::WasOver) if self.not_before.since(Moment::now()) > Duration::ZERO => say!(
                "zklock was killed, and its session {:#x} ended before --at-least was over: the lock is free",
                self.key.session_id()
            ),
            Ok(_) => {}
            Err(failure) => say!(
                "a process died, and its locks are free when its session {:#x} times out, in {} or a little more: {failure}",
                self.key.session_id(),
                duration::short(self.session_timeout)
            ),
        }
    }

    /// Ends the session once `--at-least` is over. Until then it keeps the session, which would otherwise time out.
    fn end(&self) -> Result<SessionEnd, Failure> {
        let (options, patience) = match &self.servers {
            Servers::Of(connection) => {
                (&connection.options()?, connection.connect_timeout.unwrap_or(Duration::from_secs(10)))
            }
            Servers::Told(options, patience) => (options, *patience),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let early = self.not_before.since(Moment::now());
        let ended = self.key.end_session_after(early, options, patience.min(self.session_timeout));
        Ok(runtime.block_on(ended)?)
    }
}

/// Returns the command with which a `zklock run` starts it.
pub(crate) fn command() -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("zklock-guardian").arg(WORD);
    command
}

/// A message from a client to its guardian: see zklock-core's `guardian.rs`.
#[derive(Deserialize)]
enum Told {
    /// The pidfd of the client's process comes with it.
    Watch,
    /// The present session of the client.
    Key(Vec<u8>),
    /// How to reach the servers, and for how many milliseconds to try. Then the client waits for an answer.
    Connect { options: Vec<u8>, within: u64 },
    /// The client looks after its session itself.
    Leave,
}

/// The `main` of `zklock guardian`.
pub(crate) fn main(words: &[OsString]) -> ExitCode {
    close_inherited();
    if !words.is_empty() || socket_type(io::stdin()).is_err() {
        say!(
            "`zklock guardian` does nothing by itself: a program starts it, without arguments, by Client::guard"
        );
        return Exit::Usage.into();
    }
    match watch() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say!("the guardian failed: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Closes everything that the program has left open for its children, for example the port on which it listens. Otherwise
/// that would stay open for longer than the program lives.
pub(crate) fn close_inherited() {
    let Ok(open) = std::fs::read_dir("/proc/self/fd") else { return };
    let open: Vec<i32> =
        open.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for descriptor in open.into_iter().filter(|descriptor| *descriptor > 2) {
        // The descriptor of the folder is already closed.
        let _ = nix::unistd::close(descriptor);
    }
}

fn watch() -> io::Result<()> {
    // Only KILL ends it before its client.
    SigSet::all().thread_block()?;
    let _ = rustix::thread::set_name(c"guardian");
    let mut socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let (mut lines, mut descriptors, mut key, mut servers) = (Lines::default(), Vec::new(), None, None);
    loop {
        while let Some(told) = lines.next() {
            match told {
                Told::Watch => {}
                Told::Key(bytes) => key = SessionKey::from_bytes(&bytes).ok(),
                Told::Connect { options, within } => {
                    let options = ClientOptions::from_bytes(&options);
                    socket.write_all(answer(&options).as_bytes())?;
                    let Ok(options) = options else { return Ok(()) };
                    servers = Some(Servers::Told(options, Duration::from_millis(within)));
                }
                Told::Leave => return Ok(()),
            }
        }
        let mut sources = vec![PollFd::new(&socket, PollFlags::IN)];
        sources.extend(descriptors.first().map(|guarded| PollFd::new(guarded, PollFlags::IN)));
        match poll(&mut sources, None) {
            Err(rustix::io::Errno::INTR) => continue,
            polled => polled?,
        };
        // The last message is received, even if the process is dead by now.
        let has_said = !sources[0].revents().is_empty();
        let mut bytes = [0; 4096];
        match has_said.then(|| receive_with_descriptors(&socket, &mut bytes, &mut descriptors)) {
            Some(Ok(received @ 1..)) => lines.push(&bytes[..received]),
            Some(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            // The socket is at its end, or the process is dead and others keep its socket open.
            _ => break,
        }
    }
    if let (Some(guarded), Some(key), Some(servers)) = (descriptors.pop(), key, servers) {
        let (session_timeout, not_before) = (key.session_timeout(), Moment::now());
        Guardian { guarded, key, session_timeout, not_before, servers }.end_session();
    }
    Ok(())
}

/// Returns the answer to a client that has said how to connect.
fn answer(options: &Result<ClientOptions, Error>) -> String {
    match options {
        Ok(_) => "Watches\n".to_owned(),
        Err(error) => format!("Fails {}\n", error.to_string().replace('\n', " ")),
    }
}
