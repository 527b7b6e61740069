//! The last moment before the job's own program: still this program, in the process that becomes the job.
//!
//! Between fork and exec, some things must be done that would need unsafe code there. So the warden starts this program
//! once more, which does them and then becomes the job.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use nix::sys::signal::{SigSet, Signal as Blockable};
use rustix::process::{Signal, getpgrp, getppid, set_parent_process_death_signal};
use rustix::termios::tcsetpgrp;

use crate::exit::Exit;
use crate::processes::terminal;

/// The first word of its command line, by which `main` knows it.
pub(crate) const WORD: &str = "__launch";
/// The third word, after the number of the warden: whether the job takes the foreground of the terminal.
const FOREGROUND: &str = "foreground";
const BACKGROUND: &str = "background";

/// Returns the command that becomes a child of this process, in a process group of its own; the job's words are its arguments.
pub(crate) fn command(in_foreground: bool) -> Command {
    let mut command = Command::new("/proc/self/exe");
    let place = if in_foreground { FOREGROUND } else { BACKGROUND };
    command.args([WORD, &std::process::id().to_string(), place]).process_group(0);
    command
}

/// Becomes the job; returns only if that fails.
pub(crate) fn main(words: &[OsString]) -> ExitCode {
    let [warden, place, program, arguments @ ..] = words else { return Exit::Usage.into() };
    // If the warden is killed too, the kernel ends at least this process. If it is already dead, there must be no job.
    let is_set = set_parent_process_death_signal(Some(Signal::KILL)).is_ok();
    let parent = getppid().map(|parent| parent.as_raw_pid().to_string());
    if !is_set || parent.is_none_or(|parent| *warden != *parent) {
        return Exit::Other.into();
    }
    if place == FOREGROUND {
        take_foreground();
    }
    // The warden has blocked all signals, and a program inherits that.
    let _ = SigSet::empty().thread_set_mask();
    // This also restores the default action of SIGPIPE, which Rust ignores.
    let error = Command::new(program).args(arguments).exec();
    say!("{}: {}", program.to_string_lossy(), reason(&error));
    match error.kind() {
        io::ErrorKind::NotFound => Exit::NotFound.into(),
        _ => Exit::NotExecutable.into(),
    }
}

fn take_foreground() {
    let mut output = SigSet::empty();
    output.add(Blockable::SIGTTOU);
    // Otherwise this would stop a group in the background.
    let _ = output.thread_block();
    if let Some(terminal) = terminal::open() {
        let _ = tcsetpgrp(terminal, getpgrp());
    }
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "command not found: check its name, or give its path".to_owned(),
        io::ErrorKind::PermissionDenied => "cannot be executed: permission denied".to_owned(),
        _ => format!("cannot be executed: {error}"),
    }
}
