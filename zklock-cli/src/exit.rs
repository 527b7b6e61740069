//! Exit codes.

use std::process::ExitCode;

use clap::ValueEnum;

/// How `zklock` ends, unless it ends with the exit code of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Exit {
    Done = 0,
    Finding = 1,
    Usage = 64,
    Busy = 120,
    Timeout = 121,
    Lost = 122,
    Unreachable = 123,
    AtMost = 124,
    Other = 125,
    NotExecutable = 126,
    NotFound = 127,
}

/// The meaning of the codes, for `zklock --help-all` and the man page.
pub(crate) const TABLE: &str = "\
Exit codes:
    0  done, also before in this period (--every); `run`: the job's own exit code, or 128 and the
       number of the signal that ended it
    1  `doctor` found a fault; `break`, `evict` and `request-release` found nobody, or you said no
   64  the arguments are wrong
  120  the lock is busy (--try)
  121  the lock was not free in time (--timeout)
  122  the lock was lost, and the job was ended; `held`, `release`: the lock was lost before;
       `fence publish`: a later holder has written
  123  no server could say who has the lock
  124  the job ran for too long and was ended (--at-most)
  125  anything else went wrong, such as a right that is missing
  126  the job's program cannot be executed
  127  the job's program was not found";

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_in_the_table() {
        let codes: Vec<u8> =
            TABLE.lines().skip(1).filter_map(|line| line.split_whitespace().next()?.parse().ok()).collect();
        let all: Vec<u8> = Exit::value_variants().iter().map(|exit| *exit as u8).collect();
        assert_eq!(codes, all);
    }
}
