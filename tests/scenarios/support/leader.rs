//! A process that leads and is killed.

use crate::support::child::{self, Process};
use std::time::Duration;
use zklock_core::blocking;

/// The child: campaigns, reports that it leads, and goes on until it is killed.
#[test]
#[ignore = "the child of other tests"]
fn leader() {
    let Some((options, path)) = child::orders() else { return };
    let client = blocking::Client::connect(options.identity("the process").unwrap()).unwrap();
    let hold = client.election(&path).unwrap().acquire().unwrap();
    child::say(hold.token());
    let reason = hold.loss().wait(None, None);
    child::say(format_args!("{reason:?}"));
}

/// A process that campaigns. Dropping it kills it.
pub(crate) struct Leader(Process);

impl Leader {
    pub(crate) const SESSION: Duration = Duration::from_secs(1);

    pub(crate) fn start(hosts: &str, path: &str) -> Self {
        Self(Process::start(concat!(module_path!(), "::leader"), hosts, path, Self::SESSION))
    }

    /// Waits until it leads, and returns its token.
    #[track_caller]
    pub(crate) fn leads(&self) -> u64 {
        self.0.line().parse().expect("a token")
    }

    /// Returns when it is gone.
    pub(crate) fn kill(&mut self) {
        self.0.kill();
    }
}
