//! Observing who leads, or who holds a lock, without taking part.

use crate::base::error::Error;
use crate::base::failure::Failure;
use crate::base::wait::Wait;
use crate::client::lazy::Lazy;
use crate::client::lock::{Lock, OpenLock};
use crate::machine::claim::Claim;
use crate::machine::name::{Name, SINGLE_NAME, Scheme};
use crate::machine::protocol::{Operation, Outcome, WatchEvent};
use crate::operator::contenders::{QueuedContender, contender};
use crate::session::ask::{ask_for_ever, catch_up, request};
use crate::session::session::{Link, Session};
use crate::threads::call::Call;
use crate::zookeeper::ensemble::{Landing, Pending};
use std::sync::Arc;
use tokio::sync::{Mutex, OwnedMutexGuard};

/// Reports who holds a lock, and each new holder. See [`Lock::observe`](crate::Lock::observe).
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: zklock::Client) -> Result<(), zklock::Error> {
/// let mut observer = client.election("/election/scheduler")?.observe()?;
/// let leader = observer.next().await?;
/// println!("{} leads", leader.map_or("nobody".to_owned(), |leader| leader.identity));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Observer {
    observing: Lazy<Arc<Mutex<Observing>>>,
}

impl Observer {
    /// Returns the holder; `None` if nobody holds the lock. The first call returns the present holder at once. Each later
    /// call waits until the holder changes.
    ///
    /// Changes that follow one another quickly may be reported as one. While no server answers, it waits.
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::Closed`](crate::ErrorKind::Closed) if the client is closed;
    /// * [`ErrorKind::Refused`](crate::ErrorKind::Refused) if the access list does not allow reading the lock.
    ///
    /// # Cancel safety
    ///
    /// The call may be dropped, and made again.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(lock: zklock::Lock) -> Result<(), zklock::Error> {
    /// let mut observer = lock.observe()?;
    /// // At once, and then each time that another one holds the lock.
    /// while let Some(holder) = observer.next().await? {
    ///     println!("{} holds it", holder.identity);
    /// }
    /// println!("it is free");
    /// # Ok(())
    /// # }
    /// ```
    pub fn next(&self) -> Call<Option<QueuedContender>> {
        self.observing.call(Wait::Forever, |observing| async move {
            let observing = observing.fixed().clone();
            Ok(Report::of(observing).await?.take())
        })
    }

    /// Like [`next`](Self::next), but what it gives counts as reported only when it is taken. If it is dropped, the next call gives it.
    #[doc(hidden)]
    pub fn report(&self) -> Call<Report> {
        self.observing.call(Wait::Forever, |observing| Report::of(observing.fixed().clone()))
    }
}

/// A holder that is to be reported. Further calls wait until it is taken, or dropped.
#[allow(missing_debug_implementations, reason = "only the C and Python layers have one")]
pub struct Report(OwnedMutexGuard<Observing>);

impl Report {
    async fn of(observing: Arc<Mutex<Observing>>) -> Result<Self, Error> {
        let mut observing = observing.lock_owned().await;
        observing.wait().await?;
        Ok(Self(observing))
    }

    /// Returns the holder; `None` if nobody holds the lock.
    pub fn take(mut self) -> Option<QueuedContender> {
        let holder = self.0.holder.clone();
        self.0.reported.clone_from(&holder);
        holder.flatten()
    }
}

struct Observing {
    lock: OpenLock,
    watch: Option<HolderWatch>,
    /// The holder that was found last.
    holder: Option<Option<QueuedContender>>,
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
    ///
    /// It watches only the holder, so many processes can observe one lock without waking each other. If several hold it at
    /// once, it reports the first of them. It reports the first contender in the queue as the holder, even if that is a set
    /// of locks that still waits for another of its locks. [`contenders`](Self::contenders) tells the two apart.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) for a set of locks and for a semaphore.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: zklock::Client) -> Result<(), zklock::Error> {
    /// let mut observer = client.election("/election/scheduler")?.observe()?;
    /// loop {
    ///     match observer.next().await? {
    ///         Some(leader) => println!("{} leads", leader.identity),
    ///         None => println!("nobody leads"),
    ///     }
    /// }
    /// # }
    /// ```
    pub fn observe(&self) -> Result<Observer, Error> {
        self.spec().check_observable()?;
        let lock = self.open.clone();
        let observe = move |client: &_| {
            let lock = lock.of(client)?.get()?.clone();
            Ok(Arc::new(Mutex::new(Observing { lock, watch: None, holder: None, reported: None })))
        };
        Ok(Observer { observing: Lazy::new(self.open.home(), observe)? })
    }
}

impl Observing {
    /// Waits until the holder is not the one that was reported last.
    async fn wait(&mut self) -> Result<(), Error> {
        while self.holder == self.reported {
            if let Some(watch) = &mut self.watch {
                watch.fired().await;
                self.watch = None;
            }
            // Later reads go to the same server, or to a new connection, which begins with a barrier.
            let is_first = self.holder.is_none();
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
            (self.watch, self.holder) = (Some(watch), Some(holder));
        }
        Ok(())
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
