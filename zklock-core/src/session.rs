//! One session, with its lease and the holds that stand on it.
//!
//! A hold never outlives its session. So loss is told here, in one place: by the end of the session,
//! by a check that misses a node, by a lease that lapsed.
//!
//! It outlives its connections. A request that gets no reply in time ends the one on which it was sent,
//! because nothing else would: a server may be alive and never answer.

mod healing;

use crate::ensemble::{
    Check, Child, Deletion, Ensemble, Landing, NodeData, Pending, ReadFailure, Seen, Versions, Watched,
    Write, WriteFailure,
};
use crate::error::LossReason;
use crate::locks::locked;
use crate::machine::Moment;
use crate::machine::exchange::{Now, Operation, Outcome};
use crate::machine::lease::{Lease, Share};
use crate::machine::marks::Marks;
use crate::platform;
pub(crate) use healing::{Looking, Marked};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// How a session is connected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Link {
    Connected,
    Disconnected,
    Over(LossReason),
}

/// How long a reply is waited for at least, however short the session.
const REPLY_AT_LEAST: Duration = Duration::from_secs(1);

pub(crate) struct Session {
    id: i64,
    link: watch::Sender<Link>,
    /// Its connection, the present one or the one before. Taken when the session is over, so that nothing keeps it.
    ensemble: Mutex<Option<Arc<dyn Ensemble>>>,
    lease: Mutex<Lease>,
    /// That of the lease, in milliseconds. A forked child may ask for it while nobody there will ever unlock that.
    timeout: AtomicU64,
    marks: Mutex<Marks>,
    /// The directories that attempts have left, the latest last.
    left: Mutex<VecDeque<Arc<str>>>,
    holdings: Mutex<Vec<Arc<Holding>>>,
    /// Wakes the heartbeat: a hold is there, or the lease has become shorter.
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
        let mut lease = Lease::new(timeout, asked);
        lease.attach(asked, timeout, platform::now());
        Arc::new(Self {
            id,
            link: watch::Sender::new(Link::Connected),
            ensemble: Mutex::new(Some(ensemble)),
            timeout: AtomicU64::new(in_millis(lease.timeout())),
            lease: Mutex::new(lease),
            marks: Mutex::new(Marks::new(platform::uuid().session())),
            left: Mutex::default(),
            holdings: Mutex::default(),
            enrolled: Notify::new(),
        })
    }

    pub(crate) fn id(&self) -> i64 {
        self.id
    }

    /// It may become shorter with a new connection.
    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout.load(Ordering::Relaxed))
    }

    pub(crate) fn heartbeat(&self) -> Duration {
        locked(&self.lease).heartbeat()
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

    /// Why it is over, if it is.
    pub(crate) fn loss(&self) -> Option<LossReason> {
        if let Link::Over(reason) = *self.link.borrow() { Some(reason) } else { None }
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(*self.link.borrow(), Link::Over(_))
    }

    pub(crate) fn now(&self) -> Now {
        // The lease first: time that passes in between makes it look shorter, never longer.
        let lease_until = locked(&self.lease).until();
        Now { moment: platform::now(), lease_until }
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

    pub(crate) async fn commit(
        &self,
        guards: Vec<Arc<str>>,
        writes: Vec<Write>,
    ) -> Result<Versions, WriteFailure> {
        // Somebody waits for the result, and without a server the session has no end.
        if tokio::time::timeout(self.patience(), self.connected()).await.is_err() {
            return Err(WriteFailure::Unknown);
        }
        self.unless_over(Err(WriteFailure::SessionOver), |ensemble| ensemble.commit(guards, writes)).await
    }

    pub(crate) async fn read(&self, path: Arc<str>) -> Result<Option<NodeData>, ReadFailure> {
        self.unless_over(Err(ReadFailure::SessionOver), |ensemble| ensemble.read(path)).await
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

    /// A server is about to be asked for the session, on another connection.
    pub(crate) fn ask(&self, asked: Moment) {
        locked(&self.lease).ask(asked);
        // The lease may be shorter now than the heartbeat knows.
        self.enrolled.notify_one();
    }

    /// The server has granted this timeout.
    pub(crate) fn granted(&self, asked: Moment, timeout: Duration) {
        let mut lease = locked(&self.lease);
        lease.attach(asked, timeout, platform::now());
        self.timeout.store(in_millis(lease.timeout()), Ordering::Relaxed);
        drop(lease);
        self.enrolled.notify_one();
    }

    /// There is another connection, on which the quorum has answered a write that was sent at `sent`.
    pub(crate) fn attach(&self, ensemble: Arc<dyn Ensemble>, sent: Moment) {
        locked(&self.lease).acknowledge(sent, platform::now());
        let mut present = locked(&self.ensemble);
        // When the session is over there is none.
        if let Some(present) = &mut *present {
            *present = ensemble;
            self.set_connected(true);
        }
    }

    /// How long to wait for a reply.
    fn patience(&self) -> Duration {
        (self.timeout() / 2).max(REPLY_AT_LEAST)
    }

    /// Ends a connection on which a reply does not come.
    fn give_up(&self, ensemble: &Weak<dyn Ensemble>) {
        tracing::info!(
            session = format_args!("{:#x}", self.id),
            "no reply comes: the connection is given up"
        );
        if let Some(ensemble) = ensemble.upgrade() {
            ensemble.give_up();
        }
    }

    /// Notes that the connection has ended, as soon as anything notices: until then requests would fail again and again.
    fn notice(&self, ensemble: &Weak<dyn Ensemble>) {
        let Some(ensemble) = ensemble.upgrade().filter(|ensemble| !ensemble.is_open()) else { return };
        // Locked to the end: another connection may just be attached, and nobody would say so again.
        let present = locked(&self.ensemble);
        if present.as_ref().is_some_and(|present| Arc::ptr_eq(present, &ensemble)) {
            self.set_connected(false);
        }
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
    /// result is there. If there is none in time, the connection is given up, and the result is that nothing is known.
    async fn unless_over<T>(&self, over: T, call: impl FnOnce(&dyn Ensemble) -> Pending<T>) -> T {
        self.connected().await;
        let mut link = self.link();
        let Some(ensemble) = locked(&self.ensemble).clone() else { return over };
        let mut pending = call(&*ensemble);
        // What is under way keeps the connection, but not while it waits for the session's end.
        let weak = Arc::downgrade(&ensemble);
        drop(ensemble);
        let replied = tokio::select! {
            biased;
            result = &mut pending => Some(result),
            _ = link.wait_for(|link| matches!(link, Link::Over(_))) => return over,
            () = tokio::time::sleep(self.patience()) => None,
        };
        let result = match replied {
            Some(result) => result,
            None => {
                self.give_up(&weak);
                pending.await
            }
        };
        self.notice(&weak);
        result
    }
}

fn in_millis(timeout: Duration) -> u64 {
    u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)
}

impl Holding {
    pub(crate) fn status(&self) -> Status {
        *self.status.borrow()
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Status> {
        self.status.subscribe()
    }

    /// Whether the name of its node may be that of another's, once it has been deleted.
    pub(crate) fn name_is_reused(&self) -> bool {
        self.origin.is_some()
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
