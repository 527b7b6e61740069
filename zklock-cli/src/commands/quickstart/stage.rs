//! The processes of the workers, and the lines that they write.
//!
//! They all write to one pipe, a line at a time, and one reader prints. So lines come in the order in which they were written, and what
//! one worker writes before it releases the lock comes before all that the next one writes, however late either gets the processor.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use super::play::failed;
use crate::failure::Failure;

/// The answers of the ledger to a write, and the message to a worker whose work is done.
pub(super) const ACCEPTED: &str = "accepted";
const REFUSED: &str = "refused";
pub(super) const GO_ON: &str = "go on";

/// The next report of the workers, or its absence.
pub(super) enum Heard {
    /// A line, and the worker that has written it.
    Line(usize, String),
    /// No worker has written anything in that time.
    Nothing,
    /// All workers have ended.
    TheEnd,
}

pub(super) struct Stage {
    workers: Vec<Child>,
    reports: Receiver<String>,
}

impl Stage {
    /// Starts workers that connect as this command line says.
    pub(super) fn on_ensemble(count: usize, words: &[OsString]) -> Result<Self, Failure> {
        Self::start(count, |worker| {
            worker.args(words);
        })
    }

    /// Starts workers on a server in memory, whatever the environment and a configuration file say.
    pub(super) fn in_memory(count: usize, hosts: &str) -> Result<Self, Failure> {
        Self::start(count, |worker| {
            for (name, _) in std::env::vars_os() {
                if name.to_string_lossy().starts_with("ZKLOCK_") {
                    worker.env_remove(name);
                }
            }
            worker.args(["--config", "/dev/null", "quickstart", "--connect", hosts]);
        })
    }

    fn start(count: usize, prepare: impl Fn(&mut Command)) -> Result<Self, Failure> {
        let (reading, writing) = pipe_with(PipeFlags::CLOEXEC).map_err(std::io::Error::from)?;
        let mut stage = Self { workers: Vec::new(), reports: read(reading) };
        for index in 0..count {
            let mut worker = Command::new("/proc/self/exe");
            worker.args([super::WORD, &name(index)]);
            prepare(&mut worker);
            worker.stdin(Stdio::piped()).stdout(writing.try_clone()?);
            stage.workers.push(worker.spawn()?);
        }
        Ok(stage)
    }

    /// Returns the next report.
    pub(super) fn hear(&self, within: Duration) -> Result<Heard, Failure> {
        let line = match self.reports.recv_timeout(within) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => return Ok(Heard::Nothing),
            Err(RecvTimeoutError::Disconnected) => return Ok(Heard::TheEnd),
        };
        let (who, what) = line.split_once(' ').unwrap_or((&line, ""));
        let index = (0..self.workers.len()).find(|index| name(*index) == who);
        let index = index.ok_or_else(|| failed(format!("nobody is called {who:?}")))?;
        Ok(Heard::Line(index, what.to_owned()))
    }

    /// Answers a write.
    pub(super) fn answer(&mut self, index: usize, is_accepted: bool) -> Result<(), Failure> {
        self.tell(index, if is_accepted { ACCEPTED } else { REFUSED })
    }

    /// Tells a worker that its work is done.
    pub(super) fn go_on(&mut self, index: usize) -> Result<(), Failure> {
        self.tell(index, GO_ON)
    }

    fn tell(&mut self, index: usize, text: &str) -> Result<(), Failure> {
        let input = self.workers[index].stdin.as_mut();
        let told = input.map(|input| input.write_all(format!("{text}\n").as_bytes()));
        // This pipe has nothing to do with our own output, so its errors are reported as a worker's end.
        told.and_then(Result::ok).ok_or_else(|| failed(format!("{} is gone", name(index))))
    }

    pub(super) fn kill(&mut self, index: usize) -> Result<(), Failure> {
        Ok(self.workers[index].kill()?)
    }

    /// Stops a process where it is, as happens on a machine that is out of memory, or a laptop that is closed. When this
    /// returns, the process stands still.
    pub(super) fn stop(&self, index: usize) -> Result<(), Failure> {
        let pid = self.signal(index, Signal::STOP)?;
        let options = WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(pid), options).map_err(std::io::Error::from)?;
        Ok(())
    }

    pub(super) fn wake(&self, index: usize) -> Result<(), Failure> {
        self.signal(index, Signal::CONT)?;
        Ok(())
    }

    fn signal(&self, index: usize, signal: Signal) -> Result<Pid, Failure> {
        let pid = Pid::from_child(&self.workers[index]);
        kill_process(pid, signal).map_err(std::io::Error::from)?;
        Ok(pid)
    }

    /// Returns how a worker has ended, if it has.
    pub(super) fn has_ended(&mut self, index: usize) -> Result<Option<ExitStatus>, Failure> {
        Ok(self.workers[index].try_wait()?)
    }

    /// Waits until a worker has ended, and returns how.
    pub(super) fn status(&mut self, index: usize) -> Result<ExitStatus, Failure> {
        Ok(self.workers[index].wait()?)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            // Workers that have ended are already gone.
            let _ = worker.kill();
            let _ = worker.wait();
        }
    }
}

fn read(pipe: OwnedFd) -> Receiver<String> {
    let (sender, reports) = channel();
    thread::spawn(move || {
        for line in BufReader::new(File::from(pipe)).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    reports
}

pub(super) fn name(index: usize) -> String {
    format!("worker-{}", index + 1)
}
