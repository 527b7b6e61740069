//! Finds the shell that evaluates what `zklock acquire` prints.

use std::fs::{self, DirEntry};
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::process::{Pid, PidfdFlags, getppid, pidfd_open};

use crate::failure::Failure;

/// Returns a descriptor that shows when the shell is dead; `given` is the process that the user has named in its place.
pub(super) fn descriptor(given: Option<Pid>) -> Result<OwnedFd, Failure> {
    let process = find(given)?;
    let descriptor = pidfd_open(process, PidfdFlags::empty()).map_err(|error| match error {
        rustix::io::Errno::NOSYS => Failure::other("this needs Linux 5.3 or later"),
        rustix::io::Errno::SRCH => Failure::usage(format!("there is no process {process}")),
        error => Failure::other(format!("the process {process} cannot be watched: {error}")),
    })?;
    // If the shell died meanwhile, its number may be another's.
    if find(given)? != process {
        return Err(Failure::other("the shell has ended"));
    }
    Ok(descriptor)
}

/// Returns the shell, or fails if it is not to be found.
pub(super) fn find(given: Option<Pid>) -> Result<Pid, Failure> {
    given.map_or_else(shell, Ok)
}

/// Returns the shell. For `$(...)` it makes a process with a pipe as its output, and reads from the pipe itself. That process
/// becomes `zklock`, or is its parent if there is more between the parentheses. So the shell is the nearest ancestor that
/// reads from our output, and those before it have the same output. An ancestor with another one may be a part of the shell
/// that ends too soon: somebody else reads from our output.
fn shell() -> Result<Pid, Failure> {
    let ours = output(Path::new("/proc/self")).unwrap_or_default();
    let is_pipe = ours.starts_with("pipe:");
    let may_be_inherited = is_pipe || ours.starts_with("socket:");
    let mut process = getppid();
    loop {
        let Some(shell) = process else { return Err(not_found("it cannot be seen from here")) };
        let folder = format!("/proc/{shell}");
        match output(Path::new(&folder)) {
            _ if is_pipe && is_read_by(&ours, &folder) => return Ok(shell),
            Ok(output) if may_be_inherited && output == ours => process = parent(&folder),
            // If there is none, it is closed.
            Err(error) if may_be_inherited && error.kind() != ErrorKind::NotFound => {
                return Err(not_found(&format!("process {shell}: {error}")));
            }
            _ if is_pipe => return Err(not_found("the output goes to another process")),
            _ => return Ok(shell),
        }
    }
}

/// Whether the process has this pipe open for reading, which the permissions of its link show, and not as its input, as the next
/// process of a pipeline has it.
fn is_read_by(pipe: &str, process: &str) -> bool {
    let is_it = |link: DirEntry| {
        let can_be_read = link.metadata().is_ok_and(|link| link.permissions().mode() & 0o400 != 0);
        can_be_read
            && link.file_name() != "0"
            && fs::read_link(link.path()).is_ok_and(|file| file.as_os_str() == pipe)
    };
    fs::read_dir(format!("{process}/fd")).into_iter().flatten().flatten().any(is_it)
}

pub(super) fn output(process: &Path) -> std::io::Result<String> {
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
