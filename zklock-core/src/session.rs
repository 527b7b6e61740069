//! One session, with its lease and the holds that stand on it.
//!
//! A hold never outlives its session. So loss is told here, in one place: by the end of the session,
//! by a check that misses a node, by a lease that lapsed.

use crate::ensemble::{
    Check, Child, Deletion, Ensemble, Landing, Pending, ReadFailure, Seen, Watched, Write, WriteFailure,
};
use crate::error::LossReason;
use crate::locks::locked;
use crate::machine::Moment;
use crate::machine::exchange::{Now, Operation, Outcome};
use crate::machine::lease::{Lease, Share};
use crate::machine::marks::Marks;
use crate::machine::name::Uuid;
use crate::platform;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// How a session is connected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Link {
    Connected,
    Disconnected,
    Over(LossReason),
}

pub(crate) struct Session {
    id: i64,
    heartbeat: Duration,
    timeout: Duration,
    link: watch::Sender<Link>,
    /// Taken when the session is over, so that nothing keeps its connection.
    ensemble: Mutex<Option<Arc<dyn Ensemble>>>,
    lease: Mutex<Lease>,
    marks: Mutex<Marks>,
    holdings: Mutex<Vec<Arc<Holding>>>,
    /// Wakes the heartbeat when a first hold is there.
    enrolled: Notify,
}

/// What a session keeps of one hold.
pub(crate) struct Holding {
    /// The paths of the nodes that stand for it: with one of them gone it is lost.
    pub(crate) nodes: Vec<Arc<str>>,
    /// The transaction that created the node, if one of that name may be another's.
    origin: Option<i64>,
    status: watch::Sender<Status>,
    proof: Mutex<Proof>,
}

#[derive(Clone)]
struct Proof {
    share: Share,
    /// When the latest write was sent that proved the nodes.
    sent: Moment,
}

/// What became of a hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Status {
    Held,
    /// Its node is being deleted.
    Releasing,
    /// The ensemble refuses to delete its node.
    Stuck,
    Released,
    Lost(LossReason),
}

impl Session {
    pub(crate) fn new(ensemble: Arc<dyn Ensemble>, id: i64, timeout: Duration, asked: Moment) -> Arc<Self> {
        let lease = Lease::new(timeout, asked);
        Arc::new(Self {
            id,
            heartbeat: lease.heartbeat(),
            timeout,
            link: watch::Sender::new(Link::Connected),
            ensemble: Mutex::new(Some(ensemble)),
            lease: Mutex::new(lease),
            marks: Mutex::new(Marks::new(platform::uuid().session())),
            holdings: Mutex::default(),
            enrolled: Notify::new(),
        })
    }

    pub(crate) fn id(&self) -> i64 {
        self.id
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    pub(crate) fn heartbeat(&self) -> Duration {
        self.heartbeat
    }

    /// How long after one proof of the holds' nodes to ask for the next.
    pub(crate) fn beat(&self) -> Duration {
        locked(&self.lease).beat(platform::now())
    }

    pub(crate) fn link(&self) -> watch::Receiver<Link> {
        self.link.subscribe()
    }

    pub(crate) fn is_connected(&self) -> bool {
        *self.link.borrow() == Link::Connected
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(*self.link.borrow(), Link::Over(_))
    }

    pub(crate) fn now(&self) -> Now {
        // The lease first: time that passes in between makes it look shorter, never longer.
        let lease_until = locked(&self.lease).until();
        Now { moment: platform::now(), lease_until }
    }

    /// The marks of a new attempt, until the result is dropped.
    pub(crate) fn begin_attempt(self: &Arc<Self>) -> Marked {
        let mark = locked(&self.marks).begin();
        Marked { session: self.clone(), mark }
    }

    /// Deletes the children that this session has created and that none of its attempts knows: the ensemble has lost
    /// their deletion. Nobody waits for it: whoever lists them the next time tries again.
    pub(crate) fn heal(self: &Arc<Self>, directory: &str, children: &[String]) {
        let path_of = |name: &String| Operation::Delete { path: format!("{directory}/{name}") };
        let orphans: Vec<_> = locked(&self.marks).orphans(children).map(path_of).collect();
        if !orphans.is_empty() {
            tracing::warn!(?orphans, "nodes of this session that no attempt knows are deleted");
            tokio::spawn(self.clone().send(orphans));
        }
    }

    pub(crate) async fn send(self: Arc<Self>, flight: Vec<Operation>) -> Landing {
        let writes: Vec<bool> = flight.iter().map(Operation::is_quorum_write).collect();
        let over = Landing { sent: platform::now(), outcomes: vec![Outcome::SessionOver], watch: None };
        let landing = self.unless_over(over, |ensemble| ensemble.send(flight)).await;
        let written = |(outcome, write): (&Outcome, &bool)| {
            *write && matches!(outcome, Outcome::Created(_) | Outcome::Done)
        };
        if landing.outcomes.contains(&Outcome::SessionOver) {
            self.end(LossReason::SessionExpired);
        }
        if landing.outcomes.iter().zip(&writes).any(written) {
            locked(&self.lease).acknowledge(landing.sent, platform::now());
        }
        landing
    }

    /// Checks the nodes of these holds, and tells those whose node is gone.
    pub(crate) async fn prove(self: Arc<Self>, holdings: Vec<Arc<Holding>>) -> Check {
        let of = |holding: &Arc<Holding>| {
            let origin = holding.origin;
            holding.nodes.iter().map(move |node| (node.clone(), origin)).collect::<Vec<_>>()
        };
        let nodes = holdings.iter().flat_map(of).collect();
        let owners: Vec<_> =
            holdings.iter().flat_map(|holding| holding.nodes.iter().map(move |_| holding)).collect();
        let valid: Vec<bool> = holdings.iter().map(|holding| !self.valid_for(holding).is_zero()).collect();
        let sent = platform::now();
        let check = self.unless_over(Check::SessionOver, |ensemble| ensemble.check(nodes)).await;
        match &check {
            Check::Answered { missing } => {
                for holding in missing.iter().filter_map(|index| owners.get(*index)) {
                    self.lose(holding, LossReason::NodeDeleted);
                }
                // A check that found nothing but missing nodes proves nothing.
                if missing.len() < owners.len() {
                    self.renew(&holdings, &valid, sent);
                }
            }
            Check::SessionOver => self.end(LossReason::SessionExpired),
            Check::Unknown => {}
        }
        check
    }

    fn renew(&self, holdings: &[Arc<Holding>], valid: &[bool], sent: Moment) {
        let mut lease = locked(&self.lease);
        lease.acknowledge(sent, platform::now());
        for (holding, was_valid) in holdings.iter().zip(valid) {
            let mut proof = locked(&holding.proof);
            proof.share.checked(&lease, *was_valid);
            proof.sent = proof.sent.max(sent);
        }
    }

    pub(crate) async fn commit(&self, guards: Vec<Arc<str>>, writes: Vec<Write>) -> Result<(), WriteFailure> {
        self.unless_over(Err(WriteFailure::SessionOver), |ensemble| ensemble.commit(guards, writes)).await
    }

    pub(crate) async fn children(&self, directory: Arc<str>) -> Result<Vec<Child>, ReadFailure> {
        self.unless_over(Err(ReadFailure::SessionOver), |ensemble| ensemble.children(directory)).await
    }

    pub(crate) async fn look(&self, path: Arc<str>) -> Result<Option<Seen>, ReadFailure> {
        self.unless_over(Err(ReadFailure::SessionOver), |ensemble| ensemble.look(path)).await
    }

    pub(crate) async fn delete(&self, path: Arc<str>, version: i32) -> Result<Deletion, ReadFailure> {
        self.unless_over(Err(ReadFailure::SessionOver), |ensemble| ensemble.delete(path, version)).await
    }

    pub(crate) async fn child(
        &self,
        directory: Arc<str>,
        name: String,
    ) -> Result<Option<Watched>, ReadFailure> {
        self.unless_over(Err(ReadFailure::SessionOver), |ensemble| ensemble.child(directory, name)).await
    }

    /// Takes a new hold under the heartbeat.
    pub(crate) fn enrol(&self, nodes: Vec<Arc<str>>, origin: Option<i64>, sent: Moment) -> Arc<Holding> {
        let proof = Proof { share: Share::new(&locked(&self.lease)), sent };
        let status = watch::Sender::new(Status::Held);
        let holding = Arc::new(Holding { nodes, origin, status, proof: Mutex::new(proof) });
        locked(&self.holdings).push(holding.clone());
        // The session may have ended just before the hold was on the list.
        let link = *self.link.borrow();
        if let Link::Over(reason) = link {
            self.lose(&holding, reason);
        }
        self.enrolled.notify_one();
        holding
    }

    /// The holds that stand on this session, oldest first.
    pub(crate) fn holdings(&self) -> Vec<Arc<Holding>> {
        locked(&self.holdings).clone()
    }

    pub(crate) async fn enrolled(&self) {
        self.enrolled.notified().await;
    }

    /// For how long the hold can be relied upon.
    pub(crate) fn valid_for(&self, holding: &Holding) -> Duration {
        if holding.status() != Status::Held || self.is_over() {
            return Duration::ZERO;
        }
        let lease = locked(&self.lease);
        locked(&holding.proof).share.valid_for(&lease, platform::now())
    }

    /// The end of the lease, for whoever wants to be there.
    pub(crate) fn lease_until(&self) -> Moment {
        locked(&self.lease).until()
    }

    pub(crate) fn lose(&self, holding: &Arc<Holding>, reason: LossReason) {
        self.strike(holding);
        if holding.turn(Status::Held, Status::Lost(reason)) {
            tracing::warn!(node = holding.node(), %reason, "hold lost");
        }
    }

    /// Takes a hold from under the heartbeat.
    pub(crate) fn strike(&self, holding: &Arc<Holding>) {
        locked(&self.holdings).retain(|other| !Arc::ptr_eq(other, holding));
    }

    pub(crate) fn set_connected(&self, connected: bool) {
        let link = if connected { Link::Connected } else { Link::Disconnected };
        self.link.send_if_modified(|old| {
            let changes = !matches!(old, Link::Over(_)) && *old != link;
            if changes {
                *old = link;
            }
            changes
        });
    }

    /// The session is over: its holds are lost, and whoever works with it is told. Only the first
    /// reason counts.
    ///
    /// Whoever hears of it first says so: until the library does, the session would seem to be open,
    /// and would be tried again and again.
    pub(crate) fn end(&self, reason: LossReason) {
        // With its last handle the library closes the session, and the servers give its locks to
        // others. By then its holds must have been told.
        let ensemble = locked(&self.ensemble).take();
        self.link.send_if_modified(|link| {
            let is_first = !matches!(link, Link::Over(_));
            if is_first {
                *link = Link::Over(reason);
            }
            is_first
        });
        for holding in self.holdings() {
            self.lose(&holding, reason);
        }
        drop(ensemble);
    }

    /// Waits for a connection, or the end of the session.
    pub(crate) async fn connected(&self) {
        // It cannot fail: the sender is ours.
        let _ = self.link().wait_for(|link| *link != Link::Disconnected).await;
    }

    /// Does `call` as soon as there is a connection, and gives `over` if the session ends before its
    /// result is there.
    async fn unless_over<T>(&self, over: T, call: impl FnOnce(&dyn Ensemble) -> Pending<T>) -> T {
        // What is sent without one would wait without limit, and run even if nobody wants it any more.
        self.connected().await;
        let mut link = self.link();
        let Some(ensemble) = locked(&self.ensemble).clone() else { return over };
        let pending = call(&*ensemble);
        // The request keeps the library alive, but not while it waits for the session's end.
        drop(ensemble);
        tokio::select! {
            biased;
            result = pending => result,
            _ = link.wait_for(|link| matches!(link, Link::Over(_))) => over,
        }
    }
}

/// The marks of an attempt in its session.
pub(crate) struct Marked {
    session: Arc<Session>,
    mark: Uuid,
}

impl Marked {
    pub(crate) fn mark(&self) -> Uuid {
        self.mark
    }

    /// The attempt goes on with another of its marks.
    pub(crate) fn renew(&mut self, mark: Uuid) {
        if mark != self.mark {
            self.mark = mark;
            locked(&self.session.marks).renew(mark);
        }
    }
}

impl Drop for Marked {
    fn drop(&mut self) {
        locked(&self.session.marks).end(self.mark);
    }
}

impl Holding {
    pub(crate) fn status(&self) -> Status {
        *self.status.borrow()
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Status> {
        self.status.subscribe()
    }

    /// Whether the name of its node is its own.
    pub(crate) fn has_a_name_of_its_own(&self) -> bool {
        self.origin.is_none()
    }

    /// The path of the first of its nodes.
    pub(crate) fn node(&self) -> &str {
        self.nodes.first().map_or("", |node| node)
    }

    /// When the latest write was sent that proved the nodes.
    pub(crate) fn proven(&self) -> Moment {
        locked(&self.proof).sent
    }

    /// Turns one status into another; `false` if it is not that one any more.
    pub(crate) fn turn(&self, from: Status, to: Status) -> bool {
        self.status.send_if_modified(|status| {
            let turns = *status == from;
            if turns {
                *status = to;
            }
            turns
        })
    }
}
