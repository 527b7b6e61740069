//! Runs one contender against the ensemble, and owns its nodes until they are gone.
//!
//! The driver is a task's, never a caller's: a caller waits for an answer and may go away at any
//! moment. So no await point of a caller can leak a node.

use crate::clock;
use crate::ensemble::{Landing, Pending};
use crate::error::{Error, ErrorKind, LossReason};
use crate::guard;
use crate::machine::Moment;
use crate::machine::claim::Claim;
use crate::machine::contender::Contender;
use crate::machine::exchange::{Operation, Outcome, Patience, Refusal, Verdict, WatchEvent};
use crate::machine::name::Scheme;
use crate::pool::Slot;
use crate::session::{Holding, Link, Looking, Marked, Session, Status};
use crate::stats::Progress;
use std::future::{pending, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use tokio::sync::watch;

pub(crate) struct Driver {
    contender: Contender,
    claims: Arc<[Claim]>,
    /// The lock, as messages name it.
    path: Arc<str>,
    progress: Arc<Progress>,
    place: Place,
    at_work: Option<AtWork>,
    /// Whether the node of a hold may be another's, once it has been deleted.
    shares_its_name: bool,
    /// The nodes that stand for a hold.
    held: Vec<Arc<str>>,
    /// What became of the first try to delete them.
    first_delete: Option<Outcome>,
}

/// A session, and what is under way in it.
struct AtWork {
    session: Arc<Session>,
    marked: Marked,
    link: watch::Receiver<Link>,
    flight: Option<Pending<Landing>>,
    /// The nodes that the flight is to delete.
    deleting: Vec<Option<String>>,
    looking: Option<Looking>,
    watch: Option<Pending<WatchEvent>>,
}

/// Where an attempt gets its session from.
enum Place {
    /// One after the other.
    Slot(Arc<Slot>),
    /// No other than that of the hold within which it is.
    Session(Arc<Session>),
}

/// A granted lock.
pub(crate) struct Entry {
    pub(crate) session: Arc<Session>,
    pub(crate) holding: Arc<Holding>,
    pub(crate) czxid: i64,
}

/// How an attempt to enter ended without a grant.
pub(crate) enum Turned {
    /// The caller went away. The attempt goes on until it [leaves](Driver::leave).
    Away,
    /// Somebody else holds the lock, and the attempt was not to wait.
    Busy,
    Failed(Error),
}

impl Driver {
    pub(crate) fn new(
        claims: Vec<Claim>,
        patience: Patience,
        path: Arc<str>,
        progress: Arc<Progress>,
        slot: Arc<Slot>,
    ) -> Self {
        Self::at(Place::Slot(slot), claims, patience, path, progress)
    }

    /// An attempt within a hold of this session, which is granted at once unless something is where it cannot be.
    pub(crate) fn within(
        session: Arc<Session>,
        claim: Claim,
        path: Arc<str>,
        progress: Arc<Progress>,
    ) -> Self {
        Self::at(Place::Session(session), vec![claim], Patience::Waits, path, progress)
    }

    fn at(
        place: Place,
        claims: Vec<Claim>,
        patience: Patience,
        path: Arc<str>,
        progress: Arc<Progress>,
    ) -> Self {
        let shares_its_name = claims.iter().any(|claim| claim.scheme == Scheme::Single);
        let contender = Contender::new(claims.clone(), patience);
        let (at_work, held, first_delete) = (None, Vec::new(), None);
        let claims = claims.into();
        Self { contender, claims, path, progress, place, at_work, shares_its_name, held, first_delete }
    }

    /// Queues and waits until the lock is held, as long as `gone` does not come to its end. Then it may be called again,
    /// for another who takes over the place.
    pub(crate) async fn enter(&mut self, gone: impl Future<Output = ()>) -> Result<Entry, Turned> {
        let mut gone = pin!(gone);
        loop {
            match self.contender.poll_verdict() {
                Some(Verdict::Granted { nodes, czxid, proven }) => {
                    if let Some(entry) = self.granted(nodes, czxid, proven) {
                        // It makes way for others before its caller can do anything that depends on it.
                        self.send_next().await;
                        return Ok(entry);
                    }
                }
                Some(Verdict::Failed(refusal)) => {
                    self.send_next().await;
                    return Err(self.turned(refusal));
                }
                None => {}
            }
            tokio::select! {
                biased;
                () = &mut gone => return Err(Turned::Away),
                stepped = self.step() => if let Err(error) = stepped {
                    self.contender.handle_end();
                    return Err(Turned::Failed(error));
                }
            }
        }
    }

    /// From now on the attempt is that of another caller.
    pub(crate) fn serve(&mut self, progress: Arc<Progress>) {
        progress.set_behind_others(self.contender.is_waiting());
        self.progress = progress;
    }

    /// Begins to leave. Its node's deletion is on its way when this returns, unless something else has to be answered
    /// before: so whoever begins after it in the same session is behind nobody on account of it.
    pub(crate) async fn withdraw(&mut self) {
        self.contender.handle_end();
        self.send_next().await;
    }

    /// Sees the attempt through until its node is gone.
    pub(crate) async fn leave(&mut self, holding: Option<&Arc<Holding>>) {
        self.progress.owe();
        self.contender.handle_end();
        if let Some(work) = &mut self.at_work {
            work.watch = None;
        }
        while !self.contender.is_gone() && self.step().await.is_ok() {
            if let (Some(holding), Some(Outcome::Refused(_))) = (holding, &self.first_delete) {
                holding.refuse();
            }
        }
        self.progress.settle();
        if let Some(holding) = holding {
            self.close(holding);
        }
    }

    /// Stays until the hold has come to its end.
    pub(crate) async fn stay(&mut self, holding: &Arc<Holding>) {
        let Some(session) = self.at_work.as_ref().map(|work| work.session.clone()) else { return };
        let mut guard = pin!(guard::stranger(session.clone(), self.claims.clone(), holding.clone()));
        let mut status = holding.watch();
        while !self.contender.is_gone() && *status.borrow_and_update() == Status::Held {
            tokio::select! {
                _ = status.changed() => {}
                name = &mut guard => {
                    tracing::warn!(path = &*self.path, name, "a contender has come that cannot see the hold");
                    session.lose(holding, LossReason::ForeignContender);
                }
                // Without a client there is no session, and the hold has been told.
                stepped = self.step() => if stepped.is_err() { break }
            }
        }
    }

    /// Tells what became of the hold, now that its node is gone.
    fn close(&self, holding: &Holding) {
        let over = match self.at_work.as_ref().map(|work| *work.link.borrow()) {
            Some(Link::Over(reason)) => Some(reason),
            _ => None,
        };
        holding.end(self.first_delete.as_ref(), over);
    }

    fn granted(&mut self, nodes: Vec<String>, czxid: i64, proven: Moment) -> Option<Entry> {
        let session = self.at_work.as_ref()?.session.clone();
        self.held = nodes.into_iter().map(Arc::from).collect();
        let holding = session.register(self.held.clone(), self.shares_its_name.then_some(czxid), proven);
        Some(Entry { session, holding, czxid })
    }

    fn turned(&self, refusal: Refusal) -> Turned {
        let path = &self.path;
        let (kind, message) = match refusal {
            Refusal::Busy => return Turned::Busy,
            Refusal::ForeignContender(name) => (
                ErrorKind::ForeignContender,
                format!(
                    "the lock {path} has the contender {name}, which cannot see contenders like ours: both could hold at once; \
                     let both sides use one dialect and one kind of lock (kazoo: Lock(..., extra_lock_patterns=[\"-lock-\"]), \
                     and its Semaphore at another path), or tell the lock to go ahead if it is certain that they see ours"
                ),
            ),
            Refusal::NotOurs(name) => (
                ErrorKind::Refused,
                format!("the node {name} of {path} bears our mark but belongs to another session"),
            ),
            Refusal::WriterGone => (
                ErrorKind::Lost(self.loss()),
                format!("the write side of {path} is lost, within which its read side was to be taken"),
            ),
            Refusal::NoParent => (
                ErrorKind::Refused,
                format!("the node {path} vanishes whenever it is created: something deletes it in a loop"),
            ),
            Refusal::UsedUp(directory) => (
                ErrorKind::Refused,
                format!(
                    "the sequence numbers of {directory} are used up, after 2³¹ contenders: names repeat there, and two \
                     could hold the lock {path}; delete that node when nobody uses the lock, it is created anew then"
                ),
            ),
            Refusal::NoRoot => (
                ErrorKind::Refused,
                format!("{path} cannot be created: the chroot does not exist; create it first"),
            ),
            Refusal::Denied => (
                ErrorKind::Refused,
                format!(
                    "the access list of {path} or of a node above it does not allow it: ask for create and delete"
                ),
            ),
            Refusal::Answer(answer) => {
                (ErrorKind::Refused, format!("the server refused the lock {path}: {answer}"))
            }
        };
        Turned::Failed(Error::new(kind, message))
    }

    /// Waits for the next thing that happens to the attempt, and tells the machine. May be dropped
    /// at any moment.
    async fn step(&mut self) -> Result<(), Error> {
        if self.contender.is_idle() {
            let session = match &self.place {
                Place::Slot(slot) => slot.session().await?,
                Place::Session(session) => session.clone(),
            };
            let marked = session.begin_attempt(&self.claims);
            self.contender.handle_session(session.id(), session.heartbeat(), marked.mark());
            self.at_work = Some(AtWork {
                link: session.link(),
                session,
                marked,
                flight: None,
                deleting: Vec::new(),
                looking: None,
                watch: None,
            });
        }
        let Some(work) = &mut self.at_work else { return Ok(()) };
        if work.session.is_over() {
            work.flight = None;
            work.watch = None;
            self.contender.handle_session_over();
            return Ok(());
        }
        work.take_up(&mut self.contender);
        let timeout = self.contender.poll_timeout();
        tokio::select! {
            biased;
            // What it changed to is looked at in the next step.
            _ = work.link.changed() => {}
            landing = optional(&mut work.flight) => {
                work.flight = None;
                self.landed(landing);
            }
            event = optional(&mut work.watch) => {
                work.watch = None;
                self.contender.handle_watch(event, work.session.now());
            }
            () = until(timeout) => self.contender.handle_timeout(clock::now()),
        }
        self.progress.set_behind_others(self.contender.is_waiting());
        Ok(())
    }

    /// Sends what is to be sent, if anything is, without waiting for it.
    async fn send_next(&mut self) {
        let Some(work) = &mut self.at_work else { return };
        work.take_up(&mut self.contender);
        // It comes to be sent when it is polled for the first time.
        poll_fn(|context| {
            if let Some(flight) = &mut work.flight {
                if let Poll::Ready(landing) = flight.as_mut().poll(context) {
                    work.flight = Some(Box::pin(async { landing }));
                }
            }
            Poll::Ready(())
        })
        .await;
    }

    /// Why the session of the hold is lost, or its node, within which an attempt was to be.
    fn loss(&self) -> LossReason {
        match self.at_work.as_ref().map(|work| *work.link.borrow()) {
            Some(Link::Over(reason)) => reason,
            _ => LossReason::NodeDeleted,
        }
    }

    fn landed(&mut self, landing: Landing) {
        let Some(work) = &mut self.at_work else { return };
        if landing.watch.is_some() {
            work.watch = landing.watch;
        }
        if self.first_delete.is_none() {
            let deleted = work.deleting.iter().zip(&landing.outcomes);
            let of_hold = deleted.filter(|(path, _)| {
                path.as_ref().is_some_and(|path| self.held.iter().any(|node| **node == **path))
            });
            self.first_delete = of_hold.map(|(_, outcome)| outcome).max_by_key(|it| telling(it)).cloned();
        }
        if let Some(looking) = work.looking.take() {
            looking.heal(&landing.outcomes);
        }
        self.contender.handle_replies(landing.outcomes, landing.sent, work.session.now());
    }
}

impl AtWork {
    /// What is sent while there is no connection would wait without limit, and run even if by then
    /// nobody wants it.
    fn take_up(&mut self, contender: &mut Contender) {
        if self.flight.is_none() && self.session.is_connected() {
            if let Some(flight) = contender.poll_flight() {
                // What it tells would be of something that is not waited for any more.
                self.watch = None;
                self.marked.use_mark(contender.mark());
                self.deleting = flight.iter().map(deleted_by).collect();
                self.looking = self.session.look_for_orphans(&flight);
                self.flight = Some(Box::pin(self.session.clone().send(flight)));
            }
        }
    }
}

fn deleted_by(operation: &Operation) -> Option<String> {
    if let Operation::Delete { path } = operation { Some(path.clone()) } else { None }
}

/// How much the deletion of one node says of a hold that has several.
fn telling(outcome: &Outcome) -> u8 {
    match outcome {
        Outcome::NoNode => 3,
        Outcome::Refused(_) => 2,
        Outcome::Done => 0,
        _ => 1,
    }
}

async fn optional<T>(future: &mut Option<Pending<T>>) -> T {
    match future {
        Some(future) => future.await,
        None => pending().await,
    }
}

async fn until(moment: Option<Moment>) {
    match moment {
        Some(moment) => clock::sleep_until(moment).await,
        None => pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ensemble::{
        Check, Child, Deletion, Ensemble, HeldNode, NodeData, ReadFailure, Seen, Versions, Watched, Write,
        WriteFailure,
    };
    use crate::pool::Stage;
    use std::time::Duration;

    /// An ensemble that ended the session, while the library has not noticed.
    struct Ended;

    impl Ensemble for Ended {
        fn send(&self, _: Vec<Operation>) -> Pending<Landing> {
            let landing = Landing { sent: clock::now(), outcomes: vec![Outcome::SessionOver], watch: None };
            Box::pin(async { landing })
        }

        fn check(&self, _: Vec<HeldNode>) -> Pending<Check> {
            Box::pin(async { Check::SessionOver })
        }

        fn commit(&self, _: Vec<Arc<str>>, _: Vec<Write>) -> Pending<Result<Versions, WriteFailure>> {
            Box::pin(async { Err(WriteFailure::SessionOver) })
        }

        fn read(&self, _: Arc<str>) -> Pending<Result<Option<NodeData>, ReadFailure>> {
            Box::pin(async { Err(ReadFailure::SessionOver) })
        }

        fn children(&self, _: Arc<str>) -> Pending<Result<Vec<Child>, ReadFailure>> {
            Box::pin(async { Err(ReadFailure::SessionOver) })
        }

        fn look(&self, _: Arc<str>) -> Pending<Result<Option<Seen>, ReadFailure>> {
            Box::pin(async { Err(ReadFailure::SessionOver) })
        }

        fn delete(&self, _: Arc<str>, _: i32) -> Pending<Result<Deletion, ReadFailure>> {
            Box::pin(async { Err(ReadFailure::SessionOver) })
        }

        fn child(&self, _: Arc<str>, _: String) -> Pending<Result<Option<Watched>, ReadFailure>> {
            Box::pin(async { Err(ReadFailure::SessionOver) })
        }
    }

    /// Trying again and again, without ever waiting, would keep the one who can tell from running.
    #[test]
    fn a_session_that_an_answer_calls_over_is_not_tried_again() {
        let (done, finished) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            runtime.block_on(async {
                let session = Session::new(Arc::new(Ended), 7, Duration::from_secs(10), clock::now());
                let slot = Arc::new(Slot::new(Stage::Open(session.clone())));
                let progress = Progress::new(&Arc::default());
                let claims = vec![Claim::new("/a", Scheme::Mutex)];
                let mut driver = Driver::new(claims, Patience::Waits, "/a".into(), progress, slot);
                let waits = clock::timeout(Duration::from_millis(20), driver.enter(pending()));
                assert!(waits.await.is_err());
                assert!(session.is_over());
                driver.leave(None).await;
            });
            done.send(()).unwrap();
        });
        finished.recv_timeout(Duration::from_secs(10)).unwrap();
    }
}
