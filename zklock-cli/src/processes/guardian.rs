//! Ends the session of a dead process, so that the next contender in the queue has the lock at once. The warden does that
//! when it has ended the job of a `zklock run`. A process of its own, `zklock guardian`, does it for a `zklock run` that
//! waits, and for programs that call `Client::guard`.
//!
//! It must never do so while the process lives. If nothing is heard of the process, or its end of the sockets is closed,
//! that proves nothing: it may be stopped or slow, and others may have that end. A pidfd becomes readable when the process
//! is dead, and not before, and never stands for a later process.

use std::error::Error;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::RecvFlags;
use rustix::net::sockopt::socket_type;
use zklock::ClientOptions;
use zklock::face::{Message, Moment, now};
use zklock::further::{SessionEnd, SessionKey};

use crate::duration;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::processes::clock::timespec;
use crate::processes::orders::{Peer, help};

/// The first word of its command line, by which `main` knows it. It is for programs, so help and completions do not show
/// it.
pub(crate) const WORD: &str = "guardian";

/// How long the end of a process may take. It closes its descriptors a little before it is dead.
const ON_ITS_WAY_OUT: Duration = Duration::from_secs(5);

pub(crate) struct Guardian {
    /// The pidfd of the process.
    guarded: OwnedFd,
    key: SessionKey,
    not_before: Moment,
    /// How to reach the servers. Files are read when that is to be done.
    options: Message,
}

impl Guardian {
    /// Makes a guardian, if the message has a session's key and the options of its client.
    pub(crate) fn of(guarded: OwnedFd, options: Message) -> Result<Option<Self>, Failure> {
        let Some(key) = options.get_bytes("key") else { return Ok(None) };
        let key = SessionKey::from_bytes(key)?;
        let not_before = Moment::at(options.need_time("not-before")?);
        Ok(Some(Self { guarded, key, not_before, options }))
    }

    pub(crate) fn guarded(&self) -> &OwnedFd {
        &self.guarded
    }

    /// Whether the process is dead, or dies before this is over.
    pub(crate) fn is_dead_within(&self, bound: Duration) -> bool {
        let until = now() + bound;
        loop {
            let mut dead = [PollFd::new(&self.guarded, PollFlags::IN)];
            let left = timespec(until.since(now()));
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
            Ok(SessionEnd::WasOver) if self.not_before.since(now()) > Duration::ZERO => say!(
                "zklock was killed, and its session {:#x} ended before --at-least was over: the lock is free",
                self.key.session_id()
            ),
            Ok(_) => {}
            Err(failure) => say!(
                "a process died, and its locks are free when its session {:#x} times out, in {} or a little more: {failure}",
                self.key.session_id(),
                duration::short(self.key.session_timeout())
            ),
        }
    }

    /// Ends the session once `--at-least` is over. Until then it keeps the session, which would otherwise time out.
    fn end(&self) -> Result<SessionEnd, Failure> {
        let options = ClientOptions::passed_on(&self.options)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let early = self.not_before.since(now());
        let ended = self.key.end_session_after(early, &options);
        Ok(runtime.block_on(ended)?)
    }
}

/// Returns the command with which a `zklock run` starts it.
pub(crate) fn command() -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("zklock-guardian").arg(WORD);
    command
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
    help(c"guardian", "the guardian", watch)
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

fn watch(mut peer: Peer) -> Result<(), Box<dyn Error>> {
    let (mut key, mut options) = (None, None);
    loop {
        // What zklock-core's `guardian.rs` says.
        while let Some(said) = peer.take()? {
            match said.kind() {
                // The pidfd of the client's process comes with it.
                "watch" => {}
                "session" => key = said.get_bytes("key").map(SessionKey::from_bytes).transpose()?,
                "options" => {
                    if let Err(error) = ClientOptions::passed_on(&said) {
                        return Ok(peer.say(&Message::new("fails").and("why", &error))?);
                    }
                    peer.say(&Message::new("watches"))?;
                    options = Some(said);
                }
                // The client looks after its session itself.
                "leave" => return Ok(()),
                _ => return Err(Message::strange().into()),
            }
        }
        let mut sources = vec![PollFd::new(&peer.socket, PollFlags::IN)];
        sources.extend(peer.descriptors.first().map(|guarded| PollFd::new(guarded, PollFlags::IN)));
        match poll(&mut sources, None) {
            Err(rustix::io::Errno::INTR) => continue,
            polled => polled?,
        };
        // The last message is received, even if the process is dead by now.
        let has_said = !sources[0].revents().is_empty();
        match has_said.then(|| peer.receive(RecvFlags::empty())) {
            Some(Ok(1..)) => {}
            Some(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            // The socket is at its end, or the process is dead and others keep its socket open.
            _ => break,
        }
    }
    if let (Some(guarded), Some(key), Some(options)) = (peer.descriptors.pop(), key, options) {
        Guardian { guarded, key, not_before: now(), options }.end_session();
    }
    Ok(())
}
