//! The terminal, and which process group is in its foreground.

use std::fs::{File, OpenOptions};
use std::io::IsTerminal;

use rustix::process::{Pid, getpgrp};
use rustix::termios::{tcgetpgrp, tcsetpgrp};

use crate::processes::descendants::is_group_there;

/// Returns the terminal that controls this process, if one does.
pub(crate) fn open() -> Option<File> {
    OpenOptions::new().read(true).write(true).open("/dev/tty").ok()
}

/// The terminal of `zklock run`, which it lends to its job.
///
/// SIGTTOU must be blocked: a process that gives the foreground away, or takes it back, may be in the background.
#[derive(Debug)]
pub(crate) struct Terminal {
    file: File,
    own: Pid,
}

impl Terminal {
    pub(crate) fn new() -> Option<Self> {
        Some(Self { file: open()?, own: getpgrp() })
    }

    /// Whether this process's group is in the foreground.
    pub(crate) fn is_ours(&self) -> bool {
        tcgetpgrp(&self.file).ok() == Some(self.own)
    }

    /// Whether a job should begin in the foreground: we are there, and it reads from the terminal and writes to it. Otherwise
    /// it is part of a pipeline, whose other parts need the foreground (`zklock run -- ... | less`). There we pass on the
    /// terminal's signals, and a job that asks for the foreground gets it then.
    pub(crate) fn is_for_the_job(&self) -> bool {
        std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && self.is_ours()
    }

    /// Puts the job into the foreground, if it is ours to give. Returns whether it was.
    pub(crate) fn lend(&self, job: Pid) -> bool {
        self.is_ours() && tcsetpgrp(&self.file, job).is_ok()
    }

    /// Takes the foreground back from the job. If somebody else has it, for example the shell, it stays there.
    pub(crate) fn take_back(&self, job: Pid) {
        let in_front = tcgetpgrp(&self.file);
        if in_front.is_ok_and(|group| group == job || !is_group_there(group)) {
            let _ = tcsetpgrp(&self.file, self.own);
        }
    }
}
