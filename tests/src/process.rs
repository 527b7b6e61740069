//! A server's process that is certain not to outlive us.
//!
//! A test process can end in ways that run no destructor: `process::exit`, a crash, SIGKILL. So the server is the child
//! of a small shell that waits on a pipe which we hold open. When the pipe ends, for whatever reason, the shell
//! kills the server and removes its folder. Signals go through a pidfd, so none can ever hit another process.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::wait::until;

/// `$1` is the folder, the rest the command. Each line read starts the command (again) and is answered with its pid.
/// The `read` of the shell reaps nothing, so a pid stays ours until we have opened its pidfd. SIGPIPE is ignored
/// because the answer may find nobody left to read it, SIGHUP because the kernel sends it to the group when we die
/// while the server is paused; in both cases the shell has still to clean up.
const WATCHDOG: &str = r#"
trap '' PIPE HUP
home=$1 child=
shift
while read -r _; do
  [ -z "$child" ] || wait "$child"
  "$@" </dev/null >>"$home/log" 2>&1 &
  child=$!
  echo "$child"
done
[ -z "$child" ] || kill -9 "$child"
wait
rm -rf "$home"
"#;

/// A process that can be killed, paused and started again, by any thread.
#[derive(Debug)]
pub struct Process {
    home: PathBuf,
    watchdog: Child,
    /// `None` only while it is dropped.
    talk: Mutex<Option<(ChildStdin, BufReader<ChildStdout>)>>,
    running: Mutex<Option<Running>>,
}

type Running = (i32, Arc<OwnedFd>);

impl Process {
    /// Prepares to run `command`, its output going to `home/log`; `home` is removed with the process.
    pub(crate) fn new(home: &Path, command: &[String]) -> io::Result<Self> {
        let mut watchdog = Command::new("sh")
            .args(["-c", WATCHDOG, "zklock-ground"])
            .arg(home)
            .args(command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // Ctrl-C in a terminal is for the test process; the watchdog must live to clean up after it.
            .process_group(0)
            .spawn()?;
        let talk = watchdog.stdin.take().zip(watchdog.stdout.take().map(BufReader::new));
        Ok(Self { home: home.to_owned(), watchdog, talk: Mutex::new(talk), running: Mutex::default() })
    }

    /// Starts it on its data, if it does not run, and returns at once: without a quorum it would never serve.
    ///
    /// # Panics
    ///
    /// If the process cannot be started.
    #[track_caller]
    pub fn start(&self) {
        self.try_start().unwrap_or_else(|error| panic!("starting {}: {error}", self.home.display()));
    }

    pub(crate) fn try_start(&self) -> io::Result<()> {
        let mut talk = self.talk.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_running() {
            return Ok(());
        }
        let (orders, answers) = talk.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        orders.write_all(b"start\n")?;
        let mut line = String::new();
        answers.read_line(&mut line)?;
        let number: i32 = line.trim().parse().map_err(|_| io::Error::other("the watchdog has ended"))?;
        let pid = Pid::from_raw(number).ok_or(io::ErrorKind::InvalidData)?;
        let handle = Arc::new(pidfd_open(pid, PidfdFlags::empty())?);
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = Some((number, handle));
        Ok(())
    }

    /// The process that was started last.
    fn last(&self) -> Option<Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn is_running(&self) -> bool {
        !self.wait_for_end(Duration::ZERO)
    }

    /// Ends it with SIGKILL, and returns when it is gone.
    pub fn kill(&self) {
        self.signal(Signal::KILL);
        assert!(self.wait_for_end(Duration::from_secs(10)), "SIGKILL has not ended the server");
    }

    /// Ends it in an orderly way (SIGTERM), insists if that takes long, and returns when it is gone.
    pub fn stop(&self) {
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
        if !self.wait_for_end(Duration::from_secs(5)) {
            self.kill();
        }
    }

    /// Stops it with SIGSTOP: its connections stay open, and nothing answers. Returns when all its threads have stopped.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
        assert!(
            until(Duration::from_secs(5), || !self.is_running() || self.is_paused()),
            "SIGSTOP has no effect"
        );
    }

    /// Lets it go on (SIGCONT).
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// The process's number, while it runs.
    pub fn pid(&self) -> Option<i32> {
        self.last().filter(|_| self.is_running()).map(|(number, _)| number)
    }

    /// The folder with its configuration, data and log.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The last lines of its log.
    pub fn log_tail(&self) -> String {
        let log = fs::read(self.home.join("log")).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }

    fn signal(&self, signal: Signal) {
        if let Some((_, process)) = self.last() {
            // A process that is gone needs no signal.
            let _ = pidfd_send_signal(process, signal);
        }
    }

    fn wait_for_end(&self, bound: Duration) -> bool {
        let Some((_, process)) = self.last() else { return true };
        let end = Instant::now() + bound;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let timeout = Timespec::try_from(left).expect("the bounds are short");
            let mut ended = [PollFd::new(&process, PollFlags::IN)];
            match poll(&mut ended, Some(&timeout)) {
                Ok(count) => return count > 0,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => panic!("poll: {error}"),
            }
        }
    }

    fn is_paused(&self) -> bool {
        let Some((number, _)) = self.last() else { return false };
        let Ok(threads) = fs::read_dir(format!("/proc/{number}/task")) else { return false };
        threads.flatten().all(|thread| {
            let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            // The state follows the name, which is in parentheses and may contain anything.
            stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('T'))
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.talk.get_mut().unwrap_or_else(PoisonError::into_inner).take());
        let _ = self.watchdog.wait();
    }
}
