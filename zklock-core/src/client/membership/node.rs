//! The node of one member in one session, and the steps that lead from its creation to its deletion.

use crate::attempt::members::Members;
use crate::base::clock;
use crate::base::debt::Debt;
use crate::base::error::{Error, ErrorKind, LossReason};
use crate::base::failure::Failure;
use crate::client::member::lost;
use crate::connect::level::Newer;
use crate::machine::barrier::{self, BarrierChild, Entrance, Others, READY, Ready};
use crate::machine::name::Uuid;
use crate::machine::protocol::{self, Operation, Outcome, Patience, Refusal, WatchEvent};
use crate::session::ask::MOMENT;
use crate::session::session::Session;
use crate::zookeeper::ensemble::{NodeVersion, Pending, either, text_of};
use std::collections::BTreeSet;
use std::future::pending;
use std::sync::Arc;

/// How many times `ready` or the directory may come and go while the member enters: the server may reap an empty container, and
/// others may be faster, but not for ever.
const AGAIN_AT_MOST: u32 = 16;

/// The number of heartbeats in a session timeout.
const HEARTBEATS: u32 = 10;

pub(super) struct Node {
    pub(super) session: Arc<Session>,
    directory: Arc<str>,
    /// Its data, and that of `ready` if it opens the barrier.
    data: Arc<[u8]>,
    known: Arc<Members>,
    debt: Arc<Debt>,
    pub(super) others: Others,
    mark: Uuid,
    name: Arc<str>,
    is_created: bool,
    /// The transaction that created it, if the server said so.
    czxid: Option<i64>,
    /// Whether there may be something to delete.
    pub(super) may_exist: bool,
    /// Whether the server may lag behind what we know or did.
    in_doubt: bool,
    pub(super) watch: Option<Pending<WatchEvent>>,
}

impl Node {
    pub(super) fn new(
        session: Arc<Session>,
        directory: Arc<str>,
        data: Arc<[u8]>,
        known: Arc<Members>,
        debt: Arc<Debt>,
        others: Others,
    ) -> Self {
        let mark = session.attempts().begin();
        let name: Arc<str> = mark.to_string().into();
        known.note(&name, &debt);
        Self {
            session,
            directory,
            data,
            known,
            debt,
            others,
            mark,
            name,
            is_created: false,
            czxid: None,
            may_exist: false,
            in_doubt: false,
            watch: None,
        }
    }

    /// Takes another name, because the node was deleted. Others may wait for the end of the old one, and must not wait for a
    /// member of the next round.
    fn rename(&mut self) {
        let next = self.mark.next();
        self.session.attempts().renew(self.mark, next);
        self.known.forget(&self.name);
        (self.mark, self.name) = (next, next.to_string().into());
        self.known.note(&self.name, &self.debt);
        (self.is_created, self.may_exist, self.czxid) = (false, false, None);
    }

    /// Looks whether a creation that had no answer made the node. If it is not there, it may have been, and was deleted.
    async fn find(&mut self) -> Result<(), Failure> {
        let directory = self.directory.clone();
        let flight = vec![Operation::Barrier { directory: directory.clone() }, Operation::List { directory }];
        let children = listed(certain(self.send(flight).await?)?.pop())?;
        if children.iter().any(|child| **child == *self.name) {
            self.is_created = true;
        } else {
            self.rename();
        }
        Ok(())
    }

    fn path_of(&self, name: &str) -> String {
        format!("{}/{name}", self.directory)
    }

    pub(super) fn path(&self) -> String {
        self.path_of(&self.name)
    }

    pub(super) fn failed(&self, failure: &Failure) -> Error {
        let path = &self.directory;
        match failure {
            Failure::SessionOver => lost(self.session.loss().unwrap_or(LossReason::SessionExpired), path),
            why => Error::new(ErrorKind::Refused, format!("the server refused the barrier {path}: {why}")),
        }
    }

    /// Sends requests back to back, as soon as there is a connection: without one, they would wait without limit, and still run
    /// when nobody wants them any more. A flight that is dropped is not overtaken: what follows goes the same way, and a
    /// session that meets a node of its own that nobody knows deletes it.
    async fn send(&mut self, flight: Vec<Operation>) -> Result<Vec<Outcome>, Failure> {
        self.session.connected().await;
        if self.session.is_over() {
            return Err(Failure::SessionOver);
        }
        let landing = self.session.send_for_attempt(flight).await;
        self.watch = match (self.watch.take(), landing.watch) {
            (Some(earlier), Some(new)) => Some(either(earlier, new)),
            (earlier, new) => earlier.or(new),
        };
        let is_over = landing.outcomes.contains(&Outcome::SessionOver);
        if is_over { Err(Failure::SessionOver) } else { Ok(landing.outcomes) }
    }

    async fn ask(&mut self, operation: Operation) -> Result<Outcome, Failure> {
        let outcomes = certain(self.send(vec![operation]).await?)?;
        Ok(outcomes.into_iter().next().unwrap_or(Outcome::Unknown))
    }

    /// Lists all children, each with the transaction that created it.
    async fn survey(&mut self) -> Result<Vec<protocol::Node>, Failure> {
        match self.ask(Operation::Survey { directory: self.directory.clone() }).await? {
            Outcome::Surveyed(nodes) => Ok(nodes),
            _ => Err(Failure::Unknown),
        }
    }

    /// Waits until what was looked at changes, or the connection ends, but no longer than a session timeout: an operator may
    /// delete our node, which no watch reports, and a notification may be lost.
    async fn changed(&mut self) {
        let watch = self.watch.take().unwrap_or_else(|| Box::pin(pending()));
        let _ = clock::timeout(self.session.heartbeat() * HEARTBEATS, watch).await;
    }

    /// Waits until the barrier is open. Returns `false` if it is not, and the member does not want to wait.
    pub(super) async fn enter(&mut self, members: usize, patience: Patience) -> Result<bool, Failure> {
        let mut again = 0;
        loop {
            let tried = self.try_to_enter(members).await;
            self.in_doubt = tried.is_err();
            match tried {
                Ok(Some(entered)) => {
                    self.others.entered = entered;
                    return Ok(true);
                }
                Ok(None) if patience == Patience::TriesOnce => return Ok(false),
                Ok(None) => self.changed().await,
                Err(Failure::Unknown) => clock::sleep(MOMENT).await,
                Err(Failure::TryAgain(_)) if again < AGAIN_AT_MOST => again += 1,
                Err(Failure::TryAgain(problem)) => return Err(Failure::Refused(problem)),
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Enters if the barrier is open, or can be opened, and returns the others that have entered. `None` if some have to come
    /// first.
    async fn try_to_enter(&mut self, members: usize) -> Result<Option<BTreeSet<String>>, Failure> {
        let (children, opened) = self.come().await?;
        let is_newer = opened.is_some_and(|opened| self.czxid.is_some_and(|czxid| opened > czxid));
        let mut nodes = if opened.is_none() || is_newer { Vec::new() } else { self.survey().await? };
        nodes.retain(|node| self.is_there(&node.name));
        let seen = seen(&nodes);
        let ready = match opened {
            None => Ready::Missing,
            Some(_) if is_newer => Ready::Newer,
            Some(_) => Ready::of(&seen, &self.name),
        };
        let others = names(barrier::others(&children, &self.name));
        match barrier::entrance(&children, &self.name, members, ready) {
            // An operator has deleted it.
            Entrance::Absent => {
                self.rename();
                Err(Failure::Unknown)
            }
            Entrance::Passes => Ok(Some(others)),
            Entrance::Waits => Ok(None),
            Entrance::Opens { guards, renews } => {
                let joins = matches!(ready, Ready::OfRound(_));
                let entered = if joins { names(barrier::insiders(&seen)) } else { others };
                let guards = guards.into_iter().map(|guard| self.path_of(guard)).collect();
                let (path, data) = (self.path_of(READY), self.data.clone());
                match self.ask(Operation::Open { guards, path, renews, data }).await? {
                    Outcome::Done => Ok(Some(entered)),
                    // Another member has opened it first.
                    Outcome::NodeExists => {
                        Err(Failure::TryAgain(format!("{READY} comes and goes in a loop")))
                    }
                    // One of the members that should have gone in is gone, or the `ready` that should have been renewed.
                    _ => Err(Failure::Unknown),
                }
            }
        }
    }

    /// Creates the node if it does not exist, and lists the children in the same flight, so that the last to come sees all
    /// others, and opens the barrier. Returns the children, and the transaction that created `ready`.
    async fn come(&mut self) -> Result<(Vec<String>, Option<i64>), Failure> {
        // Each connection may show that the servers are too old. The last member to come would be refused, while the others wait.
        self.session.connected().await;
        if !self.session.creates_in_transactions() {
            return Err(Failure::Refused(Newer::DoubleBarrier.refusal()));
        }
        if self.may_exist && !self.is_created {
            self.find().await?;
        }
        let directory = self.directory.clone();
        let mut flight = Vec::new();
        if self.in_doubt {
            flight.push(Operation::Barrier { directory: directory.clone() });
        }
        let creates = !self.is_created;
        if creates {
            self.may_exist = true;
            flight.push(Operation::CreateSingle { path: self.path(), data: self.data.clone() });
        }
        flight.push(Operation::InspectAndWatch { path: self.path_of(READY) });
        flight.push(Operation::List { directory: directory.clone() });
        self.watch = None;
        let outcomes = self.send(flight).await?;
        match outcomes.iter().rev().nth(2).filter(|_| creates) {
            Some(Outcome::Created(nodes)) => {
                self.is_created = true;
                self.czxid = nodes.first().and_then(|node| node.origin).map(|origin| origin.czxid);
            }
            // Without the node there is nothing to delete. A session that may not delete its node has to end.
            Some(Outcome::Refused(_)) => self.may_exist = false,
            Some(Outcome::NoNode) => {
                self.may_exist = false;
                return Err(match self.ask(Operation::CreateParents { directory }).await? {
                    Outcome::Done => Failure::TryAgain(text_of(&Refusal::NoParent)),
                    Outcome::NoNode => Failure::Refused(text_of(&Refusal::NoRoot)),
                    _ => Failure::Unknown,
                });
            }
            _ => {}
        }
        let mut outcomes = certain(outcomes)?;
        let mut children = listed(outcomes.pop())?;
        children.retain(|child| self.is_there(child));
        match outcomes.pop() {
            Some(Outcome::Found(ready)) => Ok((children, ready.origin.map(|origin| origin.czxid))),
            Some(Outcome::NoNode) => Ok((children, None)),
            _ => Err(Failure::Unknown),
        }
    }

    /// Whether others have to reckon with this member. Not if it is one of this process that nobody wants any more: a caller may
    /// come again before the node of its last try is gone. Our own node counts, even if our caller has just gone: otherwise the
    /// member would believe that it was deleted, and leave it behind.
    fn is_there(&self, member: &str) -> bool {
        *self.name == *member || !self.known.has_departed(member)
    }

    /// Begins to leave. Returns whether the member keeps its node until the others are gone; `None` if the node is gone.
    pub(super) async fn depart(&mut self) -> Result<Option<bool>, Failure> {
        loop {
            match self.ask(Operation::List { directory: self.directory.clone() }).await {
                Err(Failure::Unknown) => clock::sleep(MOMENT).await,
                listing => {
                    let children = listed(Some(listing?))?;
                    self.others.stayed = names(barrier::others(&children, &self.name));
                    let is_there = children.iter().any(|child| **child == *self.name);
                    return Ok(is_there.then(|| barrier::stays_to_the_end(&children, &self.name)));
                }
            }
        }
    }

    /// Waits until all others have left. Returns `false` if they have not, and the member does not want to wait.
    pub(super) async fn wait_for_others(&mut self, stays: bool, patience: Patience) -> Result<bool, Failure> {
        loop {
            match self.find_other(stays).await {
                Ok(Some(_)) if patience == Patience::TriesOnce => return Ok(false),
                Ok(Some(other)) => match self.ask(Operation::Watch { path: other }).await {
                    Ok(Outcome::Done) => self.changed().await,
                    Ok(_) => {}
                    Err(Failure::Unknown) => clock::sleep(MOMENT).await,
                    Err(failure) => return Err(failure),
                },
                Ok(None) => return Ok(true),
                Err(Failure::Unknown) => clock::sleep(MOMENT).await,
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Returns the path of one of the members that have not left yet, if there are any.
    async fn find_other(&mut self, stays: bool) -> Result<Option<String>, Failure> {
        // A member that enters late announces itself by a new `ready`.
        let ready = Operation::InspectAndWatch { path: self.path_of(READY) };
        let list = Operation::List { directory: self.directory.clone() };
        self.watch = None;
        let children = listed(certain(self.send(vec![ready, list]).await?)?.pop())?;
        let nodes = if self.others.is_in_doubt(&children) { self.survey().await? } else { Vec::new() };
        // Without a survey, as if none of them had entered.
        let by_name = || children.iter().map(|name| BarrierChild { name, czxid: i64::MAX }).collect();
        let seen = if nodes.is_empty() { by_name() } else { seen(&nodes) };
        Ok(barrier::whom_to_watch(&self.others.awaited(&seen), stays).map(|other| self.path_of(other)))
    }

    /// Deletes the node, and `ready` with it if it is the last of its round. Returns whether the node was still there. If a
    /// reply was lost, it was.
    pub(super) async fn remove(&mut self) -> Result<bool, Failure> {
        let mut is_sent = false;
        loop {
            let (session, ready) = (self.session.clone(), self.path_of(READY));
            // The version is asked for first, and must be that which the survey shows: the survey lists first and then reads, and
            // a newer `ready` may be of a round of which it has not listed all.
            let (opened, nodes) = tokio::join!(session.look(ready.as_str().into()), self.survey());
            let last = match opened.and_then(|opened| Ok((opened, nodes?))) {
                Ok((opened, nodes)) => {
                    self.others.correct(&seen(&nodes));
                    let is_shown = |ready: &NodeVersion| {
                        let shown =
                            |node: &protocol::Node| node.origin.is_some_and(|it| it.czxid == ready.mzxid);
                        nodes.iter().any(|node| node.name == READY && shown(node))
                    };
                    opened.filter(is_shown).filter(|_| barrier::is_last(&seen(&nodes), &self.name))
                }
                // The node must go even if the children cannot be read.
                Err(Failure::Refused(_)) => None,
                Err(Failure::SessionOver) if !is_sent => return Err(Failure::SessionOver),
                Err(Failure::SessionOver) => return Ok(true),
                Err(_) => {
                    clock::sleep(MOMENT).await;
                    continue;
                }
            };
            let mut deleted = Ok(Outcome::NoNode);
            if let Some(NodeVersion { version, .. }) = last {
                deleted = self.ask(Operation::Close { path: self.path(), opened: ready, version }).await;
            }
            // If not, one of the two is gone, or `ready` must not be deleted.
            if !matches!(deleted, Ok(Outcome::Done) | Err(Failure::Unknown | Failure::SessionOver)) {
                deleted = self.ask(Operation::Delete { path: self.path() }).await;
            }
            match deleted {
                Ok(outcome @ (Outcome::Done | Outcome::NoNode)) => {
                    // Before anybody learns of it: the next member of this session must not wait for a node that a server
                    // still shows.
                    self.session.attempts().end(self.mark);
                    self.may_exist = false;
                    return Ok(is_sent || outcome == Outcome::Done);
                }
                // It is gone with the session.
                Err(Failure::SessionOver) => return Ok(true),
                Err(Failure::Refused(why)) => return Err(Failure::Refused(why)),
                _ => {
                    is_sent = true;
                    clock::sleep(MOMENT).await;
                }
            }
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.known.forget(&self.name);
        if self.may_exist {
            // Only the servers can tell those who wait for it that it is gone.
            self.session.attempts().abandon(self.mark);
        } else {
            self.session.attempts().end(self.mark);
        }
    }
}

/// Returns the outcomes of a flight if all are known, and nothing was refused.
fn certain(outcomes: Vec<Outcome>) -> Result<Vec<Outcome>, Failure> {
    if let Some(refusal) = outcomes.iter().find_map(Outcome::refusal) {
        return Err(Failure::Refused(text_of(refusal)));
    }
    if outcomes.contains(&Outcome::Unknown) { Err(Failure::Unknown) } else { Ok(outcomes) }
}

/// Returns the children in a listing. A directory that is gone has none.
fn listed(listing: Option<Outcome>) -> Result<Vec<String>, Failure> {
    match listing {
        Some(Outcome::Children(children)) => Ok(children),
        Some(Outcome::NoNode) => Ok(Vec::new()),
        _ => Err(Failure::Unknown),
    }
}

/// The children in the form that `barrier` takes.
fn seen(children: &[protocol::Node]) -> Vec<BarrierChild<'_>> {
    let czxid = |child: &protocol::Node| child.origin.map_or(i64::MAX, |origin| origin.czxid);
    children.iter().map(|child| BarrierChild { name: &child.name, czxid: czxid(child) }).collect()
}

fn names<'a>(names: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    names.into_iter().map(str::to_owned).collect()
}
