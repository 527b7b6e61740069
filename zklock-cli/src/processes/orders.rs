//! The messages between `zklock run` and the warden of its job, over a pair of sockets.
//!
//! ```text
//!  run --> warden   start kill-after session-timeout lease-ends [ends-at] [in-foreground] [key not-before, and options]
//!                       the first: with the job's input, output and errors, and a descriptor that shows when we are dead
//!                   lease-ends at: as far as it is known now
//!                   signal number: for the job
//!                   end: the lock is lost, and so the job is to end
//!                   leave: the end of this connection will be no crash, because `run` lives, and looks after its session
//!  warden --> run   started group, or not-started why
//!                   stopped signal: the job's first process was stopped
//!                   ending cause: the job got TERM
//!                   ended code [cause]: nothing is left of the job
//! ```

use std::error::Error;
use std::ffi::CStr;
use std::io::{self, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use clap::ValueEnum;
use nix::sys::signal::SigSet;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use zklock::face::{Message, times};
use zklock::{Client, ClientOptions};

/// The times for the end of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limits {
    /// From TERM to KILL.
    pub(crate) grace: Duration,
    pub(crate) session_timeout: Duration,
}

impl Limits {
    pub(crate) fn of(client: &Client, grace: Duration) -> Self {
        let session_timeout = client.session_timeout().unwrap_or(ClientOptions::DEFAULT_SESSION_TIMEOUT);
        Self { grace, session_timeout }
    }

    /// Returns the time from KILL to the end of the lease.
    pub(crate) fn margin(self) -> Duration {
        Duration::from_millis(100).min(times::KILL.of(self.session_timeout))
    }

    /// Returns the least lease: with less left of it, the job gets TERM, and KILL before the margin.
    pub(crate) fn least_lease(self) -> Duration {
        self.grace.min(times::TERM.of(self.session_timeout)) + self.margin()
    }
}

/// Why a job was ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Cause {
    /// The lease was about to end.
    LeaseEnds,
    /// The lock was lost.
    Lost,
    /// It ran for as long as it may.
    AtMost,
    /// Its first process had ended, and others of its group had not.
    Leftover,
}

impl FromStr for Cause {
    type Err = ();

    fn from_str(number: &str) -> Result<Self, ()> {
        let number: usize = number.parse().map_err(drop)?;
        Self::value_variants().get(number).copied().ok_or(())
    }
}

/// How a job has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ended {
    /// The exit code as a shell reports it: that of the job's first process, or 128 plus the number of the signal that
    /// ended it.
    pub(crate) code: u8,
    /// Why it was ended, unless it ended by itself.
    pub(crate) cause: Option<Cause>,
}

/// The end of the pair of sockets that a helper process has as its input.
pub(crate) struct Peer {
    pub(crate) socket: UnixStream,
    /// What came with the messages.
    pub(crate) descriptors: Vec<OwnedFd>,
    received: Vec<u8>,
}

impl Peer {
    /// Takes the next message that has come.
    pub(crate) fn take(&mut self) -> Result<Option<Message>, zklock::Error> {
        Message::take(&mut self.received)
    }

    /// Receives bytes, and four descriptors at most. Returns how many bytes have come.
    pub(crate) fn receive(&mut self, flags: RecvFlags) -> io::Result<usize> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut buffer = [0; 4096];
        let flags = flags | RecvFlags::CMSG_CLOEXEC;
        let count = recvmsg(&self.socket, &mut [IoSliceMut::new(&mut buffer)], &mut ancillary, flags)?.bytes;
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = message {
                self.descriptors.extend(received);
            }
        }
        self.received.extend_from_slice(&buffer[..count]);
        Ok(count)
    }

    pub(crate) fn say(&mut self, message: &Message) -> io::Result<()> {
        self.socket.write_all(&message.to_line())
    }
}

/// The `main` of a helper process, which only KILL ends before it has done its work.
pub(crate) fn help(
    name: &CStr,
    title: &str,
    work: impl FnOnce(Peer) -> Result<(), Box<dyn Error>>,
) -> ExitCode {
    let done = || {
        SigSet::all().thread_block()?;
        let _ = rustix::thread::set_name(name);
        let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        work(Peer { socket, descriptors: Vec::new(), received: Vec::new() })
    };
    match done() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say!("{title} failed: {error}");
            ExitCode::FAILURE
        }
    }
}
