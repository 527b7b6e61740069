//! Finds the shell that evaluates what `zklock acquire` prints.

use std::fs;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::process::{Pid, PidfdFlags, getppid, pidfd_open};

use crate::exit::Exit;
use crate::failure::Failure;

/// Returns a descriptor that shows when the shell is dead; `given` is the process that the user has named in its place.
pub(super) fn descriptor(given: Option<Pid>) -> Result<OwnedFd, Failure> {
    let find = || given.map_or_else(shell, Ok);
    let process = find()?;
    let descriptor = pidfd_open(process, PidfdFlags::empty()).map_err(|error| match error {
        rustix::io::Errno::NOSYS => Failure::new(Exit::Other, "this needs Linux 5.3 or later"),
        rustix::io::Errno::SRCH => Failure::usage(format!("there is no process {process}")),
        error => Failure::new(Exit::Other, format!("the process {process} cannot be watched: {error}")),
    })?;
    // If the shell died meanwhile, its number may be another's.
    if find()? != process {
        return Err(Failure::new(Exit::Other, "the shell has ended"));
    }
    Ok(descriptor)
}

/// Returns the shell. For `$(...)` it makes a process with a pipe as its output, and reads from the pipe itself. That process
/// becomes `zklock`, or is its parent if there is more between the parentheses. So the nearest ancestor with another output
/// is the shell.
fn shell() -> Result<Pid, Failure> {
    let ours = output(Path::new("/proc/self"));
    let is_pipe =
        ours.as_ref().is_ok_and(|output| ["pipe:", "socket:"].iter().any(|kind| output.starts_with(kind)));
    let mut process = getppid();
    loop {
        let Some(shell) = process else { return Err(not_found("it is not to be seen from here")) };
        let folder = format!("/proc/{shell}");
        match output(Path::new(&folder)) {
            _ if !is_pipe => return Ok(shell),
            Ok(output) if ours.as_ref().is_ok_and(|ours| *ours == output) => process = parent(&folder),
            Ok(_) => return Ok(shell),
            // Its output is closed.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(shell),
            Err(error) => return Err(not_found(&format!("process {shell}: {error}"))),
        }
    }
}

fn output(process: &Path) -> std::io::Result<String> {
    fs::read_link(process.join("fd/1")).map(|link| link.to_string_lossy().into_owned())
}

fn parent(process: &str) -> Option<Pid> {
    let stat = fs::read_to_string(format!("{process}/stat")).ok()?;
    // Its name may contain anything.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok().and_then(Pid::from_raw)
}

fn not_found(problem: &str) -> Failure {
    Failure::usage(format!("the shell was not found ({problem}): name it with --pid $$"))
}
