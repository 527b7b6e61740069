//! Observing who leads, or who holds a lock, without taking part.

use crate::base::error::Error;
use crate::base::failure::Failure;
use crate::client::lock::Lock;
use crate::machine::claim::Claim;
use crate::machine::name::{Name, SINGLE_NAME, Scheme};
use crate::machine::protocol::{Operation, Outcome, WatchEvent};
use crate::operator::contenders::{QueuedContender, contender};
use crate::session::ask::{ask_for_ever, catch_up, request};
use crate::session::session::{Link, Session};
use crate::zookeeper::ensemble::{Landing, Pending};
use std::fmt;
use std::sync::Arc;

/// Reports who holds a lock, and each new holder. See [`Lock::observe`].
pub(crate) struct Observer {
    lock: Lock,
    watch: Option<HolderWatch>,
    /// The holder that was reported last.
    reported: Option<Option<QueuedContender>>,
}

/// A watch that fires when the holder may have changed. It never fires once its session has ended.
struct HolderWatch {
    session: Arc<Session>,
    event: Pending<WatchEvent>,
}

impl Lock {
    /// Observes who holds the lock. For an election, that is the leader.
    pub(crate) fn observe(&self) -> Result<Observer, Error> {
        self.spec().check_observable()?;
        Ok(Observer { lock: self.clone(), watch: None, reported: None })
    }
}

impl Observer {
    /// Returns the holder; `None` if nobody holds the lock. The first call returns the present holder at once. Each later
    /// call waits until the holder changes.
    pub(crate) async fn next(&mut self) -> Result<Option<QueuedContender>, Error> {
        loop {
            if let Some(watch) = &mut self.watch {
                watch.fired().await;
                self.watch = None;
            }
            // Later reads go to the same server, or to a new connection, which begins with a barrier.
            let is_first = self.reported.is_none();
            let claim = &self.lock.claims()[0];
            let problem = || format!("the lock {} cannot be observed", self.lock.path());
            let (holder, watch) = ask_for_ever(
                || self.lock.pool().slot().session(),
                problem,
                |session| async move {
                    let (holder, event) = read_and_watch(claim, &session, is_first).await?;
                    Ok((holder, HolderWatch { session, event }))
                },
            )
            .await?;
            self.watch = Some(watch);
            if self.reported.as_ref() != Some(&holder) {
                self.reported = Some(holder.clone());
                return Ok(holder);
            }
        }
    }
}

/// The holder, and the watch that fires when it changes.
type Observed = (Option<QueuedContender>, Pending<WatchEvent>);

impl HolderWatch {
    async fn fired(&mut self) {
        let mut link = self.session.link();
        tokio::select! {
            _ = &mut self.event => {}
            _ = link.wait_for(|link| matches!(link, Link::Over(_))) => {}
        }
    }
}

async fn read_and_watch(claim: &Claim, session: &Arc<Session>, is_first: bool) -> Result<Observed, Failure> {
    let directory = claim.directory.clone();
    if is_first {
        catch_up(session, &directory).await?;
    }
    loop {
        let list = Operation::List { directory: directory.clone() };
        if let (Outcome::Children(children), _) = request(session, list).await? {
            if let Some((name, scheme)) = first(claim, &children) {
                if let Some((child, event)) = session.child(directory.clone(), name).await? {
                    return Ok((Some(contender(claim, &directory, child, scheme, true)), event));
                }
                continue;
            }
        }
        let list = Operation::ListAndWatch { directory: directory.clone() };
        match request(session, list).await? {
            (Outcome::Children(children), Landing { watch: Some(event), .. })
                if first(claim, &children).is_none() =>
            {
                return Ok((None, event));
            }
            (Outcome::NoNode, _) => {
                let inspect = Operation::InspectAndWatch { path: directory.to_string() };
                if let (Outcome::NoNode, Landing { watch: Some(event), .. }) =
                    request(session, inspect).await?
                {
                    return Ok((None, event));
                }
            }
            _ => {}
        }
    }
}

/// Finds the first of the contenders.
fn first(claim: &Claim, children: &[String]) -> Option<(String, Scheme)> {
    if !claim.has_queue() {
        return children
            .iter()
            .find(|child| *child == SINGLE_NAME)
            .map(|child| (child.clone(), claim.scheme));
    }
    let contenders = children.iter().filter_map(|child| claim.parse(child));
    contenders.min_by(Name::compare).map(|name| (name.text.to_owned(), name.scheme))
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observer").field("path", &self.lock.path()).field("reported", &self.reported).finish()
    }
}
