//! What `zklock run` and the warden of its job say to each other: JSON, one message a line, over a pair of sockets.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::Moment;

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
