//! An ensemble for tests: one directory of nodes in memory. It answers at once, late, or not at all.

use crate::attempt::local_queue::LocalQueue;
use crate::base::clock;
use crate::base::failure::Failure;
use crate::base::owner::Owner;
use crate::base::sync::atomic::{AtomicBool, Ordering};
use crate::base::sync::{Mutex, lock_ignoring_poison};
use crate::hold::grant::{Grant, Granter};
use crate::hold::hold::Hold;
use crate::hold::token::Token;
use crate::machine::Moment;
use crate::machine::callers::TurnId;
use crate::machine::keeper::Keeper;
use crate::machine::name::have_one_mark;
use crate::machine::protocol::{NewNode, Node, Operation, Origin, Outcome, Refusal, WatchEvent};
use crate::session::session::Holding;
use crate::session::session::Session;
use crate::session::slot::{Slot, SlotState};
use crate::zookeeper::ensemble::{
    Check, Child, Deletion, Ensemble, HeldNode, Landing, NodeData, NodeVersion, Pending, Versions, Watch,
    Watched, WatchedQueues, Write, either,
};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};
use tokio::sync::{oneshot, watch};

/// The timeout of its sessions. The heartbeat comes every second.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(12);

pub(crate) const SESSION: i64 = 7;

/// A handle to the ensemble, which is also the connection of its one session.
#[derive(Clone)]
pub(crate) struct FakeEnsemble(Arc<State>);

struct State {
    /// The nodes by path, each with the transaction that created it.
    nodes: Mutex<BTreeMap<String, i64>>,
    /// The data of the nodes that it was asked to create, by path.
    data: Mutex<BTreeMap<String, Arc<[u8]>>>,
    /// What becomes of the next flights that create a node, whose replies are lost: whether they are executed.
    lost: Mutex<VecDeque<bool>>,
    watches: Mutex<Vec<(String, oneshot::Sender<WatchEvent>)>>,
    /// When each check came, and how many nodes it named.
    checks: Mutex<Vec<(Moment, usize)>>,
    flights: Mutex<usize>,
    /// How many of the next checks get an unknown outcome.
    unsure: Mutex<usize>,
    /// How late its answers are.
    late: Mutex<Duration>,
    refuses_deletions: AtomicBool,
    is_old: AtomicBool,
    is_silent: watch::Sender<bool>,
    has_ended: watch::Sender<bool>,
    is_given_up: watch::Sender<bool>,
}

impl FakeEnsemble {
    pub(crate) fn new() -> Self {
        Self(Arc::new(State {
            nodes: Mutex::default(),
            data: Mutex::default(),
            lost: Mutex::default(),
            watches: Mutex::default(),
            checks: Mutex::default(),
            flights: Mutex::default(),
            unsure: Mutex::default(),
            late: Mutex::default(),
            refuses_deletions: AtomicBool::new(false),
            is_old: AtomicBool::new(false),
            is_silent: watch::Sender::new(false),
            has_ended: watch::Sender::new(false),
            is_given_up: watch::Sender::new(false),
        }))
    }

    /// Opens a session.
    pub(crate) fn session(&self) -> Arc<Session> {
        let keeper = Keeper::new(TIMEOUT, clock::now(), clock::now());
        Session::new(Arc::new(self.clone()), SESSION, keeper, Arc::default())
    }

    /// Makes a hold in this session, whose node is created now.
    pub(crate) fn hold(&self, session: &Arc<Session>, path: &str, owner: Owner) -> Hold {
        Hold::new(self.grant(session, path, owner, false))
    }

    pub(crate) fn grant(&self, session: &Arc<Session>, path: &str, owner: Owner, bound: bool) -> Arc<Grant> {
        self.grant_by(session, path, owner, bound, Weak::<LocalQueue>::new())
    }

    /// Makes a grant that gives its holds back to this granter.
    pub(crate) fn grant_by(
        &self,
        session: &Arc<Session>,
        path: &str,
        owner: Owner,
        bound: bool,
        granter: Weak<dyn Granter>,
    ) -> Arc<Grant> {
        let holding = self.holding(session, path, false);
        let slot = Arc::new(Slot::of(SlotState::Open(session.clone())));
        let token = Token::of(holding.czxid);
        Grant::new(holding, token, slot, owner, bound, granter, TurnId(1))
    }

    /// Makes a holding whose node is created now, with a name of its own or not.
    pub(crate) fn holding(&self, session: &Arc<Session>, path: &str, name_is_reused: bool) -> Arc<Holding> {
        let node = format!("{path}/_c_{}-lock-0000000000", crate::base::platform::uuid());
        let czxid = self.create(&node);
        session.register(path.into(), vec![node.as_str().into()], czxid, name_is_reused, clock::now())
    }

    /// Makes the outcome of this many checks unknown, or of the last watch of a request.
    pub(crate) fn be_unsure_of(&self, checks: usize) {
        *lock_ignoring_poison(&self.0.unsure) = checks;
    }

    /// Loses the replies to the next flights that create a node, one for each of these. It says whether the flight is executed.
    pub(crate) fn lose_creations(&self, executed: &[bool]) {
        lock_ignoring_poison(&self.0.lost).extend(executed);
    }

    /// Returns the data of a node that it was asked to create.
    pub(crate) fn data(&self, path: &str) -> Arc<[u8]> {
        lock_ignoring_poison(&self.0.data).get(path).cloned().unwrap_or_default()
    }

    /// From now on, does at once what it is asked to do, and answers this much later.
    pub(crate) fn answer_late(&self, late: Duration) {
        *lock_ignoring_poison(&self.0.late) = late;
    }

    /// Refuses all deletions, as access lists may.
    pub(crate) fn refuse_deletions(&self) {
        self.0.refuses_deletions.store(true, Ordering::Relaxed);
    }

    /// Creates nothing in transactions, like servers of version 3.4.
    pub(crate) fn be_old(&self) {
        self.0.is_old.store(true, Ordering::Relaxed);
    }

    /// Stops answering, and stops doing anything.
    pub(crate) fn fall_silent(&self) {
        self.0.is_silent.send_replace(true);
    }

    /// Ends its session. The library does not notice, but answers to requests say so.
    pub(crate) fn end_session(&self) {
        self.0.has_ended.send_replace(true);
    }

    pub(crate) fn is_given_up(&self) -> bool {
        *self.0.is_given_up.borrow()
    }

    pub(crate) fn nodes(&self) -> Vec<String> {
        lock_ignoring_poison(&self.0.nodes).keys().cloned().collect()
    }

    /// Returns how many flights have been sent.
    pub(crate) fn flights(&self) -> usize {
        *lock_ignoring_poison(&self.0.flights)
    }

    /// Returns how many watches are listened to.
    pub(crate) fn watches(&self) -> usize {
        lock_ignoring_poison(&self.0.watches).iter().filter(|(_, watch)| !watch.is_closed()).count()
    }

    /// Returns when the nodes of holds were checked.
    pub(crate) fn checks(&self) -> Vec<Moment> {
        lock_ignoring_poison(&self.0.checks).iter().map(|(when, _)| *when).collect()
    }

    /// Returns how many nodes were checked each time.
    pub(crate) fn checked(&self) -> Vec<usize> {
        lock_ignoring_poison(&self.0.checks).iter().map(|(_, nodes)| *nodes).collect()
    }

    /// Deletes a node, as an operator may; `false` if it does not exist.
    pub(crate) fn delete_node(&self, path: &str) -> bool {
        let is_there = lock_ignoring_poison(&self.0.nodes).remove(path).is_some();
        if is_there {
            self.tell(path, WatchEvent::Deleted);
            self.tell(path.rsplit_once('/').map_or("", |(directory, _)| directory), WatchEvent::Changed);
        }
        is_there
    }

    pub(crate) fn create(&self, path: &str) -> i64 {
        let czxid = lock_ignoring_poison(&self.0.nodes).values().max().map_or(1, |czxid| czxid + 1);
        self.create_with(path, czxid);
        czxid
    }

    /// Creates a node, as this transaction.
    pub(crate) fn create_with(&self, path: &str, czxid: i64) {
        lock_ignoring_poison(&self.0.nodes).insert(path.to_owned(), czxid);
        self.tell(path.rsplit_once('/').map_or("", |(directory, _)| directory), WatchEvent::Changed);
    }

    fn tell(&self, path: &str, event: WatchEvent) {
        let watches = std::mem::take(&mut *lock_ignoring_poison(&self.0.watches));
        let (told, left): (Vec<_>, _) = watches.into_iter().partition(|(watched, _)| watched == path);
        *lock_ignoring_poison(&self.0.watches) = left;
        for (_, watch) in told {
            // Nobody may be listening any more.
            let _ = watch.send(event);
        }
    }

    fn watch(&self, path: &str) -> Pending<WatchEvent> {
        let (sender, receiver) = oneshot::channel();
        lock_ignoring_poison(&self.0.watches).push((path.to_owned(), sender));
        Box::pin(async { receiver.await.unwrap_or(WatchEvent::Changed) })
    }

    fn execute(&self, operation: &Operation) -> (Outcome, Option<Pending<WatchEvent>>) {
        let exists = |path: &String| lock_ignoring_poison(&self.0.nodes).contains_key(path);
        let created = |path: &String, czxid| {
            let name = path.rsplit('/').next().unwrap_or_default().to_owned();
            Node { name, origin: Some(Origin { czxid, session: SESSION }) }
        };
        let found = |is_there: bool| if is_there { Outcome::Done } else { Outcome::NoNode };
        match operation {
            Operation::Create(NewNode { directory, prefix, data }) => {
                let name = format!("{prefix}{:010}", self.next_number());
                let path = format!("{directory}/{name}");
                lock_ignoring_poison(&self.0.data).insert(path.clone(), data.clone());
                let czxid = self.create(&path);
                let origin = Some(Origin { czxid, session: SESSION });
                (Outcome::Created(vec![Node { name, origin }]), None)
            }
            Operation::CreateSingle { path, .. } => {
                (Outcome::Created(vec![created(path, self.create(path))]), None)
            }
            Operation::CreatePair { path, companion, .. } => {
                let czxid = self.create(companion);
                self.create_with(path, czxid);
                (Outcome::Created(vec![created(companion, czxid), created(path, czxid)]), None)
            }
            Operation::Inspect { path } => {
                let czxid = lock_ignoring_poison(&self.0.nodes).get(path).copied();
                let origin = czxid.map(|czxid| Origin { czxid, session: SESSION });
                (
                    origin.map_or(Outcome::NoNode, |_| Outcome::Found(Node { name: path.clone(), origin })),
                    None,
                )
            }
            Operation::DeletePair { path, companion } => {
                let are_there = exists(path) && exists(companion);
                (found(are_there && self.delete_node(companion) && self.delete_node(path)), None)
            }
            Operation::List { directory } => (Outcome::Children(self.children_of(directory)), None),
            Operation::ListMarked { directory, prefix, data } => {
                let is_own = |name: &String| {
                    let its = self.data(&format!("{directory}/{name}"));
                    name.starts_with(prefix) && have_one_mark(data, &its)
                };
                (Outcome::Children(self.children_of(directory).into_iter().filter(is_own).collect()), None)
            }
            Operation::ListAndWatch { directory } => {
                (Outcome::Children(self.children_of(directory)), Some(self.watch(directory)))
            }
            Operation::Watch { path } | Operation::WatchOwn { path } if exists(path) => {
                (Outcome::Done, Some(self.watch(path)))
            }
            Operation::Watch { .. } | Operation::WatchOwn { .. } => (Outcome::NoNode, None),
            Operation::Check { paths } => (found(paths.iter().all(exists)), None),
            Operation::Delete { .. } if self.0.refuses_deletions.load(Ordering::Relaxed) => {
                (Outcome::Refused(Refusal::Denied), None)
            }
            Operation::Delete { path } => (found(self.delete_node(path)), None),
            Operation::Barrier { .. } => (Outcome::Done, None),
            other => panic!("no test needs {other:?}"),
        }
    }

    fn is_unsure(&self) -> bool {
        let unsure = &mut *lock_ignoring_poison(&self.0.unsure);
        unsure.checked_sub(1).inspect(|left| *unsure = *left).is_some()
    }

    pub(crate) fn next_number(&self) -> i64 {
        lock_ignoring_poison(&self.0.nodes).values().max().copied().unwrap_or_default()
    }

    fn children_of(&self, directory: &str) -> Vec<String> {
        let nodes = self.nodes();
        let children =
            nodes.iter().filter_map(|path| path.rsplit_once('/')).filter(|(at, _)| *at == directory);
        children.map(|(_, name)| name.to_owned()).collect()
    }

    /// Returns the outcome of `act`; `unknown` if the connection is given up before the ensemble
    /// answers.
    fn answer<T: Send + 'static>(
        &self,
        unknown: T,
        act: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Pending<T> {
        let this = self.clone();
        Box::pin(async move {
            if *this.0.is_silent.borrow() {
                let _ = this.0.is_given_up.subscribe().wait_for(|given_up| *given_up).await;
                return unknown;
            }
            let answer = act(&this);
            let late = *lock_ignoring_poison(&this.0.late);
            if !late.is_zero() {
                clock::sleep(late).await;
            }
            answer
        })
    }
}

impl Ensemble for FakeEnsemble {
    fn send(&self, flight: Vec<Operation>) -> Pending<Landing> {
        *lock_ignoring_poison(&self.0.flights) += 1;
        let sent = clock::now();
        let unknown = Landing { sent, outcomes: vec![Outcome::Unknown; flight.len()], watch: None };
        self.answer(unknown, move |this| {
            if *this.0.has_ended.borrow() {
                return Landing { sent, outcomes: vec![Outcome::SessionOver; flight.len()], watch: None };
            }
            let creates = flight.iter().any(|it| matches!(it, Operation::Create(_)));
            let lost = if creates { lock_ignoring_poison(&this.0.lost).pop_front() } else { None };
            let unknown = || Landing { sent, outcomes: vec![Outcome::Unknown; flight.len()], watch: None };
            if lost == Some(false) {
                return unknown();
            }
            let mut watch = None;
            let mut execute = |operation| {
                let (outcome, watched) = this.execute(operation);
                watch = match (watch.take(), watched) {
                    (Some(first), Some(second)) => Some(either(first, second)),
                    (first, second) => first.or(second),
                };
                outcome
            };
            let outcomes = flight.iter().map(&mut execute).collect();
            if lost == Some(true) {
                return unknown();
            }
            Landing { sent, outcomes, watch }
        })
    }

    fn check(&self, nodes: Vec<HeldNode>) -> Pending<Check> {
        lock_ignoring_poison(&self.0.checks).push((clock::now(), nodes.len()));
        if self.is_unsure() {
            return Box::pin(std::future::ready(Check::Unknown));
        }
        self.answer(Check::Unknown, move |this| {
            let there = lock_ignoring_poison(&this.0.nodes);
            let is_there = |path: &str| path == "/" || there.contains_key(path);
            let missing = nodes.iter().enumerate().filter(|(_, node)| !is_there(&node.path));
            Check::Answered { missing: missing.map(|(index, _)| index).collect() }
        })
    }

    fn watch(&self, nodes: Vec<HeldNode>) -> Pending<Vec<Watch>> {
        let is_unsure = self.is_unsure();
        self.answer(Vec::new(), move |this| {
            let is_there = |path: &str| lock_ignoring_poison(&this.0.nodes).contains_key(path);
            let watch = |node: &HeldNode| {
                if is_there(&node.path) { Watch::There(this.watch(&node.path)) } else { Watch::Gone }
            };
            let mut watches: Vec<_> = nodes.iter().map(watch).collect();
            if is_unsure {
                watches.pop();
                watches.push(Watch::Unknown);
            }
            watches
        })
    }

    fn watch_queues(&self, directories: Vec<Arc<str>>) -> Pending<WatchedQueues> {
        self.answer(WatchedQueues::default(), move |this| {
            let children = directories.iter().map(|directory| Some(this.children_of(directory))).collect();
            WatchedQueues { children, watch: directories.first().map(|directory| this.watch(directory)) }
        })
    }

    fn commit(&self, guards: Vec<Arc<str>>, _: Vec<Write>) -> Pending<Result<Versions, Failure>> {
        self.answer(Err(Failure::Unknown), move |this| {
            let there = lock_ignoring_poison(&this.0.nodes);
            let is_held = guards.iter().all(|guard| there.contains_key(&**guard));
            if is_held { Ok(Vec::new()) } else { Err(Failure::GuardGone) }
        })
    }

    fn read(&self, path: Arc<str>) -> Pending<Result<Option<NodeData>, Failure>> {
        self.answer(Err(Failure::Unknown), move |this| {
            let is_there = lock_ignoring_poison(&this.0.nodes).contains_key(&*path);
            Ok(is_there.then(|| NodeData {
                data: path.as_bytes().to_vec(),
                version: 0,
                modified: SystemTime::UNIX_EPOCH,
            }))
        })
    }

    fn children(&self, _: Arc<str>) -> Pending<Result<Vec<Child>, Failure>> {
        self.answer(Err(Failure::Unknown), |_| Ok(Vec::new()))
    }

    fn shown(&self, directory: Arc<str>, name: String) -> Pending<Result<Option<Child>, Failure>> {
        self.answer(Err(Failure::Unknown), move |this| {
            let czxid = lock_ignoring_poison(&this.0.nodes).get(&format!("{directory}/{name}")).copied();
            let (data, session, created) = (Vec::new(), SESSION, SystemTime::UNIX_EPOCH);
            Ok(czxid.map(|czxid| Child { name, data, czxid, session, created }))
        })
    }

    fn look(&self, path: Arc<str>) -> Pending<Result<Option<NodeVersion>, Failure>> {
        self.answer(Err(Failure::Unknown), move |this| {
            let czxid = lock_ignoring_poison(&this.0.nodes).get(&*path).copied();
            Ok(czxid.map(|czxid| NodeVersion { czxid, mzxid: czxid, version: 0 }))
        })
    }

    /// No node has another version than 0.
    fn delete(&self, _: Arc<str>, version: Option<i32>) -> Pending<Result<Deletion, Failure>> {
        let is_other = version.is_some_and(|version| version != 0);
        self.answer(Err(Failure::Unknown), move |_| {
            Ok(if is_other { Deletion::Changed } else { Deletion::NotThere })
        })
    }

    fn child(&self, _: Arc<str>, _: String) -> Pending<Result<Option<Watched>, Failure>> {
        self.answer(Err(Failure::Unknown), |_| Ok(None))
    }

    fn creates_in_transactions(&self) -> bool {
        !self.0.is_old.load(Ordering::Relaxed)
    }

    fn give_up(&self) {
        self.0.is_given_up.send_replace(true);
    }

    fn is_open(&self) -> bool {
        !self.is_given_up()
    }
}
