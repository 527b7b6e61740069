//! Keeps the lease of a session running while there are holds, and ends holds whose lease has not
//! been renewed.
//!
//! One request in a twelfth of the session's timeout covers all holds of a session. It is a write that
//! the quorum commits, because nothing less proves anything; it changes no node and wakes nobody; and
//! it fails if an operator has deleted a node, so the holder is told of that too.

use crate::ensemble::Check;
use crate::error::LossReason;
use crate::machine::Moment;
use crate::platform;
use crate::session::{Holding, Session, Status};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;

/// Of paths in one request: a quarter of what servers take by default.
const BYTES_AT_MOST: usize = 256 * 1024;
/// What a check takes beside its path.
const CHECK_BYTES: usize = 32;

type Beat = Pin<Box<dyn Future<Output = Check> + Send>>;

/// Runs for as long as it is polled.
pub(crate) async fn run(session: Arc<Session>) -> Infallible {
    let mut heart = Heart { session, beat: None, earliest: Moment::default(), lapsed: None };
    let mut link = heart.session.link();
    loop {
        let holdings = heart.session.holdings();
        let Some(wake) = heart.look_after(&holdings) else {
            heart.session.enrolled().await;
            continue;
        };
        tokio::select! {
            check = poll(&mut heart.beat) => heart.answered(&check),
            () = tokio::time::sleep(wake.since(platform::now())) => {}
            () = heart.session.enrolled() => {}
            _ = link.changed() => {}
        }
    }
}

struct Heart {
    session: Arc<Session>,
    beat: Option<Beat>,
    /// No beat before this: the last one came to nothing.
    earliest: Moment,
    /// When it was noticed that holds have lapsed.
    lapsed: Option<Moment>,
}

impl Heart {
    /// Does what is due, and says when to look again; `None` if there is nothing to look after.
    fn look_after(&mut self, holdings: &[Arc<Holding>]) -> Option<Moment> {
        let oldest = holdings.iter().map(|holding| holding.proven()).min()?;
        let now = platform::now();
        let interval = self.session.heartbeat();
        // A hold that is being released has no lease either.
        let has_lapsed = |holding: &&Arc<Holding>| {
            self.session.valid_for(holding).is_zero() && holding.status() == Status::Held
        };
        let lapsed: Vec<_> = holdings.iter().filter(has_lapsed).collect();
        let mut wake = if lapsed.is_empty() {
            self.lapsed = None;
            self.session.lease_until()
        } else {
            // A process that was asleep may find its session alive: two checks restore the hold. But
            // whoever waits to be told is told within a heartbeat.
            let give_up = *self.lapsed.get_or_insert(now) + interval;
            if now >= give_up {
                lapsed.iter().for_each(|holding| self.session.lose(holding, LossReason::LeaseLapsed));
                return Some(now);
            }
            give_up
        };
        let due = if lapsed.is_empty() { oldest + self.session.beat() } else { now }.max(self.earliest);
        if self.beat.is_none() && self.session.is_connected() {
            if now >= due {
                self.beat = Some(Box::pin(self.session.clone().prove(most_urgent(holdings))));
            } else {
                wake = wake.min(due);
            }
        }
        Some(wake)
    }

    fn answered(&mut self, check: &Check) {
        self.beat = None;
        if matches!(check, Check::Unknown | Check::SessionOver) {
            self.earliest = platform::now() + self.session.heartbeat() / 4;
        }
    }
}

/// As many as fit into one request, those first that were proven longest ago; but the first in any case. One that is
/// too large for the rest is the first as soon as the others are proven, and so has its turn as they do.
fn most_urgent(holdings: &[Arc<Holding>]) -> Vec<Arc<Holding>> {
    let mut holdings = holdings.to_vec();
    holdings.sort_by_key(|holding| holding.proven());
    let mut bytes = 0;
    holdings.retain(|holding| {
        let is_first = bytes == 0;
        bytes += holding.nodes.iter().map(|node| node.len() + CHECK_BYTES).sum::<usize>();
        is_first || bytes <= BYTES_AT_MOST
    });
    holdings
}

async fn poll(beat: &mut Option<Beat>) -> Check {
    match beat {
        Some(beat) => beat.await,
        None => std::future::pending().await,
    }
}
