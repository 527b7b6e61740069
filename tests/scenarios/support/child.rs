//! Processes that are killed or paused: nothing else stops all threads at once.
//!
//! A child is this same program, running one ignored test. It talks to its parent on its standard output, and ends when
//! its standard input does.

use crate::support::{SOON, options};
use ground::until;
use rustix::process::{Pid, Signal, kill_process};
use std::fmt::Display;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
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

/// A running child. Dropping it kills it.
pub(crate) struct Process {
    child: Child,
    lines: Receiver<String>,
}

impl Process {
    /// Starts one that runs this ignored test, which is named with its module, `concat!(module_path!(), "::name")`, with these
    /// additions to its environment.
    pub(crate) fn start_with(
        test: &str,
        hosts: &str,
        path: &str,
        session: Duration,
        environment: &[(&str, &str)],
    ) -> Self {
        let (_, test) = test.split_once("::").expect("the crate, then the test");
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--ignored", "--nocapture", test])
            .env(HOSTS, hosts)
            .env(PATH, path)
            .env(SESSION, session.as_millis().to_string())
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            let ours = |line: String| line.strip_prefix(MARK).map(str::to_owned);
            output.lines().map_while(Result::ok).filter_map(ours).try_for_each(|line| sender.send(line))
        });
        Self { child, lines }
    }

    /// The next line that it prints for us.
    #[track_caller]
    pub(crate) fn line(&self) -> String {
        self.lines.recv_timeout(SOON).expect("the child says something")
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

    /// Whether it ends by killing itself.
    pub(crate) fn is_killed(&mut self) -> bool {
        // `wait` would close its standard input, which ends it.
        let mut status = None;
        until(SOON, || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.and_then(|status| status.signal()) == Some(Signal::KILL.as_raw())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
