//! One attempt of a local queue: from the turn of a waiter until nothing of it is left at the servers.

use super::LocalQueue;
use super::kept::Kept;
use super::waiter::Waiter;
use crate::acquisition::{Acquisition, Granted, NotGranted};
use crate::ensemble::Pending;
use crate::hold::{Footing, Grant, Hold, Token};
use crate::machine::protocol::Patience;
use crate::stats::{Counters, Progress};
use crate::sync::lock_ignoring_poison;
use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;

/// One attempt of the queue. Dropping it lets the next one begin.
pub(super) struct Attempt {
    queue: Arc<LocalQueue>,
    progress: Arc<Progress>,
    /// Whether it counts against the width of the queue.
    is_counted: bool,
    entering: bool,
    /// Whether it came to its end. If not, its runtime is gone, and nothing more can be started.
    seen_through: bool,
    grant: Option<Arc<Grant>>,
    /// The node, if it may be passed on.
    kept: Option<Arc<Kept>>,
}

impl Attempt {
    pub(super) fn start(queue: &Arc<LocalQueue>, waiter: Waiter, is_counted: bool) {
        let attempt = Self {
            queue: queue.clone(),
            progress: waiter.progress.clone(),
            is_counted,
            entering: is_counted,
            seen_through: false,
            grant: None,
            kept: None,
        };
        queue.shared.pool.runtime().spawn(attempt.run(waiter));
    }

    async fn run(mut self, mut waiter: Waiter) {
        let queue = self.queue.clone();
        let mut acquisition = queue.acquisition(&waiter);
        if lock_ignoring_poison(&queue.state).was_busy {
            acquisition.tried_before();
        }
        let entered = self.enter(&mut acquisition, &mut waiter).await;
        let was_busy = matches!(entered, Err(NotGranted::Busy));
        let Waiter { owner, within, reentrant, answer, progress, .. } = waiter;
        match entered {
            Ok(granted) => {
                Counters::count(&queue.shared.counters.grants);
                let is_kept = self.is_counted && within.is_none() && queue.passing.is_on();
                // What the reader guards has seen the token of its writer, and the next writer is queued already
                // with one that is smaller than that of the reader's node.
                let token = within.map_or(Token::of(granted.czxid), |writer| writer.grant.token());
                let bound = reentrant && owner.returns();
                let footing = queue.footing(granted, token, progress);
                let entering = footing.progress.clone();
                let grant = if is_kept {
                    let kept = self.keep(footing, &mut acquisition);
                    kept.grant(owner, bound)
                } else {
                    Grant::new(footing, owner, bound, None)
                };
                self.grant = Some(grant.clone());
                // Together, or a caller that has just gone away could find itself the holder.
                let mut state = lock_ignoring_poison(&queue.state);
                queue.enter(&mut state, &grant);
                if is_kept {
                    // Not before, or a try would find nobody in its way. From now on only the node can owe anything.
                    entering.settle();
                }
                if reentrant {
                    state.take_part(&grant);
                }
                let sent = answer.send(Ok(Some(Hold::new(grant))));
                if self.kept.is_some() {
                    state.kept.clone_from(&self.kept);
                }
                queue.pass_on_from(state);
                // If the caller is gone, it is released.
                if let Err(Ok(Some(hold))) = sent {
                    hold.let_go();
                }
            }
            Err(turned) => {
                progress.owe();
                let _ = answer.send(match turned {
                    NotGranted::Busy | NotGranted::Cancelled => Ok(None),
                    NotGranted::Failed(error) => Err(error),
                });
            }
        }
        self.entered();
        let holding = self.grant.as_ref().map(|grant| grant.holding());
        let is_lost = || self.grant.as_ref().is_some_and(|grant| grant.is_lost());
        if let Some(holding) = holding {
            let kept = self.kept.clone();
            let wanted = || {
                kept.iter().for_each(|kept| kept.handle_wanted());
            };
            let deserted = queue.shared.handles.clone();
            // Boxed: most tasks are there for a hold that is not kept, and would be larger by a kilobyte twice.
            let beside: Pending<Infallible> = match &kept {
                Some(kept) => Box::pin(kept.clone().look_after(deserted)),
                None => Box::pin(pending()),
            };
            acquisition.stay(holding, beside, wanted).await;
        }
        if let Some(kept) = &self.kept {
            kept.end();
            // Those who waited for it queue for another.
            queue.start_next();
        }
        let was_lost = is_lost();
        // Not only when the node is gone: that may take as long as no server answers.
        if was_lost {
            Counters::count(&queue.shared.counters.losses);
        }
        acquisition.leave(holding).await;
        if was_busy {
            let remembered = acquisition.remembered();
            let mut state = lock_ignoring_poison(&queue.state);
            state.was_busy = true;
            state.remembered = remembered.or(state.remembered.take());
        }
        if !was_lost && is_lost() {
            Counters::count(&queue.shared.counters.losses);
        }
        self.seen_through = true;
    }

    /// Enters for this waiter, or if it goes away, for the one that takes over its place.
    async fn enter(
        &mut self,
        acquisition: &mut Acquisition,
        waiter: &mut Waiter,
    ) -> Result<Granted, NotGranted> {
        if waiter.patience == Patience::TriesOnce {
            // Otherwise it would find the lock busy because of a node that we are deleting.
            tokio::select! {
                () = waiter.answer.closed() => {}
                () = self.queue.released() => {}
            }
        }
        loop {
            let entered = acquisition.enter(waiter.answer.closed()).await;
            match &entered {
                Err(NotGranted::Cancelled) if self.hand_on(acquisition, waiter) => continue,
                Err(NotGranted::Cancelled) => acquisition.withdraw().await,
                Ok(_) if !waiter.progress.is_wanted() => {
                    self.hand_on(acquisition, waiter);
                }
                _ => {}
            }
            return entered;
        }
    }

    /// Gives the place of a caller that went away to the next waiter here, which would otherwise have to queue again, behind
    /// contenders of other processes that have come meanwhile. `false` if there is no next waiter.
    fn hand_on(&mut self, acquisition: &mut Acquisition, waiter: &mut Waiter) -> bool {
        if !self.entering || waiter.patience == Patience::TriesOnce {
            return false;
        }
        let mut state = lock_ignoring_poison(&self.queue.state);
        let Some(heir) = state.heir() else { return false };
        state.entering = Some(heir.progress.clone());
        drop(state);
        heir.progress.take_over(&waiter.progress);
        acquisition.serve(heir.progress.clone());
        // The one that went away owes nothing any more.
        std::mem::replace(&mut self.progress, heir.progress.clone()).settle();
        *waiter = heir;
        true
    }

    /// Keeps the node for the next of this process. From now on this attempt is nobody's but the node's.
    fn keep(&mut self, footing: Footing, acquisition: &mut Acquisition) -> Arc<Kept> {
        let progress = Progress::new(&self.queue.shared.counters);
        progress.begin();
        acquisition.serve(progress.clone());
        // The next is to take it as long as nobody else waits.
        acquisition.ask_for_notice();
        self.progress = progress.clone();
        let kept = Kept::new(Footing { progress, ..footing }, &self.queue);
        for (claim, held_at) in self.queue.claims.iter().zip(&self.queue.held_at) {
            held_at.note_kept(claim.scheme.role(), &kept);
        }
        self.kept = Some(kept.clone());
        kept
    }

    fn entered(&mut self) {
        if std::mem::take(&mut self.entering) {
            lock_ignoring_poison(&self.queue.state).entering = None;
            self.queue.start_next();
        }
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let mut state = lock_ignoring_poison(&self.queue.state);
        if self.is_counted {
            state.attempts -= 1;
        }
        if self.entering {
            state.entering = None;
        }
        self.progress.settle();
        if let Some(kept) = self.kept.take() {
            kept.end();
            if state.kept.as_ref().is_some_and(|other| Arc::ptr_eq(other, &kept)) {
                state.kept = None;
            }
        }
        if let Some(grant) = self.grant.take() {
            grant.abandon();
            // One that was lost is there as long as its owner has holds of it: until they are released, no
            // inner section is entered.
            state.grants.retain(|other| !other.is_over());
            self.queue.held_at.iter().for_each(|held_at| held_at.tidy());
        }
        if self.seen_through {
            drop(state);
            self.queue.start_next();
        } else {
            // Their receivers hear of it.
            state.waiting.clear();
        }
    }
}
