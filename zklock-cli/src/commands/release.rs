//! `zklock release`: the end of what `zklock acquire` holds.

use std::time::Duration;

use clap::Args;

use crate::failure::Failure;
use crate::processes::questions::{HOLD, ask};

/// Release what `zklock acquire` holds
///
/// When this returns, others can get the lock. The code is 122 if the lock was lost before. In that case, your work may
/// have overlapped with that of another holder.
#[derive(Args, Debug)]
pub(crate) struct Release {
    /// The hold, if it is not the last one that this shell has acquired
    #[arg(env = HOLD)]
    hold: Option<String>,
}

impl Release {
    pub(crate) fn execute(&self) -> Result<(), Failure> {
        // A release waits for a session timeout at most.
        let answer = ask(self.hold.as_deref(), "release", Duration::from_secs(300))?;
        // The lock is free when the keeper has closed its session, or at the latest when that times out.
        if let Some(problem) = answer.get::<String>("unreleased")? {
            say!("{problem}");
        }
        Ok(())
    }
}
