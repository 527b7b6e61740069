//! A waiter in the local queue, and the caller's end of it: a ticket.

use super::span;
use crate::error::Error;
use crate::held_at::Writer;
use crate::hold::Hold;
use crate::machine::protocol::Patience;
use crate::owner::Owner;
use crate::progress::Progress;
use crate::wait::Wait;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tracing::Span;

/// The answer to a waiter: a hold, or `None` if the lock is busy and it was not to wait.
pub(crate) type Answer = Result<Option<Hold>, Error>;

pub(super) struct Waiter {
    pub(super) owner: Owner,
    /// The write side that the owner alone can release, if it wants the read side.
    pub(super) within: Option<Writer>,
    pub(super) reentrant: bool,
    pub(super) patience: Patience,
    /// Shortly before this is over it is found out what the caller waits for.
    pub(super) wait: Wait,
    pub(super) answer: oneshot::Sender<Answer>,
    pub(super) progress: Arc<Progress>,
    /// The acquire that it is a part of, for those who trace it.
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
    /// The task that looks who is in the way, if nobody else does.
    lookout: Option<AbortHandle>,
}

impl Ticket {
    pub(crate) async fn answer(&mut self) -> Answer {
        poll_fn(|context| self.poll_answer(context)).await
    }

    /// As [`answer`](Self::answer), for one who waits for several. It comes once.
    pub(crate) fn poll_answer(&mut self, context: &mut Context<'_>) -> Poll<Answer> {
        let answer = ready!(Pin::new(&mut self.receiver).poll(context));
        self.answered = true;
        // Without an answer the attempt has been dropped, because the client is closed.
        Poll::Ready(answer.unwrap_or_else(|_| Err(Error::closed())))
    }

    pub(super) fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }

    /// This task looks who is in the way. It ends with the ticket.
    pub(super) fn set_lookout(&mut self, task: AbortHandle) {
        self.lookout = Some(task);
    }

    /// Whether it waits behind others, here or in the ensemble.
    pub(crate) fn is_behind_others(&self) -> bool {
        self.progress.is_behind_others()
    }

    /// Whether the servers have not answered for so long.
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
