//! One attempt to hold a lock: it passes what the local queue wants to the machine, and acts on the machine's verdict.

mod entry;

use crate::attempt::driver::{Driver, SessionSource};
use crate::attempt::guard;
use crate::attempt::refused::refused;
use crate::base::error::{Error, ErrorKind, LossReason};
use crate::base::progress::Progress;
use crate::connect::level::Newer;
use crate::hold::granted::Granted;
use crate::hold::token::Token;
use crate::machine::Moment;
use crate::machine::claim::Claim;
use crate::machine::contender::Contender;
use crate::machine::drive::Machine;
use crate::machine::name::mark_of_companion;
use crate::machine::protocol::{Operation, Outcome, Patience, Refusal, Verdict, WatchEvent};
use crate::machine::single::Single;
use crate::machine::status::Status;
use crate::session::holding::{Holding, Notice, Told};
use crate::session::session::{Link, Session};
use crate::session::slot::Slot;
use crate::zookeeper::ensemble::Pending;
use futures_util::FutureExt;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};

pub(crate) struct Acquisition {
    driver: Driver<dyn Machine<Verdict = Verdict> + Send>,
    claims: Arc<[Claim]>,
    /// The lock's name in messages.
    path: Arc<str>,
    progress: Arc<Progress>,
    /// Finds the client's sessions.
    slot: Arc<Slot>,
    /// The nodes that represent a hold.
    held: Vec<Arc<str>>,
    /// The outcome of the first try to delete them.
    first_delete: Option<Outcome>,
}

/// What may be remembered of a lock that was busy.
pub(crate) struct Busy {
    pub(crate) session: i64,
    /// When the request was sent that set the watch.
    pub(crate) since: Moment,
    /// Fires when the lock may be free.
    pub(crate) watch: Pending<WatchEvent>,
}

/// How an attempt to enter ended without a grant.
pub(crate) enum NotGranted {
    /// The caller went away. The attempt goes on until it [leaves](Acquisition::leave).
    Cancelled,
    /// Somebody else holds the lock, and the attempt did not want to wait.
    Busy,
    Failed(Error),
}

impl Acquisition {
    pub(crate) fn new(
        claims: Vec<Claim>,
        patience: Patience,
        path: Arc<str>,
        progress: Arc<Progress>,
        slot: Arc<Slot>,
    ) -> Self {
        Self::from(SessionSource::Slot(slot.clone()), claims, patience, path, progress, slot)
    }

    /// Returns an attempt inside a hold of this session. It is granted at once, unless there is a node where there should
    /// be none.
    pub(crate) fn within(
        session: Arc<Session>,
        claim: Claim,
        path: Arc<str>,
        progress: Arc<Progress>,
        slot: Arc<Slot>,
    ) -> Self {
        Self::from(SessionSource::Session(session), vec![claim], Patience::Waits, path, progress, slot)
    }

    fn from(
        source: SessionSource,
        claims: Vec<Claim>,
        patience: Patience,
        path: Arc<str>,
        progress: Arc<Progress>,
        slot: Arc<Slot>,
    ) -> Self {
        let machine: Box<dyn Machine<Verdict = Verdict> + Send> = match &claims[..] {
            [claim] if !claim.has_queue() => {
                Box::new(Single::new(&claim.directory, claim.data.clone(), patience))
            }
            _ => Box::new(Contender::new(claims.clone(), patience)),
        };
        let driver = Driver::new(machine, source, claims.iter().flat_map(directories).collect());
        Self { driver, claims: claims.into(), path, progress, slot, held: Vec::new(), first_delete: None }
    }

    /// Queues, and waits until the lock is held or `gone` ends. After that it may be called again, for another caller
    /// that takes over the place.
    pub(crate) async fn enter(&mut self, gone: impl Future<Output = ()>) -> Result<Granted, NotGranted> {
        let mut gone = pin!(gone);
        loop {
            match self.driver.machine.poll_verdict() {
                Some(Verdict::Granted { nodes, czxid, proven }) => {
                    if let Some(granted) = self.granted(nodes, czxid, proven) {
                        // A holder waits for nobody. If there was no check in between, the last look's watch still
                        // exists.
                        self.driver.stop_watching();
                        // It lets others go on before its caller can do anything that depends on it.
                        self.driver.send_next().await;
                        return Ok(granted);
                    }
                }
                Some(Verdict::Failed(refusal)) => {
                    self.driver.send_next().await;
                    return Err(match refusal {
                        Refusal::Busy => NotGranted::Busy,
                        refusal => NotGranted::Failed(refused(&self.path, refusal, self.driver.loss())),
                    });
                }
                Some(Verdict::Wanted | Verdict::Deleted) | None => {}
            }
            tokio::select! {
                biased;
                () = &mut gone => return Err(NotGranted::Cancelled),
                stepped = self.step_if_possible() => if let Err(error) = stepped {
                    self.driver.machine.handle_end();
                    return Err(NotGranted::Failed(error));
                }
            }
        }
    }

    /// Serves another caller from now on.
    pub(crate) fn serve(&mut self, progress: Arc<Progress>) {
        progress.set_behind_others(self.driver.machine.is_waiting());
        self.progress = progress;
    }

    /// Sends its first requests, if there is a session, without waiting for anything.
    pub(crate) fn set_out(&mut self) {
        // Whatever waits for the future later polls it again, and is then woken.
        let mut context = Context::from_waker(Waker::noop());
        if pin!(self.driver.begin()).poll(&mut context).is_ready() {
            let _ = pin!(self.driver.send_next()).poll(&mut context);
        }
    }

    /// Asks to be told when others wait for what is held, or kept for the next caller.
    pub(crate) fn ask_for_notice(&mut self) {
        self.driver.machine.handle_notice();
    }

    /// Begins to leave. When this returns, the deletion of its node is on its way, unless a reply has to come first. So
    /// an attempt that begins after it in the same session does not end up behind it.
    pub(crate) async fn withdraw(&mut self) {
        self.driver.machine.handle_end();
        self.driver.send_next().await;
    }

    /// Runs the attempt until its node is gone.
    pub(crate) async fn leave(&mut self, holding: Option<&Arc<Holding>>) {
        self.progress.owe();
        self.driver.machine.handle_end();
        self.driver.stop_watching();
        while !self.driver.machine.is_gone() && self.step().await.is_ok() {
            if let (Some(holding), Some(Outcome::Refused(_))) = (holding, &self.first_delete) {
                holding.refuse();
            }
        }
        // If the deletion was confirmed, the end of the session does not matter any more.
        if let Some(session) = self.driver.session().filter(|_| self.first_delete != Some(Outcome::Done)) {
            session.gone().await;
        }
        self.progress.settle();
        if let Some(holding) = holding {
            self.close(holding);
        }
    }

    /// Notes that the caller has found the lock busy before.
    pub(crate) fn tried_before(&mut self) {
        self.driver.machine.handle_tried_before();
    }

    /// Returns, after it has left, what may be remembered of a lock that was busy.
    pub(crate) fn busy(&mut self) -> Option<Busy> {
        let since = self.driver.machine.busy_since()?;
        let watch = self.driver.take_watch()?;
        Some(Busy { session: self.driver.session()?.id(), since, watch })
    }

    /// Runs until the hold ends. Meanwhile it runs `beside`, which never ends by itself, and calls `wanted` if others
    /// wait and somebody has asked to know that.
    pub(crate) async fn stay(
        &mut self,
        holding: &Arc<Holding>,
        mut beside: Pending<Infallible>,
        wanted: impl Fn(),
    ) {
        let Some(session) = self.driver.session().cloned() else { return };
        let mut guard = pin!(guard::stranger(session.clone(), self.claims.clone(), holding.clone()));
        let mut told = holding.watch();
        loop {
            let Told { status, notice, .. } = *told.borrow_and_update();
            if self.driver.machine.is_gone() || status != Status::Held {
                return;
            }
            if notice == Notice::Asked {
                self.driver.machine.handle_notice();
            }
            match self.driver.machine.poll_verdict() {
                Some(Verdict::Wanted) => {
                    wanted();
                    continue;
                }
                Some(Verdict::Deleted) => session.lose(holding, LossReason::NodeDeleted),
                _ => {}
            }
            tokio::select! {
                _ = told.changed() => {}
                never = &mut beside => match never {},
                name = &mut guard => {
                    tracing::warn!(path = &*self.path, name, "a contender that cannot see the hold has come");
                    session.lose(holding, LossReason::ForeignContender);
                }
                // An error means that the client is gone, so there is no session, and the hold has been marked as lost.
                stepped = self.step() => if stepped.is_err() { return }
            }
        }
    }

    /// Waits, if the hold was lost, until nobody relies on it any more. The caller may have asked for how long the lock is
    /// certain to be held, just before the loss. That answer stays true to its end, unless the caller lets go of the lock.
    pub(crate) async fn keep_promise(&mut self, holding: &Arc<Holding>) {
        // Of a deleted node nothing is left that would be deleted too soon.
        let is_kept = match holding.status() {
            Status::Lost(LossReason::NodeDeleted) => holding.nodes.len() > 1,
            Status::Lost(_) => true,
            _ => false,
        };
        let Some(session) = self.driver.session().filter(|_| is_kept) else { return };
        let mut told = holding.watch();
        let mut link = session.link();
        tokio::select! {
            () = session.keep_promises() => {}
            // They cannot fail: the senders are the hold's and the session's.
            () = told.wait_for(|told| told.is_let_go).map(drop) => {}
            () = link.wait_for(|link| matches!(link, Link::Over(_))).map(drop) => {}
        }
    }

    /// Like [`step`](Self::step), but refuses to queue for something that its servers cannot do.
    async fn step_if_possible(&mut self) -> Result<(), Error> {
        self.driver.begin().await?;
        let is_old = self.driver.session().is_some_and(|session| !session.creates_in_transactions());
        if is_old && self.claims.iter().flat_map(|claim| &claim.permits).any(|permits| permits.count > 1) {
            return Err(Error::new(
                ErrorKind::Refused,
                format!("{}: {}", self.path, Newer::Permits.refusal()),
            ));
        }
        self.step().await
    }

    /// Waits for the next event for the attempt. It may be dropped at any moment.
    async fn step(&mut self) -> Result<(), Error> {
        let (held, first_delete) = (&self.held, &mut self.first_delete);
        let (claims, path, progress) = (&*self.claims, &*self.path, &self.progress);
        let hear = |flight: &[Operation], outcomes: &mut [Outcome]| {
            let ahead = entry::ahead(claims, flight, outcomes);
            ahead.iter().for_each(|ahead| progress.counters().count_entry(*ahead));
            // It may wait for permits even if nobody is ahead.
            let may_wait = |ahead| ahead > 0 || claims.iter().any(|claim| claim.permits.is_some());
            if ahead.is_some_and(may_wait) {
                progress.set_nodes(entry::created(outcomes));
            }
            entry::log(path, ahead, flight, outcomes, !held.is_empty());
            if first_delete.is_none() {
                let counts = |operation: &Operation, outcome: &Outcome| {
                    // A place in a queue that may not be deleted ends the hold too.
                    deletes(operation, held) || is_refused_deletion(operation, outcome)
                };
                let of_hold =
                    flight.iter().zip(&*outcomes).filter(|(operation, outcome)| counts(operation, outcome));
                *first_delete = of_hold.map(|(_, outcome)| outcome).max_by_key(|it| severity(it)).cloned();
            }
        };
        self.driver.step(hear).await?;
        self.progress.set_behind_others(self.driver.machine.is_waiting());
        Ok(())
    }

    /// Records how the hold ended, now that its node is gone.
    fn close(&self, holding: &Holding) {
        holding.end(self.first_delete.as_ref(), self.driver.loss());
    }

    fn granted(&mut self, nodes: Vec<String>, czxid: i64, proven: Moment) -> Option<Granted> {
        let session = self.driver.session()?.clone();
        self.held = nodes.into_iter().map(Arc::from).collect();
        // An earlier refusal, in another session, did not concern this hold.
        self.first_delete = None;
        let name_is_reused = self.claims.iter().any(|claim| !claim.has_queue());
        let holding = session.register(self.held.clone(), name_is_reused.then_some(czxid), proven);
        let (path, token) = (self.path.clone(), Token::of(czxid));
        let (progress, slot) = (self.progress.clone(), self.slot.clone());
        Some(Granted { session, holding, path, token, progress, slot })
    }
}

/// Returns the directories of its nodes.
fn directories(claim: &Claim) -> impl Iterator<Item = Arc<str>> {
    let permits = claim.permits.as_ref().map(|permits| permits.directory.clone());
    std::iter::once(claim.directory.clone()).chain(permits)
}

/// Whether it deletes a node that the hold depends on. The companion of an exclusive lock's node is deleted alone only if
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

fn is_refused_deletion(operation: &Operation, outcome: &Outcome) -> bool {
    operation.is_deletion() && matches!(outcome, Outcome::Refused(_))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock;
    use crate::machine::name::Scheme;
    use crate::session::fake::FakeEnsemble;
    use crate::session::slot::SlotState;
    use std::future::pending;
    use std::time::Duration;

    /// Trying again and again without ever waiting would starve the task that can report it.
    #[test]
    fn a_session_that_an_answer_calls_over_is_not_tried_again() {
        let (done, finished) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            runtime.block_on(async {
                let ensemble = FakeEnsemble::new();
                let session = ensemble.session();
                ensemble.end_session();
                let slot = Arc::new(Slot::new(SlotState::Open(session.clone())));
                let progress = Progress::new(&Arc::default());
                let claims = vec![Claim::new("/a", Scheme::Mutex)];
                let mut acquisition = Acquisition::new(claims, Patience::Waits, "/a".into(), progress, slot);
                let waits = clock::timeout(Duration::from_millis(20), acquisition.enter(pending()));
                assert!(waits.await.is_err());
                assert!(session.is_over());
                acquisition.leave(None).await;
            });
            done.send(()).unwrap();
        });
        finished.recv_timeout(Duration::from_secs(10)).unwrap();
    }
}
