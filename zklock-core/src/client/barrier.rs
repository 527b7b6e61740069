//! The barrier: while it is set, everybody who arrives waits.
//!
//! It has the layout of Curator's `DistributedBarrier`: the node is the barrier. It outlives the client that set it.

use crate::attempt::shared::Handle;
use crate::base::clock;
use crate::base::error::{Error, ErrorKind};
use crate::base::failure::Failure;
use crate::base::wait::Wait;
use crate::client::home::Home;
use crate::connect::path::check_lock_path;
use crate::machine::protocol::{Operation, Outcome, WatchEvent};
use crate::session::ask::{ask, ask_for_ever, ask_within, request, silence, while_refused};
use crate::session::pool::Pool;
use crate::session::session::{Link, Session};
use crate::threads::call::Call;
use crate::zookeeper::ensemble::{Pending, Write, text_of};
use crate::zookeeper::node_data;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How many times a refused write is tried if others create or delete the same nodes meanwhile.
const ROUNDS_AT_MOST: u32 = 8;

/// A barrier: a node that exists or does not. While it exists, callers of [`wait`](Self::wait) wait.
///
/// It is the same barrier as Curator's `DistributedBarrier` at that path. It does not belong to a client: it
/// stays after the client that set it has ended, and any client may remove it.
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: zklock::Client) -> Result<(), zklock::Error> {
/// let barrier = client.barrier("/barriers/migration")?;
/// barrier.set().await?;
/// // ... migrate; meanwhile all others are in barrier.wait() ...
/// barrier.remove().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Barrier {
    home: Home,
    path: Arc<str>,
}

impl Barrier {
    pub(super) fn new(home: &Home, path: &str) -> Result<Self, Error> {
        check_lock_path(path)?;
        home.refuse_forked()?;
        Ok(Self { home: home.clone(), path: path.into() })
    }

    /// Returns whether its client was used by a process from which this one was forked. It is useless here then.
    #[doc(hidden)]
    pub fn is_forked(&self) -> bool {
        self.home.is_forked()
    }

    /// Returns the path of the barrier.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(barriers: &[zklock::further::Barrier]) -> Result<(), zklock::Error> {
    /// for barrier in barriers {
    ///     println!("waiting at {}", barrier.path());
    ///     barrier.wait().await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Sets the barrier. Returns `false` if it was already set; that is not an error.
    ///
    /// If a reply was lost, it is not known which client set it. It then counts as set by this
    /// call.
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::Unreachable`] if the ensemble does not answer within the connect timeout. The barrier may be set
    ///   then;
    /// * [`ErrorKind::Refused`] if the access list does not allow it;
    /// * [`ErrorKind::Closed`] if the client is closed.
    ///
    /// # Cancel safety
    ///
    /// If the call is dropped, the barrier may or may not be set.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(barrier: zklock::further::Barrier) -> Result<(), zklock::Error> {
    /// if !barrier.set().await? {
    ///     println!("somebody was before us");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn set(&self) -> Call<bool> {
        self.call(Wait::Forever, |node| async move {
            let data = node_data::of(node.client.pool.identity()).to_vec();
            let create = Write::Create { path: node.path.to_string(), data };
            node.write(create, true).await
        })
    }

    /// Removes the barrier, so that all waiters go on. Returns `false` if it was not set; that is not an
    /// error.
    ///
    /// If a reply was lost, it is not known which client removed it. It then counts as removed by
    /// this call.
    ///
    /// # Errors
    ///
    /// Fails like [`set`](Self::set) does.
    ///
    /// # Cancel safety
    ///
    /// If the call is dropped, the barrier may or may not be removed.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(barrier: zklock::further::Barrier) -> Result<(), zklock::Error> {
    /// barrier.remove().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn remove(&self) -> Call<bool> {
        self.call(Wait::Forever, |node| async move {
            node.write(Write::Delete { path: node.path.to_string(), version: None }, false).await
        })
    }

    /// Returns whether the barrier is set.
    ///
    /// # Errors
    ///
    /// Fails like [`set`](Self::set) does.
    ///
    /// # Cancel safety
    ///
    /// Dropping the call changes nothing.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(barrier: zklock::further::Barrier) -> Result<(), zklock::Error> {
    /// println!("{} is set: {}", barrier.path(), barrier.is_set().await?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_set(&self) -> Call<bool> {
        self.call(Wait::Forever, |node| async move {
            node.is_set_within(node.client.pool.options().connect_timeout).await
        })
    }

    /// Waits until the barrier is not set.
    ///
    /// A waiter may miss the removal if the barrier is set again at once.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`] if the access list does not allow reading the barrier; [`ErrorKind::Closed`] if the
    /// client is closed. While no server answers, it waits.
    ///
    /// # Cancel safety
    ///
    /// Dropping the call ends the wait, and changes nothing.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(barrier: zklock::further::Barrier) -> Result<(), zklock::Error> {
    /// barrier.wait().await?;
    /// println!("go on");
    /// # Ok(())
    /// # }
    /// ```
    pub fn wait(&self) -> Call<()> {
        self.wait_within(Wait::Forever)
    }

    /// Like [`wait`](Self::wait), but waits no longer than `timeout`. Zero looks once.
    ///
    /// # Errors
    ///
    /// Fails like [`wait`](Self::wait) does. When the time is up, whatever the network does, it also fails with:
    ///
    /// * [`ErrorKind::Timeout`] if the barrier is still set;
    /// * [`ErrorKind::Unreachable`] if there is no connection at that moment. With a timeout of zero, also if the
    ///   ensemble does not answer within the [try timeout](crate::ClientOptions::try_timeout).
    ///
    /// # Cancel safety
    ///
    /// Dropping the call ends the wait, and changes nothing.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// # async fn example(barrier: zklock::further::Barrier) -> Result<(), zklock::Error> {
    /// barrier.wait_timeout(Duration::from_secs(60)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn wait_timeout(&self, timeout: Duration) -> Call<()> {
        self.wait_within(timeout)
    }

    /// Like [`wait`](Self::wait) or [`wait_timeout`](Self::wait_timeout).
    #[doc(hidden)]
    pub fn wait_within(&self, wait: impl Into<Wait>) -> Call<()> {
        let wait = wait.into();
        self.call(wait, move |node| async move {
            let path = &node.path;
            if wait == Wait::Once {
                let set = || Error::new(ErrorKind::Timeout, format!("the barrier {path} is set"));
                let patience = node.client.pool.options().try_timeout;
                return if node.is_set_within(patience).await? { Err(set()) } else { Ok(()) };
            }
            tokio::select! {
                biased;
                waited = node.until_removed() => waited,
                timeout = wait.over() => {
                    let trouble = trouble(&node.client.pool, "nobody removed it");
                    let message = format!("the barrier {path} is still set after {timeout:?}: {trouble}");
                    Err(Error::new(failure(&node.client.pool), message))
                }
            }
        })
    }

    fn call<R, F>(&self, wait: Wait, call: impl FnOnce(Node) -> F + Send + 'static) -> Call<R>
    where
        R: Send + 'static,
        F: Future<Output = Result<R, Error>> + Send + 'static,
    {
        let path = self.path.clone();
        self.home.call(wait, move |client| call(Node { client: client.fixed().handle.clone(), path }))
    }
}

/// The node of a barrier, for a client that has connected.
struct Node {
    client: Handle,
    path: Arc<str>,
}

impl Node {
    async fn is_set_within(&self, patience: Duration) -> Result<bool, Error> {
        let problem = || format!("the barrier {} could not be read", self.path);
        let read = |session| async move { Ok(self.read(&session, false).await?.0) };
        let slot = self.client.pool.slot();
        ask_within(patience, slot, || slot.session(), problem, read).await
    }

    async fn until_removed(&self) -> Result<(), Error> {
        let problem = || format!("the barrier {} cannot be watched", self.path);
        loop {
            let read = |session: Arc<Session>| async move {
                let (is_set, watch) = self.read(&session, true).await?;
                Ok((is_set, watch, session))
            };
            let (is_set, watch, session) =
                ask_for_ever(|| self.client.pool.slot().session(), problem, read).await?;
            if !is_set {
                return Ok(());
            }
            wait_for_change(&session, watch).await;
        }
    }

    /// Returns whether it is set, and a watch that fires when that changes.
    async fn read(
        &self,
        session: &Arc<Session>,
        watches: bool,
    ) -> Result<(bool, Option<Pending<WatchEvent>>), Failure> {
        let path = self.path.to_string();
        // A server that lags behind may not know of a barrier that the caller knows to be set.
        let committed = Operation::Barrier { directory: self.path.clone() };
        let inspect = if watches { Operation::InspectAndWatch { path } } else { Operation::Inspect { path } };
        let landing = session.clone().send(vec![committed, inspect]).await;
        match &landing.outcomes[..] {
            [Outcome::Done, Outcome::Found(_)] => Ok((true, landing.watch)),
            [Outcome::Done, Outcome::NoNode] => Ok((false, landing.watch)),
            [.., Outcome::Refused(refusal)] => Err(Failure::Refused(text_of(refusal))),
            [.., Outcome::SessionOver] => Err(Failure::SessionOver),
            _ => Err(Failure::Unknown),
        }
    }

    /// Does the write that sets or removes the barrier. Returns `false` if that had already been done.
    async fn write(&self, write: Write, sets: bool) -> Result<bool, Error> {
        let problem =
            || format!("the barrier {} was not {}", self.path, if sets { "set" } else { "removed" });
        let (write, tried) = (&write, &AtomicBool::new(false));
        let written = |session| async move { self.write_in(&session, write, sets, tried).await };
        ask(&self.client.pool, problem, written).await
    }

    /// Like [`write`](Self::write), in one session. `tried` says whether an earlier try may have done it.
    async fn write_in(
        &self,
        session: &Arc<Session>,
        write: &Write,
        sets: bool,
        tried: &AtomicBool,
    ) -> Result<bool, Failure> {
        while_refused(ROUNDS_AT_MOST, || async {
            let problem = match session.commit(Vec::new(), vec![write.clone()]).await {
                Ok(_) => return Ok(Ok(true)),
                Err(Failure::Conflict { problem, .. }) => problem,
                Err(failure) => {
                    tried.store(true, Ordering::Relaxed);
                    return Err(failure);
                }
            };
            // Most likely it was refused because it is done already.
            if self.read(session, false).await?.0 == sets {
                return Ok(Ok(tried.load(Ordering::Relaxed)));
            }
            let parent = self.path.rsplit_once('/').map_or("", |(parent, _)| parent);
            if sets && !parent.is_empty() {
                request(session, Operation::CreateParents { directory: parent.into() }).await?;
            }
            Ok(Err(problem))
        })
        .await
    }
}

/// Waits until there is a reason to read again: the watch has fired, the connection has changed, or, in case both
/// fail, a session timeout has passed.
async fn wait_for_change(session: &Session, watch: Option<Pending<WatchEvent>>) {
    let mut link = session.link();
    if matches!(*link.borrow_and_update(), Link::Over(_)) {
        return;
    }
    tokio::select! {
        _ = watch.unwrap_or_else(|| Box::pin(pending())) => {}
        _ = link.changed() => {}
        () = clock::sleep(session.timeout()) => {}
    }
}

/// Returns the likely reason why a wait failed.
pub(crate) fn trouble(pool: &Pool, otherwise: &str) -> String {
    if pool.slot().is_connected() { otherwise.to_owned() } else { silence(pool.slot()) }
}

/// Returns the kind of error for a wait that failed. Without a connection, nobody knows whether others were the
/// reason.
pub(crate) fn failure(pool: &Pool) -> ErrorKind {
    if pool.slot().is_connected() { ErrorKind::Timeout } else { ErrorKind::Unreachable }
}
