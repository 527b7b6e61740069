//! `zklock quickstart`: four workers share a lock, and two of them come to grief.
//!
//! This process leads them, each a process of its own, and is the ledger. A worker writes a line to its stdout, and waits for an
//! answer on its stdin.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{self, Pid, Signal};
use zklock::{Client, ClientOptions, Lock};
use zklock_testkit::Server;

use crate::connect::Connection;
use crate::failure::Failure;
use crate::output::print;

const LOCK: &str = "/zklock-quickstart";

/// Short, so that nobody waits long for the lock of a worker that was killed. A real server may grant more.
const SESSION_TIMEOUT: &str = "2s";

/// How long a worker waits for the lock.
const PATIENCE: Duration = Duration::from_secs(90);

/// How long a worker works between its two writes.
const WORK: Timespec = Timespec { tv_sec: 0, tv_nsec: 400_000_000 };

/// See four workers share a lock, on a server in memory
///
/// Four workers, each a process of its own, share the lock /zklock-quickstart and write to one ledger. One is killed while it holds
/// the lock: the next one gets it. One is stopped while it holds the lock, and wakes when another has it: the ledger refuses its late
/// write. It needs nothing installed. ZKLOCK_HOSTS is not used: to see it on an ensemble of yours, name that with --connect.
#[derive(Args, Debug)]
pub(crate) struct Quickstart {
    /// Use these servers, host:port,host:port; a /chroot may follow. The other options of the connection apply to them
    #[arg(long, value_name = "HOSTS")]
    connect: Option<String>,
}

/// The first word of a worker's command line, by which `main` knows it. Its name follows, and the words of a line like ours.
pub(crate) const WORD: &str = "__worker";

impl Quickstart {
    /// Runs the quickstart. The workers get the words of the command line, too.
    pub(crate) fn execute(&self, connection: &Connection, words: &[OsString]) -> Result<(), Failure> {
        if let Some(connection) = self.on_ensemble(connection) {
            return perform(connection.options()?, words, false);
        }
        // The ticks are short enough for sessions of 2 s.
        let server = Server::builder().tick(Duration::from_millis(500));
        let server = server.start().map_err(|error| Failure::other(error.to_string()))?;
        let hosts = server.connect_string();
        print(&format!("A ZooKeeper server in memory, for this run alone: {hosts}\n"))?;
        let words = ["--config", "/dev/null", "quickstart", "--connect", &hosts].map(OsString::from);
        perform(ClientOptions::new(&hosts), &words, true)
    }

    /// Does the work of the worker with this name. This is all that a program has to do for a lock and a fenced resource.
    pub(crate) fn work(&self, connection: &Connection, name: &OsStr) -> Result<(), Failure> {
        // A stopped worker could not notice the end of the others.
        process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(io::Error::from)?;
        let connection =
            self.on_ensemble(connection).ok_or_else(|| Failure::other("a worker needs servers"))?;
        let client = Client::connect(connection.options()?.identity(&name.to_string_lossy())).wait()?;
        let hold = client.mutex(LOCK)?.acquire_timeout(PATIENCE).wait()?;
        let mut answers = io::stdin().lines();
        for _ in 0..2 {
            // Whatever has happened, even if the process was paused: the ledger knows a late write by its token.
            print(&format!("{}\n", hold.token().value()))?;
            answers.next().ok_or_else(|| Failure::other("the ledger is gone"))??;
        }
        match hold.release().wait() {
            Ok(()) => print("releases the lock\n")?,
            Err(error) => print(&format!("learns: {error}\n"))?,
        }
        client.close().wait()?;
        Ok(())
    }

    fn on_ensemble(&self, connection: &Connection) -> Option<Connection> {
        let mut connection = connection.clone();
        connection.hosts = Some(self.connect.as_ref().or(connection.hosts_given())?.clone());
        connection.set_default("session-timeout", SESSION_TIMEOUT);
        Some(connection)
    }
}

fn perform(options: ClientOptions, words: &[OsString], are_all: bool) -> Result<(), Failure> {
    let client = Client::connect(options).wait()?;
    let mut play =
        Play { begun: Instant::now(), lock: client.mutex(LOCK)?, greatest: 0, workers: Vec::new() };
    play.tell(&format!("4 workers want the lock {LOCK}"))?;
    while !play.queue()?.is_empty() {
        play.tell("others have it, perhaps a run that has just ended: waits")?;
        thread::sleep(Duration::from_secs(1));
    }
    for index in 0..4 {
        play.workers.push(Worker::start(format!("worker-{}", index + 1), words, are_all)?);
        // So the queue is in the order of their names.
        while !play.queue()?.contains(&play.workers[index].name) {
            if play.workers[index].process.try_wait()?.is_some() {
                return Err(play.workers[index].has_ended());
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
    play.begins(0)?;
    play.ends(0, true, "releases")?;

    let [killed, stopped, next] = [1, 2, 3];
    play.begins(killed)?;
    play.workers[killed].process.kill()?;
    play.say(killed, "is killed; the lock is free when its session is over")?;
    play.begins(stopped)?;
    // As happens on a machine that is out of memory, or a laptop that is closed.
    play.workers[stopped].signal(Signal::STOP)?;
    play.say(stopped, "is stopped where it is, and knows nothing of it")?;
    play.begins(next)?;
    play.say(stopped, "wakes up")?;
    play.workers[stopped].signal(Signal::CONT)?;
    play.ends(stopped, false, "learns")?;
    play.ends(next, true, "releases")?;
    play.tell("done: one holder at a time, in the order of the queue, and the late write did no harm")?;
    client.close().wait()?;
    Ok(())
}

struct Play {
    begun: Instant,
    /// The lock, for looking at its queue.
    lock: Lock,
    /// The greatest token that has written to the ledger. The ledger refuses smaller ones: this is what makes a late write harmless.
    greatest: u64,
    workers: Vec<Worker>,
}

impl Play {
    /// A worker holds the lock, writes, and works. It has no answer yet.
    fn begins(&mut self, index: usize) -> Result<(), Failure> {
        self.writes(index, true)?;
        // Nobody may have anything to say meanwhile.
        let workers = self.workers[index..].iter();
        let mut outputs: Vec<_> =
            workers.map(|one| PollFd::new(one.output.get_ref(), PollFlags::IN)).collect();
        let ready = poll(&mut outputs, Some(&WORK)).map_err(io::Error::from)?;
        if ready == 0 { Ok(()) } else { Err(Failure::other("a worker did not wait while another worked")) }
    }

    fn writes(&mut self, index: usize, is_accepted: bool) -> Result<(), Failure> {
        let worker = &mut self.workers[index];
        let line = worker.line()?;
        let token: u64 = line.parse().map_err(|_| Failure::other(format!("{} {line}", worker.name)))?;
        if token > self.greatest {
            self.greatest = token;
            let waiting = match self.queue()?.get(1..).unwrap_or_default() {
                [] => "nobody waits".to_owned(),
                [one] => format!("{one} waits"),
                several => format!("{} wait", several.join(", ")),
            };
            self.say(index, &format!("holds the lock, token {token}; {waiting}"))?;
        }
        let (is_late, greatest) = (token < self.greatest, self.greatest);
        let judged = if is_late { format!("REFUSED, {greatest} has written") } else { "accepted".to_owned() };
        self.say(index, &format!("writes with token {token}: {judged}"))?;
        let wrong = "the late write, and it alone, was to be refused";
        if is_late == is_accepted { Err(Failure::other(wrong)) } else { Ok(()) }
    }

    /// A worker has the answer to its first write, writes again, and says what becomes of its hold.
    fn ends(&mut self, index: usize, is_accepted: bool, how: &str) -> Result<(), Failure> {
        self.workers[index].answer();
        self.writes(index, is_accepted)?;
        self.workers[index].answer();
        let line = self.workers[index].line()?;
        self.say(index, &line)?;
        let is_well = line.starts_with(how) && self.workers[index].process.wait()?.success();
        if is_well { Ok(()) } else { Err(self.workers[index].has_ended()) }
    }

    /// The names of the contenders, in order.
    fn queue(&self) -> Result<Vec<String>, Failure> {
        Ok(self.lock.contenders().wait()?.into_iter().map(|contender| contender.identity).collect())
    }

    fn say(&self, index: usize, text: &str) -> Result<(), Failure> {
        self.tell(&format!("{} {text}", self.workers[index].name))
    }

    fn tell(&self, text: &str) -> Result<(), Failure> {
        print(&format!("{:6.2} s  {text}\n", self.begun.elapsed().as_secs_f64()))
    }
}

struct Worker {
    name: String,
    process: Child,
    output: BufReader<ChildStdout>,
}

impl Worker {
    /// Starts one that connects as these words say. If they are all, the environment says nothing.
    fn start(name: String, words: &[OsString], are_all: bool) -> Result<Self, Failure> {
        let mut command = Command::new("/proc/self/exe");
        command.args([WORD, &name]).args(words).stdin(Stdio::piped()).stdout(Stdio::piped());
        if are_all {
            command.env_clear();
        }
        let mut process = command.spawn()?;
        let output = process.stdout.take().ok_or_else(|| Failure::other("no pipe"))?;
        Ok(Self { name, process, output: BufReader::new(output) })
    }

    /// What it says next.
    fn line(&mut self) -> Result<String, Failure> {
        let mut line = String::new();
        let length = self.output.read_line(&mut line)?;
        if length == 0 { Err(self.has_ended()) } else { Ok(line.trim_end().to_owned()) }
    }

    /// Says that the ledger has its write. If it is dead, that shows when it should say something.
    fn answer(&mut self) {
        let _ = self.process.stdin.as_mut().map(|input| input.write_all(b"\n"));
    }

    fn signal(&self, signal: Signal) -> Result<(), Failure> {
        Ok(process::kill_process(Pid::from_child(&self.process), signal).map_err(io::Error::from)?)
    }

    fn has_ended(&mut self) -> Failure {
        let status = self.process.wait();
        status.map_or_else(Failure::from, |status| {
            Failure::other(format!("{} has ended with {status}", self.name))
        })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
