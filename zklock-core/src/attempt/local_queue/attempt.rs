//! The task of one attempt, from the turn of a waiter until nothing of it is left at the servers.
//!
//! It belongs to no caller. A caller that goes away changes the attempt's record in its queue, and the task reads that.

use super::LocalQueue;
use crate::attempt::acquisition::{Acquisition, NotGranted};
use crate::base::clock;
use crate::hold::granted::Granted;
use crate::machine::callers::PlaceId;
use crate::machine::status::Status;
use crate::zookeeper::ensemble::Pending;
use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use tokio::sync::Notify;
use tracing::{Instrument, Span};

/// One attempt of a queue, and its work at the servers.
pub(super) struct Attempt {
    queue: Arc<LocalQueue>,
    place: PlaceId,
    changed: Arc<Notify>,
    acquisition: Acquisition,
    tries: bool,
    span: Span,
    /// Whether it ran to its end. If not, its runtime is gone, and nothing more can be started.
    seen_through: bool,
}

impl Attempt {
    pub(super) fn new(
        queue: Arc<LocalQueue>,
        place: PlaceId,
        changed: Arc<Notify>,
        acquisition: Acquisition,
        tries: bool,
        span: Span,
    ) -> Self {
        Self { queue, place, changed, acquisition, tries, span, seen_through: false }
    }

    /// Starts its task. `is_at_once` makes it send its first requests before this returns, if it can.
    pub(super) fn start(mut self, is_at_once: bool) {
        if is_at_once {
            self.acquisition.set_out();
        }
        let runtime = self.queue.shared.pool.runtime().clone();
        // The task ends when nothing is left of the attempt, so the span covers the hold and its release.
        let span = self.span.clone();
        runtime.spawn(self.run().instrument(span));
    }

    async fn run(mut self) {
        let (queue, place) = (self.queue.clone(), self.place);
        let mut busy = None;
        match self.enter().await {
            Ok(granted) => self.hold(granted).await,
            Err(NotGranted::Cancelled) => {
                self.acquisition.withdraw().await;
                queue.handle_left(place);
                self.acquisition.leave(None).await;
            }
            Err(NotGranted::Busy) => {
                queue.handle_busy(place);
                self.acquisition.leave(None).await;
                busy = self.acquisition.busy();
            }
            Err(NotGranted::Failed(error)) => {
                queue.handle_failed(place, error);
                self.acquisition.leave(None).await;
            }
        }
        self.seen_through = true;
        queue.handle_ended(place, busy);
    }

    /// Enters for its caller. If that one goes away, another may take over its place.
    async fn enter(&mut self) -> Result<Granted, NotGranted> {
        let Self { queue, place, changed, acquisition, .. } = self;
        if self.tries {
            // Otherwise it would find the lock busy because of a node that we are deleting.
            tokio::select! {
                () = given_up(queue, *place, changed) => return Err(NotGranted::Cancelled),
                () = queue.released() => {}
            }
        }
        loop {
            let Some((progress, wait)) = queue.served_at(*place) else { return Err(NotGranted::Cancelled) };
            acquisition.serve(progress.clone());
            let lookout = queue.clone().look_out(wait, progress);
            let entered = tokio::select! {
                biased;
                entered = acquisition.enter(changed.notified()) => entered,
                never = lookout => match never {},
            };
            // If it was not given up, it serves another caller now.
            if !matches!(entered, Err(NotGranted::Cancelled)) || queue.is_given_up(*place) {
                return entered;
            }
        }
    }

    /// Looks after what was granted, until its nodes are gone.
    async fn hold(&mut self, granted: Granted) {
        let Self { queue, place, acquisition, .. } = self;
        let place = *place;
        let holding = &granted.holding;
        let is_kept = queue.handle_entered(place, &granted);
        if let Some((progress, _)) = queue.served_at(place) {
            acquisition.serve(progress);
        }
        if is_kept {
            // The next caller may take it only as long as nobody else waits.
            acquisition.ask_for_notice();
        }
        // Boxed, because most tasks run for holds that are not kept, and would be a kilobyte larger, twice.
        let beside: Pending<Infallible> = if is_kept || queue.has_timeout() {
            Box::pin(look_after(queue.clone(), place, self.changed.clone(), granted.clone()))
        } else {
            Box::pin(pending())
        };
        acquisition.stay(holding, beside, || queue.handle_wanted(place)).await;
        let is_lost = || matches!(holding.status(), Status::Lost(_));
        if is_lost() {
            queue.handle_lost(place);
        }
        acquisition.keep_promise(holding).await;
        acquisition.withdraw().await;
        // The next attempt follows right behind, even for a waiter that waited for the node that was kept.
        queue.handle_left(place);
        let count = || {
            if let Status::Lost(reason) = holding.status() {
                queue.shared.counters.count_loss(reason);
            }
        };
        // Not only when the node is gone, which may take as long as no server answers.
        let was_lost = is_lost();
        count();
        acquisition.leave(Some(holding)).await;
        if !was_lost {
            count();
        }
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if !self.seen_through {
            self.queue.handle_abandoned(self.place);
        }
    }
}

/// Waits until the attempt is given up.
async fn given_up(queue: &LocalQueue, place: PlaceId, changed: &Notify) {
    while !queue.is_given_up(place) {
        changed.notified().await;
    }
}

/// Does what is due while a place is held or idle: ends the pause of the next attempt, has the node checked for waiters, gives
/// it up when it has lingered, or when the last handle of its client is dropped.
async fn look_after(
    queue: Arc<LocalQueue>,
    place: PlaceId,
    changed: Arc<Notify>,
    granted: Granted,
) -> Infallible {
    let mut deserted = queue.shared.handles.clone();
    let mut is_deserted = false;
    loop {
        let due = queue.next_look();
        let sleep = async {
            match due {
                Some(due) => clock::sleep_until(due).await,
                None => pending().await,
            }
        };
        tokio::select! {
            () = sleep => queue.handle_timeout(),
            () = changed.notified() => {
                if queue.is_to_be_proven(place) {
                    granted.session.clone().prove(&granted.holding).await;
                    queue.handle_checked(place);
                }
            }
            // The sender is dropped with the last handle.
            _ = deserted.changed(), if !is_deserted => {
                is_deserted = true;
                queue.handle_deserted();
            }
        }
    }
}
