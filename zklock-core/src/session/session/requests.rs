//! The requests of a session, each on the connection that there is.

use super::Session;
use crate::base::clock;
use crate::base::error::LossReason;
use crate::base::failure::Failure;
use crate::machine::Moment;
use crate::machine::protocol::{Operation, Outcome, WatchEvent};
use crate::machine::times;
use crate::session::lateness::{Answered, Lateness};
use crate::zookeeper::ensemble::{
    Child, Deletion, Ensemble, Landing, NodeData, NodeVersion, Pending, Versions, Watched, WatchedQueues,
    Write, either,
};
use std::pin::{Pin, pin};
use std::sync::Arc;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::unconstrained;

/// A request to the ensemble. Boxed, because otherwise it would be compiled again for each caller.
type Question<'a, T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send + 'a>>;

/// How many flights may be without a reply. Thousands of waiters send theirs at one moment, after a reconnect. The heartbeat
/// must not be behind all of them, and is not counted.
pub(super) const FLIGHTS_AT_MOST: usize = 512;
/// How many holders may look for strangers at a time. What users wait for should not be behind them.
pub(super) const STRANGER_LOOKS_AT_MOST: usize = 64;

impl Session {
    pub(crate) fn send(self: Arc<Self>, flight: Vec<Operation>) -> Pending<Landing> {
        Box::pin(self.sent(flight))
    }

    async fn sent(self: Arc<Self>, flight: Vec<Operation>) -> Landing {
        let writes: Vec<bool> = flight.iter().map(Operation::is_quorum_write).collect();
        let deletions: Vec<bool> = flight.iter().map(Operation::is_deletion).collect();
        let seeing = self.seeing(&flight);
        let over = Landing { sent: clock::now(), outcomes: vec![Outcome::SessionOver], watch: None };
        let turn = turn(&self.flights).await;
        let landing = self.unless_over(over, |ensemble| ensemble.send(flight));
        let mut landing =
            if deletions.contains(&false) { self.with_beats(landing).await } else { landing.await };
        drop(turn);
        let is_done = |outcome: &Outcome| matches!(outcome, Outcome::Created(_) | Outcome::Done);
        if landing.outcomes.contains(&Outcome::SessionOver) {
            self.end(LossReason::SessionExpired);
        } else if !landing.outcomes.contains(&Outcome::Unknown) {
            self.note_answer(landing.sent);
        }
        if landing.outcomes.iter().zip(&writes).any(|(outcome, write)| *write && is_done(outcome)) {
            self.lock().keeper.handle_write(landing.sent, clock::now());
        }
        self.see_refusals(&deletions, &mut landing.outcomes);
        self.see_flight(&seeing, &landing.outcomes);
        landing
    }

    /// Waits for the landing of an attempt's flight. If it is late, the session beats meanwhile, because the attempt will need
    /// a lease, and its own writes are one after the other. If not, this sends nothing, and wakes nobody.
    async fn with_beats(&self, landing: impl Future<Output = Landing>) -> Landing {
        let sent = clock::now();
        let mut landing = pin!(landing);
        if let Ok(landing) = clock::timeout(times::CLOSE.of(self.timeout()), &mut landing).await {
            return landing;
        }
        self.lock().keeper.handle_awaiting(sent);
        self.registered.notify_one();
        let _awaiting = Awaiting(self);
        landing.await
    }

    /// Like [`send`](Self::send), for an attempt. If it watches a node of this session, it also learns of the node's end from
    /// here.
    pub(crate) fn send_for_attempt(self: &Arc<Self>, flight: Vec<Operation>) -> Pending<Landing> {
        let watched = flight.iter().find_map(|operation| match operation {
            Operation::Watch { path } => path.rsplit_once('/'),
            _ => None,
        });
        let is_alone = flight.len() == 1;
        let gone = watched.and_then(|(_, name)| self.attempts.end_of(name));
        let flight = self.clone().send(flight);
        match gone {
            Some(gone) => Box::pin(beside(flight, gone, is_alone)),
            None => flight,
        }
    }

    pub(crate) fn commit(&self, guards: Vec<Arc<str>>, writes: Vec<Write>) -> Question<'_, Versions> {
        Box::pin(async {
            // The wait is bounded, because somebody waits for the result, and without a server the session has no
            // end.
            if clock::timeout(self.patience(), self.connected()).await.is_err() {
                return Err(Failure::Unknown);
            }
            let deletes = |write: &&Write| matches!(write, Write::Delete { .. });
            let deleted: Vec<_> =
                writes.iter().filter(deletes).map(|write| write.path().to_owned()).collect();
            let seeing = self.seeing(&[]);
            let over = Err(Failure::SessionOver);
            let written = self.unless_over(over, |ensemble| ensemble.commit(guards, writes)).await;
            if written.is_ok() {
                deleted.iter().for_each(|path| self.see_deleted(&seeing, path));
            }
            written
        })
    }

    pub(crate) fn read(&self, path: Arc<str>) -> Question<'_, Option<NodeData>> {
        self.question(|ensemble| ensemble.read(path))
    }

    pub(crate) fn children(&self, directory: Arc<str>) -> Question<'_, Vec<Child>> {
        Box::pin(async move {
            let (seeing, asked) = (self.seeing(&[]), directory.clone());
            let children = self.question(|ensemble| ensemble.children(asked)).await?;
            let names: Vec<_> = children.iter().map(|child| child.name.clone()).collect();
            self.see(&seeing, &directory, &names);
            Ok(children)
        })
    }

    pub(crate) fn shown(&self, directory: Arc<str>, name: String) -> Question<'_, Option<Child>> {
        self.question(|ensemble| ensemble.shown(directory, name))
    }

    pub(crate) fn look(&self, path: Arc<str>) -> Question<'_, Option<NodeVersion>> {
        self.question(|ensemble| ensemble.look(path))
    }

    /// Deletes a node of any session. If that is not allowed, this session goes on.
    pub(crate) fn delete(&self, path: Arc<str>, version: Option<i32>) -> Question<'_, Deletion> {
        Box::pin(async move {
            let (seeing, asked) = (self.seeing(&[]), path.clone());
            let deletion = self.question(move |ensemble| ensemble.delete(asked, version)).await?;
            if deletion != Deletion::Changed {
                self.see_deleted(&seeing, &path);
            }
            Ok(deletion)
        })
    }

    pub(crate) fn child(&self, directory: Arc<str>, name: String) -> Question<'_, Option<Watched>> {
        self.question(|ensemble| ensemble.child(directory, name))
    }

    fn question<'a, T: Send + 'a>(
        &'a self,
        call: impl FnOnce(&dyn Ensemble) -> Pending<Result<T, Failure>> + Send + 'a,
    ) -> Question<'a, T> {
        Box::pin(self.unless_over(Err(Failure::SessionOver), call))
    }

    /// Lists the children of these directories, and watches them.
    pub(crate) async fn watch_queues(&self, directories: Vec<Arc<str>>) -> WatchedQueues {
        let _turn = turn(&self.stranger_looks).await;
        let (seeing, asked) = (self.seeing(&[]), directories.clone());
        let watched =
            self.unless_over(WatchedQueues::default(), |ensemble| ensemble.watch_queues(directories)).await;
        for (directory, children) in asked.iter().zip(&watched.children) {
            children.iter().for_each(|children| self.see(&seeing, directory, children));
        }
        watched
    }

    /// Notes that the servers have answered a request that was sent at `sent`.
    pub(crate) fn note_answer(&self, sent: Moment) {
        self.lock().answered = Some(Answered::now(sent));
    }

    /// Returns how late the servers answer; `None` if they answer soon, or not at all.
    pub(crate) fn lateness(&self) -> Option<Lateness> {
        let Answered { at, took } = self.lock().answered?;
        let timeout = self.timeout();
        let answers = self.is_connected() && clock::now().since(at) < self.patience();
        (answers && took >= times::CLOSE.of(timeout)).then_some(Lateness { took, timeout })
    }
}

/// An attempt that waits for a late answer. Dropping it ends that.
struct Awaiting<'a>(&'a Session);

impl Drop for Awaiting<'_> {
    fn drop(&mut self) {
        self.0.lock().keeper.handle_awaited();
    }
}

/// Runs a flight that watches a node. `gone` ends when that node is gone. Then the flight need not land if it does nothing
/// else (`is_alone`).
async fn beside(flight: Pending<Landing>, mut gone: Pending<WatchEvent>, is_alone: bool) -> Landing {
    let mut landing = tokio::select! {
        biased;
        _ = &mut gone, if is_alone => {
            return Landing { sent: clock::now(), outcomes: vec![Outcome::NoNode], watch: None };
        }
        landing = flight => landing,
    };
    landing.watch = landing.watch.map(|watch| either(gone, watch));
    landing
}

/// Waits until this is below its limit; `None` never happens. The first comes first. Unconstrained, because a flight that is
/// polled must be sent if it can be: tokio would have it wait if its task has done much.
async fn turn(limit: &Semaphore) -> Option<SemaphorePermit<'_>> {
    unconstrained(limit.acquire()).await.ok()
}
