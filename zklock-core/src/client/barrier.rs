//! The barrier: while it is set, everybody who arrives waits.
//!
//! It has the layout of Curator's `DistributedBarrier`: the node is the barrier. It outlives the client that set it.

use crate::attempt::shared::Handle;
use crate::base::clock;
use crate::base::error::{Error, ErrorKind};
use crate::base::failure::Failure;
use crate::base::wait::Wait;
use crate::machine::protocol::{Operation, Outcome, WatchEvent};
use crate::session::ask::{ask, ask_for_ever, ask_within, request, silence, while_refused};
use crate::session::pool::Pool;
use crate::session::session::{Link, Session};
use crate::zookeeper::ensemble::{Pending, Write, text_of};
use crate::zookeeper::node_data;
use std::fmt;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How many times a refused write is tried if others create or delete the same nodes meanwhile.
const ROUNDS_AT_MOST: u32 = 8;

/// A barrier: a node that exists or does not. While it exists, callers of [`wait_within`](Self::wait_within) wait.
#[derive(Clone)]
pub(crate) struct Barrier {
    client: Handle,
    path: Arc<str>,
}

impl Barrier {
    pub(crate) fn new(client: Handle, path: &str) -> Self {
        Self { client, path: path.into() }
    }

    /// Sets the barrier. Returns `false` if it was already set; that is not an error.
    pub(crate) async fn set(&self) -> Result<bool, Error> {
        let data = node_data::of(self.client.pool.identity()).to_vec();
        let create = Write::Create { path: self.path.to_string(), data };
        self.write(create, true).await
    }

    /// Removes the barrier, so that all waiters go on. Returns `false` if it was not set; that is not an
    /// error.
    pub(crate) async fn remove(&self) -> Result<bool, Error> {
        self.write(Write::Delete { path: self.path.to_string(), version: None }, false).await
    }

    /// Returns whether the barrier is set.
    pub(crate) async fn is_set(&self) -> Result<bool, Error> {
        self.is_set_within(self.client.pool.options().connect_timeout).await
    }

    async fn is_set_within(&self, patience: Duration) -> Result<bool, Error> {
        let problem = || format!("the barrier {} could not be read", self.path);
        let read = |session| async move { Ok(self.read(&session, false).await?.0) };
        let slot = self.client.pool.slot();
        ask_within(patience, slot, || slot.session(), problem, read).await
    }

    /// Waits until the barrier is not set.
    pub(crate) async fn wait_within(&self, wait: Wait) -> Result<(), Error> {
        let path = &self.path;
        if wait == Wait::Once {
            let set = || Error::new(ErrorKind::Timeout, format!("the barrier {path} is set"));
            let patience = self.client.pool.options().try_timeout;
            return if self.is_set_within(patience).await? { Err(set()) } else { Ok(()) };
        }
        tokio::select! {
            biased;
            waited = self.until_removed() => waited,
            timeout = wait.over() => {
                let trouble = trouble(&self.client.pool, "nobody removed it");
                let message = format!("the barrier {path} is still set after {timeout:?}: {trouble}");
                Err(Error::new(failure(&self.client.pool), message))
            }
        }
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

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Barrier").field("path", &self.path).finish_non_exhaustive()
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
