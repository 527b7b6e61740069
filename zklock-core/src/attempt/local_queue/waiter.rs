//! A waiter in the local queue, and its caller's end: a ticket.

use super::{LocalQueue, span};
use crate::base::error::Error;
use crate::base::progress::Progress;
use crate::base::wait::Wait;
use crate::hold::grant::Grant;
use crate::hold::hold::Hold;
use crate::machine::callers::{CallerId, PlaceId};
use crate::machine::protocol::Patience;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tracing::Span;

/// The answer to a waiter: a hold, or `None` if the lock is busy and the caller did not want to wait.
pub(crate) type Answer = Result<Option<Hold>, Error>;

/// What the queue knows of a caller that has no answer yet.
pub(super) struct Waiter {
    /// The owner's grant of the write side, which it alone can release, if it wants the read side.
    pub(super) within: Option<Arc<Grant>>,
    pub(super) patience: Patience,
    /// Shortly before this is over, the queue finds out what the caller waits for.
    pub(super) wait: Wait,
    pub(super) answer: oneshot::Sender<Answer>,
    pub(super) progress: Arc<Progress>,
    /// The span of the acquire that it belongs to.
    pub(super) span: Span,
    /// The place that serves it, if there is one.
    pub(super) place: Option<PlaceId>,
    /// Why its place has failed.
    pub(super) failure: Option<Error>,
}

impl Waiter {
    /// Makes a waiter, and the receiver of its answer.
    pub(super) fn new(
        within: Option<Arc<Grant>>,
        patience: Patience,
        wait: Wait,
        progress: Arc<Progress>,
    ) -> (Self, oneshot::Receiver<Answer>) {
        let (answer, receiver) = oneshot::channel();
        let span = span::of_this_call();
        (Self { within, patience, wait, answer, progress, span, place: None, failure: None }, receiver)
    }
}

/// Waits for the answer. Dropping it leaves the queue.
pub(crate) struct Ticket {
    queue: Arc<LocalQueue>,
    pub(super) caller: CallerId,
    receiver: oneshot::Receiver<Answer>,
    answered: bool,
    progress: Arc<Progress>,
    /// The task that finds out who is in the way, if no other caller's task does.
    lookout: Option<AbortHandle>,
}

impl Ticket {
    pub(super) fn new(
        queue: Arc<LocalQueue>,
        caller: CallerId,
        receiver: oneshot::Receiver<Answer>,
        progress: Arc<Progress>,
    ) -> Self {
        Self { queue, caller, receiver, answered: false, progress, lookout: None }
    }

    pub(crate) async fn answer(&mut self) -> Answer {
        poll_fn(|context| self.poll_answer(context)).await
    }

    /// Like [`answer`](Self::answer), for a caller that waits for several tickets. The answer comes
    /// once.
    pub(crate) fn poll_answer(&mut self, context: &mut Context<'_>) -> Poll<Answer> {
        let answer = ready!(Pin::new(&mut self.receiver).poll(context));
        self.answered = true;
        // Without an answer the client is closed.
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
            // If it comes too late, the answer is dropped with the receiver, and a hold in it is released.
            self.queue.handle_gone(self.caller);
        }
    }
}
