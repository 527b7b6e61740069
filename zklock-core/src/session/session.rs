//! One session, with its lease and the holds that depend on it.
//!
//! A hold never outlives its session. So every loss is reported here, in one place, whether the session ended, a
//! check missed a node, or a lease lapsed.
//!
//! A session outlives its connections. A request that gets no reply in time ends the connection it was sent on,
//! because nothing else would: a server may be alive and never answer.

mod beating;
mod ending;
mod healing;
mod holding;
mod late;
mod neighbours;
mod seeing;
mod undeletable;

use crate::base::clock;
use crate::base::error::LossReason;
use crate::base::platform;
use crate::base::stats::Counters;
use crate::base::sync::lock_ignoring_poison;
use crate::machine::Moment;
use crate::machine::keeper::{HoldId, Keeper};
use crate::machine::lasting::Lasting;
use crate::machine::marks::Marks;
use crate::machine::memory::Memory;
use crate::machine::protocol::{Now, Operation, Outcome};
pub(crate) use crate::machine::status::Status;
use crate::session::session_key::SessionKey;
use crate::zookeeper::ensemble::{
    Child, Deletion, Ensemble, HeldNode, Landing, NodeData, Pending, ReadFailure, Seen, Versions, Watched,
    Write, WriteFailure,
};
pub(crate) use beating::Looked;
pub(crate) use ending::Nodes;
pub(crate) use healing::{Looking, Marked};
pub(crate) use holding::{Holding, Notice, Told};
use late::Answered;
use neighbours::Followers;
use seeing::deleted_by;
use std::collections::{BTreeMap, VecDeque};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, SemaphorePermit, watch};
use tokio::task::unconstrained;

/// The connection state of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Link {
    Connected,
    Disconnected,
    Over(LossReason),
}

/// A request to the ensemble. Boxed, because otherwise it would be compiled again for each caller.
type Request<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
type Question<'a, T> = Request<'a, Result<T, ReadFailure>>;

/// The least time to wait for a reply, however short the session timeout.
const REPLY_AT_LEAST: Duration = Duration::from_secs(1);
/// How many flights may be without a reply. Thousands of waiters send theirs at one moment, after a reconnect. The heartbeat
/// must not be behind all of them, and is not counted.
const FLIGHTS_AT_MOST: usize = 512;
/// How many holders may look for strangers at a time. What users wait for should not be behind them.
const GUARDS_AT_MOST: usize = 64;

pub(crate) struct Session {
    id: i64,
    link: watch::Sender<Link>,
    /// Its current connection, or the last one. It is removed when the session is over, so that nothing keeps the
    /// connection.
    ensemble: Mutex<Option<Arc<dyn Ensemble>>>,
    kept: Mutex<Kept>,
    /// The lease's timeout, in milliseconds. It is an atomic because a forked child may ask for it, where a locked
    /// mutex would never be unlocked.
    timeout: AtomicU64,
    marks: Mutex<Marks>,
    followers: Mutex<Followers>,
    flights: Semaphore,
    guards: Semaphore,
    lasting: Mutex<Arc<Lasting>>,
    /// The directories that attempts have left, the most recent last.
    left: Mutex<VecDeque<Arc<str>>>,
    /// Wakes the heartbeat when there is a new hold, the lease has become shorter, or an attempt's answer is late.
    registered: Notify,
    trouble: Mutex<Option<String>>,
    answered: Mutex<Option<Answered>>,
    /// Why one of its nodes could not be deleted, so that the session was closed.
    undeletable: OnceLock<Arc<str>>,
    nodes: watch::Sender<Nodes>,
    counters: Arc<Counters>,
}

/// The holds, and the keeper that proves them.
struct Kept {
    keeper: Keeper,
    holdings: BTreeMap<HoldId, Arc<Holding>>,
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
            kept: Mutex::new(Kept { keeper, holdings: BTreeMap::new() }),
            marks: Mutex::new(Marks::new(platform::uuid().session())),
            followers: Mutex::default(),
            flights: Semaphore::new(FLIGHTS_AT_MOST),
            guards: Semaphore::new(GUARDS_AT_MOST),
            lasting: Mutex::default(),
            left: Mutex::default(),
            registered: Notify::new(),
            trouble: Mutex::default(),
            answered: Mutex::default(),
            undeletable: OnceLock::new(),
            nodes: watch::Sender::new(Nodes::Kept),
            counters,
        })
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
        lock_ignoring_poison(&self.kept).keeper.lease().heartbeat()
    }

    pub(crate) fn link(&self) -> watch::Receiver<Link> {
        self.link.subscribe()
    }

    pub(crate) fn is_connected(&self) -> bool {
        *self.link.borrow() == Link::Connected
    }

    /// Returns why the last try to attach a connection failed; `None` while there is a connection.
    pub(crate) fn trouble(&self) -> Option<String> {
        let trouble = lock_ignoring_poison(&self.trouble);
        (*self.link.borrow() != Link::Connected).then(|| trouble.clone()).flatten()
    }

    pub(crate) fn set_trouble(&self, trouble: Option<String>) {
        *lock_ignoring_poison(&self.trouble) = trouble;
    }

    /// Returns why it is over; `None` if it is not.
    pub(crate) fn loss(&self) -> Option<LossReason> {
        if let Link::Over(reason) = *self.link.borrow() { Some(reason) } else { None }
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(*self.link.borrow(), Link::Over(_))
    }

    pub(crate) fn now(&self) -> Now {
        let (late, moment) = (self.latest_wait(), clock::now());
        let lease_until = lock_ignoring_poison(&self.kept).keeper.lease_to_grant(late, moment);
        // The time is read last, so that what passes in between makes the lease look shorter, never longer.
        Now { moment: clock::now(), lease_until }
    }

    /// Whether a lock that was busy in this session may still be taken for busy.
    pub(crate) fn is_good(&self, memory: &Memory, now: Moment) -> bool {
        self.is_connected() && memory.is_good(lock_ignoring_poison(&self.kept).keeper.lease(), now)
    }

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
        let written = |(outcome, write): (&Outcome, &bool)| {
            *write && matches!(outcome, Outcome::Created(_) | Outcome::Done)
        };
        if landing.outcomes.contains(&Outcome::SessionOver) {
            self.end(LossReason::SessionExpired);
        } else if !landing.outcomes.contains(&Outcome::Unknown) {
            self.note_answer(landing.sent);
        }
        if landing.outcomes.iter().zip(&writes).any(written) {
            lock_ignoring_poison(&self.kept).keeper.handle_write(landing.sent, clock::now());
        }
        self.see_refusals(&deletions, &mut landing.outcomes);
        self.see_flight(&seeing, &landing.outcomes);
        landing
    }

    pub(crate) fn commit(
        &self,
        guards: Vec<Arc<str>>,
        writes: Vec<Write>,
    ) -> Request<'_, Result<Versions, WriteFailure>> {
        Box::pin(async {
            // The wait is bounded, because somebody waits for the result, and without a server the session has no
            // end.
            if clock::timeout(self.patience(), self.connected()).await.is_err() {
                return Err(WriteFailure::Unknown);
            }
            let (seeing, deleted) = (self.seeing(&[]), deleted_by(&writes));
            let over = Err(WriteFailure::SessionOver);
            let written = self.unless_over(over, |ensemble| ensemble.commit(guards, writes)).await;
            if written.is_ok() {
                deleted.iter().for_each(|path| self.see_deleted(&seeing, path));
            }
            written
        })
    }

    /// Whether its servers can create a node in one transaction with other writes.
    pub(crate) fn creates_in_transactions(&self) -> bool {
        lock_ignoring_poison(&self.ensemble)
            .as_ref()
            .is_none_or(|ensemble| ensemble.creates_in_transactions())
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

    pub(crate) fn look(&self, path: Arc<str>) -> Question<'_, Option<Seen>> {
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
        call: impl FnOnce(&dyn Ensemble) -> Pending<Result<T, ReadFailure>> + Send + 'a,
    ) -> Question<'a, T> {
        Box::pin(self.unless_over(Err(ReadFailure::SessionOver), call))
    }

    /// Adds a hold to the heartbeat. If the first of its nodes has a name that is used again, `origin` is the transaction that
    /// created it.
    pub(crate) fn register(&self, nodes: Vec<Arc<str>>, origin: Option<i64>, sent: Moment) -> Arc<Holding> {
        let origins = std::iter::once(origin).chain(std::iter::repeat(None));
        let held = nodes.iter().zip(origins);
        let held = held.map(|(path, origin)| HeldNode { path: path.clone(), origin }).collect();
        let mut kept = lock_ignoring_poison(&self.kept);
        let id = kept.keeper.handle_grant(held, sent);
        let holding = Arc::new(Holding::new(id, nodes, origin.is_some()));
        kept.holdings.insert(id, holding.clone());
        drop(kept);
        // The session may have ended just before.
        self.tell_losses();
        self.registered.notify_one();
        holding
    }

    /// Waits for a new hold, a shorter lease, or an attempt whose answer is late.
    pub(crate) async fn registered(&self) {
        self.registered.notified().await;
    }

    /// Returns how long the hold can be relied on.
    pub(crate) fn valid_for(&self, holding: &Holding) -> Duration {
        if holding.status() != Status::Held || self.is_over() {
            return Duration::ZERO;
        }
        lock_ignoring_poison(&self.kept).keeper.valid_for(holding.id, clock::now())
    }

    /// Whether two heartbeats have passed without a proof of the hold.
    pub(crate) fn is_late(&self, holding: &Holding) -> bool {
        lock_ignoring_poison(&self.kept).keeper.is_late(holding.id, clock::now())
    }

    /// Marks the hold as lost, for a reason that the heartbeat cannot find out.
    pub(crate) fn lose(&self, holding: &Holding, reason: LossReason) {
        if holding.change(|status| status.lose(reason)) {
            holding.note_loss(reason);
            lock_ignoring_poison(&self.kept).keeper.handle_loss(holding.id);
        }
        self.unregister(holding);
    }

    /// The holder releases it; `false` if the hold was lost before.
    pub(crate) fn release(&self, holding: &Holding) -> bool {
        let is_released = holding.release();
        self.unregister(holding);
        is_released
    }

    /// Gives up looking after the hold, and wakes all who wait for its end.
    pub(crate) fn abandon(&self, holding: &Holding) {
        holding.change(Status::abandon);
        self.unregister(holding);
    }

    /// Removes a hold from the heartbeat. Change its status first: a hold with the status `Held` is kept.
    fn unregister(&self, holding: &Holding) {
        let kept = &mut *lock_ignoring_poison(&self.kept);
        kept.keeper.handle_release(holding.id);
        kept.holdings.remove(&holding.id);
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
    pub(crate) fn ask(&self) {
        lock_ignoring_poison(&self.kept).keeper.handle_asked();
    }

    /// This server has granted the session with this timeout.
    pub(crate) fn granted(&self, server: &str, asked: Moment, timeout: Duration) {
        let before = self.timeout();
        let mut kept = lock_ignoring_poison(&self.kept);
        let is_too_short = kept.keeper.lease().is_too_short(timeout);
        kept.keeper.handle_granted(asked, timeout, clock::now());
        self.timeout.store(in_millis(kept.keeper.lease().timeout()), Ordering::Relaxed);
        drop(kept);
        self.tell_losses();
        if is_too_short {
            tracing::warn!(
                server,
                granted = ?timeout,
                ?before,
                "a server grants less than half of the session timeout that another one granted: all holds are lost, \
                 because no lease can rely on that; give all servers the same tickTime, minSessionTimeout and \
                 maxSessionTimeout"
            );
        }
        self.registered.notify_one();
    }

    /// Waits until no answer about a hold that was lost meanwhile reaches any further.
    pub(crate) async fn keep_promises(&self) {
        let promised = lock_ignoring_poison(&self.kept).keeper.promised();
        clock::sleep(promised.since(clock::now())).await;
    }

    /// Attaches another connection, on which the quorum has answered a write that was sent at `sent`.
    pub(crate) fn attach(&self, ensemble: Arc<dyn Ensemble>, sent: Moment) {
        lock_ignoring_poison(&self.kept).keeper.handle_write(sent, clock::now());
        let mut present = lock_ignoring_poison(&self.ensemble);
        // After the session's end there is no connection to replace.
        if let Some(present) = &mut *present {
            *present = ensemble;
            self.counters.count_reconnect();
            self.set_connected(true);
        }
    }

    /// Returns how long to wait for a reply.
    fn patience(&self) -> Duration {
        (self.timeout() / 2).max(REPLY_AT_LEAST)
    }

    /// Ends a connection on which a reply fails to come.
    fn give_up(&self, ensemble: &Weak<dyn Ensemble>) {
        tracing::info!(
            session = format_args!("{:#x}", self.id),
            "no reply in time: the connection is given up"
        );
        if let Some(ensemble) = ensemble.upgrade() {
            ensemble.give_up();
        }
    }

    /// Notes that the connection has ended, as soon as anything notices. Until then requests would fail again and
    /// again.
    fn notice(&self, ensemble: &Weak<dyn Ensemble>) {
        let Some(ensemble) = ensemble.upgrade().filter(|ensemble| !ensemble.is_open()) else { return };
        // Locked to the end, because another connection may be attached at the same time, and nobody would report
        // that again.
        let present = lock_ignoring_poison(&self.ensemble);
        if present.as_ref().is_some_and(|present| Arc::ptr_eq(present, &ensemble)) {
            self.set_connected(false);
        }
    }

    /// Waits for a connection, or the end of the session.
    pub(crate) async fn connected(&self) {
        // It cannot fail: the sender is ours.
        let _ = self.link().wait_for(|link| *link != Link::Disconnected).await;
    }

    /// Does `call` as soon as there is a connection, and returns `over` if the session ends before the result is
    /// there. If the result does not come in time, the connection is given up, and the outcome is unknown.
    async fn unless_over<T: Send>(&self, over: T, call: impl FnOnce(&dyn Ensemble) -> Pending<T>) -> T {
        self.connected().await;
        let Some(ensemble) = lock_ignoring_poison(&self.ensemble).clone() else { return over };
        let pending = call(&*ensemble);
        // The request keeps the connection alive, but not while it waits for the session's end.
        let weak = Arc::downgrade(&ensemble);
        drop(ensemble);
        // The result is left here, so that the code that waits for it is compiled once.
        let mut result = None;
        {
            let reply = pin!(async { result = Some(pending.await) });
            self.wait_for_reply(reply, &weak).await;
        }
        result.unwrap_or(over)
    }

    async fn wait_for_reply(
        &self,
        mut reply: Pin<&mut (dyn Future<Output = ()> + Send)>,
        connection: &Weak<dyn Ensemble>,
    ) {
        let mut link = self.link();
        let is_late = tokio::select! {
            biased;
            () = &mut reply => false,
            _ = link.wait_for(|link| matches!(link, Link::Over(_))) => return,
            () = clock::sleep(self.patience()) => true,
        };
        if is_late {
            self.give_up(connection);
            reply.await;
        }
        self.notice(connection);
    }
}

/// Waits until this is below its limit; `None` never happens. The first comes first. Unconstrained, because a flight that is
/// polled must be sent if it can be: tokio would have it wait if its task has done much.
async fn turn(limit: &Semaphore) -> Option<SemaphorePermit<'_>> {
    unconstrained(limit.acquire()).await.ok()
}

fn in_millis(timeout: Duration) -> u64 {
    u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
