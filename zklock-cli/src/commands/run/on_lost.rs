//! `--on-lost`: a command that runs when the lock is lost.

use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::io;
use std::process::{Child, Stdio};

use nix::sys::signal::Signal;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::net::unix::pipe::Receiver;

use crate::commands::variables::Variables;
use crate::processes::descendants::signal_group;
use crate::processes::launch;
use crate::processes::signals::Signals;

pub(super) struct OnLost<'a> {
    command: Option<&'a OsString>,
    variables: Variables,
    child: Option<Child>,
}

impl<'a> OnLost<'a> {
    pub(super) fn new(command: Option<&'a OsString>, variables: Variables) -> Self {
        Self { command, variables, child: None }
    }

    /// Returns the environment of this command and of the job.
    pub(super) fn variables(&self) -> &Variables {
        &self.variables
    }

    /// Says that the lock is lost, starts the command, and returns how the run ended.
    pub(super) fn report<T>(&mut self, reason: &str, text: &impl Display, outcome: T) -> T {
        say!("{text}");
        self.start(reason);
        outcome
    }

    /// Starts the command. It waits for nothing, because the end of the job must not be late. A second report of the
    /// same loss starts nothing.
    pub(super) fn start(&mut self, reason: &str) {
        let Some(words) = self.command.take() else { return };
        // All signals that we read are blocked, and a program inherits that. The launcher unblocks them.
        let mut command = launch::command(false);
        self.variables.set(&mut command);
        command.args([OsStr::new("sh"), OsStr::new("-c"), words, OsStr::new("zklock")]);
        match command.env("ZKLOCK_REASON", reason).stdin(Stdio::null()).spawn() {
            Ok(child) => self.child = Some(child),
            Err(error) => say!("the command of --on-lost could not be started: {error}"),
        }
    }

    /// Waits until the command has ended, and passes on signals that ask us to end. Returns the last of them.
    pub(super) async fn end(self, signals: &Signals) -> io::Result<Option<Signal>> {
        let Some(mut child) = self.child else { return Ok(None) };
        let group = Pid::from_child(&child);
        let mut signal = None;
        // Kernels before 5.3 have no such descriptor.
        if let Ok(process) = pidfd_open(group, PidfdFlags::empty()) {
            // It is readable when the process is dead.
            let process = Receiver::from_owned_fd_unchecked(process)?;
            loop {
                tokio::select! {
                    _ = process.readable() => break,
                    next = signals.end() => {
                        let next = next?;
                        signal = Some(next);
                        if let Some(next) = rustix::process::Signal::from_named_raw(next as i32) {
                            // It was not yet reaped, so its number is not another's.
                            signal_group(group, next);
                        }
                    }
                }
            }
        }
        // If all that is left of a job was killed in its warden's place, this was reaped there.
        let _ = child.wait();
        Ok(signal)
    }
}
