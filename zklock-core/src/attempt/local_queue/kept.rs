//! A node that is passed on within the process, instead of creating one for each holder.
//!
//! The attempt that created it looks after it, and gives it up when [`Turns`] says so. A caller that takes it gets its own
//! grant on it, without a request, while its lease runs. So every report of its loss reaches the caller that has it.
//!
//! Such a grant rests on memory, so everything that the client knows must agree with it. The node is watched, and it is lost
//! as soon as the watch reports its deletion, or any listing of the session does not show it. Without a connection nothing
//! would be reported, so nobody takes it then before the quorum has answered for it.

use super::{LocalQueue, State};
use crate::attempt::held_at::Lingers;
use crate::base::clock;
use crate::base::owner::Owner;
use crate::base::sync::lock_ignoring_poison;
use crate::hold::grant::{Footing, Grant, Returns};
use crate::hold::hold::Hold;
use crate::machine::status::Status;
use crate::machine::turns::Turns;
use crate::session::ask::MOMENT;
use crate::session::holding::Told;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use tokio::sync::{Notify, watch};

pub(crate) struct Kept {
    footing: Footing,
    /// Weak, because a node that kept its queue would keep its client open.
    queue: Weak<LocalQueue>,
    /// Locked after the state of the queue.
    turns: Mutex<Turns>,
    /// Notified when a waiter needs a check of the node first.
    unproven: Notify,
}

impl Kept {
    /// Makes the record of a node that has just been granted for the first time.
    pub(super) fn new(footing: Footing, queue: &Arc<LocalQueue>) -> Arc<Self> {
        let turns = Mutex::new(Turns::new(queue.passing, queue.is_shared()));
        Arc::new(Self { footing, queue: Arc::downgrade(queue), turns, unproven: Notify::new() })
    }

    fn turns(&self) -> MutexGuard<'_, Turns> {
        lock_ignoring_poison(&self.turns)
    }

    pub(super) fn is_spent(&self) -> bool {
        self.turns().is_spent()
    }

    fn is_held(&self) -> bool {
        self.footing.holding.status() == Status::Held
    }

    /// Whether it is known well enough to be taken without a request.
    fn is_known(&self) -> bool {
        let session = &self.footing.session;
        session.is_connected() && !session.valid_for(&self.footing.holding).is_zero()
    }

    /// Returns a grant on the node. The caller has taken a turn for it.
    pub(super) fn grant(self: &Arc<Self>, owner: Owner, bound: bool) -> Arc<Grant> {
        Grant::new(self.footing.clone(), owner, bound, Some(self.clone()))
    }

    /// Returns a grant for the next caller, if it may take the node without a request.
    pub(super) fn take(self: &Arc<Self>, owner: Owner, bound: bool) -> Option<Arc<Grant>> {
        let takes = self.is_held() && self.is_known() && self.turns().take();
        takes.then(|| self.grant(owner, bound))
    }

    /// Whether a waiter could take it, once the quorum has confirmed that it exists.
    fn needs_a_check(&self) -> bool {
        self.is_held() && !self.is_known() && self.turns().may_take()
    }

    /// Notes that others wait for the lock.
    pub(super) fn handle_wanted(&self) {
        // Unlocked again before the queue is locked, which has to be locked first.
        let is_over = self.turns().handle_wanted();
        if is_over {
            return self.give_up();
        }
        let Some(queue) = self.queue.upgrade() else { return };
        // Under the lock, so that nobody who passes the node on says at the same time that nobody waits.
        let state = lock_ignoring_poison(&queue.state);
        self.footing.holding.set_wanted(true);
        drop(state);
        // The next caller of this process queues behind the others.
        queue.start_next();
    }

    /// Makes the attempt delete it.
    fn give_up(&self) {
        self.footing.progress.owe();
        self.footing.session.release(&self.footing.holding);
    }

    /// Ends it: it is gone or about to be, so nobody takes it any more.
    pub(super) fn end(&self) {
        self.turns().handle_end();
    }

    /// Does what is due while it is held or idle. Gives it up when it has lingered, or when the last handle of its client is
    /// dropped, and has it checked for waiters.
    pub(super) async fn look_after(self: Arc<Self>, mut deserted: watch::Receiver<()>) -> Infallible {
        let mut is_deserted = false;
        loop {
            // It may become idle at any moment, without notice.
            let next_look = self.turns().next_look(clock::now());
            tokio::select! {
                () = clock::sleep_until(next_look), if self.turns().lingers() => {
                    let is_due = self.turns().handle_timeout(clock::now());
                    if is_due {
                        self.give_up();
                    }
                }
                () = self.unproven.notified() => self.prove().await,
                // The sender is dropped with the last handle.
                _ = deserted.changed(), if !is_deserted => {
                    is_deserted = true;
                    self.give_up_idle();
                }
            }
        }
    }

    /// Has it checked until a waiter has it, nobody waits any more, or it is lost.
    async fn prove(&self) {
        // A lapsed lease takes two checks to be restored.
        let mut checks = 0;
        while let Some(queue) = self.queue.upgrade().filter(|queue| queue.is_unproven(self)) {
            drop(queue);
            if checks >= 2 {
                clock::sleep(MOMENT).await;
            }
            checks += 1;
            self.footing.session.clone().prove(&self.footing.holding).await;
        }
        // A waiter may have gone away meanwhile.
        if let Some(queue) = self.queue.upgrade() {
            queue.pass_on_from(lock_ignoring_poison(&queue.state));
        }
    }
}

impl Lingers for Kept {
    fn give_up_idle(&self) -> watch::Receiver<Told> {
        let mut turns = self.turns();
        if turns.is_idle() {
            turns.handle_end();
            drop(turns);
            self.give_up();
        }
        self.footing.holding.watch()
    }
}

impl Returns for Kept {
    fn keep_for_last(&self, grant: &Grant) -> bool {
        let Some(queue) = self.queue.upgrade() else { return grant.is_in_use() };
        let state = lock_ignoring_poison(&queue.state);
        // A grant that ends now waits for this lock, and then finds that the node must be deleted.
        let is_in_use = grant.is_in_use();
        if is_in_use {
            self.end();
        }
        drop(state);
        if is_in_use {
            // The waiters queue for another node.
            queue.start_next();
        }
        is_in_use
    }

    fn give_back(&self, grant: &Grant) -> bool {
        let Some(queue) = self.queue.upgrade() else { return false };
        let mut state = lock_ignoring_poison(&queue.state);
        if !self.is_held() || !state.is_latest(self) || grant.is_unsettled() {
            self.end();
        }
        let awaits = state.waiting.iter().any(|waiter| waiter.progress.is_wanted());
        let mut turns = self.turns();
        let is_over = turns.give_back(awaits, clock::now());
        let has_others = turns.has_holders() && self.is_held();
        if !has_others && (is_over || queue.is_deserted()) {
            turns.handle_end();
            return false;
        }
        drop(turns);
        state.forget(grant);
        queue.held_at.iter().for_each(|held_at| held_at.remove(grant));
        queue.pass_on_from(state);
        true
    }
}

impl LocalQueue {
    /// Returns a hold without a request and without a wait, on a node that the process has kept. `None` if there is no such
    /// node, or other callers of the process come first.
    pub(crate) fn take(&self, owner: Owner, reentrant: bool) -> Option<Hold> {
        if !self.passing.is_on() || self.shared.pool.is_closed() {
            return None;
        }
        let mut state = lock_ignoring_poison(&self.state);
        if state.waiting.iter().any(|waiter| waiter.progress.is_wanted()) {
            return None;
        }
        let kept = state.kept.clone()?;
        let grant = kept.take(owner, reentrant && owner.returns())?;
        self.shared.counters.count_grant();
        self.enter(&mut state, &grant);
        Some(Hold::new(grant))
    }

    /// Gives the kept node to its waiters, as long as there are turns. The next waiter queues for another node.
    pub(super) fn pass_on_from(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        let undelivered = self.pass_on_to(&mut state);
        drop(state);
        // This gives the node back.
        undelivered.iter().for_each(Hold::let_go);
        self.start_next();
    }

    /// Returns the holds of waiters that have just gone away. The caller must release them after it has unlocked the state.
    #[must_use]
    pub(super) fn pass_on_to(&self, state: &mut State) -> Vec<Hold> {
        let mut undelivered = Vec::new();
        let Some(kept) = state.kept.clone() else { return undelivered };
        while state.tidy_front() {
            let Some(waiter) = state.waiting.front() else { break };
            let (owner, reentrant) = (waiter.owner, waiter.reentrant);
            let Some(grant) = kept.take(owner, reentrant && owner.returns()) else {
                // It may have been proven just now; then it is taken after all.
                if kept.is_held() && kept.turns().may_take() {
                    waiter.progress.set_behind_others(false);
                    kept.unproven.notify_one();
                }
                break;
            };
            let Some(waiter) = state.waiting.pop_front() else { break };
            waiter.progress.begin();
            waiter.progress.settle();
            self.shared.counters.count_grant();
            self.enter(state, &grant);
            if reentrant {
                state.take_part(&grant);
            }
            if let Err(Ok(Some(hold))) = waiter.answer.send(Ok(Some(Hold::new(grant)))) {
                undelivered.push(hold);
            }
        }
        if state.waiting.is_empty() {
            let is_over = kept.turns().handle_untaken();
            if is_over {
                kept.give_up();
            }
        }
        kept.footing.holding.set_wanted(kept.turns().is_wanted() || !state.waiting.is_empty());
        undelivered
    }

    /// Whether this node must be checked for waiters.
    fn is_unproven(&self, kept: &Kept) -> bool {
        let mut state = lock_ignoring_poison(&self.state);
        state.is_latest(kept) && state.tidy_front() && kept.needs_a_check()
    }

    /// Whether the client's last handle is gone, so that nobody could take a kept node.
    fn is_deserted(&self) -> bool {
        self.shared.handles.has_changed().is_err()
    }
}

#[cfg(test)]
mod tests;
