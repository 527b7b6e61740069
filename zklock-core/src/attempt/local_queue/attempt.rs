//! One attempt of a local queue, from the turn of a waiter until nothing of it is left at the servers.

use super::kept::Kept;
use super::waiter::Waiter;
use super::{BRIEF, LocalQueue, Width};
use crate::attempt::acquisition::{Acquisition, Granted, NotGranted};
use crate::base::clock;
use crate::base::progress::Progress;
use crate::base::sync::lock_ignoring_poison;
use crate::hold::grant::{Footing, Grant};
use crate::hold::hold::Hold;
use crate::hold::token::Token;
use crate::machine::Moment;
use crate::machine::protocol::Patience;
use crate::zookeeper::ensemble::Pending;
use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use tracing::Instrument;

/// An attempt, its waiter, and its work at the servers.
pub(super) struct Beginning {
    attempt: Attempt,
    waiter: Waiter,
    acquisition: Acquisition,
}

/// One attempt of the queue. Dropping it lets the next one begin.
struct Attempt {
    queue: Arc<LocalQueue>,
    progress: Arc<Progress>,
    /// Whether it counts against the width of the queue.
    is_counted: bool,
    entering: bool,
    /// Since when it has held the lock, until the deletion of its node is sent.
    holds_since: Option<Moment>,
    /// Whether it ran to its end. If not, its runtime is gone, and nothing more can be started.
    seen_through: bool,
    grant: Option<Arc<Grant>>,
    /// The node, if it may be passed on.
    kept: Option<Arc<Kept>>,
}

impl Beginning {
    pub(super) fn new(queue: &Arc<LocalQueue>, waiter: Waiter, is_counted: bool) -> Self {
        let attempt = Attempt {
            queue: queue.clone(),
            progress: waiter.progress.clone(),
            is_counted,
            entering: is_counted,
            holds_since: None,
            seen_through: false,
            grant: None,
            kept: None,
        };
        let mut acquisition = queue.acquisition(&waiter);
        if lock_ignoring_poison(&queue.state).was_busy {
            acquisition.tried_before();
        }
        Self { attempt, waiter, acquisition }
    }

    pub(super) fn start(self) {
        let Self { attempt, waiter, acquisition } = self;
        let runtime = attempt.queue.shared.pool.runtime().clone();
        // The task ends when nothing is left of the attempt, so the span covers the hold and its release.
        let span = waiter.span.clone();
        runtime.spawn(attempt.run(waiter, acquisition).instrument(span));
    }

    /// Like [`start`](Self::start), but sends its first requests before it returns, if it can.
    fn start_at_once(mut self) {
        // A try first waits for releases, and servers may be unable to create several nodes at once.
        let Attempt { queue, .. } = &self.attempt;
        if self.waiter.patience == Patience::Waits && queue.width == Width::Two && queue.claims.len() == 1 {
            self.acquisition.set_out();
        }
        self.start();
    }
}

impl Attempt {
    async fn run(mut self, mut waiter: Waiter, mut acquisition: Acquisition) {
        let queue = self.queue.clone();
        let entered = self.enter(&mut acquisition, &mut waiter).await;
        let was_busy = matches!(entered, Err(NotGranted::Busy));
        let Waiter { owner, within, reentrant, answer, progress, .. } = waiter;
        match entered {
            Ok(granted) => {
                queue.shared.counters.count_grant();
                let is_kept = self.is_counted && within.is_none() && queue.passing.is_on();
                // The resource that the reader guards has seen the token of its own writer. And the next writer may already
                // be queued, with a token smaller than that of the reader's node.
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
                // Under one lock, or a caller that has just gone away could find that it is the holder.
                let mut state = lock_ignoring_poison(&queue.state);
                queue.enter(&mut state, &grant);
                if self.is_counted && queue.width == Width::Two {
                    self.holds_since = Some(clock::now());
                    state.holds_back = state.was_brief && !is_kept;
                }
                if is_kept {
                    // Not earlier, or a try would find nobody in its way. From now on only the node can owe anything.
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
                // If the caller is gone, the lock is released.
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
        let grant = self.grant.clone();
        let holding = grant.as_ref().map(|grant| grant.holding());
        let loss = || grant.as_ref().and_then(|grant| grant.loss());
        if let Some(holding) = holding {
            let kept = self.kept.clone();
            let wanted = || {
                kept.iter().for_each(|kept| kept.handle_wanted());
            };
            let deserted = queue.shared.handles.clone();
            // Boxed, because most tasks run for holds that are not kept, and would be a kilobyte larger, twice.
            let beside: Pending<Infallible> = match &kept {
                Some(kept) => Box::pin(kept.clone().look_after(deserted)),
                None if lock_ignoring_poison(&queue.state).holds_back => Box::pin(queue.clone().hold_back()),
                None => Box::pin(pending()),
            };
            acquisition.stay(holding, beside, wanted).await;
            if let Some(kept) = &self.kept {
                kept.end();
            }
            acquisition.keep_promise(holding).await;
            acquisition.withdraw().await;
            self.left();
            // The next attempt follows right behind, even for a waiter that waited for the node that was kept.
            if let Some(waiter) = queue.take_next() {
                Beginning::new(&queue, waiter, true).start_at_once();
            }
        }
        // Not only when the node is gone, which may take as long as no server answers.
        let lost_before = loss();
        lost_before.iter().for_each(|reason| queue.shared.counters.count_loss(*reason));
        acquisition.leave(holding).await;
        if was_busy {
            let remembered = acquisition.remembered();
            let mut state = lock_ignoring_poison(&queue.state);
            state.was_busy = true;
            state.remembered = remembered.or(state.remembered.take());
        }
        let lost_since = if lost_before.is_none() { loss() } else { None };
        lost_since.iter().for_each(|reason| queue.shared.counters.count_loss(*reason));
        self.seen_through = true;
    }

    /// Enters for this waiter. If the waiter goes away, another takes over its place.
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
            let lookout = self.queue.clone().look_out(waiter.wait, waiter.progress.clone());
            let entered = tokio::select! {
                biased;
                entered = acquisition.enter(waiter.answer.closed()) => entered,
                never = lookout => match never {},
            };
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

    /// Gives the place of a caller that went away to the next waiter here. Otherwise that waiter would have to queue again,
    /// behind contenders of other processes that have come meanwhile. `false` if there is no next waiter.
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
        // The caller that went away owes nothing any more.
        std::mem::replace(&mut self.progress, heir.progress.clone()).settle();
        *waiter = heir;
        true
    }

    /// Keeps the node for the next caller in this process. From now on this attempt belongs to the node, not to a caller.
    fn keep(&mut self, footing: Footing, acquisition: &mut Acquisition) -> Arc<Kept> {
        let progress = Progress::new(&self.queue.shared.counters);
        progress.begin();
        acquisition.serve(progress.clone());
        // The next caller may take it only as long as nobody else waits.
        acquisition.ask_for_notice();
        self.progress = progress.clone();
        let kept = Kept::new(Footing { progress, ..footing }, &self.queue);
        for (claim, held_at) in self.queue.claims.iter().zip(&self.queue.held_at) {
            held_at.note_kept(claim.scheme.role(), &kept);
        }
        self.kept = Some(kept.clone());
        kept
    }

    /// Notes that it no longer holds the lock: the deletion of its node is on its way.
    fn left(&mut self) {
        if let Some(since) = self.holds_since.take() {
            let mut state = lock_ignoring_poison(&self.queue.state);
            state.was_brief = clock::now().since(since) < BRIEF;
            state.holds_back = false;
        }
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
        self.left();
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
            // A lost grant stays registered as long as its owner has holds of it. Until they are released, no inner section
            // may be entered.
            state.grants.retain(|other| !other.is_over());
            self.queue.held_at.iter().for_each(|held_at| held_at.tidy());
        }
        if self.seen_through {
            drop(state);
            self.queue.start_next();
        } else {
            // Their receivers notice.
            state.waiting.clear();
        }
    }
}
