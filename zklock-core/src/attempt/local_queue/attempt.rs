//! The task of one attempt, from the turn of a waiter until nothing of it is left at the servers.
//!
//! It belongs to no caller: what it works for is its queue's wish. A caller waits for an answer, and may go away at any moment. So
//! no await point of a caller can leak a node. `driver` runs the machine of the attempt; the rest acts on its verdicts.

mod driver;
#[cfg(test)]
mod tests;

use super::waiter::Waiter;
use super::{Event, LocalQueue, PlaceRecord, Wish};
use crate::attempt::refused::refused;
use crate::attempt::strangers;
use crate::base::clock;
use crate::base::debt::Debt;
use crate::base::error::{Error, ErrorKind, LossReason};
use crate::connect::level::Newer;
use crate::machine::Moment;
use crate::machine::callers::{PlaceId, Remembered};
use crate::machine::claim::Claim;
use crate::machine::contender::Contender;
use crate::machine::drive::Machine;
use crate::machine::name::mark_of_companion;
use crate::machine::protocol::{Operation, Outcome, Patience, Refusal, Verdict, WatchEvent};
use crate::machine::single::Single;
use crate::machine::status::Status;
use crate::session::session::{Holding, HoldingState, Link, Notice, Session};
use crate::zookeeper::ensemble::Pending;
use driver::InSession;
use std::convert::Infallible;
use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use tokio::sync::watch;
use tracing::{Instrument, Span};

/// One attempt of a queue, and its work at the servers.
pub(super) struct Attempt {
    queue: Arc<LocalQueue>,
    place: PlaceId,
    wish: watch::Receiver<Wish>,
    machine: Box<dyn Machine + Send>,
    /// The only session that it may use: that of the hold that it is inside of.
    within: Option<Arc<Session>>,
    work: Option<InSession>,
    claims: Arc<[Claim]>,
    /// Whether its caller does not want to wait.
    tries: bool,
    /// Whether it was behind others when the queue was last told.
    is_waiting: bool,
    debt: Arc<Debt>,
    /// The nodes that represent a hold.
    held: Vec<Arc<str>>,
    /// The outcome of the first try to delete them.
    first_delete: Option<Outcome>,
    span: Span,
    /// Whether it ran to its end. If not, its runtime is gone, and nothing more can be started.
    seen_through: bool,
}

/// How an attempt to enter ended without a grant.
enum NotGranted {
    /// Nobody wants it any more.
    GivenUp,
    /// Somebody else holds the lock, and the caller does not want to wait.
    Busy,
    Failed(Error),
}

impl Attempt {
    pub(super) fn new(
        queue: Arc<LocalQueue>,
        place: PlaceId,
        record: &PlaceRecord,
        waiter: &Waiter,
        tried_before: bool,
    ) -> Self {
        let mut patience = waiter.patience;
        let (within, claims) = match (&queue.claims[..], &waiter.within) {
            // Inside of the owner's write side it is granted at once, unless there is a node where there should be none.
            ([claim], Some(writer)) => {
                patience = Patience::Waits;
                let name = writer.holding().nodes.iter().find(|node| is_below(node, &claim.directory));
                let within = name.map(|node| name_of(node).to_owned());
                let claim = Claim { within, ..claim.clone() };
                (Some(writer.session().clone()), Arc::from([claim]))
            }
            _ => (None, queue.claims.clone()),
        };
        let mut machine: Box<dyn Machine + Send> = match &claims[..] {
            [claim] if !claim.has_queue() => {
                Box::new(Single::new(&claim.directory, claim.data.clone(), patience))
            }
            _ => Box::new(Contender::new(claims.to_vec(), patience)),
        };
        if tried_before {
            machine.handle_tried_before();
        }
        Self {
            queue,
            place,
            wish: record.wish.subscribe(),
            machine,
            within,
            work: None,
            claims,
            tries: waiter.patience == Patience::TriesOnce,
            is_waiting: false,
            debt: record.debt.clone(),
            held: Vec::new(),
            first_delete: None,
            span: waiter.span.clone(),
            seen_through: false,
        }
    }

    /// Starts its task. `is_at_once` makes it send its first requests before this returns, if there is a session.
    pub(super) fn start(mut self, is_at_once: bool) {
        if is_at_once {
            // Whatever waits for the futures later polls them again, and is then woken.
            let mut context = Context::from_waker(Waker::noop());
            if pin!(self.begin()).poll(&mut context).is_ready() {
                let _ = pin!(self.send_next()).poll(&mut context);
            }
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
            Ok(holding) => self.hold(&holding).await,
            Err(NotGranted::GivenUp) => {
                self.withdraw().await;
                queue.tell(place, Event::Left);
                self.leave(None).await;
            }
            Err(NotGranted::Busy) => {
                queue.tell(place, Event::Busy);
                self.leave(None).await;
                busy = self.busy();
            }
            Err(NotGranted::Failed(error)) => {
                queue.tell(place, Event::Failed(error));
                self.leave(None).await;
            }
        }
        self.seen_through = true;
        queue.tell(place, Event::Ended(busy));
    }

    /// Enters for its caller. If that one goes away, another may take over its place.
    async fn enter(&mut self) -> Result<Arc<Holding>, NotGranted> {
        let (queue, mut wish) = (self.queue.clone(), self.wish.clone());
        if self.tries {
            // Otherwise it would find the lock busy because of a node that we are deleting.
            tokio::select! {
                biased;
                _ = wish.wait_for(|wish| *wish == Wish::GiveUp) => return Err(NotGranted::GivenUp),
                () = queue.released() => {}
            }
        }
        loop {
            let Wish::Serve(caller, wait) = *wish.borrow_and_update() else {
                return Err(NotGranted::GivenUp);
            };
            tokio::select! {
                // First, so that nothing more is sent for a caller that has gone.
                biased;
                Ok(()) = wish.changed() => {}
                entered = self.verdict() => return entered,
                never = queue.clone().look_up_holder(wait, caller) => match never {},
            }
        }
    }

    /// Queues, and waits until the lock is held. It may be dropped at any moment.
    async fn verdict(&mut self) -> Result<Arc<Holding>, NotGranted> {
        loop {
            match self.machine.poll_verdict() {
                Some(Verdict::Granted { nodes, czxid, proven, ignored }) => {
                    if let Some(holding) = self.granted(nodes, czxid, proven) {
                        for name in ignored {
                            tracing::warn!(
                                path = &*self.queue.path,
                                name,
                                "granted beside a contender that zklock ignores"
                            );
                        }
                        // A holder waits for nobody. If there was no check in between, the last look's watch still
                        // exists.
                        self.stop_watching();
                        // It lets others go on before its caller can do anything that depends on it.
                        self.send_next().await;
                        return Ok(holding);
                    }
                }
                Some(Verdict::Failed(refusal)) => {
                    // What it leaves behind is on its way before the caller has its answer.
                    self.send_next().await;
                    return Err(match refusal {
                        Refusal::Busy => NotGranted::Busy,
                        refusal => NotGranted::Failed(refused(&self.queue.path, refusal, self.loss())),
                    });
                }
                Some(Verdict::Wanted | Verdict::Deleted) | None => {}
            }
            // Before each step, because several may be ready at once.
            if *self.wish.borrow() == Wish::GiveUp {
                return Err(NotGranted::GivenUp);
            }
            if let Err(error) = self.step_if_possible().await {
                self.machine.handle_end();
                return Err(NotGranted::Failed(error));
            }
        }
    }

    /// Looks after what was granted, until its nodes are gone.
    async fn hold(&mut self, holding: &Arc<Holding>) {
        let (queue, place) = (self.queue.clone(), self.place);
        queue.tell(place, Event::Entered(holding.clone()));
        let (is_kept, is_due) = {
            let state = queue.lock();
            (state.callers.kept() == Some(place), state.callers.poll_timeout().is_some())
        };
        if is_kept {
            // The next caller may take it only as long as nobody else waits.
            self.machine.handle_notice();
        }
        // Boxed, because most tasks run for holds that are not kept, and would be a kilobyte larger, twice.
        let beside: Pending<Infallible> = if is_kept || is_due {
            Box::pin(run_due_work(queue.clone(), place, self.wish.clone(), holding.clone()))
        } else {
            Box::pin(pending())
        };
        self.stay(holding, beside).await;
        let is_lost = || matches!(holding.status(), Status::Lost(_));
        if is_lost() {
            queue.tell(place, Event::Lost);
        }
        self.keep_promise(holding).await;
        self.withdraw().await;
        // The next attempt follows right behind, even for a waiter that waited for the node that was kept.
        queue.tell(place, Event::Left);
        let count = || {
            if let Status::Lost(reason) = holding.status() {
                queue.shared.counters.tally.count_loss(reason);
            }
        };
        // Not only when the node is gone, which may take as long as no server answers.
        let was_lost = is_lost();
        count();
        self.leave(Some(holding)).await;
        if !was_lost {
            count();
        }
    }

    /// Begins to leave. When this returns, the deletion of its node is on its way, unless a reply has to come first. So
    /// an attempt that begins after it in the same session does not end up behind it.
    async fn withdraw(&mut self) {
        self.machine.handle_end();
        self.send_next().await;
    }

    /// Runs the attempt until its node is gone.
    async fn leave(&mut self, holding: Option<&Arc<Holding>>) {
        self.debt.owe();
        self.machine.handle_end();
        self.stop_watching();
        while !self.machine.is_gone() && self.step().await.is_ok() {
            if let (Some(holding), Some(Outcome::Refused(_))) = (holding, &self.first_delete) {
                holding.refuse();
            }
        }
        // If the deletion was confirmed, the end of the session does not matter any more.
        if let Some(session) = self.session().filter(|_| self.first_delete != Some(Outcome::Done)) {
            session.gone().await;
        }
        self.debt.settle();
        if let Some(holding) = holding {
            self.close(holding);
        }
    }

    /// Returns, after it has left, what may be remembered of a lock that was busy, and the watch that fires when it may be free.
    fn busy(&mut self) -> Option<(Remembered, Pending<WatchEvent>)> {
        let since = self.machine.busy_since()?;
        let session = self.session()?.id();
        Some((Remembered::new(session, since), self.work.as_mut()?.watch.take()?))
    }

    /// Runs until the hold ends. Meanwhile it runs `beside`, which never ends by itself, and tells the queue if others
    /// wait and somebody has asked to know that.
    async fn stay(&mut self, holding: &Arc<Holding>, mut beside: Pending<Infallible>) {
        let Some(session) = self.session().cloned() else { return };
        let mut stranger = pin!(strangers::stranger(session.clone(), self.claims.clone(), holding.clone()));
        let mut state = holding.watch();
        loop {
            let HoldingState { status, notice, .. } = *state.borrow_and_update();
            if self.machine.is_gone() || status != Status::Held {
                return;
            }
            if notice == Notice::Asked {
                self.machine.handle_notice();
            }
            match self.machine.poll_verdict() {
                Some(Verdict::Wanted) => {
                    self.queue.tell(self.place, Event::Wanted);
                    continue;
                }
                Some(Verdict::Deleted) => session.lose(holding, LossReason::NodeDeleted),
                _ => {}
            }
            tokio::select! {
                // First what may end the hold.
                biased;
                _ = state.changed() => {}
                never = &mut beside => match never {},
                name = &mut stranger => {
                    tracing::warn!(path = &*self.queue.path, name, "a contender that cannot see the hold has come");
                    session.lose(holding, LossReason::ForeignContender);
                }
                // An error means that the client is gone, so there is no session, and the hold has been marked as lost.
                stepped = self.step() => if stepped.is_err() { return }
            }
        }
    }

    /// Waits, if the hold was lost, until nobody relies on it any more. The caller may have asked for how long the lock is
    /// certain to be held, just before the loss. That answer stays true to its end, unless the caller lets go of the lock.
    async fn keep_promise(&mut self, holding: &Arc<Holding>) {
        // Of a deleted node nothing is left that would be deleted too soon.
        let is_promised = match holding.status() {
            Status::Lost(LossReason::NodeDeleted) => holding.nodes.len() > 1,
            Status::Lost(_) => true,
            _ => false,
        };
        let Some(session) = self.session().filter(|_| is_promised) else { return };
        let mut state = holding.watch();
        let mut link = session.link();
        tokio::select! {
            biased;
            () = session.keep_promises() => {}
            // They cannot fail: the senders are the hold's and the session's.
            _ = state.wait_for(|state| state.is_let_go) => {}
            _ = link.wait_for(|link| matches!(link, Link::Over(_))) => {}
        }
    }

    /// Like [`step`](Self::step), but refuses to queue for something that its servers cannot do.
    async fn step_if_possible(&mut self) -> Result<(), Error> {
        self.begin().await?;
        let is_old = self.session().is_some_and(|session| !session.creates_in_transactions());
        if is_old && self.claims.iter().flat_map(|claim| &claim.permits).any(|permits| permits.count > 1) {
            return Err(Error::new(
                ErrorKind::Refused,
                format!("{}: {}", self.queue.path, Newer::Permits.refusal()),
            ));
        }
        self.step().await
    }

    /// Waits for the next event for the attempt. It may be dropped at any moment.
    async fn step(&mut self) -> Result<(), Error> {
        let nodes = self.next_event().await?;
        let is_waiting = self.machine.is_waiting();
        if nodes.is_some() || is_waiting != self.is_waiting {
            self.is_waiting = is_waiting;
            self.queue.tell(self.place, Event::Queued { nodes, is_behind_others: is_waiting });
        }
        Ok(())
    }

    /// Records how the hold ended, now that its node is gone.
    fn close(&self, holding: &Holding) {
        holding.end(self.first_delete.as_ref(), self.loss());
    }

    fn granted(&mut self, nodes: Vec<String>, czxid: i64, proven: Moment) -> Option<Arc<Holding>> {
        let session = self.session()?.clone();
        self.held = nodes.into_iter().map(Arc::from).collect();
        // An earlier refusal, in another session, did not concern this hold.
        self.first_delete = None;
        let name_is_reused = self.claims.iter().any(|claim| !claim.has_queue());
        let (path, held) = (self.queue.path.clone(), self.held.clone());
        Some(session.register(path, held, czxid, name_is_reused, proven))
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if !self.seen_through {
            self.queue.tell(self.place, Event::Abandoned);
        }
    }
}

/// Does what is due while a place is held or idle: ends the pause of the next attempt, has the node checked for waiters, gives
/// it up when it has lingered, or when the last handle of its client is dropped.
async fn run_due_work(
    queue: Arc<LocalQueue>,
    place: PlaceId,
    mut wish: watch::Receiver<Wish>,
    holding: Arc<Holding>,
) -> Infallible {
    let mut deserted = queue.shared.handles.clone();
    let mut is_deserted = false;
    loop {
        let due = queue.next_wake();
        let sleep = async {
            match due {
                Some(due) => clock::sleep_until(due).await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            Ok(()) = wish.changed() => {
                if *wish.borrow_and_update() == Wish::Prove {
                    holding.session.clone().prove(&holding).await;
                    queue.tell(place, Event::Checked);
                }
            }
            // The sender is dropped with the last handle.
            _ = deserted.changed(), if !is_deserted => {
                is_deserted = true;
                queue.tell(place, Event::Deserted);
            }
            // Last, because what has happened may have changed when the next thing is due.
            () = sleep => queue.tell(place, Event::Timeout),
        }
    }
}

/// Returns the outcome of a flight that deletes nodes of the hold: of several nodes, the one that matters most.
fn deletion<'a>(held: &[Arc<str>], flight: &[Operation], outcomes: &'a [Outcome]) -> Option<&'a Outcome> {
    let counts = |operation: &Operation, outcome: &Outcome| {
        // A place in a queue that may not be deleted ends the hold too.
        deletes(operation, held) || operation.is_deletion() && matches!(outcome, Outcome::Refused(_))
    };
    let of_hold = flight.iter().zip(outcomes).filter(|(operation, outcome)| counts(operation, outcome));
    of_hold.map(|(_, outcome)| outcome).max_by_key(|outcome| severity(outcome))
}

/// Whether it deletes a node that the hold depends on. The companion of a single-node lock's node is deleted alone only if
/// that node is gone.
fn deletes(operation: &Operation, held: &[Arc<str>]) -> bool {
    match operation {
        Operation::Delete { path } if mark_of_companion(name_of(path)).is_some() => false,
        Operation::Delete { path } | Operation::DeletePair { path, .. } => {
            held.iter().any(|node| **node == **path)
        }
        _ => false,
    }
}

fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns how much the deletion of one node matters for a hold that has several nodes.
fn severity(outcome: &Outcome) -> u8 {
    match outcome {
        Outcome::NoNode => 3,
        Outcome::Refused(_) => 2,
        Outcome::Done => 0,
        _ => 1,
    }
}

fn is_below(node: &str, directory: &str) -> bool {
    node.rsplit_once('/').is_some_and(|(above, _)| above == directory)
}
