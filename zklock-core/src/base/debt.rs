//! What is owed to others in a queue: the deletion of nodes that nobody wants any more.

use crate::base::stats::Counters;
use crate::base::sync::atomic::Ordering;
use crate::base::sync::{Mutex, lock_ignoring_poison};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// The nodes of one attempt, or of one member of a barrier. They are owed from the moment that nobody wants them until they are
/// gone. So a program may exit when nothing is owed.
pub(crate) struct Debt {
    counters: Arc<Counters>,
    state: Mutex<State>,
}

struct State {
    stage: Stage,
    /// Woken when nothing is owed any more.
    debtor: Option<Waker>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    InUse,
    /// Nobody wants the nodes any more, but they may still exist.
    Owed,
    /// Nothing is left of them.
    Settled,
}

impl Debt {
    /// Notes nodes that somebody wants.
    pub(crate) fn new(counters: &Arc<Counters>) -> Arc<Self> {
        let state = Mutex::new(State { stage: Stage::InUse, debtor: None });
        Arc::new(Self { counters: counters.clone(), state })
    }

    pub(crate) fn is_in_use(&self) -> bool {
        lock_ignoring_poison(&self.state).stage == Stage::InUse
    }

    /// Notes that nobody wants the nodes any more.
    pub(crate) fn owe(&self) {
        let mut state = lock_ignoring_poison(&self.state);
        if state.stage == Stage::InUse {
            state.stage = Stage::Owed;
            self.counters.attempts.owed.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Notes that the nodes are gone.
    pub(crate) fn settle(&self) {
        let mut state = lock_ignoring_poison(&self.state);
        if std::mem::replace(&mut state.stage, Stage::Settled) == Stage::Owed {
            self.counters.attempts.owed.fetch_sub(1, Ordering::AcqRel);
        }
        let debtor = state.debtor.take();
        drop(state);
        debtor.into_iter().for_each(Waker::wake);
    }

    /// Waits until nothing is owed. One task or thread can wait.
    pub(crate) fn poll_settled(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = lock_ignoring_poison(&self.state);
        if state.stage != Stage::Owed {
            return Poll::Ready(());
        }
        state.debtor = Some(context.waker().clone());
        Poll::Pending
    }
}

#[cfg(all(test, feature = "loom"))]
mod interleavings {
    use super::*;
    use crate::base::sync::{in_every_order, spawn, wait};
    use std::future::poll_fn;

    /// The caller goes away while the task cleans up.
    #[test]
    fn what_an_attempt_owes_is_settled_once() {
        in_every_order(None, || {
            let counters = Arc::new(Counters::default());
            let debt = Debt::new(&counters);
            let (of_caller, of_task) = (debt.clone(), debt);
            let caller = spawn(move || of_caller.owe());
            // First as an attempt that is leaving, then as one that has left.
            of_task.owe();
            of_task.settle();
            caller.join().unwrap();
            assert_eq!(counters.attempts.owed(), 0);
        });
    }

    /// The caller waits while the task cleans up.
    #[test]
    fn a_caller_wakes_when_nothing_is_owed() {
        in_every_order(None, || {
            let debt = Debt::new(&Arc::default());
            debt.owe();
            let of_task = debt.clone();
            let task = spawn(move || of_task.settle());
            wait(poll_fn(|context| debt.poll_settled(context)));
            task.join().unwrap();
        });
    }
}
