//! Processes. They are killed or paused where nothing else stops all threads at once.
//!
//! A child is this same program, running one ignored test. It talks to its parent on its standard output, and ends when
//! its standard input does.

use crate::support::{SOON, options};
use ground::until;
use rustix::process::{Pid, Signal, kill_process};
use std::fmt::Display;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;
use zklock::ClientOptions;

/// The mark before each line that a child means for us, since the test harness prints too.
const MARK: &str = "@child ";
const HOSTS: &str = "ZKLOCK_CHILD_HOSTS";
const PATH: &str = "ZKLOCK_CHILD_PATH";
const SESSION: &str = "ZKLOCK_CHILD_SESSION";

/// In the child: the options with which to connect, and the lock's path. `None` if no parent has started it.
pub(crate) fn orders() -> Option<(ClientOptions, String)> {
    let path = std::env::var(PATH).ok()?;
    let variable = |name| std::env::var(name).expect("set by the parent");
    thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(0);
    });
    let session = Duration::from_millis(variable(SESSION).parse().expect("milliseconds"));
    Some((options(&variable(HOSTS)).session_timeout(session), path))
}

/// In the child: tells its parent something.
pub(crate) fn say(what: impl Display) {
    println!("\n{MARK}{what}");
}

/// A running process, and what it prints. Dropping it kills it.
pub(crate) struct Process {
    child: Child,
    lines: Receiver<String>,
}

impl Process {
    /// Starts a program.
    pub(crate) fn start(command: &mut Command, input: Stdio) -> Self {
        Self::heard(command.stdin(input), "")
    }

    /// Starts a child that runs this ignored test, which is named with its module, `concat!(module_path!(), "::name")`, with these
    /// additions to its environment.
    pub(crate) fn start_with(
        test: &str,
        hosts: &str,
        path: &str,
        session: Duration,
        environment: &[(&str, &str)],
    ) -> Self {
        let (_, test) = test.split_once("::").expect("the crate, then the test");
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "--ignored", "--nocapture", test]).envs(environment.iter().copied());
        command.env(HOSTS, hosts).env(PATH, path).env(SESSION, session.as_millis().to_string());
        Self::heard(command.stdin(Stdio::piped()), MARK)
    }

    /// Starts one whose lines with this mark are for us.
    fn heard(command: &mut Command, mark: &'static str) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            let ours = |line: String| line.strip_prefix(mark).map(str::to_owned);
            output.lines().map_while(Result::ok).filter_map(ours).try_for_each(|line| sender.send(line))
        });
        Self { child, lines }
    }

    /// The next line that it prints for us.
    #[track_caller]
    pub(crate) fn line(&self) -> String {
        self.lines.recv_timeout(SOON).expect("it says something")
    }

    /// Its next line after this one on its standard input.
    #[track_caller]
    pub(crate) fn ask(&mut self, line: &str) -> String {
        writeln!(self.child.stdin.as_mut().expect("a pipe"), "{line}").expect("it listens");
        self.line()
    }

    /// Ends its standard input.
    pub(crate) fn hang_up(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Whether it prints nothing for that long.
    pub(crate) fn is_silent(&self, time: Duration) -> bool {
        matches!(self.lines.recv_timeout(time), Err(RecvTimeoutError::Timeout))
    }

    /// Its process number.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub(crate) fn is_running(&mut self) -> bool {
        // `wait` would close its standard input, which ends it.
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits until it ends by itself.
    #[track_caller]
    pub(crate) fn ends(&mut self) -> ExitStatus {
        assert!(until(SOON, || !self.is_running()), "it goes on");
        self.child.wait().unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
