//! A waiter in the local queue, and its caller's end: a ticket.

use super::{LocalQueue, is_over};
use crate::base::debt::Debt;
use crate::base::error::Error;
use crate::base::wait::Wait;
use crate::hold::grant::Grant;
use crate::hold::hold::Hold;
use crate::machine::Moment;
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
pub(crate) type Acquired = Result<Option<Hold>, Error>;

/// An answer, and what may be owed for the attempt.
pub(super) type Answered = (Acquired, Option<Arc<Debt>>);

/// What the queue knows of a caller that has no answer yet.
pub(super) struct Waiter {
    /// The owner's grant of the write side, which it alone can release, if it wants the read side.
    pub(super) within: Option<Arc<Grant>>,
    pub(super) patience: Patience,
    /// Shortly before this is over, the queue finds out what the caller waits for.
    pub(super) wait: Wait,
    pub(super) answer: oneshot::Sender<Answered>,
    /// The span of the acquire that it belongs to.
    pub(super) span: Span,
    /// The place that serves it, if there is one. It never changes to another.
    pub(super) place: Option<PlaceId>,
    /// Since when it has waited for the servers without a place of its own; `None` while it waits behind others.
    pub(super) asks: Option<Moment>,
    /// Whether its owner holds this lock already, together with others, and was not warned yet. Only if the caller has to
    /// wait can it be waiting for itself.
    pub(super) is_beside_own: bool,
    /// Why its place has failed.
    pub(super) failure: Option<Error>,
}

impl Waiter {
    /// Makes a waiter, and the receiver of its answer.
    pub(super) fn new(
        within: Option<Arc<Grant>>,
        patience: Patience,
        wait: Wait,
        is_beside_own: bool,
    ) -> (Self, oneshot::Receiver<Answered>) {
        let (answer, receiver) = oneshot::channel();
        let span = span_of_this_call();
        let (place, asks, failure) = (None, None, None);
        (Self { within, patience, wait, answer, span, place, asks, is_beside_own, failure }, receiver)
    }
}

/// Waits for the answer. Dropping it leaves the queue.
pub(crate) struct Ticket {
    queue: Arc<LocalQueue>,
    pub(super) caller: CallerId,
    receiver: oneshot::Receiver<Answered>,
    /// Whether the queue expects nothing more of it.
    is_done: bool,
    /// What may be owed for its attempt, as far as is known.
    debt: Option<Arc<Debt>>,
    /// The task that finds out who is in the way, if no other caller's task does. It ends with the ticket.
    pub(super) holder_lookup: Option<AbortHandle>,
}

impl Ticket {
    pub(super) fn new(
        queue: Arc<LocalQueue>,
        caller: CallerId,
        receiver: oneshot::Receiver<Answered>,
    ) -> Self {
        Self { queue, caller, receiver, is_done: false, debt: None, holder_lookup: None }
    }

    pub(crate) async fn answer(&mut self) -> Acquired {
        poll_fn(|context| self.poll_answer(context)).await
    }

    /// Like [`answer`](Self::answer), for a caller that waits for several tickets. The answer comes
    /// once.
    pub(crate) fn poll_answer(&mut self, context: &mut Context<'_>) -> Poll<Acquired> {
        let answer = ready!(Pin::new(&mut self.receiver).poll(context));
        self.is_done = true;
        // Without an answer the client is closed.
        let (answer, debt) = answer.unwrap_or_else(|_| (Err(Error::closed()), None));
        self.debt = debt;
        Poll::Ready(answer)
    }

    /// Leaves the queue, if it is not left yet. Returns what may be owed for its attempt.
    pub(crate) fn leave(mut self) -> Option<Arc<Debt>> {
        self.be_done();
        self.debt.take()
    }

    fn be_done(&mut self) {
        if !std::mem::replace(&mut self.is_done, true) {
            self.debt = self.queue.leave(self.caller);
            // If that came too late, there is an answer that nobody wants. A hold in it is released.
            if let Ok((_, debt)) = self.receiver.try_recv() {
                self.debt = debt;
            }
        }
    }

    /// Whether it waits behind others, here or in the ensemble.
    pub(crate) fn is_behind_others(&self) -> bool {
        self.queue.is_behind_others(self.caller)
    }

    /// Whether the servers have not answered for this long.
    pub(crate) fn is_unanswered_for(&self, patience: Duration) -> bool {
        self.queue.asks(self.caller).is_some_and(|since| is_over(since, patience))
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some(holder_lookup) = &self.holder_lookup {
            holder_lookup.abort();
        }
        self.be_done();
    }
}

/// Returns the span of a new call, for tracing: it lasts until nothing is left of its attempt.
pub(crate) fn span_of_call(path: &str) -> Span {
    tracing::debug_span!("acquire", path)
}

/// Returns the span of the current call, if it is traced. A span of the program itself is not kept, because it would seem
/// to last until the hold is released.
fn span_of_this_call() -> Span {
    let span = Span::current();
    let is_ours = span.metadata().is_some_and(|metadata| metadata.target() == module_path!());
    if is_ours { span } else { Span::none() }
}
