//! How far attempts have got, and what is still owed for them.

use crate::base::clock;
use crate::base::stats::Counters;
use crate::base::sync::atomic::Ordering;
use crate::base::sync::{Mutex, lock_ignoring_poison};
use crate::machine::Moment;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// How far one attempt has got, for its caller and the counters.
///
/// Its node counts as owed from the moment that its caller goes away. So a program may exit when nothing is owed.
pub(crate) struct Progress {
    counters: Arc<Counters>,
    state: Mutex<AttemptState>,
    /// Since when it has waited for the servers' answer; `None` while it waits behind others.
    asks: Mutex<Option<Moment>>,
    /// The lock, if a warning is due when it waits behind others.
    own: Mutex<Option<Arc<str>>>,
    /// The names of its nodes, if it may have to wait.
    nodes: Mutex<Vec<String>>,
    /// Woken when nothing is owed any more.
    debtor: Mutex<Option<Waker>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum AttemptState {
    /// It waits for other callers of its process, and has no node.
    Waits,
    Begun,
    /// Nobody wants it any more, but its node may still exist.
    Owed,
    /// Nothing is left of it, or it must not begin.
    Over,
}

impl Progress {
    pub(crate) fn new(counters: &Arc<Counters>) -> Arc<Self> {
        let (state, asks, own) = (Mutex::new(AttemptState::Waits), Mutex::default(), Mutex::default());
        let (nodes, debtor) = (Mutex::default(), Mutex::default());
        Arc::new(Self { counters: counters.clone(), state, asks, own, nodes, debtor })
    }

    /// Notes that its owner already holds this lock, together with others. Only if the attempt has to wait can it be
    /// waiting for itself.
    pub(crate) fn set_beside_own(&self, path: &Arc<str>) {
        *lock_ignoring_poison(&self.own) = Some(path.clone());
    }

    pub(crate) fn set_handed_over(&self) {
        self.counters.attempts.handed_over.store(true, Ordering::Relaxed);
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Begins; `false` if its caller has already gone.
    pub(crate) fn begin(&self) -> bool {
        let mut state = lock_ignoring_poison(&self.state);
        let begins = *state == AttemptState::Waits;
        if begins {
            *state = AttemptState::Begun;
            self.set_behind_others(false);
        }
        begins
    }

    /// Notes that its caller has gone, or no longer needs the node.
    pub(crate) fn owe(&self) {
        let mut state = lock_ignoring_poison(&self.state);
        *state = match *state {
            AttemptState::Waits | AttemptState::Over => AttemptState::Over,
            AttemptState::Owed => AttemptState::Owed,
            AttemptState::Begun => {
                self.counters.attempts.owed.fetch_add(1, Ordering::AcqRel);
                AttemptState::Owed
            }
        };
    }

    /// Notes that its node is gone.
    pub(crate) fn settle(&self) {
        if std::mem::replace(&mut *lock_ignoring_poison(&self.state), AttemptState::Over)
            == AttemptState::Owed
        {
            self.counters.attempts.owed.fetch_sub(1, Ordering::AcqRel);
            let debtor = lock_ignoring_poison(&self.debtor).take();
            debtor.into_iter().for_each(Waker::wake);
        }
    }

    /// Waits until nothing is owed. One task or thread can wait.
    pub(crate) fn poll_settled(&self, context: &mut Context<'_>) -> Poll<()> {
        let state = lock_ignoring_poison(&self.state);
        if *state != AttemptState::Owed {
            return Poll::Ready(());
        }
        // Before the state can change.
        *lock_ignoring_poison(&self.debtor) = Some(context.waker().clone());
        Poll::Pending
    }

    pub(crate) fn is_wanted(&self) -> bool {
        matches!(*lock_ignoring_poison(&self.state), AttemptState::Waits | AttemptState::Begun)
    }

    pub(crate) fn set_behind_others(&self, behind: bool) {
        let mut asks = lock_ignoring_poison(&self.asks);
        *asks = if behind { None } else { asks.or_else(|| Some(clock::now())) };
        drop(asks);
        if behind {
            let own = lock_ignoring_poison(&self.own).take();
            own.inspect(|path| self.counters.attempts.warn_of_own(path));
        }
    }

    /// Whether it waits behind others, here or in the ensemble.
    pub(crate) fn is_behind_others(&self) -> bool {
        lock_ignoring_poison(&self.asks).is_none()
    }

    /// Notes that it has queued and may have to wait, with a node of this name in each of its queues.
    pub(crate) fn set_nodes(&self, nodes: Vec<String>) {
        *lock_ignoring_poison(&self.nodes) = nodes;
    }

    pub(crate) fn nodes(&self) -> Vec<String> {
        lock_ignoring_poison(&self.nodes).clone()
    }

    /// Takes the place of another attempt, which may still be without an answer.
    pub(crate) fn take_over(&self, before: &Self) {
        self.set_nodes(before.nodes());
        *lock_ignoring_poison(&self.asks) = *lock_ignoring_poison(&before.asks);
    }

    /// Whether the servers have not answered for this long.
    pub(crate) fn is_unanswered_for(&self, patience: Duration) -> bool {
        lock_ignoring_poison(&self.asks).is_some_and(|since| clock::now().since(since) >= patience)
    }
}
