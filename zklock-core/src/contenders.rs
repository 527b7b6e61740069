//! The contenders in the queue of a lock, how an operator takes one out of it, and how anybody asks the holders to let go.

use crate::ask::{ask, catch_up, request};
use crate::ensemble::{Child, Deletion, ReadFailure, Write, WriteFailure};
use crate::error::{Error, ErrorKind};
use crate::hold::Token;
use crate::lock::Lock;
use crate::machine::claim::{Claim, Permits};
use crate::machine::name::{Dialect, Name, Role, SINGLE_NAME, Scheme, mark_of_companion};
use crate::machine::protocol::{Operation, Outcome};
use crate::node_data::{self, Queue};
use crate::session::Session;
use crate::set;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

/// A contender in the queue of a lock. See [`Lock::contenders`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct QueuedContender {
    /// The name of its node.
    pub name: String,
    /// The path of its node.
    pub node: String,
    /// What it calls itself: the node's data. zklock writes `host/pid` or what the client's options say. What is not
    /// UTF-8 is replaced, and what the nodes of a set of locks say of the set is left out. A holder that was
    /// [asked](Lock::revoke) to let go has lost it: it is `__REVOKE__`.
    pub identity: String,
    /// The session that owns it.
    pub session: i64,
    /// Its fencing token, when it comes to hold the lock. A holder of a semaphore's permit has a smaller one: this is
    /// the number of its permit.
    pub token: Token,
    /// When its node was created, on the servers' clock.
    pub since: SystemTime,
    /// The naming scheme of its library.
    pub dialect: Dialect,
    /// What it wants.
    pub role: Role,
    /// Whether it holds the lock, as far as its place tells. A set of locks holds none of them before it is its turn in
    /// all of their queues, even if it is the first in this one.
    pub holds: bool,
    /// The queues that its node names, if it is of a set.
    queues: Vec<Queue>,
}

impl Lock {
    /// The contenders in the queue, of any library, the holders first.
    ///
    /// A set of locks that is the first in the queue but waits for another of its locks is listed first, and does not
    /// [hold](QueuedContender::holds).
    ///
    /// ```no_run
    /// # async fn example(lock: zklock_core::Lock) -> Result<(), zklock_core::Error> {
    /// for (position, contender) in lock.contenders().await?.iter().enumerate() {
    ///     println!("{position} {} {}", contender.identity, if contender.holds { "holds" } else { "waits" });
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unreachable`] if the ensemble does not answer within the connect timeout;
    /// [`ErrorKind::Refused`] if the access list does not allow to read the queue; [`ErrorKind::Closed`] if the client is
    /// closed.
    pub async fn contenders(&self) -> Result<Vec<QueuedContender>, Error> {
        self.ask("its queue could not be read", |session| async move {
            let mut contenders = Vec::new();
            if let Some(claim) = self.claims().first() {
                catch_up(&session, &claim.directory).await?;
            }
            for claim in self.claims() {
                contenders.extend(contenders_of(&session, claim).await?);
            }
            Ok(contenders)
        })
        .await
    }

    /// Takes any contender out of the queue, by deleting its [node](QueuedContender::node). A holder learns that its hold
    /// is lost, if its library reports that. A waiter queues again; if it came to hold the lock at that very moment, it
    /// learns of the loss within a heartbeat. `false` if the node was already gone.
    ///
    /// All nodes of an [exclusive](crate::Client::exclusive) lock have one path. So this evicts the holder of that moment,
    /// which may be another than the one that was listed. [`break_lock`](Self::break_lock) spares another. With the node goes
    /// its companion, so that a holder that is just releasing it cannot delete that of the next.
    ///
    /// **This breaks what the lock guards**, unless the contender is known to have stopped: until it learns of it, it
    /// believes that it holds the lock, and another already does.
    ///
    /// ```no_run
    /// # async fn example(lock: zklock_core::Lock) -> Result<(), zklock_core::Error> {
    /// for contender in lock.contenders().await? {
    ///     if contender.identity == "db7/4711" {
    ///         lock.evict(&contender.node).await?;
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`contenders`](Self::contenders); [`ErrorKind::InvalidInput`] if it is not a contender of this lock.
    pub async fn evict(&self, node: &str) -> Result<bool, Error> {
        if !self.claims().iter().any(|claim| is_contender(claim, node)) {
            let message = format!("{node:?} is no contender of {}: take one of contenders()", self.path());
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        if self.name_is_reused() {
            return self.evict_seen(node, OnceLock::new()).await;
        }
        let tried = &AtomicBool::new(false);
        self.ask(UNEVICTED, |session| async move {
            match session.delete(node.into(), None).await {
                Ok(Deletion::Done) => Ok(true),
                // If an answer was lost, it may have been there before.
                Ok(_) => Ok(tried.load(Ordering::Relaxed)),
                Err(failure) => {
                    tried.store(true, Ordering::Relaxed);
                    Err(failure)
                }
            }
        })
        .await
    }

    /// Takes the lock away from all its holders, and returns them. See [`evict`](Self::evict), also for what that breaks.
    /// Waiters stay, including a set of locks that is the first in the queue and waits for another of its locks.
    ///
    /// The node of an [exclusive](crate::Client::exclusive) lock is deleted together with its companion, so that the node of a
    /// later holder is spared. On servers of version 3.4, and if another library has created it, it has none: it is read right
    /// before it is deleted, and a later one is in danger if it is created between these two requests.
    ///
    /// ```no_run
    /// # async fn example(client: zklock_core::Client) -> Result<(), zklock_core::Error> {
    /// for holder in client.mutex("/locks/report")?.break_lock().await? {
    ///     println!("{} held it", holder.identity);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`contenders`](Self::contenders).
    pub async fn break_lock(&self) -> Result<Vec<QueuedContender>, Error> {
        let mut broken = Vec::new();
        for contender in self.contenders().await? {
            let is_broken = contender.holds && {
                match self.name_is_reused() {
                    true => self.evict_seen(&contender.node, contender.token.czxid().into()).await?,
                    false => self.evict(&contender.node).await?,
                }
            };
            if is_broken {
                broken.push(contender);
            }
        }
        Ok(broken)
    }

    /// Asks all holders of the lock to let it go, and returns them. It takes nothing away: a holder is
    /// [told](crate::Hold::wanted) if it wants to know, and goes on holding until it releases the lock.
    ///
    /// Each holder is asked as Curator's `Revoker` does it: the data of its node becomes `__REVOKE__`. So it reaches the holders
    /// of Curator's `InterProcessMutex` that are `makeRevocable`, and those of zklock; other libraries do not look. The
    /// holder's [identity](QueuedContender::identity) is that word from then on. (What the nodes of a set say of the set stays
    /// below it.) Holders in this process are asked like others, and whoever comes to hold an [exclusive](crate::Client::exclusive) lock at that very moment may be, in place of
    /// the one that is returned.
    ///
    /// ```no_run
    /// # async fn example(client: zklock_core::Client) -> Result<(), zklock_core::Error> {
    /// for holder in client.mutex("/locks/report")?.revoke().await? {
    ///     println!("{} is asked to let it go", holder.identity);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`contenders`](Self::contenders); [`ErrorKind::Refused`] also if the access list does not allow to write to a
    /// holder's node. All others have been asked then.
    pub async fn revoke(&self) -> Result<Vec<QueuedContender>, Error> {
        let (mut asked, mut refused) = (Vec::new(), None);
        for contender in self.contenders().await?.into_iter().filter(|contender| contender.holds) {
            match self.ask_to_let_go(&contender).await {
                Ok(true) => asked.push(contender),
                Ok(false) => {}
                Err(error) if error.kind() == ErrorKind::Refused => refused = refused.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        refused.map_or(Ok(asked), Err)
    }

    /// `false` if the node is gone.
    async fn ask_to_let_go(&self, holder: &QueuedContender) -> Result<bool, Error> {
        let (node, tried): (&Arc<str>, _) = (&holder.node.as_str().into(), &AtomicBool::new(false));
        let data = &node_data::asking(&holder.queues);
        self.ask("a holder could not be asked to let it go", |session| async move {
            let (path, data) = (node.to_string(), data.clone());
            let write = Write::SetData { path, data, version: None };
            was_written(session.commit(vec![node.clone()], vec![write]).await.map(|_| ()), tried)
        })
        .await
    }

    fn name_is_reused(&self) -> bool {
        self.claims().iter().any(|claim| !claim.has_queue())
    }

    /// Evicts the holder of an exclusive lock that was `seen`, or if none was, the one that is seen first. Never the next
    /// holder, whose node has the same path, not even after a lost answer.
    async fn evict_seen(&self, node: &str, seen: OnceLock<i64>) -> Result<bool, Error> {
        let (seen, tried) = (&seen, &AtomicBool::new(false));
        let (node, directory): (&Arc<str>, _) = (&node.into(), &self.claims()[0].directory);
        self.ask(UNEVICTED, |session| async move {
            // The server may lag behind, and still show the one before.
            catch_up(&session, directory).await?;
            let found = session.look(node.clone()).await?;
            let Some(found) = found.filter(|found| found.czxid == *seen.get_or_init(|| found.czxid)) else {
                return Ok(tried.load(Ordering::Relaxed));
            };
            if let Some(companion) = companion_of(&session, directory, found.czxid).await? {
                let both = [node.clone(), companion.into()];
                let delete = |path: &Arc<str>| Write::Delete { path: path.to_string(), version: None };
                let written = session.commit(both.to_vec(), both.iter().map(delete).collect()).await;
                return was_written(written.map(|_| ()), tried);
            }
            // Its companion may have gone with it meanwhile.
            if session.look(node.clone()).await?.is_none_or(|again| again.czxid != found.czxid) {
                return Ok(tried.load(Ordering::Relaxed));
            }
            // No condition names the transaction. But a node that was written to since is not, or not as it was, that one.
            match session.delete(node.clone(), Some(found.version)).await {
                Ok(Deletion::Done) => Ok(true),
                Ok(Deletion::NotThere) => Ok(tried.load(Ordering::Relaxed)),
                Ok(Deletion::Changed) => Err(ReadFailure::Unknown),
                Err(failure) => {
                    tried.store(true, Ordering::Relaxed);
                    Err(failure)
                }
            }
        })
        .await
    }

    async fn ask<T, F>(&self, problem: &str, call: impl Fn(Arc<Session>) -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, ReadFailure>>,
    {
        ask(self.pool(), || format!("the lock {}: {problem}", self.path()), call).await
    }
}

/// The path of the node that was created together with an exclusive lock's, if there is one.
async fn companion_of(
    session: &Arc<Session>,
    directory: &Arc<str>,
    czxid: i64,
) -> Result<Option<String>, ReadFailure> {
    let list = Operation::List { directory: directory.clone() };
    let (Outcome::Children(children), _) = request(session, list).await? else { return Ok(None) };
    for name in children.iter().filter(|name| mark_of_companion(name).is_some()) {
        let path = format!("{directory}/{name}");
        if session.look(path.as_str().into()).await?.is_some_and(|seen| seen.czxid == czxid) {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// Whether writes were done to a contender's nodes, which guard them; `false` if one of the nodes is gone. `tried` says whether
/// an answer was lost before: then they may have been done, and the nodes been there.
fn was_written(written: Result<(), WriteFailure>, tried: &AtomicBool) -> Result<bool, ReadFailure> {
    let failure = match written {
        Ok(()) => return Ok(true),
        Err(WriteFailure::GuardGone) => return Ok(tried.load(Ordering::Relaxed)),
        Err(WriteFailure::Refused { problem, .. } | WriteFailure::TooNew(problem)) => {
            return Err(ReadFailure::Refused(problem));
        }
        Err(WriteFailure::Unknown) => ReadFailure::Unknown,
        Err(WriteFailure::SessionOver) => ReadFailure::SessionOver,
    };
    tried.store(true, Ordering::Relaxed);
    Err(failure)
}

const UNEVICTED: &str = "a contender could not be evicted";

async fn contenders_of(session: &Arc<Session>, claim: &Claim) -> Result<Vec<QueuedContender>, ReadFailure> {
    let mut contenders = Vec::new();
    if let Some(permits) = &claim.permits {
        let limit = limit_of(session, permits).await?;
        let children = session.children(permits.directory.clone()).await?;
        contenders = in_order(&permits.directory, children, |name| Name::parse_lease(name));
        for (number, contender) in (0..).zip(&mut contenders) {
            contender.holds = number < limit;
        }
    }
    let children = session.children(claim.directory.clone()).await?;
    if !claim.has_queue() {
        let node = children.into_iter().find(|child| child.name == SINGLE_NAME);
        return Ok(node
            .into_iter()
            .map(|node| contender(&claim.directory, node, claim.scheme, true))
            .collect());
    }
    let mut queue = in_order(&claim.directory, children, |name| Name::parse(name));
    if claim.permits.is_none() {
        mark_holders(&mut queue);
        for contender in queue.iter_mut().filter(|contender| contender.holds) {
            let mark = Name::parse(&contender.name).and_then(|name| name.uuid());
            if let Some(mark) = mark.filter(|_| !contender.queues.is_empty()) {
                contender.holds = set::holds(session, &claim.directory, mark, &contender.queues).await?;
            }
        }
    }
    // The head of the queue has its permits there before there are enough. Ours have the same mark in both places.
    for permit in &mut contenders {
        permit.holds &=
            !queue.iter().any(|waiter| mark(&waiter.name, "-lock-") == mark(&permit.name, "-lease-"));
    }
    contenders.extend(queue);
    Ok(contenders)
}

/// What the contender has chosen of a node's name.
fn mark<'a>(name: &'a str, infix: &str) -> &'a str {
    name.rsplit_once(infix).map_or(name, |(mark, _)| mark)
}

async fn limit_of(session: &Arc<Session>, permits: &Permits) -> Result<u32, ReadFailure> {
    let Some(path) = permits.limit_at.clone() else { return Ok(permits.limit) };
    match request(session, Operation::ReadLimit { path }).await? {
        (Outcome::Limit(Some(limit)), _) => Ok(limit),
        _ => Ok(permits.limit),
    }
}

fn is_contender(claim: &Claim, node: &str) -> bool {
    let Some((directory, name)) = node.rsplit_once('/') else { return false };
    let is_permit = claim.permits.as_ref().is_some_and(|permits| *permits.directory == *directory)
        && Name::parse_lease(name).is_some();
    let is_single = !claim.has_queue() && name == SINGLE_NAME;
    is_permit || *claim.directory == *directory && (is_single || Name::parse(name).is_some())
}

fn in_order(
    directory: &str,
    children: Vec<Child>,
    parse: impl Fn(&str) -> Option<Name<'_>>,
) -> Vec<QueuedContender> {
    let mut queue: Vec<_> = children
        .into_iter()
        .filter_map(|child| {
            let name = parse(&child.name)?;
            let (scheme, sequence) = (name.scheme, name.sequence);
            Some((sequence, contender(directory, child, scheme, false)))
        })
        .collect();
    queue.sort_by(|(left, _), (right, _)| right.is_before(*left).cmp(&left.is_before(*right)));
    queue.into_iter().map(|(_, contender)| contender).collect()
}

pub(crate) fn contender(directory: &str, child: Child, scheme: Scheme, holds: bool) -> QueuedContender {
    let (identity, queues) = node_data::read(&child.data);
    QueuedContender {
        node: format!("{directory}/{}", child.name),
        identity,
        queues,
        session: child.session,
        token: Token::of(child.czxid),
        since: child.created,
        dialect: scheme.dialect(),
        role: scheme.role(),
        holds,
        name: child.name,
    }
}

/// The first holds. If it reads, so do those after it, up to the next that does not. A reader that shares the
/// number of its writer holds with it.
fn mark_holders(queue: &mut [QueuedContender]) {
    let sequence = |name: &str| Name::parse(name).map(|name| name.sequence);
    let first = queue.first().map(|first| (sequence(&first.name), first.role));
    let mut only_readers = true;
    for (number, contender) in queue.iter_mut().enumerate() {
        let is_first = number == 0;
        let shares = first.is_some_and(|(number, _)| number == sequence(&contender.name));
        contender.holds = is_first || shares || only_readers && contender.role == Role::Read;
        only_readers &= contender.role == Role::Read;
    }
}
