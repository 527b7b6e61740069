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

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::str::FromStr;
use std::time::Duration;

use clap::ValueEnum;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use zklock::face::times;

/// The times for the end of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limits {
    /// From TERM to KILL.
    pub(crate) grace: Duration,
    pub(crate) session_timeout: Duration,
}

impl Limits {
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

/// Receives bytes, and four descriptors at most. Returns how many bytes have come.
pub(crate) fn receive_with_descriptors(
    socket: &UnixStream,
    bytes: &mut Vec<u8>,
    descriptors: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut buffer = [0; 4096];
    let received =
        recvmsg(socket, &mut [IoSliceMut::new(&mut buffer)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            descriptors.extend(received);
        }
    }
    bytes.extend_from_slice(&buffer[..received.bytes]);
    Ok(received.bytes)
}
