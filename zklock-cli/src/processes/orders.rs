//! The messages between `zklock run` and the warden of its job: JSON, one on each line, over a pair of sockets.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use zklock_core::SessionKey;
use zklock_core::face::times;

use crate::connect::Connection;
use crate::processes::clock::Moment;

/// A message from `zklock run` to the warden.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// The first order. The job's input, output and errors come with it.
    Start(Start),
    /// The end of the lease, as far as it is known now.
    LeaseEnds(Moment),
    /// A signal for the job.
    Signal(i32),
    /// End the job, because the lock is lost.
    End,
    /// The end of this connection will be no crash: `zklock run` lives, and looks after its session itself.
    Leave,
}

/// How the job is started, and when it must end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Start {
    pub(crate) limits: Limits,
    pub(crate) lease_ends: Moment,
    /// `--at-most`
    pub(crate) ends_at: Option<Moment>,
    /// Whether the job takes our place in the foreground of the terminal.
    pub(crate) in_foreground: bool,
    /// How to end our session. A descriptor that shows when we are dead comes with it.
    pub(crate) guard: Option<Box<Guard>>,
}

/// Everything that it takes to end the session of `zklock run` when that is dead.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Guard {
    #[serde(serialize_with = "key_as_bytes", deserialize_with = "key_of_bytes")]
    pub(crate) key: SessionKey,
    pub(crate) session_timeout: Duration,
    pub(crate) connection: Connection,
    /// `--at-least`: the lock is kept until then.
    pub(crate) not_before: Moment,
}

fn key_as_bytes<S: Serializer>(key: &SessionKey, serializer: S) -> Result<S::Ok, S::Error> {
    key.to_bytes().serialize(serializer)
}

fn key_of_bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SessionKey, D::Error> {
    SessionKey::from_bytes(&Vec::deserialize(deserializer)?).map_err(D::Error::custom)
}

/// The times for the end of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Limits {
    /// From TERM to KILL.
    pub(crate) grace: Duration,
    /// From TERM to KILL if the lease is about to end: no longer than `grace`.
    pub(crate) lease_grace: Duration,
    /// From KILL to the end of the lease.
    pub(crate) margin: Duration,
}

impl Limits {
    /// Makes the limits for a session of this timeout.
    pub(crate) fn new(grace: Duration, session_timeout: Duration) -> Self {
        Self {
            grace,
            lease_grace: grace.min(times::TERM.of(session_timeout)),
            margin: Duration::from_millis(100).min(times::KILL.of(session_timeout)),
        }
    }

    /// Returns the least lease: with less left of it, the job is ended.
    pub(crate) fn least_lease(&self) -> Duration {
        self.lease_grace + self.margin
    }
}

/// A message from the warden to `zklock run`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Report {
    /// The job runs, in a process group of this number.
    Started(i32),
    /// The job could not be started.
    NotStarted(String),
    /// The job's first process was stopped by this signal.
    Stopped(i32),
    /// The job got TERM.
    Ending(Cause),
    /// Nothing is left of the job.
    Ended(Ended),
}

/// Why a job was ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
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

/// How a job has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Ended {
    /// The exit code as a shell reports it: that of the job's first process, or 128 plus the number of the signal that
    /// ended it.
    pub(crate) code: u8,
    /// Why it was ended, unless it ended by itself.
    pub(crate) cause: Option<Cause>,
}

impl Guard {
    /// Whether it can be passed on. A path in it may contain bytes that JSON cannot.
    pub(crate) fn can_be_sent(&self) -> bool {
        serde_json::to_vec(self).is_ok()
    }
}

/// Returns a message as a line.
pub(crate) fn line(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Bytes that arrive, and are taken out as messages, line by line.
#[derive(Debug, Default)]
pub(crate) struct Lines(Vec<u8>);

impl Lines {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Returns the next message, if all of its line has arrived.
    pub(crate) fn next<T: for<'de> Deserialize<'de>>(&mut self) -> Option<T> {
        let end = self.0.iter().position(|byte| *byte == b'\n')?;
        let line: Vec<_> = self.0.drain(..=end).collect();
        // Both ends are this program, so it can read every message.
        serde_json::from_slice(&line).ok()
    }
}

/// Receives bytes, and four descriptors at most. Returns how many bytes have come.
pub(crate) fn receive_with_descriptors(
    socket: &UnixStream,
    bytes: &mut [u8],
    descriptors: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(socket, &mut [IoSliceMut::new(bytes)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            descriptors.extend(received);
        }
    }
    Ok(received.bytes)
}
