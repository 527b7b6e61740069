//! The contenders in the queue of a lock, how an operator takes one out of it, and how anybody asks the holders to let go.

use crate::attempt::set;
use crate::base::error::{Error, ErrorKind};
use crate::base::failure::Failure;
use crate::base::wait::Wait;
use crate::client::lock::{Lock, OpenLock};
use crate::hold::token::Token;
use crate::machine::claim::{Claim, Permits};
use crate::machine::name::{Name, Naming, Role, SINGLE_NAME, Scheme, Uuid, mark_in_data, mark_of_companion};
use crate::machine::protocol::{Operation, Outcome, REVOKE};
use crate::session::ask::{ask, catch_up, request};
use crate::session::session::Session;
use crate::threads::call::Call;
use crate::zookeeper::ensemble::{Child, Deletion, Write};
use crate::zookeeper::node_data::{self, Queue};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

/// A contender in the queue of a lock. See [`Lock::contenders`](crate::Lock::contenders).
///
/// # Examples
///
/// ```no_run
/// use std::time::SystemTime;
///
/// # async fn example(lock: zklock::Lock) -> Result<(), zklock::Error> {
/// for contender in lock.contenders().await?.iter().filter(|contender| contender.holds) {
///     let age = SystemTime::now().duration_since(contender.since).unwrap_or_default();
///     println!("{} has been there for {age:?}, in session {:#x}", contender.identity, contender.session);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct QueuedContender {
    /// The name of its node.
    pub name: String,
    /// The path of its node.
    pub node: String,
    /// The name that it gives itself: the node's data. zklock writes `host/pid`, or the identity in the client's options.
    /// Bytes that are not UTF-8 are replaced, and what nodes of a set of locks contain about the set is left out. For a
    /// Curator holder that was [asked](crate::Lock::request_release) to release the lock, and for any holder that Curator has asked, it is
    /// `__REVOKE__`.
    pub identity: String,
    /// The session that owns it.
    pub session: i64,
    /// The fencing token that it has once it holds the lock. For a holder of a semaphore's permit, this is the number of
    /// its permit, and its token is smaller.
    pub token: Token,
    /// When its node was created, on the servers' clock.
    pub since: SystemTime,
    /// The naming scheme of its library.
    pub naming: Naming,
    /// How it wants to hold the lock.
    pub role: Role,
    /// Whether it holds the lock, judged by its place in the queue. A set of locks holds none of its locks until its turn
    /// has come in all of their queues, even if it is first in this one.
    pub holds: bool,
    /// The queues that its node names, if it belongs to a set.
    queues: Vec<Queue>,
    /// The mark in its node's data, if it has one there.
    mark: Option<Uuid>,
}

impl Lock {
    /// Lists the contenders in the queue, whatever their library. The holders come first.
    ///
    /// A set of locks that is first in the queue but still waits for another of its locks is listed first, but does not
    /// [hold](QueuedContender::holds) the lock.
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::Unreachable`] if the ensemble does not answer within the connect timeout;
    /// * [`ErrorKind::Refused`] if the access list does not allow reading the queue;
    /// * [`ErrorKind::Closed`] if the client is closed.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(lock: zklock::Lock) -> Result<(), zklock::Error> {
    /// for (position, contender) in lock.contenders().await?.iter().enumerate() {
    ///     println!("{position} {} {}", contender.identity, if contender.holds { "holds" } else { "waits" });
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn contenders(&self) -> Call<Vec<QueuedContender>> {
        self.open.call(Wait::Forever, |lock| async move { lock.fixed().contenders().await })
    }

    /// Takes any contender out of the queue by deleting its [node](QueuedContender::node). Returns `false` if the node no
    /// longer existed.
    ///
    /// **This breaks what the lock guards**, unless the contender is known to have stopped: until a holder learns of its
    /// loss, it believes that it holds the lock while another already does. It learns of the loss only if its library
    /// reports that. A waiter queues again. If it had just become the holder, it learns of the loss within a heartbeat.
    ///
    /// All nodes of a [single-node](crate::Client::single_node) lock have the same path. So this evicts the present holder, which
    /// may not be the one that you saw. [`break_lock`](Self::break_lock) evicts only the holders that it returns. The node's
    /// companion is deleted with it. Otherwise, a holder that is just releasing the lock could delete the node of the next
    /// holder.
    ///
    /// # Errors
    ///
    /// Fails like [`contenders`](Self::contenders) does, and with [`ErrorKind::InvalidInput`] if `node` is not a contender of
    /// this lock.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(lock: zklock::Lock) -> Result<(), zklock::Error> {
    /// for contender in lock.contenders().await? {
    ///     if contender.identity == "db7/4711" {
    ///         lock.evict(&contender.node).await?;
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn evict(&self, node: &str) -> Call<bool> {
        let node = node.to_owned();
        self.open.call(Wait::Forever, |lock| async move { lock.fixed().evict(&node).await })
    }

    /// Takes the lock away from all its holders, and returns them. Waiters stay, including a set of locks that is first in
    /// the queue and waits for another of its locks.
    ///
    /// **This breaks what the lock guards**, as [`evict`](Self::evict) explains.
    ///
    /// The node of a [single-node](crate::Client::single_node) lock is deleted in one transaction with its companion. So a later
    /// holder that has created the node again keeps it. There is no companion on servers of version 3.4, or if another
    /// library created the node. In these cases the node is read right before it is deleted, and a later holder's node is
    /// deleted by mistake if it is created between these two requests.
    ///
    /// # Errors
    ///
    /// Fails like [`contenders`](Self::contenders) does.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: zklock::Client) -> Result<(), zklock::Error> {
    /// for holder in client.mutex("/locks/report")?.break_lock().await? {
    ///     println!("{} held it", holder.identity);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn break_lock(&self) -> Call<Vec<QueuedContender>> {
        self.open.call(Wait::Forever, |lock| async move {
            let lock = lock.fixed();
            let mut broken = Vec::new();
            for contender in lock.contenders().await? {
                let is_broken = contender.holds && {
                    match lock.name_is_reused() {
                        true => lock.evict_seen(&contender.node, contender.token.czxid().into()).await?,
                        false => lock.evict(&contender.node).await?,
                    }
                };
                if is_broken {
                    broken.push(contender);
                }
            }
            Ok(broken)
        })
    }

    /// Asks all holders of the lock to release it, and returns them. This takes nothing away: a holder can [wait for such
    /// a request](crate::Hold::wanted), and keeps the lock until it releases it.
    ///
    /// The request is written as Curator's `Revoker` writes it: the data of the holder's node becomes `__REVOKE__`. So it
    /// reaches holders of zklock, in this process too, and holders of a Curator `InterProcessMutex` that called
    /// `makeRevocable`. Other libraries ignore it. Below that word, the node of a holder of zklock keeps its
    /// [identity](QueuedContender::identity). For a holder of another library, the word replaces it. On servers of version
    /// 3.4, if a [single-node](crate::Client::single_node) lock changes hands at the last moment, the next holder may be asked in
    /// place of the one that is returned.
    ///
    /// # Errors
    ///
    /// Fails like [`contenders`](Self::contenders) does, and with [`ErrorKind::Refused`] if the access list does not allow
    /// writing to a holder's node. All other holders have been asked even so.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: zklock::Client) -> Result<(), zklock::Error> {
    /// for holder in client.mutex("/locks/report")?.request_release().await? {
    ///     println!("{} is asked to let it go", holder.identity);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn request_release(&self) -> Call<Vec<QueuedContender>> {
        self.open.call(Wait::Forever, |lock| async move {
            let lock = lock.fixed();
            let (mut asked, mut refused) = (Vec::new(), None);
            for contender in lock.contenders().await?.into_iter().filter(|contender| contender.holds) {
                match lock.ask_to_let_go(&contender).await {
                    Ok(true) => asked.push(contender),
                    Ok(false) => {}
                    Err(error) if error.kind() == ErrorKind::Refused => refused = refused.or(Some(error)),
                    Err(error) => return Err(error),
                }
            }
            refused.map_or(Ok(asked), Err)
        })
    }
}

impl OpenLock {
    /// Lists the contenders in the queue, whatever their library. The holders come first.
    async fn contenders(&self) -> Result<Vec<QueuedContender>, Error> {
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

    /// Takes any contender out of the queue by deleting its [node](QueuedContender::node). Returns `false` if the node no
    /// longer existed.
    async fn evict(&self, node: &str) -> Result<bool, Error> {
        if !self.claims().iter().any(|claim| is_contender(claim, node)) {
            let message =
                format!("{node:?} is not a contender of {}: take one of those that it lists", self.path());
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

    /// Returns `false` if the node is gone.
    async fn ask_to_let_go(&self, holder: &QueuedContender) -> Result<bool, Error> {
        let (node, tried): (&Arc<str>, _) = (&holder.node.as_str().into(), &AtomicBool::new(false));
        let (directory, czxid) = (&self.claims()[0].directory, holder.token.czxid());
        self.ask("a holder could not be asked to release it", |session| async move {
            let mut companion = None;
            if self.name_is_reused() {
                // The next holder's node has the same path. So the companion of the one that was seen guards the write. On
                // servers of version 3.4 there is none, and it is looked just before the write.
                companion = companion_of(&session, directory, czxid).await?;
                let found = session.look(node.clone()).await?;
                if companion.is_none() && found.is_none_or(|found| found.czxid != czxid) {
                    return Ok(tried.load(Ordering::Relaxed));
                }
            }
            let name = self.claims()[0].parse(&holder.name).or_else(|| Name::parse_lease(&holder.name));
            let mark = name.and_then(|name| name.uuid()).or(holder.mark);
            let data = if companion.is_some() || mark.is_some_and(Uuid::is_ours) {
                node_data::asking(&holder.identity, &holder.queues, holder.mark)
            } else {
                REVOKE.to_vec()
            };
            let write = Write::SetData { path: node.to_string(), data, version: None };
            let guards = [node.clone()].into_iter().chain(companion.map(Arc::from)).collect();
            was_written(session.commit(guards, vec![write]).await.map(|_| ()), tried)
        })
        .await
    }

    fn name_is_reused(&self) -> bool {
        self.claims().iter().any(|claim| !claim.has_queue())
    }

    /// Evicts the holder of a single-node lock that was `seen`, or the one that is seen first if none was. It never evicts the
    /// next holder, whose node has the same path, not even after a lost answer.
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
            // A deletion cannot name the transaction that created the node, only the version. A node with another version
            // is another one, or was written to since.
            match session.delete(node.clone(), Some(found.version)).await {
                Ok(Deletion::Done) => Ok(true),
                Ok(Deletion::NotThere) => Ok(tried.load(Ordering::Relaxed)),
                Ok(Deletion::Changed) => Err(Failure::Unknown),
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
        F: Future<Output = Result<T, Failure>>,
    {
        ask(self.pool(), || format!("the lock {}: {problem}", self.path()), call).await
    }
}

/// Returns the path of the node that was created together with a single-node lock's node, if there is one.
async fn companion_of(
    session: &Arc<Session>,
    directory: &Arc<str>,
    czxid: i64,
) -> Result<Option<String>, Failure> {
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

/// Whether writes to a contender's nodes were done; the nodes guard them. Returns `false` if one of the nodes is gone. If an
/// answer was lost before (`tried`), the writes may have been done while the nodes still existed.
fn was_written(written: Result<(), Failure>, tried: &AtomicBool) -> Result<bool, Failure> {
    match written {
        Ok(()) => Ok(true),
        Err(Failure::GuardGone) => Ok(tried.load(Ordering::Relaxed)),
        // Nothing was written.
        Err(refused @ (Failure::Refused(_) | Failure::Conflict { .. })) => Err(refused),
        Err(lost) => {
            tried.store(true, Ordering::Relaxed);
            Err(lost)
        }
    }
}

const UNEVICTED: &str = "a contender could not be evicted";

async fn contenders_of(session: &Arc<Session>, claim: &Claim) -> Result<Vec<QueuedContender>, Failure> {
    let mut contenders = Vec::new();
    if let Some(permits) = &claim.permits {
        let limit = limit_of(session, permits).await?;
        let children = session.children(permits.directory.clone()).await?;
        contenders = in_order(claim, &permits.directory, children, |name| Name::parse_lease(name));
        for (number, contender) in (0..).zip(&mut contenders) {
            contender.holds = number < limit;
        }
    }
    let children = session.children(claim.directory.clone()).await?;
    if !claim.has_queue() {
        let node = children.into_iter().find(|child| child.name == SINGLE_NAME);
        return Ok(node
            .into_iter()
            .map(|node| contender(claim, &claim.directory, node, claim.scheme, true))
            .collect());
    }
    let mut queue = in_order(claim, &claim.directory, children, |name| claim.parse(name));
    if claim.permits.is_none() {
        mark_holders(claim, &mut queue);
        for contender in queue.iter_mut().filter(|contender| contender.holds) {
            let mark = claim.parse(&contender.name).and_then(|name| name.uuid());
            if let Some(mark) = mark.filter(|_| !contender.queues.is_empty()) {
                contender.holds = set::holds(session, &claim.directory, mark, &contender.queues).await?;
            }
        }
    }
    // The head of the queue creates its permits before there are enough. Nodes of zklock have the same mark in both places.
    for permit in &mut contenders {
        permit.holds &=
            !queue.iter().any(|waiter| mark(&waiter.name, "-lock-") == mark(&permit.name, "-lease-"));
    }
    contenders.extend(queue);
    Ok(contenders)
}

/// Returns the part of a node's name that the contender has chosen.
fn mark<'a>(name: &'a str, infix: &str) -> &'a str {
    name.rsplit_once(infix).map_or(name, |(mark, _)| mark)
}

async fn limit_of(session: &Arc<Session>, permits: &Permits) -> Result<u32, Failure> {
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
    is_permit || *claim.directory == *directory && (is_single || claim.parse(name).is_some())
}

fn in_order(
    claim: &Claim,
    directory: &str,
    children: Vec<Child>,
    parse: impl Fn(&str) -> Option<Name<'_>>,
) -> Vec<QueuedContender> {
    let mut queue: Vec<_> = children
        .into_iter()
        .filter_map(|child| {
            let name = parse(&child.name)?;
            let (scheme, sequence) = (name.scheme, name.sequence);
            Some((sequence, contender(claim, directory, child, scheme, false)))
        })
        .collect();
    queue.sort_by(|(left, _), (right, _)| left.compare(*right));
    queue.into_iter().map(|(_, contender)| contender).collect()
}

pub(crate) fn contender(
    claim: &Claim,
    directory: &str,
    child: Child,
    scheme: Scheme,
    holds: bool,
) -> QueuedContender {
    let (identity, queues) = node_data::read(&child.data);
    QueuedContender {
        node: format!("{directory}/{}", child.name),
        identity,
        queues,
        mark: mark_in_data(&child.data).map(|(_, mark)| mark),
        session: child.session,
        token: Token::of(child.czxid),
        since: child.created,
        naming: claim.naming_of(scheme),
        role: scheme.role(),
        holds,
        name: child.name,
    }
}

/// The first holds. If it reads, so do those after it, up to the next that does not. A reader that shares the
/// number of its writer holds with it.
fn mark_holders(claim: &Claim, queue: &mut [QueuedContender]) {
    let sequence = |name: &str| claim.parse(name).map(|name| name.sequence);
    let first = queue.first().map(|first| (sequence(&first.name), first.role));
    let mut only_readers = true;
    for (number, contender) in queue.iter_mut().enumerate() {
        let is_first = number == 0;
        let shares = first.is_some_and(|(number, _)| number == sequence(&contender.name));
        contender.holds = is_first || shares || only_readers && contender.role == Role::Read;
        only_readers &= contender.role == Role::Read;
    }
}
