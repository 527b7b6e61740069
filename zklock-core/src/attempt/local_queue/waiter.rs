//! A waiter in the local queue, and its caller's end: a ticket.

use super::span;
use crate::attempt::held_at::Writer;
use crate::base::error::Error;
use crate::base::owner::Owner;
use crate::base::progress::Progress;
use crate::base::wait::Wait;
use crate::hold::hold::Hold;
use crate::machine::protocol::Patience;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tracing::Span;

/// The answer to a waiter: a hold, or `None` if the lock is busy and the caller did not want to
/// wait.
pub(crate) type Answer = Result<Option<Hold>, Error>;

pub(super) struct Waiter {
    pub(super) owner: Owner,
    /// The owner's hold of the write side, which it alone can release, if it wants the read side.
    pub(super) within: Option<Writer>,
    pub(super) reentrant: bool,
    pub(super) patience: Patience,
    /// Shortly before this is over, the queue finds out what the caller waits for.
    pub(super) wait: Wait,
    pub(super) answer: oneshot::Sender<Answer>,
    pub(super) progress: Arc<Progress>,
    /// The span of the acquire that it belongs to.
    pub(super) span: Span,
}

impl Waiter {
    pub(super) fn new(
        owner: Owner,
        within: Option<Writer>,
        reentrant: bool,
        patience: Patience,
        wait: Wait,
        progress: Arc<Progress>,
    ) -> (Self, Ticket) {
        let (answer, receiver) = oneshot::channel();
        let ticket = Ticket { receiver, answered: false, progress: progress.clone(), lookout: None };
        let span = span::of_this_call();
        (Self { owner, within, reentrant, patience, wait, answer, progress, span }, ticket)
    }
}

/// Waits for the answer. Dropping it leaves the queue.
pub(crate) struct Ticket {
    receiver: oneshot::Receiver<Answer>,
    answered: bool,
    progress: Arc<Progress>,
    /// The task that finds out who is in the way, if no other caller's task does.
    lookout: Option<AbortHandle>,
}

impl Ticket {
    pub(crate) async fn answer(&mut self) -> Answer {
        poll_fn(|context| self.poll_answer(context)).await
    }

    /// Like [`answer`](Self::answer), for a caller that waits for several tickets. The answer comes
    /// once.
    pub(crate) fn poll_answer(&mut self, context: &mut Context<'_>) -> Poll<Answer> {
        let answer = ready!(Pin::new(&mut self.receiver).poll(context));
        self.answered = true;
        // Without an answer the attempt has been dropped, because the client is closed.
        Poll::Ready(answer.unwrap_or_else(|_| Err(Error::closed())))
    }

    pub(crate) fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }

    /// Sets the task that finds out who is in the way. It ends with the ticket.
    pub(super) fn set_lookout(&mut self, task: AbortHandle) {
        self.lookout = Some(task);
    }

    /// Whether it waits behind others, here or in the ensemble.
    pub(crate) fn is_behind_others(&self) -> bool {
        self.progress.is_behind_others()
    }

    /// Whether the servers have not answered for this long.
    pub(crate) fn is_unanswered_for(&self, patience: Duration) -> bool {
        self.progress.is_unanswered_for(patience)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some(lookout) = &self.lookout {
            lookout.abort();
        }
        if !self.answered {
            self.progress.owe();
        }
    }
}
