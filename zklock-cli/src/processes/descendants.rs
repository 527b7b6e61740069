//! The processes of a job: its group, and all that descend from it.
//!
//! A process may leave its group (`setsid`, or an interactive shell's jobs), but not its ancestors: a process that loses
//! its parent becomes the child of the nearest subreaper, which is the warden. So killing one's children until there are
//! none left kills all. The number of a child is not given to another process before the child is reaped, so that no
//! stranger is hit.

use std::fs;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, kill_process, kill_process_group, test_kill_process_group, wait,
};

/// How often to look at a job that is being killed, for processes that were born meanwhile, or whose end nobody reports.
pub(crate) const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// Sends a signal to a group. A group that is gone needs none.
pub(crate) fn signal_group(group: Pid, signal: Signal) {
    let _ = kill_process_group(group, signal);
}

/// Whether there is any process in a group.
pub(crate) fn is_group_there(group: Pid) -> bool {
    test_kill_process_group(group) != Err(Errno::SRCH)
}

/// Kills every child of this process. Their children become ours, and the next call finds them.
pub(crate) fn kill_children() {
    let own = rustix::process::getpid();
    // The kernel may have been built without this list. Then the group is all that can be killed.
    let children =
        fs::read_to_string(format!("/proc/self/task/{}/children", own.as_raw_pid())).unwrap_or_default();
    for child in children.split_whitespace().filter_map(|number| number.parse().ok()) {
        if let Some(child) = Pid::from_raw(child) {
            let _ = kill_process(child, Signal::KILL);
        }
    }
}

/// News about the children of this process.
#[derive(Debug)]
pub(crate) enum News {
    /// This child has ended, or was stopped.
    Of(Pid, WaitStatus),
    /// There is nothing more for now.
    Nothing,
    /// There are no children.
    NoChildren,
}

/// Returns the next piece of news, without waiting. A child that has ended is reaped.
pub(crate) fn news() -> News {
    match wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
        Ok(Some((child, status))) => News::Of(child, status),
        Ok(None) | Err(Errno::INTR) => News::Nothing,
        Err(_) => News::NoChildren,
    }
}

/// Returns how a process has ended, as a shell reports it; `None` if it has not.
pub(crate) fn code(status: WaitStatus) -> Option<u8> {
    let code = status.exit_status().or_else(|| Some(128 + status.terminating_signal()?))?;
    Some(u8::try_from(code).unwrap_or(u8::MAX))
}

/// Kills a job whose warden is gone, in the warden's place: this process must be a subreaper as well. Blocks until nothing
/// is left.
pub(crate) fn kill_all(group: Pid) {
    signal_group(group, Signal::KILL);
    loop {
        kill_children();
        match news() {
            News::Of(..) => {}
            News::Nothing => std::thread::sleep(BETWEEN_LOOKS),
            News::NoChildren => return,
        }
    }
}
