//! `zklock held`: whether the lock of `zklock acquire` is still held.

use clap::Args;
use serde_json::json;
use std::time::Duration;
use zklock::face::{Moment, now};

use crate::duration;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{print, print_json};
use crate::processes::questions::{HOLD, ask};

/// Say whether `zklock acquire` still holds its lock, and for how long that is certain
///
/// The code is 122 if the lock was lost. The answer stays true for the time that it names, whatever happens to the
/// network.
#[derive(Args, Debug)]
pub(crate) struct Held {
    /// The hold, if it is not the last one that this shell has acquired
    #[arg(env = HOLD)]
    hold: Option<String>,

    /// Write JSON; valid_for is in seconds
    #[arg(long)]
    json: bool,
}

impl Held {
    pub(crate) fn execute(&self) -> Result<(), Failure> {
        let answer = ask(self.hold.as_deref(), "held", Duration::from_secs(30))?;
        let (lock, node): (String, String) = (answer.need("lock")?, answer.need("node")?);
        let token: u64 = answer.need("token")?;
        let valid_for = Moment::at(answer.need_time("valid-until")?).since(now());
        if valid_for.is_zero() {
            return Err(Failure::new(
                Exit::Lost,
                format!("the lock {lock} may be lost, since no server has confirmed it in time"),
            ));
        }
        if self.json {
            return print_json(
                &json!({ "lock": lock, "token": token, "node": node, "valid_for": valid_for.as_secs_f64() }),
            );
        }
        print(&format!(
            "the lock {lock} is held for {} at least (token {token})\n",
            duration::short(valid_for)
        ))
    }
}
