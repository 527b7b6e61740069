//! One session, with its lease and the holds that depend on it.
//!
//! A hold never outlives its session. So every loss is reported here, in one place, whether the session ended, a
//! check missed a node, or a lease lapsed.
//!
//! A session outlives its connections. A request that gets no reply in time ends the connection it was sent on,
//! because nothing else would: a server may be alive and never answer.

mod holding;

use crate::base::clock;
use crate::base::error::LossReason;
use crate::base::failure::Failure;
use crate::base::stats::Counters;
use crate::base::sync::{Mutex, lock_ignoring_poison};
use crate::machine::Moment;
use crate::machine::keeper::{self, HoldId, Keeper, Proof, ToWatch};
use crate::machine::lasting::Lasting;
use crate::machine::lease::Lease;
use crate::machine::name::{SINGLE_NAME, mark_of_companion};
use crate::machine::protocol::{Node, Now, Operation, Outcome, Refusal, WatchEvent};
use crate::machine::status::Status;
use crate::machine::times;
use crate::session::attempt_marks::{AttemptMarks, Listing};
use crate::session::lateness::{Answered, Lateness};
use crate::session::nodes::SessionNodes;
use crate::session::seeing::{Look, Seeing};
use crate::session::session_key::SessionKey;
use crate::zookeeper::ensemble::{
    Check, Child, Deletion, Ensemble, HeldNode, Landing, NodeData, NodeVersion, Pending, Versions, Watch,
    Watched, WatchedQueues, Write, either, text_of,
};
pub(crate) use holding::{Holding, HoldingState, Notice};
use std::collections::BTreeMap;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
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
type Question<'a, T> = Request<'a, Result<T, Failure>>;

/// The least time to wait for a reply, however short the session timeout.
const REPLY_AT_LEAST: Duration = Duration::from_secs(1);
/// How many flights may be without a reply. Thousands of waiters send theirs at one moment, after a reconnect. The heartbeat
/// must not be behind all of them, and is not counted.
const FLIGHTS_AT_MOST: usize = 512;
/// How many holders may look for strangers at a time. What users wait for should not be behind them.
const STRANGER_LOOKS_AT_MOST: usize = 64;

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

/// The work that is due.
pub(crate) struct Due {
    pub(crate) beat: Option<Proof>,
    pub(crate) watches: Vec<ToWatch>,
    /// When to look again even if nothing happens; `None` if there is nothing to look after.
    pub(crate) wake: Option<Moment>,
}

/// A hold whose nodes should be watched, and the watches on them.
pub(crate) struct Looked {
    pub(crate) hold: HoldId,
    seen: keeper::Seen,
    pub(crate) watches: Vec<Pending<WatchEvent>>,
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
            flights: Semaphore::new(FLIGHTS_AT_MOST),
            stranger_looks: Semaphore::new(STRANGER_LOOKS_AT_MOST),
            registered: Notify::new(),
            undeletable: OnceLock::new(),
            ensemble_id: OnceLock::new(),
            nodes: watch::Sender::new(SessionNodes::Live),
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
        lock_ignoring_poison(&self.state).keeper.lease().heartbeat()
    }

    pub(crate) fn now(&self) -> Now {
        let state = lock_ignoring_poison(&self.state);
        let late = state.answered.map_or(Duration::ZERO, |answered| answered.took);
        let lease_until = state.keeper.lease_to_grant(late, clock::now());
        // The time is read last, so that what passes in between makes the lease look shorter, never longer.
        Now { moment: clock::now(), lease_until }
    }

    /// Returns the lease as it is at this moment.
    pub(crate) fn lease(&self) -> Lease {
        lock_ignoring_poison(&self.state).keeper.lease().clone()
    }

    // Its connection. A session outlives its connections: they are attached one after the other.

    pub(crate) fn link(&self) -> watch::Receiver<Link> {
        self.link.subscribe()
    }

    pub(crate) fn is_connected(&self) -> bool {
        *self.link.borrow() == Link::Connected
    }

    /// Waits for a connection, or the end of the session.
    pub(crate) async fn connected(&self) {
        // It cannot fail: the sender is ours.
        let _ = self.link().wait_for(|link| *link != Link::Disconnected).await;
    }

    /// Returns why the last try to attach a connection failed; `None` while there is a connection.
    pub(crate) fn trouble(&self) -> Option<String> {
        let trouble = lock_ignoring_poison(&self.state).trouble.clone();
        trouble.filter(|_| !self.is_connected())
    }

    pub(crate) fn set_trouble(&self, trouble: Option<String>) {
        lock_ignoring_poison(&self.state).trouble = trouble;
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
        lock_ignoring_poison(&self.state).keeper.handle_asked();
    }

    /// This server has granted the session with this timeout.
    pub(crate) fn granted(&self, server: &str, asked: Moment, timeout: Duration) {
        let before = self.timeout();
        let mut state = lock_ignoring_poison(&self.state);
        let is_too_short = state.keeper.lease().is_too_short(timeout);
        state.keeper.handle_granted(asked, timeout, clock::now());
        self.timeout.store(in_millis(state.keeper.lease().timeout()), Ordering::Relaxed);
        drop(state);
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
        let promised = lock_ignoring_poison(&self.state).keeper.promised();
        clock::sleep(promised.since(clock::now())).await;
    }

    /// Attaches another connection, on which the quorum has answered a write that was sent at `sent`.
    pub(crate) fn attach(&self, ensemble: Arc<dyn Ensemble>, sent: Moment) {
        lock_ignoring_poison(&self.state).keeper.handle_write(sent, clock::now());
        let mut present = lock_ignoring_poison(&self.ensemble);
        // After the session's end there is no connection to replace.
        if let Some(present) = &mut *present {
            *present = ensemble;
            self.counters.reconnects.add();
            self.set_connected(true);
        }
    }

    /// Returns how long to wait for a reply.
    fn patience(&self) -> Duration {
        times::PATIENCE.of(self.timeout()).max(REPLY_AT_LEAST)
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

    // Requests, each on the connection that there is.

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
            lock_ignoring_poison(&self.state).keeper.handle_write(landing.sent, clock::now());
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
        let _awaiting = Awaiting::begin(self, sent);
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

    pub(crate) fn commit(
        &self,
        guards: Vec<Arc<str>>,
        writes: Vec<Write>,
    ) -> Request<'_, Result<Versions, Failure>> {
        Box::pin(async {
            // The wait is bounded, because somebody waits for the result, and without a server the session has no
            // end.
            if clock::timeout(self.patience(), self.connected()).await.is_err() {
                return Err(Failure::Unknown);
            }
            let (seeing, deleted) = (self.seeing(&[]), deleted_by(&writes));
            let over = Err(Failure::SessionOver);
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

    // What the answers to any requests show of the nodes of its holds, and of children that are no contenders. See
    // `Keeper::handle_children` and `Lasting`.

    fn seeing(&self, flight: &[Operation]) -> Seeing<'_> {
        Seeing::new(lock_ignoring_poison(&self.state).keeper.next_hold(), flight, &self.attempts)
    }

    /// Takes note of what a flight has shown.
    fn see_flight(self: &Arc<Self>, seeing: &Seeing<'_>, outcomes: &[Outcome]) {
        for (look, outcome) in seeing.looks.iter().zip(outcomes) {
            match (look, outcome) {
                (Look::Children(directory), Outcome::Children(children)) => {
                    self.see(seeing, directory, children);
                    seeing.listing.iter().for_each(|listing| self.heal(listing, directory, children));
                    let lasting = &mut lock_ignoring_poison(&self.state).lasting;
                    Lasting::forget_absent(lasting, directory, children);
                }
                (Look::Children(directory), Outcome::NoNode) => self.see(seeing, directory, &[]),
                (Look::Node(path), Outcome::Found(Node { origin: None, .. })) => {
                    Arc::make_mut(&mut lock_ignoring_poison(&self.state).lasting).note(path);
                }
                _ => {}
            }
        }
    }

    /// Ends the holds whose nodes are missing among the children of a directory.
    fn see(&self, seeing: &Seeing<'_>, directory: &str, children: &[String]) {
        lock_ignoring_poison(&self.state).keeper.handle_children(seeing.before, directory, children);
        self.tell_losses();
    }

    /// Ends the hold that had this node, if there is one.
    fn see_deleted(&self, seeing: &Seeing<'_>, path: &str) {
        lock_ignoring_poison(&self.state).keeper.handle_missing(seeing.before, path);
        self.tell_losses();
    }

    /// Returns the children that are known to be no contenders.
    pub(crate) fn lasting(&self) -> Arc<Lasting> {
        lock_ignoring_poison(&self.state).lasting.clone()
    }

    // Nodes that the session may not delete, and that go when it is closed.

    /// Looks for refusals in the outcomes of a flight. `deletions` says which of its operations delete nodes.
    fn see_refusals(&self, deletions: &[bool], outcomes: &mut [Outcome]) {
        for (outcome, _) in outcomes.iter_mut().zip(deletions).filter(|(_, deletes)| **deletes) {
            if let Outcome::Refused(refusal) = outcome {
                *refusal = Refusal::Answer(self.close_for_undeletable(refusal).to_string());
            }
        }
    }

    /// Closes the session because it may not delete one of its nodes. Nobody else would delete the node, and it would
    /// keep the lock taken. So the session ends, and its nodes with it; its holds are marked as lost first.
    fn close_for_undeletable(&self, refusal: &Refusal) -> Arc<str> {
        let why = self.undeletable.get_or_init(|| {
            let why = format!("{}; its session was closed to get rid of its nodes", text_of(refusal));
            tracing::warn!(session = format_args!("{:#x}", self.id), why, "a node may not be deleted");
            why.into()
        });
        self.end(LossReason::SessionClosed);
        why.clone()
    }

    /// Returns why one of its nodes could not be deleted, if the session was closed for that.
    pub(crate) fn undeletable(&self) -> Option<&str> {
        self.undeletable.get().map(|why| &**why)
    }

    // Servers that answer late.

    /// Notes that the servers have answered a request that was sent at `sent`.
    pub(crate) fn note_answer(&self, sent: Moment) {
        lock_ignoring_poison(&self.state).answered = Some(Answered::now(sent));
    }

    /// Returns how late the servers answer; `None` if they answer soon, or not at all.
    pub(crate) fn lateness(&self) -> Option<Lateness> {
        let Answered { at, took } = lock_ignoring_poison(&self.state).answered?;
        let timeout = self.timeout();
        let answers = self.is_connected() && clock::now().since(at) < self.patience();
        (answers && took >= times::CLOSE.of(timeout)).then_some(Lateness { took, timeout })
    }

    // Its attempts, and nodes of the session that none of them knows. See `machine::marks`.

    pub(crate) fn attempts(&self) -> &AttemptMarks {
        &self.attempts
    }

    /// Lists where attempts recently were, to [heal](Self::heal) what is there. An ensemble may lose transactions when the
    /// leader changes, and that breaks connections.
    pub(crate) async fn sweep(self: Arc<Self>) {
        let left = self.attempts.left().into_iter();
        let flight: Vec<_> = left.map(|directory| Operation::List { directory }).collect();
        if !flight.is_empty() {
            self.send(flight).await;
        }
    }

    /// Deletes the children that this session has created and none of its attempts knows, because the ensemble has
    /// lost their deletion. Nothing waits for it: the next listing tries again.
    fn heal(self: &Arc<Self>, listing: &Listing<'_>, directory: &str, children: &[String]) {
        let orphans = listing.disown_orphans(children);
        if orphans.is_empty() {
            return;
        }
        tracing::warn!(directory, ?orphans, "nodes of this session that no attempt knows are deleted");
        let (companions, others): (Vec<_>, Vec<_>) =
            orphans.into_iter().partition(|name| mark_of_companion(name).is_some());
        let path_of = |name: String| format!("{directory}/{name}");
        let others: Vec<_> = others.into_iter().map(path_of).map(|path| Operation::Delete { path }).collect();
        if !others.is_empty() {
            tokio::spawn(self.clone().send(others));
        }
        for companion in companions.into_iter().map(path_of) {
            tokio::spawn(self.clone().heal_pair(directory.into(), companion));
        }
    }

    /// Deletes the companion of an exclusive lock's node, and that node if it is of the same transaction.
    async fn heal_pair(self: Arc<Self>, directory: Arc<str>, companion: String) {
        let path = format!("{directory}/{SINGLE_NAME}");
        let inspect = |path: &String| Operation::Inspect { path: path.clone() };
        let looks = vec![Operation::Barrier { directory }, inspect(&companion), inspect(&path)];
        let landing = self.clone().send(looks).await;
        let [Outcome::Done, Outcome::Found(seen), node] = &landing.outcomes[..] else { return };
        let is_pair = matches!(node, Outcome::Found(node) if node.origin == seen.origin);
        let delete = match is_pair {
            true => Operation::DeletePair { path, companion },
            false => Operation::Delete { path: companion },
        };
        self.send(vec![delete]).await;
    }

    // Its holds.

    /// Adds a hold to the heartbeat. `path` is the lock's name in messages. `czxid` is the transaction that created the first
    /// node; the heartbeat needs it if that node's name is used again.
    pub(crate) fn register(
        self: &Arc<Self>,
        path: Arc<str>,
        nodes: Vec<Arc<str>>,
        czxid: i64,
        name_is_reused: bool,
        sent: Moment,
    ) -> Arc<Holding> {
        let origins = std::iter::once(name_is_reused.then_some(czxid)).chain(std::iter::repeat(None));
        let held = nodes.iter().zip(origins);
        let held = held.map(|(path, origin)| HeldNode { path: path.clone(), origin }).collect();
        let mut state = lock_ignoring_poison(&self.state);
        let id = state.keeper.handle_grant(held, sent);
        let holding = Arc::new(Holding::new(id, self.clone(), path, nodes, czxid, name_is_reused));
        state.holdings.insert(id, Arc::downgrade(&holding));
        drop(state);
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
        lock_ignoring_poison(&self.state).keeper.valid_for(holding.id, clock::now())
    }

    /// Whether two heartbeats have passed without a proof of the hold.
    pub(crate) fn is_late(&self, holding: &Holding) -> bool {
        lock_ignoring_poison(&self.state).keeper.is_late(holding.id, clock::now())
    }

    /// Marks the hold as lost, for a reason that the heartbeat cannot find out.
    pub(crate) fn lose(&self, holding: &Holding, reason: LossReason) {
        if holding.change(|status| status.lose(reason)) {
            holding.note_loss(reason);
            lock_ignoring_poison(&self.state).keeper.handle_loss(holding.id);
        }
        self.unregister(holding);
    }

    /// The holder releases it; `false` if the hold was lost before.
    pub(crate) fn release(&self, holding: &Holding) -> bool {
        let is_released = holding.let_go();
        self.unregister(holding);
        is_released
    }

    /// Gives up looking after the hold, and wakes all who wait for its end.
    pub(crate) fn abandon(&self, holding: &Holding) {
        holding.change(Status::abandon);
        self.unregister(holding);
    }

    /// Removes a hold from the heartbeat. Change its status first: a hold with the status `Held` stays there.
    fn unregister(&self, holding: &Holding) {
        let state = &mut *lock_ignoring_poison(&self.state);
        state.keeper.handle_release(holding.id);
        state.holdings.remove(&holding.id);
    }

    fn tell_losses(&self) {
        let now = clock::now();
        let lost_next = || {
            let state = &mut *lock_ignoring_poison(&self.state);
            let (hold, reason) = state.keeper.poll_lost(now)?;
            // At once, so that nobody finds it held but no longer registered.
            let lost = state.holdings.remove(&hold).and_then(|holding| holding.upgrade());
            let lost = lost.filter(|holding| holding.change(|status| status.lose(reason)));
            Some((lost, reason))
        };
        for (lost, reason) in std::iter::from_fn(lost_next) {
            lost.inspect(|holding| holding.note_loss(reason));
        }
    }

    // The questions that its heartbeat asks the ensemble, and the conclusions from the answers.

    pub(crate) fn has_heartbeat(&self) -> bool {
        lock_ignoring_poison(&self.state).keeper.has_heartbeat()
    }

    /// Marks the holds that are lost by now, and returns what is due.
    pub(crate) fn due(&self) -> Due {
        self.tell_losses();
        let is_connected = self.is_connected();
        let now = clock::now();
        let keeper = &mut lock_ignoring_poison(&self.state).keeper;
        let watches = keeper.poll_watch(now, is_connected);
        let beat = keeper.poll_beat(now, is_connected);
        Due { beat, watches, wake: keeper.poll_timeout(now, is_connected) }
    }

    /// Proves one hold; `true` if the ensemble has answered.
    pub(crate) async fn prove(self: Arc<Self>, holding: &Holding) -> bool {
        let proof = lock_ignoring_poison(&self.state).keeper.prove(holding.id, clock::now());
        let Some(proof) = proof else { return false };
        let (proof, check) = self.clone().check(proof).await;
        self.take_proof(&proof, &check);
        matches!(check, Check::Answered { .. })
    }

    /// Checks the nodes of a proof. Pass the result to [`take_proof`](Self::take_proof).
    pub(crate) async fn check(self: Arc<Self>, proof: Proof) -> (Proof, Check) {
        let nodes = proof.nodes.clone();
        let check = self.unless_over(Check::SessionOver, |ensemble| ensemble.check(nodes)).await;
        (proof, check)
    }

    /// Counts how long a heartbeat that began at `since` has waited for its answer.
    pub(crate) fn count_beat(&self, since: Moment, check: &Check) {
        if matches!(check, Check::Answered { .. }) {
            self.counters.heartbeat_lag.add_time(clock::now().since(since));
            self.note_answer(since);
        }
    }

    /// Ends the holds whose node is gone, and proves the others. First pass on everything that watches have reported,
    /// with [`take_event`](Self::take_event).
    pub(crate) fn take_proof(&self, proof: &Proof, check: &Check) {
        if *check == Check::SessionOver {
            self.end(LossReason::SessionExpired);
        }
        lock_ignoring_poison(&self.state).keeper.handle_proof(proof, check, clock::now());
        self.tell_losses();
    }

    /// Watches nodes of holds. Pass the result to [`take_watches`](Self::take_watches).
    pub(crate) async fn watch(self: Arc<Self>, holds: Vec<ToWatch>) -> Vec<Looked> {
        let nodes: Vec<_> = holds.iter().flat_map(|to_watch| to_watch.nodes.clone()).collect();
        let watches = self.unless_over(Vec::new(), |ensemble| ensemble.watch(nodes)).await;
        let mut watches = watches.into_iter();
        let looked = |to_watch: ToWatch| {
            let of_hold: Vec<_> = watches.by_ref().take(to_watch.nodes.len()).collect();
            let seen = match &of_hold[..] {
                nodes if nodes.iter().any(|node| matches!(node, Watch::Gone)) => keeper::Seen::Gone,
                nodes if nodes.len() < to_watch.nodes.len() => keeper::Seen::Unknown,
                nodes if nodes.iter().any(|node| matches!(node, Watch::Unknown)) => keeper::Seen::Unknown,
                _ => keeper::Seen::There,
            };
            let event = |watch| if let Watch::There(event) = watch { Some(event) } else { None };
            // If not all nodes of a hold can be watched, the watches on the others are dropped.
            let watches = if seen == keeper::Seen::There { of_hold } else { Vec::new() };
            Looked { hold: to_watch.hold, seen, watches: watches.into_iter().filter_map(event).collect() }
        };
        holds.into_iter().map(looked).collect()
    }

    pub(crate) fn take_watches(&self, looked: &[Looked]) {
        let seen: Vec<_> = looked.iter().map(|looked| (looked.hold, looked.seen)).collect();
        lock_ignoring_poison(&self.state).keeper.handle_seen(&seen, clock::now());
        self.tell_losses();
    }

    /// Notes that a watch on a node of this hold has fired.
    pub(crate) fn take_event(&self, hold: HoldId, event: WatchEvent) {
        lock_ignoring_poison(&self.state).keeper.handle_event(hold, event == WatchEvent::Deleted);
        self.tell_losses();
    }

    // How it ends, and what is then known about its nodes.

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
        self.link.send_if_modified(|link| {
            let is_first = !matches!(link, Link::Over(_));
            if is_first {
                // Set before anybody can see that it is over.
                self.nodes.send_replace(nodes);
                *link = Link::Over(reason);
            }
            is_first
        });
        // Only now, because a caller that finds no connection takes that for the end, and must not be the first to report
        // it. When its last handle is dropped, the library closes the session, and the servers give its locks to others. By
        // then its holds must have been marked as lost.
        let ensemble = lock_ignoring_poison(&self.ensemble).take();
        // Another call may have been first.
        let link = *self.link.borrow();
        if let Link::Over(reason) = link {
            lock_ignoring_poison(&self.state).keeper.handle_over(reason);
        }
        self.tell_losses();
        drop(ensemble);
    }

    /// Records what happened to its nodes when it was closed.
    pub(crate) fn set_nodes(&self, nodes: SessionNodes) {
        self.nodes.send_if_modified(|known| {
            let changes = *known == SessionNodes::Live;
            if changes {
                *known = nodes;
            }
            changes
        });
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

/// An attempt that waits for a late answer. Dropping it ends that.
struct Awaiting<'a>(&'a Session);

impl<'a> Awaiting<'a> {
    fn begin(session: &'a Session, sent: Moment) -> Self {
        lock_ignoring_poison(&session.state).keeper.handle_awaiting(sent);
        session.registered.notify_one();
        Self(session)
    }
}

impl Drop for Awaiting<'_> {
    fn drop(&mut self) {
        lock_ignoring_poison(&self.0.state).keeper.handle_awaited();
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

/// Returns the nodes that are deleted if the writes are done.
fn deleted_by(writes: &[Write]) -> Vec<String> {
    let deletes = |write: &&Write| matches!(write, Write::Delete { .. });
    writes.iter().filter(deletes).map(|write| write.path().to_owned()).collect()
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
