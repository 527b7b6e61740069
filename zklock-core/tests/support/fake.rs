//! An ensemble for tests: one directory of nodes in memory. It answers at once, late, or not at all.

use crate::attempt::local_queue::LocalQueue;
use crate::base::clock::{self, virtual_clock};
use crate::base::failure::Failure;
use crate::base::owner::Owner;
use crate::base::sync::{Mutex, MutexGuard, lock_ignoring_poison};
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

/// Runs a test of an ensemble, on the virtual clock.
pub(crate) fn with_ensemble<T>(test: impl AsyncFnOnce(FakeEnsemble) -> T) -> T {
    virtual_clock::run(async { test(FakeEnsemble::new()).await })
}

/// Runs a test of a session of an ensemble.
pub(crate) fn with_session<T>(test: impl AsyncFnOnce(FakeEnsemble, Arc<Session>) -> T) -> T {
    with_ensemble(async |ensemble| {
        let session = ensemble.session();
        test(ensemble, session).await
    })
}

/// Runs a test of a hold in a session of an ensemble.
pub(crate) fn with_hold<T>(test: impl AsyncFnOnce(FakeEnsemble, Arc<Session>, Hold) -> T) -> T {
    with_session(async |ensemble, session| {
        let hold = ensemble.hold(&session, "/a", Owner::unique());
        test(ensemble, session, hold).await
    })
}

/// A handle to the ensemble, which is also the connection of its one session.
#[derive(Clone)]
pub(crate) struct FakeEnsemble {
    state: Arc<Mutex<State>>,
    is_given_up: Arc<watch::Sender<bool>>,
}

#[derive(Default)]
struct State {
    /// The nodes by path, each with the transaction that created it.
    nodes: BTreeMap<String, i64>,
    /// The data of the nodes that it was asked to create, by path.
    data: BTreeMap<String, Arc<[u8]>>,
    /// What becomes of the next flights that create a node, whose replies are lost: whether they are executed.
    lost: VecDeque<bool>,
    watches: Vec<(String, oneshot::Sender<WatchEvent>)>,
    /// When each check came, and how many nodes it named.
    checks: Vec<(Moment, usize)>,
    flights: usize,
    /// How many of the next checks get an unknown outcome.
    unsure: usize,
    /// How late its answers are.
    late: Duration,
    refuses_deletions: bool,
    is_old: bool,
    is_silent: bool,
    has_ended: bool,
}

impl FakeEnsemble {
    pub(crate) fn new() -> Self {
        Self { state: Arc::new(Mutex::new(State::default())), is_given_up: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock_ignoring_poison(&self.state)
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
        self.state().unsure = checks;
    }

    /// Loses the replies to the next flights that create a node, one for each of these. It says whether the flight is executed.
    pub(crate) fn lose_creations(&self, executed: &[bool]) {
        self.state().lost.extend(executed);
    }

    /// Returns the data of a node that it was asked to create.
    pub(crate) fn data(&self, path: &str) -> Arc<[u8]> {
        self.state().data_of(path)
    }

    /// From now on, does at once what it is asked to do, and answers this much later.
    pub(crate) fn answer_late(&self, late: Duration) {
        self.state().late = late;
    }

    /// Refuses all deletions, as access lists may.
    pub(crate) fn refuse_deletions(&self) {
        self.state().refuses_deletions = true;
    }

    /// Creates nothing in transactions, like servers of version 3.4.
    pub(crate) fn be_old(&self) {
        self.state().is_old = true;
    }

    /// Stops answering, and stops doing anything.
    pub(crate) fn fall_silent(&self) {
        self.state().is_silent = true;
    }

    /// Ends its session. The library does not notice, but answers to requests say so.
    pub(crate) fn end_session(&self) {
        self.state().has_ended = true;
    }

    pub(crate) fn nodes(&self) -> Vec<String> {
        self.state().nodes.keys().cloned().collect()
    }

    /// Returns how many flights have been sent.
    pub(crate) fn flights(&self) -> usize {
        self.state().flights
    }

    /// Returns how many watches are listened to.
    pub(crate) fn watches(&self) -> usize {
        self.state().watches.iter().filter(|(_, watch)| !watch.is_closed()).count()
    }

    /// Returns when the nodes of holds were checked.
    pub(crate) fn checks(&self) -> Vec<Moment> {
        self.state().checks.iter().map(|(when, _)| *when).collect()
    }

    /// Returns how many nodes were checked each time.
    pub(crate) fn checked(&self) -> Vec<usize> {
        self.state().checks.iter().map(|(_, nodes)| *nodes).collect()
    }

    /// Deletes a node, as an operator may; `false` if it does not exist.
    pub(crate) fn delete_node(&self, path: &str) -> bool {
        self.state().delete(path)
    }

    pub(crate) fn create(&self, path: &str) -> i64 {
        self.state().create(path)
    }

    /// Creates a node, as this transaction.
    pub(crate) fn create_with(&self, path: &str, czxid: i64) {
        self.state().create_with(path, czxid);
    }

    pub(crate) fn next_number(&self) -> i64 {
        self.state().last()
    }

    /// Returns the outcome of `act`; `unknown` if the connection is given up before the ensemble
    /// answers.
    fn answer<T: Send + 'static>(
        &self,
        unknown: T,
        act: impl FnOnce(&mut State) -> T + Send + 'static,
    ) -> Pending<T> {
        let this = self.clone();
        Box::pin(async move {
            if this.state().is_silent {
                let _ = this.is_given_up.subscribe().wait_for(|given_up| *given_up).await;
                return unknown;
            }
            let (answer, late) = {
                let mut state = this.state();
                (act(&mut state), state.late)
            };
            if !late.is_zero() {
                clock::sleep(late).await;
            }
            answer
        })
    }

    /// The same for a request that may fail.
    fn result<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut State) -> Result<T, Failure> + Send + 'static,
    ) -> Pending<Result<T, Failure>> {
        self.answer(Err(Failure::Unknown), act)
    }
}

impl State {
    fn data_of(&self, path: &str) -> Arc<[u8]> {
        self.data.get(path).cloned().unwrap_or_default()
    }

    /// The last transaction.
    fn last(&self) -> i64 {
        self.nodes.values().max().copied().unwrap_or_default()
    }

    fn create(&mut self, path: &str) -> i64 {
        let czxid = self.last() + 1;
        self.create_with(path, czxid);
        czxid
    }

    fn create_with(&mut self, path: &str, czxid: i64) {
        self.nodes.insert(path.to_owned(), czxid);
        self.tell(parts(path).0, WatchEvent::Changed);
    }

    fn delete(&mut self, path: &str) -> bool {
        let is_there = self.nodes.remove(path).is_some();
        if is_there {
            self.tell(path, WatchEvent::Deleted);
            self.tell(parts(path).0, WatchEvent::Changed);
        }
        is_there
    }

    fn tell(&mut self, path: &str, event: WatchEvent) {
        let watches = std::mem::take(&mut self.watches);
        let (told, left): (Vec<_>, _) = watches.into_iter().partition(|(watched, _)| watched == path);
        self.watches = left;
        for (_, watch) in told {
            // Nobody may be listening any more.
            let _ = watch.send(event);
        }
    }

    fn watch(&mut self, path: &str) -> Pending<WatchEvent> {
        let (sender, receiver) = oneshot::channel();
        self.watches.push((path.to_owned(), sender));
        Box::pin(async { receiver.await.unwrap_or(WatchEvent::Changed) })
    }

    fn children_of(&self, directory: &str) -> Vec<String> {
        let children = self.nodes.keys().map(|path| parts(path)).filter(|(above, _)| *above == directory);
        children.map(|(_, name)| name.to_owned()).collect()
    }

    fn execute(&mut self, operation: &Operation) -> (Outcome, Option<Pending<WatchEvent>>) {
        let found = |is_there: bool| if is_there { Outcome::Done } else { Outcome::NoNode };
        let outcome = match operation {
            Operation::Create(NewNode { directory, prefix, data }) => {
                let path = format!("{directory}/{prefix}{:010}", self.last());
                self.data.insert(path.clone(), data.clone());
                let czxid = self.create(&path);
                Outcome::Created(vec![node(&path, czxid)])
            }
            Operation::CreateSingle { path, .. } => Outcome::Created(vec![node(path, self.create(path))]),
            Operation::CreatePair { path, companion, .. } => {
                let czxid = self.create(companion);
                self.create_with(path, czxid);
                Outcome::Created(vec![node(companion, czxid), node(path, czxid)])
            }
            Operation::Inspect { path } => match self.nodes.get(path) {
                Some(czxid) => Outcome::Found(Node { name: path.clone(), ..node(path, *czxid) }),
                None => Outcome::NoNode,
            },
            Operation::DeletePair { path, companion } => {
                let are_there = [path, companion].iter().all(|path| self.nodes.contains_key(*path));
                found(are_there && self.delete(companion) && self.delete(path))
            }
            Operation::List { directory } => Outcome::Children(self.children_of(directory)),
            Operation::ListMarked { directory, prefix, data } => {
                let is_own = |name: &String| {
                    let its = self.data_of(&format!("{directory}/{name}"));
                    name.starts_with(prefix) && have_one_mark(data, &its)
                };
                Outcome::Children(self.children_of(directory).into_iter().filter(is_own).collect())
            }
            Operation::ListAndWatch { directory } => {
                return (Outcome::Children(self.children_of(directory)), Some(self.watch(directory)));
            }
            Operation::Watch { path } | Operation::WatchOwn { path } if self.nodes.contains_key(path) => {
                return (Outcome::Done, Some(self.watch(path)));
            }
            Operation::Watch { .. } | Operation::WatchOwn { .. } => Outcome::NoNode,
            Operation::Check { paths } => found(paths.iter().all(|path| self.nodes.contains_key(path))),
            Operation::Delete { .. } if self.refuses_deletions => Outcome::Refused(Refusal::Denied),
            Operation::Delete { path } => found(self.delete(path)),
            Operation::Barrier { .. } => Outcome::Done,
            other => panic!("no test needs {other:?}"),
        };
        (outcome, None)
    }

    fn is_unsure(&mut self) -> bool {
        let is_unsure = self.unsure > 0;
        self.unsure = self.unsure.saturating_sub(1);
        is_unsure
    }
}

/// The path of the node above, and the name.
fn parts(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or_default()
}

fn node(path: &str, czxid: i64) -> Node {
    Node { name: parts(path).1.to_owned(), origin: Some(Origin { czxid, session: SESSION }) }
}

impl Ensemble for FakeEnsemble {
    fn send(&self, flight: Vec<Operation>) -> Pending<Landing> {
        self.state().flights += 1;
        let sent = clock::now();
        let all =
            move |outcome: Outcome, count| Landing { sent, outcomes: vec![outcome; count], watch: None };
        self.answer(all(Outcome::Unknown, flight.len()), move |state| {
            if state.has_ended {
                return all(Outcome::SessionOver, flight.len());
            }
            let creates = flight.iter().any(|it| matches!(it, Operation::Create(_)));
            let lost = if creates { state.lost.pop_front() } else { None };
            if lost == Some(false) {
                return all(Outcome::Unknown, flight.len());
            }
            let (outcomes, watches): (Vec<_>, Vec<_>) = flight.iter().map(|it| state.execute(it)).unzip();
            if lost == Some(true) {
                return all(Outcome::Unknown, flight.len());
            }
            Landing { sent, outcomes, watch: watches.into_iter().flatten().reduce(either) }
        })
    }

    fn check(&self, nodes: Vec<HeldNode>) -> Pending<Check> {
        let mut state = self.state();
        state.checks.push((clock::now(), nodes.len()));
        if state.is_unsure() {
            return Box::pin(std::future::ready(Check::Unknown));
        }
        self.answer(Check::Unknown, move |state| {
            let is_there = |path: &str| path == "/" || state.nodes.contains_key(path);
            let missing = nodes.iter().enumerate().filter(|(_, node)| !is_there(&node.path));
            Check::Answered { missing: missing.map(|(index, _)| index).collect() }
        })
    }

    fn watch(&self, nodes: Vec<HeldNode>) -> Pending<Vec<Watch>> {
        let is_unsure = self.state().is_unsure();
        self.answer(Vec::new(), move |state| {
            let watch = |node: &HeldNode| match state.nodes.contains_key(&*node.path) {
                true => Watch::There(state.watch(&node.path)),
                false => Watch::Gone,
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
        self.answer(WatchedQueues::default(), move |state| {
            let children = directories.iter().map(|directory| Some(state.children_of(directory))).collect();
            WatchedQueues { children, watch: directories.first().map(|directory| state.watch(directory)) }
        })
    }

    fn commit(&self, guards: Vec<Arc<str>>, _: Vec<Write>) -> Pending<Result<Versions, Failure>> {
        self.result(move |state| {
            let is_held = guards.iter().all(|guard| state.nodes.contains_key(&**guard));
            if is_held { Ok(Vec::new()) } else { Err(Failure::GuardGone) }
        })
    }

    fn read(&self, path: Arc<str>) -> Pending<Result<Option<NodeData>, Failure>> {
        self.result(move |state| {
            let (data, modified) = (path.as_bytes().to_vec(), SystemTime::UNIX_EPOCH);
            Ok(state.nodes.get(&*path).map(|_| NodeData { data, version: 0, modified }))
        })
    }

    fn children(&self, _: Arc<str>) -> Pending<Result<Vec<Child>, Failure>> {
        self.result(|_| Ok(Vec::new()))
    }

    fn shown(&self, directory: Arc<str>, name: String) -> Pending<Result<Option<Child>, Failure>> {
        self.result(move |state| {
            let czxid = state.nodes.get(&format!("{directory}/{name}")).copied();
            let (data, session, created) = (Vec::new(), SESSION, SystemTime::UNIX_EPOCH);
            Ok(czxid.map(|czxid| Child { name, data, czxid, session, created }))
        })
    }

    fn look(&self, path: Arc<str>) -> Pending<Result<Option<NodeVersion>, Failure>> {
        self.result(move |state| {
            let czxid = state.nodes.get(&*path).copied();
            Ok(czxid.map(|czxid| NodeVersion { czxid, mzxid: czxid, version: 0 }))
        })
    }

    /// No node has another version than 0.
    fn delete(&self, _: Arc<str>, version: Option<i32>) -> Pending<Result<Deletion, Failure>> {
        let is_other = version.is_some_and(|version| version != 0);
        self.result(move |_| Ok(if is_other { Deletion::Changed } else { Deletion::NotThere }))
    }

    fn child(&self, _: Arc<str>, _: String) -> Pending<Result<Option<Watched>, Failure>> {
        self.result(|_| Ok(None))
    }

    fn creates_in_transactions(&self) -> bool {
        !self.state().is_old
    }

    fn give_up(&self) {
        self.is_given_up.send_replace(true);
    }

    fn is_open(&self) -> bool {
        !*self.is_given_up.borrow()
    }
}
