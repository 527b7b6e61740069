//! What `zklock run` and the warden of its job say to each other: JSON, one message a line, over a pair of sockets.

use std::time::Duration;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use zklock_core::SessionKey;

use crate::clock::Moment;
use crate::connect::Connection;

/// From `zklock run` to the warden.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// The first order. The job's input, output and errors come with it.
    Start(Start),
    /// For how long the lock is certain to be held, by what is known now.
    LeaseEnds(Moment),
    /// A signal for the job.
    Signal(i32),
    /// End the job. The lock is lost.
    End,
    /// What follows is no crash: `zklock run` lives, and looks after its session itself.
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
    /// With it comes a descriptor that tells when `zklock run` is dead.
    pub(crate) guard: Option<Box<Guard>>,
}

/// What it takes to end the session of `zklock run` when that is dead.
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

/// How much time there is to end a job.
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
    /// For a session of this timeout.
    ///
    /// A lease in good health runs for a fifth of the timeout at least, right after a grant, and for more than two fifths
    /// later. The job gets no TERM before less than a seventh is left, and so never without trouble.
    pub(crate) fn new(grace: Duration, session_timeout: Duration) -> Self {
        Self {
            grace,
            lease_grace: grace.min(session_timeout / 10),
            margin: Duration::from_millis(100).min(session_timeout / 25),
        }
    }

    /// With so little left of the lease, the job is ended.
    pub(crate) fn least_lease(&self) -> Duration {
        self.lease_grace + self.margin
    }
}

/// From the warden to `zklock run`.
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
    /// As a shell says it: the exit code of the job's first process, or 128 and the number of the signal that ended it.
    pub(crate) code: u8,
    /// Why it was ended, unless it ended by itself.
    pub(crate) cause: Option<Cause>,
}

impl Guard {
    /// Whether it can be passed on. A path in it may be of letters that JSON has not.
    pub(crate) fn can_be_sent(&self) -> bool {
        serde_json::to_vec(self).is_ok()
    }
}

/// A message as a line.
pub(crate) fn line(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Bytes that become lines, and these messages.
#[derive(Debug, Default)]
pub(crate) struct Lines(Vec<u8>);

impl Lines {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// The next message, if all of its line is there.
    pub(crate) fn next<T: for<'de> Deserialize<'de>>(&mut self) -> Option<T> {
        let end = self.0.iter().position(|byte| *byte == b'\n')?;
        let line: Vec<_> = self.0.drain(..=end).collect();
        // Both ends are this program, so there is nothing that it could not read.
        serde_json::from_slice(&line).ok()
    }
}
