//! Helpers of the scenarios that this program needs as well.

#[allow(dead_code, reason = "the scenarios need the rest of it")]
#[path = "../scenarios/support/child.rs"]
pub(crate) mod child;
#[path = "../scenarios/support/texts.rs"]
pub(crate) mod texts;

use std::time::Duration;
use zklock::ClientOptions;

pub(crate) const SESSION: Duration = Duration::from_secs(4);
/// The limit for anything that takes almost no time on an idle machine.
pub(crate) const SOON: Duration = Duration::from_secs(30);

pub(crate) fn options(hosts: &str) -> ClientOptions {
    ClientOptions::new(hosts)
}
