//! One session, with its lease and the holds that depend on it.
//!
//! A hold never outlives its session. So every loss is reported in one place, whether the session ended, a check missed a node,
//! or a lease lapsed.
//!
//! Here are the lease and the end of the session. Its other jobs have a file each: `link` is its connection, `requests` sends,
//! `answers` sees what answers show besides, `orphans` deletes what nobody knows, and `holds` looks after its holds.

mod answers;
mod holding;
mod holds;
mod link;
mod orphans;
mod requests;

use crate::base::clock;
use crate::base::error::LossReason;
use crate::base::stats::Counters;
use crate::base::sync::{Mutex, MutexGuard, lock_ignoring_poison, replace_if};
use crate::machine::keeper::{HoldId, Keeper};
use crate::machine::lasting::Lasting;
use crate::machine::lease::Lease;
use crate::machine::protocol::Now;
use crate::session::attempt_marks::AttemptMarks;
use crate::session::lateness::Answered;
use crate::session::nodes::SessionNodes;
use crate::session::session_key::SessionKey;
use crate::zookeeper::ensemble::Ensemble;
pub(crate) use holding::{Holding, HoldingState, Notice};
pub(crate) use holds::Looked;
pub(crate) use link::Link;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, watch};

pub(crate) struct Session {
    id: i64,
    link: watch::Sender<Link>,
    /// Its current connection, or the last one. It is removed when the session is over, so that nothing keeps the
    /// connection.
    ///
    /// It has a mutex of its own, because it stays locked while the link changes, and that wakes others.
    ensemble: Mutex<Option<Arc<dyn Ensemble>>>,
    state: Mutex<State>,
    /// The lease's timeout, in milliseconds. It is an atomic because a forked child may ask for it, where a locked
    /// mutex would never be unlocked.
    timeout: AtomicU64,
    attempts: AttemptMarks,
    flights: Semaphore,
    stranger_looks: Semaphore,
    /// Wakes the heartbeat when there is a new hold, the lease has become shorter, or an attempt's answer is late.
    registered: Notify,
    /// Why one of its nodes could not be deleted, so that the session was closed.
    undeletable: OnceLock<Arc<str>>,
    /// The identity of the ensemble, once somebody has asked for it.
    pub(crate) ensemble_id: OnceLock<Arc<str>>,
    nodes: watch::Sender<SessionNodes>,
    counters: Arc<Counters>,
}

struct State {
    keeper: Keeper,
    /// What the keeper proves. Weak, because each keeps its session.
    holdings: BTreeMap<HoldId, Weak<Holding>>,
    /// The children that are known to be no contenders.
    lasting: Arc<Lasting>,
    /// The latest answer of the servers.
    answered: Option<Answered>,
    /// Why the last try to attach a connection failed.
    trouble: Option<String>,
}

impl Session {
    pub(crate) fn new(
        ensemble: Arc<dyn Ensemble>,
        id: i64,
        keeper: Keeper,
        counters: Arc<Counters>,
    ) -> Arc<Self> {
        Arc::new(Self {
            id,
            link: watch::Sender::new(Link::Connected),
            ensemble: Mutex::new(Some(ensemble)),
            timeout: AtomicU64::new(in_millis(keeper.lease().timeout())),
            state: Mutex::new(State {
                keeper,
                holdings: BTreeMap::new(),
                lasting: Arc::default(),
                answered: None,
                trouble: None,
            }),
            attempts: AttemptMarks::new(),
            flights: Semaphore::new(requests::FLIGHTS_AT_MOST),
            stranger_looks: Semaphore::new(requests::STRANGER_LOOKS_AT_MOST),
            registered: Notify::new(),
            undeletable: OnceLock::new(),
            ensemble_id: OnceLock::new(),
            nodes: watch::Sender::new(SessionNodes::Live),
            counters,
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock_ignoring_poison(&self.state)
    }

    pub(crate) fn id(&self) -> i64 {
        self.id
    }

    /// Returns its client's counters.
    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns the session timeout. It may shrink with a new connection.
    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout.load(Ordering::Relaxed))
    }

    /// Returns the key with which another process can end it; `None` if that cannot be had.
    pub(crate) async fn key(&self) -> Option<SessionKey> {
        let asked = lock_ignoring_poison(&self.ensemble).as_ref()?.password();
        Some(SessionKey::new(self.id, self.timeout(), asked.await?))
    }

    pub(crate) fn heartbeat(&self) -> Duration {
        self.lock().keeper.lease().heartbeat()
    }

    pub(crate) fn now(&self) -> Now {
        let state = self.lock();
        let late = state.answered.map_or(Duration::ZERO, |answered| answered.took);
        let lease_until = state.keeper.lease_to_grant(late, clock::now());
        // The time is read last, so that what passes in between makes the lease look shorter, never longer.
        Now { moment: clock::now(), lease_until }
    }

    /// Returns the lease as it is at this moment.
    pub(crate) fn lease(&self) -> Lease {
        self.lock().keeper.lease().clone()
    }

    /// Waits until no answer about a hold that was lost meanwhile reaches any further.
    pub(crate) async fn keep_promises(&self) {
        let promised = self.lock().keeper.promised();
        clock::sleep(promised.since(clock::now())).await;
    }

    /// Returns why it is over; `None` if it is not.
    pub(crate) fn loss(&self) -> Option<LossReason> {
        if let Link::Over(reason) = *self.link.borrow() { Some(reason) } else { None }
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(*self.link.borrow(), Link::Over(_))
    }

    /// Ends the session. Its holds are lost, and everything that works in it learns that. Only the first reason counts.
    ///
    /// Whatever notices the end first calls this. If that were left to the library, the session would seem open until then,
    /// and would be tried again and again. Only the servers can say that it has expired.
    pub(crate) fn end(&self, reason: LossReason) {
        let nodes =
            if reason == LossReason::SessionExpired { SessionNodes::Gone } else { SessionNodes::Live };
        self.end_with(reason, nodes);
    }

    /// Ends it without the servers' word, because it can get no connection any more.
    pub(crate) fn abandon_nodes(&self) {
        self.end_with(LossReason::SessionExpired, SessionNodes::Abandoned);
    }

    fn end_with(&self, reason: LossReason, nodes: SessionNodes) {
        replace_if(&self.link, Link::Over(reason), |link| {
            let is_first = !matches!(link, Link::Over(_));
            if is_first {
                // Set before anybody can see that it is over.
                self.nodes.send_replace(nodes);
            }
            is_first
        });
        // Only now, because a caller that finds no connection takes that for the end, and must not be the first to report
        // it. When its last handle is dropped, the library closes the session, and the servers give its locks to others. By
        // then its holds must have been marked as lost.
        let ensemble = lock_ignoring_poison(&self.ensemble).take();
        // Another call may have been first.
        if let Some(reason) = self.loss() {
            self.tell(|state| state.keeper.handle_over(reason));
        }
        drop(ensemble);
    }

    /// Records what happened to its nodes when it was closed.
    pub(crate) fn set_nodes(&self, nodes: SessionNodes) {
        replace_if(&self.nodes, nodes, |known| *known == SessionNodes::Live);
    }

    /// Whether its nodes are known to be gone.
    pub(crate) fn nodes_are_gone(&self) -> bool {
        *self.nodes.borrow() == SessionNodes::Gone
    }

    /// If it was closed to get rid of its nodes, waits until they are gone, or it is certain that nobody will hear of it.
    /// Returns whether they are known to be gone.
    pub(crate) async fn gone(&self) -> bool {
        if self.loss() == Some(LossReason::SessionClosed) || self.undeletable().is_some() {
            // It cannot fail: the sender is ours.
            let _ = self.nodes.subscribe().wait_for(|nodes| *nodes != SessionNodes::Live).await;
        }
        self.nodes_are_gone()
    }
}

fn in_millis(timeout: Duration) -> u64 {
    u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
