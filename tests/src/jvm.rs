//! A Java process that is certain not to outlive us.
//!
//! A test process can end in ways that run no destructor: `process::exit`, a crash, SIGKILL. So the JVM is the child
//! of a small shell that waits on a pipe which we hold open. When the pipe ends, for whatever reason, the shell
//! kills the JVM and removes its folder. Signals go through a pidfd, so none can ever hit another process.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::wait::until;

/// `$1` is the folder, the rest the command. Each line read starts the command (again) and is answered with its pid.
/// The `read` of the shell reaps nothing, so a pid stays ours until we have opened its pidfd. SIGPIPE is ignored
/// because the answer may find nobody left to read it, SIGHUP because the kernel sends it to the group when we die
/// while the JVM is paused; in both cases the shell has still to clean up.
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

/// A Java process that can be killed, paused and started again.
#[derive(Debug)]
pub(crate) struct Jvm {
    home: PathBuf,
    watchdog: Child,
    /// `None` only while it is dropped.
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    process: Option<(i32, OwnedFd)>,
}

impl Jvm {
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
        let orders = watchdog.stdin.take();
        let answers = BufReader::new(watchdog.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?);
        Ok(Self { home: home.to_owned(), watchdog, orders, answers, process: None })
    }

    /// Starts the process, if it does not run.
    pub(crate) fn start(&mut self) -> io::Result<()> {
        if self.is_running() {
            return Ok(());
        }
        self.process = None;
        self.orders.as_mut().ok_or(io::ErrorKind::BrokenPipe)?.write_all(b"start\n")?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        let number: i32 = line.trim().parse().map_err(|_| io::Error::other("the watchdog has ended"))?;
        let pid = Pid::from_raw(number).ok_or(io::ErrorKind::InvalidData)?;
        self.process = Some((number, pidfd_open(pid, PidfdFlags::empty())?));
        Ok(())
    }

    pub(crate) fn is_running(&self) -> bool {
        self.process.is_some() && !self.wait_for_end(Duration::ZERO)
    }

    /// Sends SIGKILL and waits until the process is gone.
    pub(crate) fn kill(&self) {
        self.signal(Signal::KILL);
        assert!(self.wait_for_end(Duration::from_secs(10)), "SIGKILL has not ended the server");
    }

    /// Asks the process to end, insists when it does not, and waits until it is gone.
    pub(crate) fn stop(&self) {
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
        if !self.wait_for_end(Duration::from_secs(5)) {
            self.kill();
        }
    }

    /// Stops the process in its tracks; on return none of its threads runs.
    pub(crate) fn pause(&self) {
        self.signal(Signal::STOP);
        assert!(
            until(Duration::from_secs(5), || !self.is_running() || self.is_paused()),
            "SIGSTOP has no effect"
        );
    }

    pub(crate) fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// The process's number, while it runs.
    pub(crate) fn pid(&self) -> Option<i32> {
        self.process.as_ref().filter(|_| self.is_running()).map(|&(number, _)| number)
    }

    /// The last lines that the process has printed.
    pub(crate) fn log_tail(&self) -> String {
        let log = fs::read(self.home.join("log")).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }

    fn signal(&self, signal: Signal) {
        if let Some((_, process)) = &self.process {
            // A process that is gone needs no signal.
            let _ = pidfd_send_signal(process, signal);
        }
    }

    fn wait_for_end(&self, bound: Duration) -> bool {
        let Some((_, process)) = &self.process else { return true };
        let end = Instant::now() + bound;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let timeout = Timespec::try_from(left).expect("the bounds are short");
            let mut ended = [PollFd::new(process, PollFlags::IN)];
            match poll(&mut ended, Some(&timeout)) {
                Ok(count) => return count > 0,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => panic!("poll: {error}"),
            }
        }
    }

    fn is_paused(&self) -> bool {
        let Some((number, _)) = &self.process else { return false };
        let Ok(threads) = fs::read_dir(format!("/proc/{number}/task")) else { return false };
        threads.flatten().all(|thread| {
            let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            // The state follows the name, which is in parentheses and may contain anything.
            stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('T'))
        })
    }
}

impl Drop for Jvm {
    fn drop(&mut self) {
        drop(self.orders.take());
        let _ = self.watchdog.wait();
    }
}
