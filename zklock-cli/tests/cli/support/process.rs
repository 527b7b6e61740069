//! A process under test, whose lines are read as they come.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use ground::until;
use rustix::process::{Pid, Signal, kill_process};

use super::SOON;

/// How a command has ended, and all that it has written.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) errors: String,
}

impl Output {
    /// It has ended with this code, and written this.
    #[track_caller]
    pub(crate) fn is(&self, code: i32, out: &str) -> &Self {
        assert_eq!((self.code, &*self.out), (Some(code), out), "{self:?}");
        self
    }

    /// It has said this on stderr.
    #[track_caller]
    pub(crate) fn says(&self, part: &str) -> &Self {
        assert!(self.errors.contains(part), "{part:?}: {self:?}");
        self
    }

    /// It has said nothing on stderr.
    #[track_caller]
    pub(crate) fn is_quiet(&self) -> &Self {
        assert_eq!(self.errors, "", "{self:?}");
        self
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|_| panic!("{self:?}"))
    }

    /// What `zklock` itself has said. A shell says something of its own, too, when a part of a job is ended.
    pub(crate) fn told(&self) -> String {
        self.errors.split_inclusive('\n').filter(|line| line.starts_with("zklock: ")).collect()
    }
}

/// A running command. Dropping it kills it.
pub(crate) struct Process {
    child: Child,
    out: Receiver<String>,
    errors: Receiver<String>,
}

impl Process {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command is built");
        let out = lines(child.stdout.take().expect("a pipe"));
        let errors = lines(child.stderr.take().expect("a pipe"));
        Self { child, out, errors }
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// The next line that it writes.
    pub(crate) fn line(&self) -> String {
        self.out.recv_timeout(SOON).unwrap_or_else(|_| panic!("no line; errors: {:?}", self.all_errors()))
    }

    /// The next line on its stderr that has this in it.
    pub(crate) fn error_line(&self, part: &str) -> String {
        loop {
            let line = self.errors.recv_timeout(SOON).unwrap_or_else(|_| panic!("no line with {part:?}"));
            if line.contains(part) {
                return line;
            }
        }
    }

    /// The numbers in the next line.
    pub(crate) fn numbers(&self) -> Vec<Pid> {
        Self::numbers_in(&self.line())
    }

    /// The same; `None` if it ends before.
    pub(crate) fn numbers_if_it_runs(&self) -> Option<Vec<Pid>> {
        self.out.recv_timeout(SOON).ok().map(|line| Self::numbers_in(&line))
    }

    fn numbers_in(line: &str) -> Vec<Pid> {
        let numbers = line.split_whitespace().map(|number| number.parse().ok().and_then(Pid::from_raw));
        numbers.collect::<Option<_>>().unwrap_or_else(|| panic!("{line:?}"))
    }

    pub(crate) fn write(&mut self, text: &str) {
        self.child.stdin.as_mut().expect("a pipe").write_all(text.as_bytes()).expect("it reads");
    }

    /// Lets a command go on that reads a line, and waits until it has ended well.
    pub(crate) fn lets_go(mut self) {
        self.write("\n");
        self.output().is(0, "");
    }

    pub(crate) fn signal(&self, which: Signal) {
        signal(self.pid(), which);
    }

    /// Signals until it has ended. A signal that arrives just when the command has ended is passed on to the command.
    pub(crate) fn signal_to_the_end(&mut self, which: Signal) {
        let ended = until(SOON, || {
            let has_ended = self.child.try_wait().expect("it is our child").is_some();
            if !has_ended {
                self.signal(which);
            }
            has_ended
        });
        assert!(ended, "still running; errors: {:?}", self.all_errors());
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("it is our child").is_none()
    }

    /// Waits until it has ended.
    pub(crate) fn status(&mut self) -> ExitStatus {
        ended(&mut self.child).unwrap_or_else(|| panic!("still running; errors: {:?}", self.all_errors()))
    }

    /// Waits until it has ended, and reads the rest.
    pub(crate) fn output(mut self) -> Output {
        drop(self.child.stdin.take());
        let code = self.status().code();
        // Until nobody holds the other ends of the pipes any more.
        let (out, errors) = (self.out.iter().collect(), self.errors.iter().collect());
        Output { code, out, errors }
    }

    fn all_errors(&self) -> String {
        self.errors.try_iter().collect()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How a child has ended, when it has.
pub(super) fn ended(child: &mut Child) -> Option<ExitStatus> {
    let mut status = None;
    until(SOON, || {
        status = child.try_wait().expect("it is our child");
        status.is_some()
    });
    status
}

fn lines(pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut pipe = BufReader::new(pipe);
        let mut line = String::new();
        while pipe.read_line(&mut line).is_ok_and(|count| count > 0) {
            if sender.send(std::mem::take(&mut line)).is_err() {
                break;
            }
        }
    });
    receiver
}

pub(crate) fn signal(pid: Pid, which: Signal) {
    kill_process(pid, which).expect("it is there");
}

/// Whether a process runs, or could. One that has ended and was not reaped does not.
pub(crate) fn is_alive(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')')
        .is_some_and(|(_, rest)| !matches!(rest.trim_start().chars().next(), Some('Z' | 'X')))
}

/// The children of all threads of a process.
pub(crate) fn children(pid: Pid) -> Vec<Pid> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs").flatten();
    let children =
        threads.map(|thread| fs::read_to_string(thread.path().join("children")).unwrap_or_default());
    let numbers = children.collect::<Vec<_>>().join(" ");
    Process::numbers_in(&numbers)
}

/// The one child of a process: of `zklock run`, the warden.
pub(crate) fn only_child(pid: Pid) -> Pid {
    assert!(until(SOON, || children(pid).len() == 1), "{pid} has no child, or several");
    children(pid)[0]
}

/// What the descriptors of a process lead to.
pub(crate) fn open_files(pid: Pid) -> BTreeMap<i32, String> {
    let links = fs::read_dir(format!("/proc/{pid}/fd")).expect("it runs").flatten();
    let open = links.filter_map(|link| {
        let target = fs::read_link(link.path()).ok()?;
        Some((link.file_name().to_str()?.parse().ok()?, target.to_string_lossy().into_owned()))
    });
    open.collect()
}

/// A script that tells which of these live, and ends when it has said so.
pub(crate) fn looks_at(pids: &[Pid]) -> String {
    let pids: Vec<String> = pids.iter().map(ToString::to_string).collect();
    format!("for pid in {}; do kill -0 $pid 2>/dev/null && echo $pid; done; echo looked", pids.join(" "))
}

/// A script that writes the numbers of a job's processes and stays: the first one, a grandchild in its group, and one that
/// has left it.
pub(crate) fn of_job(before: &str) -> String {
    format!(
        "{before}; sleep 1000 & here=$!; setsid sh -c 'echo $$ >&3; exec sleep 1000' 3>\"/tmp/zklock-$$\" & \
         while ! [ -s \"/tmp/zklock-$$\" ]; do sleep 0.01; done; \
         away=$(cat \"/tmp/zklock-$$\"); rm \"/tmp/zklock-$$\"; echo $$ $here $away; \
         while :; do wait; done"
    )
}
