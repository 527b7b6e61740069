//! The processes of the workers, and what they say.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::Result;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(90);

/// A line that a worker has said, or `None` when it has ended.
type Report = (usize, Option<String>);

pub(crate) struct Stage {
    begun: Instant,
    workers: Vec<Child>,
    ended: usize,
    /// What was said in a pause, to be heard after it.
    later: VecDeque<(usize, String)>,
    reports: Receiver<Report>,
    sender: Sender<Report>,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let (sender, reports) = channel();
        Self { begun: Instant::now(), workers: Vec::new(), ended: 0, later: VecDeque::new(), reports, sender }
    }

    /// A line for whoever watches.
    pub(crate) fn say(&self, text: &str) {
        println!("{:6.2} s  {text}", self.begun.elapsed().as_secs_f64());
    }

    /// Starts the next worker.
    pub(crate) fn start(&mut self, hosts: &str) -> Result<()> {
        let index = self.workers.len();
        let mut worker = Command::new(std::env::current_exe()?)
            .args(["--connect", hosts, "--worker", &name(index)])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let output = worker.stdout.take().ok_or("the worker has no output")?;
        let sender = self.sender.clone();
        thread::spawn(move || {
            let lines = BufReader::new(output).lines().map_while(std::result::Result::ok);
            // Nobody listens any more when the supervisor has failed.
            for line in lines.map(Some).chain([None]) {
                let _ = sender.send((index, line));
            }
        });
        self.workers.push(worker);
        Ok(())
    }

    /// What is said next, and by whom; `None` when all have ended.
    pub(crate) fn next(&mut self) -> Result<Option<(usize, String)>> {
        while self.ended < self.workers.len() || !self.later.is_empty() {
            if let Some(report) = self.later.pop_front() {
                return Ok(Some(report));
            }
            match self.reports.recv_timeout(PATIENCE) {
                Ok((index, Some(line))) => return Ok(Some((index, line))),
                Ok((_, None)) => self.ended += 1,
                Err(_) => return Err(format!("no worker says anything for {PATIENCE:?}").into()),
            }
        }
        Ok(None)
    }

    /// Lets time pass in which nobody else may come to hold the lock.
    pub(crate) fn pause(&mut self, duration: Duration) -> Result<()> {
        let end = Instant::now() + duration;
        loop {
            match self.reports.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok((_, None)) => self.ended += 1,
                Ok((index, Some(line))) if line.starts_with("holds") => {
                    return Err(format!("{} {line} while another holds the lock", name(index)).into());
                }
                // Each has a pipe of its own: what one has said of its past may come late.
                Ok((index, Some(line))) => self.later.push_back((index, line)),
                Err(_) => return Ok(()),
            }
        }
    }

    /// Tells a worker that its work is done.
    pub(crate) fn go_on(&mut self, index: usize) -> Result<()> {
        let input = self.workers[index].stdin.as_mut().ok_or("the worker has no input")?;
        Ok(writeln!(input, "go on")?)
    }

    pub(crate) fn kill(&mut self, index: usize) -> Result<()> {
        Ok(self.workers[index].kill()?)
    }

    /// Stops a process where it is, as a machine does that is out of memory, or a laptop that is closed.
    pub(crate) fn stop(&self, index: usize) -> Result<()> {
        self.signal(index, "STOP")
    }

    pub(crate) fn wake(&self, index: usize) -> Result<()> {
        self.signal(index, "CONT")
    }

    fn signal(&self, index: usize, signal: &str) -> Result<()> {
        let order = format!("kill -{signal} {}", self.workers[index].id());
        let status = Command::new("sh").args(["-c", &order]).status()?;
        if status.success() { Ok(()) } else { Err(format!("{order:?} failed: {status}").into()) }
    }

    /// How a worker that has ended has ended.
    pub(crate) fn status(&mut self, index: usize) -> Result<std::process::ExitStatus> {
        Ok(self.workers[index].wait()?)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            // Those that have ended are gone already.
            let _ = worker.kill();
            let _ = worker.wait();
        }
    }
}

pub(crate) fn name(index: usize) -> String {
    format!("worker-{}", index + 1)
}
