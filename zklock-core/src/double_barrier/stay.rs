//! One member's stay at a double barrier, from the creation of its node to its deletion.
//!
//! It is a task's, never a caller's: a caller waits for an answer and may go away at any moment. So no await point of
//! a caller can leak a node.

use super::{Member, by_name, lost, names};
use crate::ask::{MOMENT, text_of};
use crate::barrier::{ROUNDS_AT_MOST, end_of, news, unread};
use crate::client::Client;
use crate::ensemble::{Child, Pending, ReadFailure, Write, WriteFailure};
use crate::error::{Error, ErrorKind, LossReason};
use crate::machine::barrier::{self, Company, Entrance, READY, Ready, Seen};
use crate::machine::exchange::{Operation, Outcome, Patience, WatchEvent};
use crate::place::Place;
use crate::platform;
use crate::session::{Link, Session};
use crate::stats::Progress;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::oneshot;

/// How long to wait before a deletion that was refused is tried again.
const UNTIL_ALLOWED: Duration = Duration::from_secs(1);

/// A member that leaves.
pub(super) struct Farewell {
    /// Whether all others have left.
    pub(super) answer: oneshot::Sender<Result<bool, Error>>,
    pub(super) patience: Patience,
}

pub(super) struct Stay {
    client: Client,
    path: Arc<str>,
    members: usize,
    progress: Arc<Progress>,
    place: Arc<Place>,
    /// The node that is there, or may be.
    node: Option<Node>,
}

#[derive(Clone)]
struct Node {
    session: Arc<Session>,
    name: Arc<str>,
}

/// How far a node's owner has come with entering.
#[derive(Default)]
struct Attempt {
    created: bool,
    /// The transaction that created the node, where the server told.
    czxid: Option<i64>,
    /// Whether the server may be behind what we know, or what we did.
    in_doubt: bool,
    /// How often the barrier's node was missing.
    rounds: u32,
    /// How often the barrier could not be opened.
    refused: u32,
}

/// What there is to be seen by one who wants to enter.
struct Look {
    children: Vec<String>,
    ready: bool,
    /// Tells when `ready` comes, goes or is another.
    watch: Option<Pending<WatchEvent>>,
}

/// Why a try came to nothing.
enum Ended {
    /// Its session is over.
    SessionOver,
    Failed(Error),
}

impl Stay {
    pub(super) fn new(client: Client, path: Arc<str>, members: u32, progress: Arc<Progress>) -> Self {
        let members = usize::try_from(members).unwrap_or(usize::MAX);
        let place = client.place(&path);
        Self { client, path, members, progress, place, node: None }
    }

    pub(super) async fn run(
        mut self,
        patience: Patience,
        mut answer: oneshot::Sender<Result<Option<Member>, Error>>,
    ) {
        let entered = tokio::select! {
            biased;
            () = answer.closed() => Ok(None),
            entered = self.enter(patience) => entered,
        };
        match entered {
            Ok(Some((node, entered))) => {
                let (door, farewell) = oneshot::channel();
                // If the caller is gone, the member is dropped here, and leaves.
                let _ = answer.send(Ok(Some(self.member(&node, door))));
                let mut link = node.session.link();
                let farewell = tokio::select! {
                    biased;
                    farewell = farewell => farewell.ok(),
                    _ = link.wait_for(|link| matches!(link, Link::Over(_))) => None,
                };
                if let Some(farewell) = farewell {
                    self.leave(&node, entered, farewell).await;
                }
            }
            Ok(None) => {
                self.progress.owe();
                let _ = answer.send(Ok(None));
            }
            Err(error) => {
                self.progress.owe();
                let _ = answer.send(Err(error));
            }
        }
        self.remove().await;
    }

    fn member(&self, node: &Node, door: oneshot::Sender<Farewell>) -> Member {
        Member {
            client: self.client.clone(),
            path: self.path.clone(),
            node: self.path_of(&node.name).into(),
            session: node.session.clone(),
            progress: self.progress.clone(),
            door: Mutex::new(Some(door)),
        }
    }

    /// Waits until the barrier is open, and says who was there then; `None` if it is not to wait, and the barrier is
    /// not open.
    async fn enter(&mut self, patience: Patience) -> Result<Option<(Node, BTreeSet<String>)>, Error> {
        loop {
            let session = self.client.pool().slot().session().await?;
            let node = Node { session, name: platform::uuid().to_string().into() };
            self.node = Some(node.clone());
            self.place.note(&node.name, &self.progress);
            match self.enter_as(&node, patience).await {
                Ok(Some(_)) if node.session.is_over() => {}
                Ok(entered) => return Ok(entered.map(|entered| (node, entered))),
                Err(Ended::SessionOver) => {}
                Err(Ended::Failed(error)) => return Err(error),
            }
        }
    }

    async fn enter_as(&self, node: &Node, patience: Patience) -> Result<Option<BTreeSet<String>>, Ended> {
        let mut attempt = Attempt::default();
        loop {
            let Some(mut look) = self.look(node, &mut attempt).await? else {
                attempt.in_doubt = true;
                tokio::time::sleep(MOMENT).await;
                continue;
            };
            // Its caller may come again before the node of its last try is gone.
            look.children.retain(|child| !self.place.has_gone(child));
            let mut seen = Vec::new();
            let ready = if !look.ready {
                Ready::Missing
            } else if self.is_newer(node, attempt.czxid).await? {
                Ready::Newer
            } else {
                seen = self.children(&node.session).await?;
                seen.retain(|child| !self.place.has_gone(&child.name));
                Ready::of(&of(&seen), &node.name)
            };
            match barrier::entrance(&look.children, &node.name, self.members, ready) {
                // An operator has deleted it.
                Entrance::Absent => {
                    attempt.created = false;
                    tokio::time::sleep(MOMENT).await;
                }
                Entrance::Passes => return Ok(Some(names(barrier::others(&look.children, &node.name)))),
                Entrance::Opens { guards, replaces } => {
                    if self.open(&node.session, &guards, replaces, &mut attempt).await? {
                        return Ok(Some(match ready {
                            Ready::OfRound(_) => names(barrier::insiders(&of(&seen))),
                            _ => names(barrier::others(&look.children, &node.name)),
                        }));
                    }
                    attempt.in_doubt = true;
                }
                Entrance::Waits if patience == Patience::TriesOnce => return Ok(None),
                Entrance::Waits => news(&node.session, look.watch, None).await,
            }
        }
    }

    /// Creates the node if it is not there yet, and looks around; `None` if that is to be tried again.
    async fn look(&self, node: &Node, attempt: &mut Attempt) -> Result<Option<Look>, Ended> {
        let mut flight = Vec::new();
        if std::mem::take(&mut attempt.in_doubt) {
            flight.push(Operation::Barrier { directory: self.path.clone() });
        }
        if !attempt.created {
            flight.push(Operation::CreateSingle { path: self.path_of(&node.name) });
        }
        // The list includes all who were there before us. So the last who comes sees them all, and opens.
        flight.push(Operation::InspectAndWatch { path: self.path_of(READY) });
        flight.push(Operation::List { directory: self.path.clone() });
        let (mut outcomes, watch) = self.send(&node.session, flight).await?;
        let (list, ready) = (outcomes.pop(), outcomes.pop());
        if !attempt.created {
            match outcomes.pop() {
                Some(Outcome::Created(nodes)) => {
                    attempt.created = true;
                    attempt.czxid = nodes.first().and_then(|node| node.origin).map(|origin| origin.czxid);
                }
                // Nobody else has this name: it is ours, and only the reply was lost.
                Some(Outcome::NodeExists) => attempt.created = true,
                Some(Outcome::NoNode) => {
                    let why = "it vanishes whenever it is created: something deletes it in a loop";
                    attempt.rounds += 1;
                    if attempt.rounds > ROUNDS_AT_MOST {
                        return Err(self.refused(why));
                    }
                    let create = Operation::CreateParents { directory: self.path.clone() };
                    self.send(&node.session, vec![create]).await?;
                }
                _ => {}
            }
        }
        let ready = match ready {
            Some(Outcome::Found(_)) => true,
            Some(Outcome::NoNode) => false,
            _ => return Ok(None),
        };
        match list {
            Some(Outcome::Children(children)) if attempt.created => Ok(Some(Look { children, ready, watch })),
            _ => Ok(None),
        }
    }

    /// Whether `ready` was created after our node.
    async fn is_newer(&self, node: &Node, czxid: Option<i64>) -> Result<bool, Ended> {
        let Some(czxid) = czxid else { return Ok(false) };
        loop {
            match node.session.child(self.path.clone(), READY.to_owned()).await {
                Ok(ready) => return Ok(ready.is_some_and(|(ready, _)| ready.czxid > czxid)),
                Err(failure) => self.unread(&node.session, failure).await?,
            }
        }
    }

    async fn children(&self, session: &Arc<Session>) -> Result<Vec<Child>, Ended> {
        loop {
            match session.children(self.path.clone()).await {
                Ok(children) => return Ok(children),
                Err(failure) => self.unread(session, failure).await?,
            }
        }
    }

    async fn unread(&self, session: &Session, failure: ReadFailure) -> Result<(), Ended> {
        unread(session, failure).await.map_err(|why| self.refused(&why))?;
        if session.is_over() { Err(Ended::SessionOver) } else { Ok(()) }
    }

    /// Creates `ready` if these members are there. `false` if something was not as it had to be.
    async fn open(
        &self,
        session: &Arc<Session>,
        guards: &[&str],
        replaces: bool,
        attempt: &mut Attempt,
    ) -> Result<bool, Ended> {
        let path = self.path_of(READY);
        let guards = guards.iter().map(|guard| self.path_of(guard).into()).collect();
        let data = self.client.pool().options().identity.as_bytes().to_vec();
        let mut writes = Vec::new();
        if replaces {
            writes.push(Write::Delete { path: path.clone(), version: None });
        }
        writes.push(Write::Create { path, data });
        match session.commit(guards, writes).await {
            Ok(_) => return Ok(true),
            Err(WriteFailure::GuardGone) => {}
            Err(WriteFailure::Refused { problem, .. }) => {
                attempt.refused += 1;
                if attempt.refused > ROUNDS_AT_MOST {
                    return Err(self.refused(&problem));
                }
            }
            Err(WriteFailure::Unknown) => tokio::time::sleep(MOMENT).await,
            Err(WriteFailure::SessionOver) => {
                session.end(LossReason::SessionExpired);
                return Err(Ended::SessionOver);
            }
        }
        Ok(false)
    }

    async fn leave(&mut self, node: &Node, entered: BTreeSet<String>, farewell: Farewell) {
        let Farewell { mut answer, patience } = farewell;
        let left = tokio::select! {
            biased;
            () = answer.closed() => return,
            left = self.leave_as(node, entered, patience) => left,
        };
        let told = left.map_err(|ended| match ended {
            Ended::SessionOver => {
                lost(end_of(&node.session).unwrap_or(LossReason::SessionExpired), &self.path)
            }
            Ended::Failed(error) => error,
        });
        if !matches!(told, Ok(true)) {
            // There may be a node of ours yet.
            self.progress.owe();
        }
        let _ = answer.send(told);
    }

    /// Leaves, and says whether all others have.
    async fn leave_as(
        &mut self,
        node: &Node,
        entered: BTreeSet<String>,
        patience: Patience,
    ) -> Result<bool, Ended> {
        let children = loop {
            let list = Operation::List { directory: self.path.clone() };
            match self.send(&node.session, vec![list]).await?.0.pop() {
                Some(Outcome::Children(children)) => break children,
                Some(Outcome::NoNode) => break Vec::new(),
                _ => tokio::time::sleep(MOMENT).await,
            }
        };
        if !children.iter().any(|child| **child == *node.name) {
            return Err(self.deleted());
        }
        let stays = barrier::stays_to_the_end(&children, &node.name);
        let company = Company { entered, stayed: names(barrier::others(&children, &node.name)) };
        if !stays && !self.remove().await {
            return Err(self.missed(node));
        }
        loop {
            let session = if stays { node.session.clone() } else { self.session().await? };
            match self.wait_for(&session, &company, stays, patience).await {
                Ok(Some(true)) => break,
                Ok(Some(false)) => return Ok(false),
                Ok(None) => {}
                // The node is gone already: what is left is to wait.
                Err(Ended::SessionOver) if !stays => {}
                Err(ended) => return Err(ended),
            }
        }
        if stays && !self.remove().await {
            return Err(self.missed(node));
        }
        Ok(true)
    }

    /// Whether all others have left; `None` if it is worth another look.
    async fn wait_for(
        &self,
        session: &Arc<Session>,
        company: &Company,
        stays: bool,
        patience: Patience,
    ) -> Result<Option<bool>, Ended> {
        // One who enters late makes himself known by a new `ready`.
        let inspect = Operation::InspectAndWatch { path: self.path_of(READY) };
        let list = Operation::List { directory: self.path.clone() };
        let (mut outcomes, ready_watch) = self.send(session, vec![inspect, list]).await?;
        let children = match (outcomes.pop(), outcomes.pop()) {
            (Some(Outcome::Children(children)), Some(Outcome::Found(_) | Outcome::NoNode)) => children,
            (Some(Outcome::NoNode), Some(Outcome::Found(_) | Outcome::NoNode)) => Vec::new(),
            _ => {
                tokio::time::sleep(MOMENT).await;
                return Ok(None);
            }
        };
        let looked = if company.is_in_doubt(&children) { self.children(session).await? } else { Vec::new() };
        let seen = if looked.is_empty() { by_name(&children) } else { of(&looked) };
        let awaited = company.awaited(&seen);
        let Some(watched) = barrier::whom_to_watch(&awaited, stays) else { return Ok(Some(true)) };
        if patience == Patience::TriesOnce {
            return Ok(Some(false));
        }
        let watch = Operation::Watch { path: self.path_of(watched) };
        let (mut outcomes, watch) = self.send(session, vec![watch]).await?;
        match outcomes.pop() {
            Some(Outcome::Done) => news(session, watch, ready_watch).await,
            Some(Outcome::NoNode) => {}
            _ => tokio::time::sleep(MOMENT).await,
        }
        Ok(None)
    }

    /// Deletes the node, and `ready` with it if nobody else is left of the round. `false` if it was gone before.
    async fn remove(&mut self) -> bool {
        let Some(node) = self.node.clone() else { return false };
        let (path, ready) = (self.path_of(&node.name), self.path_of(READY));
        let mut tried = false;
        let deleted = loop {
            if node.session.is_over() {
                break tried;
            }
            let seen = match node.session.children(self.path.clone()).await {
                Ok(seen) => seen,
                // What cannot be read must not keep the node there.
                Err(ReadFailure::Refused(_)) => Vec::new(),
                Err(failure) => {
                    let _ = unread(&node.session, failure).await;
                    continue;
                }
            };
            if barrier::is_last(&of(&seen), &node.name) {
                let delete = |path: &String| Write::Delete { path: path.clone(), version: None };
                match node.session.commit(Vec::new(), vec![delete(&path), delete(&ready)]).await {
                    Ok(_) => break true,
                    // One of the two is gone, or `ready` must not be deleted.
                    Err(WriteFailure::Refused { .. }) => {}
                    Err(_) => {
                        tried = true;
                        tokio::time::sleep(MOMENT).await;
                        continue;
                    }
                }
            }
            let delete = Operation::Delete { path: path.clone() };
            match node.session.clone().send(vec![delete]).await.outcomes.pop() {
                Some(Outcome::Done) => break true,
                // If an answer was lost, it was there before.
                Some(Outcome::NoNode) => break tried,
                Some(Outcome::Refused(_)) => tokio::time::sleep(UNTIL_ALLOWED).await,
                _ => {
                    tried = true;
                    tokio::time::sleep(MOMENT).await;
                }
            }
        };
        self.node = None;
        self.place.forget(&node.name);
        self.progress.settle();
        deleted
    }

    async fn session(&self) -> Result<Arc<Session>, Ended> {
        self.client.pool().slot().session().await.map_err(Ended::Failed)
    }

    /// What became of the operations, as far as they do not end the try.
    async fn send(
        &self,
        session: &Arc<Session>,
        flight: Vec<Operation>,
    ) -> Result<(Vec<Outcome>, Option<Pending<WatchEvent>>), Ended> {
        let landing = session.clone().send(flight).await;
        for outcome in &landing.outcomes {
            match outcome {
                Outcome::SessionOver => return Err(Ended::SessionOver),
                Outcome::Refused(refusal) => return Err(self.refused(&text_of(refusal))),
                _ => {}
            }
        }
        Ok((landing.outcomes, landing.watch))
    }

    fn path_of(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    fn refused(&self, why: &str) -> Ended {
        let message = format!("the server refused the barrier {}: {why}", self.path);
        Ended::Failed(Error::new(ErrorKind::Refused, message))
    }

    /// The node was gone when it was to be deleted.
    fn missed(&self, node: &Node) -> Ended {
        if node.session.is_over() { Ended::SessionOver } else { self.deleted() }
    }

    fn deleted(&self) -> Ended {
        Ended::Failed(lost(LossReason::NodeDeleted, &self.path))
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        // Also where its runtime is gone.
        self.progress.settle();
    }
}

fn of(children: &[Child]) -> Vec<Seen<'_>> {
    children.iter().map(|child| Seen { name: &child.name, czxid: child.czxid }).collect()
}
